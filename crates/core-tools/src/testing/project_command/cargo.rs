//! The aliases of cargo that are named after tests.

use crate::ci::project::Project;
use toml::Table;

/// Returns the aliases of a project that are named after tests: `cargo xtest`. Cargo's own `test` cannot be one.
pub(super) fn test_aliases(project: &Project) -> Vec<String> {
    let files = [".cargo/config.toml", ".cargo/config"];
    let configuration = files.iter().find_map(|file| project.read(file)).unwrap_or_default();
    let configuration: Table = configuration.parse().unwrap_or_default();
    let aliases = configuration.get("alias").and_then(|alias| alias.as_table());
    let names = aliases.into_iter().flatten().map(|(name, _)| name);
    let is_of_tests = |name: &&String| name.contains("test") || *name == "ci" || *name == "check-all";
    names.filter(is_of_tests).map(|name| format!("cargo {name}")).collect()
}
