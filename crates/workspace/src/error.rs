//! The errors of the workspace. Every message says what to do, and none shows where a root lies, unless the caller may
//! know.

use std::io;
use std::path::PathBuf;

use crate::metadata::PathKind;

/// The reason why a [`Workspace`](crate::Workspace) refused a path, or why an operation on it failed.
///
/// Paths in messages are relative to their root: never the root's own place, never a place outside.
/// The exceptions are [`Error::Root`], which only the operator sees, at start, and the roots in [`Error::Outside`] for a
/// caller who [may know them](crate::Workspace::for_local_caller).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A folder given as a root cannot be opened.
    #[error("cannot open the allowed root {}", .path.display())]
    Root {
        /// The folder, as the operator named it.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A workspace needs at least one root.
    #[error("no allowed root was given; name at least one folder")]
    NoRoots,
    /// The text is no path: empty, with a NUL, or too long.
    #[error("`{path}` is not a usable path: {reason}")]
    Invalid {
        /// The path, shortened.
        path: String,
        /// The fault, to follow a colon.
        reason: &'static str,
    },
    /// The path leads out of every root, as an absolute path or by `..`.
    #[error(
        "{given} leads outside the allowed roots{roots}; use a path relative to the first root, or an absolute path beneath a root"
    )]
    Outside {
        /// The relative path, or the words "the absolute path given".
        given: String,
        /// The roots as the caller may know them, in parentheses after a blank; empty for a single one without a path.
        roots: String,
    },
    /// A symbolic link on the way leads out of every root.
    #[error(
        "`{link}` is a symbolic link that leads outside the allowed roots; the user can allow that place with --root"
    )]
    LinkOutside {
        /// The link.
        link: String,
    },
    /// More symbolic links than the operating system would follow (40).
    #[error("`{path}` goes through too many symbolic links; they may form a loop")]
    LinkLoop {
        /// The path asked for.
        path: String,
    },
    /// Nothing of that name exists.
    #[error("`{path}` does not exist{}", .hint.as_deref().unwrap_or_default())]
    NotFound {
        /// The path asked for.
        path: String,
        /// The missing folder or the nearest name, as the end of the message.
        hint: Option<String>,
    },
    /// Something is there, but of another kind than the operation works on.
    #[error("`{path}` is {}, not {expected}", .found.noun())]
    WrongKind {
        /// The path asked for.
        path: String,
        /// The kind of thing that is there.
        found: PathKind,
        /// The kind of thing that the operation works on, with its article.
        expected: &'static str,
    },
    /// A part of the path before its end is not a folder.
    #[error("`{path}` cannot exist: `{part}` is not a folder")]
    NotAFolder {
        /// The path asked for.
        path: String,
        /// The part that is not a folder.
        part: String,
    },
    /// Something of that name exists already and was left alone.
    #[error("`{path}` already exists; nothing was changed. Choose another name, or delete that first")]
    AlreadyExists {
        /// The path asked for.
        path: String,
    },
    /// A folder cannot move to a place below itself.
    #[error("the folder `{path}` cannot be moved into itself; nothing was changed")]
    IntoItself {
        /// The folder.
        path: String,
    },
    /// The file changed between reading and replacing it, and was left alone.
    #[error("`{path}` was changed by somebody else meanwhile; nothing was written, read it again")]
    Changed {
        /// The path asked for.
        path: String,
    },
    /// The file holds settings of this server, which its own tools may not change.
    #[error(
        "`{path}` is protected: it holds settings of this server, or what clients load when they start, which tools may not change"
    )]
    Protected {
        /// The path asked for.
        path: String,
    },
    /// The path belongs to git, which keeps programs in such folders that it runs itself.
    #[error(
        "`{path}` belongs to git: file tools read what git keeps and never change it, because hooks and settings in it \
         run programs; use the git tools"
    )]
    GitFolder {
        /// The path asked for.
        path: String,
    },
    /// A change in place would also change the file's other hard links, wherever they are.
    #[error(
        "`{path}` has {links} hard links, and appending would change all of them; overwrite it instead, which detaches this name"
    )]
    HardLinked {
        /// The path asked for.
        path: String,
        /// The number of names that the file has.
        links: u64,
    },
    /// The root's folder was removed while the server runs.
    #[error("the allowed root `{root}` was removed while the server runs; restore it and restart the server")]
    RootGone {
        /// The root's own name.
        root: String,
    },
    /// The operating system refused the operation.
    #[error("cannot {action} `{path}`")]
    Io {
        /// The operation that failed, as a verb: "read", "write".
        action: &'static str,
        /// The path asked for.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl Error {
    /// Returns true if the path was refused for leaving the allowed roots. Such a path is never reported as absent.
    pub fn is_outside(&self) -> bool {
        matches!(self, Self::Outside { .. } | Self::LinkOutside { .. })
    }

    /// Returns true if the path merely does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::NotAFolder { .. })
    }

    /// Turns the error of the operating system while doing `action` to `path` into its variant.
    pub(crate) fn from_io(action: &'static str, path: &str, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path, hint: None },
            io::ErrorKind::AlreadyExists => Self::AlreadyExists { path },
            io::ErrorKind::InvalidFilename => Self::Invalid {
                path: shortened(&path),
                reason: "a name in it is too long for the file system",
            },
            _ => Self::Io { action, path, source },
        }
    }
}

/// Returns the start of a path that is too long or too strange to show whole.
pub(crate) fn shortened(path: &str) -> String {
    const SHOWN: usize = 80;
    let mut shown: String = path.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if path.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
