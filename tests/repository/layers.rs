//! The layers of the crates: which may depend on which, and how large one may be.

use crate::sources::{crates, files, workspace_root};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// From the bottom up: a crate may depend on those of the rows before its own.
const LAYERS: &[&[&str]] = &[
    &["did-you-mean", "egress-proxy", "error-causes", "json-rpc", "redaction", "trusted-file"],
    &["workspace", "process-runner", "role-policy", "approvals", "audit-log"],
    &[
        "context-compiler",
        "introspection",
        "agent-hooks",
        "codex-executor",
        "agent-sessions",
        "mcp-proxy",
        "remotes",
    ],
    &["core-tools"],
    &["server-setup"],
    &["coretools-mcp", "mcp-http"],
];

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&name))
}

#[test]
fn dependencies_between_crates_point_down() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline", "--locked"])
        .current_dir(workspace_root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut wrong = Vec::new();
    let mut checked = 0;
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        if !package["manifest_path"].as_str().unwrap().contains("/crates/") {
            continue;
        }
        let Some(own) = layer(name) else {
            wrong.push(format!("{name} is in no layer"));
            continue;
        };
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            if dependency["kind"] != Value::Null || dependency["path"] == Value::Null {
                continue;
            }
            checked += 1;
            if layer(used).is_none_or(|layer| layer >= own) {
                wrong.push(format!("{name} depends on {used}"));
            }
        }
    }
    assert!(checked > 10, "only {checked} dependencies were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_crate_holds_more_than_a_third_of_the_source() {
    let lines: BTreeMap<String, usize> = crates()
        .iter()
        .map(|krate| {
            let lines = files(&krate.join("src"), "rs").iter().map(|path| own_lines(path)).sum();
            (krate.file_name().unwrap().to_string_lossy().into_owned(), lines)
        })
        .collect();
    let total: usize = lines.values().sum();
    let (largest, most) = lines.iter().max_by_key(|(_, lines)| **lines).unwrap();
    assert!(most * 3 <= total, "{largest} has {most} of {total} lines: {lines:?}");
}

/// The lines of a file up to its unit tests, which stand at the end.
fn own_lines(path: &std::path::Path) -> usize {
    if path.ends_with("tests.rs") {
        return 0;
    }
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().position(|line| line == "mod tests {").unwrap_or_else(|| text.lines().count())
}
