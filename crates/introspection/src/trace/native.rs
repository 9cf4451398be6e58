//! CPU profiles of any process by `perf` (perf-record(1)). It samples by the software clock, which needs no hardware
//! counters and so works in virtual machines and containers.

use super::call_tree::{FunctionCost, FunctionLocation, ProfiledFunction};
use super::capture_run::{CaptureOutput, CaptureRun, CaptureWaitOutcome, blocking, millis};
use super::error::Error;
use super::parse::perf;
use super::programs::{ProfilerPrograms, last_lines, was_cancelled};
use process_runner::Output;
use std::path::Path;
use std::time::{Duration, Instant};

/// The method by which perf unwinds stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnwindMethod {
    /// A copy of the stack and the program's unwind tables, as few programs keep frame pointers.
    Tables,
    /// Frame pointers, for runtimes that keep them.
    FramePointers,
}

/// The approximate number of samples of a busy thread in a capture: each takes 8 KiB where stacks are copied.
const TARGET_SAMPLES: u64 = 3_000;
/// The maximum output of `perf script`, in bytes.
const MAX_SCRIPT_BYTES: usize = 128 << 20;
/// The time limit for reading a profile, after which only its file is answered.
const READ_TIMEOUT: Duration = Duration::from_secs(20);
/// The time limit for looking up source lines.
const LINE_LOOKUP_TIMEOUT: Duration = Duration::from_millis(700);
/// The maximum number of functions whose lines are looked up.
const MAX_LINE_LOOKUPS: usize = 30;
/// The extension of the profile's file.
const FILE: &str = "perf.data";
const REMEDY: &str = "run `sysctl kernel.perf_event_paranoid=2`, give this server CAP_PERFMON, or run it as the \
                      user of the target; in a container add CAP_PERFMON";

/// Takes a profile of `run`'s process.
pub(super) async fn cpu(run: &CaptureRun<'_>, unwind: UnwindMethod) -> Result<CaptureOutput, Error> {
    let perf = run
        .programs
        .require("perf", "install it: linux-perf (Debian), linux-tools-generic (Ubuntu), perf (others)")?;
    let seconds = run.duration.as_secs() + u64::from(run.duration.subsec_nanos() > 0);
    // The limits are not multiples of common timer rates, so that samples do not fall in step with periodic work.
    let frequency = (TARGET_SAMPLES / seconds.max(1)).clamp(99, 997);
    // Created first, so that the file is private before perf writes to it.
    run.files.create(FILE).map_err(|error| run.store_error(error))?;
    let method = if unwind == UnwindMethod::Tables { "dwarf,8192" } else { "fp" };
    let limit = run.duration + Duration::from_secs(20);
    let command = ProfilerPrograms::command(&perf, limit, 64 << 10)
        // Build ids would be cached in the user's home. The size limit bounds a target with thousands of threads.
        .args(["record", "--quiet", "--no-buildid", "--no-buildid-cache", "--max-size", "256M"])
        .args(["-e", "cpu-clock", "-F", &frequency.to_string(), "--call-graph", method])
        .args(["-p", &run.pid().to_string(), "-o"])
        .arg(run.files.path(FILE))
        .args(["--", "sleep", &format!("{}.{:03}", run.duration.as_secs(), run.duration.subsec_millis())])
        .cancel(run.cancel.clone());
    let started = Instant::now();
    let failed = |error: process_runner::Error| Error::failed("perf record", error.to_string());
    let mut running = run.programs.runner.start(command).await.map_err(failed)?;
    let mut gone = None;
    let output = loop {
        tokio::select! {
            output = running.wait() => break output.map_err(failed)?,
            // perf goes on to the end of its duration even where the target exits.
            waited = run.wait(limit), if gone.is_none() => match waited {
                Ok(CaptureWaitOutcome::TargetExited(after)) => {
                    gone = Some(after);
                    const SIGINT: i32 = 2;
                    let _ = running.signal(SIGINT);
                }
                // The runner ends perf at a cancellation and at its time limit.
                _ => running.finished().await,
            }
        }
    };
    run.files.make_private(FILE);
    if was_cancelled(&output) || run.cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    // perf may notice the end of the target first, and then ends itself by a signal.
    if gone.is_none() && output.code().is_none() && started.elapsed() < run.duration {
        gone = Some(started.elapsed());
    }
    check_recording(run, &output, gone)?;
    let elapsed = gone.unwrap_or(run.duration).min(started.elapsed());
    let mut captured = CaptureOutput { format: FILE, extension: FILE, elapsed, ..CaptureOutput::default() };
    if let Some(after) = gone {
        captured
            .warnings
            .push(format!("the target ended after {} ms; the profile is of the time before", millis(after)));
    }
    read(run, &perf, 1_000_000 / frequency, &mut captured).await?;
    Ok(captured)
}

