//! Results as tables and plots for people.

mod markdown;
mod svg;

use crate::BenchmarkError;
use crate::results::RunResults;
use crate::scenarios::{ALL, MetricUnit, ScenarioMetric};
use crate::targets;
use std::fs;
use std::path::Path;

/// Plots: scenario, metric, file.
const PLOTS: &[(&str, &str, &str)] = &[
    ("start", "ready", "start"),
    ("start", "rss", "memory"),
    ("start", "list", "list-bytes"),
    ("read", "p50", "read"),
    ("read_32", "rate", "read-32"),
    ("list", "p50", "list"),
    ("find", "p50", "find"),
    ("search", "p50", "search"),
    ("git_large", "p50", "git"),
    ("echo", "p50", "echo"),
    ("echo_32", "rate", "echo-32"),
];

/// Writes peers.md, targets.md and peers/*.svg into `to` from the peers.json of `from`.
pub(crate) fn write(from: &Path, to: &Path) -> Result<(), BenchmarkError> {
    let path = from.join("peers.json");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let results: RunResults =
        serde_json::from_str(&text).map_err(|error| format!("{} does not fit: {error}", path.display()))?;
    let plots = to.join("peers");
    fs::create_dir_all(&plots)?;
    let mut there = Vec::new();
    for (scenario, id, name) in PLOTS {
        let path = plots.join(format!("{name}.svg"));
        match metric(scenario, id).and_then(|metric| svg::bars(&results, scenario, metric)) {
            Some(drawn) => {
                fs::write(path, drawn)?;
                there.push((*name, title(scenario, id)));
            }
            // Not one of another run.
            None => drop(fs::remove_file(path)),
        }
    }
    fs::write(to.join("peers.md"), markdown::peers(&results, &there))?;
    fs::write(to.join("targets.md"), markdown::targets(&results, &targets::judge(&results)?))?;
    Ok(())
}

fn metric(scenario: &str, id: &str) -> Option<&'static ScenarioMetric> {
    let scenario = ALL.iter().find(|one| one.id == scenario)?;
    scenario.metrics.iter().find(|metric| metric.id == id)
}

/// Returns the title of a plot.
fn title(scenario: &str, id: &str) -> String {
    let of = ALL.iter().find(|one| one.id == scenario).map_or(scenario, |scenario| scenario.title);
    match (scenario, metric(scenario, id)) {
        ("start", Some(metric)) if id != "ready" => format!("{}, {}", metric.title, metric.unit.name()),
        (_, Some(metric)) => format!("{}, {}", of.replace('`', ""), metric.unit.name()),
        (_, None) => of.to_owned(),
    }
}

impl MetricUnit {
    /// Returns the name of the unit that stands behind a figure.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Millis => "ms",
            Self::Seconds => "s",
            Self::Megabytes => "MB",
            Self::Bytes => "bytes",
            Self::Rate => "calls/s",
            Self::Count => "",
        }
    }

    /// A figure with three digits that count, and no more than are known.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::Bytes | Self::Count | Self::Rate => grouped(value),
            Self::Millis | Self::Seconds | Self::Megabytes => digits(value),
        }
    }
}

/// Three digits that count, and at most three behind the point.
fn digits(value: f64) -> String {
    match value.abs() {
        large if large >= 999.5 => grouped(value),
        large if large >= 99.95 => format!("{value:.0}"),
        middle if middle >= 9.995 => format!("{value:.1}"),
        middle if middle >= 0.9995 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A whole number with a comma at each thousand.
fn grouped(value: f64) -> String {
    let plain = format!("{:.0}", value.abs());
    let mut shown = if value < -0.5 { "-".to_owned() } else { String::new() };
    for (place, digit) in plain.char_indices() {
        if place > 0 && (plain.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn results() -> RunResults {
        serde_json::from_str(include_str!("../../tests/results.json")).unwrap()
    }

    #[test]
    fn a_figure_has_three_digits_that_count() {
        for (value, shown) in [
            (0.12849, "0.128"),
            (1.2849, "1.28"),
            (9.996, "10.0"),
            (26.04, "26.0"),
            (131.6, "132"),
            (2045.4, "2,045"),
            (999.7, "1,000"),
        ] {
            assert_eq!(MetricUnit::Millis.show(value), shown);
        }
        assert_eq!(MetricUnit::Rate.show(1_234_567.4), "1,234,567");
        assert_eq!(MetricUnit::Count.show(0.0), "0");
    }

    #[test]
    fn the_page_of_a_run_shows_each_figure_what_is_lacking_and_what_went_wrong() {
        let plots = [("read", title("read", "p50"))];
        insta::assert_snapshot!(markdown::peers(&results(), &plots));
    }

    #[test]
    fn the_page_of_targets_says_what_was_measured_and_whether_it_is_met() {
        let results = results();
        insta::assert_snapshot!(markdown::targets(&results, &targets::judge(&results).unwrap()));
    }

    #[test]
    fn a_plot_has_a_bar_for_each_server_that_was_measured() {
        let drawn = svg::bars(&results(), "read", metric("read", "p50").unwrap()).unwrap();
        insta::assert_snapshot!(drawn);
        assert!(svg::bars(&results(), "search", metric("search", "p50").unwrap()).is_none());
    }

    #[test]
    fn results_of_a_run_are_written_as_pages_and_plots() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("peers.json"), include_str!("../../tests/results.json")).unwrap();
        write(folder.path(), folder.path()).unwrap();
        for name in ["peers.md", "targets.md", "peers/read.svg"] {
            assert!(folder.path().join(name).is_file(), "{name}");
        }
        assert!(!folder.path().join("peers/search.svg").exists());
        let failure = write(Path::new("/nowhere"), folder.path()).unwrap_err();
        assert!(failure.to_string().starts_with("/nowhere/peers.json: "), "{failure}");
    }
}
