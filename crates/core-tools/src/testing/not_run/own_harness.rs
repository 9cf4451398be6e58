//! The targets of a cargo package with a harness of their own, whose results are what they print.

use crate::ci::project::Project;
use toml::{Table, Value};

/// Returns a note on the targets of a package that have a harness of their own.
pub(super) fn note(project: &Project) -> Option<String> {
    let manifest: Table = project.read("Cargo.toml")?.parse().ok()?;
    let has_own = |target: &&Value| target.get("harness").and_then(Value::as_bool) == Some(false);
    let tables = ["test", "bin"].into_iter().filter_map(|kind| manifest.get(kind)?.as_array());
    let targets = tables.flatten().chain(manifest.get("lib")).filter(has_own);
    let name =
        |target: &Value| ["name", "path"].iter().find_map(|key| Some(target.get(key)?.as_str()?.to_owned()));
    let names: Vec<_> = targets
        .map(|target| format!("`{}`", name(target).unwrap_or_else(|| "the library".to_owned())))
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "with a harness of its own (`harness = false`): {}; its tests are those that it prints itself, and all else that is known of it is cargo's exit code",
            names.join(", ")
        )
    })
}
