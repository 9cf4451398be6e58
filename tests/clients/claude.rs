//! Claude Code.

use crate::home::{Home, WRONG_TOKEN};

#[test]
fn claude_code_connects_with_what_print_config_prints() {
    let Some(home) = Home::with("claude") else { return };
    home.connect_stdio("claude");
    let listed = home.run("claude", &["mcp", "list"]);
    assert!(listed.contains("✔ Connected"), "{listed}");
    let shown = home.run("claude", &["mcp", "get", "coretools"]);
    assert!(shown.contains("Status: ✔ Connected") && shown.contains("Type: stdio"), "{shown}");
}

#[test]
fn claude_code_connects_over_http_with_a_token_and_is_refused_without_a_good_one() {
    let Some(home) = Home::with("claude") else { return };
    let (server, token) = home.connect_http("claude");
    let listed = home.run_with_token("claude", &["mcp", "list"], Some(&token));
    assert!(listed.contains("(HTTP) - ✔ Connected"), "{listed}\n{}", server.log());
    let listed = home.run_with_token("claude", &["mcp", "list"], Some(WRONG_TOKEN));
    assert!(listed.contains("✘ Failed to connect") && listed.contains("401"), "{listed}");
    assert!(server.log().contains("no such token"), "{}", server.log());
}
