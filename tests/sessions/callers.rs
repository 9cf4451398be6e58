//! Sessions of callers of `mcp-http`, who are strangers to each other.

use super::*;
use integration_tests::{Ask, Http, HttpServer};
use rustix::process::Signal;

const MODERN: Era = Era::Modern;

/// Starts a session.
fn started(client: &mut Http, arguments: Value) -> (String, u32, PathBuf) {
    let result = client.call("new_session", arguments);
    assert_eq!(result["isError"], false, "{result}");
    let started = &result["structuredContent"];
    let pid = u32::try_from(started["pid"].as_u64().unwrap()).unwrap();
    (text(&started["session_id"]), pid, PathBuf::from(text(&started["log"])))
}

fn status(client: &mut Http) -> Value {
    client.call("status", json!({}))["structuredContent"].clone()
}

/// The server in a folder that callers reach.
fn program(project: &Project, place: &str) -> String {
    let path = project.join(place);
    if !path.exists() {
        integration_tests::copy_server(&path);
    }
    path.display().to_string()
}

/// Returns true if programs are confined here.
fn is_fenced(client: &mut Http) -> bool {
    client.text("get_diagnostics", json!({})).contains("Landlock ABI")
}

#[test]
fn a_caller_sees_and_steers_its_own_sessions_and_others_are_as_if_they_were_not() {
    let project = Project::empty();
    for beside_a_daemon in [false, true] {
        let daemon = beside_a_daemon.then(|| Daemon::start(&project));
        let server = HttpServer::start(&project, &[]);
        let mut ada = server.connect(&server.token("ada", "orchestrator", &[]), MODERN);
        let mut bob = server.connect(&server.token("bob", "orchestrator", &[]), MODERN);
        let reads = "while read line; do echo \"heard $line\"; done";
        let (hers, pid, log) = started(&mut ada, json!({"command": ["sh", "-c", reads]}));
        let (his, ..) = started(&mut bob, json!({"command": ["sleep", "300"]}));
        // Each has one, and knows of no other.
        for (client, own, other) in [(&mut ada, &hers, &his), (&mut bob, &his, &hers)] {
            let list = client.text("list_sessions", json!({}));
            assert!(list.starts_with("1 sessions") && list.contains(own) && !list.contains(other), "{list}");
            let status = status(client);
            assert_eq!(status["current_session"].as_str(), Some(&**own), "{status}");
            assert!(!status.to_string().contains(other), "{status}");
            let log = client.text("logs", json!({"lines": 1000}));
            assert!(log.contains(own) && !log.contains(other), "{log}");
        }
        // What is asked of another's is answered as of one that there is not.
        let unknown = "00000000-0000-4000-8000-000000000000";
        for (tool, arguments) in [
            ("send_message", json!({"text": "x"})),
            ("end_session", json!({"grace": 0})),
            ("logs", json!({})),
        ] {
            let said = [&hers, unknown].map(|id| {
                let mut arguments = arguments.clone();
                arguments[if tool == "logs" { "session" } else { "session_id" }] = json!(id);
                bob.failure(tool, arguments).replace(id, "ID")
            });
            assert_eq!(said[0], said[1], "{tool}");
            assert!(said[0].contains("there is no session"), "{}", said[0]);
        }
        assert!(is_alive(pid));
        // Her pause is hers, and the user of the machine sees all.
        assert_eq!(ada.call("pause", json!({}))["structuredContent"]["state"], "paused");
        assert_eq!(
            (text(&status(&mut ada)["state"]), text(&status(&mut bob)["state"])),
            ("paused".to_owned(), "monitoring".to_owned())
        );
        assert_eq!(ask(&project, &["status"])["state"], "monitoring");
        assert_eq!(known(&project, &hers)["principal"], "ada");
        assert_eq!(known(&project, &his)["principal"], "bob");
        assert_eq!(ada.call("resume", json!({}))["structuredContent"]["changed"], true);
        assert_eq!(text(&ask(&project, &["status"])["owner"]), "daemon");
        if let Some(daemon) = &daemon {
            assert_eq!(status(&mut ada)["pid"], daemon.pid(), "there is one supervisor");
        }
        let said = ada.text("send_message", json!({"session_id": hers, "text": "hello"}));
        assert!(said.contains("input"), "{said}");
        until_said(&log, "heard hello");
        for (client, id) in [(&mut ada, &hers), (&mut bob, &his)] {
            client.text("end_session", json!({"session_id": id, "grace": 0}));
        }
        assert!(!is_alive(pid));
        drop(server);
    }
}

