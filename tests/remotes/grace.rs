//! A server there that outlives the loss of its channel for a while.

use crate::Machines;
use integration_tests::{
    Era, Wire, alive, installed, require, server, unique_seconds, wait_until, wait_until_gone,
};
use rustix::process::Signal;
use serde_json::json;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A machine that starts a far end for each connection to a socket: its processes are not those of the server in front.
struct Engine {
    machines: Machines,
    socket: PathBuf,
}

impl Engine {
    fn start() -> Option<Self> {
        require(installed("python3"), "no python3; apt install python3")?;
        let machines = Machines::with([("a.txt", "there\n")]);
        let socket = machines.front.join("engine.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let (state, folder) = (machines.there.state().to_owned(), machines.there.path().to_owned());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let output: OwnedFd = stream.try_clone().unwrap().into();
                let child = Command::new(server())
                    .arg("remote-server")
                    .current_dir(&folder)
                    .env("XDG_STATE_HOME", &state)
                    .stdin(Stdio::from(OwnedFd::from(stream)))
                    .stdout(Stdio::from(output))
                    .stderr(Stdio::null())
                    .spawn();
                std::thread::spawn(move || child.unwrap().wait());
            }
        });
        Some(Self { machines, socket })
    }

    /// A client of a server in front whose remote lives on for `grace_s` seconds.
    fn connect(&self, grace_s: u64) -> Wire {
        let text = format!(
            "[remotes.box]\nconnect = ['python3', '{}', '{}']\nroots = ['{}']\ngrace_s = {grace_s}\n",
            concat!(env!("CARGO_MANIFEST_DIR"), "/remotes/connect.py"),
            self.socket.display(),
            self.machines.there.path().display(),
        );
        Wire::connect(self.machines.configured("box", &text), Era::Modern)
    }

    /// Cuts the channel.
    fn cut(&self) {
        let mark = self.socket.display().to_string();
        for pid in alive(&mark) {
            if integration_tests::command_line(pid).contains("connect.py") {
                let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
                // It may have ended by itself meanwhile.
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }

    fn sessions(&self) -> PathBuf {
        self.machines.there.state().join("coretools/far-sessions")
    }

    fn session_files(&self) -> usize {
        std::fs::read_dir(self.sessions()).map_or(0, Iterator::count)
    }
}

/// Starts a command that counts, and returns its id.
fn start(client: &mut Wire, mark: &str) -> u64 {
    // The line itself, which answers repeat, does not have the word that it prints.
    let line =
        format!("printf 'be%s\\n' gun; sleep {mark} & while read -r line; do echo \"got $line\"; done; wait");
    let (started, failed) = client.outcome("start_command", json!({"command": line, "shell": true}));
    assert!(!failed, "{started}");
    started["id"].as_u64().unwrap()
}

#[test]
fn background_commands_and_their_cursors_survive_the_loss_of_a_channel() {
    let Some(engine) = Engine::start() else { return };
    let mut client = engine.connect(60);
    let mark = unique_seconds();
    let id = start(&mut client, &mark);
    let (first, _) = client.outcome("read_command_output", json!({"id": id, "wait_ms": 10000}));
    assert!(first.to_string().contains("begun"), "{first}");
    let before = alive(&mark);
    for word in ["one", "two"] {
        client.call("write_command_input", json!({"id": id, "text": format!("{word}\n")}));
        engine.cut();
        wait_until(Duration::from_secs(20), "the output after the loss", || {
            // What is not read before the loss is read after it, and nothing twice.
            let answer = client.call("read_command_output", json!({"id": id, "wait_ms": 2000})).to_string();
            assert!(!answer.contains("begun") && !answer.contains("are gone"), "{answer}");
            answer.contains(&format!("got {word}"))
        });
    }
    assert!(before.iter().all(|pid| alive(&mark).contains(pid)), "it is another process");
    // The folder and the socket are for the user alone.
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(engine.sessions()), 0o700);
    for entry in std::fs::read_dir(engine.sessions()).unwrap() {
        assert_eq!(mode(entry.unwrap().path()), 0o600);
    }
    assert_eq!(engine.session_files(), 2);
    // An end that is none of the channel alone ends everything at once.
    client.close_input();
    client.wait(Duration::from_secs(10));
    wait_until_gone(&mark, Duration::from_secs(10));
    wait_until(Duration::from_secs(10), "the files of the session are removed", || {
        engine.session_files() == 0
    });
}

#[test]
fn a_call_that_is_open_when_the_channel_is_lost_fails_once_and_ends_there() {
    let Some(engine) = Engine::start() else { return };
    let mut client = engine.connect(60);
    let mark = unique_seconds();
    let script = format!("echo x >> started; exec sleep {mark}");
    let call = json!({"name": "run_command", "arguments": {"command": ["sh", "-c", script]}});
    let id = client.ask("tools/call", call);
    wait_until(Duration::from_secs(20), "it runs", || !alive(&format!("sleep {mark}")).is_empty());
    engine.cut();
    let answer = client.answer(id).to_string();
    assert!(answer.contains("may have run, and is not sent again"), "{answer}");
    wait_until_gone(&format!("sleep {mark}"), Duration::from_secs(20));
    assert!(client.text("read_file", json!({"path": "a.txt"})).contains("there"));
    assert_eq!(engine.machines.there.read("started"), "x\n");
}

#[test]
fn after_the_grace_the_far_end_ends_everything() {
    let Some(engine) = Engine::start() else { return };
    let mut client = engine.connect(2);
    let mark = unique_seconds();
    start(&mut client, &mark);
    wait_until(Duration::from_secs(20), "it runs", || !alive(&mark).is_empty());
    // The server in front is gone and comes back never.
    client.signal(Signal::KILL);
    client.wait(Duration::from_secs(5));
    wait_until_gone(&mark, Duration::from_secs(20));
    wait_until(Duration::from_secs(10), "the files of the session are removed", || {
        engine.session_files() == 0
    });
}

#[test]
fn a_session_there_that_was_killed_is_told_once_and_another_is_made() {
    let Some(engine) = Engine::start() else { return };
    let mut client = engine.connect(60);
    let mark = unique_seconds();
    start(&mut client, &mark);
    let record = std::fs::read_dir(engine.sessions())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "json"))
        .unwrap();
    let record: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(record).unwrap()).unwrap();
    let pid = i32::try_from(record["pid"].as_i64().unwrap()).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    wait_until_gone(&mark, Duration::from_secs(10));
    let mut error = client.failure("read_file", json!({"path": "a.txt"}));
    if error.contains("while the call was open") {
        error = client.failure("read_file", json!({"path": "a.txt"}));
    }
    assert!(error.contains("background commands and sessions are gone"), "{error}");
    assert!(client.text("read_file", json!({"path": "a.txt"})).contains("there"));
}
