//! The outline of a file, and the symbols in it.

use super::language::Language;

/// The text of a file without imports, bodies, long values, and comments that document nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeOutline {
    /// The language that the file was parsed as.
    pub language: Language,
    /// The shortened text, with `{…}` (in Python `...`) in the place of each body. Never longer than the whole text.
    pub text: String,
    /// The symbols that the file defines, in its order.
    pub symbols: Vec<CodeSymbol>,
    /// The identifiers in the text and how often each of them occurs, in byte order, definitions included. Comments and
    /// strings have none.
    pub identifiers: Vec<(String, u32)>,
    /// True if nothing was left out.
    pub complete: bool,
}

/// A symbol that a file defines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeSymbol {
    /// The name, without the names of the types and modules around the definition.
    pub name: String,
    /// The kind of the symbol.
    pub kind: SymbolKind,
    /// The line on which its name stands, from 1.
    pub line: usize,
    /// True if other files may use it, as far as the file alone can tell.
    pub exported: bool,
}

/// The definitions in a file, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileDefinitions {
    /// The definitions. A nested definition follows the definition around it.
    pub definitions: Vec<Definition>,
    /// True if the parser did not understand all of the text, so that definitions may be missing.
    pub has_errors: bool,
}

/// A definition in a file, with the lines that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Definition {
    /// The text before the body of the definition, on one line and without the sign that begins the body. A long
    /// signature is cut and ends in `…`.
    pub signature: String,
    /// The kind of what it defines. An `impl` block of Rust counts as a module.
    pub kind: SymbolKind,
    /// Its first line, from 1, without the comments and attributes above it.
    pub first_line: usize,
    /// Its last line.
    pub last_line: usize,
    /// The number of definitions that it stands in.
    pub depth: usize,
}

/// The kind of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SymbolKind {
    /// A function outside a type.
    Function,
    /// A function, constructor or property of a type.
    Method,
    /// A class, struct, enum, interface, trait or alias.
    Type,
    /// A constant, variable or field.
    Constant,
    /// A macro.
    Macro,
    /// A module or namespace.
    Module,
}

impl SymbolKind {
    // The position is the tag in the files of a cache: add a kind at the end only.
    const ALL: [Self; 6] =
        [Self::Function, Self::Method, Self::Type, Self::Constant, Self::Macro, Self::Module];

    /// Returns a number that stays the same from version to version, for the files of a cache.
    pub(crate) fn tag(self) -> u8 {
        Self::ALL.iter().zip(0..).find(|&(&kind, _)| kind == self).map_or(u8::MAX, |(_, tag)| tag)
    }

    /// Returns the kind with this [`tag`](Self::tag).
    pub(crate) fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.get(usize::from(tag)).copied()
    }
}
