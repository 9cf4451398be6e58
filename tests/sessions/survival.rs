//! The processes and records that are left when the supervisor is killed.

use super::*;

#[test]
fn a_session_that_runs_on_is_adopted_with_its_output_and_ends_as_others_do() {
    let project = Project::empty();
    let daemon = Daemon::start(&project);
    let script = "i=0; while [ ! -e stop ]; do i=$((i+1)); echo tick $i; sleep 0.05; done; \
                  echo 'API Error: Repeated 529 Overloaded errors'; echo 'try again in 2 hours'; exit 1";
    let agent = agent(&project, "claude", script);
    let (id, pid, log) = start(&project, &["--prompt", "count", "--", &agent]);
    until_said(&log, "tick 3");
    daemon.kill();
    assert!(is_alive(pid), "it goes on");
    let before = fs::read_to_string(&log).unwrap().lines().count();
    std::thread::sleep(Duration::from_millis(300));
    assert!(is_alive(pid), "what it prints meanwhile does not break it");
    let _daemon = Daemon::start(&project);
    let session = known(&project, &id);
    assert_eq!((text(&session["state"]), session["pid"].clone()), ("running".to_owned(), pid.into()));
    wait_until(PATIENCE, "its output is recorded again", || {
        fs::read_to_string(&log).unwrap().lines().count() > before + 5
    });
    // Not a line is missing.
    let printed = fs::read_to_string(&log).unwrap();
    let ticks: Vec<u32> =
        printed.lines().filter_map(|line| line.rsplit_once("tick ")?.1.parse().ok()).collect();
    assert_eq!(ticks, (1..=u32::try_from(ticks.len()).unwrap()).collect::<Vec<_>>());
    project.write("stop", "");
    let waiting = until_state(&project, &id, "waiting");
    assert_eq!(waiting["last_stop"]["reason"], "rate_limit", "{waiting}");
    let log = String::from_utf8(self::session(&project, &["logs", "--lines", "100"]).stdout).unwrap();
    assert!(log.contains(&format!("process {pid} runs, and was adopted")), "{log}");
}

#[test]
fn an_adopted_session_can_be_told_and_ended() {
    let project = Project::empty();
    let daemon = Daemon::start(&project);
    let script = "setsid sleep 300 & while read line; do echo \"heard $line\"; done";
    let (id, pid, log) = start(&project, &["--", "sh", "-c", script]);
    daemon.kill();
    let _daemon = Daemon::start(&project);
    ask(&project, &["send", &id, "still there"]);
    until_said(&log, "heard still there");
    let ended = ask(&project, &["end", &id, "--grace", "1"]);
    assert_eq!((text(&ended["state"]), ended["left"].clone()), ("stopped".to_owned(), json!([])));
    assert!(!is_alive(pid));
}

#[test]
fn a_session_that_was_gone_is_reported_as_lost() {
    let project = Project::empty();
    let daemon = Daemon::start(&project);
    let seconds = integration_tests::unique_seconds();
    let script = format!("setsid sleep {seconds} & sleep 300");
    let (id, pid, _) = start(&project, &["--", "sh", "-c", &script]);
    daemon.kill();
    let leader = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(leader, rustix::process::Signal::KILL).unwrap();
    wait_until(PATIENCE, "it is gone", || !is_alive(pid));
    let _daemon = Daemon::start(&project);
    let lost = known(&project, &id);
    assert_eq!(
        (text(&lost["state"]), text(&lost["last_stop"]["reason"])),
        ("stopped".to_owned(), "lost".to_owned())
    );
    assert!(integration_tests::alive(&seconds).is_empty(), "and what it left has an end too");
}

#[test]
fn a_wait_and_a_pause_go_on_where_they_were() {
    let project = Project::empty();
    let daemon = Daemon::start(&project);
    let script = "if [ \"$1\" = --resume ]; then echo resumed >> seen; exit 0; fi\n\
                  echo 'API Error: 429 {}'; echo 'retry-after: 4'; exit 1";
    let agent = agent(&project, "claude", script);
    let (id, ..) = start(&project, &["--prompt", "x", "--", &agent]);
    let waiting = until_state(&project, &id, "waiting");
    daemon.kill();
    let daemon = Daemon::start(&project);
    assert_eq!(known(&project, &id)["next_action"], waiting["next_action"], "until when is known, and kept");
    ask(&project, &["pause"]);
    assert_eq!(known(&project, &id)["state"], "paused");
    daemon.kill();
    let _daemon = Daemon::start(&project);
    let status = ask(&project, &["status"]);
    assert_eq!(
        (text(&status["state"]), status["stats"]["total_resumes"].clone()),
        ("paused".to_owned(), 0.into())
    );
    std::thread::sleep(Duration::from_secs(5));
    assert!(!project.join("seen").exists(), "its time is over, and it is paused");
    ask(&project, &["resume"]);
    until_state(&project, &id, "stopped");
    assert_eq!(project.read("seen"), "resumed\n");
    assert_eq!(ask(&project, &["status"])["stats"]["total_resumes"], 1);
}

#[test]
fn what_a_newer_program_kept_is_left_alone_and_said() {
    let project = Project::empty();
    drop(Daemon::start(&project));
    let database = project.state().join("coretools/sessions/sessions.db");
    let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA user_version = 99'); c.close()";
    let set = Command::new("python3").args(["-c", script]).arg(&database).status().expect("python3 is there");
    assert!(set.success());
    let before = fs::read(&database).unwrap();
    let refused = session(&project, &["daemon"]);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains("written by a newer program (version 99, this one knows 1)"), "{error}");
    assert_eq!(fs::read(&database).unwrap(), before);
}
