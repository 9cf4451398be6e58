//! The kinds of access to a path.

use std::fmt;

/// The kind of access to a path. An access is displayed as the verb of a message: `read`, `write`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// The path is read, listed or inspected.
    Read,
    /// The path is created, changed, moved or removed.
    Write,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}
