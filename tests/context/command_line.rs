//! The command.

use crate::project;
use integration_tests::{Project, wait_until};
use serde_json::Value;
use std::fs::File;
use std::process::{Output, Stdio};
use std::time::Duration;

fn run(project: &Project, arguments: &[&str]) -> Output {
    project.server().arg("context").args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn printed(project: &Project, arguments: &[&str]) -> String {
    let output = run(project, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_document_is_printed_and_is_the_same_each_time() {
    let project = project();
    let arguments = ["--role", "dev", "--phase", "3", "--budget", "20000"];
    let text = printed(&project, &arguments);
    assert!(text.starts_with("# Project context") && text.contains("\n# Role: dev\n# Phase: 3\n"), "{text}");
    assert_eq!(text, printed(&project, &arguments));
    let elsewhere = crate::project();
    assert_eq!(text, printed(&elsewhere, &arguments), "the place makes no difference");
}

#[test]
fn the_manifest_is_a_table_and_json_has_the_names_of_the_original() {
    let project = project();
    let table = printed(&project, &["--role", "dev", "--manifest"]);
    assert!(table.contains("prefix full") && table.contains(".yolo-planning/codebase/STACK.md"), "{table}");
    let json: Value = serde_json::from_str(&printed(&project, &["--role", "dev", "--json"])).unwrap();
    assert_eq!(json["prefix_bytes"], json["stable_prefix"].as_str().unwrap().len());
    assert_eq!(json["volatile_bytes"], json["volatile_tail"].as_str().unwrap().len());
    assert_eq!(json["git"]["outcome"], "changed");
}

#[test]
fn roles_of_a_file_are_used_and_what_is_wrong_in_it_is_said_with_its_place() {
    let project = project();
    project.write("roles.toml", "[roles.reviewer]\nextends = 'qa'\ndocuments = ['STACK.md']\n");
    let text = printed(&project, &["--role", "reviewer", "--catalogue", "roles.toml"]);
    assert!(text.contains("# Role: reviewer") && text.contains("Rust.") && !text.contains("Tabs."), "{text}");
    project.write("roles.toml", "[roles.reviewer]\nextend = 'qa'\n");
    let output = run(&project, &["--role", "reviewer", "--catalogue", "roles.toml"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("roles.toml: line 2, column 1: unknown field `extend`"), "{error}");
}

#[test]
fn the_configuration_names_a_file_of_roles_that_lies_beneath_a_root() {
    let project = project();
    let elsewhere = Project::with([("roles.toml", "[roles.reviewer]\ndocuments = ['STACK.md']\n")]);
    project.write("coretools.toml", "[context]\ncatalogue = 'roles.toml'\n");
    project.write("roles.toml", &elsewhere.read("roles.toml"));
    let text = printed(&project, &["--role", "reviewer"]);
    assert!(text.contains("Rust.") && !text.contains("Tabs."), "{text}");
    let refused = |why: &str| {
        let output = run(&project, &["--role", "reviewer"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2));
        assert!(error.contains("cannot use context.catalogue") && error.contains(why), "{error}");
    };
    project.write("roles.toml", "[roles.reviewer]\nextend = 'qa'\n");
    refused("line 2, column 1: unknown field `extend`");
    std::fs::remove_file(project.join("roles.toml")).unwrap();
    refused("does not exist");
    std::os::unix::fs::symlink(elsewhere.join("roles.toml"), project.join("roles.toml")).unwrap();
    refused("outside");
}

#[test]
fn failures_of_tests_are_taken_and_a_budget_that_is_too_small_is_said() {
    let project = project();
    project.write("failures", "test adds ... FAILED\n");
    let text = printed(&project, &["--role", "dev", "--failures", "failures"]);
    assert!(text.contains("## test failures\n```text\ntest adds ... FAILED\n```"), "{text}");
    let output = run(&project, &["--role", "dev", "--budget", "20"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("needs at least"), "{output:?}");
    assert!(output.stdout.is_empty());
}

#[test]
fn with_watch_it_is_printed_again_when_something_changes() {
    let project = project();
    let mut server = project.server();
    server.args(["context", "--role", "dev", "--watch"]).stdin(Stdio::null());
    // Outside of what is watched, or it would change what it tells of.
    let elsewhere = Project::empty();
    let path = elsewhere.join("printed");
    server.stdout(File::create(&path).unwrap());
    let mut watching = server.spawn().unwrap();
    let text = || std::fs::read_to_string(&path).unwrap();
    wait_until(Duration::from_secs(60), "the document is there", || text().contains("# Role: dev"));
    project.write(".yolo-planning/codebase/CONVENTIONS.md", "# Conventions\n\nSpaces.\n");
    wait_until(Duration::from_secs(60), "it is there again", || text().contains("Spaces."));
    assert!(watching.try_wait().unwrap().is_none());
    watching.kill().unwrap();
    watching.wait().unwrap();
}

#[test]
fn the_policy_holds_for_the_command_as_it_does_for_the_tool() {
    let project = project();
    let policy = crate::limiting_policy();
    let policy = policy.join("roles.toml");
    let of = |role: &[&str]| {
        let mut server = project.server();
        server.arg("--policy").arg(&policy).arg("context").args(role);
        server
            .args(["--phase", "3", "--include", "src/**", "--include", ".yolo-planning/codebase"])
            .stdin(Stdio::null());
        server.output().unwrap()
    };
    for role in [&[][..], &["--role", "tester"]] {
        let output = of(role);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("# First") && text.contains("pub fn answer"),
            "{output:?}"
        );
        assert!(
            !text.contains("Tabs.") && !text.contains("It serves.") && !text.contains("-    41"),
            "{text}"
        );
    }
    let output = of(&["--role", "other"]);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
}

#[test]
fn a_role_from_the_environment_must_allow_that_of_the_flag() {
    let project = project();
    let of = |role: &str| {
        let mut server = project.server();
        server.env("CORETOOLS_ROLE", "dev").args(["context", "--role", role]).stdin(Stdio::null());
        server.output().unwrap()
    };
    assert!(of("dev").status.success());
    for role in ["architect", "reviewer"] {
        let output = of(role);
        assert!(!output.status.success() && output.stdout.is_empty(), "{role}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("the policy"), "{output:?}");
    }
}

#[test]
fn a_pipe_that_nobody_writes_to_is_waited_for_until_an_interrupt() {
    let project = project();
    let pipe = project.join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    let mut server = project.server();
    server.args(["context", "--role", "dev", "--failures"]).arg(&pipe);
    let mut waiting = server.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let id = rustix::process::Pid::from_child(&waiting);
    // Its handler is there when it catches the signal: bit 1 of the mask is that of SIGINT.
    let status = format!("/proc/{}/status", waiting.id());
    let catches = || {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let mask =
            status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim().to_owned();
        u64::from_str_radix(&mask, 16).unwrap_or(0) & 0b10 != 0
    };
    wait_until(Duration::from_secs(60), "it listens", catches);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    wait_until(Duration::from_secs(60), "it ends", || waiting.try_wait().unwrap().is_some());
}

#[test]
fn the_readmes_command_prints_a_document_of_this_repository() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let line = readme.lines().find_map(|line| line.strip_prefix("mcp-stdio context ")).expect("the command");
    let arguments: Vec<_> = line.split('#').next().unwrap().split_whitespace().collect();
    let text = printed(&Project::at(&root), &arguments);
    assert!(text.contains("# Role: dev") && text.len() > 20_000, "{} bytes", text.len());
}
