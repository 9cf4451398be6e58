//! From why an agent stopped to what was done about it, seen in the process table, the log and the status.

use super::*;
use std::time::Instant;

/// Each agent prints its own words at its limit, and is resumed in its own way.
#[test]
fn each_agent_is_resumed_after_its_limit_in_the_same_session() {
    let project = Project::empty();
    let _daemon = Daemon::start(&project);
    let uuid = "019c2470-729c-7dc1-b60a-365dad515395";
    let claude = "echo \"$@\" >> claude.args; [ \"$1\" = --resume ] && exec sleep 300\n\
                  echo 'I will look at the tests.'; echo 'API Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}'\n\
                  echo 'retry-after: 1'; exit 1";
    let codex = format!(
        "echo \"$@\" >> codex.args; [ \"$2\" = resume ] && exec sleep 300\n\
         echo 'session id: {uuid}'; echo \"ERROR: You've hit your usage limit. Upgrade to Pro or try again in 1 second.\"; exit 1"
    );
    let opencode = "echo \"$@\" >> opencode.args; [ \"$2\" = --session ] && exec sleep 300\n\
         echo '{\"type\":\"step_start\",\"sessionID\":\"ses_4aBc\"}'\n\
         echo '{\"type\":\"error\",\"sessionID\":\"ses_4aBc\",\"error\":{\"name\":\"APIError\",\"data\":{\"statusCode\":429,\"responseHeaders\":{\"retry-after\":\"1\"}}}}'; exit 1";
    for (name, script, source, resumed) in [
        ("claude", claude.to_owned(), "header", "--resume {id} -p Continue where you left off.".to_owned()),
        ("codex", codex, "words", format!("exec resume {uuid} Continue where you left off.")),
        (
            "opencode",
            opencode.to_owned(),
            "header",
            "run --session ses_4aBc Continue where you left off.".to_owned(),
        ),
    ] {
        let program = agent(&project, name, &script);
        let (id, pid, _) = start(&project, &["--prompt", "fix it", "--", &program]);
        let arguments = format!("{name}.args");
        let lines = || fs::read_to_string(project.join(&arguments)).unwrap_or_default().lines().count();
        wait_until(PATIENCE, &format!("{name} is resumed"), || {
            lines() == 2 && known(&project, &id)["state"] == "running"
        });
        let session = known(&project, &id);
        let new_pid = u32::try_from(session["pid"].as_u64().unwrap()).unwrap();
        assert!(new_pid != pid && is_alive(new_pid) && !is_alive(pid), "{name}");
        assert_eq!(session["last_stop"]["reason"], "rate_limit", "{session}");
        assert_eq!(session["last_stop"]["retry_source"], source, "{session}");
        assert_eq!(project.read(&arguments).lines().last().unwrap(), resumed.replace("{id}", &id));
        let log = String::from_utf8(super::session(&project, &["logs", "--lines", "200"]).stdout).unwrap();
        for change in [
            "running → waiting: rate_limit",
            "waiting → resuming",
            "resuming → running: resume after rate_limit",
        ] {
            assert!(log.contains(&format!("session {id}: {change}")), "{name}: {change}: {log}");
        }
        ask(&project, &["end", &id, "--grace", "0"]);
    }
    let stats = ask(&project, &["status"])["stats"].clone();
    assert_eq!((stats["saves_count"].clone(), stats["total_resumes"].clone()), (3.into(), 3.into()));
}

#[test]
fn what_completes_is_left_alone_and_what_crashes_is_started_again() {
    let project = Project::empty();
    let _daemon = Daemon::start(&project);
    let done = agent(
        &project,
        "claude",
        "echo once >> done.starts; echo 'curl: (22) The requested URL returned error: 429'\n\
         echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"Done.\"}'",
    );
    let (id, ..) = start(&project, &["--prompt", "x", "--", &done]);
    let over = until_state(&project, &id, "stopped");
    assert_eq!(over["last_stop"]["reason"], "completed", "a 429 in its work is not its limit: {over}");
    assert_eq!(project.read("done.starts"), "once\n");
    let broken = agent(
        &project,
        "codex",
        "echo start >> broken.starts; [ $(wc -l < broken.starts) -ge 3 ] && exec sleep 300\n\
         echo 'thread main panicked at src/main.rs:1:1'; exit 101",
    );
    let (id, first, _) = start(&project, &["--prompt", "x", "--", &broken]);
    wait_until(PATIENCE, "it runs for the third time", || {
        let session = known(&project, &id);
        session["state"] == "running"
            && session["pid"] != first
            && project.read("broken.starts").lines().count() == 3
    });
    let session = known(&project, &id);
    assert_eq!(session["last_stop"]["reason"], "crash");
    assert_eq!(session["last_stop"]["evidence"][0], "exit code 101");
}

#[test]
fn a_pause_during_the_wait_holds_it_and_status_says_until_when() {
    let project = Project::empty();
    let _daemon = Daemon::start(&project);
    let script = "[ \"$1\" = --resume ] && { echo yes > resumed; exec sleep 300; }\n\
                  echo 'API Error: 429 {}'; echo 'retry-after: 10'; exit 1";
    let agent = agent(&project, "claude", script);
    let (id, ..) = start(&project, &["--prompt", "x", "--", &agent]);
    until_state(&project, &id, "waiting");
    let waits_since = Instant::now();
    let status = ask(&project, &["status"]);
    assert_eq!(
        (text(&status["state"]), text(&status["next_action"]["action"])),
        ("waiting".to_owned(), "resume".to_owned())
    );
    assert_eq!(text(&status["next_action"]["session_id"]), id);
    assert!(text(&status["next_action"]["at"]).ends_with('Z'));
    ask(&project, &["pause"]);
    // The time of the wait itself is over.
    wait_until(PATIENCE, "the wait is over", || waits_since.elapsed() > Duration::from_secs(11));
    assert_eq!(text(&known(&project, &id)["state"]), "paused");
    assert!(!project.join("resumed").exists());
    ask(&project, &["resume"]);
    wait_until(PATIENCE, "it is resumed", || project.join("resumed").exists());
}

#[test]
fn a_sessions_folder_that_was_made_a_link_stops_its_start_and_nothing_is_written_there() {
    let project = Project::empty();
    let _daemon = Daemon::start(&project);
    let script = "[ \"$1\" = --resume ] && { echo yes > resumed; exit 0; }\n\
                  rm -rf \"$TMPDIR\"; ln -s \"$PWD/elsewhere\" \"$TMPDIR\"; echo 'API Error: 429 {}'; echo 'retry-after: 0'; exit 1";
    project.write("elsewhere/kept", "x");
    let agent = agent(&project, "claude", script);
    let (id, ..) = start(&project, &["--prompt", "x", "--", &agent]);
    wait_until(PATIENCE, "it is seen", || {
        let log = String::from_utf8(session(&project, &["logs", "--lines", "200"]).stdout).unwrap();
        log.contains(&format!("session {id}: resuming → waiting: cannot use the session's folder"))
    });
    assert!(!project.join("resumed").exists());
    assert_eq!(fs::read_dir(project.join("elsewhere")).unwrap().count(), 1);
    assert_eq!(text(&ask(&project, &["end", &id])["state"]), "stopped");
}
