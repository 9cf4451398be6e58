//! [`ShellLine`]: the contents of a line, and the surroundings that its meaning depends on.

use super::word::ShellWord;
use role_policy::Access;
use std::collections::BTreeMap;

/// The longest line that is read, in bytes.
pub(super) const MAX_LINE_BYTES: usize = 64 * 1024;

/// The surroundings of a line, as far as its meaning depends on them.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShellSurroundings<'a> {
    /// The home folder, which `~` stands for.
    pub home: Option<&'a str>,
    /// The names of the variables that programs inherit.
    pub variables: &'a [String],
}

/// A program that a line starts, with the words that it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShellProgram {
    /// The program and its arguments. The program is literal.
    pub words: Vec<ShellWord>,
    /// True if the program starts others from its arguments, which are not read in full.
    pub starts_others: bool,
    /// The paths that it removes without being given their names, as they would be written.
    pub removed: Vec<ShellWord>,
}

impl ShellProgram {
    pub(super) fn new(words: Vec<ShellWord>) -> Self {
        Self { words, starts_others: false, removed: Vec::new() }
    }

    pub(super) fn starting_others(words: Vec<ShellWord>) -> Self {
        Self { starts_others: true, ..Self::new(words) }
    }
}

/// A file that a line itself opens, by a redirection or through a program that is known to write it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShellFile {
    /// The path, as it is written.
    pub path: String,
    /// The use that is made of it.
    pub access: Access,
}

/// The values that a line gives to a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VariableValues {
    /// Numbers, or nothing.
    Number,
    /// One of these words.
    Words(Vec<ShellWord>),
    /// Any text.
    Unknown,
}

impl VariableValues {
    /// Returns the values of `self` and of `other`.
    pub(super) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Number, Self::Number) => Self::Number,
            (Self::Words(mut words), Self::Words(others)) => {
                words.extend(others);
                Self::Words(words)
            }
            _ => Self::Unknown,
        }
    }
}

/// The contents of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShellLine {
    /// The programs, in the order of the line.
    pub programs: Vec<ShellProgram>,
    /// The files of its redirections.
    pub files: Vec<ShellFile>,
    /// The folders that it goes to (`cd`), as they are written.
    pub folders: Vec<String>,
    /// True if the folder that a relative path begins in cannot be known: `cd` in a loop or a function.
    pub folder_varies: bool,
    /// The variables that it gives to programs.
    pub variables: Vec<String>,
    /// True if the line evaluates a text that only the run knows as more than text, as bash does with a variable in
    /// arithmetic or with the index in a name: the text may then hold commands.
    pub evaluates_variables: bool,
    /// The values that the line gives to variables. A variable that is missing here keeps its earlier value.
    pub values: BTreeMap<String, VariableValues>,
    /// Every literal word, to find the names of protected files in them.
    pub literals: Vec<String>,
}
