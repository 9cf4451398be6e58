//! Tables.

use super::metric;
use crate::results::{BARE, RunResults, ScenarioResult};
use crate::scenarios::{ALL, MetricUnit, ScenarioMetric};
use crate::stats::{median, spread};
use crate::targets::TargetVerdict;
use std::fmt::Write as _;

/// A table: its head, and scenario, metric and head of each column.
type ScenarioTable = (&'static str, &'static [(&'static str, &'static str, &'static str)]);

const TABLES: &[ScenarioTable] = &[
    (
        "Start and idle",
        &[
            ("start", "ready", "start, ms"),
            ("start", "cold", "cold, ms"),
            ("start", "pss", "idle PSS, MB"),
            ("start", "rss", "idle RSS, MB"),
            ("start", "tools", "tools"),
            ("start", "list", "bytes of `tools/list`"),
            ("start", "exit", "end, ms"),
        ],
    ),
    (
        "Files",
        &[
            ("read", "p50", "read of 1 KB, ms"),
            ("read", "p99", "p99, ms"),
            ("read_32", "rate", "32 in flight, calls/s"),
            ("list", "p50", "list of 10,000, ms"),
            ("list", "bytes", "bytes of the list"),
            ("find", "p50", "find in 50,000, ms"),
            ("search", "p50", "search in 50,000, ms"),
        ],
    ),
    (
        "Git and commands",
        &[
            ("git", "p50", "git status, 300 files, ms"),
            ("git_large", "p50", "50,000 files, ms"),
            ("echo", "p50", "`echo`, ms"),
            ("echo", "p99", "p99, ms"),
            ("echo_32", "rate", "32 in flight, calls/s"),
        ],
    ),
    (
        "Whole tasks",
        &[("context", "p50", "context of a role, ms"), ("tests", "p50", "5,000 tests of pytest, ms")],
    ),
    (
        "Commands that do not behave",
        &[
            ("flood", "answered", "1 GiB of output, s"),
            ("flood", "growth", "memory grows, MB"),
            ("flood", "ping", "worst ping, ms"),
            ("endless", "answered", "endless, limit of 2 s: answered, s"),
            ("endless", "left", "processes left"),
            ("background", "answered", "child in the background: answered, s"),
            ("background", "left", "processes left"),
            ("background", "left_exit", "left by the server"),
        ],
    ),
    (
        "Processes of a running command that are left 5 s after",
        &[
            ("endings", "cancel", "cancellation"),
            ("endings", "input", "end of input, or client gone"),
            ("endings", "term", "SIGTERM to the server"),
            ("endings", "kill", "SIGKILL to the server"),
        ],
    ),
];

/// The page of a run.
pub(super) fn peers(results: &RunResults, plots: &[(&str, String)]) -> String {
    let mut page = String::from("# Comparison with other servers\n\n");
    page.push_str(include_str!("peers-head.md"));
    conditions(&mut page, results);
    servers(&mut page, results);
    for (head, columns) in TABLES {
        table(&mut page, results, head, columns);
    }
    if !plots.is_empty() {
        page.push_str(
            "\n## Plots\n\nThe bars are logarithmic. A shorter bar is better, except for calls/s.\n",
        );
    }
    for (name, title) in plots {
        let _ = write!(page, "\n![{title}](peers/{name}.svg)\n");
    }
    page
}

fn conditions(page: &mut String, results: &RunResults) {
    let machine = &results.machine;
    let versions: Vec<String> =
        machine.versions.iter().map(|(program, version)| format!("{program} {version}")).collect();
    let _ = write!(
        page,
        "\nThe figures were measured on {} on a machine with {} cores ({}), {} GB, {}; {}. The load averages were {} before \
         the run and {} after the run. The run had {} round{} and took {} minutes.\n",
        results.date,
        machine.cores,
        machine.cpu,
        machine.memory_gb,
        machine.system,
        versions.join(", "),
        machine.load[0],
        machine.load[1],
        results.rounds,
        if results.rounds == 1 { "" } else { "s" },
        results.took_s.div_ceil(60),
    );
    // Load that was there before, or that one client and one server at a time do not make.
    let first =
        |load: &String| load.split(' ').next().and_then(|load| load.parse::<f64>().ok()).unwrap_or(0.0);
    let cores = machine.cores as f64;
    if first(&machine.load[0]) > cores / 2.0 || first(&machine.load[1]) > cores * 2.0 {
        page.push_str(
            "\n**The machine was busy with other work.** What is counted (bytes, processes, failures, memory) holds; \
             times and rates are those of a busy machine, and no single one of them says much.\n",
        );
    }
}

fn servers(page: &mut String, results: &RunResults) {
    page.push_str("\n| server | version | transport | processes left after quiet work | note |\n|---|---|---|---|---|\n");
    for server in &results.servers {
        let started = results.cell("start", &server.name);
        let missing = started.filter(|cell| cell.figures.is_empty()).and_then(|cell| cell.problem.as_deref());
        let left = if missing.is_some() { "—".to_owned() } else { server.left.to_string() };
        let note = missing.unwrap_or(&server.note);
        let _ = writeln!(
            page,
            "| {} | {} | {} | {left} | {note} |",
            server.name, server.version, server.transport
        );
    }
}

fn table(page: &mut String, results: &RunResults, head: &str, columns: &[(&str, &str, &str)]) {
    let names = std::iter::once(BARE).chain(results.servers.iter().map(|server| server.name.as_str()));
    let mut notes: Vec<String> = Vec::new();
    let mut rows = String::new();
    for name in names {
        let cells: Vec<Option<&ScenarioResult>> =
            columns.iter().map(|(scenario, ..)| results.cell(scenario, name)).collect();
        let measured =
            |cell: &&ScenarioResult| !cell.lacks && (!cell.figures.is_empty() || cell.problem.is_some());
        if !cells.iter().flatten().any(measured) || never_started(results, name) {
            continue;
        }
        let mut row = format!("| {name} |");
        for ((scenario, id, _), cell) in columns.iter().zip(cells) {
            let shown = match (cell, metric(scenario, id)) {
                (Some(cell), Some(metric)) => show(cell, metric, first(scenario, id), &mut notes),
                _ => "—".to_owned(),
            };
            let _ = write!(row, " {shown} |");
        }
        rows.push_str(&row);
        rows.push('\n');
    }
    if rows.is_empty() {
        return;
    }
    let heads: Vec<&str> = columns.iter().map(|(_, _, head)| *head).collect();
    let _ = write!(
        page,
        "\n## {head}\n\n| | {} |\n|---|{}\n{rows}",
        heads.join(" | "),
        "---:|".repeat(heads.len())
    );
    if !notes.is_empty() {
        page.push('\n');
    }
    for (place, note) in notes.iter().enumerate() {
        let _ = writeln!(page, "{}. {note}", place + 1);
    }
}

fn never_started(results: &RunResults, server: &str) -> bool {
    results.cell("start", server).is_some_and(|cell| cell.figures.is_empty() && cell.problem.is_some())
}

/// Returns true if this column names a problem of the scenario.
fn first(scenario: &str, id: &str) -> bool {
    ALL.iter().find(|one| one.id == scenario).is_some_and(|scenario| scenario.metrics[0].id == id)
}

fn show(cell: &ScenarioResult, metric: &ScenarioMetric, first: bool, notes: &mut Vec<String>) -> String {
    let values = cell.figures.get(metric.id).map_or(&[][..], Vec::as_slice);
    let mut shown = match (median(values), spread(values)) {
        (Some(value), Some((least, greatest))) => {
            let (least, greatest) = (metric.unit.show(least), metric.unit.show(greatest));
            let steady = least == greatest || matches!(metric.unit, MetricUnit::Bytes | MetricUnit::Count);
            let range = if steady { String::new() } else { format!(" <sub>{least}–{greatest}</sub>") };
            format!("{}{range}", metric.unit.show(value))
        }
        _ if first && cell.silent() => cell.problem.clone().unwrap_or_default(),
        _ if first && cell.problem.is_some() => "fails".to_owned(),
        _ => "—".to_owned(),
    };
    if let Some(problem) = cell.problem.as_ref().filter(|_| first && !cell.silent()) {
        let note = format!("{}: {}", cell.server, problem.replace('|', "\\|").replace('<', "&lt;"));
        let place = notes.iter().position(|other| *other == note).unwrap_or_else(|| {
            notes.push(note);
            notes.len() - 1
        });
        let _ = write!(shown, " [{}]", place + 1);
    }
    shown
}

/// The page of the targets.
pub(super) fn targets(results: &RunResults, verdicts: &[TargetVerdict]) -> String {
    let mut page = String::from("# The targets\n\n");
    page.push_str(include_str!("targets-head.md"));
    conditions(&mut page, results);
    page.push_str(
        "\n| figure | target | measured | result | best other server | source |\n|---|---|---|---|---|---|\n",
    );
    for verdict in verdicts {
        let TargetVerdict { what, target, measured, met, other, how } = verdict;
        let met = match met {
            Some(true) => "met",
            Some(false) => "**not met**",
            None => "",
        };
        let _ = writeln!(page, "| {what} | {target} | {measured} | {met} | {other} | {how} |");
    }
    if !results.binaries.is_empty() {
        page.push_str("\n## Size and cold start\n\n| program | without symbols, MB | warm start, ms | cold start, ms |\n|---|---:|---:|---:|\n");
    }
    for (program, bytes) in &results.binaries {
        let shown = |id| {
            let value = results.median("start", program, id);
            value.map_or_else(|| "—".to_owned(), |value| MetricUnit::Millis.show(value))
        };
        let size = MetricUnit::Megabytes.show(*bytes as f64 / 1e6);
        let _ = writeln!(page, "| {program} | {size} | {} | {} |", shown("ready"), shown("cold"));
    }
    page
}
