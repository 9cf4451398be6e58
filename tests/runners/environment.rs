//! The part of the server's environment that a runner gets: what it would get in a terminal.

use crate::support::SampleProject;
use integration_tests::{Era, Wire};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The variables that the runner of `sample` was started with, but for the one that tells its processes.
fn variables(sample: &SampleProject) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(sample.path().join("environment")).unwrap();
    let variables = text.split('\0').filter_map(|variable| variable.split_once('='));
    let told = variables.filter(|(name, _)| !name.starts_with("PROCESS_RUNNER_RUN_"));
    told.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A project whose tests write down their environment.
fn recording() -> Option<SampleProject> {
    let sample = SampleProject::empty("node")?;
    sample.write("package.json", "{\"scripts\":{\"test\":\"node --test\"}}").write(
        "a.test.js",
        "require('node:test').test('a', () => {
            const all = Object.entries(process.env).map(([name, value]) => `${name}=${value}`);
            require('fs').writeFileSync('environment', all.join('\\0'));
        });\n",
    );
    Some(sample)
}

#[test]
fn nothing_of_the_cargo_that_runs_us_reaches_a_runner() {
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "run by cargo, which sets it");
    let Some(sample) = recording() else { return };
    assert!(sample.run("", "").is_success());
    let variables = variables(&sample);
    // Of the toolchain's own settings those stay that the user has made.
    let stays = |name: &str| {
        ["CARGO_HOME", "CARGO_TARGET_DIR", "CARGO_INCREMENTAL", "RUSTUP_HOME"].contains(&name)
            || name.starts_with("RUSTUP_")
            || name.starts_with("CARGO_TERM_")
            || name.starts_with("CARGO_NET_")
            || name.starts_with("CARGO_REGISTRIES_")
            || name.starts_with("CARGO_HTTP_")
    };
    let leaked: Vec<_> = variables
        .keys()
        .filter(|name| ["CARGO", "RUST", "NEXTEST", "CORETOOLS_"].iter().any(|ours| name.starts_with(ours)))
        .filter(|name| !stays(name))
        .collect();
    assert!(leaked.is_empty(), "{leaked:?}");
    assert!(variables.contains_key("PATH") && variables.contains_key("HOME"));
}

#[test]
fn the_settings_of_the_server_do_not_reach_a_runner_and_those_of_the_user_do() {
    let Some(sample) = recording() else { return };
    let mut server = std::process::Command::new(integration_tests::server());
    server.current_dir(sample.path());
    for name in ["CORETOOLS_LOG", "CORETOOLS_RESULTS"] {
        server.env_remove(name);
    }
    server.env("FILESYSTEM_TOOLS_BASE_PATH", sample.path());
    let ours = [
        ("RUST_LOG", "debug"),
        ("CORETOOLS_ROLE", "orchestrator"),
        ("CARGO_MANIFEST_DIR", "/"),
        ("CARGO_BIN_EXE_server", "/server"),
        ("CARGO_CFG_UNIX", ""),
        ("CARGO_FEATURE_DEFAULT", "1"),
        ("CARGO_PKG_SOMETHING", "new"),
        ("GIT_DIR", "/elsewhere"),
        ("GIT_INDEX_FILE", "/elsewhere/index"),
        ("GIT_WORK_TREE", "/"),
        ("MAKELEVEL", "2"),
        ("MFLAGS", "-k"),
        ("BATS_ROOT", "/bats"),
        ("PYTEST_XDIST_WORKER", "gw0"),
    ];
    server.envs(ours);
    server.env("RUSTFLAGS", "-C debuginfo=0").env("DATABASE_HOST", "localhost");
    let mut wire = Wire::connect(server, Era::Modern);
    let result = wire.call("run_tests", json!({}));
    assert_eq!(result["isError"], false, "{result}");
    let variables = variables(&sample);
    for name in ours.iter().map(|(name, _)| *name).chain(["FILESYSTEM_TOOLS_BASE_PATH"]) {
        assert!(!variables.contains_key(name), "{name}");
    }
    assert_eq!(variables["RUSTFLAGS"], "-C debuginfo=0");
    assert_eq!(variables["DATABASE_HOST"], "localhost");
}

