//! The programs that do the same without a server.

use super::{BenchmarkContext, RoundFigures, Scenario};
use crate::client::MeasureError;
use crate::fixture::FixturePart;
use crate::stats::{millis, percentile};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Returns the command, and the part of the folder that it runs in.
fn words(scenario: &Scenario) -> Option<(&'static [&'static str], Option<FixturePart>)> {
    Some(match scenario.id {
        "list" => (&["ls"], Some(FixturePart::Folder)),
        "find" => (&["find", ".", "-name", "file_077.rs"], Some(FixturePart::Tree)),
        "search" if has("rg") => (&["rg", "-uu", "TODO", "."], Some(FixturePart::Tree)),
        "search" => (&["grep", "-r", "TODO", "."], Some(FixturePart::Tree)),
        "git" => (GIT, Some(FixturePart::Project)),
        "git_large" => (GIT, Some(FixturePart::LargeRepository)),
        "echo" => (&["echo", "hello"], None),
        "tests" => {
            (&[".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider"], Some(FixturePart::Tests))
        }
        _ => return None,
    })
}

const GIT: &[&str] = &["git", "--no-optional-locks", "status", "--porcelain=v2", "-z", "--branch"];

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

pub(super) fn measure(bench: &BenchmarkContext, scenario: &Scenario) -> Option<RoundFigures> {
    let (words, part) = words(scenario)?;
    let run = || -> Result<f64, MeasureError> {
        let folder = match part {
            Some(part) => {
                bench.fixture.path(part).map_err(|failure| MeasureError::Start(failure.to_string()))?
            }
            None => bench.fixture.dir().to_owned(),
        };
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(folder).stdin(Stdio::null());
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        let begun = Instant::now();
        let output =
            command.output().map_err(|error| MeasureError::Start(format!("{}: {error}", words[0])))?;
        let time = millis(begun.elapsed());
        match output.status.success() {
            true => Ok(time),
            false => {
                Err(MeasureError::Refused(crate::client::short(&String::from_utf8_lossy(&output.stderr))))
            }
        }
    };
    let all = || -> Result<RoundFigures, MeasureError> {
        let first = run()?;
        let mut times = vec![first];
        if first < 1000.0 {
            times.clear();
            let begun = Instant::now();
            while times.is_empty() || begun.elapsed() < bench.span {
                times.push(run()?);
            }
        }
        let mut found = RoundFigures::default();
        found.figures.extend(percentile(&times, 50.0).map(|p50| ("p50", p50)));
        if times.len() >= 100 {
            found.figures.extend(percentile(&times, 99.0).map(|p99| ("p99", p99)));
        }
        Ok(found)
    };
    Some(all().unwrap_or_else(RoundFigures::from))
}
