//! The kinds of access to a path.

use std::fmt;

/// The kind of access to a path. It is displayed as the verb of a message: `read`, `write`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// It is read, listed or looked at.
    Read,
    /// It is created, changed, moved or removed.
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
