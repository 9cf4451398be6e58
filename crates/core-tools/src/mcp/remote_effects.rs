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
    /// The primary root first.
    roots: Vec<RemoteRoot>,
}

/// A folder that the server there serves.
#[derive(Clone, Debug)]
struct RemoteRoot {
    /// The path without a slash at its end: absolute, or in the home folder there, which is not known here.
    path: String,
    /// The name before the colon in paths of all roots but the primary one.
    name: String,
}

impl RemoteEffects {
    /// Resolves paths beneath these roots there, the primary root first.
    pub fn new(roots: impl IntoIterator<Item = String>) -> Self {
        let mut named: Vec<RemoteRoot> = Vec::new();
        for root in roots {
            let path = root.trim_end_matches('/').to_owned();
            // The server there gives its roots the same names.
            let last = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("/");
            let base = last.replace(':', "_");
            let (mut name, mut number) = (base.clone(), named.len() + 1);
            while named.iter().any(|other| other.name == name) {
                name = format!("{base}~{number}");
                number += 1;
            }
            named.push(RemoteRoot { path, name });
        }
        Self { roots: named }
    }

    /// Finds no program: those of the other machine are not known here.
    #[cfg(feature = "ci")]
    fn programs() -> ProgramLookup<'static> {
        ProgramLookup::new(None, std::path::Path::new("/"))
    }

    /// Returns the path beneath the innermost root that holds it by its text, and the index of the root.
    fn beneath_root<'a>(&self, path: &'a str) -> Option<(usize, &'a str)> {
        let beneath = |(index, root): (usize, &RemoteRoot)| {
            let rest = path.strip_prefix(root.path.as_str())?;
            let rest = match rest {
                "" | "/" => ".",
                rest => rest.strip_prefix('/').filter(|rest| !rest.starts_with('/'))?,
            };
            Some((root.path.len(), index, rest))
        };
        let found = self.roots.iter().enumerate().filter_map(beneath);
        // The first of two with the same path.
        let innermost = found.max_by_key(|(length, index, _)| (*length, usize::MAX - index));
        innermost.map(|(_, index, rest)| (index, rest))
    }

    /// Returns a path beneath the root of this index as policies name it: after `name:` in all but the primary root.
    fn shown(&self, index: usize, beneath: &str) -> Result<String, ResolveError> {
        let beneath = LexicalResolver.resolve_path(beneath)?;
        Ok(match self.roots.get(index) {
            Some(root) if index > 0 => format!("{}:{beneath}", root.name),
            // `name:path` is the form of the other roots.
            _ if beneath.split('/').next().is_some_and(|first| first.contains(':')) => format!("./{beneath}"),
            _ => beneath,
        })
    }
}

impl EffectResolver for RemoteEffects {
    fn resolve_path(&self, path: &str) -> Result<String, ResolveError> {
        let is_in_home = path == "~" || path.starts_with("~/");
        if path.starts_with('/') || is_in_home {
            // The home folder of the other machine is not known here, and is no folder called `~`.
            let (index, beneath) = self.beneath_root(path).ok_or(ResolveError::NotRelative)?;
            return self.shown(index, beneath);
        }
        let named = path.split_once(':').and_then(|(name, beneath)| {
            let others = self.roots.iter().enumerate().skip(1);
            others.into_iter().find(|(_, root)| root.name == name).map(|(index, _)| (index, beneath))
        });
        match named {
            Some((index, "")) => self.shown(index, "."),
            Some((index, beneath)) if !beneath.starts_with('/') => self.shown(index, beneath),
            _ => self.shown(0, path),
        }
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
    fn a_path_is_judged_beneath_the_root_that_holds_it_and_nowhere_else() {
        let roots = ["/src/", "/data", "/src/inner", "/other/data", "~/app"].map(str::to_owned);
        let effects = RemoteEffects::new(roots);
        let resolved = |path: &str| effects.resolve_path(path).ok();
        for (path, expected) in [
            ("/src", Some(".")),
            ("/src/", Some(".")),
            ("/src/a/b", Some("a/b")),
            ("a/../b", Some("b")),
            ("/srcs/a", None),
            ("/src//etc", None),
            ("/src/../etc", None),
            ("/data", Some("data:.")),
            ("/data/tmp/../a", Some("data:a")),
            ("/data/../src/a", None),
            ("/src/inner/a", Some("inner:a")),
            ("/other/data/a", Some("data~4:a")),
            ("data:a/b", Some("data:a/b")),
            ("data:", Some("data:.")),
            ("data:../x", None),
            ("data:/etc", Some("./data:/etc")),
            ("src:a", Some("./src:a")),
            ("nowhere:a", Some("./nowhere:a")),
            ("/etc/passwd", None),
            ("../x", None),
            ("~/app/x", Some("app:x")),
            ("~/src/a", None),
            ("~", None),
            ("", None),
        ] {
            assert_eq!(resolved(path).as_deref(), expected, "{path}");
        }
        let effects = RemoteEffects::new(["~/app".to_owned(), "/data".to_owned()]);
        assert_eq!(effects.resolve_path("~/app/x").unwrap(), "x");
        assert_eq!(effects.resolve_path("/data/tmp/x").unwrap(), "data:tmp/x");
        assert!(effects.resolve_path("/home/a/app/x").is_err());
    }
}
