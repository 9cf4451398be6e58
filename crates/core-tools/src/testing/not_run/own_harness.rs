//! The targets of cargo packages with a harness of their own, whose results are what they print.

use super::cargo::ProjectFolder;
use crate::ci::project::Project;
use crate::testing::results::CargoTarget;
use std::path::Path;
use toml::{Table, Value};

/// The number of targets that a note names.
const MAX_NAMED: usize = 5;

/// Libraries that run tests as libtest does and print what it prints, as sources name them.
const HARNESSES: [&str; 3] = ["datatest_stable", "libtest2", "libtest_mimic"];

/// Returns a note on the targets of a package that have a harness of their own.
pub(super) fn note(project: &Project) -> Option<String> {
    let manifest: Table = project.read("Cargo.toml")?.parse().ok()?;
    let tables = ["test", "bin"].into_iter().filter_map(|kind| manifest.get(kind)?.as_array());
    let targets = tables.flatten().chain(manifest.get("lib")).filter(|target| has_own_harness(target));
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

/// Returns a note on those of `targets`, all of which printed results as libtest does, whose results nothing confirms: their
/// harness is their own, and of no library that is known to run what it prints.
pub(super) fn unverified(project: &Project, targets: &[CargoTarget]) -> Option<String> {
    let root = ProjectFolder::of(project);
    let read = |path: &Path| project.read(&root.path_of(path)?);
    let is_unverified = |target: &&CargoTarget| {
        let manifest = read(&target.manifest).and_then(|text| text.parse::<Table>().ok());
        manifest.is_some_and(|manifest| is_own_harness_of(&manifest, target))
            && !read(&target.source)
                .is_some_and(|source| HARNESSES.iter().any(|harness| source.contains(harness)))
    };
    let names: Vec<_> =
        targets.iter().filter(is_unverified).map(|target| format!("`{}`", target.name)).collect();
    let named = names.get(..MAX_NAMED).unwrap_or(&names).join(", ");
    let more = names.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| {
        format!(
            "not verified: {named}{more} printed results as libtest does, with a harness of its own (`harness = false`): its own lines say what passed, and nothing confirms them"
        )
    })
}

fn has_own_harness(target: &Value) -> bool {
    target.get("harness").and_then(Value::as_bool) == Some(false)
}

/// Returns true if the manifest gives a target a harness of its own.
fn is_own_harness_of(manifest: &Table, target: &CargoTarget) -> bool {
    let is_named = |entry: &&Value| entry.get("name").and_then(Value::as_str) == Some(target.name.as_str());
    match target.kind.as_str() {
        "test" | "bin" | "example" | "bench" => {
            let entries = manifest.get(&target.kind).and_then(Value::as_array);
            entries.is_some_and(|entries| entries.iter().filter(is_named).any(has_own_harness))
        }
        // A library is of several kinds, and has one table.
        _ => manifest.get("lib").is_some_and(has_own_harness),
    }
}
