//! Gemini CLI, in a folder that its user has said to trust: in another it starts no server.

use crate::home::{Home, WRONG_TOKEN};

/// The project is trusted, as the dialog at the first start records it.
fn trusting() -> Option<Home> {
    let home = Home::with("gemini")?;
    let trusted = serde_json::json!({home.project.path().to_str().unwrap(): "TRUST_FOLDER"});
    home.write(".gemini/trustedFolders.json", &trusted.to_string());
    Some(home)
}

#[test]
fn gemini_connects_with_what_print_config_prints() {
    let Some(home) = trusting() else { return };
    home.connect_stdio("gemini");
    let listed = home.run("gemini", &["mcp", "list"]);
    assert!(listed.contains("✓ coretools") && listed.contains("(stdio) - Connected"), "{listed}");
}

#[test]
fn gemini_starts_no_server_in_a_folder_that_is_not_trusted() {
    let Some(home) = Home::with("gemini") else { return };
    home.connect_stdio("gemini");
    let listed = home.run("gemini", &["mcp", "list"]);
    assert!(listed.contains("(stdio) - Disabled"), "{listed}");
}

#[test]
fn gemini_connects_over_http_with_a_token_and_is_refused_without_a_good_one() {
    let Some(home) = trusting() else { return };
    let (server, token) = home.connect_http("gemini");
    let listed = home.run_with_token("gemini", &["mcp", "list"], Some(&token));
    assert!(listed.contains("(http) - Connected"), "{listed}\n{}", server.log());
    let listed = home.run_with_token("gemini", &["mcp", "list"], Some(WRONG_TOKEN));
    assert!(listed.contains("(http) - Disconnected"), "{listed}");
    assert!(server.log().contains("no such token"), "{}", server.log());
}
