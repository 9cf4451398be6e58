//! The official TypeScript client: `@modelcontextprotocol/sdk` (v1, which speaks up to 2025-11-25) and
//! `@modelcontextprotocol/client` (v2, which also speaks 2026-07-28).

use crate::home::ClientHome;
use integration_tests::{HttpServer, server, unique_seconds, wait_until_gone};
use std::time::Duration;

/// Runs `client.mjs`, which says on standard error what does not hold.
fn drives(client: &str, over_http: bool) {
    let Some(home) = ClientHome::with_package("@modelcontextprotocol/client") else { return };
    let served = over_http.then(|| {
        let served = HttpServer::start(&home.project, &[]);
        let token = served.token("typescript", "dev", &[]);
        (served, token)
    });
    let seconds = unique_seconds();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/client.mjs");
    let modules = home.modules();
    let mut arguments = vec![script, modules.to_str().unwrap(), client, &seconds];
    let url = served.as_ref().map(|(served, _)| format!("http://{}/mcp", served.address()));
    match (&url, &served) {
        (Some(url), Some((_, token))) => arguments.extend(["http", url, token]),
        _ => arguments.extend(["stdio", server().to_str().unwrap()]),
    }
    let said = home.run("node", &arguments);
    assert!(said.contains("all of it holds"), "{said}");
    wait_until_gone(&seconds, Duration::from_secs(10));
}

#[test]
fn typescript_v1_works_on_standard_input_and_output() {
    drives("v1", false);
}

#[test]
fn typescript_v1_works_over_http() {
    drives("v1", true);
}

#[test]
fn typescript_v2_with_the_handshake_works_on_standard_input_and_output() {
    drives("legacy", false);
}

#[test]
fn typescript_v2_with_the_handshake_works_over_http() {
    drives("legacy", true);
}

#[test]
fn typescript_v2_as_told_by_the_server_works_on_standard_input_and_output() {
    drives("auto", false);
}

#[test]
fn typescript_v2_as_told_by_the_server_works_over_http() {
    drives("auto", true);
}

#[test]
fn typescript_v2_of_2026_07_28_only_works_on_standard_input_and_output() {
    drives("pinned", false);
}

#[test]
fn typescript_v2_of_2026_07_28_only_works_over_http() {
    drives("pinned", true);
}
