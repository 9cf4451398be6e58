//! `/metrics`.

use crate::SOON;
use integration_tests::{Era, HttpServer, Project, exchange, require, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[test]
fn metrics_are_for_callers_with_a_token_or_on_a_listener_of_their_own() {
    let project = Project::with([("a.txt", "a")]);
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "readonly", &[]);
    for era in Era::BOTH {
        let mut client = server.connect(&token, era);
        client.text("read_file", json!({"path": "a.txt"}));
        client.failure("read_file", json!({"path": "none"}));
        client.reply("tools/call", json!({"name": "write_file", "arguments": {}}));
    }
    assert_eq!(server.get("/metrics", None).status, 401);
    let text = server.get("/metrics", Some(&token)).body;
    for line in [
        r#"coretools_calls_total{tool="read_file",role="readonly",outcome="ok"} 2"#,
        r#"coretools_calls_total{tool="read_file",role="readonly",outcome="failed"} 2"#,
        r#"coretools_call_duration_seconds_count{tool="read_file",role="readonly"} 4"#,
        r#"coretools_calls_not_run_total{decision="hidden"} 2"#,
        r#"coretools_requests_turned_away_total{reason="no_token"} 1"#,
        r#"coretools_caller_calls_total{caller="ada",outcome="not_run"} 2"#,
        concat!(r#"coretools_build_info{version=""#, env!("CARGO_PKG_VERSION"), r#""} 1"#),
        "coretools_calls_in_flight 0",
        "coretools_sessions 1",
        "coretools_children 0",
        "coretools_draining 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
    // Each metric has a type.
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    assert!(names.len() >= 9, "{text}");
    let server = HttpServer::start(&project, &["--metrics-listen", "127.0.0.1:0"]);
    let log = server.log();
    let place = log.lines().find_map(|line| line.strip_prefix("mcp-http: metrics at ")).unwrap();
    let address = place.parse().unwrap();
    let get = |path: &str| {
        exchange(
            address,
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes(),
        )
        .status
    };
    assert_eq!((get("/metrics"), get("/healthz"), get("/mcp")), (200, 200, 404));
}

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("packaging").join(name)
}

/// The metrics of ours and of the process in an expression.
fn metrics_in(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| word.starts_with("coretools_") || word.starts_with("process_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_metric_of_the_dashboard_and_of_the_alerts_is_one_that_the_server_has() {
    let (project, outside) = (Project::with([("a.txt", "a")]), Project::empty());
    let config = outside.join("coretools.toml");
    let database = outside.join("audit.db");
    fs::write(&config, format!("[http]\naudit_database = \"sqlite:{}\"\n", database.display())).unwrap();
    let server = HttpServer::start(&project, &["--config", config.to_str().unwrap()]);
    let token = server.token("ada", "dev", &[]);
    let mut client = server.connect(&token, Era::Modern);
    client.text("read_file", json!({"path": "a.txt"}));
    client.reply("tools/call", json!({"name": "no_such_tool", "arguments": {}}));
    let mut text = String::new();
    wait_until(SOON, "the call is counted", || {
        text = server.get("/metrics", Some(&token)).body;
        text.contains("coretools_calls_total{") && text.contains("coretools_calls_not_run_total{")
    });
    let rules = fs::read_to_string(packaging("prometheus/coretools.rules.yml")).unwrap();
    let dashboard = fs::read_to_string(packaging("grafana/coretools.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let expressions = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut wanted: BTreeSet<String> =
        expressions.flat_map(|target| metrics_in(target["expr"].as_str().unwrap())).collect();
    assert!(wanted.len() > 12, "{wanted:?}");
    wanted.extend(metrics_in(&rules));
    let objectives = fs::read_to_string(packaging("prometheus/coretools.slo.rules.yml")).unwrap();
    // The ratios that the rules record have a colon in their names, and are none of the server's.
    let measured = objectives.lines().filter(|line| line.contains("coretools_"));
    wanted.extend(measured.flat_map(metrics_in));
    let families: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for metric in &wanted {
        let family = ["", "_total", "_bucket", "_count", "_info"]
            .iter()
            .filter_map(|ending| metric.strip_suffix(ending))
            .any(|name| families.contains(name));
        assert!(family, "{metric} is none of {families:?}");
    }
}

#[test]
fn prometheus_takes_the_alerts() {
    let there =
        Command::new("promtool").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let there = there.is_ok_and(|status| status.success());
    let Some(()) = require(there.then_some(()), "no promtool; apt-get install prometheus") else { return };
    let output = Command::new("promtool")
        .args(["check", "rules"])
        .args([packaging("prometheus/coretools.rules.yml"), packaging("prometheus/coretools.slo.rules.yml")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // They are raised by the series that should raise them, and by no others.
    let tested = Command::new("promtool")
        .args(["test", "rules"])
        .arg(packaging("prometheus/coretools.test.yml"))
        .output()
        .unwrap();
    let said = [tested.stdout, tested.stderr].concat();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&said));
    // The output of the server is what Prometheus reads.
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    let text = server.get("/metrics", Some(&token)).body;
    for (rule, series) in
        [("CoreToolsFewDescriptors", "process_max_fds"), ("CoreToolsRestarts", "process_start_time_seconds")]
    {
        let rules = fs::read_to_string(packaging("prometheus/coretools.rules.yml")).unwrap();
        assert!(
            rules.contains(rule) && text.lines().any(|line| line.starts_with(&format!("{series} "))),
            "{series}"
        );
    }
}
