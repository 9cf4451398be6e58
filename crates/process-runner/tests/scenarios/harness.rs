//! Runs one scenario alone in this process, and checks that it leaves nothing behind.

use std::path::Path;
use std::process::{Command as StdCommand, Stdio};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use process_runner::{Command, Error, Output, Termination};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};

/// The time that a loaded machine may add to one that must be short.
pub(crate) const SLOW: Duration = Duration::from_secs(8);
/// The life of the processes that must be ended, in seconds: much longer than any test waits.
pub(crate) const LONG: &str = "300";
/// The time after which a scenario counts as hanging.
const HANG: Duration = Duration::from_secs(150);

/// One scenario, with a token that marks its processes and a folder of its own.
#[derive(Clone)]
pub(crate) struct ScenarioCase {
    inner: Arc<CaseState>,
}

struct CaseState {
    test: &'static str,
    token: String,
    dir: tempfile::TempDir,
}

/// A process as `/proc` shows it.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) state: char,
    pub(crate) command_line: String,
}

impl Process {
    pub(crate) fn kill(&self) {
        signal(self.pid, rustix::process::Signal::KILL);
    }
}

pub(crate) fn signal(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).expect("a pid is not 0");
    // It may be gone.
    let _ = rustix::process::kill_process(pid, signal);
}

impl ScenarioCase {
    fn new(test: &'static str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let token = format!("scenario-{}-{}", std::process::id(), dir.path().display());
        Self { inner: Arc::new(CaseState { test, token, dir }) }
    }

    /// Returns the scenario's folder.
    pub(crate) fn dir(&self) -> &Path {
        self.inner.dir.path()
    }

    /// Returns the text that the arguments or the environment of all its processes contain.
    pub(crate) fn token(&self) -> &str {
        &self.inner.token
    }

    pub(crate) fn program(&self, program: &str, args: &[&str]) -> Command {
        Command::new(program, self.dir()).args(args.iter().copied()).env("SCENARIO", self.token())
    }

    pub(crate) fn sh(&self, script: &str) -> Command {
        self.program("sh", &["-c", script])
    }

    pub(crate) fn bash(&self, script: &str) -> Command {
        self.program("bash", &["-c", script])
    }

    pub(crate) fn perl(&self, script: &str) -> Command {
        self.program("perl", &["-e", script])
    }

    /// Returns the living processes of this scenario, found by their environment or arguments.
    pub(crate) fn survivors(&self) -> Vec<Process> {
        let own = std::process::id().cast_signed();
        let holds_token = |process: &Process| {
            let environment = std::fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
            process.command_line.contains(self.token())
                || String::from_utf8_lossy(&environment).contains(&format!("SCENARIO={}", self.token()))
        };
        let mut found = processes();
        found.retain(|process| process.pid != own && process.state != 'Z' && holds_token(process));
        found
    }

    /// Waits until `count` processes of this scenario run.
    pub(crate) async fn wait_for_survivors(&self, count: usize) -> Vec<Process> {
        let mut found = Vec::new();
        until(&format!("{count} processes run"), || {
            found = self.survivors();
            found.len() >= count
        })
        .await;
        found
    }

    /// Waits until a file of this scenario's folder exists, and reads it.
    pub(crate) async fn wait_for_file(&self, name: &str) -> String {
        let path = self.dir().join(name);
        until(&format!("{} is there", path.display()), || {
            std::fs::read(&path).is_ok_and(|text| text.ends_with(b"\n"))
        })
        .await;
        std::fs::read_to_string(path).expect("it is text")
    }

    /// Runs this same test in another process, which `wrapper` followed by its command line starts, and returns true.
    /// Within that process it returns false. It is for what can only be set up before a program starts.
    pub(crate) fn elsewhere(&self, wrapper: &[&str]) -> bool {
        self.elsewhere_as(wrapper, &std::env::current_exe().expect("this program has a path"))
    }

    pub(crate) fn elsewhere_as(&self, wrapper: &[&str], program: &Path) -> bool {
        if std::env::var_os("SCENARIO_ELSEWHERE").is_some() {
            return false;
        }
        let output = StdCommand::new(wrapper[0])
            .args(&wrapper[1..])
            .arg(program)
            .args(["--exact", self.inner.test, "--nocapture"])
            .env("SCENARIO_ELSEWHERE", "1")
            .env(skipped_tests::RUN_VARIABLE, skipped_tests::run_id())
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("this test needs {}: {error}", wrapper[0]));
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "in the other process: {}\n{text}",
            output.status
        );
        true
    }
}

/// Runs a scenario, and then makes the checks that hold for every one.
fn run<F: Future<Output = ()>>(runtime: &Runtime, test: &'static str, body: fn(ScenarioCase) -> F) {
    // Descriptors, children and memory belong to the whole process: one scenario at a time.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let case = ScenarioCase::new(test);
    // Whatever is made once and kept is made now.
    let first = runtime.block_on(Command::new("true", "/").run());
    if std::env::var_os("SCENARIO_ELSEWHERE").is_none() {
        assert!(first.expect("`true` runs").success());
    }
    let before = descriptors();
    runtime.block_on(async {
        tokio::time::timeout(HANG, body(case.clone())).await.expect("the scenario hangs");
        until_or("it leaves nothing behind", SLOW, || {
            let zombies: Vec<_> = children().into_iter().filter(|process| process.state == 'Z').collect();
            let (survivors, after) = (case.survivors(), descriptors());
            match zombies.is_empty() && survivors.is_empty() && after.len() <= before.len() {
                true => Ok(()),
                false => Err(format!(
                    "zombies {zombies:?}\nsurvivors {survivors:?}\ndescriptors before {before:?}\nafter {after:?}"
                )),
            }
        })
        .await;
    });
}

