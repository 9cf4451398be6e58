//! A role with named hosts, in each client: a command and the client's own tool for the web reach no other host, and the
//! reason reaches the model.

use crate::governed::{CODEX, COPILOT, GEMINI, GovernedClient, OPENCODE};
use crate::home::ClientHome;
use crate::hooks::{REFUSED, audit, converse};
use crate::hooks_of_claude;
use crate::model::{RequestedCall, ScriptedModel, text};
use serde_json::json;
use skipped_tests::require;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server on every address of this machine, which counts its visitors.
struct CountingServer {
    port: u16,
    visits: Arc<AtomicUsize>,
}

impl CountingServer {
    fn start() -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let (port, visits) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&visits);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.read(&mut [0; 4096]);
                let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 8\r\nConnection: close\r\n\r\nthe page";
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { port, visits }
    }
}

/// A client with the parts of a conversation that differ.
struct Visitor {
    name: &'static str,
    command: fn(&ClientHome, &ScriptedModel) -> Command,
    configure: fn(&ClientHome, &ScriptedModel),
    connect: fn(&ClientHome, &[&str]),
    /// The call of its shell.
    line: fn(&ClientHome, &str) -> RequestedCall,
    /// The call of its tool that fetches a page, if it has one.
    fetch: Option<fn(&str) -> RequestedCall>,
}

impl Visitor {
    fn of(
        client: &GovernedClient,
        fetch: Option<fn(&str) -> RequestedCall>,
        line: fn(&ClientHome, &str) -> RequestedCall,
    ) -> Self {
        let GovernedClient { name, command, configure, connect, .. } = *client;
        Self { name, command, configure, connect, line, fetch }
    }
}

fn check(visitor: &Visitor) {
    let namespace = process_runner::NetworkNamespace::create();
    let missing = namespace.as_ref().err().map(ToString::to_string).unwrap_or_default();
    if require(namespace.ok(), &missing).is_none() {
        return;
    }
    let Some(home) = ClientHome::with(visitor.name) else { return };
    let server = CountingServer::start();
    let port = server.port;
    let policy = format!(
        "version = 1\n[roles.minimal]\nallow = [\"get_diagnostics\"]\n[roles.online]\nallow = [\"*\"]\n\
         deny = [\"run_agent_command\"]\nnetwork = {{ hosts = [\"127.0.0.2:{port}\"] }}\n"
    );
    home.write("roles.toml", &policy);
    let curl =
        |address: &str, options: &str| format!("curl -sS --max-time 20 {options} http://{address}:{port}/");
    let forbidden = format!("`127.0.0.3:{port}` is not in this role's hosts");
    let mut calls = vec![
        (visitor.line)(&home, &curl("127.0.0.2", "")),
        (visitor.line)(&home, &curl("127.0.0.3", "")),
        // Past the proxy.
        (visitor.line)(&home, &curl("127.0.0.3", "--noproxy '*'")),
        ("run_command", json!({"command": curl("127.0.0.3", "")})),
    ];
    calls.extend(visitor.fetch.map(|fetch| fetch(&format!("http://127.0.0.3:{port}/"))));
    let model = ScriptedModel::asking(&calls);
    (visitor.configure)(&home, &model);
    let (policy, root) = (home.path("roles.toml"), home.project.path().to_path_buf());
    let role = ["--role", "online", "--policy", policy.to_str().unwrap()];
    let mut install = home.own_program(&role);
    install.arg("--audit").arg(home.path("audit.jsonl")).args(["hook", "install", visitor.name]);
    crate::home::said(&install.output().unwrap());
    (visitor.connect)(&home, &[&role[..], &["--root", root.to_str().unwrap()]].concat());
    let results = converse((visitor.command)(&home, &model), &model, &calls);
    let texts: Vec<String> = results.iter().map(text).collect();
    assert!(texts[0].contains("the page"), "{texts:#?}");
    assert!(texts[1].contains(&forbidden) && !texts[1].contains("the page"), "{texts:#?}");
    assert!(texts[2].contains("curl: (7)") && !texts[2].contains("the page"), "{texts:#?}");
    let is_told = texts[3].contains("refused connections") || texts[3].contains("refused_connections");
    assert!(is_told && texts[3].contains(&forbidden), "{texts:#?}");
    if visitor.fetch.is_some() {
        assert!(texts[4].contains(REFUSED) && texts[4].contains(&forbidden), "{texts:#?}");
    }
    assert_eq!(server.visits.load(Ordering::SeqCst), 1, "{texts:#?}");
    let lines = audit(&home);
    let told = lines.iter().filter(|line| line["refused_connections"].to_string().contains(&forbidden));
    assert_eq!(told.count(), 1, "{lines:#?}");
}

#[test]
fn claude_code_reaches_no_host_that_its_role_does_not_name() {
    check(&Visitor {
        name: "claude",
        command: hooks_of_claude::claude,
        configure: |_, _| {},
        connect: |home, arguments| home.connect("claude", arguments),
        line: |_, line| ("own:Bash", json!({"command": line})),
        fetch: Some(|url| ("own:WebFetch", json!({"url": url, "prompt": "read it"}))),
    });
}

#[test]
fn codex_reaches_no_host_that_its_role_does_not_name() {
    // Its search of the web runs at its maker, without a call that a hook could see.
    check(&Visitor::of(&CODEX, None, |_, line| {
        ("own:exec_command", json!({"cmd": line, "yield_time_ms": 30000}))
    }));
}

#[test]
fn gemini_cli_reaches_no_host_that_its_role_does_not_name() {
    let fetch: fn(&str) -> RequestedCall =
        |url| ("own:web_fetch", json!({"prompt": format!("Read {url} and sum it up")}));
    check(&Visitor::of(&GEMINI, Some(fetch), |_, line| ("own:run_shell_command", json!({"command": line}))));
}

#[test]
fn opencode_reaches_no_host_that_its_role_does_not_name() {
    let fetch: fn(&str) -> RequestedCall = |url| ("own:webfetch", json!({"url": url, "format": "text"}));
    check(&Visitor::of(&OPENCODE, Some(fetch), |_, line| {
        ("own:bash", json!({"command": line, "description": "fetch"}))
    }));
}

#[test]
fn copilot_cli_reaches_no_host_that_its_role_does_not_name() {
    // It has a tool for the web only with an account.
    check(&Visitor::of(&COPILOT, None, |_, line| {
        ("own:bash", json!({"command": line, "description": "fetch"}))
    }));
}
