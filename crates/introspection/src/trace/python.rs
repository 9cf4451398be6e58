//! CPU profiles of Python by py-spy, which reads the interpreter's stacks from outside: nothing runs in the target,
//! which is halted for a moment at each sample.

use super::capture_run::{CaptureOutput, CaptureRun, CaptureWaitOutcome, blocking, micros, millis};
use super::error::Error;
use super::parse::speedscope::{self, WaitingSamples};
use super::programs::{ProfilerPrograms, last_lines, was_cancelled};
use crate::inspect::proc::{self, ProcessStatus};
use process_runner::{Output, Running, Stream};
use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use workspace::Workspace;

/// The number of samples a second, py-spy's default.
const RATE: u64 = 100;
const FILE: &str = "speedscope.json";
/// The time limit for py-spy to find the interpreter.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for py-spy to write its file.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of the file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// The maximum size of a source that is searched for definitions, in bytes.
const MAX_SOURCE_BYTES: u64 = 4 << 20;
const REMEDY: &str = "allow this server to trace it: run it as root or with CAP_SYS_PTRACE, or `sysctl \
                      kernel.yama.ptrace_scope=0`; in a container add SYS_PTRACE";

/// Takes a profile of `run`'s process.
pub(super) async fn cpu(run: &CaptureRun<'_>) -> Result<CaptureOutput, Error> {
    let program = run.programs.require(
        "py-spy",
        "`pipx install py-spy`, or `pip install py-spy` in an environment outside the roots",
    )?;
    // A process has at most one tracer. Looking first gives an error that names it.
    let tracer =
        ProcessStatus::of(run.pid()).ok().and_then(|status| status.field("TracerPid")?.parse::<u32>().ok());
    if let Some(tracer) = tracer.filter(|tracer| *tracer != 0) {
        return Err(Error::Busy {
            pid: run.pid(),
            by: format!("process {tracer} traces it, a debugger or profiler"),
        });
    }
    // Created first, so that the file is private before py-spy writes to it.
    run.files.create(FILE).map_err(|error| run.store_error(error))?;
    let limit = run.duration + START_TIMEOUT + WRITE_TIMEOUT;
    let command = ProfilerPrograms::command(&program, limit, 64 << 10)
        .args(["record", "--pid", &run.pid().to_string(), "--rate", &RATE.to_string()])
        // Without `--function`, which would give the first line of a function in place of the line that ran.
        .args(["--full-filenames", "--format", "speedscope", "--output"])
        .arg(run.files.path(FILE))
        .cancel(run.cancel.clone());
    let failed = |error: process_runner::Error| Error::failed("py-spy", error.to_string());
    let mut running = run.programs.runner.start(command).await.map_err(failed)?;
    let is_sampling = wait_for_sampling(run, &running).await;
    let started = Instant::now();
    let before = proc::thread_cpu_times(run.pid());
    // py-spy exits with its target.
    let waited = match is_sampling {
        true => tokio::select! {
            waited = run.wait(run.duration) => waited,
            () = running.finished() => Ok(CaptureWaitOutcome::TargetExited(started.elapsed())),
        },
        // py-spy did not begin to sample: it is interrupted below, and its messages give the error.
        false => Ok(CaptureWaitOutcome::Elapsed),
    };
    let elapsed = started.elapsed();
    let used = used_since(run.pid(), &before);
    // py-spy may have ended before it was seen to sample.
    let ended_first = running.is_finished();
    if !ended_first && matches!(waited, Ok(CaptureWaitOutcome::Elapsed)) {
        // py-spy writes its file when it is interrupted.
        const SIGINT: i32 = 2;
        let _ = running.signal(SIGINT);
    }
    let output = running.wait().await.map_err(failed)?;
    run.files.make_private(FILE);
    if was_cancelled(&output) || run.cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    let mut captured =
        CaptureOutput { format: "speedscope", extension: FILE, elapsed, ..CaptureOutput::default() };
    let has_profile = run.files.length(FILE) > 0;
    let is_gone = run.process.is_some_and(|process| !process.is_running());
    let target_ended = matches!(waited, Ok(CaptureWaitOutcome::TargetExited(_))) && is_gone
        // py-spy notices the end a moment before it can be seen here.
        || ended_first && output.success() && has_profile;
    if !target_ended {
        check_recording(run, &output)?;
    } else if has_profile {
        let after = millis(elapsed);
        captured
            .warnings
            .push(format!("the target ended after {after} ms; the profile is of the time before"));
    } else {
        return Err(run.target_exited(elapsed));
    }
    let bytes = run.files.read(FILE, MAX_FILE_BYTES).map_err(|error| run.store_error(error))?;
    let mut sources = PythonSources::new(Arc::clone(&run.programs.workspace));
    let cpu = blocking(move || {
        speedscope::read(&bytes, 1_000_000 / RATE, &used, |file, name, first| {
            sources.definition(file, name, first)
        })
    })
    .await?;
    let (cpu, waiting) = cpu.map_err(|error| Error::failed("reading py-spy's file", error.to_string()))?;
    captured.warnings.extend(waiting_warning(&waiting));
    captured.samples = Some(cpu.samples);
    captured.cpu = Some(cpu);
    Ok(captured)
}

