//! [`with_paths`]: a patch whose paths are written otherwise.

use super::file_patch::FilePatch;
use super::parse::parse;
use super::{codex, syntax, unified};
use crate::filesystem::error::Error;

/// The beginnings of the lines of a unified diff that name files.
const DIFF_HEADERS: [&str; 5] = ["--- ", "+++ ", "diff --git ", "rename from ", "rename to "];

/// Returns `patch` with each of its paths as `rename` writes it, and every other character as it is.
///
/// # Errors
/// It is no patch, or a line of its content reads like one that names a file.
pub(crate) fn with_paths(patch: &str, mut rename: impl FnMut(&str) -> String) -> Result<String, Error> {
    let mut expected = parse(patch)?;
    let mut renamed: Vec<(String, String)> = Vec::new();
    for path in expected.iter_mut().flat_map(FilePatch::paths_mut) {
        let new = rename(path);
        renamed.push((std::mem::replace(path, new.clone()), new));
    }
    let is_codex = patch.lines().any(|line| line.trim() == codex::BEGIN);
    let lines = patch.split('\n').map(|line| match is_codex {
        true => codex_line(line, &renamed),
        false => diff_line(line, &renamed),
    });
    let patch = lines.collect::<Vec<_>>().join("\n");
    // The lines are found by their beginnings. Read again, the patch shows if one of them was content.
    match parse(&patch)? == expected {
        true => Ok(patch),
        false => Err(syntax::error(
            "a line of its content reads like one that names a file, so that its paths cannot be told from its text",
        )),
    }
}

fn codex_line(line: &str, renamed: &[(String, String)]) -> String {
    let Some(path) = codex::header_path(line) else { return line.to_owned() };
    match renamed.iter().find(|(old, _)| old == path) {
        // The last, since the header before the path may have the same characters.
        Some((old, new)) => match line.rsplit_once(old.as_str()) {
            Some((before, after)) => format!("{before}{new}{after}"),
            None => line.to_owned(),
        },
        None => line.to_owned(),
    }
}

fn diff_line(line: &str, renamed: &[(String, String)]) -> String {
    if !DIFF_HEADERS.iter().any(|start| line.starts_with(start)) {
        return line.to_owned();
    }
    let named = renamed.iter().filter(|(old, _)| old != unified::DEV_NULL && line.contains(old.as_str()));
    // The longest, since the path of another file may begin like it.
    match named.max_by_key(|(old, _)| old.len()) {
        Some((old, new)) => line.replace(old.as_str(), new),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(patch: &str) -> Result<String, Error> {
        with_paths(patch, |path| path.strip_prefix("box:").unwrap_or(path).to_owned())
    }

    #[test]
    fn the_paths_of_both_forms_are_renamed_and_nothing_else_is() {
        for patch in [
            "*** Begin Patch\r\n*** Update File: box:/src/a.rs\r\n*** Move to: box:/src/b.rs\r\n@@ fn box:/src/a.rs\r\n-x\r\n+box:/src/a.rs\r\n\
             *** Add File: box:/src/ab.rs\r\n+*** Add File: box:/x\r\n*** Delete File: box:~/c\r\n*** End Patch\r\n",
            "a note\n--- a/box:/src/a.rs\n+++ b/box:/src/a.rs\t2026-01-01\n@@ -1 +1 @@\n-box:/src/a.rs\n+y\n",
            "diff --git a/box:/s/a b/box:/s/a\ndeleted file mode 100644\n--- a/box:/s/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
            "diff --git a/box:/s/a b/box:/s/b\nrename from box:/s/a\nrename to box:/s/b\n",
        ] {
            let renamed = there(patch).unwrap();
            let mut expected = parse(patch).unwrap();
            for path in expected.iter_mut().flat_map(FilePatch::paths_mut) {
                *path = path.replace("box:", "");
            }
            assert_eq!(parse(&renamed).unwrap(), expected, "{renamed}");
        }
        let content = "*** Begin Patch\n*** Add File: box:/a\n+box:/a\n*** End Patch\n";
        assert_eq!(there(content).unwrap(), content.replacen("box:", "", 1));
    }

    #[test]
    fn a_patch_whose_content_reads_like_a_header_is_refused() {
        let patch = "--- box:/s/a\n+++ box:/s/a\n@@ -1,2 +1,1 @@\n x\n--- box:/s/a\n";
        assert!(there(patch).is_err());
        assert!(there("no patch").is_err());
    }
}
