//! `hook`: the decisions about lines of a shell, and lines that a person has approved.
#![cfg(target_os = "linux")]

use integration_tests::Project;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The server of a user whose home is `home`.
fn server(project: &Project, home: &Path) -> Command {
    let mut command = project.server();
    command.env("HOME", home).env("XDG_STATE_HOME", home.join(".local/state"));
    for name in ["XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "CLAUDE_PROJECT_DIR"] {
        command.env_remove(name);
    }
    command
}

fn fed(mut command: Command, input: &str) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns what `hook test` decides about each line, for the role `worker`.
fn decisions(project: &Project, home: &Path, lines: &[&str]) -> Vec<String> {
    let mut command = server(project, home);
    command.args(["--role", "worker", "hook", "test", "claude"]);
    let events: Vec<String> = lines
        .iter()
        .map(|line| json!({"tool_name": "Bash", "tool_input": {"command": line}}).to_string())
        .collect();
    let output = fed(command, &events.join("\n"));
    assert!(output.status.success(), "{output:?}");
    let decided: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(decided.len(), lines.len(), "{decided:#?}");
    decided
}

fn check(project: &Project, home: &Path, verdict: &str, lines: &[&str]) {
    let decided = decisions(project, home, lines);
    let wrong: Vec<String> = lines
        .iter()
        .zip(decided)
        .filter(|(_, decided)| !decided.starts_with(verdict))
        .map(|(line, decided)| format!("{line}\n    {decided}"))
        .collect();
    assert!(wrong.is_empty(), "not {verdict}:\n{}", wrong.join("\n"));
}

/// A project with sources and settings, in which Claude Code's hook is installed for the user.
fn project(home: &Path) -> Project {
    std::fs::create_dir_all(home.join(".claude")).unwrap();
    std::fs::write(home.join(".claude/settings.json"), "{}").unwrap();
    Project::with([("src/a.rs", ""), ("src/b.rs", ""), ("a.txt", ""), (".mcp.json", "{}")])
}

#[test]
fn a_text_that_bash_evaluates_is_refused_to_a_role_that_may_run_every_program() {
    let home = tempfile::tempdir().unwrap();
    let project = project(home.path());
    check(
        &project,
        home.path(),
        "deny",
        &[
            "declare 'a[$(touch x)]=1'",
            "unset 'a[$(touch x)]'",
            "[[ -v\t'a[$(touch x)]' ]]",
            "x='a[$(touch x)]'; echo $((x))",
            "n=$(cat a.txt); echo $((n + 1))",
            "PS4='$(touch x)'; set -x; true",
            "x='$(touch x)'; echo \"${x@P}\"",
            "BASH_ENV=./a.txt bash -c ls",
        ],
    );
    check(
        &project,
        home.path(),
        "allow",
        &[
            "for ((i = 0; i < 3; i++)); do echo $((i * 2)); done",
            "n=3; while [ $n -gt 0 ]; do n=$((n - 1)); done",
            "test -f a.txt && [[ -n \"$HOME\" ]] && echo ${#HOME}",
            "export A=1 B=\"$HOME\"; env | sort",
        ],
    );
}