#[test]
fn a_session_reaches_what_its_callers_commands_reach_and_its_own_server_no_more() {
    let project = Project::with([("ada/a.txt", "ada's\n"), ("bob/b.txt", "bob's\n")]);
    let server = HttpServer::start(&project, &[]);
    let root = project.join("ada");
    let token = server.token("ada", "orchestrator", &["--only-root", root.to_str().unwrap()]);
    let mut ada = server.connect(&token, MODERN);
    // A command is read as `run_command` reads it, but that there is no `shell` to ask for.
    let said = ada.failure("new_session", json!({"command": "true && env"}));
    assert!(said.contains("`&&`") && said.contains(r#"-c","true && env"]}"#), "{said}");
    let said = ada.failure("new_session", json!({"command": ["true"], "cwd": "../bob"}));
    assert!(said.contains("outside"), "{said}");
    let program = program(&project, "ada/mcp-stdio");
    // Straight to the file; through a server with that root; and through a session of its own, which inherits all.
    let script = "cat ../bob/b.txt; cat a.txt; echo x > made; echo x > \"$TMPDIR/t\" && echo temporary; \
                  \"$0\" --root \"$1\" call read_file '{\"path\": \"bob/b.txt\"}'; \"$0\" call read_file '{\"path\": \"a.txt\"}'; \
                  \"$0\" session new --as orchestrator --json -- sh -c 'cat ../bob/b.txt a.txt; echo inner over' > inner; \
                  \"$0\" session list; echo over";
    let command = json!(["sh", "-c", script, program, project.path()]);
    let (id, _, log) = started(&mut ada, json!({"command": command, "role": "orchestrator"}));
    until_said(&log, "over");
    let inner: Value = serde_json::from_str(&project.read("ada/inner"))
        .unwrap_or_else(|_| panic!("{}", fs::read_to_string(&log).unwrap()));
    until_said(&PathBuf::from(text(&inner["log"])), "inner over");
    let said = fs::read_to_string(&log).unwrap() + &fs::read_to_string(text(&inner["log"])).unwrap();
    assert_eq!(said.matches("ada's").count(), 3, "{said}");
    assert!(project.join("ada/made").exists() && said.contains("temporary"), "{said}");
    assert_eq!(known(&project, &text(&inner["session_id"]))["principal"], "ada");
    assert_eq!(known(&project, &text(&inner["session_id"]))["parent"], *id);
    if is_fenced(&mut ada) {
        assert!(!said.contains("bob's"), "{said}");
    } else {
        // What is left without a fence is that its server keeps to its roots.
        assert_eq!(said.matches("bob's").count(), 2, "{said}");
    }
}

#[test]
fn a_session_has_no_role_that_its_caller_has_not() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let mut ada = server.connect(&server.token("ada", "orchestrator", &[]), MODERN);
    let program = program(&project, "mcp-stdio");
    let script = "\"$0\" session new -- sleep 300; echo ended with $?";
    let command = json!(["sh", "-c", script, program]);
    let (_, _, log) = started(&mut ada, json!({"command": command, "role": "worker"}));
    until_said(&log, "ended with 2");
    assert!(fs::read_to_string(&log).unwrap().contains("has no `new_session`"));
    // Who may start none as a tool has none to ask for.
    let mut dev = server.connect(&server.token("dev", "dev", &[]), MODERN);
    let said = dev.request("tools/call", json!({"name": "new_session", "arguments": {"command": ["true"]}}));
    assert!(said["error"].is_object(), "{said}");
    let mut narrowed = server.connect(&server.token("ada2", "orchestrator", &[]), MODERN);
    narrowed.headers = "X-CoreTools-Role: worker\r\n".to_owned();
    let said =
        narrowed.request("tools/call", json!({"name": "new_session", "arguments": {"command": ["true"]}}));
    assert!(said["error"].is_object(), "{said}");
}

#[test]
fn a_program_that_a_caller_runs_cannot_go_around_the_tools() {
    let project = Project::empty();
    for beside_a_daemon in [false, true] {
        let _daemon = beside_a_daemon.then(|| Daemon::start(&project));
        let server = HttpServer::start(&project, &[]);
        let mut ada = server.connect(&server.token("ada", "orchestrator", &[]), MODERN);
        if beside_a_daemon && !is_fenced(&mut ada) {
            // Nothing tells it from a program of the user's own.
            return;
        }
        let (id, pid, _) = started(&mut ada, json!({"command": ["sleep", "300"]}));
        let mut dev = server.connect(&server.token("dev", "dev", &[]), MODERN);
        let program = program(&project, "mcp-stdio");
        let inherited = project.state().display().to_string();
        for arguments in [vec!["list"], vec!["end", &id], vec!["new", "--", "sleep", "300"]] {
            let script =
                "XDG_STATE_HOME=$1 exec \"$0\" session \"$@\"".replace("\"$@\"", &arguments.join(" "));
            let said = dev.call("run_command", json!({"command": ["sh", "-c", script, program, inherited]}));
            let report = &said["structuredContent"];
            let error = text(&report["stderr"]);
            // In a mount namespace there is no socket of a supervisor at all.
            let is_refused = error.contains("steers no sessions") || error.contains("no supervisor runs");
            assert!(is_refused, "{arguments:?}: {said}");
        }
        assert!(is_alive(pid));
        ada.text("end_session", json!({"session_id": id, "grace": 0}));
    }
}

#[test]
fn a_caller_has_so_many_sessions_and_takes_none_from_others() {
    let (project, outside) = (Project::empty(), Project::empty());
    outside.write("coretools.toml", "[sessions]\nmax_per_caller = 2\n");
    let config = outside.join("coretools.toml");
    let server = HttpServer::start(&project, &["--config", config.to_str().unwrap()]);
    let mut ada = server.connect(&server.token("ada", "orchestrator", &[]), MODERN);
    let mut bob = server.connect(&server.token("bob", "orchestrator", &[]), MODERN);
    let sleep = json!({"command": ["sleep", "300"]});
    let (first, ..) = started(&mut ada, sleep.clone());
    started(&mut ada, sleep.clone());
    let said = ada.failure("new_session", sleep.clone());
    assert!(said.contains("2 of your sessions are not over"), "{said}");
    started(&mut bob, sleep.clone());
    ada.text("end_session", json!({"session_id": first, "grace": 0}));
    started(&mut ada, sleep);
}

#[test]
fn sessions_outlive_their_clients_end_with_their_server_and_are_taken_up_after_a_kill() {
    let project = Project::empty();
    let mut first = HttpServer::start(&project, &[]);
    let token = first.token("ada", "orchestrator", &[]);
    let mut ada = first.connect(&token, MODERN);
    let (id, pid, _) = started(&mut ada, json!({"command": ["sleep", "300"]}));
    drop(ada);
    assert_eq!(known(&project, &id)["state"], "running", "its client has gone");
    let tokens = fs::read(first.home().join("tokens.toml")).unwrap();
    first.signal(Signal::KILL);
    first.wait(PATIENCE);
    assert!(is_alive(pid), "no client and no server has ended it");
    let mut next = HttpServer::start_with(&project, &[], |home| {
        let path = home.join("tokens.toml");
        fs::write(&path, &tokens).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    });
    wait_until(PATIENCE, "it is taken up without being asked for", || {
        session(&project, &["status"]).status.success()
    });
    assert_eq!(known(&project, &id)["pid"], pid);
    let list = next.connect(&token, MODERN).text("list_sessions", json!({}));
    assert!(list.contains(&id), "{list}");
    next.signal(Signal::TERM);
    assert!(next.wait(PATIENCE).success());
    assert!(!is_alive(pid), "a server that ends leaves nothing behind");
    assert_eq!(session(&project, &["status"]).status.code(), Some(1));
}

#[test]
fn the_sessions_of_a_revoked_token_end() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let mut gone = server.connect(&server.token("gone", "orchestrator", &[]), MODERN);
    let mut stays = server.connect(&server.token("stays", "orchestrator", &[]), MODERN);
    let (id, ends, _) = started(&mut gone, json!({"command": ["sleep", "300"]}));
    let (_, goes_on, _) = started(&mut stays, json!({"command": ["sleep", "300"]}));
    assert!(server.tokens(&["revoke", "gone"]).status.success());
    wait_until(PATIENCE, "it ends", || !is_alive(ends));
    until_state(&project, &id, "stopped");
    assert!(is_alive(goes_on));
}

