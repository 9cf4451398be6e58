//! A sample project, and the engine to run its tests.

use core_tools::ci::Commands;
use core_tools::redact::Redactor;
use core_tools::testing::{RunTests, TestError, TestReport, run_tests};
use core_tools::workspace::Workspace;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// A copy of a sample project, in a folder of its own.
pub(crate) struct SampleProject {
    folder: TempDir,
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// The package `sample` under a name that no other has: with `CARGO_TARGET_DIR` set, all are built in one
/// folder, where packages of one name take each other's place.
fn of_its_own(manifest: &str) -> String {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    let name = format!("name = \"sample-{}-{number}\"", std::process::id());
    format!("{}\n[lib]\nname = \"sample\"\n", manifest.replacen("name = \"sample\"", &name, 1))
}

/// The name of the sample again.
fn usual(text: &str) -> String {
    let prefix = format!("sample-{}-", std::process::id());
    let mut pieces = text.split(&prefix);
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + "sample" + piece.trim_start_matches(|c: char| c.is_ascii_digit()))
}

fn runs(program: &str) -> bool {
    let version = if program == "go" { "version" } else { "--version" };
    Command::new(program).arg(version).output().is_ok_and(|output| output.status.success())
}

impl SampleProject {
    /// The sample of this name; nothing if `program`, which it needs, is not installed.
    pub(crate) fn of(name: &str, program: &str) -> Option<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let sample = Self { folder: tempfile::tempdir().unwrap() };
        copy(&here.join("runners/projects").join(name), sample.path());
        if let Ok(manifest) = std::fs::read_to_string(sample.path().join("Cargo.toml")) {
            sample.write("Cargo.toml", &manifest);
        }
        sample.with(program).then_some(sample)
    }

    /// An empty one, for a runner.
    pub(crate) fn empty(program: &str) -> Option<Self> {
        let sample = Self { folder: tempfile::tempdir().unwrap() };
        sample.with(program).then_some(sample)
    }

    fn with(&self, program: &str) -> bool {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
        let link = |from: PathBuf, name: &str| {
            let there = from.exists();
            if there {
                #[cfg(unix)]
                std::os::unix::fs::symlink(from, self.path().join(name)).unwrap();
            }
            there
        };
        let found = match program {
            "mocha" | "jest" | "vitest" | "ava" | "@playwright/test" => {
                let modules = root.join(".runners/node_modules");
                modules.join(program).exists() && link(modules, "node_modules")
            }
            // Debian's repository beside it: nothing is downloaded.
            "mvn" => {
                let repository = Path::new("/usr/share/maven-repo/org");
                let parts = ["apache/maven/surefire/surefire-junit-platform", "junit/jupiter/junit-jupiter"];
                runs("mvn") && parts.iter().all(|part| repository.join(part).exists())
            }
            "pytest" | "tox" | "nox" => {
                root.join(".venv/bin").join(program).exists() && link(root.join(".venv"), ".venv")
            }
            // What stands beside the runners: package managers, and what is older or smaller than the others.
            "tape" | "mocha 9" => {
                let modules = root.join(".runners/managers/node_modules");
                let name = program.split(' ').next().unwrap();
                modules.join(name).exists() && link(modules, "node_modules")
            }
            "ava 5" => {
                let ava = root.join(".runners/managers/node_modules/ava5");
                ava.exists() && {
                    std::fs::create_dir_all(self.path().join("node_modules/.bin")).unwrap();
                    link(ava.clone(), "node_modules/ava")
                        && link(ava.join("entrypoints/cli.mjs"), "node_modules/.bin/ava")
                }
            }
            "mocha 3" | "mocha 12" => {
                let mocha = root.join(".runners/managers/node_modules").join(program.replace(' ', ""));
                mocha.exists() && {
                    std::fs::create_dir_all(self.path().join("node_modules/.bin")).unwrap();
                    let own = if program == "mocha 3" { "bin/mocha" } else { "bin/mocha.js" };
                    link(mocha.clone(), "node_modules/mocha")
                        && link(mocha.join(own), "node_modules/.bin/mocha")
                }
            }
            "django" | "pytest-xdist" | "pytest-rerunfailures" | "pytest-subtests" => {
                let has = |module: &str| {
                    let mut python = Command::new(root.join(".venv/bin/python"));
                    python.args(["-c", &format!("import {module}")]);
                    python.output().is_ok_and(|output| output.status.success())
                };
                let modules = match program {
                    "django" => program,
                    "pytest-subtests" => "pytest_subtests",
                    _ => "xdist, pytest_rerunfailures",
                };
                has(modules) && link(root.join(".venv"), ".venv")
            }
            program => runs(program),
        };
        integration_tests::require(found.then_some(()), &format!("no {program}; `.ci/run tools` installs it"))
            .is_some()
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, path: &str, content: &str) -> &Self {
        let content = if path == "Cargo.toml" { &of_its_own(content) } else { content };
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn try_run(&self, request: &RunTests) -> Result<TestReport, TestError> {
        self.try_run_with_progress(request, |_| {})
    }

    /// Runs the tests, and passes on each line about the state of the run.
    pub(crate) fn try_run_with_progress(
        &self,
        request: &RunTests,
        on_progress: impl Fn(&str),
    ) -> Result<TestReport, TestError> {
        let workspace = Arc::new(Workspace::new([self.path()]).unwrap());
        let redactor = Redactor::new(Default::default()).unwrap();
        let commands = Commands::new(process_runner::Runner::new(), workspace, redactor);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run_tests(&commands, request, &Default::default(), on_progress))
    }

    pub(crate) fn run(&self, runner: &str, test_path: &str) -> TestReport {
        let mut request = RunTests::new().test_path(test_path);
        request.runner = (!runner.is_empty()).then(|| runner.to_owned());
        self.try_run(&request).unwrap()
    }
}

/// Returns the part of a report that a snapshot holds: each test with its place, and the first line of its failure.
pub(crate) fn outline(report: &TestReport) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        "success: {}, {} passed, {} failed, {} skipped, exit code {:?}\n$ {}\n",
        report.is_success(),
        report.passed,
        report.failed,
        report.skipped,
        report.exit_code,
        report.command
    );
    if let Some(error) = &report.error {
        let _ =
            writeln!(text, "error {:?}: {}", error.kind, error.message.lines().next().unwrap_or_default());
    }
    let mut tests: Vec<_> = report.tests.iter().collect();
    // Runners run tests at once; the order of their ends is chance.
    tests.sort_by(|one, other| (one.status.name(), &one.name).cmp(&(other.status.name(), &other.name)));
    for test in tests {
        let _ = write!(text, "{}: {}", test.status.name(), test.name);
        if let Some(file) = &test.file {
            let _ = write!(text, " ({file}:{})", test.line.unwrap_or_default());
        }
        if let Some(line) =
            test.error.iter().flat_map(|error| error.lines()).find(|line| !line.trim().is_empty())
        {
            let _ = write!(text, " | {}", line.trim());
        }
        text.push('\n');
    }
    usual(&text)
}
