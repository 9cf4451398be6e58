//! Profiles of Java virtual machines by their attach socket: Flight Recorder, and histograms of classes.

use super::Error;
use super::parse::heap_snapshot::Heap;
use super::parse::{histogram, jfr};
use super::profile::{HeapSummary, Summary};
use super::programs::{Programs, said, was_cancelled};
use super::run::{Run, Taken, Waited, blocking, cpu_time, millis};
use crate::inspect::jvm::{Error as JvmError, Jvm};
use std::time::{Duration, Instant};

/// The first recording of a machine loads classes for seconds.
const STARTS_WITHIN: Duration = Duration::from_secs(40);
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// What reading a recording may take until only its file is answered.
const READS_WITHIN: Duration = Duration::from_secs(20);
/// What `jfr print` may print.
const MOST_TEXT: usize = 128 << 20;
const FILE: &str = "jfr";
/// Milliseconds between two samples, as `profile.jfc` has it.
const INTERVAL_MS: u64 = 10;
/// Samples that a busy thread is to have; a capture that is too short for so many at that interval has a shorter one.
const SAMPLES: u64 = 500;

fn refused(run: &Run<'_>, error: &JvmError) -> Error {
    if run.process.is_some_and(|process| !process.is_there()) {
        return run.gone(Duration::ZERO);
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

async fn attach(run: &Run<'_>, may_signal: bool) -> Result<Jvm, Error> {
    let process = run.process.ok_or_else(|| run.gone(Duration::ZERO))?;
    tokio::select! {
        jvm = Jvm::attach(process, may_signal) => jvm.map_err(|error| refused(run, &error)),
        () = run.cancel.cancelled() => Err(Error::Cancelled),
    }
}

/// Where time goes, by a recording that has a name of its own and is stopped whatever happens.
pub(super) async fn cpu(run: &Run<'_>, may_signal: bool) -> Result<Taken, Error> {
    let jvm = attach(run, may_signal).await?;
    // Private before anything is in it.
    run.files.create(FILE).map_err(|error| run.unkept(error))?;
    let name = format!("coretools-{}-{}", std::process::id(), millis(since_epoch()));
    let begun = Instant::now();
    let mut recording = Recording { jvm: jvm.clone(), name: Some(name.clone()) };
    let start = async |settings: &str| {
        let start = format!("JFR.start name={name} settings=profile{settings}");
        tokio::select! {
            said = jvm.command(&start, STARTS_WITHIN) => said.map_err(|error| refused(run, &error)),
            () = run.cancel.cancelled() => Err(Error::Cancelled),
        }
    };
    let mut interval_ms = (millis(run.duration) / SAMPLES).clamp(1, INTERVAL_MS);
    let mut said = start(&format!(" jdk.ExecutionSample#period={interval_ms}ms")).await?;
    // Before Java 17 a setting cannot be given so.
    if said.contains("nknown argument") {
        interval_ms = INTERVAL_MS;
        said = start("").await?;
    }
    if !said.contains("Started recording") {
        return Err(Error::failed("JFR.start", said.trim().chars().take(300).collect::<String>()));
    }
    let starting = begun.elapsed();
    let before = cpu_time(run.pid());
    if let Waited::Gone(after) = run.wait(run.duration).await? {
        return Err(run.gone(after));
    }
    let used = before.zip(cpu_time(run.pid())).map(|(before, after)| after.saturating_sub(before));
    let path = run.files.path(FILE);
    let stop = format!("JFR.stop name={name} filename=\"{}\"", path.display());
    let said_at_end = jvm.command(&stop, ANSWERS_WITHIN).await.map_err(|error| refused(run, &error))?;
    recording.name = None;
    run.files.seal(FILE);
    if run.files.length(FILE) == 0 {
        return Err(Error::failed("JFR.stop", said_at_end.trim().chars().take(300).collect::<String>()));
    }
    let mut taken = Taken { format: FILE, extension: FILE, lasted: run.duration, used, ..Taken::default() };
    if starting > Duration::from_secs(1) {
        let note = format!("the machine took {} ms to start its first recording", millis(starting));
        taken.warnings.push(note);
    }
    read(run, &mut taken, interval_ms * 1000).await?;
    Ok(taken)
}

fn since_epoch() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// A recording that is stopped, and thrown away, where nobody has done that.
struct Recording {
    jvm: Jvm,
    name: Option<String>,
}

impl Drop for Recording {
    fn drop(&mut self) {
        let Some(name) = self.name.take() else { return };
        let jvm = self.jvm.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // It may still be starting.
                let ends = Instant::now() + STARTS_WITHIN;
                while Instant::now() < ends {
                    match jvm.command(&format!("JFR.stop name={name}"), ANSWERS_WITHIN).await {
                        Ok(said) if said.contains("Stopped") => break,
                        _ => tokio::time::sleep(Duration::from_millis(50)).await,
                    }
                }
            });
        }
    }
}

/// Reads the recording by a JDK's own program, where there is one.
async fn read(run: &Run<'_>, taken: &mut Taken, interval_us: u64) -> Result<(), Error> {
    let path = run.files.path(FILE);
    let Some(program) = run.programs.find("jfr") else {
        let note = "the recording is kept but was not read: that takes a JDK's `jfr` in PATH; JDK Mission Control opens it too";
        taken.warnings.push(note.to_owned());
        return Ok(());
    };
    let command = Programs::command(&program, READS_WITHIN, MOST_TEXT)
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
        taken.warnings.push(format!("the recording is kept but was not read: {}", said(&output)));
        return Ok(());
    }
    let read = blocking(move || jfr::read(output.stdout.bytes(), interval_us)).await?;
    let (cpu, native) = read.map_err(|error| Error::failed("reading the recording", error.to_string()))?;
    if native > 0 {
        taken
            .warnings
            .push(format!("{native} samples of threads in native code, which may wait there, are left out"));
    }
    taken.samples = Some(cpu.samples);
    taken.cpu = Some(cpu);
    Ok(())
}

/// The objects of each class, at the beginning and at the end. Each histogram collects garbage and stops the
/// program meanwhile.
pub(super) async fn heap(run: &Run<'_>, may_signal: bool) -> Result<Taken, Error> {
    let jvm = attach(run, may_signal).await?;
    let started = Instant::now();
    let (before, first) = classes(run, &jvm).await?;
    let before = histogram::read(&before);
    if let Waited::Gone(after) = run.wait(run.duration).await? {
        return Err(run.gone(after));
    }
    let lasted = started.elapsed();
    let (text, second) = classes(run, &jvm).await?;
    let after: Heap = histogram::read(&text);
    if after.groups.is_empty() {
        return Err(Error::failed("GC.class_histogram", text.trim().chars().take(300).collect::<String>()));
    }
    run.files.write("histogram.txt", text.as_bytes()).map_err(|error| run.unkept(error))?;
    let mut summary = HeapSummary::of_heap(&after, Some(&before));
    summary.used_bytes = Some([before.bytes, after.bytes]);
    Ok(Taken {
        format: "histogram",
        extension: "histogram.txt",
        lasted,
        samples: None,
        summary: Some(Summary::Heap(summary)),
        paused: Some(first + second),
        ..Taken::default()
    })
}

async fn classes(run: &Run<'_>, jvm: &Jvm) -> Result<(String, Duration), Error> {
    let started = Instant::now();
    tokio::select! {
        text = jvm.command("GC.class_histogram", ANSWERS_WITHIN) =>
            text.map(|text| (text, started.elapsed())).map_err(|error| refused(run, &error)),
        () = run.cancel.cancelled() => Err(Error::Cancelled),
    }
}