#[test]
fn a_word_that_could_be_a_protected_file_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let project = project(home.path());
    check(
        &project,
        home.path(),
        "deny",
        &[
            "cp a.txt \"$HOME/.claude/settings.json\"",
            "cp a.txt $HOME/.claude/settings.json",
            "X=~/.claude/settings.json; cp a.txt $X",
            "for f in a.txt .mcp.json; do cp src/a.rs \"$f\"; done",
            "cp a.txt \"$X\"",
            "cp a.txt \"$(echo .mcp.json)\"",
            "rm .m*",
            "rm .[m]cp.json",
            "rm ~/.claude/*.json",
            "rm -rf ~/.cl*",
            "touch {a.txt,.mcp.json}",
            "find . -name '*.json' -delete",
            "find . -exec rm {} +",
            "find . -type f -exec sed -i s/a/b/ {} \\;",
            "echo .mcp.json | xargs rm",
            "cd \"$X\" && rm settings.json",
            "cd - && rm -rf .",
            "while cd ..; do rm .mcp.json; done",
            "git checkout -- .mcp.json",
            "git mv a.txt .mcp.json",
            "tar --file=.mcp.json -c a.txt",
            "sort -o.mcp.json a.txt",
            "dd if=a.txt of=.mcp.json",
            "rm -rf .",
            "rm -rf \"$PWD\"",
        ],
    );
    check(
        &project,
        home.path(),
        "allow",
        &[
            "cp a.txt b.txt",
            "rm *.txt",
            "rm src/*",
            "rm -rf target",
            "for f in src/*.rs; do rustfmt \"$f\"; done",
            "for f in a b; do touch \"$f.txt\"; done",
            "for i in 1 2 3; do touch out$i.txt; done",
            "find . -name '*.rs' -exec rustfmt {} +",
            "find src -type f -exec sed -i s/a/b/ {} \\;",
            "find src -name '*.bak' -delete",
            "grep -rl foo src | xargs wc -l",
            "cat \"$X\" | grep -n \"$Y\"",
            "git add -A && git commit -m \"$MESSAGE\"",
            "git log --oneline -- .mcp.json",
            "cat .mcp.json",
            "cd \"$X\" && cargo test --all",
            "cargo build . && ls .",
        ],
    );
}

#[test]
fn what_clients_load_by_themselves_is_changed_by_no_line_and_no_tool() {
    let home = tempfile::tempdir().unwrap();
    let project = project(home.path());
    project.write(".claude/commands/there.md", "there");
    check(
        &project,
        home.path(),
        "deny",
        &[
            "cp a.txt .claude/commands/there.md",
            "cp a.txt .claude/commands/new.md",
            "cp a.txt .cl*/commands",
            "echo x > .claude/commands/new.md",
            "echo x > .claude/skills/new/SKILL.md",
            "echo x > .opencode/plugin/new.js",
            "mkdir -p .opencode/plugins",
            "cp -r src .gemini/extensions/evil",
            "cd .claude/commands && touch new.md",
            "for f in new; do touch .claude/agents/$f.md; done",
            "while read f; do touch .claude/agents/$f; done",
            "rm -r .claude/commands",
            "mv .claude/commands gone",
            "mv .claude gone",
            "mv src .codex/prompts",
            "touch .cursor/mcp.json",
            "cp a.txt .vscode/tasks.json",
            "tee .mcp.json < a.txt",
            "ln -s src .claude/agents",
        ],
    );
    check(
        &project,
        home.path(),
        "allow",
        &[
            "cat .claude/commands/there.md",
            "ls .claude/commands .opencode",
            "git add .claude/commands && git commit -m commands",
            "echo x > CLAUDE.md",
            "mkdir plugins && touch plugins/new.js",
        ],
    );
}

#[test]
fn a_person_may_agree_to_a_plug_in_and_to_nothing_that_decides_about_the_agent() {
    let home = tempfile::tempdir().unwrap();
    let project = project(home.path());
    project.write(".claude/commands/there.md", "there");
    std::os::unix::fs::symlink("../settings.json", project.join(".claude/commands/link.md")).unwrap();
    let policy = "version = 1\n[roles.minimal]\nallow = [\"get_diagnostics\"]\n\
                  [roles.asked]\nallow = [\"*\"]\ndeny = [\"run_agent_command\"]\nask = [\"write_file\"]\n";
    std::fs::write(home.path().join("roles.toml"), policy).unwrap();
    let decided = |role: &[&str], paths: &[&str]| -> Vec<String> {
        let mut command = server(&project, home.path());
        command.args(role).args(["hook", "test", "claude"]);
        let events: Vec<String> = paths
            .iter()
            .map(|path| json!({"tool_name": "Write", "tool_input": {"file_path": project.join(path), "content": ""}}))
            .map(|event| event.to_string())
            .collect();
        let output = fed(command, &events.join("\n"));
        text(&output.stdout).lines().map(str::to_owned).collect()
    };
    let file = home.path().join("roles.toml");
    let asked = ["--role", "asked", "--policy", file.to_str().unwrap()];
    let plug_ins = [".claude/commands/there.md", ".claude/agents/new.md", ".vscode/tasks.json"];
    for decision in decided(&asked, &plug_ins) {
        assert!(decision.starts_with("ask") && decision.contains("is protected"), "{decision}");
    }
    let settings =
        [".claude/settings.json", ".mcp.json", ".claude/commands/link.md", "../outside.md", ".git/hooks/x"];
    for decision in decided(&asked, &settings) {
        assert!(decision.starts_with("deny"), "{decision}");
    }
    for decision in decided(&["--role", "worker"], &plug_ins) {
        assert!(decision.starts_with("deny"), "{decision}");
    }
}

