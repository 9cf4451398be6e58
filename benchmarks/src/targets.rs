//! The targets of `targets.toml`, compared with the measured figures.

use crate::BenchmarkError;
use crate::results::{BARE, RunResults};
use crate::scenarios::{ALL, MetricUnit, ScenarioMetric};
use crate::stats::median;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetsFile {
    target: Vec<PerformanceTarget>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PerformanceTarget {
    what: String,
    target: String,
    measure: Option<MeasuredFigure>,
    elsewhere: Option<OtherFigure>,
}

/// A figure of the run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MeasuredFigure {
    scenario: String,
    metric: String,
    #[serde(default = "ours")]
    server: String,
    at_most: Option<f64>,
    at_least: Option<f64>,
    /// At most so much more than without a server.
    over_bare: Option<f64>,
}

fn ours() -> String {
    "mcp-stdio".to_owned()
}

/// A figure of another program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OtherFigure {
    measured: String,
    met: Option<bool>,
    page: String,
}

/// A line of the table.
#[derive(Debug)]
pub(crate) struct TargetVerdict {
    pub(crate) what: String,
    pub(crate) target: String,
    pub(crate) measured: String,
    /// None where it was not measured.
    pub(crate) met: Option<bool>,
    pub(crate) other: String,
    pub(crate) how: String,
}

/// Each target and what became of it.
pub(crate) fn judge(results: &RunResults) -> Result<Vec<TargetVerdict>, BenchmarkError> {
    let file: TargetsFile = toml::from_str(include_str!("../targets.toml"))?;
    Ok(file.target.into_iter().map(|target| verdict(results, target)).collect())
}

fn verdict(results: &RunResults, target: PerformanceTarget) -> TargetVerdict {
    let PerformanceTarget { what, target, measure, elsewhere } = target;
    let mut verdict = TargetVerdict {
        what,
        target,
        measured: "—".to_owned(),
        met: None,
        other: String::new(),
        how: String::new(),
    };
    if let Some(measure) = measure {
        verdict.how = format!("`--only {}`", measure.scenario);
        verdict.fill(results, &measure);
    }
    if let Some(elsewhere) = elsewhere {
        verdict.measured = elsewhere.measured;
        verdict.met = elsewhere.met;
        verdict.how = format!("[{0}]({0})", elsewhere.page);
    }
    verdict
}

impl TargetVerdict {
    fn fill(&mut self, results: &RunResults, measure: &MeasuredFigure) {
        let Some(metric) = metric(measure) else { return };
        let Some(value) = results.median(&measure.scenario, &measure.server, &measure.metric) else { return };
        let shown =
            |value: f64| format!("{} {}", metric.unit.show(value), metric.unit.name()).trim().to_owned();
        self.measured = shown(value);
        let mut met = measure.at_most.is_none_or(|most| value <= most)
            && measure.at_least.is_none_or(|least| value >= least);
        if let Some(most) = measure.over_bare
            && let Some(more) = over_bare(results, measure)
        {
            self.measured = format!("{}, bare {}", shown(value), shown(value - more));
            met &= more <= most;
        }
        self.met = Some(met);
        let of = |name: &str| results.servers.iter().find(|server| server.name == name);
        let transport = of(&measure.server).map(|server| &server.transport);
        let others = results.servers.iter().filter(|server| {
            !["mcp-stdio", "mcp-http"].contains(&server.name.as_str()) && Some(&server.transport) == transport
        });
        let best = others
            .filter_map(|server| {
                let sound = results.cell(&measure.scenario, &server.name)?.problem.is_none();
                let value = results.median(&measure.scenario, &server.name, &measure.metric)?;
                sound.then_some((server.name.as_str(), value))
            })
            .min_by(|one, other| match metric.unit {
                MetricUnit::Rate => other.1.total_cmp(&one.1),
                _ => one.1.total_cmp(&other.1),
            });
        self.other = best.map(|(name, value)| format!("{}, {name}", shown(value))).unwrap_or_default();
    }
}

fn metric(measure: &MeasuredFigure) -> Option<&'static ScenarioMetric> {
    let scenario = ALL.iter().find(|scenario| scenario.id == measure.scenario)?;
    scenario.metrics.iter().find(|metric| metric.id == measure.metric)
}

/// By how much the server takes longer than the bare program, round by round.
fn over_bare(results: &RunResults, measure: &MeasuredFigure) -> Option<f64> {
    let of = |server: &str| results.cell(&measure.scenario, server)?.figures.get(&measure.metric);
    let (served, bare) = (of(&measure.server)?, of(BARE)?);
    let differences: Vec<f64> = served.iter().zip(bare).map(|(served, bare)| served - bare).collect();
    // What is shown adds up: the median of the one, and what it is over.
    median(&differences)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_measured_here_or_elsewhere() {
        let file: TargetsFile = toml::from_str(include_str!("../targets.toml")).unwrap();
        for target in file.target {
            match (&target.measure, &target.elsewhere) {
                (Some(of), None) => {
                    assert!(metric(of).is_some(), "{}: no such metric", target.what);
                    let bounds = [of.at_most, of.at_least, of.over_bare];
                    assert_eq!(bounds.iter().flatten().count(), 1, "{}", target.what);
                }
                (None, Some(elsewhere)) => {
                    let page = crate::home().join("../docs/benchmarks").join(&elsewhere.page);
                    assert!(page.is_file(), "{}: no page {}", target.what, elsewhere.page);
                }
                _ => panic!("{}: measured here, or elsewhere", target.what),
            }
        }
    }
}
