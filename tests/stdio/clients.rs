//! Two clients that were not written for this server: rmcp's own, and the official one in Python.

use integration_tests::{
    Project, alive, python_with_mcp, server, unique_seconds, wait_until, wait_until_gone,
};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientRequest, ProtocolVersion, Request, ServerResult,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, PeerRequestOptions, RunningService, ServiceError,
};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::Duration;

type RmcpClient = RunningService<RoleClient, ()>;

fn lifecycles() -> [ClientLifecycleMode; 3] {
    let modern = vec![ProtocolVersion::V_2026_07_28];
    [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover { preferred_versions: modern.clone() },
        ClientLifecycleMode::Auto { preferred_versions: modern, legacy_version: None },
    ]
}

/// rmcp's client of a server for `project`. Dropping the child ends the server.
async fn connect(project: &Project, lifecycle: ClientLifecycleMode) -> (RmcpClient, tokio::process::Child) {
    let mut command = tokio::process::Command::from(project.server());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let transport = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    (().serve_with_lifecycle(transport, lifecycle).await.unwrap(), child)
}

fn params(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

#[tokio::test]
async fn rmcp_lists_and_calls_tools_in_every_lifecycle() {
    for lifecycle in lifecycles() {
        let project = Project::with([("a.txt", "hello\n")]);
        let (client, mut child) = connect(&project, lifecycle.clone()).await;
        let tools = client.list_all_tools().await.unwrap();
        assert!(tools.iter().any(|tool| tool.name == "run_command"), "{lifecycle:?}");
        let result = client.call_tool(params("read_file", json!({"path": "a.txt"}))).await.unwrap();
        assert_eq!((result.is_error, text(&result)), (Some(false), "hello\n"));
        let result = client
            .call_tool(params("run_command", json!({"command": ["sh", "-c", "echo hi; exit 2"]})))
            .await;
        let result = result.unwrap();
        assert_eq!(result.is_error, Some(true));
        assert_eq!(result.structured_content.unwrap()["exit_code"], 2);
        let result = client.call_tool(params("read_file", json!({"path": "none"}))).await.unwrap();
        assert_eq!(result.is_error, Some(true));
        client.cancel().await.unwrap();
        let status = tokio::time::timeout(Duration::from_secs(5), child.wait()).await.unwrap().unwrap();
        assert!(status.success(), "{lifecycle:?}: {status}");
    }
}

#[tokio::test]
async fn rmcp_is_told_of_an_unknown_tool_by_an_error_and_goes_on() {
    for (lifecycle, code) in lifecycles().into_iter().zip([-32601, -32602, -32602]) {
        let project = Project::empty();
        let (client, _child) = connect(&project, lifecycle).await;
        match client.call_tool(params("no_such_tool", json!({}))).await {
            Err(ServiceError::McpError(error)) => assert_eq!(error.code.0, code, "{error}"),
            other => panic!("{other:?}"),
        }
        assert!(!client.list_all_tools().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_call_that_rmcp_gives_up_ends_with_all_it_started() {
    for lifecycle in lifecycles() {
        let project = Project::empty();
        let (client, _child) = connect(&project, lifecycle).await;
        let seconds = unique_seconds();
        let script = format!("setsid sleep {seconds} & sleep {seconds}");
        let call = params("run_command", json!({"command": ["sh", "-c", script]}));
        let request = ClientRequest::CallToolRequest(Request::new(call));
        let options = PeerRequestOptions::with_timeout(Duration::from_secs(2));
        let call = client.send_cancellable_request(request, options).await.unwrap();
        let answer: Result<ServerResult, ServiceError> = call.await_response().await;
        assert!(matches!(answer, Err(ServiceError::Timeout { .. })), "{answer:?}");
        tokio::task::spawn_blocking(move || wait_until_gone(&seconds, Duration::from_secs(5))).await.unwrap();
        assert!(!client.list_all_tools().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_server_whose_rmcp_client_vanishes_ends_with_all_it_started() {
    let project = Project::empty();
    let (client, mut child) = connect(&project, ClientLifecycleMode::Initialize).await;
    let seconds = unique_seconds();
    client.call_tool(params("start_command", json!({"command": ["sleep", seconds]}))).await.unwrap();
    wait_until(Duration::from_secs(5), "it runs", || !alive(&seconds).is_empty());
    drop(client);
    tokio::time::timeout(Duration::from_secs(5), child.wait()).await.unwrap().unwrap();
    wait_until_gone(&seconds, Duration::from_secs(10));
}

/// Runs `tests/python/client.py`, which says on standard error what does not hold.
fn python(mode: &str) {
    let Some(python) = python_with_mcp() else { return };
    let project = Project::with([("a.txt", "hello\n")]);
    let seconds = unique_seconds();
    let output = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/python/client.py"))
        .args([server().as_os_str(), mode.as_ref(), seconds.as_ref()])
        .current_dir(project.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "all of it holds", "{said}");
    wait_until_gone(&seconds, Duration::from_secs(2));
}

#[test]
fn the_official_python_client_works_with_the_handshake() {
    python("legacy");
}

#[test]
fn the_official_python_client_works_as_it_is() {
    python("auto");
}

#[test]
fn the_official_python_client_works_without_asking_first() {
    python("2026-07-28");
}
