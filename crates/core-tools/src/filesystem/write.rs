//! `write_file`: writes a whole file, or appends to one.

use std::io::Read;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::mask;
use super::parameters::note_on_spelling;
use crate::workspace::{FileReplaceCondition, TargetFile, Workspace};

/// A file and its new content.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WriteFile {
    /// Path of the file, relative to the first root or absolute. Missing folders are created.
    pub path: String,
    /// The whole new text, or for `append` the text to add.
    pub content: String,
    /// `overwrite` replaces a file, `create` refuses where one exists, `append` adds to its end. Default overwrite.
    #[serde(default)]
    pub mode: WriteMode,
}

impl WriteFile {
    /// An input that writes `content` to the file at `path`, and replaces an existing file.
    pub fn new(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self { path: path.into(), content: content.into(), mode: WriteMode::default() }
    }
}

/// The way to treat a file that exists: replace it, refuse, or add to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[non_exhaustive]
#[allow(missing_docs, reason = "doc comments would turn the schema's list of three words into a page")]
pub enum WriteMode {
    #[default]
    Overwrite,
    Create,
    Append,
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct WriteResult {
    /// The file, relative to its root.
    pub path: String,
    /// Bytes written.
    pub bytes: u64,
    /// True if the file is new.
    pub created: bool,
    /// Remarks on peculiarities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Writes a file, creating it and its missing parents.
///
/// `overwrite` and `create` are atomic ([`TargetFile::replace`]); `append` removes what it wrote if the disk
/// fills up. A link is followed to its file. Text with masks of secrets in it does not overwrite a
/// file that lacks them.
///
/// # Errors
/// The path, [`Error::Masked`], and every failure to write; nothing was changed then.
pub fn write_file(workspace: &Workspace, input: &WriteFile) -> Result<WriteResult, Error> {
    if input.path.ends_with('/') {
        return Err(Error::Parameters("`path` ends in `/`, which names a folder; name the file in it"));
    }
    let path = workspace.locate(&input.path)?;
    let content = input.content.as_bytes();
    path.create_parents()?;
    let target = path.target()?;
    // Held from the look at the old content to the write: an edit in between would be lost.
    let _lock = target.lock();
    let created = target.metadata()?.is_none();
    let has_mask = mask::contains(content);
    match input.mode {
        WriteMode::Overwrite => {
            if has_mask && !created {
                refuse_masks(&target, content)?;
            }
            target.replace(content, FileReplaceCondition::Anything)?;
        }
        WriteMode::Create => target.replace(content, FileReplaceCondition::Missing)?,
        WriteMode::Append => target.append(content)?,
    }
    let mut notes = Vec::new();
    // Nothing is lost here, so it is a note and no refusal: the text may be about masks.
    if has_mask && (created || input.mode == WriteMode::Append) {
        notes.push("the text contains [redacted:…]: the mask itself was written, not the secret".to_owned());
    }
    notes.extend(note_on_spelling(&input.path, &path));
    Ok(WriteResult { path: path.display_path(), bytes: content.len() as u64, created, notes })
}

/// Refuses `content` if it has a mask that the existing file lacks.
fn refuse_masks(target: &TargetFile, content: &[u8]) -> Result<(), Error> {
    let (mut file, _) = target.open_read()?;
    let mut original = Vec::new();
    let path = target.display_path().to_owned();
    file.read_to_end(&mut original).map_err(|source| Error::read(&path, source))?;
    match mask::first_new(content, &original) {
        Some(mask) => Err(Error::Masked { path, mask }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ProjectFixture, chain};
    use super::*;

    fn write(
        project: &ProjectFixture,
        path: &str,
        content: &str,
        mode: WriteMode,
    ) -> Result<WriteResult, String> {
        let input = WriteFile { path: path.into(), content: content.into(), mode };
        write_file(&project.workspace, &input).map_err(|error| chain(&error))
    }

    #[test]
    fn each_mode_does_what_it_says() {
        let project = ProjectFixture::new();
        let written = write(&project, "a/b/c.txt", "one\n", WriteMode::Overwrite).unwrap();
        assert_eq!((written.path.as_str(), written.bytes, written.created), ("a/b/c.txt", 4, true));
        assert!(!write(&project, "a/b/c.txt", "two\n", WriteMode::Overwrite).unwrap().created);
        assert_eq!(project.text("a/b/c.txt"), "two\n");
        assert!(!write(&project, "a/b/c.txt", "three\n", WriteMode::Append).unwrap().created);
        assert_eq!(project.text("a/b/c.txt"), "two\nthree\n");
        let error = write(&project, "a/b/c.txt", "x", WriteMode::Create).unwrap_err();
        assert!(error.starts_with("`a/b/c.txt` already exists; nothing was changed"), "{error}");
        assert!(write(&project, "new", "x", WriteMode::Create).unwrap().created);
        assert!(write(&project, "log", "x", WriteMode::Append).unwrap().created);
        assert_eq!(project.names("a/b"), ["c.txt"]);
    }

    #[test]
    fn what_cannot_be_written_says_why() {
        let project = ProjectFixture::with(&[("file", "x"), ("folder/f", "x")]);
        for (path, message) in [
            ("folder", "`folder` is a directory, not a regular file"),
            ("file/below", "`file` is a regular file, not a directory"),
            (".", "`.` is a directory, not a file"),
            ("folder/..", "`folder/..` is a directory, not a file"),
        ] {
            for mode in [WriteMode::Overwrite, WriteMode::Append] {
                let error = write(&project, path, "x", mode).unwrap_err();
                assert!(
                    error.ends_with(message.split_once(" is ").map_or(message, |(_, end)| end)),
                    "{error}"
                );
            }
        }
        assert_eq!(project.text("file"), "x");
    }

    #[test]
    fn a_mask_never_overwrites_a_secret() {
        let project = ProjectFixture::with(&[
            (".env", "TOKEN=ghp_real\nA=1\n"),
            ("doc.md", "shown as [redacted:github-token]\n"),
        ]);
        let masked = "TOKEN=[redacted:github-token]\nA=2\n";
        let error = write(&project, ".env", masked, WriteMode::Overwrite).unwrap_err();
        assert!(
            error.starts_with("nothing was written to `.env`: the text contains [redacted:github-token]"),
            "{error}"
        );
        assert_eq!(project.text(".env"), "TOKEN=ghp_real\nA=1\n");
        // A file that holds the mask itself, such as a manual, can be written.
        write(&project, "doc.md", "still [redacted:github-token]\n", WriteMode::Overwrite).unwrap();
        // A new file loses nothing, but the writer should know.
        let copy = write(&project, "copy.env", masked, WriteMode::Overwrite).unwrap();
        assert!(copy.notes[0].contains("the mask itself was written"), "{:?}", copy.notes);
        assert_eq!(write(&project, ".env", masked, WriteMode::Append).unwrap().notes.len(), 1);
    }

    #[test]
    fn readers_never_see_half_a_file() {
        let project = ProjectFixture::with(&[("f", "a".repeat(100_000))]);
        let path = project.workspace.locate("f").unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for round in 0..60 {
                    let letter = if round % 2 == 0 { "b" } else { "a" };
                    write(&project, "f", &letter.repeat(100_000), WriteMode::Overwrite).unwrap();
                }
            });
            let mut seen = 0;
            while !writer.is_finished() {
                let mut text = String::new();
                path.open_read().unwrap().0.read_to_string(&mut text).unwrap();
                assert_eq!(text.len(), 100_000);
                assert!(text.bytes().all(|byte| byte == text.as_bytes()[0]));
                seen += 1;
            }
            assert!(seen > 10, "{seen}");
        });
        assert_eq!(project.names(""), ["f"]);
    }

    /// Runs itself anew where no file may grow past 8 KiB: a full disk as far as a write can tell, without
    /// being root. A write past it fails midway, as with ENOSPC.
    #[cfg(unix)]
    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test starts itself under a limit")]
    fn a_full_disk_leaves_the_old_file_whole_and_no_temporary_one() {
        const NAME: &str =
            "filesystem::write::tests::a_full_disk_leaves_the_old_file_whole_and_no_temporary_one";
        if std::env::var_os("CORETOOLS_TEST_FULL_DISK").is_none() {
            let limited = r#"ulimit -f 16 && trap "" XFSZ && exec "$0" --exact "$1" --nocapture"#;
            let output = std::process::Command::new("sh")
                .args(["-c", limited])
                .arg(std::env::current_exe().unwrap())
                .arg(NAME)
                .env("CORETOOLS_TEST_FULL_DISK", "1")
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && text.contains("1 passed"),
                "{text}{}",
                String::from_utf8_lossy(&output.stderr)
            );
            return;
        }
        let project = ProjectFixture::with(&[("f", "old\n")]);
        for mode in [WriteMode::Overwrite, WriteMode::Append] {
            let error = write(&project, "f", &"x".repeat(1 << 20), mode).unwrap_err();
            assert!(error.starts_with("cannot write `f`: "), "{error}");
            assert_eq!(project.text("f"), "old\n", "{mode:?}");
        }
        for mode in [WriteMode::Create, WriteMode::Append, WriteMode::Overwrite] {
            write(&project, "new", &"x".repeat(1 << 20), mode).unwrap_err();
        }
        assert_eq!(project.names(""), ["f"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_inside_is_written_through_and_stays_a_link() {
        let project = ProjectFixture::with(&[("real.txt", "old")]);
        std::os::unix::fs::symlink("real.txt", project.at("link")).unwrap();
        write(&project, "link", "new", WriteMode::Overwrite).unwrap();
        assert_eq!(project.text("real.txt"), "new");
        assert!(project.at("link").is_symlink());
    }
}
