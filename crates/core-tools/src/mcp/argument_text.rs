//! The programs and paths in the text of arguments: what a policy judges on this machine and for another one alike.

#[cfg(feature = "ci")]
use crate::ci::CommandText;
#[cfg(feature = "ci")]
use crate::ci::command_words::ProgramLookup;
#[cfg(feature = "filesystem")]
use role_policy::PatchedPath;
use role_policy::ResolveError;
#[cfg(not(feature = "ci"))]
use role_policy::{EffectResolver, LexicalResolver};

/// Splits a command line into its words, with the programs that `programs` finds.
#[cfg(feature = "ci")]
pub(super) fn split_command(line: &str, programs: ProgramLookup<'_>) -> Result<Vec<String>, ResolveError> {
    CommandText::Line(line.to_owned()).words(programs).map_err(ResolveError::other)
}

/// Splits a command line into its words, by the text alone.
#[cfg(not(feature = "ci"))]
pub(super) fn split_command(line: &str) -> Result<Vec<String>, ResolveError> {
    LexicalResolver.split_command(line)
}

/// Returns the words of a command that is given as a list, with the programs that `programs` finds.
#[cfg(feature = "ci")]
pub(super) fn vector_words(
    words: Vec<String>,
    programs: ProgramLookup<'_>,
) -> Result<Vec<String>, ResolveError> {
    CommandText::Vector(words).words(programs).map_err(ResolveError::other)
}

/// Returns the paths that a patch changes.
#[cfg(feature = "filesystem")]
pub(super) fn patched_paths(patch: &str) -> Result<Vec<PatchedPath>, ResolveError> {
    crate::filesystem::patched_paths(patch).map_err(ResolveError::other)
}
