//! The cost of a remote: each kind beside a server of this machine and beside its engine without a server, in one run.

mod far;
mod report;

use crate::stats::{millis, percentile};
use crate::{BenchmarkError, machine};
use far::{BareEcho, Front};
use integration_tests::remotes::containers::Engine;
use integration_tests::remotes::far_end::FarEnd;
use integration_tests::remotes::{slurm, ssh, users};
use std::time::Duration;

/// The options of `benchmarks remotes`.
#[derive(Debug, clap::Args)]
pub(crate) struct RemotesOptions {
    /// Only these: sh, podman, docker, ssh, slurm, sudo.
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    only: Vec<String>,
    /// Warm calls of each kind.
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    calls: usize,
    /// Starts of each kind.
    #[arg(long, value_name = "COUNT", default_value_t = 7)]
    starts: usize,
}

/// The time between the making of a warm remote and its first use.
const WARMING: Duration = Duration::from_secs(3);

/// The calls that are made before any is measured.
const FIRST_CALLS: usize = 50;

/// A kind, and what there is of it on this machine.
struct MeasuredKind {
    name: &'static str,
    /// Its description in the tables.
    what: &'static str,
    /// Something that was made beforehand. None where the engine is missing.
    existing: fn() -> Option<FarEnd>,
    /// The same, made for each server in front. `more` are keys of the remote.
    made: Option<fn(more: &str) -> Option<FarEnd>>,
}

/// The kinds in the order of the tables.
const KINDS: [MeasuredKind; 6] = [
    MeasuredKind {
        name: "sh",
        what: "a shell of this machine",
        existing: || Some(users::shell()),
        made: None,
    },
    MeasuredKind {
        name: "podman",
        what: "a container of Podman",
        existing: || Some(Engine::podman()?.with_container()),
        made: Some(|more| Some(Engine::podman()?.with_new_containers(more))),
    },
    MeasuredKind {
        name: "docker",
        what: "a container of Docker",
        existing: || Some(Engine::docker()?.with_container()),
        made: Some(|more| Some(Engine::docker()?.with_new_containers(more))),
    },
    MeasuredKind { name: "ssh", what: "OpenSSH on the loopback network", existing: ssh::far_end, made: None },
    MeasuredKind {
        name: "slurm",
        what: "an allocation of Slurm",
        existing: || slurm::far_end(""),
        made: Some(slurm::far_end),
    },
    MeasuredKind { name: "sudo", what: "another user by sudo", existing: users::another_user, made: None },
];

/// Measures every kind, and prints the tables.
pub(crate) fn remotes(options: &RemotesOptions) -> Result<(), BenchmarkError> {
    println!("{}; load averages before: {}\n", machine::today(), machine::load());
    let chosen = KINDS
        .iter()
        .filter(|kind| options.only.is_empty() || options.only.iter().any(|name| name == kind.name));
    let mut measured = Measured::default();
    for kind in chosen {
        if let Err(problem) = measure(kind, options, &mut measured) {
            println!("{}: {problem}\n", kind.name);
        }
    }
    let Measured { calls, starts, copies } = measured;
    println!("{}", report::calls(&calls));
    println!("{}", report::starts(&starts));
    println!("{}", report::copies(&copies));
    println!("load averages after: {}", machine::load());
    Ok(())
}

