//! Measures the time that the test engine adds to a run of 5,000 tests, beside the same runner run bare.
//!
//! Run it with `cargo bench -p core-tools --features testing --bench run_tests [-- FOLDER]`. Projects are made
//! in a temporary folder. Each is run once to warm up, then bare and by the engine in turn. The runners are
//! those on `PATH`; mocha, jest and vitest are looked for in FOLDER, by default in `.runners/node_modules`,
//! where `.ci/run` installs them, and pytest in `.venv`. A runner that is missing is named and left out.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::expect_used, reason = "a benchmark ends where it cannot go on")]
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark makes its own files and runs what it compares with"
)]

use core_tools::ci::Commands;
use core_tools::redact::{RedactionOptions, Redactor};
use core_tools::testing::{RunTests, run_tests};
use core_tools::workspace::Workspace;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of tests of each project.
const TESTS: usize = 5_000;
/// The number of measured runs of each kind; the median counts.
const RUNS: usize = 5;

/// A runner and a project of its tests.
struct Case {
    runner: &'static str,
    /// The command that runs the tests without the engine.
    bare_command: Vec<String>,
    /// The files of the project: path and text.
    files: Vec<(&'static str, String)>,
}

/// Returns one line for each test.
fn repeat(line: impl Fn(usize) -> String) -> String {
    (0..TESTS).fold(String::new(), |mut text, index| {
        let _ = writeln!(text, "{}", line(index));
        text
    })
}

fn cases(modules: &Path) -> Vec<Case> {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let javascript = repeat(|index| format!("test('t{index}', () => {{}});"));
    let manifest = "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    let rust = repeat(|index| format!("#[test]\nfn t{index}() {{}}"));
    let module = |path: &str| modules.join(path).display().to_string();
    vec![
        Case {
            runner: "cargo",
            bare_command: words(&["cargo", "test", "--no-fail-fast"]),
            files: vec![("Cargo.toml", manifest.to_owned()), ("src/lib.rs", rust)],
        },
        Case {
            runner: "pytest",
            bare_command: words(&[".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider"]),
            files: vec![
                ("pytest.ini", "[pytest]\n".to_owned()),
                ("test_a.py", repeat(|index| format!("def test_{index}(): pass"))),
            ],
        },
        Case {
            runner: "node",
            bare_command: words(&["node", "--test"]),
            files: vec![
                ("package.json", "{}".to_owned()),
                ("a.test.js", format!("const test = require('node:test');\n{javascript}")),
            ],
        },
        Case {
            runner: "mocha",
            bare_command: vec!["node".to_owned(), module("mocha/bin/mocha.js")],
            files: vec![
                ("package.json", "{\"devDependencies\": {\"mocha\": \"*\"}}".to_owned()),
                ("test/a.cjs", repeat(|index| format!("it('t{index}', () => {{}});"))),
            ],
        },
        Case {
            runner: "jest",
            bare_command: vec!["node".to_owned(), module("jest/bin/jest.js"), "--ci".to_owned()],
            files: vec![
                ("package.json", "{\"devDependencies\": {\"jest\": \"*\"}}".to_owned()),
                ("a.test.js", javascript.clone()),
            ],
        },
        Case {
            runner: "vitest",
            bare_command: vec!["node".to_owned(), module("vitest/vitest.mjs"), "run".to_owned()],
            files: vec![
                ("package.json", "{\"devDependencies\": {\"vitest\": \"*\"}}".to_owned()),
                ("a.test.js", format!("import {{ test }} from 'vitest';\n{javascript}")),
            ],
        },
        Case {
            runner: "go",
            bare_command: words(&["go", "test", "-count=1", "./..."]),
            files: vec![
                ("go.mod", "module example.org/sample\n\ngo 1.18\n".to_owned()),
                (
                    "a_test.go",
                    format!(
                        "package sample\n\nimport \"testing\"\n\n{}",
                        repeat(|index| format!("func Test{index}(t *testing.T) {{}}"))
                    ),
                ),
            ],
        },
    ]
}

fn main() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let modules = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let modules = modules.map_or_else(|| here.join(".runners/node_modules"), PathBuf::from);
    println!("{TESTS} tests, medians of {RUNS} runs in turn, in ms");
    println!("{:<8} {:>8} {:>8} {:>8}", "runner", "bare", "engine", "added");
    for case in cases(&modules) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (path, content) in &case.files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, content).expect("a file");
        }
        for (from, name) in [(&modules, "node_modules"), (&here.join(".venv"), ".venv")] {
            #[cfg(unix)]
            if let Ok(from) = from.canonicalize() {
                std::os::unix::fs::symlink(from, folder.path().join(name)).expect("a link");
            }
        }
        if !run_bare(&case, folder.path()) {
            println!("{:<8} is not installed, or failed", case.runner);
            continue;
        }
        run_by_engine(&case, folder.path());
        let (mut bare, mut by_engine) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            bare.push(timed(|| assert!(run_bare(&case, folder.path()))));
            by_engine.push(timed(|| run_by_engine(&case, folder.path())));
        }
        let (bare, by_engine) = (median(bare), median(by_engine));
        println!("{:<8} {bare:>8.0} {by_engine:>8.0} {:>8.0}", case.runner, by_engine - bare);
    }
}

/// Runs the tests as a person would, with the output in a file, and returns whether they passed.
fn run_bare(case: &Case, folder: &Path) -> bool {
    let output = fs::File::create(folder.join("output")).expect("a file");
    let Some((program, arguments)) = case.bare_command.split_first() else { return false };
    let program = if program.contains('/') { folder.join(program) } else { PathBuf::from(program) };
    let mut command = Command::new(program);
    // cargo started this program; in a terminal its variables would not be there.
    for (name, _) in
        std::env::vars().filter(|(name, _)| name.starts_with("CARGO") || name.starts_with("RUST"))
    {
        if name != "CARGO_HOME" && name != "RUSTUP_HOME" {
            command.env_remove(name);
        }
    }
    let errors = output.try_clone().expect("a file");
    let run = command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .status();
    run.is_ok_and(|status| status.success())
}

fn run_by_engine(case: &Case, folder: &Path) {
    let workspace = Arc::new(Workspace::new([folder]).expect("a workspace"));
    let redactor = Redactor::new(RedactionOptions::default()).expect("a redactor");
    let commands = Commands::new(process_runner::Runner::new(), workspace, redactor);
    let request = RunTests::new().runner(case.runner);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let report = runtime
        .block_on(run_tests(&commands, &request, &tokio_util::sync::CancellationToken::new(), |_| {}))
        .expect("a report");
    assert!(report.is_success() && report.passed == TESTS as u64, "{}", report.to_text());
}

/// Returns the time that `run` takes.
fn timed(run: impl FnOnce()) -> Duration {
    let started = Instant::now();
    run();
    started.elapsed()
}

/// Returns the median, in milliseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}
