//! The error of a text that is no patch.

use crate::filesystem::error::Error;

/// Returns the error for line `number` of the patch, counted from 1.
pub(super) fn error_at(number: usize, problem: impl Into<String>) -> Error {
    Error::PatchSyntax { line: Some(number), problem: problem.into() }
}

/// Returns the error for the patch as a whole.
pub(super) fn error(problem: impl Into<String>) -> Error {
    Error::PatchSyntax { line: None, problem: problem.into() }
}

/// Returns the start of a line, for a message.
pub(super) fn shown(line: &str) -> String {
    const SHOWN: usize = 80;
    let mut text: String = line.chars().take(SHOWN).collect();
    if text.len() < line.len() {
        text.push('…');
    }
    text
}
