//! `mcp-stdio policy …`: what it prints, and its exit codes.

use crate::{put, run, server};
use integration_tests::Project;
use std::path::Path;

/// A policy with something of everything.
const POLICY: &str = r#"version = 1
missing_role = "dev"
external_tools = ["deploy"]

[roles.minimal]
allow = ["get_diagnostics"]

[roles.dev]
allow = ["*"]
deny = ["delete_file", "deploy"]
must_deny = [{ tool = "deploy" }]

[[roles.dev.require]]
id = "docs-only"
tools = ["write_file"]
write_within = ["docs"]
reason = "Ask the lead for more"
must_allow = [{ tool = "write_file", arguments = { path = "docs/a", content = "" } }]
must_deny = [{ tool = "write_file", arguments = { path = "src/a", content = "" } }]

[[roles.dev.require]]
id = "builds"
tools = ["run_command", "start_command"]
commands = ["echo", "env"]
"#;

struct PolicyCommandFixture {
    project: Project,
    outside: Project,
}

impl PolicyCommandFixture {
    fn new(policy: &str) -> Self {
        let asked = Self {
            project: Project::with([("docs/a.md", "a"), ("src/a.rs", "a")]),
            outside: Project::empty(),
        };
        asked.file("roles.toml", policy);
        asked
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        put(&self.outside.join(name), content, 0o600).display().to_string()
    }

    /// The exit code and everything that is printed, with the paths of this run taken out.
    fn ask(&self, arguments: &[&str]) -> String {
        let mut command = server(&self.project, ["policy"]);
        command.args(arguments);
        if !matches!(arguments, ["init" | "diff" | "marker", ..]) && !arguments.contains(&"--policy") {
            command.arg("--policy").arg(self.outside.join("roles.toml"));
        }
        let output = run(command);
        let text = |bytes: Vec<u8>| {
            let folder = |path: &Path| path.canonicalize().unwrap().display().to_string();
            String::from_utf8(bytes)
                .unwrap()
                .replace(&folder(self.outside.path()), "/outside")
                .replace(&folder(self.project.path()), "/project")
                .trim_end()
                .to_owned()
        };
        let mut said = format!(
            "$ policy {}\n",
            arguments.join(" ").replace(&self.outside.path().display().to_string(), "/outside")
        );
        for part in [text(output.stdout), text(output.stderr)] {
            if !part.is_empty() {
                said.push_str(&part);
                said.push('\n');
            }
        }
        format!("{said}[exit code {}]", output.status.code().expect("an exit code"))
    }

    fn all(&self, questions: &[&[&str]]) -> String {
        questions.iter().map(|question| self.ask(question)).collect::<Vec<_>>().join("\n\n")
    }
}