/// The sources of the profiled program beneath the roots.
struct PythonSources {
    workspace: Arc<Workspace>,
    texts: HashMap<String, Option<String>>,
}

impl PythonSources {
    fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace, texts: HashMap::new() }
    }

    /// Returns the line of `def NAME` at or before `first`, a line of the function's body. `None` for a file that may not be
    /// read, and for code without a definition of its own.
    fn definition(&mut self, file: &str, name: &str, first: u32) -> Option<u32> {
        let name = name.rsplit('.').next().unwrap_or(name);
        let workspace = &self.workspace;
        let text = self.texts.entry(file.to_owned()).or_insert_with(|| {
            let (source, _) = workspace.locate(file).ok()?.open_read().ok()?;
            let mut text = Vec::new();
            source.take(MAX_SOURCE_BYTES).read_to_end(&mut text).ok()?;
            Some(String::from_utf8_lossy(&text).into_owned())
        });
        let text = text.as_deref()?;
        let before = usize::try_from(first).ok()?;
        let mut lines = text.lines().take(before).enumerate().collect::<Vec<_>>().into_iter().rev();
        let begins = |line: &str| {
            let line = line.trim_start();
            let rest = line.strip_prefix("async ").unwrap_or(line).strip_prefix("def ")?;
            rest.trim_start().strip_prefix(name)?.trim_start().starts_with(['(', '[']).then_some(())
        };
        let (index, _) = lines.find(|(_, line)| begins(line).is_some())?;
        u32::try_from(index + 1).ok()
    }
}

/// Returns the processor time that each thread has used since `before`, in microseconds. Threads that ended are left out.
fn used_since(pid: u32, before: &BTreeMap<u32, Duration>) -> BTreeMap<u32, u64> {
    // py-spy names threads by the ids in their own namespace.
    if ProcessStatus::of(pid).ok().and_then(|status| status.own_pid()) != Some(pid) {
        return BTreeMap::new();
    }
    let used = |(thread, time): (u32, Duration)| {
        let earlier = before.get(&thread).copied().unwrap_or_default();
        (thread, micros(time.saturating_sub(earlier)))
    };
    proc::thread_cpu_times(pid).into_iter().map(used).collect()
}

/// Returns the warning for samples that were left out, as their threads waited.
fn waiting_warning(waiting: &WaitingSamples) -> Option<String> {
    /// The maximum number of threads that are named.
    const MAX_NAMES: usize = 5;
    let sampled_ms = waiting.micros / 1000;
    if sampled_ms == 0 {
        return None;
    }
    let names = waiting.idle_threads.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>().join(", ");
    let idle = match waiting.idle_threads.len() {
        0 => String::new(),
        count => format!("; {count} threads only waited: {names}"),
    };
    Some(format!(
        "{sampled_ms} ms that py-spy sampled are left out, as the threads used no processor time for them{idle}"
    ))
}

/// Waits until py-spy prints that it is sampling. Returns false where it ended before.
async fn wait_for_sampling(run: &CaptureRun<'_>, running: &Running) -> bool {
    let started = Instant::now();
    while started.elapsed() < START_TIMEOUT && !running.is_finished() && !run.cancel.is_cancelled() {
        let printed = |stream| running.snapshot(stream, 0, 4096);
        let texts = [printed(Stream::Stdout), printed(Stream::Stderr)];
        if texts.iter().any(|text| String::from_utf8_lossy(&text.bytes).contains("Sampling process")) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    false
}

/// Checks that py-spy wrote a profile, and turns its messages into errors.
fn check_recording(run: &CaptureRun<'_>, output: &Output) -> Result<(), Error> {
    if output.success() && run.files.length(FILE) > 0 {
        return Ok(());
    }
    let text = output.stderr_text();
    let lower = text.to_lowercase();
    if lower.contains("permission denied") || lower.contains("operation not permitted") {
        return Err(Error::Refused {
            what: "py-spy".to_owned(),
            reason: last_lines(output),
            remedy: REMEDY.to_owned(),
        });
    }
    if run.process.is_some_and(|process| !process.is_running()) {
        return Err(run.target_exited(Duration::ZERO));
    }
    Err(Error::failed("py-spy", last_lines(output)))
}