/// The rows of the tables.
#[derive(Default)]
struct Measured {
    calls: Vec<(&'static str, CallTimes)>,
    starts: Vec<(&'static str, StartTimes)>,
    copies: Vec<(&'static str, StartTimes)>,
}

/// Measures a kind. An error leaves the rows that were measured before it.
fn measure(kind: &MeasuredKind, options: &RemotesOptions, rows: &mut Measured) -> Result<(), BenchmarkError> {
    let Some(far_end) = (kind.existing)() else {
        return Err("missing on this machine, or this user may not use it".into());
    };
    eprintln!("{}: calls", kind.name);
    rows.calls.push((kind.what, warm_calls(&far_end, options.calls)?));
    eprintln!("{}: starts", kind.name);
    rows.starts.push((kind.what, connects(&far_end, options.starts)?));
    if kind.name == "podman" {
        eprintln!("{}: copies", kind.name);
        rows.copies.push((kind.what, copied(&far_end, options.starts)?));
    }
    drop(far_end);
    let Some(made) = kind.made else { return Ok(()) };
    // What the kind slurm connects to is new each time already.
    if kind.name != "slurm"
        && let Some(far_end) = made("")
    {
        eprintln!("{}: new ones", kind.name);
        rows.starts.push((new_one(kind.name), connects(&far_end, options.starts)?));
    }
    if let Some(far_end) = made("warm = 1\n") {
        eprintln!("{}: warm ones", kind.name);
        rows.starts.push((warm_one(kind.name), warm_starts(far_end, options.starts)?));
    }
    Ok(())
}

fn new_one(kind: &str) -> &'static str {
    if kind == "podman" { "a new container of Podman" } else { "a new container of Docker" }
}

fn warm_one(kind: &str) -> &'static str {
    match kind {
        "podman" => "a warm container of Podman",
        "docker" => "a warm container of Docker",
        _ => "a warm allocation of Slurm",
    }
}

/// The times of small calls in milliseconds, of three ways that took turns.
pub(crate) struct CallTimes {
    /// A line through the engine and back.
    echo: Vec<f64>,
    /// The call of a server of this machine.
    local: Vec<f64>,
    /// The call of a server in front, whose far end answers.
    remote: Vec<f64>,
}

/// Times that were measured in turns, in milliseconds.
pub(crate) struct StartTimes {
    /// The engine alone: from the start of a command to the first line that it sends back. Empty if there is none.
    engine: Vec<f64>,
    /// The first call of a server in front.
    remote: Vec<f64>,
}

/// Reads a small file by a local server and by the remote, and sends a line through the engine, in turns.
fn warm_calls(far_end: &FarEnd, count: usize) -> Result<CallTimes, BenchmarkError> {
    let mut local = Front::start(far_end.project.server())?;
    let mut remote = Front::start(far_end.command(&[]))?;
    let mut echo = BareEcho::start(far_end.bare_command(&["cat"]))?;
    for _ in 0..FIRST_CALLS {
        echo.line()?;
        local.read()?;
        remote.read()?;
    }
    let mut times = CallTimes { echo: Vec::new(), local: Vec::new(), remote: Vec::new() };
    for _ in 0..count {
        times.echo.push(millis(echo.line()?));
        times.local.push(millis(local.read()?));
        times.remote.push(millis(remote.read()?));
    }
    local.end()?;
    remote.end()?;
    Ok(times)
}

/// The first call of a new server in front, beside the first line through a new connection of the engine.
fn connects(far_end: &FarEnd, count: usize) -> Result<StartTimes, BenchmarkError> {
    let mut times = StartTimes { engine: Vec::new(), remote: Vec::new() };
    for _ in 0..count {
        times.engine.push(millis(BareEcho::first(far_end.bare_command(&["cat"]))?));
        let mut front = Front::start(far_end.command(&[]))?;
        times.remote.push(millis(front.list()?));
        front.end()?;
    }
    Ok(times)
}

/// The first call of a server in front that has made its remote ahead.
fn warm_starts(mut far_end: FarEnd, count: usize) -> Result<StartTimes, BenchmarkError> {
    let mut times = StartTimes { engine: Vec::new(), remote: Vec::new() };
    for _ in 0..count {
        let mut front = Front::start(far_end.command(&[]))?;
        let began = std::time::Instant::now();
        while far_end.listed().is_empty() {
            if began.elapsed() > Duration::from_secs(60) {
                return Err("no remote was made ahead in a minute".into());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        std::thread::sleep(WARMING);
        times.remote.push(millis(front.list()?));
        front.end()?;
    }
    Ok(times)
}

/// The first call of a server in front that copies its program, beside the same bytes through the engine.
fn copied(far_end: &FarEnd, count: usize) -> Result<StartTimes, BenchmarkError> {
    let mut times = StartTimes { engine: Vec::new(), remote: Vec::new() };
    for number in 0..count.min(3) {
        let bare = format!("mkdir -p /tmp/bare && cat > /tmp/bare/{number}");
        let mut command = far_end.bare_command(&["sh", "-c", &bare]);
        times.engine.push(millis(far::sent(&mut command, integration_tests::server())?));
        let mut front = Front::start(far_end.copying(&format!("/tmp/copied-{number}")))?;
        times.remote.push(millis(front.list()?));
        front.end()?;
    }
    Ok(times)
}

/// The median, or nothing of no times.
pub(crate) fn middle(times: &[f64]) -> Option<f64> {
    percentile(times, 50.0)
}
