//! Commands that do not behave.

use super::{BenchmarkContext, RoundFigures, params};
use crate::client::{MeasureError, RunningServer};
use crate::fixture::FixturePart;
use crate::peers::{PeerJob, PeerServer, Placeholders};
use crate::processes;
use crate::stats::millis;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

/// The limit that a command without end is given.
const LIMIT: Duration = Duration::from_secs(2);

/// How long an answer may take that should come at once, or at [`LIMIT`].
const PATIENCE: Duration = Duration::from_secs(8);

/// How long the flood may take.
const FLOOD: Duration = Duration::from_secs(20);

/// The time that a server may take to end its programs: some wait for a client to come back.
const GRACE: Duration = Duration::from_secs(5);

/// Between two pings.
const PAUSE: Duration = Duration::from_millis(2);

/// A call of `job` that runs `line` by a shell, or, as a list, `argv`.
fn command(peer: &PeerServer, job: PeerJob, line: &str, argv: &[&str]) -> Result<Value, MeasureError> {
    let call = peer.jobs.get(&job).or_else(|| peer.jobs.get(&PeerJob::Command));
    let call = call.ok_or(MeasureError::Wrong(String::new()))?;
    let values = Placeholders::from([
        ("command", json!(line)),
        ("argv", json!(argv)),
        ("timeout_s", json!(LIMIT.as_secs())),
        ("timeout_ms", json!(LIMIT.as_millis())),
    ]);
    Ok(params(call, &values))
}

/// A call that runs a script of these lines: a file, as not every server takes a line for a shell.
fn script(
    bench: &BenchmarkContext,
    peer: &PeerServer,
    job: PeerJob,
    lines: &str,
) -> Result<Value, MeasureError> {
    let path = bench.fixture.dir().join("command.sh");
    let written = fs::write(&path, format!("#!/bin/sh\n{lines}\n"))
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)));
    written.map_err(|error| MeasureError::Start(error.to_string()))?;
    let path = path.to_string_lossy();
    command(peer, job, &path, &[&path])
}

fn ready(bench: &BenchmarkContext, peer: &PeerServer) -> Result<RunningServer, MeasureError> {
    let mut server = RunningServer::start(peer, bench.fixture.dir())?;
    let warm = command(peer, PeerJob::Command, "echo warm", &["echo", "warm"])?;
    for _ in 0..5 {
        server.call(&warm, PATIENCE)?;
    }
    Ok(server)
}

pub(super) fn flood(bench: &BenchmarkContext, peer: &PeerServer) -> Result<RoundFigures, MeasureError> {
    let file =
        bench.fixture.path(FixturePart::Flood).map_err(|failure| MeasureError::Start(failure.to_string()))?;
    let file = file.to_string_lossy();
    let call = command(peer, PeerJob::Command, &format!("cat '{file}'"), &["cat", &file])?;
    let mut server = ready(bench, peer)?;
    let peak = |server: &RunningServer| server.pid().map(|pid| processes::memory(pid).peak);
    let before = peak(&server);
    let begun = Instant::now();
    let deadline = begun + FLOOD;
    let ticket = server.client.begin("tools/call", &call)?;
    let (mut found, mut worst) = (RoundFigures::default(), Duration::ZERO);
    let mut answered = None;
    while answered.is_none() {
        let sent = Instant::now();
        match server.client.request("ping", &json!({}), deadline) {
            Ok(answer) => worst = worst.max(answer.arrived - sent),
            Err(_) => worst = worst.max(sent.elapsed()),
        }
        match server.client.wait(ticket, (Instant::now() + PAUSE).min(deadline)) {
            Ok(answer) => {
                found.figures.push(("answered", (answer.arrived - begun).as_secs_f64()));
                found.problem = answer.check().err();
                answered = Some(answer);
            }
            Err(MeasureError::NoAnswer(_)) if Instant::now() < deadline => {}
            Err(MeasureError::NoAnswer(_)) => {
                found.problem = Some(MeasureError::NoAnswer(FLOOD));
                break;
            }
            Err(problem) => {
                found.problem = Some(problem);
                break;
            }
        }
    }
    found.figures.push(("ping", millis(worst)));
    if let (Some(before), Some(after)) = (before, peak(&server)) {
        found.figures.push(("growth", after.saturating_sub(before) as f64 / 1e6));
    }
    server.stop();
    Ok(found)
}

