//! `/metrics`.

use integration_tests::{Era, HttpServer, Project, exchange};
use serde_json::json;

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
