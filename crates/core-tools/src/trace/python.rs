//! CPU profiles of Python by py-spy, which reads the interpreter's stacks from outside: nothing runs in the target.
//! It halts the target for the moment of each sample.

use super::Error;
use super::parse::speedscope;
use super::programs::{Programs, said, was_cancelled};
use super::run::{Run, Taken, Waited, blocking, millis};
use crate::inspect::proc::Status;
use process_runner::{Output, Running, Stream};
use std::time::{Duration, Instant};

const RATE: u64 = 100;
const FILE: &str = "speedscope.json";
/// How long py-spy may take to find the interpreter.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);
/// How long it may take to write its file.
const WRITES_WITHIN: Duration = Duration::from_secs(10);
/// The longest file that is read.
const MOST_BYTES: u64 = 64 << 20;
const REMEDY: &str = "allow this server to trace it: run it as root or with CAP_SYS_PTRACE, or `sysctl \
                      kernel.yama.ptrace_scope=0`; in a container add SYS_PTRACE";

/// Takes a profile of `run`'s process.
pub(super) async fn cpu(run: &Run<'_>) -> Result<Taken, Error> {
    let program = run.programs.need(
        "py-spy",
        "`pipx install py-spy`, or `pip install py-spy` in an environment outside the roots",
    )?;
    // Only one can trace a process.
    let tracer = Status::of(run.pid()).ok().and_then(|status| status.field("TracerPid")?.parse::<u32>().ok());
    if let Some(tracer) = tracer.filter(|tracer| *tracer != 0) {
        return Err(Error::Busy {
            pid: run.pid(),
            by: format!("process {tracer} traces it, a debugger or profiler"),
        });
    }
    run.files.create(FILE).map_err(|error| run.unkept(error))?;
    let limit = run.duration + BEGINS_WITHIN + WRITES_WITHIN;
    let command = Programs::command(&program, limit, 64 << 10)
        .args(["record", "--pid", &run.pid().to_string(), "--rate", &RATE.to_string()])
        // Of a function its first line, so that it is one function wherever it was seen.
        .args(["--function", "--full-filenames", "--format", "speedscope", "--output"])
        .arg(run.files.path(FILE))
        .cancel(run.cancel.clone());
    let failed = |error: process_runner::Error| Error::failed("py-spy", error.to_string());
    let mut running = run.programs.runner.start(command).await.map_err(failed)?;
    let begun = begins(run, &running).await;
    let started = Instant::now();
    // It ends by itself with its target.
    let waited = match begun {
        true => tokio::select! {
            waited = run.wait(run.duration) => waited,
            () = running.finished() => Ok(Waited::Gone(started.elapsed())),
        },
        false => Ok(Waited::Whole),
    };
    let lasted = started.elapsed();
    if matches!(waited, Ok(Waited::Whole)) {
        // It writes what it has when it is interrupted.
        const SIGINT: i32 = 2;
        let _ = running.signal(SIGINT);
    }
    let output = running.wait().await.map_err(failed)?;
    run.files.seal(FILE);
    if was_cancelled(&output) || run.cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    let mut taken = Taken { format: "speedscope", extension: FILE, lasted, ..Taken::default() };
    match waited {
        Ok(Waited::Gone(after)) if run.process.is_some_and(|process| !process.is_there()) => {
            if run.files.length(FILE) == 0 {
                return Err(run.gone(after));
            }
            let note =
                format!("the target ended after {} ms; the profile is of the time before", millis(after));
            taken.warnings.push(note);
        }
        _ => judge(run, &output)?,
    }
    let bytes = run.files.read(FILE, MOST_BYTES).map_err(|error| run.unkept(error))?;
    let cpu = blocking(move || speedscope::read(&bytes, 1_000_000 / RATE)).await?;
    let cpu = cpu.map_err(|error| Error::failed("reading py-spy's file", error.to_string()))?;
    taken.samples = Some(cpu.samples);
    taken.cpu = Some(cpu);
    Ok(taken)
}

/// Waits until py-spy says that it samples. False where it ended before.
async fn begins(run: &Run<'_>, running: &Running) -> bool {
    let started = Instant::now();
    while started.elapsed() < BEGINS_WITHIN && !running.is_finished() && !run.cancel.is_cancelled() {
        let said = |stream| running.snapshot(stream, 0, 4096);
        let texts = [said(Stream::Stdout), said(Stream::Stderr)];
        if texts.iter().any(|said| String::from_utf8_lossy(&said.bytes).contains("Sampling process")) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    false
}

fn judge(run: &Run<'_>, output: &Output) -> Result<(), Error> {
    if output.success() && run.files.length(FILE) > 0 {
        return Ok(());
    }
    let text = output.stderr_text();
    let lower = text.to_lowercase();
    if lower.contains("permission denied") || lower.contains("operation not permitted") {
        return Err(Error::Refused {
            what: "py-spy".to_owned(),
            reason: said(output),
            remedy: REMEDY.to_owned(),
        });
    }
    if run.process.is_some_and(|process| !process.is_there()) {
        return Err(run.gone(Duration::ZERO));
    }
    Err(Error::failed("py-spy", said(output)))
}
