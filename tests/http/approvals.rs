//! Calls that a person must approve, over HTTP: by the client, and on the page.

use crate::SOON;
use crate::browser::Browser;
use crate::ui::{POST, ask, hidden, page, sign_in};
use integration_tests::{Era, HttpServer, Project, python_with_mcp, wait_until};
use serde_json::{Value, json};
use std::process::Command;

const POLICY: &str = r#"version = 1
[roles.minimal]
allow = ["get_diagnostics"]
[roles.boss]
allow = ["*"]
may_use = ["*"]
[roles.builder]
allow = ["*"]
ask = ["write_file"]
[[roles.builder.require]]
id = "programs"
tools = ["run_command"]
commands = ["true"]
otherwise = "ask"
"#;

/// A server with the policy, and the tokens of `boss` and of `ada`, a builder.
fn start(project: &Project, outside: &Project, config: &str) -> (HttpServer, String, String) {
    outside.write("roles.toml", POLICY);
    outside.write("coretools.toml", config);
    let (policy, config) = (outside.join("roles.toml"), outside.join("coretools.toml"));
    let server = HttpServer::start(
        project,
        &["--config", config.to_str().unwrap(), "--policy", policy.to_str().unwrap()],
    );
    let (boss, ada) = (server.token("boss", "boss", &[]), server.token("ada", "builder", &[]));
    (server, boss, ada)
}

fn write(path: &str) -> Value {
    json!({"name": "write_file", "arguments": {"path": path, "content": "text"}})
}

/// Runs `tests/python/approvals.py`, which says on standard error what does not hold.
fn python(mode: &str) {
    let Some(python) = python_with_mcp() else { return };
    let (project, outside) = (Project::empty(), Project::empty());
    let (server, _, ada) = start(&project, &outside, "");
    let output = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/python/approvals.py"))
        .args([mode, "http", &format!("http://{}/mcp", server.address()), &ada])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{}", server.log());
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "all of it holds", "{said}");
}

#[test]
fn the_official_python_client_answers_with_the_handshake() {
    python("legacy");
}

#[test]
fn the_official_python_client_answers_without_it() {
    python("2026-07-28");
}

/// Begins a call of `ada` in a thread of its own, which returns the result.
fn begin(server: &HttpServer, token: &str, era: Era, params: Value) -> std::thread::JoinHandle<Value> {
    let mut client = server.connect(token, era);
    std::thread::spawn(move || client.reply("tools/call", params).message()["result"].clone())
}

fn wait_for_question(server: &HttpServer, cookie: &str) -> String {
    let mut shown = String::new();
    wait_until(SOON, "the call waits", || {
        shown = page(server, "/ui/approvals", cookie);
        shown.contains("name=\"id\"")
    });
    shown
}

