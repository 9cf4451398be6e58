//! `mcp-stdio session`.

use super::*;

#[test]
fn without_a_supervisor_the_exit_code_is_one_and_nothing_is_made_up() {
    let project = Project::empty();
    for arguments in [
        &["status"][..],
        &["pause"],
        &["resume"],
        &["list"],
        &["logs"],
        &["new", "--", "true"],
        &["send", "x", "y"],
        &["end", "x"],
    ] {
        let output = session(&project, arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains("no supervisor runs") && output.stdout.is_empty(), "{arguments:?}: {error}");
    }
    assert_eq!(session(&project, &["dance"]).status.code(), Some(2));
}

#[test]
fn what_the_default_leaves_out_of_a_clients_list_is_there_for_the_command_line() {
    let project = Project::empty();
    let _daemon = Daemon::start(&project);
    let run = |arguments: &[&str]| {
        let mut command = project.server();
        command.env_remove("CORETOOLS_TOOLSETS").arg("session").args(arguments);
        command.output().unwrap()
    };
    let listed = run(&["list"]);
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let chosen = run(&["list", "--toolsets", "filesystem"]);
    let said = String::from_utf8_lossy(&chosen.stderr).into_owned();
    assert!(!chosen.status.success() && said.contains("--toolsets leaves it out"), "{said}");
}

#[test]
fn a_daemon_is_steered_by_the_command_line() {
    let project = Project::empty();
    let daemon = Daemon::start(&project);
    let status = ask(&project, &["status"]);
    assert_eq!((status["running"].clone(), text(&status["state"])), (true.into(), "monitoring".to_owned()));
    assert_eq!((text(&status["owner"]), status["pid"].clone()), ("daemon".to_owned(), daemon.pid().into()));
    let script = "while read line; do echo \"heard $line\"; done";
    let (id, pid, log) = start(&project, &["--as", "worker", "--", "sh", "-c", script]);
    assert!(is_alive(pid), "it runs when the answer comes");
    let listed = ask(&project, &["list"]);
    assert_eq!(listed["sessions"][0]["pid"], pid);
    assert_eq!(text(&listed["sessions"][0]["role"]), "worker");
    assert_eq!(text(&ask(&project, &["status"])["current_session"]), id);
    assert_eq!(text(&ask(&project, &["send", &id, "hello"])["delivered"]), "input");
    until_said(&log, "heard hello");
    let lines = ask(&project, &["logs", "--session", &id, "--lines", "1"]);
    assert!(text(&lines["lines"][0]).ends_with("heard hello"), "{lines}");
    assert_eq!(lines["total_available"], 2);
    let level = ask(&project, &["logs", "--level", "warn"]);
    assert_eq!(level["lines"].as_array().unwrap().len(), 0);
    for (verb, changed, state) in [
        ("pause", true, "paused"),
        ("pause", false, "paused"),
        ("resume", true, "monitoring"),
        ("resume", false, "monitoring"),
    ] {
        let switched = ask(&project, &[verb]);
        assert_eq!(
            (switched["success"].clone(), switched["changed"].clone()),
            (true.into(), changed.into()),
            "{verb}"
        );
        assert_eq!(text(&switched["state"]), state);
    }
    assert_eq!(ask(&project, &["status"])["stats"]["total_resumes"], 0);
    let ended = ask(&project, &["end", &id, "--grace", "0"]);
    assert_eq!((ended["changed"].clone(), text(&ended["state"])), (true.into(), "stopped".to_owned()));
    assert!(!is_alive(pid));
    let lines = String::from_utf8(session(&project, &["logs", "--tail", "50"]).stdout).unwrap();
    assert!(lines.contains("starting → running") && lines.contains("somebody ended it"), "{lines}");
}

#[test]
fn what_cannot_start_is_an_error_that_says_why_and_has_no_id() {
    let project = Project::empty();
    let _daemon = Daemon::start(&project);
    for (arguments, says) in [
        (&["new", "--json", "--", "no-such-program-here"][..], "no-such-program-here"),
        (&["new", "--json", "--cwd", "/etc", "--", "true"], "outside the allowed roots"),
        (&["new", "--json", "--as", "emperor", "--", "true"], "no role is called `emperor`"),
        (&["new", "--json"], "no agent to start"),
    ] {
        let output = session(&project, arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(says) && output.stdout.is_empty(), "{arguments:?}: {error}");
    }
    assert_eq!(ask(&project, &["list", "--all"])["sessions"], json!([]));
}

#[test]
fn a_second_daemon_does_not_start_and_a_signal_ends_the_first_with_its_sessions() {
    let project = Project::empty();
    let daemon = Daemon::start(&project);
    let second = session(&project, &["daemon"]);
    let error = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(2), "{error}");
    assert!(
        error.contains(&format!("process {} (daemon) supervises there already", daemon.pid())),
        "{error}"
    );
    let (_, pid, _) = start(&project, &["--", "sleep", "300"]);
    drop(daemon);
    assert!(!is_alive(pid), "a daemon that ends leaves nothing behind");
    assert_eq!(session(&project, &["status"]).status.code(), Some(1));
}

#[test]
fn the_state_is_this_users_alone() {
    let project = Project::empty();
    let _daemon = Daemon::start(&project);
    start(&project, &["--", "sleep", "300"]);
    let mut looked = 0;
    let mut folders = vec![project.state().join("coretools/sessions")];
    while let Some(folder) = folders.pop() {
        assert_eq!(
            fs::metadata(&folder).unwrap().permissions().mode() & 0o777,
            0o700,
            "{}",
            folder.display()
        );
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let mode = fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{}", path.display());
            looked += 1;
        }
    }
    assert!(looked >= 8, "lock, socket, database, logs, pipe, markers: {looked}");
}

#[test]
fn a_followed_log_shows_lines_as_they_come() {
    use std::io::{BufRead, BufReader};
    let project = Project::empty();
    let daemon = Daemon::start(&project);
    let script = "sleep 1; echo first; sleep 1; echo second; sleep 300";
    let (id, ..) = start(&project, &["--", "sh", "-c", script]);
    let mut follower = project
        .server()
        .args(["session", "logs", "--follow", "--session", &id])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().ends_with("[a process of the session starts]"));
    assert!(lines.next().unwrap().unwrap().ends_with("first"));
    assert!(lines.next().unwrap().unwrap().ends_with("second"));
    drop(daemon);
    assert_eq!(follower.wait().unwrap().code(), Some(1), "nobody supervises any more");
}
