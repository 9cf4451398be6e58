//! A disk without room.

use super::*;

/// A daemon whose state lies on a disk of its own, of 512 KiB: a `tmpfs` in a mount namespace of its own.
fn on_a_small_disk(project: &Project, script: &str) -> Option<String> {
    let server = project.server();
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-ec"])
        .arg(format!("mount -t tmpfs -o size=512k,mode=700 none \"$XDG_STATE_HOME\"\n{script}"));
    command.arg("sh").arg(server.get_program()).current_dir(project.path());
    for (name, value) in server.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    fs::create_dir_all(project.state()).unwrap();
    let possible = Command::new("unshare")
        .args(["--mount", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    integration_tests::require(possible.then_some(()), "no right to make a mount namespace; run as root")?;
    let output = command.output().unwrap();
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{error}");
    Some(said.into_owned())
}

#[test]
fn a_session_goes_on_when_the_disk_is_full_and_status_says_so() {
    let project = Project::empty();
    let script = r#"
        "$1" session daemon 2>/dev/null &
        daemon=$!
        until "$1" session status >/dev/null 2>&1; do sleep 0.1; done
        "$1" session new --json -- sh -c 'while :; do echo some words that take room on a small disk; [ -e enough ] && break; done; while [ ! -e stop ]; do sleep 0.05; done; echo over >> survived' >/dev/null
        until status=$("$1" session status); echo "$status" | grep -q 'could not be written'; do sleep 0.05; done
        touch enough
        echo "== full"
        echo "$status"
        "$1" session pause
        touch stop
        for i in $(seq 200); do [ -e survived ] && break; sleep 0.1; done
        echo "== after"
        "$1" session status
        kill $daemon
        wait $daemon || true
    "#;
    let Some(said) = on_a_small_disk(&project, script) else { return };
    let full = said.split("== full").nth(1).unwrap();
    assert!(full.contains("trouble:") && full.contains("running"), "{said}");
    assert_eq!(project.read("survived"), "over\n", "the agent did not notice");
    assert!(said.split("== after").nth(1).unwrap().contains("paused"), "what is asked is done: {said}");
}
