//! CPU profiles of any process by `perf` (perf-record(1)), with its software clock: it needs no counters, and so
//! works in virtual machines and containers.

use super::Error;
use super::calls::Frame;
use super::parse::perf;
use super::programs::{Programs, said, was_cancelled};
use super::run::{Run, Taken, Waited, blocking, millis};
use process_runner::Output;
use std::path::Path;
use std::time::{Duration, Instant};

/// How callers are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unwind {
    /// By a copy of the stack and the program's unwind tables: few programs keep frame pointers.
    Tables,
    /// By frame pointers, where a runtime is known to keep them.
    FramePointers,
}

/// Where a function is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) frame: Frame,
    pub(super) file: String,
    pub(super) line: Option<u32>,
}

/// Samples a thread may have in a capture, about: each takes 8 KiB where stacks are copied.
const SAMPLES: u64 = 3_000;
/// What `perf script` may print.
const MOST_TEXT: usize = 128 << 20;
/// What reading a profile may take until only its file is answered.
const READS_WITHIN: Duration = Duration::from_secs(20);
/// What looking up lines may take.
const LINES_WITHIN: Duration = Duration::from_millis(700);
/// Functions whose lines are looked up.
const MOST_LINES: usize = 30;
const FILE: &str = "perf.data";
const REMEDY: &str = "run `sysctl kernel.perf_event_paranoid=2`, give this server CAP_PERFMON, or run it as the \
                      user of the target; in a container add CAP_PERFMON";

/// Takes a profile of `run`'s process.
pub(super) async fn cpu(run: &Run<'_>, unwind: Unwind) -> Result<Taken, Error> {
    let perf = run
        .programs
        .need("perf", "install it: linux-perf (Debian), linux-tools-generic (Ubuntu), perf (others)")?;
    let seconds = run.duration.as_secs() + u64::from(run.duration.subsec_nanos() > 0);
    let frequency = (SAMPLES / seconds.max(1)).clamp(99, 997);
    // Private before anything is in it; perf writes into a file that is there.
    run.files.create(FILE).map_err(|error| run.unkept(error))?;
    let method = if unwind == Unwind::Tables { "dwarf,8192" } else { "fp" };
    let limit = run.duration + Duration::from_secs(20);
    let command = Programs::command(&perf, limit, 64 << 10)
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
            // It goes on to its end where the target does not.
            waited = run.wait(limit), if gone.is_none() => match waited {
                Ok(Waited::Gone(after)) => {
                    gone = Some(after);
                    const SIGINT: i32 = 2;
                    let _ = running.signal(SIGINT);
                }
                // The runner ends it.
                _ => running.finished().await,
            }
        }
    };
    run.files.seal(FILE);
    if was_cancelled(&output) || run.cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    // perf sees the end of its target too, perhaps before we do, and then ends by a signal of its own.
    if gone.is_none() && output.code().is_none() && started.elapsed() < run.duration {
        gone = Some(started.elapsed());
    }
    judge(run, &output, gone)?;
    let lasted = gone.unwrap_or(run.duration).min(started.elapsed());
    let mut taken = Taken { format: FILE, extension: FILE, lasted, ..Taken::default() };
    if let Some(after) = gone {
        taken
            .warnings
            .push(format!("the target ended after {} ms; the profile is of the time before", millis(after)));
    }
    read(run, &perf, 1_000_000 / frequency, &mut taken).await?;
    Ok(taken)
}

/// Whether there is a profile.
fn judge(run: &Run<'_>, output: &Output, gone: Option<Duration>) -> Result<(), Error> {
    let text = format!("{}{}", output.stderr_text(), output.stdout_text());
    // What it has recorded it has written, also when it was told to end.
    if output.success() || run.files.length(FILE) > 0 && gone.is_some() {
        return Ok(());
    }
    let refusals =
        ["perf_event_paranoid", "Permission denied", "not permitted", "Access to performance monitoring"];
    if refusals.iter().any(|refusal| text.contains(refusal)) {
        return Err(Error::Refused {
            what: "perf".to_owned(),
            reason: said(output),
            remedy: REMEDY.to_owned(),
        });
    }
    if run.process.is_some_and(|process| !process.is_there()) {
        return Err(run.gone(gone.unwrap_or_default()));
    }
    Err(Error::failed("perf record", said(output)))
}

/// Reads the recorded profile. Where that takes too long only the file is answered.
async fn read(run: &Run<'_>, perf: &Path, interval_us: u64, taken: &mut Taken) -> Result<(), Error> {
    let command = Programs::command(perf, READS_WITHIN, MOST_TEXT)
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
        taken.warnings.push(format!(
            "the profile is kept but was not read ({}); `perf report -i {path}` reads it",
            said(&output)
        ));
        return Ok(());
    }
    let (cpu, addresses) = blocking(move || perf::read(&output.stdout_text(), interval_us)).await?;
    taken.samples = Some(cpu.samples);
    taken.places = lines(run, &addresses, &cpu.tree.functions()).await;
    taken.cpu = Some(cpu);
    Ok(())
}

/// Files and lines of the functions that will be told, where binutils are installed and the program has them.
async fn lines(run: &Run<'_>, addresses: &perf::Addresses, functions: &[super::Spent<'_>]) -> Vec<Place> {
    let Some(program) = run.programs.find("addr2line") else { return Vec::new() };
    let mut by_total: Vec<_> = functions.iter().collect();
    by_total.sort_by_key(|spent| std::cmp::Reverse(spent.total));
    let told = functions.iter().take(MOST_LINES / 2).chain(by_total.into_iter().take(MOST_LINES / 2));
    let mut libraries: Vec<(&str, Vec<(&Frame, u64)>)> = Vec::new();
    for spent in told {
        let library = spent.frame.file.as_deref().filter(|file| file.starts_with('/'));
        let (Some(library), Some(address)) = (library, addresses.get(spent.frame)) else { continue };
        match libraries.iter_mut().find(|(known, _)| *known == library) {
            Some((_, frames)) => frames.push((spent.frame, *address)),
            None => libraries.push((library, vec![(spent.frame, *address)])),
        }
    }
    let looked = libraries.iter().map(|(library, frames)| {
        let command = Programs::command(&program, LINES_WITHIN, 64 << 10)
            .args(["-e", library])
            .args(frames.iter().map(|(_, address)| format!("{address:#x}")))
            .cancel(run.cancel.clone());
        async move {
            let output = run.programs.runner.run(command).await.ok().filter(Output::success)?;
            let text = output.stdout_text();
            let places = text.lines().zip(frames).filter_map(|(line, (frame, _))| place(frame, line));
            Some(places.collect::<Vec<_>>())
        }
    });
    futures_util::future::join_all(looked).await.into_iter().flatten().flatten().collect()
}

/// `/app/main.c:12 (discriminator 3)`, or `??:0`.
fn place(frame: &Frame, line: &str) -> Option<Place> {
    let line = line.split(" (").next().unwrap_or(line);
    let (file, number) = line.rsplit_once(':')?;
    let known = !file.is_empty() && !file.starts_with('?');
    known.then(|| Place {
        frame: frame.clone(),
        file: file.to_owned(),
        line: number.parse().ok().filter(|line| *line > 0),
    })
}
