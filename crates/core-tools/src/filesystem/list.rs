//! `list_directory`: lists a folder, sorted and bounded.

use std::ffi::OsStr;
use std::io;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::entry::{is_hidden, kind_suffix};
use super::error::Error;
use super::parameters::{check_range, primary_root};
use crate::time::rfc3339;
use crate::workspace::{DirEntry, Folder, PathKind, Workspace, printable};

/// The most entries that are counted, in all folders together.
const MAX_COUNTED_ENTRIES: u64 = 1_000_000;
/// The most entries of one folder that are in memory at once: twice as many as `limit` allows, so that sorting and
/// dropping the rest is rare.
const MAX_HELD_ENTRIES: usize = 200_000;

/// A folder to list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ListDirectory {
    /// Folder to list. Default: the first root.
    #[serde(default = "primary_root")]
    pub path: String,
    /// Number of levels: 2 also lists what is in the folders found. Default 1.
    #[schemars(range(min = 1, max = 10))]
    pub depth: Option<i64>,
    /// Also lists names that begin with a dot. Default true.
    #[schemars(extend("unlisted" = true))]
    pub hidden: Option<bool>,
    /// Adds size in bytes and time of the last change, after tabs. Default false.
    #[serde(default)]
    pub details: bool,
    /// The most entries in the answer. Default 1000.
    #[schemars(range(min = 1, max = 100_000), extend("alias" = "limit"))]
    pub max_results: Option<i64>,
}

impl ListDirectory {
    /// An input that lists the folder at `path`, one level deep and without details.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), depth: None, hidden: None, details: false, max_results: None }
    }
}

impl Default for ListDirectory {
    /// An input that lists the primary root.
    fn default() -> Self {
        Self::new(primary_root())
    }
}

/// The entries of a folder, sorted by name; those of a subfolder follow it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct DirectoryListing {
    /// The directory, relative to its root.
    pub path: String,
    /// The entries, at most `max_results`.
    pub entries: Vec<ListedEntry>,
    /// The number of entries in all.
    pub total: u64,
    /// Remarks: what was left out and how to get it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ListedEntry {
    /// The name; with `depth`, the path below the directory listed.
    pub name: String,
    /// The kind of entry; links are not followed.
    pub kind: PathKind,
    /// Length in bytes, of files, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The time of the last change (RFC 3339, UTC), if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
}

impl DirectoryListing {
    /// Returns one entry a line, marked as `ls -F` does (`/` directory, `@` link, `|` pipe, `=` socket), details
    /// after tabs; the notes in brackets at the end.
    pub fn to_text(&self) -> String {
        let mut text = String::with_capacity(self.entries.len() * 24);
        for entry in &self.entries {
            text.push_str(&entry.name);
            text.push_str(kind_suffix(entry.kind));
            if let Some(size) = entry.size {
                text.push('\t');
                text.push_str(&size.to_string());
            }
            if let Some(modified) = &entry.modified {
                text.push('\t');
                text.push_str(modified);
            }
            text.push('\n');
        }
        if self.entries.is_empty() {
            text.push_str("[empty]\n");
        }
        for note in &self.notes {
            text.push_str(&format!("[{note}]\n"));
        }
        text
    }
}

/// Lists a folder, sorted by name, links as links. `.git` is listed but not entered, nor are links.
///
/// # Errors
/// The path, numbers out of range, cancellation.
pub fn list_directory(
    workspace: &Workspace,
    input: &ListDirectory,
    cancel: &CancellationToken,
) -> Result<DirectoryListing, Error> {
    let depth = check_range("depth", input.depth, 10, 1, "from 1 to 10")?;
    let limit = check_range("max_results", input.max_results, 100_000, 1000, "from 1 to 100000")?;
    let path = workspace.locate(&input.path)?;
    let folder = path.open_folder()?;
    let mut lister = DirectoryLister {
        hidden: input.hidden.unwrap_or(true),
        details: input.details,
        limit,
        cancel,
        entries: Vec::new(),
        total: 0,
        unreadable_folders: 0,
        non_utf8_names: 0,
    };
    // The folder asked for must be readable; those below it are only counted if they are not.
    let names = lister.sorted_entries(&folder)?.map_err(|source| Error::list(path.display_path(), source))?;
    lister.list(&folder, names, "", depth)?;

    let mut notes = Vec::new();
    if lister.total > lister.entries.len() as u64 {
        let more = if lister.total >= MAX_COUNTED_ENTRIES { "more than " } else { "" };
        notes.push(format!(
            "{} of {more}{} entries given; raise max_results (to at most 100000), or list a directory below",
            lister.entries.len(),
            lister.total
        ));
    }
    if lister.non_utf8_names > 0 {
        notes.push(format!("{} names are not valid UTF-8; tools cannot reach them", lister.non_utf8_names));
    }
    if lister.unreadable_folders > 0 {
        notes.push(format!("{} directories could not be read", lister.unreadable_folders));
    }
    Ok(DirectoryListing { path: path.display_path(), entries: lister.entries, total: lister.total, notes })
}

