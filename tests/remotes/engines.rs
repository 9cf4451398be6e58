//! The same calls by each kind, against the programs that it is for: what works here works there.

use crate::far_end::FarEnd;
use crate::fixtures::containers::Engine;
use crate::fixtures::{kubectl, slurm, ssh, users};
use integration_tests::{Wire, alive, peak_memory_kib, unique_seconds, wait_until, wait_until_gone};
use serde_json::json;
use std::time::Duration;

#[test]
fn a_machine_by_ssh() {
    let Some(far_end) = ssh::far_end() else { return };
    the_same_calls(far_end, 1024);
}

#[test]
fn a_program_of_the_user_is_found_by_ssh() {
    let Some(far_end) = ssh::with_the_program_of_the_user() else { return };
    let mut wire = far_end.connect();
    runs_there(&mut wire, &far_end);
    let path = wire.text("run_command", json!({"command": "echo $PATH", "shell": true}));
    assert!(path.contains("/usr/bin:/bin:") && path.contains("/.local/bin"), "{path}");
}

#[test]
fn a_container_of_podman() {
    let Some(engine) = Engine::podman() else { return };
    the_same_calls(engine.with_container(), 64);
}

#[test]
fn a_new_container_of_podman() {
    let Some(engine) = Engine::podman() else { return };
    the_same_calls(engine.with_image_only(""), 64);
}

#[test]
fn a_container_of_docker() {
    let Some(engine) = Engine::docker() else { return };
    the_same_calls(engine.with_container(), 64);
}

#[test]
fn a_new_container_of_docker() {
    let Some(engine) = Engine::docker() else { return };
    the_same_calls(engine.with_image_only(""), 64);
}

#[test]
fn the_development_container_of_a_project() {
    let Some(engine) = Engine::docker() else { return };
    let Some(far_end) = engine.with_devcontainer() else { return };
    the_same_calls(far_end, 16);
}

#[test]
fn an_allocation_of_slurm() {
    let Some(far_end) = slurm::far_end("") else { return };
    the_same_calls(far_end, 64);
}

#[test]
fn another_user_by_sudo() {
    let Some(far_end) = users::another_user() else { return };
    let mut wire = far_end.connect();
    let who = wire.text("run_command", json!({"command": "id -un"}));
    assert!(who.contains("games"), "{who}");
    drop(wire);
    the_same_calls(far_end, 64);
}

#[test]
fn the_namespaces_of_a_process() {
    let Some(far_end) = users::namespaces() else { return };
    the_same_calls(far_end, 64);
}

/// No cluster is asked: a program answers as kubectl does.
#[test]
fn pods_and_claims_of_a_stand_in_for_kubectl() {
    for far_end in [kubectl::pod(), kubectl::new_pod()] {
        the_same_calls(far_end, 16);
    }
}

#[test]
fn a_claim_of_a_stand_in_for_kubectl() {
    the_same_calls(kubectl::claim(), 16);
}

/// Calls what an agent calls, with an output of so many MiB, and looks at what is left in the end.
fn the_same_calls(mut far_end: FarEnd, output_mib: u32) {
    let mut wire = far_end.connect();
    runs_there(&mut wire, &far_end);
    files_tests_and_git(&mut wire, &far_end);
    a_command_that_hangs_is_cancelled(&mut wire);
    output_is_bounded_there(&mut wire, output_mib);
    let mark = a_background_command(&mut wire);
    // The client has ended, and so has everything else.
    wire.close_input();
    let (status, _) = wire.wait(Duration::from_secs(20));
    assert!(status.success(), "{status}");
    wait_until_gone(&mark, Duration::from_secs(20));
    assert_eq!(far_end.leases(), [""; 0]);
    wait_until(Duration::from_secs(20), "the engine has nothing left", || far_end.listed().is_empty());
}

fn runs_there(wire: &mut Wire, far_end: &FarEnd) {
    let name = wire.text("run_command", json!({"command": "uname -n"}));
    if !far_end.host.is_empty() {
        assert!(name.contains(&far_end.host), "{name}");
    }
}

fn files_tests_and_git(wire: &mut Wire, far_end: &FarEnd) {
    assert_eq!(wire.text("read_file", json!({"path": "notes.txt"})), "first\nsecond\nthird\n");
    let status = wire.text("git_status", json!({}));
    assert!(status.contains("notes.txt"), "{status}");
    let (report, _) = wire.outcome("run_tests", json!({}));
    assert_eq!((&report["passed"], &report["failed"]), (&json!(1), &json!(1)), "{report}");
    wire.text("write_file", json!({"path": "made/there.txt", "content": "by a tool"}));
    assert_eq!(far_end.project.read("made/there.txt"), "by a tool");
    let refused = wire.failure("read_file", json!({"path": "/etc/hostname"}));
    assert!(refused.contains("outside"), "{refused}");
}

fn a_command_that_hangs_is_cancelled(wire: &mut Wire) {
    let mark = unique_seconds();
    let command = json!({"name": "run_command", "arguments": {"command": ["sleep", mark]}});
    let id = wire.ask("tools/call", command);
    wait_until(Duration::from_secs(20), "it runs", || !alive(&mark).is_empty());
    wire.notify("notifications/cancelled", json!({"requestId": id}));
    wait_until_gone(&mark, Duration::from_secs(20));
    assert_eq!(wire.text("read_file", json!({"path": "notes.txt"})), "first\nsecond\nthird\n");
}

fn output_is_bounded_there(wire: &mut Wire, mib: u32) {
    let before = peak_memory_kib(wire.pid());
    let flood =
        json!({"command": ["dd", "if=/dev/zero", "bs=1M", format!("count={mib}")], "timeout_ms": 60_000});
    let answer = wire.text("run_command", flood);
    assert!(answer.len() < 100_000 && answer.contains(&(u64::from(mib) << 20).to_string()), "{answer}");
    // What is not kept there does not come here.
    let grown = peak_memory_kib(wire.pid()) - before;
    assert!(grown < 20 * 1024, "{grown} KiB");
}

/// Starts a command that goes on, reads what it prints, and leaves it running.
fn a_background_command(wire: &mut Wire) -> String {
    let mark = unique_seconds();
    let script = format!("echo begun; exec sleep {mark}");
    let (started, _) =
        wire.outcome("start_command", json!({"command": ["sh", "-c", script], "wait_for_output": "begun"}));
    let read = json!({"id": started["id"], "cursor": 0});
    let (output, failed) = wire.outcome("read_command_output", read);
    assert!(!failed && output.to_string().contains("begun"), "{started} {output}");
    assert!(!alive(&mark).is_empty());
    mark
}