/// Waits until none of the marked is left, for [`GRACE`] at most, and says how many are.
fn left(mark: &str) -> f64 {
    let begun = Instant::now();
    loop {
        let left = processes::marked(mark);
        if left.is_empty() || begun.elapsed() > GRACE {
            return left.len() as f64;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A command without end: two sleepers, one of them in the background, under a shell.
fn sleepers(mark: &str) -> String {
    format!("sleep {mark} &\nsleep {mark}\ntrue")
}

pub(super) fn endless(bench: &BenchmarkContext, peer: &PeerServer) -> Result<RoundFigures, MeasureError> {
    let mark = integration_tests::unique_seconds();
    let call = script(bench, peer, PeerJob::LimitedCommand, &sleepers(&mark))?;
    let mut server = ready(bench, peer)?;
    let begun = Instant::now();
    let mut found = RoundFigures::default();
    // That it is answered with an error is as it should be.
    match server.client.request("tools/call", &call, begun + PATIENCE) {
        Ok(answer) => found.figures.push(("answered", (answer.arrived - begun).as_secs_f64())),
        Err(MeasureError::NoAnswer(_)) => found.problem = Some(MeasureError::NoAnswer(PATIENCE)),
        Err(problem) => return Err(problem),
    }
    found.figures.push(("left", left(&mark)));
    server.stop();
    Ok(found)
}

pub(super) fn background(bench: &BenchmarkContext, peer: &PeerServer) -> Result<RoundFigures, MeasureError> {
    let mark = integration_tests::unique_seconds();
    let call = script(bench, peer, PeerJob::Command, &format!("sleep {mark} &\necho started"))?;
    let mut server = ready(bench, peer)?;
    let begun = Instant::now();
    let mut found = RoundFigures::default();
    match server.client.request("tools/call", &call, begun + PATIENCE) {
        Ok(answer) => {
            found.figures.push(("answered", (answer.arrived - begun).as_secs_f64()));
            if !answer.text().contains("started") {
                found.problem = Some(MeasureError::Wrong(crate::client::short(&answer.text())));
            }
        }
        Err(MeasureError::NoAnswer(_)) => found.problem = Some(MeasureError::NoAnswer(PATIENCE)),
        Err(problem) => return Err(problem),
    }
    found.figures.push(("left", left(&mark)));
    found.figures.push(("left_exit", server.stop().left as f64));
    Ok(found)
}

pub(super) fn endings(bench: &BenchmarkContext, peer: &PeerServer) -> Result<RoundFigures, MeasureError> {
    let mut found = RoundFigures::default();
    for way in ["cancel", "input", "term", "kill"] {
        let mark = integration_tests::unique_seconds();
        let call = script(bench, peer, PeerJob::Command, &sleepers(&mark))?;
        let mut server = ready(bench, peer)?;
        let ticket = server.client.begin("tools/call", &call)?;
        let begun = Instant::now();
        while processes::marked(&format!("sleep {mark}")).len() < 2 {
            if begun.elapsed() > PATIENCE {
                return Err(MeasureError::Wrong("the command does not run".to_owned()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        match way {
            "cancel" => server.client.cancel(ticket)?,
            "input" => server.client.close(),
            "term" => server.signal(Signal::TERM),
            _ => server.signal(Signal::KILL),
        }
        if way == "kill" {
            server.wait(GRACE);
        }
        found.figures.push((way, left(&mark)));
        server.end(None);
    }
    Ok(found)
}
