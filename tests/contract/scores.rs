//! The scores that others' tests of MCP servers give: mcpscore and mcp-quality (from `PyPI`), where they are installed.

use integration_tests::{Project, require, server};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;

/// Returns a program of the virtual environment of the tests.
fn python_program(name: &str) -> Option<PathBuf> {
    let own = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.venv/bin")).join(name);
    require(own.is_file().then_some(own), &format!("{name} is not installed (tests/python/requirements.txt)"))
}

#[test]
fn mcpscore_gives_every_point_but_those_for_the_log() {
    let Some(mcpscore) = python_program("mcpscore") else { return };
    let project = Project::with([("a.txt", "one\n")]);
    let mut command = Command::new(mcpscore);
    command.current_dir(project.path()).args(["--json", "--no-config", "--stdio"]).arg(server());
    let output = command.args(["--root", "."]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    // A build that is not made from a repository on GitHub has no page to name, which is one point.
    let unknown = u64::from(option_env!("GITHUB_REPOSITORY").is_none());
    // The log is told to clients of the `initialize` era, which learn by it that a background command or a session has ended.
    // The next revision has deprecated it, which is two points.
    let log = 2;
    let (score, most) = (report["score"].as_u64().unwrap(), report["max_score"].as_u64().unwrap());
    assert!(score + unknown + log >= most, "{score} of {most}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn mcp_quality_gives_a_good_grade() {
    // Three fifths of its score are for a short list, and two for the contract. The default list is long, since it teaches:
    // at the 8,800 tokens that this counts for it, the first part is 69 of 100. With a perfect contract, 92 points would take
    // a list of at most 4,165 tokens. Of the contract, two points each are missing for `run_command`, `get_diagnostics` and
    // `git_merge`, whose answers hold lists that no parameter bounds: they are short, or bounded by the tool. Without a
    // vocabulary it counts twice as many tokens.
    let Some(mcp_quality) = python_program("mcp-quality") else { return };
    let project = Project::empty();
    for (preset, family, least) in
        [("minimal", "/overall/score", 90.0), ("standard", "/families/contract/score", 94.0)]
    {
        let tools = crate::listed(&["--toolsets", preset], integration_tests::Era::Modern);
        project.write("tools.json", &json!({"tools": tools}).to_string());
        let mut command = Command::new(&mcp_quality);
        let output =
            command.current_dir(project.path()).args(["static", "tools.json", "--json"]).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        let score = report.pointer(family).and_then(Value::as_f64).unwrap_or_default();
        assert!(score >= least, "{preset}: {report:#}");
    }
}
