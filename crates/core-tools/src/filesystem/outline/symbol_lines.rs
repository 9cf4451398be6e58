//! The lines of a definition, found by its name.

use context_compiler::outline::{Definition, definitions, outline};

use super::run::read;
use crate::filesystem::error::Error;
use crate::workspace::ConfinedPath;

/// The most definitions of one name that an error tells.
const MAX_TOLD: usize = 8;

/// Returns the first line and the number of lines of the definition of `name` in the file at `path`: `parse`, or `Parser.parse`
/// where several have that name.
///
/// # Errors
/// The file cannot be read or parsed, or it has none of that name, or several.
pub(in crate::filesystem) fn symbol_lines(path: &ConfinedPath, name: &str) -> Result<(u64, u64), Error> {
    let shown = path.display_path();
    let text = read(path)?;
    let problem = |problem: String| Error::Symbol { path: shown.clone(), symbol: name.to_owned(), problem };
    let (Some(found), Some(outlined)) = (definitions(&shown, &text), outline(&shown, &text)) else {
        return Err(problem("cannot be looked for: there is no grammar for this kind of file".to_owned()));
    };
    let parts: Vec<&str> = name.split(['.', '#', ':']).filter(|part| !part.is_empty()).collect();
    let Some((own, around)) = parts.split_last() else {
        return Err(problem("is no name".to_owned()));
    };
    let named: Vec<usize> =
        outlined.symbols.iter().filter(|symbol| symbol.name == *own).map(|symbol| symbol.line).collect();
    let mut matching: Vec<&Definition> = named
        .into_iter()
        .filter_map(|line| innermost(&found.definitions, line))
        .filter(|(_, outer)| {
            around.iter().all(|part| outer.iter().any(|outer| has_word(&outer.signature, part)))
        })
        .map(|(definition, _)| definition)
        .collect();
    matching.dedup();
    match matching.as_slice() {
        [only] => Ok((only.first_line as u64, (only.last_line + 1 - only.first_line) as u64)),
        [] => Err(problem("is not defined there; file_outline lists what is".to_owned())),
        several => {
            let lines = several.iter().take(MAX_TOLD).map(|definition| {
                format!("{}-{} {}", definition.first_line, definition.last_line, definition.signature)
            });
            let told = lines.collect::<Vec<_>>().join("; ");
            Err(problem(format!(
                "is defined {} times: {told}. Give `offset` and `limit`, or a name such as `Type.{own}`",
                several.len()
            )))
        }
    }
}

/// Returns the innermost definition that a line lies in, and those around it.
fn innermost(definitions: &[Definition], line: usize) -> Option<(&Definition, Vec<&Definition>)> {
    let encloses = |definition: &&Definition| (definition.first_line..=definition.last_line).contains(&line);
    let mut enclosing: Vec<&Definition> = definitions.iter().filter(encloses).collect();
    let own = enclosing.pop()?;
    Some((own, enclosing))
}

/// Returns true if a signature has a word.
fn has_word(signature: &str, word: &str) -> bool {
    signature.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).any(|own| own == word)
}
