//! The errors of a configuration and their locations.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// The location of a key or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigLocation {
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

impl fmt::Display for ConfigLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "{name}"),
        }
    }
}

/// The reason why a [`Config`](super::Config) could not be read. For the operator: it shows paths in full.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is missing, is no regular file, is too large or not text, or may not be read.
    #[error("cannot read the configuration {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
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
        /// The reason why it is not trusted.
        source: trusted_file::Error,
    },
    /// The file is not TOML.
    #[error("{location}: {message}")]
    Syntax {
        /// The location of the first error.
        location: ConfigLocation,
        /// A description of what was expected there.
        message: String,
    },
    /// The file has a key that does not exist.
    #[error("{location}: there is no key `{key}`{hint}")]
    UnknownKey {
        /// The location of the key.
        location: ConfigLocation,
        /// The key, with its table.
        key: String,
        /// The nearest key, or all keys, as the end of the message.
        hint: String,
    },
    /// The key does not take this value.
    #[error("{location}: `{key}` must be {expected}, not {found}")]
    Value {
        /// The location of the value.
        location: ConfigLocation,
        /// The key, with its table.
        key: String,
        /// The values that the key takes.
        expected: String,
        /// The value that was given.
        found: String,
    },
    /// A remote cannot be used.
    #[cfg(all(feature = "remotes", unix))]
    #[error("{location}: remotes.{name}")]
    Remote {
        /// The location of what is wrong.
        location: ConfigLocation,
        /// The name of the remote.
        name: String,
        /// The problem.
        source: remotes::TableError,
    },
    /// A file that was found, and may have come with a project, names a root outside the folder that is served without
    /// it.
    #[error(
        "{location}: the root {} lies outside {}; a file that was found may only name folders beneath the one that is served without it. To allow it, name the file with --config, or the folder with --root",
        .root.display(),
        .start.display()
    )]
    RootOutside {
        /// The location of the roots.
        location: ConfigLocation,
        /// The root.
        root: PathBuf,
        /// The folder that it must lie beneath.
        start: PathBuf,
    },
    /// Two values contradict each other.
    #[error("{first}, but {second}: the first must not be larger")]
    Contradiction {
        /// One key, its value and its source.
        first: String,
        /// The other.
        second: String,
    },
}