#[test]
fn an_operator_answers_on_the_page_and_the_call_holds_no_permit_meanwhile() {
    for era in Era::BOTH {
        let (project, outside) = (Project::with([("a.txt", "a")]), Project::empty());
        let config = "[limits]\nmax_concurrent_calls = 1\n[http]\ncalls_in_flight = 1\nqueue_ms = 2000\n";
        let (server, boss, ada) = start(&project, &outside, config);
        let cookie = sign_in(&server, &boss);
        let call = begin(&server, &ada, era, write("b.txt"));
        let shown = wait_for_question(&server, &cookie);
        assert!(shown.contains("An agent in the role builder asks to call write_file."), "{shown}");
        assert!(shown.contains("data-count=\"1\">1<"), "the badge: {shown}");
        // The caller and the server may make one call at once, and the caller makes another one.
        assert_eq!(server.connect(&ada, era).text("read_file", json!({"path": "a.txt"})), "a");
        let metrics = server.get("/metrics", Some(&boss)).body;
        assert!(metrics.contains("coretools_approvals_waiting 1\n"), "{metrics}");
        assert!(shown.contains(" left</strong>") && shown.contains("for eight hours at most"), "{shown}");
        let (id, secret) = (hidden(&shown, "id").to_owned(), hidden(&shown, "secret").to_owned());
        // Not without the secret of the form, not from another page, not by the agent itself.
        let headers = format!("{cookie}{POST}");
        for (headers, form, status) in [
            (headers.clone(), format!("id={id}&verdict=once"), 403),
            (
                format!("{headers}Sec-Fetch-Site: cross-site\r\n"),
                format!("id={id}&verdict=once&secret={secret}"),
                403,
            ),
            (format!("Authorization: Bearer {ada}\r\n{POST}"), format!("id={id}&verdict=once"), 403),
            (headers.clone(), format!("id={id}&verdict=perhaps&secret={secret}"), 400),
        ] {
            assert_eq!(ask(&server, "POST", "/ui/approvals", &headers, &form).status, status, "{form}");
        }
        let agent = format!("Authorization: Bearer {ada}\r\n");
        assert_eq!(ask(&server, "GET", "/ui/approvals", &agent, "").status, 404);
        let answer = |verdict: &str| {
            let form = format!("id={id}&verdict={verdict}&reason=&secret={secret}");
            ask(&server, "POST", "/ui/approvals", &headers, &form).header("location").unwrap().to_owned()
        };
        assert_eq!(answer("once"), "/ui/approvals?said=allowed");
        assert_eq!(answer("deny"), "/ui/approvals?said=late");
        let result = call.join().unwrap();
        assert_eq!(result["isError"], false, "{result}");
        assert_eq!(project.read("b.txt"), "text");
        // Denied, with a reason that the agent reads.
        let call = begin(&server, &ada, era, write("c.txt"));
        let shown = wait_for_question(&server, &cookie);
        let form = format!("id={}&verdict=deny&reason=not+today&secret={secret}", hidden(&shown, "id"));
        assert_eq!(
            ask(&server, "POST", "/ui/approvals", &headers, &form).header("location"),
            Some("/ui/approvals?said=denied")
        );
        let text = call.join().unwrap()["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(text.contains("denied this call, because: not today"), "{text}");
        let metrics = server.get("/metrics", Some(&boss)).body;
        for line in [
            "coretools_approvals_waiting 0",
            r#"coretools_approvals_total{answer="allowed once"} 1"#,
            r#"coretools_approvals_total{answer="denied"} 1"#,
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
        }
    }
}

#[test]
fn a_call_that_goes_on_with_an_answer_holds_one_permit() {
    let (project, outside) = (Project::empty(), Project::empty());
    let (server, _, ada) = start(&project, &outside, "[http]\ncalls_in_flight = 1\nqueue_ms = 2000\n");
    let mut client = server.connect(&ada, Era::Modern);
    let mut params = write("b.txt");
    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    let asked = client.reply("tools/call", params.clone()).message()["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] =
        json!({"approval": {"action": "accept", "content": {"decision": "allow once"}}});
    // The permit of the request that brings the answer is the only one of this caller.
    let result = client.reply("tools/call", params).message()["result"].clone();
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(project.read("b.txt"), "text");
}

#[test]
fn a_client_that_goes_away_takes_its_question_back() {
    let (project, outside) = (Project::empty(), Project::empty());
    let (server, boss, ada) = start(&project, &outside, "");
    let cookie = sign_in(&server, &boss);
    let stream = server.connect(&ada, Era::Modern).begin("tools/call", write("b.txt"));
    wait_for_question(&server, &cookie);
    drop(stream);
    wait_until(SOON, "the question is taken back", || {
        !page(&server, "/ui/approvals", &cookie).contains("name=\"id\"")
    });
    assert!(!project.join("b.txt").exists());
}

#[test]
fn a_call_is_allowed_in_a_browser() {
    let Some(mut browser) = Browser::start() else { return };
    let (project, outside) = (Project::empty(), Project::empty());
    let (server, boss, ada) = start(&project, &outside, "");
    browser.sign_in(&server, &boss);
    assert_eq!(browser.eval("document.querySelector('#pending').innerText.trim()"), "");
    let call = begin(&server, &ada, Era::Modern, write("<b>b</b>.txt"));
    // The badge comes without the page being loaded again.
    browser.wait("document.querySelector('#pending').innerText.trim() === '1'");
    browser.open(&format!("http://{}/ui/approvals", server.address()));
    assert_eq!(browser.eval("document.querySelectorAll('main b').length"), 0, "arguments are text");
    browser.picture("approvals");
    // What is typed stays while the page is kept up to date.
    browser.eval("document.querySelector('article input[name=reason]').focus(); 0");
    browser.call("Input.insertText", json!({"text": "because"}));
    let other = begin(&server, &ada, Era::Modern, write("c.txt"));
    browser.wait("document.querySelector('#pending').innerText.trim() === '2'");
    assert_eq!(browser.eval("document.querySelector('article input[name=reason]').value"), "because");
    // Also when the field has lost the focus, and the list is made anew.
    browser.eval("document.activeElement.blur(); 0");
    browser.wait("document.querySelectorAll('article').length === 2");
    assert_eq!(browser.eval("document.querySelector('article input[name=reason]').value"), "because");
    browser.eval("document.querySelector('article button[value=deny]').click(); 0");
    browser.wait("document.querySelector('[role=status]').innerText === 'The call was denied.'");
    let denied = call.join().unwrap();
    assert!(denied.to_string().contains("because: because"), "{denied}");
    browser.eval("document.querySelector('article button[value=once]').click(); 0");
    browser.wait("document.querySelector('[role=status]').innerText === 'The call was allowed.'");
    assert_eq!(other.join().unwrap()["isError"], false);
    assert!(project.join("c.txt").exists());
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
