//! The official conformance suite against the built server and against the example with everything: `docs/conformance.md`
//! has what holds, and this checks it.

use integration_tests::{HttpServer, Project, conformance_suite, everything};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Checks that hold, of those that were made: `2/3`.
type CheckCounts = BTreeMap<String, String>;

/// Reads the counts that the page has for a revision, in the `column`th column.
fn documented(column: usize) -> CheckCounts {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/conformance.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows = rows.map(|row| row.split('|').map(|cell| cell.trim().trim_matches('`')).collect::<Vec<_>>());
    rows.filter(|row| row[column] != "–").map(|row| (row[0].to_owned(), row[column].to_owned())).collect()
}

/// Reads the counts from the suite's lines `✓ NAME: 3 passed, 0 failed`.
fn summary(said: &str) -> CheckCounts {
    let line = |line: &str| {
        let (name, counts) = line.strip_prefix(['✓', '✗'])?.trim().split_once(": ")?;
        let (passed, failed) = counts.strip_suffix(" failed")?.split_once(" passed, ")?;
        let (passed, failed): (u32, u32) = (passed.parse().ok()?, failed.parse().ok()?);
        Some((name.to_owned(), format!("{passed}/{}", passed + failed)))
    };
    said.lines().filter_map(line).collect()
}

/// Runs the suite of a revision against the server at `address`, and compares the counts with a column of the page.
fn run(revision: &str, column: usize, address: &str, outside: &Project) {
    let Some((node, suite)) = conformance_suite() else { return };
    let results = outside.join("results");
    let output = Command::new(node)
        .arg(suite)
        .args(["server", "--url", &format!("http://{address}/mcp")])
        .args(["--requirements", revision, "-o", results.to_str().unwrap()])
        .current_dir(outside.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let found = summary(&said);
    assert!(!found.is_empty(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let documented = documented(column);
    let differs = |name: &&String| found.get(*name) != documented.get(*name);
    let all = found.keys().chain(documented.keys().filter(|name| !found.contains_key(*name)));
    let different: Vec<String> = all
        .filter(differs)
        .map(|name| format!("{name}: {:?}, and the page says {:?}", found.get(name), documented.get(name)))
        .collect();
    assert!(different.is_empty(), "{different:#?}");
    let mut looked_at = 0;
    for scenario in std::fs::read_dir(&results).unwrap() {
        let checks = std::fs::read_to_string(scenario.unwrap().path().join("checks.json")).unwrap();
        let checks: Vec<serde_json::Value> = serde_json::from_str(&checks).unwrap();
        for check in checks.iter().filter(|check| check["id"] == "wire-schema-valid") {
            assert_eq!(check["status"], "SUCCESS", "{check:#}");
            looked_at += 1;
        }
    }
    assert!(looked_at >= 20, "{looked_at}");
}

/// Runs the suite against the product.
fn run_product(revision: &str, column: usize) {
    if conformance_suite().is_none() {
        return;
    }
    let (project, outside) = (Project::with([("a.txt", "hello\n")]), Project::empty());
    let config = outside.join("coretools.toml");
    std::fs::write(&config, "[http]\nanonymous_role = \"orchestrator\"\ncalls_per_second = 10000\n").unwrap();
    let server = HttpServer::start(&project, &["--config", config.to_str().unwrap()]);
    run(revision, column, &server.address().to_string(), &outside);
}

/// A running example `everything`. Dropping it ends it.
struct Everything {
    process: Child,
    address: String,
}

impl Everything {
    fn start() -> Self {
        let mut process = Command::new(everything())
            .args(["--http", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").and_then(|at| at.strip_suffix("/mcp"));
        Self { address: address.unwrap_or_else(|| panic!("no address: {line}")).to_owned(), process }
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Runs the suite against the example with everything, of which every check that is made must pass.
fn run_everything(revision: &str, column: usize) {
    if conformance_suite().is_none() {
        return;
    }
    for (scenario, counts) in documented(column) {
        let (passed, made) = counts.split_once('/').unwrap();
        assert_eq!(passed, made, "{scenario}");
    }
    let server = Everything::start();
    run(revision, column, &server.address, &Project::empty());
}

#[test]
fn of_the_conformance_suite_for_2026_07_28_holds_what_is_documented() {
    run_product("2026-07-28", 2);
}

#[test]
fn of_the_conformance_suite_for_2025_11_25_holds_what_is_documented() {
    run_product("2025-11-25", 1);
}

#[test]
fn the_host_for_authors_passes_the_whole_conformance_suite_for_2026_07_28() {
    run_everything("2026-07-28", 4);
}

#[test]
fn the_host_for_authors_passes_the_whole_conformance_suite_for_2025_11_25() {
    run_everything("2025-11-25", 3);
}
