//! Globs over the names and paths below a folder, in the syntax that `.gitignore` made known.

use std::ffi::OsStr;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use super::error::Error;

/// The longest glob, in bytes: the longest path. To compile a longer one takes minutes.
const MAX_GLOB_BYTES: usize = 4096;

/// The most bytes of all globs of one list.
const MAX_GLOBS_BYTES: usize = 32 << 10;

/// A set of globs. One without a slash matches names at any depth, one with a slash whole paths.
#[derive(Clone, Debug)]
pub(super) struct GlobFilter {
    names: GlobSet,
    paths: GlobSet,
}

impl GlobFilter {
    /// Compiles `patterns`. Errors name `parameter`.
    pub(super) fn new(parameter: &'static str, patterns: &[String]) -> Result<Self, Error> {
        Self::compile(parameter, patterns, false)
    }

    /// Compiles `patterns`, each of which also matches everything in a folder that it names: `src` the files below it.
    pub(super) fn with_folders(parameter: &'static str, patterns: &[String]) -> Result<Self, Error> {
        Self::compile(parameter, patterns, true)
    }

    fn compile(parameter: &'static str, patterns: &[String], with_folders: bool) -> Result<Self, Error> {
        let bytes: usize = patterns.iter().map(String::len).sum();
        if bytes > MAX_GLOBS_BYTES {
            let reason =
                format!("together the globs have {bytes} bytes; at most {MAX_GLOBS_BYTES} are taken");
            let first = patterns.first().map(String::as_str).unwrap_or_default();
            let pattern = first.chars().take(40).chain(['…']).collect();
            return Err(Error::Glob { parameter, pattern, reason });
        }
        let mut names = GlobSetBuilder::new();
        let mut paths = GlobSetBuilder::new();
        for pattern in patterns {
            let invalid = |reason: String| Error::Glob { parameter, pattern: pattern.clone(), reason };
            if pattern.len() > MAX_GLOB_BYTES {
                let pattern = pattern.chars().take(40).chain(['…']).collect();
                let reason = format!("it is longer than {MAX_GLOB_BYTES} bytes, as no path is");
                return Err(Error::Glob { parameter, pattern, reason });
            }
            let relative = pattern.trim_start_matches("./");
            if relative.starts_with('/') || relative.split('/').any(|part| part == "..") {
                return Err(invalid("a glob is relative to `path`; name the folder there".to_owned()));
            }
            if relative.is_empty() {
                return Err(invalid("it is empty; `*` matches every name".to_owned()));
            }
            // `dir/` matches the folder, and the walk sees the folder's name without the slash.
            let relative = relative.trim_end_matches('/');
            let build = |pattern: &str| {
                let glob = GlobBuilder::new(pattern).literal_separator(true).build();
                glob.map_err(|error| invalid(error.kind().to_string()))
            };
            let glob = build(relative)?;
            // `src/*` means the files in it, and `src` may only be meant as a folder.
            let last = relative.rsplit('/').next().unwrap_or(relative);
            if with_folders && !last.contains(['*', '?', '[', '{']) {
                paths.add(build(&format!("{relative}/**"))?);
                if !relative.contains('/') {
                    paths.add(build(&format!("**/{relative}/**"))?);
                }
            }
            if relative.contains('/') {
                paths.add(glob)
            } else {
                names.add(glob)
            };
        }
        let build = |set: GlobSetBuilder| {
            set.build().map_err(|error| Error::Glob {
                parameter,
                pattern: patterns.join(", "),
                reason: error.kind().to_string(),
            })
        };
        Ok(Self { names: build(names)?, paths: build(paths)? })
    }

    /// Returns true if there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.paths.is_empty()
    }

    /// Returns true if [`match_entry`](Self::match_entry) needs the path, and not only the name.
    pub(super) fn need_path(&self) -> bool {
        !self.paths.is_empty()
    }

    /// Returns true if one matches the entry called `name` at `path`.
    pub(super) fn match_entry(&self, name: &OsStr, path: &Path) -> bool {
        self.names.is_match(name) || (self.need_path() && self.paths.is_match(path))
    }
}

