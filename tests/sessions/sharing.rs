//! One supervisor for all who ask, whoever hosts it.

use super::*;

fn connect(project: &Project) -> Wire {
    Wire::connect(project.server(), Era::Modern)
}

fn started(wire: &mut Wire, arguments: Value) -> Value {
    let result = wire.call("new_session", arguments);
    assert_eq!(result["isError"], false, "{result}");
    result["structuredContent"].clone()
}

fn pid(started: &Value) -> u32 {
    u32::try_from(started["pid"].as_u64().unwrap()).unwrap()
}

#[test]
fn a_server_beside_a_daemon_uses_its_sessions_and_they_outlive_it() {
    let project = Project::empty();
    let daemon = Daemon::start(&project);
    let mut wire = connect(&project);
    let new = started(&mut wire, json!({"command": ["sleep", "300"], "role": "worker"}));
    assert_eq!((text(&new["owner"]), text(&new["role"])), ("daemon".to_owned(), "worker".to_owned()));
    let status = wire.call("status", json!({}))["structuredContent"].clone();
    assert_eq!(status["pid"], daemon.pid());
    assert_eq!(ask(&project, &["list"])["sessions"][0]["session_id"], new["session_id"]);
    wire.close_input();
    wire.wait(PATIENCE);
    assert!(is_alive(pid(&new)), "it belongs to the daemon");
    assert_eq!(known(&project, &text(&new["session_id"]))["state"], "running");
}

#[test]
fn the_sessions_of_a_lone_server_are_everybodys_and_end_with_it() {
    let project = Project::empty();
    let (mut first, mut second) = (connect(&project), connect(&project));
    let new = started(&mut first, json!({"command": "sleep 300"}));
    assert_eq!(text(&new["owner"]), "server");
    let id = text(&new["session_id"]);
    // Another server and the command line reach the same one.
    let list = second.text("list_sessions", json!({}));
    assert!(list.contains(&id), "{list}");
    assert_eq!(known(&project, &id)["pid"], new["pid"]);
    assert_eq!(text(&ask(&project, &["pause"])["state"]), "paused");
    assert_eq!(first.call("status", json!({}))["structuredContent"]["state"], "paused");
    let other = started(&mut second, json!({"command": "sleep 300"}));
    first.close_input();
    first.wait(PATIENCE);
    wait_until(PATIENCE, "they ended with their server", || !is_alive(pid(&new)) && !is_alive(pid(&other)));
    // The next that is asked takes over, and remembers.
    let status = second.call("status", json!({}))["structuredContent"].clone();
    assert_eq!(text(&status["state"]), "paused");
    // On a loaded machine its guardian may have been faster than itself.
    let reason = text(&known(&project, &id)["last_stop"]["reason"]);
    assert!(matches!(reason.as_str(), "ended" | "lost"), "{reason}");
}

#[test]
fn the_sessions_of_a_lone_server_end_also_when_it_is_killed() {
    let project = Project::empty();
    let mut wire = connect(&project);
    let new = started(&mut wire, json!({"command": ["sh", "-c", "setsid sleep 300 & sleep 300"]}));
    let id = text(&new["session_id"]);
    wire.signal(rustix::process::Signal::KILL);
    wait_until(PATIENCE, "the guardian ended it", || !is_alive(pid(&new)));
    let mut wire = connect(&project);
    let list = wire.text("list_sessions", json!({"all": true}));
    assert!(list.contains(&id) && list.contains("\"lost\""), "{list}");
}

#[test]
fn many_servers_that_ask_at_once_have_one_supervisor() {
    let project = Project::empty();
    let mut wires: Vec<Wire> = (0..6).map(|_| connect(&project)).collect();
    let asked: Vec<i64> = wires
        .iter_mut()
        .map(|wire| wire.ask("tools/call", json!({"name": "status", "arguments": {}})))
        .collect();
    let pids: std::collections::BTreeSet<u64> = wires
        .iter_mut()
        .zip(asked)
        .map(|(wire, id)| wire.answer(id)["result"]["structuredContent"]["pid"].as_u64().unwrap())
        .collect();
    assert_eq!(pids.len(), 1, "{pids:?}");
}

#[test]
fn a_followed_log_is_sent_as_progress() {
    let project = Project::empty();
    let mut wire = connect(&project);
    let script = "while [ ! -e go ]; do sleep 0.1; done; echo one; sleep 3; echo two; sleep 300";
    let new = started(&mut wire, json!({"command": ["sh", "-c", script]}));
    let arguments = json!({"session": new["session_id"], "follow": true, "lines": 2});
    let call = json!({"name": "logs", "arguments": arguments, "_meta": {"progressToken": "t"}});
    let asked = wire.ask("tools/call", call);
    // What was said before the call is no progress, which is sent once a second.
    std::thread::sleep(Duration::from_secs(2));
    project.write("go", "");
    let answer = wire.answer(asked);
    let said = answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(
        said.starts_with("2 of 2 lines; cursor ") && said.contains("one") && said.contains("two"),
        "{said}"
    );
    let progress: String = wire
        .others()
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .filter_map(|message| message["params"]["message"].as_str().map(str::to_owned))
        .collect();
    assert!(progress.contains("one"), "{progress}");
}