/// Parts of the names of tests that measure CPU time or memory, or take all of it: they have the machine to themselves. For
/// nextest `.config/nextest.toml` says the same.
const TAKE_ALL: [&str; 6] = ["big_parent", "gibibyte", "s52_", "s53_", "s44_", "interleaving"];

/// Runs `test` in a process of its own if it is not in one, and returns true if it did. Each test needs one, since
/// descriptors, zombies and memory belong to the process. nextest gives every test one; under `cargo test` the test
/// starts itself again.
fn ran_alone(test: &str) -> bool {
    if ["NEXTEST", "SCENARIO_PROCESS"].into_iter().any(|name| std::env::var_os(name).is_some()) {
        return false;
    }
    static MACHINE: RwLock<()> = RwLock::new(());
    let takes_all = TAKE_ALL.iter().any(|part| test.contains(part));
    let _alone = takes_all.then(|| MACHINE.write().unwrap_or_else(PoisonError::into_inner));
    let _shared = (!takes_all).then(|| MACHINE.read().unwrap_or_else(PoisonError::into_inner));
    let output = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--nocapture"])
        .env("SCENARIO_PROCESS", "1")
        .env(skipped_tests::RUN_VARIABLE, skipped_tests::run_id())
        .output()
        .expect("this program can be run again");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    true
}

pub(crate) fn current_thread<F: Future<Output = ()>>(test: &'static str, body: fn(ScenarioCase) -> F) {
    if ran_alone(test) {
        return;
    }
    run(&Builder::new_current_thread().enable_all().build().expect("a runtime"), test, body);
}

pub(crate) fn multi_thread<F: Future<Output = ()>>(test: &'static str, body: fn(ScenarioCase) -> F) {
    if ran_alone(test) {
        return;
    }
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    run(&runtime, test, body);
}

/// Runs a scenario with 1 GiB of memory in use, which makes a fork slow and a wrong memory figure likely.
pub(crate) fn big_parent<F: Future<Output = ()>>(test: &'static str, body: fn(ScenarioCase) -> F) {
    if ran_alone(test) {
        return;
    }
    let ballast = vec![1_u8; 1 << 30];
    current_thread(test, body);
    assert_eq!(std::hint::black_box(&ballast)[ballast.len() - 1], 1);
}

/// Waits until `done`, or fails.
pub(crate) async fn until(what: &str, mut done: impl FnMut() -> bool) {
    until_or(what, SLOW, || if done() { Ok(()) } else { Err(String::new()) }).await;
}

pub(crate) async fn until_or(what: &str, within: Duration, mut done: impl FnMut() -> Result<(), String>) {
    let start_time = Instant::now();
    while let Err(why) = done() {
        assert!(start_time.elapsed() < within, "not within {within:?}: {what}\n{why}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn processes() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").expect("this test needs /proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(process).collect()
}

fn process(pid: i32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let command_line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command_line = String::from_utf8_lossy(&command_line).replace('\0', " ");
    Some(Process { pid, parent, state, command_line })
}

/// Returns the children of this process, with zombies.
pub(crate) fn children() -> Vec<Process> {
    let own = std::process::id().cast_signed();
    processes().into_iter().filter(|process| process.parent == own).collect()
}

/// Returns the descriptors of this process and what they refer to.
pub(crate) fn descriptors() -> Vec<(String, String)> {
    let entries = std::fs::read_dir("/proc/self/fd").expect("this test needs /proc");
    let each = |entry: std::fs::DirEntry| {
        let target = std::fs::read_link(entry.path()).ok()?; // the one of this listing is gone
        Some((entry.file_name().to_string_lossy().into_owned(), target.display().to_string()))
    };
    entries.filter_map(|entry| each(entry.ok()?)).filter(|(_, target)| !target.contains("/fd")).collect()
}

/// Returns the CPU time of this process without its children.
pub(crate) fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("below a second"))
}

/// Returns the resident memory of this process and its peak since the last [`reset_peak`], in KiB.
pub(crate) fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").expect("this test needs /proc");
    let field = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the field is there");
        line.split_whitespace().next().expect("a number").parse().expect("a number")
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// Resets the peak (`proc_pid_clear_refs(5)`), and returns the memory in use now, in KiB.
pub(crate) fn reset_peak() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").expect("this test needs /proc/self/clear_refs");
    memory().0
}

/// Runs a command that must give an outcome.
pub(crate) async fn outcome(command: Command) -> Output {
    command.run().await.unwrap_or_else(|error| panic!("no outcome: {error}: {error:?}"))
}

/// Runs a command whose timeout may pass before it has started, and then there is no output.
pub(crate) async fn outcome_if_started(command: Command) -> Option<Output> {
    match command.run().await {
        Ok(output) => Some(output),
        Err(Error::SpawnTimedOut { .. }) => None,
        Err(error) => panic!("no outcome: {error}: {error:?}"),
    }
}

#[track_caller]
pub(crate) fn assert_exited(output: &Output, code: u32) {
    assert_eq!(output.termination, Termination::Exited { code }, "{}", described(output));
}

/// Asserts that `time` is at least `from`, and above it by no more than a loaded machine explains.
#[track_caller]
pub(crate) fn assert_took(time: Duration, from: Duration) {
    assert!(time >= from && time <= from + SLOW, "{time:?} instead of {from:?}");
}

pub(crate) fn described(output: &Output) -> String {
    format!(
        "{}\nelapsed {:?}, to exit {:?}, leftovers {:?}\nstdout {}\nstderr {}",
        output.summary(),
        output.elapsed,
        output.to_exit,
        output.leftovers,
        output.stdout.text().chars().take(2000).collect::<String>(),
        output.stderr.text().chars().take(2000).collect::<String>(),
    )
}
