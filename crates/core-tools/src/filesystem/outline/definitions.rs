//! The definitions of one file, and those that enclose a line.

use context_compiler::outline::{Definition, definitions};

/// The definitions of a file by their lines.
pub(in crate::filesystem) struct EnclosingDefinitions(Vec<Definition>);

impl EnclosingDefinitions {
    /// Returns the definitions in `text`, the content of the file at `path`; none if there is no grammar for it.
    pub(in crate::filesystem) fn new(path: &str, text: &str) -> Self {
        Self(definitions(path, text).unwrap_or_default().definitions)
    }

    /// Returns the first line and the signatures, the outermost first, of the definitions that a line lies in.
    pub(in crate::filesystem) fn of_line(&self, line: u64) -> Option<(u64, String)> {
        let encloses = |definition: &&Definition| {
            (definition.first_line as u64..=definition.last_line as u64).contains(&line)
        };
        let enclosing: Vec<&Definition> = self.0.iter().filter(encloses).collect();
        let innermost = enclosing.last()?;
        let signatures: Vec<&str> =
            enclosing.iter().map(|definition| definition.signature.as_str()).collect();
        Some((innermost.first_line as u64, signatures.join(" > ")))
    }
}