/// A list of globs; a single one may be given without a list.
// Models often write a string where the schema has a list.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(from = "GlobListInput")]
#[schemars(with = "Vec<String>")]
pub struct GlobList(pub Vec<String>);

/// The forms in which a client may send a [`GlobList`].
#[derive(Deserialize)]
#[serde(untagged)]
enum GlobListInput {
    One(String),
    Many(Vec<String>),
}

impl From<GlobListInput> for GlobList {
    fn from(list: GlobListInput) -> Self {
        match list {
            GlobListInput::One(glob) => Self(vec![glob]),
            GlobListInput::Many(globs) => Self(globs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        let path = Path::new(path);
        GlobFilter::new("pattern", &[pattern.to_owned()])
            .unwrap()
            .match_entry(path.file_name().unwrap(), path)
    }

    #[test]
    fn a_glob_without_a_slash_is_about_the_name_and_one_with_a_slash_about_the_path() {
        for (pattern, path) in [
            ("*.rs", "main.rs"),
            ("*.rs", "src/a/main.rs"),
            ("main.*", "src/main.rs"),
            ("*.{ts,tsx}", "web/App.tsx"),
            ("[a-c]?.txt", "b1.txt"),
            ("src/*.rs", "src/main.rs"),
            ("src/**/*.rs", "src/main.rs"),
            ("src/**/*.rs", "src/a/b/main.rs"),
            ("**/tests/*.rs", "tests/a.rs"),
            ("**/tests/*.rs", "crates/x/tests/a.rs"),
            ("./src/*.rs", "src/main.rs"),
            ("docs/", "docs"),
            ("docs/", "a/docs"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("*.rs", "main.rs.txt"),
            ("main", "main.rs"),
            ("src/*.rs", "src/a/main.rs"),
            ("src/*.rs", "other/src/main.rs"),
            ("MAIN.rs", "main.rs"),
        ] {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn a_folder_may_stand_for_everything_in_it() {
        let matches = |pattern: &str, path: &str| {
            let path = Path::new(path);
            let globs = GlobFilter::with_folders("include", &[pattern.to_owned()]).unwrap();
            globs.match_entry(path.file_name().unwrap(), path)
        };
        for (pattern, path) in [
            ("src", "src/a/b.rs"),
            ("src/", "src/b.rs"),
            ("./src", "src/b.rs"),
            ("src", "crates/x/src/b.rs"),
            ("crates/x", "crates/x/src/b.rs"),
            ("Makefile", "sub/Makefile"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in
            [("src", "srcs/b.rs"), ("crates/x", "y/crates/x/b.rs"), ("src/*", "src/a/b.rs"), ("*", "")]
        {
            assert!(path.is_empty() || !matches(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn a_bad_glob_is_named_with_the_reason() {
        let error =
            |pattern: &str| GlobFilter::new("include", &[pattern.to_owned()]).unwrap_err().to_string();
        insta::assert_snapshot!(error("a[b"), @"`include`: `a[b` is no glob: unclosed character class; missing ']'");
        insta::assert_snapshot!(error("{a,b"), @"`include`: `{a,b` is no glob: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)");
        insta::assert_snapshot!(error("/etc/*"), @"`include`: `/etc/*` is no glob: a glob is relative to `path`; name the folder there");
        insta::assert_snapshot!(error("../*"), @"`include`: `../*` is no glob: a glob is relative to `path`; name the folder there");
        insta::assert_snapshot!(error(&"x".repeat(4097)), @"`include`: `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…` is no glob: it is longer than 4096 bytes, as no path is");
        insta::assert_snapshot!(error(""), @"`include`: `` is no glob: it is empty; `*` matches every name");
    }
}
