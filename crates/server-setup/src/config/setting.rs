//! A value of the configuration with its source.

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;

/// A value and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// The source of the value.
    pub source: SettingSource,
}

impl<T> Deref for Setting<T> {
    // Most code needs the value alone, and reads it as `*config.key`.
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingSource {
    /// The built-in default: nothing set it.
    Default,
    /// The file, at this line.
    File {
        /// The file.
        path: PathBuf,
        /// The line of the value, from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// A flag.
    Flag(&'static str),
    /// The first message of the server in front, at the far end of a remote.
    ServerInFront,
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
            Self::ServerInFront => f.write_str("the server in front"),
        }
    }
}
