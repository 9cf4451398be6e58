//! The agent's side: what a session that was started in a role sees and may call, and what it cannot make of that.

use super::*;
use integration_tests::python_with_mcp;
use std::path::Path;

/// An agent that is a real MCP client, of the official package: it starts the server in its environment, as agents do,
/// and reports what it sees.
fn client() -> Option<(String, String)> {
    let python = python_with_mcp()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/session.py");
    Some((python.display().to_string(), script.display().to_string()))
}

/// Returns what the agent of a session in `role` reports, after `meddling`.
fn report(project: &Project, role: Option<&str>, meddling: &str) -> Option<Value> {
    let (python, script) = client()?;
    let server = integration_tests::server().display().to_string();
    let _ = fs::remove_file(project.join("report.json"));
    let command = format!("{meddling}\nexec \"$@\"");
    let mut arguments = vec!["--prompt", "report.json"];
    arguments.extend(role.map(|role| ["--as", role]).into_iter().flatten());
    arguments.extend(["--", "sh", "-c", &command, "sh", &python, &script, &server]);
    let (id, _, log) = start(project, &arguments);
    wait_until(PATIENCE, "the agent reports", || known(project, &id)["state"] != "running");
    let printed = fs::read_to_string(log).unwrap();
    let report = fs::read_to_string(project.join("report.json")).unwrap_or_else(|_| panic!("{printed}"));
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["session"], id);
    Some(report)
}

fn sees(report: &Value, tool: &str) -> bool {
    report["tools"].as_array().unwrap().iter().any(|name| name == tool)
}

const STEERING: [&str; 6] =
    ["new_session", "run_agent_command", "send_message", "end_session", "pause", "resume"];

#[test]
fn a_worker_sees_the_workers_list_and_an_orchestrator_everything() {
    let project = Project::empty();
    let _daemon = Daemon::start(&project);
    let Some(worker) = report(&project, Some("worker"), "") else { return };
    for tool in STEERING {
        assert!(!sees(&worker, tool), "{tool}");
        assert_eq!(worker["called"][tool], "no such tool", "{tool}: {worker}");
    }
    assert!(sees(&worker, "read_file") && sees(&worker, "status") && sees(&worker, "logs"));
    let orchestrator = report(&project, Some("orchestrator"), "").unwrap();
    assert!(STEERING.iter().all(|tool| sees(&orchestrator, tool)));
    assert_eq!(orchestrator["called"]["pause"], "ok");
    assert_eq!(text(&ask(&project, &["status"])["state"]), "paused", "it reached the daemon that started it");
}

#[test]
fn what_an_agent_makes_of_its_marker_only_takes_away() {
    let project = Project::empty();
    let _daemon = Daemon::start(&project);
    let grow = "for name in coretools_role teleclaude_role; do echo orchestrator > \"$TMPDIR/$name\"; done";
    let Some(grown) = report(&project, Some("worker"), grow) else { return };
    assert!(!sees(&grown, "new_session") && sees(&grown, "read_file"));
    let shrink = "for name in coretools_role teleclaude_role; do echo readonly > \"$TMPDIR/$name\"; done";
    let shrunk = report(&project, Some("worker"), shrink).unwrap();
    assert!(!sees(&shrunk, "write_file") && sees(&shrunk, "read_file"));
    let without = report(&project, Some("worker"), "rm \"$TMPDIR\"/*").unwrap();
    assert!(!sees(&without, "new_session"), "the credential says the same");
    let forged = report(&project, Some("worker"), "export CORETOOLS_SESSION_TOKEN=cts_0").unwrap();
    assert_eq!(forged["tools"], json!(["get_diagnostics"]), "what is forged is worth nothing");
}

#[test]
fn a_session_within_a_session_has_no_more_than_that() {
    let project = Project::empty();
    let _daemon = Daemon::start(&project);
    let server = integration_tests::server().display().to_string();
    // The agent goes around its MCP server, straight to the command line.
    let script = format!(
        "'{server}' session new -- sh -c 'sleep 300' > out 2>&1; echo $? > code; \
         env -u CORETOOLS_SESSION_TOKEN TMPDIR=/tmp '{server}' session new -- sleep 300 > out2 2>&1; echo $? > code2"
    );
    let (id, ..) = start(&project, &["--as", "worker", "--", "sh", "-c", &script]);
    until_state(&project, &id, "stopped");
    assert_eq!((project.read("code").trim(), project.read("code2").trim()), ("2", "2"));
    assert!(project.read("out").contains("has no `new_session`"), "{}", project.read("out"));
    let refused = project.read("out2");
    assert!(refused.contains("runs as worker, which starts and steers no sessions"), "{refused}");
    assert_eq!(ask(&project, &["list"])["sessions"], json!([]));
}

#[test]
fn a_role_follows_from_the_command_and_is_narrowed_by_the_callers() {
    let project = Project::empty();
    let claude = agent(&project, "claude", "echo \"$@\"; sleep 300");
    let mut daemon = project.server();
    daemon.env("CORETOOLS_SESSIONS_COMMAND", &claude);
    let _daemon = Daemon::with(&project, daemon);
    let mut wire = Wire::connect(project.server(), Era::Modern);
    for (command, role) in [("/next-build", "worker"), ("next-review", "worker"), ("/prime", "orchestrator")]
    {
        let result = wire.call("run_agent_command", json!({"command": command, "args": "12"}));
        assert_eq!(result["isError"], false, "{result}");
        let started = &result["structuredContent"];
        assert_eq!(started["role"], role, "{command}");
        let slash = format!("/{} 12", command.trim_start_matches('/'));
        until_said(&PathBuf::from(text(&started["log"])), &slash);
    }
    let asked = json!({"command": "/next-build", "role": "orchestrator"});
    let result = wire.call("run_agent_command", asked);
    assert_eq!(result["structuredContent"]["role"], "worker", "the rule is not overridden: {result}");
    let wrong = wire.failure("run_agent_command", json!({"command": "next build"}));
    assert!(wrong.contains("is one word"), "{wrong}");
}

#[test]
fn the_processes_of_a_session_get_so_much_memory_as_each_of_its_roles_may_use() {
    let project = Project::empty();
    let _daemon = Daemon::start(&project);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("roles.toml");
    let policy = "version = 1\n[roles.minimal]\nallow = [\"get_diagnostics\"]\n\
                  [roles.lead]\nallow = [\"*\"]\nmay_use = [\"small\"]\nlimits = { max_memory_mib = 300 }\n\
                  [roles.small]\nallow = [\"*\"]\nlimits = { max_memory_mib = 100 }\n";
    fs::write(&file, policy).unwrap();
    let eater = "my $text = 'x' x (100 << 20); print \"grew\\n\"";
    let script = format!("perl -e '{eater}' 2>&1 || echo refused; sleep 600");
    for (role, bytes, said) in [(None, 300 << 20, "grew"), (Some("small"), 100 << 20, "refused")] {
        let mut arguments = json!({"command": ["sh", "-c", script]});
        if let Some(role) = role {
            arguments["role"] = json!(role);
        }
        let mut command = project.server();
        command.env("CORETOOLS_TOOLSETS", "all").args(["--role", "lead", "--policy"]).arg(&file);
        let output = command.args(["call", "new_session", &arguments.to_string()]).output().unwrap();
        let started: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        let pid = u32::try_from(started["pid"].as_u64().unwrap()).unwrap();
        assert_eq!(integration_tests::memory_limit(pid), Some(bytes), "{role:?}");
        until_said(&PathBuf::from(text(&started["log"])), said);
    }
}
