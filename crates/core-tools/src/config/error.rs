//! What can be wrong with a configuration, and where.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The character in the line, from 1.
        column: usize,
    },
    /// In an environment variable.
    Variable(String),
    /// In a flag.
    Flag(&'static str),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "{name}"),
        }
    }
}

/// Why there is no [`Config`](super::Config). For the operator: it shows paths in full.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is not there, no file, too large, no text, or may not be read.
    #[error("cannot read the configuration {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file was found that somebody else may have written, or that cannot be read.
    #[error(
        "the configuration {} was found and cannot be trusted; put that right, remove it, or name it with --config if it is yours",
        .path.display()
    )]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// The file is no TOML.
    #[error("{place}: {message}")]
    Syntax {
        /// Where it stops to be TOML.
        place: Place,
        /// What was expected there.
        message: String,
    },
    /// No such key.
    #[error("{place}: there is no key `{key}`{hint}")]
    UnknownKey {
        /// Where the key stands.
        place: Place,
        /// The key, with its table.
        key: String,
        /// The nearest key, or all there are, ready to follow the message.
        hint: String,
    },
    /// The key does not take this value.
    #[error("{place}: `{key}` must be {expected}, not {found}")]
    Value {
        /// Where the value stands.
        place: Place,
        /// The key, with its table.
        key: String,
        /// What the key takes.
        expected: String,
        /// What was given.
        found: String,
    },
    /// A file that came with a project may not open folders that are not open without it.
    #[error(
        "{place}: the root {} lies outside {}; a file that was found may only name folders beneath the one that is served without it. To allow it, name the file with --config, or the folder with --root",
        .root.display(),
        .start.display()
    )]
    RootOutside {
        /// Where the roots stand.
        place: Place,
        /// The root.
        root: PathBuf,
        /// The folder that it must lie beneath.
        start: PathBuf,
    },
    /// Two values that cannot both hold.
    #[error("{first}, but {second}: the first must not be larger")]
    Contradiction {
        /// One key, its value and its source.
        first: String,
        /// The other.
        second: String,
    },
}