#[test]
fn the_sessions_of_a_token_that_was_removed_while_the_server_was_away_end_at_its_next_start() {
    let project = Project::empty();
    let mut first = HttpServer::start(&project, &[]);
    let [ada, bob] = ["ada", "bob"].map(|name| first.token(name, "orchestrator", &[]));
    let (id, ends, _) = started(&mut first.connect(&ada, MODERN), json!({"command": ["sleep", "300"]}));
    let (_, goes_on, _) = started(&mut first.connect(&bob, MODERN), json!({"command": ["sleep", "300"]}));
    first.signal(Signal::KILL);
    first.wait(PATIENCE);
    assert!(first.tokens(&["revoke", "ada"]).status.success());
    let tokens = fs::read(first.home().join("tokens.toml")).unwrap();
    assert!(is_alive(ends) && is_alive(goes_on));
    let _next = HttpServer::start_with(&project, &[], |home| {
        let path = home.join("tokens.toml");
        fs::write(&path, &tokens).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    });
    wait_until(PATIENCE, "it ends", || !is_alive(ends));
    until_state(&project, &id, "stopped");
    assert!(is_alive(goes_on), "its owner may still call");
}

#[test]
fn the_settings_of_sessions_are_read_again_on_sighup_and_wrong_ones_are_not_used() {
    let (project, outside) = (Project::empty(), Project::empty());
    outside.write("coretools.toml", "[sessions]\nmax_per_caller = 1\n");
    let config = outside.join("coretools.toml");
    let server = HttpServer::start(&project, &["--config", config.to_str().unwrap()]);
    let mut ada = server.connect(&server.token("ada", "orchestrator", &[]), MODERN);
    let sleep = json!({"command": ["sleep", "300"]});
    started(&mut ada, sleep.clone());
    assert!(ada.failure("new_session", sleep.clone()).contains("1 of your sessions"));
    outside.write("coretools.toml", "[sessions]\nmax_per_callers = 2\n");
    server.signal(Signal::HUP);
    wait_until(PATIENCE, "it is told", || server.log().contains("max_per_callers"));
    assert!(ada.failure("new_session", sleep.clone()).contains("1 of your sessions"));
    outside.write("coretools.toml", "[sessions]\nmax_per_caller = 2\n");
    server.signal(Signal::HUP);
    wait_until(PATIENCE, "a second one may be started", || {
        ada.call("new_session", sleep.clone())["isError"] == false
    });
    assert!(ada.failure("new_session", sleep).contains("2 of your sessions"));
}