/// Checks that perf recorded a profile, and turns its messages into errors.
fn check_recording(run: &CaptureRun<'_>, output: &Output, gone: Option<Duration>) -> Result<(), Error> {
    let text = format!("{}{}", output.stderr_text(), output.stdout_text());
    // An interrupted perf has written what it recorded, and its exit code says nothing.
    if output.success() || run.files.length(FILE) > 0 && gone.is_some() {
        return Ok(());
    }
    let refusals =
        ["perf_event_paranoid", "Permission denied", "not permitted", "Access to performance monitoring"];
    if refusals.iter().any(|refusal| text.contains(refusal)) {
        return Err(Error::Refused {
            what: "perf".to_owned(),
            reason: last_lines(output),
            remedy: REMEDY.to_owned(),
        });
    }
    if run.process.is_some_and(|process| !process.is_running()) {
        return Err(run.target_exited(gone.unwrap_or_default()));
    }
    Err(Error::failed("perf record", last_lines(output)))
}

/// Reads the recorded profile. Where that takes too long, only its file is answered.
async fn read(
    run: &CaptureRun<'_>,
    perf: &Path,
    interval_us: u64,
    captured: &mut CaptureOutput,
) -> Result<(), Error> {
    let command = ProfilerPrograms::command(perf, READ_TIMEOUT, MAX_SCRIPT_BYTES)
        .args(["script", "--no-inline", "-F", "comm,tid,period,ip,sym,dso", "-i"])
        .arg(run.files.path(FILE))
        .cancel(run.cancel.clone());
    let failed = |error: process_runner::Error| Error::failed("perf script", error.to_string());
    let output = run.programs.runner.run(command).await.map_err(failed)?;
    if was_cancelled(&output) {
        return Err(Error::Cancelled);
    }
    if !output.success() || output.stdout.truncated() {
        let path = run.files.path(FILE).display().to_string();
        captured.warnings.push(format!(
            "the profile is kept but was not read ({}); `perf report -i {path}` reads it",
            last_lines(&output)
        ));
        return Ok(());
    }
    let (cpu, addresses) = blocking(move || perf::read(&output.stdout_text(), interval_us)).await?;
    captured.samples = Some(cpu.samples);
    captured.locations = look_up_lines(run, &addresses, &cpu.tree.functions()).await;
    captured.cpu = Some(cpu);
    Ok(())
}

/// Looks up files and lines of the functions that a summary lists, where binutils are installed and the program has
/// debug information.
async fn look_up_lines(
    run: &CaptureRun<'_>,
    addresses: &perf::SampledAddresses,
    functions: &[FunctionCost<'_>],
) -> Vec<FunctionLocation> {
    let Some(program) = run.programs.find("addr2line") else { return Vec::new() };
    let mut by_total: Vec<_> = functions.iter().collect();
    by_total.sort_by_key(|cost| std::cmp::Reverse(cost.total));
    // Half by their own time and half by their total: these are the two lists of a summary.
    let listed =
        functions.iter().take(MAX_LINE_LOOKUPS / 2).chain(by_total.into_iter().take(MAX_LINE_LOOKUPS / 2));
    // addr2line takes one file, so its addresses are collected first. All libraries are looked up at once.
    let mut libraries: Vec<(&str, Vec<(&ProfiledFunction, u64)>)> = Vec::new();
    for cost in listed {
        let library = cost.frame.file.as_deref().filter(|file| file.starts_with('/'));
        let (Some(library), Some(address)) = (library, addresses.get(cost.frame)) else { continue };
        match libraries.iter_mut().find(|(known, _)| *known == library) {
            Some((_, frames)) => frames.push((cost.frame, *address)),
            None => libraries.push((library, vec![(cost.frame, *address)])),
        }
    }
    let lookups = libraries.iter().map(|(library, frames)| {
        let command = ProfilerPrograms::command(&program, LINE_LOOKUP_TIMEOUT, 64 << 10)
            .args(["-e", library])
            .args(frames.iter().map(|(_, address)| format!("{address:#x}")))
            .cancel(run.cancel.clone());
        async move {
            let output = run.programs.runner.run(command).await.ok().filter(Output::success)?;
            let text = output.stdout_text();
            let locations =
                text.lines().zip(frames).filter_map(|(line, (frame, _))| parse_location(frame, line));
            Some(locations.collect::<Vec<_>>())
        }
    });
    futures_util::future::join_all(lookups).await.into_iter().flatten().flatten().collect()
}

/// Parses a line of addr2line: `/app/main.c:12 (discriminator 3)`, or `??:0`.
fn parse_location(frame: &ProfiledFunction, line: &str) -> Option<FunctionLocation> {
    let line = line.split(" (").next().unwrap_or(line);
    let (file, number) = line.rsplit_once(':')?;
    let known = !file.is_empty() && !file.starts_with('?');
    known.then(|| FunctionLocation {
        frame: frame.clone(),
        file: file.to_owned(),
        line: number.parse().ok().filter(|line| *line > 0),
    })
}
