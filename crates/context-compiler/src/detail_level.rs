//! The amount of its source that a section contains.

use serde::Serialize;
use std::fmt;

/// The part of its source that a section contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SectionDetailLevel {
    /// The whole text.
    #[default]
    Full,
    /// The text without some of its pieces.
    Trimmed,
    /// The signatures and documentation of a source file.
    Outline,
    /// The names of source files, with the symbols that they export.
    Map,
}

impl SectionDetailLevel {
    /// Returns the word for the level in documents and manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Trimmed => "trimmed",
            Self::Outline => "outline",
            Self::Map => "map",
        }
    }
}

impl fmt::Display for SectionDetailLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
