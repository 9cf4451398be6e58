//! The script of a Node project that builds it, by whatever name.

use crate::ci::project::Project;
use serde_json::Value;

/// The names of scripts that build or compile, the preferred first.
const BUILD_SCRIPTS: [&str; 7] =
    ["build", "compile", "typecheck", "type-check", "check-types", "check:types", "tsc"];
/// The names of scripts that may compile, or check something else.
const CHECK_SCRIPTS: [&str; 3] = ["check", "lint:types", "lint:ts"];
/// The programs that compile or check types, as scripts name them.
const COMPILERS: [&str; 5] = ["tsc", "vue-tsc", "svelte-check", "tsup", "tsgo"];

/// The scripts of a `package.json`: name and text.
pub(super) struct NodeScripts(Vec<(String, String)>);

impl NodeScripts {
    /// Reads the scripts of a project. One without a readable manifest has none.
    pub(super) fn read(project: &Project) -> Self {
        let manifest = project.read("package.json").unwrap_or_default();
        let manifest: Value =
            serde_json::from_str(manifest.trim_start_matches('\u{feff}')).unwrap_or_default();
        let scripts = manifest.get("scripts").and_then(Value::as_object);
        let texts = scripts.into_iter().flatten();
        Self(texts.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect())
    }

    /// Returns the name of the script that builds the project: `build`, one that says so by another name, or one that runs
    /// a compiler.
    pub(super) fn build_script(&self) -> Option<&str> {
        let named = |name: &&str| self.0.iter().any(|(own, _)| own == name);
        let runs_compiler = |name: &&str| {
            let text = self.0.iter().find(|(own, _)| own == name).map_or("", |(_, text)| text);
            let program = |word: &str| word.rsplit('/').next().is_some_and(|word| COMPILERS.contains(&word));
            text.split_whitespace().any(program)
        };
        let by_name = BUILD_SCRIPTS.into_iter().find(named);
        let by_text = || CHECK_SCRIPTS.into_iter().find(runs_compiler);
        by_name.or_else(by_text).or_else(|| self.only_part())
    }

    /// Returns the one script whose name begins with `build:`. Which of several is meant, nothing says.
    fn only_part(&self) -> Option<&str> {
        let mut parts =
            self.0.iter().map(|(name, _)| name.as_str()).filter(|name| name.starts_with("build:"));
        let first = parts.next()?;
        parts.next().is_none().then_some(first)
    }

    /// Returns the names of all scripts.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_script(scripts: &[(&str, &str)]) -> Option<String> {
        let scripts = scripts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        NodeScripts(scripts).build_script().map(str::to_owned)
    }

    #[test]
    fn a_script_that_builds_is_found_by_its_name_or_its_compiler() {
        for (scripts, expected) in [
            (&[("compile", "x"), ("build", "x")][..], Some("build")),
            (&[("typecheck", "x"), ("compile", "x")], Some("compile")),
            (&[("check", "eslint ."), ("type-check", "x")], Some("type-check")),
            (&[("check", "node_modules/.bin/tsc -b")], Some("check")),
            (&[("check", "eslint .")], None),
            (&[("build:web", "x")], Some("build:web")),
            (&[("build:web", "x"), ("build:server", "x")], None),
            (&[("start", "x")], None),
            (&[], None),
        ] {
            assert_eq!(build_script(scripts).as_deref(), expected, "{scripts:?}");
        }
    }
}
