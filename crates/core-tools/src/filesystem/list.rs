//! `list_directory`: what is in a folder, sorted and capped.

use std::ffi::OsStr;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::error::{Error, ranged};
use crate::time::rfc3339;
use crate::workspace::{self, Entry, Folder, Kind, Workspace, printable};

/// Entries looked at before counting stops, all folders together.
const MAX_COUNTED: u64 = 1_000_000;
/// Entries of one folder held in memory at once.
const MAX_HELD: usize = 200_000;

/// What to list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListDirectory {
    /// Folder
    #[serde(default = "super::here")]
    pub path: String,
    /// Levels; default 1
    #[schemars(range(min = 1, max = 10))]
    pub depth: Option<i64>,
    /// Include dot names; default true
    #[schemars(extend("unlisted" = true))]
    pub hidden: Option<bool>,
    /// Add size and time of change
    #[serde(default)]
    pub details: bool,
    /// Default 1000
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: Option<i64>,
}

impl Default for ListDirectory {
    fn default() -> Self {
        Self { path: super::here(), depth: None, hidden: None, details: false, limit: None }
    }
}

/// What is in a folder, sorted by name; what is in a folder in it follows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Listing {
    /// The directory, relative to its root.
    pub path: String,
    /// The entries, at most `limit`.
    pub entries: Vec<Listed>,
    /// How many entries there are in all.
    pub total: u64,
    /// What was left out and how to get it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Listed {
    /// The name; with `depth`, the path below the directory listed.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Length in bytes, of files, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// When it last changed (RFC 3339, UTC), if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
}