/// Collects the entries of a folder and those below it.
struct DirectoryLister<'a> {
    hidden: bool,
    details: bool,
    limit: usize,
    cancel: &'a CancellationToken,
    entries: Vec<ListedEntry>,
    total: u64,
    unreadable_folders: u64,
    non_utf8_names: u64,
}

impl DirectoryLister<'_> {
    /// Adds `names`, the entries of `folder`, and those below them to `depth` levels.
    fn list(
        &mut self,
        folder: &Folder,
        names: Vec<DirEntry>,
        prefix: &str,
        depth: usize,
    ) -> Result<(), Error> {
        for DirEntry { name, kind, .. } in names {
            let has_room = self.entries.len() < self.limit;
            let descend = depth > 1 && kind == PathKind::Directory && name != ".git";
            // Folders are entered even if the listing is full: what is in them is counted.
            if !has_room && !descend {
                continue;
            }
            let mut display_name = printable(&name);
            if !prefix.is_empty() {
                display_name.insert_str(0, prefix);
            }
            if has_room {
                let display_name =
                    if descend { display_name.clone() } else { std::mem::take(&mut display_name) };
                let entry = self.listed_entry(folder, &name, kind, display_name);
                self.entries.push(entry);
            }
            if descend {
                match folder.child(&name) {
                    Ok(child) => match self.sorted_entries(&child)? {
                        Ok(names) => self.list(&child, names, &(display_name + "/"), depth - 1)?,
                        Err(_) => self.unreadable_folders += 1,
                    },
                    Err(_) => self.unreadable_folders += 1,
                }
            }
        }
        Ok(())
    }

    /// Returns the entries of `folder` in order, as many as may be needed; all are counted. The outer error is
    /// that the call was cancelled, the inner that the folder cannot be read.
    fn sorted_entries(&mut self, folder: &Folder) -> Result<io::Result<Vec<DirEntry>>, Error> {
        let entries = match folder.entries() {
            Ok(entries) => entries,
            Err(error) => return Ok(Err(error)),
        };
        let mut held = Vec::new();
        for entry in entries {
            // A look at the token for every entry would cost as much as reading the entry.
            if self.total.is_multiple_of(1024) && self.cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            if self.total >= MAX_COUNTED_ENTRIES {
                break;
            }
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return Ok(Err(error)),
            };
            if !self.hidden && is_hidden(&entry.name) {
                continue;
            }
            self.total += 1;
            held.push(entry);
            if held.len() >= MAX_HELD_ENTRIES {
                held.sort_unstable_by(|a, b| a.name.cmp(&b.name));
                // What is dropped here comes after at least `limit` other entries, so it could not be listed.
                held.truncate(MAX_HELD_ENTRIES / 2);
            }
        }
        held.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(Ok(held))
    }

    fn listed_entry(
        &mut self,
        folder: &Folder,
        name: &OsStr,
        kind: PathKind,
        display_name: String,
    ) -> ListedEntry {
        if name.to_str().is_none() {
            self.non_utf8_names += 1;
        }
        // A file that was removed since it was listed stays in the list, without details.
        let metadata = if self.details { folder.metadata(name).ok() } else { None };
        ListedEntry {
            name: display_name,
            kind,
            size: metadata
                .as_ref()
                .filter(|metadata| metadata.kind == PathKind::File)
                .map(|metadata| metadata.size),
            modified: metadata.and_then(|metadata| metadata.modified).map(rfc3339),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ProjectFixture, chain};
    use super::*;

    #[allow(clippy::needless_pass_by_value, reason = "the calls read better")]
    fn list(project: &ProjectFixture, input: ListDirectory) -> Result<DirectoryListing, String> {
        list_directory(&project.workspace, &input, &project.cancel).map_err(|error| chain(&error))
    }

    fn project() -> ProjectFixture {
        ProjectFixture::with(&[
            ("src/lib.rs", "12345"),
            ("src/sub/deep.rs", ""),
            ("Cargo.toml", ""),
            (".hidden", ""),
            (".git/HEAD", ""),
            ("a.txt", ""),
        ])
    }

    #[test]
    fn names_are_sorted_and_marked_by_kind() {
        let project = project();
        #[cfg(unix)]
        std::os::unix::fs::symlink("a.txt", project.at("link")).unwrap();
        let listing = list(&project, ListDirectory::default()).unwrap();
        assert_eq!(listing.to_text(), ".git/\n.hidden\nCargo.toml\na.txt\nlink@\nsrc/\n");
        assert_eq!((listing.path.as_str(), listing.total), (".", 6));
        let shown =
            list(&project, ListDirectory { hidden: Some(false), ..ListDirectory::default() }).unwrap();
        assert_eq!(shown.to_text(), "Cargo.toml\na.txt\nlink@\nsrc/\n");
        assert_eq!(
            list(&project, ListDirectory { path: "src/sub".into(), ..ListDirectory::default() })
                .unwrap()
                .total,
            1
        );
    }

    #[test]
    fn deeper_levels_follow_their_directory_and_git_is_not_entered() {
        let project = project();
        let text = |depth| {
            list(&project, ListDirectory { depth: Some(depth), ..ListDirectory::default() })
                .unwrap()
                .to_text()
        };
        assert_eq!(text(2), ".git/\n.hidden\nCargo.toml\na.txt\nsrc/\nsrc/lib.rs\nsrc/sub/\n");
        assert_eq!(
            text(10),
            ".git/\n.hidden\nCargo.toml\na.txt\nsrc/\nsrc/lib.rs\nsrc/sub/\nsrc/sub/deep.rs\n"
        );
    }

    #[test]
    fn details_give_size_and_time() {
        let project = project();
        let input = ListDirectory { path: "src".into(), details: true, ..ListDirectory::default() };
        let listing = list(&project, input).unwrap();
        assert_eq!(listing.entries[0].size, Some(5));
        assert_eq!(listing.entries[1].size, None);
        assert!(listing.to_text().starts_with("lib.rs\t5\t20"), "{}", listing.to_text());
    }

    #[test]
    fn a_listing_over_the_limit_says_how_many_there_are() {
        let project = ProjectFixture::new();
        for index in 0..1500 {
            project.put(&format!("f{index:04}"), "");
        }
        let listing = list(&project, ListDirectory::default()).unwrap();
        assert_eq!((listing.entries.len(), listing.total), (1000, 1500));
        assert_eq!(listing.entries[999].name, "f0999");
        assert!(listing.to_text().ends_with(
            "[1000 of 1500 entries given; raise max_results (to at most 100000), or list a directory below]\n"
        ));
        let all =
            list(&project, ListDirectory { max_results: Some(1500), ..ListDirectory::default() }).unwrap();
        assert_eq!((all.entries.len(), all.notes.len()), (1500, 0));
    }

    #[test]
    fn wrong_input_is_named() {
        let project = project();
        let depth = ListDirectory { depth: Some(11), ..ListDirectory::default() };
        assert_eq!(list(&project, depth).unwrap_err(), "`depth` must be from 1 to 10; 11 was given");
        let limit = ListDirectory { max_results: Some(0), ..ListDirectory::default() };
        assert_eq!(list(&project, limit).unwrap_err(), "`max_results` must be from 1 to 100000; 0 was given");
        let file = ListDirectory { path: "a.txt".into(), ..ListDirectory::default() };
        assert_eq!(list(&project, file).unwrap_err(), "`a.txt` is a regular file, not a directory");
        let missing = ListDirectory { path: "scr".into(), ..ListDirectory::default() };
        assert_eq!(list(&project, missing).unwrap_err(), "`scr` does not exist; did you mean `src`?");
        project.cancel.cancel();
        assert_eq!(list(&project, ListDirectory::default()).unwrap_err(), "cancelled");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_that_is_no_text_is_shown_and_said() {
        use std::os::unix::ffi::OsStrExt;
        let project = ProjectFixture::new();
        project.workspace.locate(OsStr::from_bytes(b"caf\xe9")).unwrap().write(b"").unwrap();
        project.put("two\nlines", "");
        let listing = list(&project, ListDirectory::default()).unwrap();
        assert_eq!(
            listing.to_text(),
            "caf\u{fffd}\ntwo\\nlines\n[1 names are not valid UTF-8; tools cannot reach them]\n"
        );
    }

    #[test]
    fn an_empty_directory_says_so() {
        assert_eq!(list(&ProjectFixture::new(), ListDirectory::default()).unwrap().to_text(), "[empty]\n");
    }
}