#[test]
fn what_a_command_leaves_where_clients_load_plug_ins_is_undone() {
    let home = tempfile::tempdir().unwrap();
    let project = project(home.path());
    project.write(".claude/commands/there.md", "there");
    project.write(".claude/commands/gone.md", "gone");
    // The names are put together by the program, where no reading of the line sees them.
    let script = "import os\n\
        c = '.cla' + 'ude/comm' + 'ands/'\n\
        open(c + 'there.md', 'w').write('evil')\n\
        os.remove(c + 'gone.md')\n\
        os.makedirs(c + 'deep')\n\
        open(c + 'deep/new.md', 'w').write('evil')\n\
        os.makedirs('.openc' + 'ode/plugin')\n\
        open('.openc' + 'ode/plugin/new.js', 'w').write('evil')\n\
        open('free.txt', 'w').write('made')\n";
    project.write("evil.py", script);
    let mut command = server(&project, home.path());
    command.args(["--role", "worker", "exec", "--", "python3", "evil.py"]);
    let output = command.current_dir(project.path()).output().unwrap();
    let told = text(&output.stderr);
    assert_eq!(project.read("free.txt"), "made", "{told}");
    assert_eq!(project.read(".claude/commands/there.md"), "there", "{told}");
    assert_eq!(project.read(".claude/commands/gone.md"), "gone", "{told}");
    assert!(!project.join(".claude/commands/deep/new.md").exists(), "{told}");
    assert!(!project.join(".opencode/plugin/new.js").exists(), "{told}");
    assert!(told.matches("which decides what this agent may do").count() >= 4, "{told}");
}

#[test]
fn no_tool_makes_a_file_that_git_would_take_for_its_own() {
    let home = tempfile::tempdir().unwrap();
    let project = project(home.path());
    let event = |tool: &str, input: Value| json!({"tool_name": tool, "tool_input": input}).to_string();
    let decided = |events: &[String]| -> Vec<String> {
        let mut command = server(&project, home.path());
        command.args(["--role", "worker", "hook", "test", "claude"]);
        let output = fed(command, &events.join("\n"));
        text(&output.stdout).lines().map(str::to_owned).collect()
    };
    let path = |name: &str| project.join(name);
    let refused = [
        event("Write", json!({"file_path": path("sub/.git"), "content": "gitdir: x"})),
        event("Write", json!({"file_path": path("sub/.GIT/config"), "content": ""})),
        event("Write", json!({"file_path": path("bare/HEAD"), "content": "ref: x"})),
        event("Write", json!({"file_path": path("src/HEAD"), "content": "ref: x"})),
        event("Write", json!({"file_path": path(".git/config"), "content": ""})),
        event("Edit", json!({"file_path": path(".git/config"), "old_string": "a", "new_string": "b"})),
        event("Write", json!({"file_path": path(".git/hooks/pre-commit"), "content": ""})),
        event("NotebookEdit", json!({"notebook_path": path(".git/hooks/x"), "new_source": ""})),
        event("Bash", json!({"command": "echo x > sub/.git"})),
        event("Bash", json!({"command": "echo x > .git/hooks/pre-commit"})),
    ];
    for (decision, event) in decided(&refused).iter().zip(&refused) {
        assert!(decision.starts_with("deny"), "{event}: {decision}");
    }
    let allowed = [
        event("Write", json!({"file_path": path("new/folder/a.rs"), "content": ""})),
        event("Write", json!({"file_path": path("new/.gitignore"), "content": ""})),
        event("Bash", json!({"command": "echo x > new.txt"})),
    ];
    for (decision, event) in decided(&allowed).iter().zip(&allowed) {
        assert!(decision.starts_with("allow"), "{event}: {decision}");
    }
}

const ASKS: &str = r#"version = 1
[roles.minimal]
allow = ["get_diagnostics"]
[roles.careful]
allow = ["*"]
deny = ["run_agent_command"]
ask = ["run_command"]
"#;

