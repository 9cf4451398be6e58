//! Versions, and the ways to begin.

use crate::{connect, start};
use integration_tests::Era;
use serde_json::{Value, json};
use std::time::Duration;

fn initialize(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
}

/// The capabilities that the server declares in every version.
fn capabilities() -> Value {
    json!({
        "tools": {"listChanged": true},
        "prompts": {"listChanged": true},
        "resources": {"listChanged": true, "subscribe": true},
        "completions": {},
        "logging": {},
    })
}

#[test]
fn each_version_of_the_initialize_era_is_answered_with_itself() {
    for era in Era::INITIALIZE {
        let (_project, mut wire) = start();
        let answer = wire.request("initialize", initialize(era.version()));
        let result = &answer["result"];
        assert_eq!(result["protocolVersion"], era.version());
        assert_eq!(result["serverInfo"]["name"], "mcp-stdio");
        assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(result["capabilities"], capabilities());
        let instructions = result["instructions"].as_str().unwrap();
        assert!(!instructions.is_empty() && instructions.len() < 2048, "{} bytes", instructions.len());
    }
}

#[test]
fn initialize_with_a_version_it_cannot_have_is_answered_with_the_newest_it_can() {
    for version in ["1999-01-01", "2026-07-28", "2099-01-01", ""] {
        let (_project, mut wire) = start();
        let answer = wire.request("initialize", initialize(version));
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "asked for {version:?}");
    }
}

#[test]
fn discover_tells_versions_and_instructions_and_leaves_both_ways_open() {
    let (_project, mut wire) = connect(Era::Modern);
    let result = wire.request("server/discover", json!({}))["result"].clone();
    let versions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
    assert_eq!(result["supportedVersions"], json!(versions));
    let mut with_tasks = capabilities();
    with_tasks["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    assert_eq!(result["capabilities"], with_tasks);
    assert!(result["instructions"].as_str().is_some_and(|text| text.len() < 2048));
    assert!(wire.request("tools/list", json!({}))["result"]["tools"].is_array());

    let (_project, mut wire) = connect(Era::Modern);
    wire.request("server/discover", json!({}));
    let answer = wire.request("initialize", initialize("2025-06-18"));
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
}

#[test]
fn tools_can_be_listed_and_called_in_every_version() {
    for era in Era::all() {
        let (project, mut wire) = connect(era);
        project.write("a.txt", "hello\n");
        let listed = wire.request("tools/list", json!({}));
        assert!(
            listed["result"]["tools"].as_array().is_some_and(|tools| tools.len() > 10),
            "{era:?}: {listed}"
        );
        assert_eq!(wire.text("read_file", json!({"path": "a.txt"})), "hello\n", "{era:?}");
    }
}

#[test]
fn results_carry_their_type_and_lists_their_lifetime_on_2026_07_28_alone() {
    for era in Era::all() {
        let (_project, mut wire) = connect(era);
        let listed = wire.request("tools/list", json!({}))["result"].clone();
        let called = wire.call("list_directory", json!({}));
        let modern = era == Era::Modern;
        assert_eq!(listed.get("ttlMs").is_some(), modern, "{era:?}");
        assert_eq!(listed.get("cacheScope").is_some(), modern, "{era:?}");
        assert_eq!(called["resultType"] == "complete", modern, "{era:?}: {called}");
    }
}

#[test]
fn ping_is_answered_at_any_time_in_the_initialize_era() {
    let (_project, mut wire) = start();
    assert_eq!(wire.request("ping", json!({}))["result"], json!({}));
    for era in Era::INITIALIZE {
        let (_project, mut wire) = connect(era);
        assert_eq!(wire.request("ping", json!({}))["result"], json!({}), "{era:?}");
    }
}

#[test]
fn there_is_no_ping_on_2026_07_28() {
    let (_project, mut wire) = connect(Era::Modern);
    wire.request("tools/list", json!({}));
    assert_eq!(wire.request("ping", json!({}))["error"]["code"], -32601);
}

#[test]
fn a_version_nobody_knows_is_refused_with_those_there_are() {
    let (_project, mut wire) = start();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2099-01-01",
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    let error = wire.request("tools/list", json!({"_meta": meta}))["error"].clone();
    assert_eq!(error["code"], -32022);
    assert!(
        error["data"]["supported"].as_array().is_some_and(|known| known.contains(&"2026-07-28".into())),
        "{error}"
    );
}

#[test]
fn a_request_without_handshake_or_meta_is_told_what_is_missing() {
    let (_project, mut wire) = start();
    let error = wire.request("tools/list", json!({}))["error"].clone();
    assert_eq!(error["code"], -32602);
    assert!(
        error["message"].as_str().unwrap().contains("io.modelcontextprotocol/protocolVersion"),
        "{error}"
    );
    // And it may still begin properly.
    assert_eq!(
        wire.request("initialize", initialize("2025-06-18"))["result"]["protocolVersion"],
        "2025-06-18"
    );
}

#[test]
fn a_notification_or_a_response_may_come_first() {
    for first in [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        json!({"jsonrpc": "2.0", "method": "notifications/no_such"}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}}),
    ] {
        let (_project, mut wire) = start();
        wire.send(&first);
        assert!(wire.is_silent_for(Duration::from_millis(100)), "answered {first}");
        assert_eq!(
            wire.request("initialize", initialize("2025-06-18"))["result"]["protocolVersion"],
            "2025-06-18"
        );
    }
}

#[test]
fn a_client_that_does_not_say_that_it_is_initialized_is_served() {
    let (_project, mut wire) = start();
    wire.request("initialize", initialize("2025-06-18"));
    assert!(wire.request("tools/list", json!({}))["result"]["tools"].is_array());
    assert_eq!(wire.call("list_directory", json!({}))["isError"], false);
}

#[test]
fn one_connection_may_mix_requests_of_both_eras() {
    let (_project, mut wire) = connect(Era::Initialize("2025-11-25"));
    let mut params = json!({});
    Era::Modern.fill(&mut params);
    assert_eq!(wire.request("tools/list", params)["result"]["cacheScope"], "private");
    assert_eq!(wire.request("tools/list", json!({}))["result"].get("cacheScope"), None);
}

#[test]
fn the_instructions_name_the_roots_and_only_tools_that_are_listed() {
    let project = integration_tests::Project::empty();
    std::fs::create_dir(project.join("second")).unwrap();
    let root = project.path().canonicalize().unwrap().display().to_string();
    for (arguments, has, has_not) in [
        (
            &["--toolsets", "standard"][..],
            &["edit_file", "find_tools", "run_tests"][..],
            &["new_session"][..],
        ),
        (&["--toolsets", "minimal"], &["run_command"], &["find_files", "run_tests"]),
        (&["--role", "readonly"], &["search_files"], &["edit_file", "run_command", "git_commit"]),
    ] {
        let mut command = project.server();
        command.args(arguments);
        let mut wire = integration_tests::Wire::start(command);
        let text = wire.request("initialize", initialize("2025-11-25"))["result"]["instructions"].take();
        let text = text.as_str().unwrap();
        assert!(text.contains(&root) && text.len() < 2048 && text.contains("[redacted]"), "{text}");
        assert!(has.iter().all(|tool| text.contains(tool)), "{arguments:?}: {text}");
        assert!(!has_not.iter().any(|tool| text.contains(tool)), "{arguments:?}: {text}");
    }
}
