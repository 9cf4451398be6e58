//! The channel: what comes before the answer, other versions, lies, and the death of either end.

use crate::{Machines, script};
use integration_tests::{Era, Wire, server, sleeping, unique_seconds, wait_until, wait_until_gone};
use serde_json::json;
use std::time::Duration;

/// A line of a shell that answers the first message as a server would, and then runs `then`. `$line` is the message.
fn liar(answer: &str, then: &str) -> String {
    let id = r#"$(printf %s "$line" | sed 's/.*"id":"\([^"]*\)".*/\1/')"#;
    let version = r#"$(printf %s "$line" | sed 's/.*"version":"\([^"]*\)".*/\1/')"#;
    let answer = answer.replace("VERSION", "$version").replace('"', "\\\"");
    format!("read -r line; id={id}; version={version}; echo \"{answer}\" | sed \"s/ID/$id/\"; {then}")
}

const HONEST: &str =
    r#"{"jsonrpc":"2.0","id":"ID","result":{"version":"VERSION","system":"linux","architecture":"x86_64"}}"#;

#[test]
fn what_a_shell_prints_before_the_server_is_skipped_and_too_much_of_it_is_told() {
    let machines = Machines::with([("a.txt", "there\n")]);
    let greeting = format!(
        "echo 'Welcome to build-box'; echo '{{\"jsonrpc\":\"2.0\"}}'; exec {} remote-server",
        server().display()
    );
    let mut client = Wire::connect(machines.command_by(&machines.remote_by(&greeting)), Era::Modern);
    assert!(client.text("read_file", json!({"path": "a.txt"})).contains("there"));
    let endless = machines.remote_by("yes this is a very long greeting that never ends");
    let mut client = Wire::connect(machines.command_by(&endless), Era::Modern);
    let error = client.failure("read_file", json!({"path": "a.txt"}));
    assert!(
        error.contains("65536 bytes came before an answer") && error.contains("very long greeting"),
        "{error}"
    );
}

#[test]
fn a_command_that_cannot_connect_is_told_by_its_end_and_its_last_words() {
    let machines = Machines::with([]);
    for (line, words) in [
        (
            "echo 'Permission denied (publickey).' >&2; exit 255",
            ["exited with code 255", "Permission denied"],
        ),
        ("exec /no/such/mcp-stdio remote-server", ["exited with code 127", "/no/such/mcp-stdio"]),
        ("kill -9 $$", ["signal 9", "KILL"]),
    ] {
        let mut client = Wire::connect(machines.command_by(&machines.remote_by(line)), Era::Modern);
        let error = client.failure("list_directory", json!({"path": "."}));
        assert!(words.iter().all(|word| error.contains(word)), "{line}: {error}");
    }
}

#[test]
fn a_server_of_another_version_is_refused_by_name() {
    let machines = Machines::with([]);
    let other = HONEST.replace("VERSION", "9.9.9");
    let mut client =
        Wire::connect(machines.command_by(&machines.remote_by(&liar(&other, "sleep 60"))), Era::Modern);
    let error = client.failure("list_directory", json!({"path": "."}));
    assert!(
        error.contains("9.9.9") && error.contains(env!("CARGO_PKG_VERSION")) && error.contains("copy_binary"),
        "{error}"
    );
}

#[test]
fn another_build_of_the_same_version_is_refused_by_its_hash() {
    let machines = Machines::with([("a.txt", "there\n")]);
    let program = server().display();
    let by = |edit: &str| format!("{program} remote-server | sed -u '1s/{edit}/'");
    let mut same = Wire::connect(machines.command_by(&machines.remote_by(&by("no/no"))), Era::Modern);
    assert!(same.text("read_file", json!({"path": "a.txt"})).contains("there"));
    // The answer of the far end names another build of this version.
    let edit = by("+[0-9a-f]*/+0123456789abcdef");
    let mut other = Wire::connect(machines.command_by(&machines.remote_by(&edit)), Era::Modern);
    let error = other.failure("read_file", json!({"path": "a.txt"}));
    let there = format!("{}+0123456789abcdef", env!("CARGO_PKG_VERSION"));
    assert!(error.contains(&there) && error.contains("copy_binary"), "{error}");
}

#[test]
fn a_call_fails_once_if_the_server_there_dies_and_the_next_one_gets_another_connection() {
    let machines = Machines::with([("a.txt", "there\n")]);
    // Each start is noted, to see that nothing is sent twice.
    let log = machines.front.join("starts");
    let line = format!("echo start >> {}; exec {} remote-server", log.display(), server().display());
    let mut client = Wire::connect(machines.command_by(&machines.remote_by(&line)), Era::Modern);
    let seconds = unique_seconds();
    let command = format!("echo ran >> ran; sleep {seconds}");
    let id = client
        .ask("tools/call", json!({"name": "run_command", "arguments": {"command": command, "shell": true}}));
    wait_until(Duration::from_secs(20), "the command runs", || !sleeping(&seconds).is_empty());
    let there = integration_tests::alive("remote-server");
    let there: Vec<u32> = there
        .into_iter()
        .filter(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok() && parent_is(*pid, client.pid()))
        .collect();
    assert_eq!(there.len(), 1);
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(i32::try_from(there[0]).unwrap()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    let answer = client.answer(id);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    assert!(
        answer["result"]["isError"] == true && text.contains("may have run, and is not sent again"),
        "{answer}"
    );
    wait_until_gone(&format!("sleep {seconds}"), Duration::from_secs(10));
    assert!(client.text("read_file", json!({"path": "a.txt"})).contains("there"));
    assert_eq!(machines.there.read("ran").lines().count(), 1);
    assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), 2);
}

