//! The test runner of a Node project.

use crate::ci::project::Project;
use crate::testing::runner::TestRunner;
use serde_json::Value;

/// Returns the runner of a Node project: the one that its script `test` runs, else one that it depends on or
/// configures.
///
/// `manifest` is the text of its `package.json`.
pub(crate) fn node_runner(project: &Project, manifest: &str) -> TestRunner {
    let manifest: Value = serde_json::from_str(manifest).unwrap_or_default();
    let script = manifest.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default();
    let names = project.entry_names(".");
    let depends_on = |name: &str| {
        ["dependencies", "devDependencies"]
            .iter()
            .any(|kind| manifest.get(kind).is_some_and(|dependencies| dependencies.get(name).is_some()))
    };
    let uses = |runner: &str| {
        // The package `playwright` alone drives browsers, and is no test runner.
        let depends = depends_on(if runner == "playwright" { "@playwright/test" } else { runner });
        let configured = names.iter().any(|name| {
            name.starts_with(&format!("{runner}.config.")) || name.starts_with(&format!(".{runner}rc"))
        });
        depends || configured || manifest.get(runner).is_some()
    };
    let runs = |program: &str| script.split([' ', ';', '&', '|']).any(|word| word == program);
    // AVA and Playwright come last: a project that has another beside them runs its unit tests with that.
    let candidates = [
        (TestRunner::Vitest, "vitest"),
        (TestRunner::Jest, "jest"),
        (TestRunner::Mocha, "mocha"),
        (TestRunner::Ava, "ava"),
        (TestRunner::Playwright, "playwright"),
    ];
    // Where several are installed, `npm test` decides.
    if let Some((runner, _)) = candidates.iter().find(|(_, name)| runs(name) && uses(name)) {
        return *runner;
    }
    if script.contains("node --test") || script.contains("node:test") {
        return TestRunner::Node;
    }
    if let Some((runner, _)) = candidates.iter().find(|(_, name)| uses(name)) {
        return *runner;
    }
    if project.contains_any(&["deno.json", "deno.jsonc"]) {
        TestRunner::Deno
    } else if script.starts_with("bun test") || project.contains_any(&["bun.lock", "bun.lockb"]) {
        TestRunner::Bun
    } else if script.is_empty() || script.contains("no test specified") {
        TestRunner::Node
    } else {
        TestRunner::Npm
    }
}
