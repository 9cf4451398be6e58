//! Globs over the names and paths below a folder, in the syntax that `.gitignore` made known.

use std::ffi::OsStr;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use super::error::Error;

/// A set of globs. One without a slash matches names at any depth, one with a slash whole paths.
#[derive(Clone, Debug)]
pub(super) struct GlobFilter {
    names: GlobSet,
    paths: GlobSet,
}

impl GlobFilter {
    /// Compiles `patterns`. Errors name `parameter`.
    pub(super) fn new(parameter: &'static str, patterns: &[String]) -> Result<Self, Error> {
        let mut names = GlobSetBuilder::new();
        let mut paths = GlobSetBuilder::new();
        for pattern in patterns {
            let invalid = |reason: String| Error::Glob { parameter, pattern: pattern.clone(), reason };
            let relative = pattern.trim_start_matches("./");
            if relative.starts_with('/') || relative.split('/').any(|part| part == "..") {
                return Err(invalid("a glob is relative to `path`; name the folder there".to_owned()));
            }
            if relative.is_empty() {
                return Err(invalid("it is empty; `*` matches every name".to_owned()));
            }
            // `dir/` matches the folder, and the walk sees the folder's name without the slash.
            let relative = relative.trim_end_matches('/');
            let glob = GlobBuilder::new(relative)
                .literal_separator(true)
                .build()
                .map_err(|error| invalid(error.kind().to_string()))?;
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
#[serde(from = "OneOrMany")]
#[schemars(with = "Vec<String>")]
pub struct GlobList(pub Vec<String>);

/// The forms in which a client may send a [`GlobList`].
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for GlobList {
    fn from(list: OneOrMany) -> Self {
        match list {
            OneOrMany::One(glob) => Self(vec![glob]),
            OneOrMany::Many(globs) => Self(globs),
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
    fn a_bad_glob_is_named_with_the_reason() {
        let error =
            |pattern: &str| GlobFilter::new("include", &[pattern.to_owned()]).unwrap_err().to_string();
        insta::assert_snapshot!(error("a[b"), @"`include`: `a[b` is no glob: unclosed character class; missing ']'");
        insta::assert_snapshot!(error("{a,b"), @"`include`: `{a,b` is no glob: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)");
        insta::assert_snapshot!(error("/etc/*"), @"`include`: `/etc/*` is no glob: a glob is relative to `path`; name the folder there");
        insta::assert_snapshot!(error("../*"), @"`include`: `../*` is no glob: a glob is relative to `path`; name the folder there");
        insta::assert_snapshot!(error(""), @"`include`: `` is no glob: it is empty; `*` matches every name");
    }
}