#[test]
fn tests_get_what_run_command_gives_and_our_option_and_neither_gets_settings_for_a_terminal() {
    let Some(sample) = recording() else { return };
    let mut server = std::process::Command::new(integration_tests::server());
    server.current_dir(sample.path()).env("FILESYSTEM_TOOLS_BASE_PATH", sample.path());
    let settings = ["NO_COLOR", "TERM", "PAGER", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "CARGO_TERM_COLOR"];
    for name in settings {
        server.env_remove(name);
    }
    server.env("GIT_ASKPASS", "/bin/asks").env("SSH_ASKPASS", "/bin/asks").env("OF_THE_USER", "kept");
    let mut wire = Wire::connect(server, Era::Modern);
    let program = "console.log(Object.keys(process.env).join('\\n'))";
    let (report, _) = wire.outcome("run_command", json!({"command": ["node", "-e", program]}));
    let printed = report["stdout"].as_str().unwrap();
    // The editors are for commands only: git would open one and wait.
    let is_markers = |name: &str| {
        name == "[redacted:command-name]" || ["_", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR"].contains(&name)
    };
    let of_command: BTreeSet<&str> = printed.lines().filter(|name| !is_markers(name)).collect();
    assert!(of_command.contains("OF_THE_USER"), "{printed}");
    for name in settings.iter().chain(&["GIT_ASKPASS", "SSH_ASKPASS"]) {
        assert!(!of_command.contains(name), "{name}: {printed}");
    }
    // The runner itself, and not through npm, which sets variables of its own.
    let (report, failed) = wire.outcome("run_tests", json!({"runner": "node"}));
    assert!(!failed, "{report}");
    let of_tests = variables(&sample);
    assert!(!of_tests.contains_key("GIT_EDITOR"));
    assert_eq!(of_tests["OF_THE_USER"], "kept");
    // Set by node for the files that it runs.
    let is_nodes = |name: &str| ["NODE_TEST_CONTEXT", "NODE_TEST_WORKER_ID"].contains(&name);
    let of_tests = of_tests.keys().map(String::as_str).filter(|name| !is_markers(name) && !is_nodes(name));
    assert_eq!(of_tests.collect::<BTreeSet<_>>(), of_command);
}

#[test]
fn a_program_that_asks_for_a_password_or_pages_does_not_wait() {
    let sample = SampleProject::empty("git");
    let Some(sample) = sample else { return };
    // A server that asks whoever comes for a password.
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            use std::io::{Read, Write};
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let answer = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"a\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let git = |arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(arguments).current_dir(sample.path());
        assert!(git.output().unwrap().status.success(), "{arguments:?}");
    };
    git(&["init", "-q", "."]);
    git(&[
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.org",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "first",
    ]);
    git(&["config", "core.pager", "sleep 1000"]);
    git(&["config", "pager.log", "true"]);
    let mut server = std::process::Command::new(integration_tests::server());
    server.current_dir(sample.path()).env("FILESYSTEM_TOOLS_BASE_PATH", sample.path()).env("TERM", "xterm");
    // No proxy is between it and this machine.
    server.env("no_proxy", "127.0.0.1").env("NO_PROXY", "127.0.0.1");
    let mut wire = Wire::connect(server, Era::Modern);
    let (report, failed) = wire.outcome(
        "run_command",
        json!({"command": ["git", "ls-remote", format!("http://127.0.0.1:{port}/a.git")], "timeout_ms": 60_000}),
    );
    assert_eq!((&report["outcome"], failed), (&json!("exited"), true), "{report}");
    assert!(report["stderr"].as_str().unwrap().contains("could not read Username"), "{report}");
    let (report, failed) =
        wire.outcome("run_command", json!({"command": ["git", "log"], "timeout_ms": 60_000}));
    assert_eq!((&report["outcome"], failed), (&json!("exited"), false), "{report}");
    assert!(report["stdout"].as_str().unwrap().contains("first"), "{report}");
}

