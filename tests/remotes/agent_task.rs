//! A task of `benchmarks/agents`, played from a recorded list of calls: the same calls give the same answers and the same
//! result on this machine and on a remote. Third tier: the project of the task comes from a package index.

use crate::far_end::{FarEnd, run};
use crate::fixtures::containers::Engine;
use crate::fixtures::{slurm, ssh};
use integration_tests::outside::target_folder;
use integration_tests::{Era, Project, Wire, require};
use regex::Regex;
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// The task that is played.
const TASK: &str = "library-bugs";

/// The calls of a run that solved the task, one on each line.
const CALLS: &str = include_str!("../../benchmarks/agents/tasks/library-bugs/calls.jsonl");

/// The Python of the system, which containers of the tests have as well.
const PYTHON: &str = "/usr/bin/python3";

#[test]
fn a_container_gives_the_same_as_this_machine() {
    let Some(project) = prepared() else { return };
    let Some(engine) = Engine::podman() else { return };
    the_same_as_here(engine.with_container(), project);
}

#[test]
fn a_machine_by_ssh_gives_the_same_as_this_machine() {
    let Some(project) = prepared() else { return };
    let Some(far_end) = ssh::far_end() else { return };
    the_same_as_here(far_end, project);
}

#[test]
fn an_allocation_of_slurm_gives_the_same_as_this_machine() {
    let Some(project) = prepared() else { return };
    let Some(far_end) = slurm::far_end("") else { return };
    the_same_as_here(far_end, project);
}

/// Plays the calls here and there at the same time, and compares the answers and the result of the task's check.
fn the_same_as_here(far_end: FarEnd, project: &Path) {
    let here = Project::empty();
    let (local, remote) = std::thread::scope(|scope| {
        let mut server = here.server();
        // pytest prints other differences with these, and no far end has them.
        server.env_remove("CI").env_remove("BUILD_NUMBER");
        let local = scope.spawn(|| played(Wire::connect(server, Era::Modern), &here, project));
        let remote = played(far_end.connect(), &far_end.project, project);
        (local.join().unwrap(), remote)
    });
    let count = CALLS.lines().count();
    assert_eq!((local.0.len(), remote.0.len()), (count, count));
    for ((local, remote), call) in local.0.iter().zip(&remote.0).zip(CALLS.lines()) {
        assert_eq!(remote, local, "{call}");
    }
    assert_eq!((local.1.as_str(), remote.1.as_str()), ("solved", "solved"));
}

/// Lays out the project in a folder and makes each call. Returns the answers, and what the task's check prints.
fn played(wire: Wire, folder: &Project, project: &Path) -> (Vec<String>, String) {
    let mut wire = wire.patience(Duration::from_secs(120));
    let script = "find \"$0\" -mindepth 1 -delete && cp -a \"$1/.\" \"$0\"";
    run(Command::new("sh").args(["-c", script]).arg(folder.path()).arg(project));
    let mut answers = Vec::new();
    for line in CALLS.lines() {
        let call: Value = serde_json::from_str(line).unwrap();
        let tool = call["tool"].as_str().unwrap();
        let result = wire.call(tool, call["arguments"].clone());
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        answers.push(without_what_varies(&format!("{} {text}", result["isError"] == true)));
    }
    // The first tests fail, and the last do not.
    assert!(answers[0].starts_with("true FAILED:"), "{}", answers[0]);

    assert!(answers[1..].iter().all(|answer| answer.starts_with("false")), "{answers:#?}");
    let mut check = Command::new(PYTHON);
    let output = check.arg(agents()).args(["check", TASK]).arg(folder.path()).output().unwrap();
    (answers, String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Replaces times, dates and the ids of commits.
fn without_what_varies(text: &str) -> String {
    static VARIES: OnceLock<Regex> = OnceLock::new();
    let varies = r"\d+(\.\d+)? ?m?s\b|\d{4}-\d\d-\d\dT[\d:]+Z|\b[0-9a-f]{7,40}\b";
    let varies = VARIES.get_or_init(|| Regex::new(varies).unwrap());
    varies.replace_all(text, "…").into_owned()
}

/// The project of the task, which is laid out once and kept beneath the target folder: its source comes from a package index.
fn prepared() -> Option<&'static Path> {
    static PROJECT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let project = PROJECT.get_or_init(|| {
        let kept = target_folder().join("agents").join(format!("{TASK}-{:016x}", hash_of_task()));
        if kept.exists() {
            return Some(kept);
        }
        std::fs::create_dir_all(kept.parent()?).unwrap();
        // Another process may do the same at this moment.
        let folder = tempfile::tempdir_in(kept.parent()?).unwrap();
        let made = folder.path().join(TASK);
        let mut prepare = Command::new(PYTHON);
        prepare.arg(agents()).args(["prepare", TASK]).arg(&made);
        prepare.env("PIP_RETRIES", "1").env("PIP_DEFAULT_TIMEOUT", "10");
        let is_made = prepare.output().is_ok_and(|output| output.status.success());
        (is_made && (std::fs::rename(&made, &kept).is_ok() || kept.exists())).then_some(kept)
    });
    let why = "no project of the task library-bugs; `agents.py prepare` needs python3, python3-venv, python3-pip and PyPI";
    require(project.as_deref(), why)
}

/// Returns a hash of what lays out the project, so that a change of the task makes it anew.
fn hash_of_task() -> u64 {
    let folder = agents().parent().unwrap().to_owned();
    let mut hasher = DefaultHasher::new();
    for file in ["agents.py", "projects.py", "tasks/library-bugs/task.py"] {
        std::fs::read(folder.join(file)).unwrap().hash(&mut hasher);
    }
    hasher.finish()
}

fn agents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../benchmarks/agents/agents.py")
}