impl Listing {
    /// One entry a line, marked as `ls -F` does (`/` directory, `@` link, `|` pipe, `=` socket), details
    /// after tabs; the notes in brackets at the end.
    pub fn to_text(&self) -> String {
        let mut text = String::with_capacity(self.entries.len() * 24);
        for entry in &self.entries {
            text.push_str(&entry.name);
            text.push_str(marker(entry.kind));
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

/// How `ls -F` marks a kind.
pub(super) fn marker(kind: Kind) -> &'static str {
    match kind {
        Kind::Directory => "/",
        Kind::Symlink => "@",
        Kind::Fifo => "|",
        Kind::Socket => "=",
        Kind::File | Kind::Device | Kind::Other => "",
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
) -> Result<Listing, Error> {
    let depth = ranged("depth", input.depth, 10, 1, "from 1 to 10")?;
    let limit = ranged("limit", input.limit, 100_000, 1000, "from 1 to 100000")?;
    let path = workspace.locate(&input.path)?;
    let folder = path.open_folder()?;
    let mut walk = Walk {
        hidden: input.hidden.unwrap_or(true),
        details: input.details,
        limit,
        cancel,
        entries: Vec::new(),
        total: 0,
        unreadable: 0,
        lossy: 0,
    };
    let failed = |source| Error::Path(workspace::Error::Io { action: "list", path: path.shown(), source });
    let names = walk.sorted(&folder)?.map_err(failed)?;
    walk.visit(&folder, names, "", depth)?;

    let mut notes = Vec::new();
    if walk.total > walk.entries.len() as u64 {
        let more = if walk.total >= MAX_COUNTED { "more than " } else { "" };
        notes.push(format!(
            "{} of {more}{} entries given; raise limit (to at most 100000), or list a directory below",
            walk.entries.len(),
            walk.total
        ));
    }
    if walk.lossy > 0 {
        notes.push(format!("{} names are not valid UTF-8; tools cannot reach them", walk.lossy));
    }
    if walk.unreadable > 0 {
        notes.push(format!("{} directories could not be read", walk.unreadable));
    }
    Ok(Listing { path: path.shown(), entries: walk.entries, total: walk.total, notes })
}

struct Walk<'a> {
    hidden: bool,
    details: bool,
    limit: usize,
    cancel: &'a CancellationToken,
    entries: Vec<Listed>,
    total: u64,
    unreadable: u64,
    lossy: u64,
}

impl Walk<'_> {
    fn visit(&mut self, folder: &Folder, names: Vec<Entry>, prefix: &str, depth: usize) -> Result<(), Error> {
        for Entry { name, kind } in names {
            let given = self.entries.len() < self.limit;
            let descend = depth > 1 && kind == Kind::Directory && name != ".git";
            if !given && !descend {
                continue;
            }
            let mut shown = printable(&name);
            if !prefix.is_empty() {
                shown.insert_str(0, prefix);
            }
            if given {
                let shown = if descend { shown.clone() } else { std::mem::take(&mut shown) };
                let entry = self.listed(folder, &name, kind, shown);
                self.entries.push(entry);
            }
            if descend {
                match folder.child(&name) {
                    Ok(child) => match self.sorted(&child)? {
                        Ok(names) => self.visit(&child, names, &(shown + "/"), depth - 1)?,
                        Err(_) => self.unreadable += 1,
                    },
                    Err(_) => self.unreadable += 1,
                }
            }
        }
        Ok(())
    }

    /// The entries of `folder` in order, as many as may be needed; all are counted.
    fn sorted(&mut self, folder: &Folder) -> Result<std::io::Result<Vec<Entry>>, Error> {
        let entries = match folder.entries() {
            Ok(entries) => entries,
            Err(error) => return Ok(Err(error)),
        };
        let mut held = Vec::new();
        for entry in entries {
            if self.total.is_multiple_of(1024) && self.cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            if self.total >= MAX_COUNTED {
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
            if held.len() >= MAX_HELD {
                held.sort_unstable_by(|a, b| a.name.cmp(&b.name));
                held.truncate(MAX_HELD / 2);
            }
        }
        held.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(Ok(held))
    }

    fn listed(&mut self, folder: &Folder, name: &OsStr, kind: Kind, shown: String) -> Listed {
        if name.to_str().is_none() {
            self.lossy += 1;
        }
        let metadata = if self.details { folder.metadata(name).ok() } else { None };
        Listed {
            name: shown,
            kind,
            size: metadata
                .as_ref()
                .filter(|metadata| metadata.kind == Kind::File)
                .map(|metadata| metadata.size),
            modified: metadata.and_then(|metadata| metadata.modified).map(rfc3339),
        }
    }
}

/// Whether a name begins with a dot.
pub(super) fn is_hidden(name: &OsStr) -> bool {
    Path::new(name).as_os_str().as_encoded_bytes().starts_with(b".")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Project, chain};
    use super::*;

    #[allow(clippy::needless_pass_by_value, reason = "the calls read better")]
    fn list(project: &Project, input: ListDirectory) -> Result<Listing, String> {
        list_directory(&project.workspace, &input, &project.cancel).map_err(|error| chain(&error))
    }

    fn project() -> Project {
        Project::with(&[
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
        let project = Project::new();
        for index in 0..1500 {
            project.put(&format!("f{index:04}"), "");
        }
        let listing = list(&project, ListDirectory::default()).unwrap();
        assert_eq!((listing.entries.len(), listing.total), (1000, 1500));
        assert_eq!(listing.entries[999].name, "f0999");
        assert!(listing.to_text().ends_with(
            "[1000 of 1500 entries given; raise limit (to at most 100000), or list a directory below]\n"
        ));
        let all = list(&project, ListDirectory { limit: Some(1500), ..ListDirectory::default() }).unwrap();
        assert_eq!((all.entries.len(), all.notes.len()), (1500, 0));
    }

    #[test]
    fn wrong_input_is_named() {
        let project = project();
        let depth = ListDirectory { depth: Some(11), ..ListDirectory::default() };
        assert_eq!(list(&project, depth).unwrap_err(), "`depth` must be from 1 to 10; 11 was given");
        let limit = ListDirectory { limit: Some(0), ..ListDirectory::default() };
        assert_eq!(list(&project, limit).unwrap_err(), "`limit` must be from 1 to 100000; 0 was given");
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
        let project = Project::new();
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
        assert_eq!(list(&Project::new(), ListDirectory::default()).unwrap().to_text(), "[empty]\n");
    }
}
