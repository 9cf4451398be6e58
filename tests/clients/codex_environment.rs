//! The executor that Codex is given: `codex-environment install` in an empty home, and scripted conversations in which the
//! model uses Codex's own tools.

use crate::home::{ClientHome, said};
use crate::hooks::{REFUSED, audit, converse};
use crate::model::{RequestedCall, ScriptedModel, text};
use integration_tests::{alive, is_alive, sleeping, unique_seconds, wait_until, wait_until_gone};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A model whose name Codex knows, so that it offers its tool for patches.
const MODEL: &str = "gpt-5.5";
/// A longer time than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(120);
const SECRET: &str = "s3cr3t-0f-the-us3r-4711";

fn install(home: &ClientHome, arguments: &[&str]) -> String {
    let mut command = home.own_program(&["--role", "worker", "--audit"]);
    command.arg(home.path("audit.jsonl")).arg("codex-environment").args(arguments).arg("install");
    said(&command.output().unwrap())
}

fn codex(home: &ClientHome, model: &ScriptedModel, arguments: &[&str]) -> Command {
    home.configure_codex(model, MODEL);
    let arguments = [&["exec", "--skip-git-repo-check"], arguments, &["work"]].concat();
    let mut command = home.command("codex", &arguments);
    command.env("OWN_KEY", "none").env("MY_SERVICE_TOKEN", SECRET);
    command
}

fn run(line: &str) -> RequestedCall {
    ("own:exec_command", json!({"cmd": line, "yield_time_ms": 30000}))
}

fn patch(text: &str) -> RequestedCall {
    ("own:apply_patch", json!(format!("*** Begin Patch\n{text}\n*** End Patch")))
}

#[test]
fn codex_runs_commands_and_reaches_files_through_the_executor_as_the_role_may() {
    let Some(home) = ClientHome::with("codex") else { return };
    let installed = install(&home, &["--exec-timeout", "8"]);
    assert!(installed.contains("environments.toml"), "{installed}");
    let outside = home.path("outside.txt");
    fs::write(&outside, "hello\n").unwrap();
    let calls = [
        run("echo worked > made.txt; cat made.txt a.txt; pwd"),
        patch("*** Add File: sub/new.txt\n+new\n*** Update File: a.txt\n@@\n-hello\n+hello there"),
        run("env"),
        // Refused, with the reason.
        run("claude -p other"),
        run("echo x > ../outside.txt"),
        patch(&format!("*** Update File: {}\n@@\n-hello\n+bye", outside.display())),
        // Refused too; Codex keeps the reason of a write to itself.
        patch("*** Add File: .codex/config.toml\n+model = \"other\""),
        patch(&format!("*** Add File: {}\n+new", home.path("new.txt").display())),
        // Its program reads by itself: the confinement of the role, where there is one.
        run(&format!("cat {}", outside.display())),
        run("echo before; sleep 600"),
    ];
    let model = ScriptedModel::asking(&calls);
    let command = codex(&home, &model, &["--dangerously-bypass-approvals-and-sandbox"]);
    let results = converse(command, &model, &calls);
    let texts: Vec<String> = results.iter().map(text).collect();
    assert!(texts[0].contains("worked\nhello\n") && texts[0].contains("code 0"), "{texts:#?}");
    assert!(texts[1].contains("A sub/new.txt") && texts[1].contains("M a.txt"), "{texts:#?}");
    assert_eq!(home.project.read("sub/new.txt"), "new\n");
    assert_eq!(home.project.read("a.txt"), "hello there\n");
    assert!(texts[2].contains("CORETOOLS_ROLE=worker") && !texts[2].contains(SECRET), "{}", texts[2]);
    for (at, part) in [(3, "run_agent_command"), (4, "outside"), (5, "outside the folders")] {
        assert!(texts[at].contains(REFUSED) && texts[at].contains(part), "{}", texts[at]);
    }
    for refused in &texts[6..8] {
        assert!(refused.contains("Failed to"), "{refused}");
    }
    assert!(!home.project.path().join(".codex").exists() && !home.path("new.txt").exists());
    assert_eq!(fs::read_to_string(&outside).unwrap(), "hello\n");
    let last = texts.last().unwrap();
    assert!(
        last.contains("before") && last.contains("its time limit") && last.contains("code 124"),
        "{last}"
    );

    let lines = audit(&home);
    let refused = |tool: &str| {
        lines.iter().filter(|line| line["tool"] == tool && line["decision"] == "refused").count()
    };
    assert_eq!(refused("run_agent_command"), 1, "{lines:#?}");
    assert!(refused("write_file") >= 2 && refused("read_file") >= 1, "{lines:#?}");
    let commands = lines.iter().filter(|line| line["tool"] == "run_command" && line["decision"] == "allowed");
    let outcomes: Vec<_> = commands.map(|line| line["outcome"].as_str().unwrap()).collect();
    assert_eq!((outcomes[0], outcomes[1], outcomes.last()), ("ok", "ok", Some(&"failed")), "{lines:#?}");
    assert!(lines.iter().all(|line| line["role"] == "worker"), "{lines:#?}");
    let sessions =
        lines.iter().filter(|line| line["tool"] == "run_command").map(|line| line["session"].as_str());
    assert!(
        sessions.into_iter().all(|session| session.is_some_and(|session| !session.is_empty())),
        "{lines:#?}"
    );
}

