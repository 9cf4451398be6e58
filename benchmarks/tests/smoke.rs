//! The program from its arguments to its report, with the built server.
#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use integration_tests::server;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn benchmarks(arguments: &[&str], out: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_benchmarks"));
    command.args(arguments).env("CORETOOLS_TEST_SERVER", server());
    if arguments[0] == "run" {
        command.arg("--out").arg(out);
    }
    command.output().expect("it can be run")
}

#[test]
fn a_quick_run_measures_the_server_and_writes_figures_and_tables() {
    let out = tempfile::tempdir().unwrap();
    let arguments =
        ["run", "--only", "read,echo,endless", "--server", "mcp-stdio", "--rounds", "2", "--span", "0.1"];
    let output = benchmarks(&arguments, out.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results = fs::read_to_string(out.path().join("peers.json")).unwrap();
    let results: Value = serde_json::from_str(&results).unwrap();
    let cell = |scenario: &str, server: &str| {
        let mut cells = results["cells"].as_array().unwrap().iter();
        let found = cells.find(|cell| cell["scenario"] == scenario && cell["server"] == server);
        let cell = found.unwrap_or_else(|| panic!("no {scenario} of {server}: {results}"));
        assert_eq!(cell["problem"], Value::Null, "{cell}");
        cell["figures"].clone()
    };
    for (scenario, server) in [("read", "mcp-stdio"), ("echo", "mcp-stdio"), ("echo", "no server")] {
        let rounds = cell(scenario, server)["p50"].as_array().unwrap().clone();
        assert_eq!(rounds.len(), 2, "{scenario} of {server}");
        assert!(rounds.iter().all(|time| time.as_f64().unwrap() > 0.0), "{rounds:?}");
    }
    let endless = cell("endless", "mcp-stdio");
    let answered = endless["answered"][0].as_f64().unwrap();
    assert!((2.0..8.0).contains(&answered), "{endless}");
    assert_eq!(endless["left"][0], 0.0);
    assert_eq!(results["servers"][0]["left"], 0);
    let page = fs::read_to_string(out.path().join("peers.md")).unwrap();
    assert!(page.contains("## Git and commands") && page.contains("| mcp-stdio |"), "{page}");
}

#[test]
fn a_quick_look_at_remotes_measures_calls_and_starts_beside_a_local_server() {
    let out = tempfile::tempdir().unwrap();
    let output = benchmarks(&["remotes", "--only", "sh", "--calls", "20", "--starts", "2"], out.path());
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let rows: Vec<Vec<&str>> = printed
        .lines()
        .filter(|line| line.starts_with("| a shell of this machine"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let [calls, starts] = rows.as_slice() else { panic!("{printed}") };
    let millis = |cell: &str| -> f64 { cell.trim_end_matches(" ms").parse().unwrap() };
    // A line takes less than a call, and a call less than the start of a far end.
    let (line, local, remote) = (millis(calls[1]), millis(calls[2]), millis(calls[4]));
    assert!(line < local && local > 0.0 && remote > 0.0, "{printed}");
    assert!(millis(starts[2]) > remote, "{printed}");
}

#[test]
fn a_server_that_does_not_start_is_reported_with_what_it_says() {
    let out = tempfile::tempdir().unwrap();
    let peers = out.path().join("peers.toml");
    let script = "echo no such folder >&2; exit 1";
    fs::write(&peers, format!("[[server]]\nname = \"broken\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n"))
        .unwrap();
    let peers = peers.to_str().unwrap();
    let output = benchmarks(&["run", "--peers", peers, "--only", "start", "--rounds", "2"], out.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(out.path().join("peers.md")).unwrap();
    assert!(page.contains("broken") && page.contains("no such folder"), "{page}");
}

#[test]
fn a_misspelt_scenario_ends_the_run_before_it_begins() {
    let out = tempfile::tempdir().unwrap();
    let output = benchmarks(&["run", "--only", "raed"], out.path());
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no scenario `raed`; there are start, read"));
}
