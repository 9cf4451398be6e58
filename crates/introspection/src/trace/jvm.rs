//! Profiles of Java virtual machines by their attach socket: Flight Recorder, and histograms of classes.

use super::capture_run::{CaptureOutput, CaptureRun, CaptureWaitOutcome, blocking, cpu_time, millis};
use super::error::Error;
use super::parse::heap_snapshot::HeapContents;
use super::parse::{histogram, jfr};
use super::profile::{HeapSummary, ProfileSummary};
use super::programs::{ProfilerPrograms, last_lines, was_cancelled};
use crate::inspect::jvm::{AttachedJvm, JvmError};
use std::time::{Duration, Instant};

// The first recording of a virtual machine loads classes for seconds.
/// The time limit for starting a recording.
const START_TIMEOUT: Duration = Duration::from_secs(40);
/// The time limit for every other command of the virtual machine.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for reading a recording, after which only its file is answered.
const READ_TIMEOUT: Duration = Duration::from_secs(20);
/// The maximum output of `jfr print`, in bytes.
const MAX_PRINTED_BYTES: usize = 128 << 20;
const FILE: &str = "jfr";
/// The longest interval between two samples, in milliseconds: that of the settings `profile`.
const MAX_INTERVAL_MS: u64 = 10;
/// The number of samples that a busy thread should have; a short capture has a shorter interval for that.
const TARGET_SAMPLES: u64 = 500;

/// Converts an error of the attach socket, with advice where the virtual machine could not be attached to.
fn attach_error(run: &CaptureRun<'_>, error: &JvmError) -> Error {
    if run.process.is_some_and(|process| !process.is_running()) {
        return run.target_exited(Duration::ZERO);
    }
    match error {
        JvmError::NotAttached(_) | JvmError::NoSocket(_) | JvmError::Impostor => Error::Refused {
            what: "attaching to the Java virtual machine".to_owned(),
            reason: error.to_string(),
            remedy: "run `jcmd PID VM.version` once as the target's user, or let the operator allow signals"
                .to_owned(),
        },
        _ => {
            let cause =
                std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
            Error::failed("the Java virtual machine", format!("{error}{cause}"))
        }
    }
}

/// Attaches to the virtual machine of the target.
async fn attach(run: &CaptureRun<'_>, may_signal: bool) -> Result<AttachedJvm, Error> {
    let process = run.process.ok_or_else(|| run.target_exited(Duration::ZERO))?;
    tokio::select! {
        jvm = AttachedJvm::attach(process, may_signal) => jvm.map_err(|error| attach_error(run, &error)),
        () = run.cancel.cancelled() => Err(Error::Cancelled),
    }
}

/// Takes a CPU profile with a recording of its own, which is stopped in every case.
pub(super) async fn cpu(run: &CaptureRun<'_>, may_signal: bool) -> Result<CaptureOutput, Error> {
    let jvm = attach(run, may_signal).await?;
    // Created first, so that the file is private before the virtual machine writes to it.
    run.files.create(FILE).map_err(|error| run.store_error(error))?;
    // Unique: a recording of the operator, or of another server, must not be stopped by its name.
    let name = format!("coretools-{}-{}", std::process::id(), millis(since_epoch()));
    let begun = Instant::now();
    let mut recording = RecordingGuard { jvm: jvm.clone(), name: Some(name.clone()) };
    let start = async |settings: &str| {
        let start = format!("JFR.start name={name} settings=profile{settings}");
        tokio::select! {
            answer = jvm.command(&start, START_TIMEOUT) => answer.map_err(|error| attach_error(run, &error)),
            () = run.cancel.cancelled() => Err(Error::Cancelled),
        }
    };
    let mut interval_ms = (millis(run.duration) / TARGET_SAMPLES).clamp(1, MAX_INTERVAL_MS);
    let mut answer = start(&format!(" jdk.ExecutionSample#period={interval_ms}ms")).await?;
    // Java before 17 takes no event settings on the command line.
    if answer.contains("nknown argument") {
        interval_ms = MAX_INTERVAL_MS;
        answer = start("").await?;
    }
    if !answer.contains("Started recording") {
        return Err(Error::failed("JFR.start", answer.trim().chars().take(300).collect::<String>()));
    }
    let starting = begun.elapsed();
    let before = cpu_time(run.pid());
    if let CaptureWaitOutcome::TargetExited(after) = run.wait(run.duration).await? {
        return Err(run.target_exited(after));
    }
    let used_cpu = before.zip(cpu_time(run.pid())).map(|(before, after)| after.saturating_sub(before));
    let path = run.files.path(FILE);
    let stop = format!("JFR.stop name={name} filename=\"{}\"", path.display());
    let stop_answer = jvm.command(&stop, COMMAND_TIMEOUT).await.map_err(|error| attach_error(run, &error))?;
    // It is stopped, so dropping the guard must not stop it again.
    recording.name = None;
    run.files.make_private(FILE);
    if run.files.length(FILE) == 0 {
        return Err(Error::failed("JFR.stop", stop_answer.trim().chars().take(300).collect::<String>()));
    }
    let mut captured = CaptureOutput {
        format: FILE,
        extension: FILE,
        elapsed: run.duration,
        used_cpu,
        ..CaptureOutput::default()
    };
    if starting > Duration::from_secs(1) {
        let note = format!("the machine took {} ms to start its first recording", millis(starting));
        captured.warnings.push(note);
    }
    read(run, &mut captured, interval_ms * 1000).await?;
    Ok(captured)
}