#[test]
fn codexs_own_sandbox_holds_in_the_executor() {
    let Some(home) = ClientHome::with("codex") else { return };
    install(&home, &[]);
    let calls = [run("echo x > made.txt; echo it ran")];
    let model = ScriptedModel::asking(&calls);
    let results = converse(codex(&home, &model, &["--sandbox", "read-only"]), &model, &calls);
    let said = text(&results[0]);
    assert!(!home.project.path().join("made.txt").exists(), "{said}");
    // Without the means to confine, the command is refused instead.
    assert!(said.contains("it ran") || said.contains("Codex asks for a sandbox"), "{said}");
    if said.contains("it ran") {
        let calls = [run("echo x > made.txt; cat made.txt; echo y > ../outside.txt")];
        let model = ScriptedModel::asking(&calls[..1]);
        let results = converse(codex(&home, &model, &["--sandbox", "workspace-write"]), &model, &calls);
        assert!(text(&results[0]).contains(REFUSED), "{}", text(&results[0]));
        let calls = [run("echo x > made.txt; cat made.txt")];
        let model = ScriptedModel::asking(&calls);
        let results = converse(codex(&home, &model, &["--sandbox", "workspace-write"]), &model, &calls);
        assert!(text(&results[0]).contains("code 0"), "{}", text(&results[0]));
        assert_eq!(home.project.read("made.txt"), "x\n");
    }
}

#[test]
fn nothing_survives_codex() {
    let Some(home) = ClientHome::with("codex") else { return };
    install(&home, &[]);
    let seconds = unique_seconds();
    let model = ScriptedModel::asking(&[run(&format!("setsid sleep {seconds} & sleep {seconds}"))]);
    let mut command = codex(&home, &model, &["--dangerously-bypass-approvals-and-sandbox"]);
    let mut running =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until(LONG, "the command to run", || sleeping(&seconds).len() == 2);
    let mark = home.path("audit.jsonl").to_str().unwrap().to_owned();
    let executors: Vec<u32> = alive(&mark)
        .into_iter()
        .filter(|pid| {
            fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .unwrap_or_default()
                .contains("codex-environment")
        })
        .collect();
    let parents: Vec<u32> = executors.iter().filter_map(|pid| parent(*pid)).collect();
    // The executor, and beside it its guardian, whose parent is the executor.
    let codex =
        parents.into_iter().find(|pid| !executors.contains(pid)).expect("Codex has started the executor");
    assert!(is_alive(codex));
    let killed = Command::new("kill").args(["-KILL", &codex.to_string()]).status().unwrap();
    assert!(killed.success());
    // Before the sleeps would end by themselves.
    wait_until_gone(&format!("sleep {seconds}"), LONG / 2);
    wait_until(LONG, "the executor to end", || executors.iter().all(|pid| !is_alive(*pid)));
    running.wait().unwrap();
}

fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

#[test]
fn the_entry_is_installed_checked_and_removed() {
    let Some(home) = ClientHome::with("codex") else { return };
    let before = "default = \"dev\"\n\n[[environments]]\nid = \"dev\"\nprogram = \"ssh\"\n";
    home.write(".codex/environments.toml", before);
    let changed = install(&home, &[]);
    assert!(changed.contains("environments.toml.bak"), "{changed}");
    assert_eq!(fs::read_to_string(home.path(".codex/environments.toml.bak")).unwrap(), before);
    assert!(install(&home, &[]).contains("nothing was changed"));
    let doctor = |folder: &str| {
        let mut command = home.own_program(&["doctor"]);
        let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
        command.env("PATH", path).current_dir(home.project.path());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    // A Codex of another version.
    home.write("bin/codex", "#!/bin/sh\necho codex-cli 0.999.0\n");
    fs::set_permissions(home.path("bin/codex"), fs::Permissions::from_mode(0o755)).unwrap();
    let said_by_doctor = doctor(home.path("bin").to_str().unwrap());
    assert!(said_by_doctor.contains("Codex 0.999.0 may speak differently"), "{said_by_doctor}");
    assert!(said_by_doctor.contains("may also use the executors dev"), "{said_by_doctor}");
    let removed = said(&home.own_program(&["codex-environment", "remove"]).output().unwrap());
    assert!(removed.contains("the entry is removed"), "{removed}");
    assert_eq!(fs::read_to_string(home.path(".codex/environments.toml")).unwrap(), before);
    assert!(!doctor(home.path("bin").to_str().unwrap()).contains("executor"));
}

/// The version that the executor was built against is the one that these tests run with.
#[test]
fn doctor_knows_the_codex_that_is_tested() {
    let Some(home) = ClientHome::with("codex") else { return };
    install(&home, &[]);
    let mut command = home.own_program(&["doctor"]);
    let of_codex = home.command("codex", &[]);
    let path = of_codex.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value).unwrap();
    let output = command.env("PATH", path).current_dir(home.project.path()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("whose protocol it speaks"), "{said}");
}