#[test]
fn check_says_whether_and_by_which_rule_with_an_exit_code_for_scripts() {
    let asked = PolicyCommandFixture::new(POLICY);
    let said = asked.all(&[
        &["check", "--role", "dev", "--tool", "read_file", "--args", r#"{"path":"src/a.rs"}"#],
        &["check", "--role", "dev", "--tool", "delete_file"],
        &["check", "--role", "dev", "--tool", "deploy"],
        &["check", "--role", "dev", "--tool", "no_such_tool"],
        &["check", "--role", "dev", "--tool", "write_file", "--args", r#"{"path":"docs/b","content":""}"#],
        &["check", "--role", "dev", "--tool", "write_file", "--args", r#"{"path":"src/b","content":""}"#],
        &[
            "check",
            "--role",
            "dev",
            "--tool",
            "write_file",
            "--args",
            r#"{"path":"docs/../src/b","content":""}"#,
            "--json",
        ],
        &["check", "--role", "dev", "--tool", "run_command", "--args", r#"{"command":"sh -c true"}"#],
        &["check", "--role", "minimal", "--tool", "read_file", "--json"],
        &["check", "--role", "dev,minimal", "--tool", "read_file"],
        &["check", "--tool", "read_file", "--args", r#"{"path":"a"}"#],
        &["check", "--role", "devv", "--tool", "read_file"],
        &["check", "--role", "", "--tool", "read_file"],
        &["check", "--role", "dev", "--tool", "read_file", "--args", "[]"],
        &["check", "--role", "dev", "--tool", "read_file", "--args", "{"],
    ]);
    insta::assert_snapshot!("check", said);
}

#[test]
fn explain_names_everything_that_was_looked_at() {
    let asked = PolicyCommandFixture::new(POLICY);
    let said = asked.all(&[
        &["explain", "--role", "dev", "--tool", "write_file", "--args", r#"{"path":"src/b","content":""}"#],
        &["explain", "--role", "dev", "--tool", "delete_file"],
        &["explain", "--role", "dev,minimal", "--tool", "get_diagnostics"],
        &["explain", "--role", "nobody", "--tool", "read_file"],
    ]);
    insta::assert_snapshot!("explain", said);
}

#[test]
fn the_table_comes_as_text_as_markdown_and_as_json() {
    let asked = PolicyCommandFixture::new(POLICY);
    let said = asked.all(&[&["matrix"], &["matrix", "--markdown"], &["matrix", "--json"]]);
    insta::assert_snapshot!("matrix", said);
}

#[test]
fn lint_and_test_say_what_is_wrong_and_fail() {
    let good = PolicyCommandFixture::new(POLICY);
    let mut said = vec![good.ask(&["lint"]), good.ask(&["lint", "--strict"]), good.ask(&["test"])];
    let bad = PolicyCommandFixture::new(
        &POLICY.replace("\"delete_file\"", "\"delete_fiel\"").replace("docs/a\"", "doc/a\""),
    );
    said.extend([
        bad.ask(&["lint"]),
        bad.ask(&["test"]),
        bad.ask(&["check", "--role", "dev", "--tool", "read_file"]),
        bad.ask(&["matrix"]),
    ]);
    let broken = PolicyCommandFixture::new("version = 1\n[roles.dev\n");
    said.extend([broken.ask(&["lint"]), broken.ask(&["test"])]);
    let empty = PolicyCommandFixture::new("");
    said.push(empty.ask(&["lint"]));
    let missing = empty.outside.join("missing.toml").display().to_string();
    said.push(empty.ask(&["lint", "--policy", &missing]));
    said.push(empty.ask(&["test", "--policy", "/dev/zero"]));
    insta::assert_snapshot!("lint", said.join("\n\n"));
    put(&good.outside.join("roles.toml"), POLICY, 0o666);
    let said = good.ask(&["test"]);
    assert!(said.contains("others may write to it") && said.ends_with("[exit code 2]"), "{said}");
}

#[test]
fn the_built_in_policy_that_init_prints_is_a_good_one_and_changes_nothing() {
    let asked = PolicyCommandFixture::new("");
    let mut init = server(&asked.project, ["policy", "init"]);
    init.stdin(std::process::Stdio::null());
    let printed = run(init).stdout;
    let own = asked.file("own.toml", &printed);
    assert!(asked.ask(&["lint", "--strict", "--policy", &own]).ends_with("no problems found\n[exit code 0]"));
    let said = asked.ask(&["test", "--policy", &own]);
    assert!(said.contains("examples hold") && said.ends_with("[exit code 0]"), "{said}");
    let matrix = |arguments: &[&str]| {
        run({
            let mut command = server(&asked.project, ["policy", "matrix"]);
            command.args(arguments);
            command
        })
        .stdout
    };
    assert_eq!(matrix(&["--policy", &own]), matrix(&[]));
}

#[test]
fn diff_says_what_changes_for_whom() {
    let asked = PolicyCommandFixture::new(POLICY);
    let old = asked.file("old.toml", POLICY);
    let new = POLICY
        .replace(
            "deny = [\"delete_file\", \"deploy\"]",
            "deny = [\"run_command\", \"deploy\"]\nlimits = { calls_per_minute = 5 }",
        )
        .replace("write_within = [\"docs\"]", "write_within = [\"docs\", \"notes\"]")
        .replace(
            "[roles.minimal]\nallow = [\"get_diagnostics\"]",
            "[roles.qa]\nextends = \"dev\"\nmay_use = \"dev\"\ndocuments = \"A.md\"",
        )
        .replace("missing_role = \"dev\"", "missing_role = \"qa\"");
    let new = asked.file("new.toml", new);
    let broken = asked.file("broken.toml", "version = 3");
    let said = asked.all(&[
        &["diff", &old, &new],
        &["diff", &new, &old],
        &["diff", &old, &old],
        &["diff", &old, &broken],
    ]);
    insta::assert_snapshot!("diff", said);
}

#[test]
fn a_marker_that_cannot_be_written_says_why() {
    let asked = PolicyCommandFixture::new(POLICY);
    let key = asked.file("key", [b'k'; 32]);
    let short = asked.file("short", [b'k'; 31]);
    let folder = asked.outside.join("session").display().to_string();
    let said = asked.all(&[
        &["marker", &folder],
        &["marker", "--role", "Worker", &folder],
        &["marker", "--role", "worker", &folder],
        &["marker", "--role", "worker", "--session", "s1", &folder],
        &["marker", "--role", "worker", "--key", &key, "--session", "s1", &folder],
        &["marker", "--role", "worker", "--key", &key, "--session", "s 1", &folder],
        &["marker", "--role", "worker", "--key", &key, "--ttl", "86401", &folder],
        &["marker", "--role", "worker", "--key", &short, &folder],
        &["marker", "--role", "worker", "--key", "/dev/null", &folder],
        &["marker", "--role", "worker", "/proc/no/such"],
    ]);
    insta::assert_snapshot!("marker", said);
}

/// A call on the command line is judged as any other call: in the form that runs.
#[test]
fn check_judges_the_same_arguments_as_a_call_does() {
    let rule = "[[roles.dev.require]]\nid = \"few\"\ntools = [\"find_files\"]\narguments = { max_results = { max = 5, optional = true } }\n";
    let asked = PolicyCommandFixture::new(&format!("{POLICY}\n{rule}"));
    let check =
        |arguments: &str| asked.ask(&["check", "--role", "dev", "--tool", "find_files", "--args", arguments]);
    assert!(check(r#"{"pattern":"*","max_results":50}"#).contains("refused:"));
    let said = check(r#"{"pattern":"*","maxResults":50}"#);
    assert!(said.contains("refused:"), "a server takes camelCase, and refuses this: {said}");
    let said = check(r#"{"pattern":"*","max_result":50}"#);
    assert!(!said.contains("allowed:"), "a server refuses an unknown argument: {said}");
}
