//! The messages that clients of the earlier daemon send, and the signal that had it read its settings.

use super::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// One line in, one line out, the end.
fn word(project: &Project, word: &str) -> String {
    let mut stream = UnixStream::connect(project.state().join("coretools/sessions/socket")).unwrap();
    stream.write_all(format!("{word}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer.matches('\n').count(), 1, "{answer:?}");
    answer.trim_end().to_owned()
}

#[test]
fn one_word_is_answered_by_one_line_as_it_was() {
    let project = Project::empty();
    let _daemon = Daemon::start(&project);
    let status = || serde_json::from_str::<Value>(&word(&project, "STATUS")).unwrap();
    let names: Vec<String> = status().as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        names,
        [
            "state",
            "uptime_secs",
            "current_session",
            "saves_count",
            "total_resumes",
            "time_saved_seconds",
            "time_saved_human"
        ]
    );
    for (said, answer, state) in [
        ("pause", "OK", "paused"),
        ("PAUSE", "ERR: Daemon already paused", "paused"),
        ("Resume", "OK", "monitoring"),
        ("RESUME", "ERR: Daemon is not paused", "monitoring"),
        ("NEW_SESSION", "ERR: No active session to replace", "monitoring"),
    ] {
        assert_eq!(word(&project, said), answer);
        assert_eq!(status()["state"], state, "{said}");
    }
    let (id, pid, _) = start(&project, &["--as", "worker", "--", "sleep", "300"]);
    assert_eq!(status()["current_session"].as_str(), Some(&*id));
    assert_eq!(word(&project, "new-session"), "OK");
    let old = known(&project, &id);
    let new = known(&project, &text(&old["replaced_by"]));
    assert_eq!((text(&old["state"]), text(&new["state"])), ("stopped".to_owned(), "running".to_owned()));
    assert_eq!((text(&new["role"]), is_alive(pid)), ("worker".to_owned(), false));
    assert_eq!(status()["current_session"], new["session_id"]);
}

#[test]
fn a_hangup_has_the_settings_read_again_and_bad_ones_change_nothing() {
    let (project, outside) = (Project::empty(), Project::empty());
    let pattern = |words: &str| {
        let text = format!(
            "[[pattern]]\nagent = \"*\"\nmeans = \"completed\"\nregex = '^{words}$'\nexamples = [\"{words}\"]\n"
        );
        outside.write("agents.toml", &text);
    };
    pattern("nothing yet");
    let mut command = project.server();
    command.env("CORETOOLS_SESSIONS_AGENTS", outside.join("agents.toml"));
    let daemon = Daemon::with(&project, command);
    let (_, runs, _) = start(&project, &["--", "sleep", "300"]);
    let log = || String::from_utf8(session(&project, &["logs", "--lines", "100"]).stdout).unwrap();
    let evidence = || {
        let (id, ..) = start(&project, &["--", "sh", "-c", "sleep 0.2; echo work is over"]);
        until_state(&project, &id, "stopped")["last_stop"]["evidence"][0].clone()
    };
    assert_eq!(evidence(), "exit code 0");
    pattern("work is over");
    daemon.signal(rustix::process::Signal::HUP);
    wait_until(PATIENCE, "they are read again", || log().contains("the settings were read again"));
    assert_eq!(evidence(), "it printed: work is over");
    assert!(is_alive(runs), "what runs goes on");
    outside.write("agents.toml", "no settings");
    daemon.signal(rustix::process::Signal::HUP);
    wait_until(PATIENCE, "it is said", || log().contains("those before stay"));
    assert_eq!(evidence(), "it printed: work is over");
    let refused = word(&project, "RELOAD");
    assert!(refused.starts_with("ERR: ") && refused.contains("agents.toml"), "{refused}");
    pattern("work is over");
    assert_eq!(word(&project, "RELOAD"), "OK");
}

#[test]
fn a_session_with_a_terminal_is_hung_up_when_its_supervisor_is_killed() {
    let project = Project::empty();
    let daemon = Daemon::start(&project);
    let script = "[ -t 0 ] && [ -t 1 ] && echo a terminal; read line; echo \"heard $line\"; sleep 300";
    let (id, pid, log) = start(&project, &["--pty", "--", "sh", "-c", script]);
    until_said(&log, "a terminal");
    ask(&project, &["send", &id, "hello"]);
    until_said(&log, "heard hello");
    daemon.kill();
    wait_until(PATIENCE, "it is hung up", || !is_alive(pid));
    let _daemon = Daemon::start(&project);
    assert_eq!(known(&project, &id)["last_stop"]["reason"], "lost");
}
