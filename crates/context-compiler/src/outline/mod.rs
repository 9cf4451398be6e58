//! Outlines of source files: their signatures and documentation, without bodies.
//!
//! ```
//! # #[cfg(feature = "outline")] {
//! use context_compiler::outline::outline;
//!
//! let text = "/// Adds.\npub fn add(a: u8, b: u8) -> u8 {\n    a + b\n}\n";
//! let outline = outline("add.rs", text).unwrap();
//! assert_eq!(outline.text, "/// Adds.\npub fn add(a: u8, b: u8) -> u8 {…}\n");
//! assert_eq!(outline.symbols[0].name, "add");
//! # }
//! ```

#[cfg(feature = "outline")]
mod cuts;
#[cfg(feature = "outline")]
mod definitions;
#[cfg(feature = "outline")]
mod extract;
#[cfg(feature = "outline")]
mod grammar;
mod language;
#[cfg(feature = "outline")]
mod nodes;
#[cfg(feature = "outline")]
mod parse;
mod symbol;

pub use language::Language;
pub use symbol::{CodeOutline, CodeSymbol, Definition, FileDefinitions, SymbolKind};

/// Returns the outline of `text`, the content of the file at `path`.
///
/// A definition with a syntax error in it keeps its whole text, because nothing is cut that was not understood. Of
/// documentation the first paragraph is kept, at most four lines. The result depends on the arguments alone and not on the
/// speed of the machine.
///
/// Returns `None` if the language is not known, if the text is longer than 1 MiB, if the parser needs more steps than any
/// sensible text of that size, and always without the feature `outline`.
pub fn outline(path: &str, text: &str) -> Option<CodeOutline> {
    let language = Language::of_path(path)?;
    #[cfg(feature = "outline")]
    return extract::extract(language, text);
    #[cfg(not(feature = "outline"))]
    {
        let _ = (language, text);
        None
    }
}

/// Returns the definitions in `text`, the content of the file at `path`, in the order of the file. Each definition has
/// its lines and the number of definitions around it. In a file with syntax errors, the result has the definitions that
/// the parser recognizes.
///
/// Returns `None` where [`outline()`] does.
pub fn definitions(path: &str, text: &str) -> Option<FileDefinitions> {
    let language = Language::of_path(path)?;
    #[cfg(feature = "outline")]
    return definitions::definitions(language, text);
    #[cfg(not(feature = "outline"))]
    {
        let _ = (language, text);
        None
    }
}

/// Returns the outline of `text` with the first `restored` of the parts that it leaves out, and the number of all of them.
/// Returns `None` where [`outline`] does.
pub(crate) fn outline_with_bodies(path: &str, text: &str, restored: usize) -> Option<(String, usize)> {
    let language = Language::of_path(path)?;
    #[cfg(feature = "outline")]
    return extract::extract_with_bodies(language, text, restored);
    #[cfg(not(feature = "outline"))]
    {
        let _ = (language, text, restored);
        None
    }
}
