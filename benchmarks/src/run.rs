//! A run: every scenario with every server, round by round.

use crate::client::RunningServer;
use crate::fixture::BenchmarkFolder;
use crate::peers::{self, PeerServer};
use crate::results::{BARE, MeasuredServer, RunResults, ScenarioResult};
use crate::scenarios::{ALL, BenchmarkContext, RoundFigures, Scenario};
use crate::{BenchmarkError, install, machine, processes, report};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How to run.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunOptions {
    /// The servers. Default: benchmarks/peers.toml.
    #[arg(long, value_name = "FILE")]
    peers: Option<PathBuf>,
    /// Only these scenarios. Default: all.
    #[arg(long, value_name = "SCENARIO", value_delimiter = ',')]
    only: Vec<String>,
    /// Only these servers. Default: all that are installed.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    server: Vec<String>,
    /// Where to write peers.json, peers.md, targets.md and the plots.
    #[arg(long, value_name = "DIR", default_value = "benchmarks/results")]
    out: PathBuf,
    /// How often each scenario is measured with each server; the servers take turns.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// How long calls are repeated in one round, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.7)]
    span: f64,
}

/// How long a server may take for one answer of quiet work.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs, and writes what was found.
pub(crate) fn run(options: &RunOptions) -> Result<(), BenchmarkError> {
    let began = Instant::now();
    let default = crate::home().join("peers.toml");
    let peers = peers::load(options.peers.as_deref().unwrap_or(&default))?;
    let peers = chosen(&options.server, &peers, |peer| &peer.name, "server")?;
    let scenarios = chosen(&options.only, ALL, |scenario| scenario.id, "scenario")?;
    processes::adopt()?;
    let binaries = binaries(&peers);
    eprintln!("laying out the folder");
    let span = Duration::try_from_secs_f64(options.span)?;
    let bench = BenchmarkContext { fixture: BenchmarkFolder::new()?, span, patience: PATIENCE };
    for scenario in &scenarios {
        scenario.prepare(&bench)?;
    }
    // What was written is not to be written while something is measured.
    rustix::fs::sync();
    let mut results = RunResults {
        date: machine::today(),
        machine: machine::describe(),
        rounds: 0,
        took_s: 0,
        servers: peers.iter().map(|peer| measured(peer, &bench)).collect(),
        cells: Vec::new(),
        binaries,
    };
    fs::create_dir_all(&options.out)?;
    for round in 1..=options.rounds {
        for scenario in &scenarios {
            if round > 1 && scenario.once {
                continue;
            }
            eprintln!(
                "round {round} of {}, {} s: {}",
                options.rounds,
                began.elapsed().as_secs(),
                scenario.id
            );
            one(&bench, scenario, &peers, &mut results);
        }
        // What was found so far is kept, should the rest be given up.
        results.machine.load[1] = machine::load();
        (results.rounds, results.took_s) = (round, began.elapsed().as_secs());
        let path = options.out.join("peers.json");
        fs::write(&path, serde_json::to_string_pretty(&results)? + "\n")?;
    }
    report::write(&options.out, &options.out)?;
    println!("{}: {} s", options.out.display(), results.took_s);
    Ok(())
}

/// One scenario with one server after the other.
fn one(bench: &BenchmarkContext, scenario: &Scenario, peers: &[&PeerServer], results: &mut RunResults) {
    let cells = &mut results.cells;
    if let Some(found) = scenario.measure_bare(bench) {
        add(cells, scenario, BARE, found);
    }
    for (peer, server) in peers.iter().zip(&mut results.servers) {
        if let Some(missing) = missing(peer) {
            cell(cells, scenario, &peer.name).problem = Some(missing);
        } else if scenario.job.is_some_and(|job| !peer.jobs.contains_key(&job)) {
            cell(cells, scenario, &peer.name).lacks = true;
        } else if goes_on(cell(cells, scenario, &peer.name)) {
            let mut found = scenario.measure(bench, peer);
            server.left += std::mem::take(&mut found.left);
            if let Some(problem) = &found.problem {
                eprintln!("  {}: {problem}", peer.name);
            }
            add(cells, scenario, &peer.name, found);
        }
    }
}