/// Returns the time since 1970.
fn since_epoch() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// A guard that stops and discards the recording if it is dropped while `name` is set.
struct RecordingGuard {
    jvm: AttachedJvm,
    name: Option<String>,
}

impl Drop for RecordingGuard {
    fn drop(&mut self) {
        let Some(name) = self.name.take() else { return };
        let jvm = self.jvm.clone();
        // A drop cannot wait, so a task of its own stops the recording.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // The recording may still be starting, so stopping it is retried.
                let deadline = Instant::now() + START_TIMEOUT;
                while Instant::now() < deadline {
                    match jvm.command(&format!("JFR.stop name={name}"), COMMAND_TIMEOUT).await {
                        Ok(answer) if answer.contains("Stopped") => break,
                        _ => tokio::time::sleep(Duration::from_millis(50)).await,
                    }
                }
            });
        }
    }
}

/// Reads the recording with the JDK's `jfr`, where it is installed.
async fn read(run: &CaptureRun<'_>, captured: &mut CaptureOutput, interval_us: u64) -> Result<(), Error> {
    let path = run.files.path(FILE);
    let Some(program) = run.programs.find("jfr") else {
        let note = "the recording is kept but was not read: that takes a JDK's `jfr` in PATH; JDK Mission Control opens it too";
        captured.warnings.push(note.to_owned());
        return Ok(());
    };
    let command = ProfilerPrograms::command(&program, READ_TIMEOUT, MAX_PRINTED_BYTES)
        .args([
            "print",
            "--json",
            "--stack-depth",
            "64",
            "--events",
            "jdk.ExecutionSample,jdk.NativeMethodSample",
        ])
        .arg(&path)
        .cancel(run.cancel.clone());
    let failed = |error: process_runner::Error| Error::failed("jfr", error.to_string());
    let output = run.programs.runner.run(command).await.map_err(failed)?;
    if was_cancelled(&output) {
        return Err(Error::Cancelled);
    }
    if !output.success() || output.stdout.truncated() {
        captured.warnings.push(format!("the recording is kept but was not read: {}", last_lines(&output)));
        return Ok(());
    }
    let read = blocking(move || jfr::read(output.stdout.bytes(), interval_us)).await?;
    let (cpu, native) = read.map_err(|error| Error::failed("reading the recording", error.to_string()))?;
    if native > 0 {
        captured
            .warnings
            .push(format!("{native} samples of threads in native code, which may wait there, are left out"));
    }
    captured.samples = Some(cpu.samples);
    captured.cpu = Some(cpu);
    Ok(())
}

/// Counts the objects of each class at the beginning and at the end. Each histogram collects garbage, and halts the
/// program for it.
pub(super) async fn heap(run: &CaptureRun<'_>, may_signal: bool) -> Result<CaptureOutput, Error> {
    let jvm = attach(run, may_signal).await?;
    let started = Instant::now();
    let (before, first) = class_histogram(run, &jvm).await?;
    let before = histogram::read(&before);
    if let CaptureWaitOutcome::TargetExited(after) = run.wait(run.duration).await? {
        return Err(run.target_exited(after));
    }
    let elapsed = started.elapsed();
    let (text, second) = class_histogram(run, &jvm).await?;
    let after: HeapContents = histogram::read(&text);
    if after.groups.is_empty() {
        return Err(Error::failed("GC.class_histogram", text.trim().chars().take(300).collect::<String>()));
    }
    run.files.write("histogram.txt", text.as_bytes()).map_err(|error| run.store_error(error))?;
    let mut summary = HeapSummary::from_heap(&after, Some(&before));
    summary.used_bytes = Some([before.bytes, after.bytes]);
    Ok(CaptureOutput {
        format: "histogram",
        extension: "histogram.txt",
        elapsed,
        samples: None,
        summary: Some(ProfileSummary::Heap(summary)),
        paused: Some(first + second),
        ..CaptureOutput::default()
    })
}

/// Takes a class histogram, and measures how long that took.
async fn class_histogram(run: &CaptureRun<'_>, jvm: &AttachedJvm) -> Result<(String, Duration), Error> {
    let started = Instant::now();
    tokio::select! {
        text = jvm.command("GC.class_histogram", COMMAND_TIMEOUT) =>
            text.map(|text| (text, started.elapsed())).map_err(|error| attach_error(run, &error)),
        () = run.cancel.cancelled() => Err(Error::Cancelled),
    }
}
