//! Work that every server should do well.

use super::{BenchmarkContext, RoundFigures, Scenario, params};
use crate::client::{MeasureError, RunningServer, ServerExit};
use crate::peers::{PeerServer, Placeholders, PollCall};
use crate::processes::{self, ProcessMemory};
use crate::stats::{median, millis, percentile};
use regex::Regex;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Starts of one round.
const STARTS: usize = 5;

/// How long a server sits idle before its memory is looked at.
const IDLE: Duration = Duration::from_millis(500);

/// Most calls of one round.
const CALLS: usize = 5_000;

/// A first call that takes longer is the only one of its round.
const LONG: Duration = Duration::from_secs(1);

pub(super) fn start(bench: &BenchmarkContext, peer: &PeerServer) -> Result<RoundFigures, MeasureError> {
    let mut found = RoundFigures::default();
    let (mut ready, mut ends) = (Vec::new(), Vec::new());
    let own = !peer.command.is_empty();
    for index in 0..if own { STARTS } else { 1 } {
        let server = RunningServer::start(peer, bench.fixture.dir())?;
        ready.push(millis(server.ready));
        if index == 0 {
            let list = server.tools.result();
            let tools = list["tools"].as_array().map_or(0, Vec::len);
            found.figures.push(("tools", tools as f64));
            found.figures.push(("list", list["tools"].to_string().len() as f64));
            if let Some(pid) = server.pid() {
                std::thread::sleep(IDLE);
                let ProcessMemory { resident, proportional, .. } = processes::memory(pid);
                found.figures.push(("rss", resident as f64 / 1e6));
                found.figures.push(("pss", proportional as f64 / 1e6));
            }
        }
        let ServerExit { after, left } = server.stop();
        ends.extend(after.map(millis));
        found.left += left;
    }
    if own {
        forget(peer);
        let server = RunningServer::start(peer, bench.fixture.dir())?;
        found.figures.push(("cold", millis(server.ready)));
        found.left += server.stop().left;
        found.figures.extend(median(&ready).map(|ready| ("ready", ready)));
        found.figures.extend(median(&ends).map(|end| ("exit", end)));
        if ends.is_empty() {
            found.problem = Some(MeasureError::Refused("does not end when its input does".to_owned()));
        }
    }
    Ok(found)
}

/// Throws the program of a server, and the files that were installed with it, out of the page cache.
fn forget(peer: &PeerServer) {
    let program = match peer.command.first().map(String::as_str) {
        Some("{mcp-stdio}") => Some(integration_tests::server().to_owned()),
        Some("{mcp-http}") => Some(integration_tests::http_server().to_owned()),
        Some(name) => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
        }
        None => None,
    };
    let mut waiting: Vec<PathBuf> = program.into_iter().collect();
    waiting.push(crate::install::folder(&peer.name));
    while let Some(path) = waiting.pop() {
        if path.is_dir() && !path.is_symlink() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            waiting.extend(entries.map(|entry| entry.path()));
        } else if let Ok(file) = fs::File::open(&path) {
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        }
    }
}

pub(super) fn calls(
    bench: &BenchmarkContext,
    peer: &PeerServer,
    scenario: &Scenario,
    holds: (&str, usize),
) -> Result<RoundFigures, MeasureError> {
    let call = scenario.job.and_then(|job| peer.jobs.get(&job)).ok_or(MeasureError::Wrong(String::new()))?;
    let first = scenario.call(bench, call)?;
    let mut server = RunningServer::start(peer, bench.fixture.dir())?;
    let poll = match &call.poll {
        Some(poll) => Some(PolledAnswer::new(poll)?),
        None => None,
    };
    // The text of an answer, and what of it is structured: either may hold all of it.
    let mut once = |text: Option<&mut [String; 2]>| -> Result<(Duration, u64), MeasureError> {
        let begun = Instant::now();
        let answer = server.call(&first, bench.patience)?;
        let (mut time, mut bytes) = (answer.arrived - begun, answer.bytes);
        let mut whole = String::new();
        if text.is_some() || poll.is_some() {
            whole = answer.text();
        }
        if let Some(poll) = &poll {
            let next = poll.next(&whole)?;
            while !poll.until.is_match(&whole) {
                if begun.elapsed() > bench.patience {
                    return Err(MeasureError::NoAnswer(bench.patience));
                }
                let answer = server.call(&next, bench.patience)?;
                (time, bytes) = (answer.arrived - begun, bytes + answer.bytes);
                whole.push_str(&answer.text());
            }
        }
        if let Some(text) = text {
            *text = [whole, answer.structured()];
        }
        Ok((time, bytes))
    };
    let mut texts = [String::new(), String::new()];
    let (time, bytes) = once(Some(&mut texts))?;
    let there = texts.each_ref().map(|text| text.matches(holds.0).count()).into_iter().max().unwrap_or(0);
    if there < holds.1 {
        let said = format!("{:?} {there} times instead of {}: {}", holds.0, holds.1, texts[0]);
        return Err(MeasureError::Wrong(crate::client::short(&said)));
    }
    let mut times = vec![millis(time)];
    if time < LONG {
        // The first call was the warm-up.
        times.clear();
        let begun = Instant::now();
        while times.is_empty() || (begun.elapsed() < bench.span && times.len() < CALLS) {
            times.push(millis(once(None)?.0));
        }
    }
    let mut found = RoundFigures { figures: vec![("bytes", bytes as f64)], ..RoundFigures::default() };
    found.figures.extend(percentile(&times, 50.0).map(|p50| ("p50", p50)));
    if times.len() >= 100 {
        found.figures.extend(percentile(&times, 99.0).map(|p99| ("p99", p99)));
    }
    found.left = server.stop().left;
    Ok(found)
}

/// The further calls of an answer that comes in pieces.
struct PolledAnswer<'a> {
    poll: &'a PollCall,
    take: Regex,
    until: Regex,
}

impl<'a> PolledAnswer<'a> {
    fn new(poll: &'a PollCall) -> Result<Self, MeasureError> {
        let regex = |text: &str| Regex::new(text).map_err(|error| MeasureError::Wrong(error.to_string()));
        Ok(Self { poll, take: regex(&poll.take)?, until: regex(&poll.until)? })
    }

    fn next(&self, answer: &str) -> Result<Value, MeasureError> {
        let taken = self.take.captures(answer).and_then(|groups| groups.get(1));
        let taken = taken.ok_or_else(|| MeasureError::Wrong(crate::client::short(answer)))?;
        let call = crate::peers::ToolCall {
            tool: self.poll.tool.clone(),
            arguments: self.poll.arguments.clone(),
            poll: None,
        };
        Ok(params(&call, &Placeholders::from([("taken", json!(taken.as_str()))])))
    }
}

pub(super) fn rate(
    bench: &BenchmarkContext,
    peer: &PeerServer,
    scenario: &Scenario,
    holds: &str,
) -> Result<RoundFigures, MeasureError> {
    let call = scenario.job.and_then(|job| peer.jobs.get(&job)).ok_or(MeasureError::Wrong(String::new()))?;
    let call = scenario.call(bench, call)?;
    let mut server = RunningServer::start(peer, bench.fixture.dir())?;
    let answer = server.call(&call, bench.patience)?;
    if !answer.text().contains(holds) {
        return Err(MeasureError::Wrong(crate::client::short(&answer.text())));
    }
    let rate = server.client.rate(&call, 32, bench.span, bench.patience)?;
    Ok(RoundFigures { figures: vec![("rate", rate)], left: server.stop().left, problem: None })
}
