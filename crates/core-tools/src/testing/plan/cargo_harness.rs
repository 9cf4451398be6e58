//! The targets of a cargo package whose tests libtest does not run.

use crate::ci::project::Project;
use toml::{Table, Value};

/// The number of members of a workspace that are looked at.
const MAX_MEMBERS: usize = 500;

/// Returns the manifest in which a tested target has `harness = false`, where the project does not configure nextest:
/// nextest asks each such program for a list of its tests, which it may not know how to give.
pub(crate) fn target_without_libtest(project: &Project) -> Option<String> {
    if project.contains(".config/nextest.toml") {
        return None;
    }
    let manifest: Table = project.read("Cargo.toml").unwrap_or_default().parse().unwrap_or_default();
    if has_own_harness(&manifest) {
        return Some("Cargo.toml".to_owned());
    }
    let members = manifest.get("workspace").and_then(|workspace| workspace.get("members")?.as_array());
    let patterns = members.into_iter().flatten().filter_map(Value::as_str);
    let folders = patterns.flat_map(|pattern| folders_of(project, pattern)).take(MAX_MEMBERS);
    folders.map(|folder| format!("{folder}/Cargo.toml")).find(|path| {
        let manifest: Table = project.read(path).unwrap_or_default().parse().unwrap_or_default();
        has_own_harness(&manifest)
    })
}

/// Returns the folders that a member of a workspace names: `crates/*` names each folder there.
fn folders_of(project: &Project, pattern: &str) -> Vec<String> {
    let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
    match pattern.strip_suffix("/*") {
        Some(parent) => {
            project.entry_names(parent).into_iter().map(|name| format!("{parent}/{name}")).collect()
        }
        None => vec![pattern.to_owned()],
    }
}

/// Returns true if a target that `cargo test` runs has no harness. Benchmarks and examples are run only where they
/// say so.
fn has_own_harness(manifest: &Table) -> bool {
    let flag = |target: &Value, key: &str| target.get(key).and_then(Value::as_bool);
    let has_none = |target: &Value, is_tested: bool| {
        flag(target, "harness") == Some(false) && flag(target, "test").unwrap_or(is_tested)
    };
    let any_of = |kind: &str, is_tested: bool| {
        let targets = manifest.get(kind).and_then(Value::as_array);
        targets.into_iter().flatten().any(|target| has_none(target, is_tested))
    };
    manifest.get("lib").is_some_and(|library| has_none(library, true))
        || any_of("bin", true)
        || any_of("test", true)
        || any_of("example", false)
        || any_of("bench", false)
}