#[test]
fn no_runner_of_a_compound_command_leaves_its_tests_a_variable_of_ours() {
    let Some(sample) = SampleProject::empty("pytest") else { return };
    for program in ["rspec", "rake", "go", "node"] {
        if SampleProject::empty(program).is_none() {
            return;
        }
    }
    let ruby = "File.write(\"environment-#{$0.hash}\", ENV.map { |name, value| \"#{name}=#{value}\" }.join(\"\\0\"))";
    let python = "import os\n    open(f'environment-{os.getpid()}', 'w').write('\\0'.join(f'{name}={value}' for name, value in os.environ.items()))\n";
    sample
        .write("Makefile", "test:\n\tpython3 -m unittest\n\t.venv/bin/python -m pytest -q test_b.py\n\tnode --test\n\trspec\n\truby mini.rb\n\truby unit.rb\n")
        .write("test_a.py", &format!("import unittest\nclass A(unittest.TestCase):\n  def test_a(self):\n    {python}"))
        .write("test_b.py", &format!("def test_b():\n    {python}"))
        .write(
            "a.test.js",
            "require('node:test').test('a', () => {\n  const all = Object.entries(process.env).map(([name, value]) => `${name}=${value}`);\n  require('fs').writeFileSync('environment-node', all.join('\\0'));\n});\n",
        )
        .write("spec/a_spec.rb", &format!("describe('a') {{ it('b') {{ {ruby} }} }}\n"))
        .write("mini.rb", &format!("require 'minitest/autorun'\nclass A < Minitest::Test\n  def test_a\n    {ruby}\n  end\nend\n"))
        .write("unit.rb", &format!("require 'test/unit'\nclass A < Test::Unit::TestCase\n  def test_a\n    {ruby}\n  end\nend\n"));
    let request = core_tools::testing::RunTests::new()
        .runner("make")
        .env("RUBYOPT", "-W0")
        .env("PYTHONPATH", "/of/the/user")
        .env("NODE_OPTIONS", "--stack-trace-limit=33");
    let report = sample.try_run(&request).unwrap();
    assert!(report.is_success() && report.passed == 6, "{}", report.to_text());
    let ours =
        ["NODE_OPTIONS", "PYTHONPATH", "PYTEST_PLUGINS", "RUBYLIB", "RUBYOPT", "SPEC_OPTS", "TOX_OVERRIDE"];
    let mut files = 0;
    for entry in std::fs::read_dir(sample.path()).unwrap() {
        let entry = entry.unwrap();
        if !entry.file_name().to_string_lossy().starts_with("environment-") {
            continue;
        }
        files += 1;
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let variables: BTreeMap<_, _> =
            text.split('\0').filter_map(|variable| variable.split_once('=')).collect();
        for name in ours {
            let value = variables.get(name).copied().unwrap_or_default();
            let is_ours =
                value.contains("core_tools") || value.contains("/report-") || value.contains(",NODE_OPTIONS");
            assert!(!is_ours, "{:?}: {name}={value}", entry.file_name());
        }
        let of_user =
            [("NODE_OPTIONS", "--stack-trace-limit=33"), ("PYTHONPATH", "/of/the/user"), ("RUBYOPT", "-W0")];
        for (name, value) in of_user {
            assert_eq!(variables.get(name), Some(&value), "{:?}: {name}", entry.file_name());
        }
    }
    assert_eq!(files, 6);
}

#[test]
fn a_command_whose_programs_load_no_reporter_gets_no_variable_of_ours() {
    let Some(sample) = SampleProject::empty("go") else { return };
    sample
        .write("Makefile", "test:\n\tgo test ./...\n")
        .write("go.mod", "module example.org/a\n\ngo 1.19\n")
        .write(
            "a_test.go",
            "package a\n\nimport (\n\t\"os\"\n\t\"strings\"\n\t\"testing\"\n)\n\nfunc TestA(t *testing.T) {\n\tos.WriteFile(\"environment\", []byte(strings.Join(os.Environ(), \"\\x00\")), 0o644)\n}\n",
        );
    let report = sample.run("make", "");
    assert!(report.is_success(), "{}", report.to_text());
    let variables = variables(&sample);
    for name in ["NODE_OPTIONS", "PYTHONPATH", "RUBYLIB", "RUBYOPT", "SPEC_OPTS"] {
        assert!(!variables.get(name).is_some_and(|value| value.contains("report-")), "{name}");
    }
    assert!(!report.to_text().contains("environment:"), "{}", report.to_text());
}
