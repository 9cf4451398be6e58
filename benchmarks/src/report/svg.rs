//! Bars, as SVG that reads on light and on dark ground.

use super::title;
use crate::results::{BARE, RunResults};
use crate::scenarios::{MetricUnit, ScenarioMetric};
use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const NAMES: f64 = 160.0;
const FIGURES: f64 = 90.0;
const ROW: f64 = 24.0;
const TOP: f64 = 36.0;

/// Follows the reader's colour scheme, and is legible without.
const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#57606a}.t{font-weight:600}.v{font-variant-numeric:tabular-nums}\
.o{fill:#1f77b4}.p{fill:#8c959f}.b{fill:#b08800}line{stroke:#8c959f;stroke-opacity:.35}\
@media(prefers-color-scheme:dark){text{fill:#adbac7}.o{fill:#58a6ff}.p{fill:#768390}.b{fill:#d4a72c}}";

/// A bar for each server with a figure, on a logarithmic scale. None where fewer than two have one.
pub(super) fn bars(results: &RunResults, scenario: &str, metric: &ScenarioMetric) -> Option<String> {
    let names = std::iter::once(BARE).chain(results.servers.iter().map(|server| server.name.as_str()));
    let mut rows: Vec<(&str, f64)> = names
        .filter_map(|name| Some((name, results.median(scenario, name, metric.id)?)))
        .filter(|(_, value)| *value > 0.0)
        .collect();
    if rows.len() < 2 {
        return None;
    }
    rows.sort_by(|one, other| one.1.total_cmp(&other.1));
    if metric.unit == MetricUnit::Rate {
        rows.reverse();
    }
    let least = rows.iter().map(|row| row.1).fold(f64::INFINITY, f64::min);
    let greatest = rows.iter().map(|row| row.1).fold(0.0, f64::max);
    // A bar begins a decade below the one that holds the least, so that also the least can be seen.
    let (low, high) = (least.log10().floor() - 0.5, greatest.log10());
    let room = WIDTH - NAMES - FIGURES;
    let length = |value: f64| room * (value.log10() - low) / (high - low);
    let height = ROW.mul_add(rows.len() as f64, TOP + 8.0);
    let mut drawn = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\"><title>{0}</title><style>{STYLE}</style>\n<text class=\"t\" x=\"0\" y=\"16\">{0}</text>\n",
        escape(&title(scenario, metric.id)),
    );
    let mut decade = low.ceil();
    while decade <= high {
        let at = NAMES + length(10_f64.powf(decade));
        let _ = writeln!(drawn, "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{}\" y2=\"{height}\"/>", TOP - 6.0);
        let _ = writeln!(
            drawn,
            "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            TOP - 8.0,
            decade_name(10_f64.powf(decade)),
        );
        decade += 1.0;
    }
    for (place, (name, value)) in rows.iter().enumerate() {
        let top = ROW.mul_add(place as f64, TOP);
        let class = match *name {
            BARE => "b",
            "mcp-stdio" | "mcp-http" => "o",
            _ => "p",
        };
        let length = length(*value);
        let _ = writeln!(
            drawn,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect class=\"{class}\" x=\"{NAMES}\" y=\"{}\" \
             width=\"{length:.1}\" height=\"{}\" rx=\"2\"/><text class=\"v\" x=\"{:.1}\" y=\"{}\">{}</text>",
            NAMES - 8.0,
            top + 16.0,
            escape(name),
            top + 3.0,
            ROW - 6.0,
            NAMES + length + 6.0,
            top + 16.0,
            metric.unit.show(*value),
        );
    }
    drawn.push_str("</svg>\n");
    Some(drawn)
}

fn decade_name(value: f64) -> String {
    if value >= 1.0 { super::grouped(value) } else { format!("{value}") }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