/// A server for the role `careful`, which is asked about every command, with an audit that must not be lost.
fn careful(project: &Project, home: &Path) -> Command {
    std::fs::write(home.join("roles.toml"), ASKS).unwrap();
    let mut command = server(project, home);
    command.args(["--role", "careful", "--policy"]).arg(home.join("roles.toml"));
    command.arg("--audit").arg(home.join("audit.jsonl"));
    command.env("CORETOOLS_POLICY_AUDIT_WHEN_FULL", "refuse");
    command
}

fn audit(home: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(home.join("audit.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the command that the hook has the client run if its user agrees to `line`.
fn asked(project: &Project, home: &Path, line: &str) -> String {
    let mut command = careful(project, home);
    command.args(["hook", "claude"]);
    let event = json!({
        "hook_event_name": "PreToolUse", "cwd": project.path(), "tool_name": "Bash", "tool_input": {"command": line},
    });
    let output = fed(command, &event.to_string());
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let answer = &answer["hookSpecificOutput"];
    assert_eq!(answer["permissionDecision"], "ask", "{answer}");
    answer["updatedInput"]["command"].as_str().unwrap().to_owned()
}

/// Runs a command as the client does.
fn run(project: &Project, home: &Path, line: &str) -> Output {
    let mut shell = Command::new("bash");
    shell.args(["-c", line]).current_dir(project.path()).stdin(Stdio::null());
    let environment = careful(project, home);
    for (name, value) in environment.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.output().unwrap()
}

#[test]
fn an_approved_line_runs_once_and_is_recorded_as_allowed_with_its_approver() {
    let home = tempfile::tempdir().unwrap();
    let project = project(home.path());
    let command = asked(&project, home.path(), "date >> ran.txt");
    let output = run(&project, home.path(), &command);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(project.read("ran.txt").lines().count(), 1);
    let lines = audit(home.path());
    let seen: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| {
            (line["decision"].as_str().unwrap_or("start"), line["outcome"].as_str().unwrap_or_default())
        })
        .collect();
    assert_eq!(seen, [("asked", "not_run"), ("start", ""), ("allowed", "ok")], "{lines:#?}");
    assert!(lines[2].to_string().contains("the user of Claude Code"), "{lines:#?}");
    // A second time, as an agent that has seen the command would try.
    let output = run(&project, home.path(), &command);
    assert_eq!(output.status.code(), Some(126), "{output:?}");
    assert!(text(&output.stderr).contains("no approval for this call"), "{output:?}");
    assert_eq!(project.read("ran.txt").lines().count(), 1);
    assert_eq!(audit(home.path()).last().unwrap()["decision"], "refused");
}

#[test]
fn an_approval_is_for_one_line_in_one_folder() {
    let home = tempfile::tempdir().unwrap();
    let project = project(home.path());
    let refused = |command: &str| {
        let output = run(&project, home.path(), command);
        assert_eq!(output.status.code(), Some(126), "{command}: {output:?}");
        assert!(!project.join("ran.txt").exists() && !project.join("src/ran.txt").exists(), "{command}");
    };
    let line = "date > ran.txt";
    let command = asked(&project, home.path(), line);
    refused(&command.replace("ran.txt", "src/ran.txt"));
    refused(&command); // The other one has used it up.
    let command = asked(&project, home.path(), line);
    refused(&format!("cd src && {command}"));
    let command = asked(&project, home.path(), line);
    let (before, after) = command.split_once("--approved ").unwrap();
    let (id, rest) = after.split_once(' ').unwrap();
    refused(&format!("{before}{rest}"));
    refused(&format!("{before}--approved {} {rest}", "0".repeat(32)));
    refused(&format!("{before}--approved '' {rest}"));
    assert_eq!(id.len(), 32);
    assert!(run(&project, home.path(), &command).status.success());
}

#[test]
fn a_person_may_agree_to_a_line_that_changes_a_plug_in_and_exec_then_keeps_that_change_alone() {
    let home = tempfile::tempdir().unwrap();
    let project = project(home.path());
    project.write(".claude/commands/there.md", "there");
    project.write(".claude/commands/stays.md", "stays");
    project.write(
        "other.sh",
        "mkdir -p .vscode; echo evil > .opencode/plugin/new.js; echo evil > .vscode/tasks.json
         echo evil > .claude/commands/evil.md; echo evil > .claude/commands/stays.md\n",
    );
    std::fs::create_dir_all(project.join(".opencode/plugin")).unwrap();
    let line = "echo new > .claude/commands/new.md; rm .claude/commands/there.md; cp src/a.rs .claude/agents; sh other.sh";
    std::fs::create_dir_all(project.join(".claude/agents")).unwrap();
    // The person is told why.
    let mut command = careful(&project, home.path());
    command.args(["hook", "test", "claude"]);
    let event = json!({"tool_name": "Bash", "tool_input": {"command": line}}).to_string();
    let told = text(&fed(command, &event).stdout);
    assert!(told.starts_with("ask") && told.contains("`.claude/commands/there.md` is protected"), "{told}");
    let approved = asked(&project, home.path(), line);
    let output = run(&project, home.path(), &approved);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(project.read(".claude/commands/new.md"), "new\n", "{output:?}");
    assert!(!project.join(".claude/commands/there.md").exists(), "{output:?}");
    assert!(project.join(".claude/agents/a.rs").exists(), "{output:?}");
    // The line did not name these, so nobody has agreed to them.
    assert!(!project.join(".opencode/plugin/new.js").exists(), "{output:?}");
    assert!(!project.join(".vscode/tasks.json").exists(), "{output:?}");
    assert!(!project.join(".claude/commands/evil.md").exists(), "{output:?}");
    assert_eq!(project.read(".claude/commands/stays.md"), "stays", "{output:?}");
    // Nobody's word opens what decides about the agent.
    let mut command = careful(&project, home.path());
    command.args(["hook", "test", "claude"]);
    let events: Vec<String> = [
        "cp a.txt .claude/settings.json",
        "echo {} > .claude/settings.json",
        "rm -r .claude",
        "mv .claude gone",
        "tee .mcp.json < a.txt",
        "rm .claude/commands/new.md .claude/settings.json",
        "for f in new.md ../settings.json; do cp a.txt .claude/commands/$f; done",
    ]
    .iter()
    .map(|line| json!({"tool_name": "Bash", "tool_input": {"command": line}}).to_string())
    .collect();
    let output = fed(command, &events.join("\n"));
    let decided = text(&output.stdout);
    assert_eq!(decided.lines().count(), events.len(), "{output:?}");
    for decision in decided.lines() {
        assert!(decision.starts_with("deny"), "{decision}");
    }
}

#[test]
fn a_confined_command_reaches_no_approval() {
    let home = tempfile::tempdir().unwrap();
    let project = project(home.path());
    // A grant that waits.
    asked(&project, home.path(), "date");
    let folder = home.path().join(".local/state/coretools/approvals");
    let grants = || std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(grants(), 1);
    let mut command = server(&project, home.path());
    let script = format!(
        "ls {0} && echo listed; cat {0}/* && echo read; echo x > {0}/forged.grant && echo written; rm -f {0}/* && echo removed; true",
        folder.display()
    );
    // A script, which the policy judges by its name.
    project.write("forge.sh", &script);
    command.args(["--role", "worker", "exec", "--", "sh", "forge.sh"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for done in ["listed", "read", "written"] {
        assert!(!said.contains(done), "{output:?}");
    }
    assert_eq!(grants(), 1, "{output:?}");
    assert!(!folder.join("forged.grant").exists());
}

#[test]
fn the_start_of_a_command_stands_in_the_audit_while_it_runs() {
    let home = tempfile::tempdir().unwrap();
    let project = project(home.path());
    let mut command = server(&project, home.path());
    command.args(["--role", "worker", "--audit"]).arg(home.path().join("audit.jsonl"));
    command.env("CORETOOLS_POLICY_AUDIT_WHEN_FULL", "refuse");
    command.args(["exec", "--", "sh", "-c", "echo started; exec sleep 600"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
        .unwrap();
    assert_eq!(line, "started\n");
    // Whatever ends it now, the start is there.
    let lines = audit(home.path());
    assert!(lines.len() == 1 && lines[0]["event"] == "start", "{lines:#?}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(audit(home.path()).len(), 1);
}