/// Those that are named, or all. A name that is none of them is an error that says which there are.
fn chosen<'a, T>(
    names: &[String],
    all: &'a [T],
    name: impl Fn(&'a T) -> &'a str,
    what: &str,
) -> Result<Vec<&'a T>, BenchmarkError> {
    if let Some(unknown) = names.iter().find(|wanted| !all.iter().any(|one| name(one) == *wanted)) {
        let there: Vec<&str> = all.iter().map(name).collect();
        return Err(format!("no {what} `{unknown}`; there are {}", there.join(", ")).into());
    }
    Ok(all.iter().filter(|one| names.is_empty() || names.iter().any(|wanted| wanted == name(one))).collect())
}

fn measured(peer: &PeerServer, bench: &BenchmarkContext) -> MeasuredServer {
    let mut version = peer.version.clone();
    if version.is_empty() && !peer.command.is_empty() {
        let server = RunningServer::start(peer, bench.fixture.dir());
        version = server.map(|server| server.version.clone()).unwrap_or_default();
    }
    MeasuredServer {
        name: peer.name.clone(),
        version,
        transport: if peer.url.is_some() { "HTTP" } else { "stdio" }.to_owned(),
        note: peer.note.clone(),
        left: 0,
    }
}

/// Why it cannot be measured.
fn missing(peer: &PeerServer) -> Option<String> {
    let there = peer.install.is_none() || install::folder(&peer.name).exists();
    (!there).then(|| "not installed: `cargo run --profile dist -p benchmarks -- install`".to_owned())
}

/// The sizes of our programs without symbols. Built here where they are not.
fn binaries(peers: &[&PeerServer]) -> BTreeMap<String, u64> {
    let mut sizes = BTreeMap::new();
    for (name, program) in [
        ("mcp-stdio", integration_tests::server as fn() -> &'static Path),
        ("mcp-http", integration_tests::http_server),
    ] {
        let placeholder = format!("{{{name}}}");
        if peers.iter().any(|peer| peer.command.contains(&placeholder)) {
            let copy = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
            let stripped = std::process::Command::new("strip").arg("-o").arg(&copy).arg(program()).status();
            if stripped.is_ok_and(|status| status.success()) {
                sizes.insert(name.to_owned(), fs::metadata(&copy).map_or(0, |file| file.len()));
            }
            let _ = fs::remove_file(&copy);
        }
    }
    sizes
}

fn cell<'a>(cells: &'a mut Vec<ScenarioResult>, scenario: &Scenario, server: &str) -> &'a mut ScenarioResult {
    let there = cells.iter().position(|cell| cell.scenario == scenario.id && cell.server == server);
    let place = there.unwrap_or_else(|| {
        let (scenario, server) = (scenario.id.to_owned(), server.to_owned());
        cells.push(ScenarioResult { scenario, server, ..ScenarioResult::default() });
        cells.len() - 1
    });
    &mut cells[place]
}

/// Returns true if it is asked again: not after it has not answered, as that takes long and says the same each time.
fn goes_on(cell: &ScenarioResult) -> bool {
    cell.problem.is_none() || !cell.figures.is_empty() && !cell.silent()
}

fn add(cells: &mut Vec<ScenarioResult>, scenario: &Scenario, server: &str, found: RoundFigures) {
    let cell = cell(cells, scenario, server);
    for (metric, value) in found.figures {
        cell.figures.entry(metric.to_owned()).or_default().push(value);
    }
    if cell.problem.is_none() {
        cell.problem = found.problem.map(|problem| problem.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::MeasureError;

    #[test]
    fn a_scenario_that_there_is_not_is_refused_with_those_there_are() {
        let failure = chosen(&["raed".to_owned()], ALL, |scenario| scenario.id, "scenario").unwrap_err();
        let said = failure.to_string();
        assert!(said.starts_with("no scenario `raed`; there are start, read, read_32"), "{said}");
    }

    #[test]
    fn who_has_not_answered_is_not_asked_again_and_who_refused_is() {
        let mut cells = Vec::new();
        assert!(goes_on(cell(&mut cells, &ALL[0], "a")));
        let figures = vec![("ready", 1.0)];
        let refused = Some(MeasureError::Refused("too long".to_owned()));
        add(&mut cells, &ALL[0], "a", RoundFigures { figures: figures.clone(), problem: refused, left: 0 });
        assert!(goes_on(&cells[0]));
        let silent = Some(MeasureError::NoAnswer(Duration::from_secs(8)));
        add(&mut cells, &ALL[1], "a", RoundFigures { figures, problem: silent, left: 0 });
        assert!(!goes_on(&cells[1]));
    }
}
