//! opencode.

use crate::home::{Home, WRONG_TOKEN};

#[test]
fn opencode_connects_with_what_print_config_prints() {
    let Some(home) = Home::with("opencode") else { return };
    home.connect_stdio("opencode");
    let listed = home.run("opencode", &["mcp", "list"]);
    assert!(listed.contains("✓ coretools"), "{listed}");
}

#[test]
fn opencode_connects_over_http_with_a_token_and_is_refused_without_a_good_one() {
    let Some(home) = Home::with("opencode") else { return };
    let (server, token) = home.connect_http("opencode");
    let listed = home.run_with_token("opencode", &["mcp", "list"], Some(&token));
    assert!(listed.contains("✓ coretools"), "{listed}\n{}", server.log());
    let listed = home.run_with_token("opencode", &["mcp", "list"], Some(WRONG_TOKEN));
    assert!(listed.contains("✗ coretools") && listed.contains("401"), "{listed}");
}