/// Returns true if `ancestor` is above the process.
fn parent_is(pid: u32, ancestor: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse::<u32>().ok());
    parent.is_some_and(|parent| parent == ancestor || parent > 1 && parent_is(parent, ancestor))
}

#[test]
fn what_ran_in_the_background_of_a_lost_connection_is_told_once() {
    let machines = Machines::with([("a.txt", "there\n")]);
    let die = machines.front.join("die");
    // The channel ends when the file appears.
    let line = format!(
        "{} remote-server & pid=$!; while [ ! -e {} ]; do sleep 0.05; done; kill -9 $pid; wait $pid",
        server().display(),
        die.display()
    );
    // The server in the background of a shell would read nothing: its input is that of the shell.
    let line = format!("exec 3<&0; {}", line.replace("remote-server &", "remote-server <&3 &"));
    let mut client = Wire::connect(machines.command_by(&machines.remote_by(&line)), Era::Modern);
    let seconds = unique_seconds();
    client.call("start_command", json!({"command": format!("sleep {seconds}")}));
    std::fs::write(&die, "").unwrap();
    wait_until_gone(&format!("sleep {seconds}"), Duration::from_secs(10));
    std::fs::remove_file(&die).unwrap();
    let mut error = client.failure("read_file", json!({"path": "a.txt"}));
    // A call that was sent before the end was seen fails as one that was open.
    if error.contains("while the call was open") {
        error = client.failure("read_file", json!({"path": "a.txt"}));
    }
    assert!(error.contains("background commands and sessions are gone"), "{error}");
    assert!(client.text("read_file", json!({"path": "a.txt"})).contains("there"));
}

#[test]
fn a_channel_that_lies_fails_the_calls_that_are_open_and_harms_nothing_else() {
    let machines = Machines::with([]);
    let line = machines.front.join("lie");
    for (lie, words) in [
        ("not json", "no message of the protocol"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"content":[]}}"#, "no message of the protocol"),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":1}]}}"#,
            "its answer is refused",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","content":[]}}"#,
            "its answer is refused",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#, "refused the call: no"),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}],"structuredContent":3}}"#,
            "its answer is refused",
        ),
    ] {
        script(&line, &liar(HONEST, &format!("read -r call; echo '{lie}'; sleep 60")));
        let mut client =
            Wire::connect(machines.command_by(&machines.remote_by(&line.display().to_string())), Era::Modern);
        let error = client.failure("list_directory", json!({"path": "."}));
        assert!(error.contains(words), "{lie}: {error}");
    }
}

#[test]
fn the_answer_of_a_channel_is_masked_and_what_nobody_asked_for_is_dropped() {
    let machines = Machines::with([]);
    let line = machines.front.join("lie");
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"key {secret}"}}]}}}}"#
    );
    let request = r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}"#;
    let unasked = r#"{"jsonrpc":"2.0","id":99,"result":{"content":[{"type":"text","text":"x"}]}}"#;
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let then = format!(
        "read -r call; echo '{request}'; echo '{unasked}'; echo '{notification}'; echo '{answer}'; sleep 60"
    );
    script(&line, &liar(HONEST, &then));
    let mut client =
        Wire::connect(machines.command_by(&machines.remote_by(&line.display().to_string())), Era::Modern);
    let text = client.text("list_directory", json!({"path": "."}));
    assert!(text.contains("[redacted") && !text.contains(secret), "{text}");
    assert_eq!(client.others(), Vec::<serde_json::Value>::new());
}

#[test]
fn nothing_stays_there_if_the_server_in_front_is_killed() {
    let machines = Machines::with([]);
    let mut client = machines.connect();
    let seconds = unique_seconds();
    client.call("start_command", json!({"command": format!("sleep {seconds}")}));
    assert_eq!(sleeping(&seconds).len(), 1);
    client.signal(rustix::process::Signal::KILL);
    wait_until_gone(&format!("sleep {seconds}"), Duration::from_secs(10));
}

#[test]
fn a_server_there_gets_no_secret_of_the_environment_in_front() {
    let machines = Machines::with([]);
    let mut command = machines.command();
    command.env("DEPLOY_TOKEN", "do-not-pass-this-on").env("CORETOOLS_LOG", "error");
    let mut client = Wire::connect(command, Era::Modern);
    let text = client.call("run_command", json!({"command": "env"})).to_string();
    assert!(!text.contains("DEPLOY_TOKEN") && !text.contains("CORETOOLS_"), "{text}");
    assert!(text.contains("PATH="), "{text}");
}
