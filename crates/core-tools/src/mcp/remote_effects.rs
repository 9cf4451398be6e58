//! Paths and programs in the arguments of calls that are made on another machine.

use super::argument_text;
#[cfg(feature = "ci")]
use crate::ci::command_words::ProgramLookup;
#[cfg(feature = "filesystem")]
use role_policy::PatchedPath;
use role_policy::{EffectResolver, LexicalResolver, ResolveError};

/// Judges by the text what calls on another machine reach: its files and programs are not known here. The server there
/// judges again, by what it finds.
#[derive(Clone, Debug, Default)]
pub struct RemoteEffects {
    /// The first root, if its absolute path is known here.
    primary_root: Option<String>,
}

impl RemoteEffects {
    /// Resolves paths beneath these roots there.
    pub fn new(roots: impl IntoIterator<Item = String>) -> Self {
        // Another root in its place would have paths judged by the rules for the primary one.
        let primary = roots.into_iter().next().filter(|root| root.starts_with('/'));
        Self { primary_root: primary.map(|root| root.trim_end_matches('/').to_owned()) }
    }

    /// Finds no program: those of the other machine are not known here.
    #[cfg(feature = "ci")]
    fn programs() -> ProgramLookup<'static> {
        ProgramLookup::new(None, std::path::Path::new("/"))
    }

    /// Returns the path beneath the primary root. A path beneath another root keeps its text, so that no rule for the
    /// primary root allows it.
    fn beneath_root<'a>(&self, path: &'a str) -> &'a str {
        match self.primary_root.as_deref().and_then(|root| path.strip_prefix(root)) {
            Some("") => ".",
            Some(rest) => rest.strip_prefix('/').filter(|rest| !rest.starts_with('/')).unwrap_or(path),
            None => path,
        }
    }
}

impl EffectResolver for RemoteEffects {
    fn resolve_path(&self, path: &str) -> Result<String, ResolveError> {
        // The home folder of the other machine is not known here, and is no folder called `~`.
        let is_home = path == "~" || path.starts_with("~/");
        if is_home && self.primary_root.is_some() {
            return Err(ResolveError::NotRelative);
        }
        LexicalResolver.resolve_path(self.beneath_root(path))
    }

    fn resolve_program(&self, word: &str) -> Result<String, ResolveError> {
        LexicalResolver.resolve_program(word)
    }

    #[cfg(feature = "ci")]
    fn split_command(&self, line: &str) -> Result<Vec<String>, ResolveError> {
        argument_text::split_command(line, Self::programs())
    }

    #[cfg(feature = "ci")]
    fn vector_words(&self, words: Vec<String>) -> Result<Vec<String>, ResolveError> {
        argument_text::vector_words(words, Self::programs())
    }

    #[cfg(not(feature = "ci"))]
    fn split_command(&self, line: &str) -> Result<Vec<String>, ResolveError> {
        argument_text::split_command(line)
    }

    #[cfg(feature = "filesystem")]
    fn patched_paths(&self, patch: &str) -> Result<Vec<PatchedPath>, ResolveError> {
        argument_text::patched_paths(patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_judged_beneath_the_primary_root_and_nowhere_else() {
        let effects = RemoteEffects::new(["/src/".to_owned(), "/data".to_owned()]);
        let resolved = |path: &str| effects.resolve_path(path).ok();
        for (path, expected) in [
            ("/src", Some(".")),
            ("/src/a/b", Some("a/b")),
            ("a/../b", Some("b")),
            ("/srcs/a", None),
            ("/src//etc", None),
            ("/src/../etc", None),
            ("/data/a", None),
            ("/etc/passwd", None),
            ("../x", None),
            ("~/src/a", None),
            ("", None),
        ] {
            assert_eq!(resolved(path).as_deref(), expected, "{path}");
        }
        let effects = RemoteEffects::new(["~/app".to_owned(), "/data".to_owned()]);
        for path in ["/home/a/app/x", "/data/tmp/x"] {
            assert!(effects.resolve_path(path).is_err(), "{path}");
        }
    }
}
