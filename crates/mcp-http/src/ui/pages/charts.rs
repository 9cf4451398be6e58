//! Small charts, as SVG in the page. They need no script and no style of their own: what they show is said in their label as
//! well.

use maud::{Markup, html};

/// A chart of values over time.
pub(super) struct TimeChart<'a> {
    pub(super) title: &'a str,
    /// The value now, in words.
    pub(super) now: String,
    /// The largest value, in words.
    pub(super) peak: String,
    pub(super) lines: Vec<ChartLine<'a>>,
    /// The span of time, such as `hour`.
    pub(super) span: &'static str,
}

/// One line of a chart.
pub(super) struct ChartLine<'a> {
    /// The name in the legend, where there are several.
    pub(super) name: &'a str,
    /// The values, the oldest first; `None` where nothing is known.
    pub(super) values: Vec<Option<f64>>,
}

/// The size of a chart in its own units. It is stretched to the width that there is.
const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 60.0;

impl TimeChart<'_> {
    /// Renders the chart.
    pub(super) fn render(&self) -> Markup {
        let max = largest(self.lines.iter().flat_map(|line| &line.values));
        let label = format!("{}, last {}: {} now, at most {}", self.title, self.span, self.now, self.peak);
        html! {
            figure class="chart" {
                figcaption {
                    span class="chart-title" { (self.title) }
                    span class="chart-now" { (self.now) }
                    span class="faint" { "at most " (self.peak) }
                }
                svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(label) {
                    @for (index, line) in self.lines.iter().enumerate() {
                        (paths(&line.values, max, index))
                    }
                    path class="axis" d={ "M0 " (HEIGHT) "H" (WIDTH) } {}
                }
                div class="chart-foot faint" aria-hidden="true" {
                    span { "1 " (self.span) " ago" }
                    @if self.lines.len() > 1 {
                        span {
                            @for (index, line) in self.lines.iter().enumerate() {
                                span class={ "key key-" (index) } { (line.name) }
                            }
                        }
                    }
                    span { "now" }
                }
            }
        }
    }
}

/// Renders a line of values without a frame, for a row of a table.
pub(super) fn sparkline(label: &str, values: &[f64]) -> Markup {
    let max = values.iter().copied().fold(0.0, f64::max);
    let values: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
    html! {
        svg class="spark" viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(label) {
            @if max > 0.0 { (paths(&values, max, 0)) }
            path class="axis" d={ "M0 " (HEIGHT) "H" (WIDTH) } {}
        }
    }
}

/// Renders a bar of which the share `used`, from 0 to 1, is filled.
pub(super) fn meter(used: f64) -> Markup {
    let used = used.clamp(0.0, 1.0);
    let class = match used {
        _ if used > 0.9 => "full",
        _ if used > 0.75 => "nearly",
        _ => "free",
    };
    html! {
        svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect class="meter-ground" width="100" height="8" {}
            rect class={ "meter-" (class) } width={ (format!("{:.1}", used * 100.0)) } height="8" {}
        }
    }
}

fn largest<'a>(values: impl Iterator<Item = &'a Option<f64>>) -> f64 {
    let largest = values.flatten().copied().fold(0.0, f64::max);
    if largest > 0.0 { largest } else { 1.0 }
}

/// Renders the line and the area of one line. Where a value is missing there is a gap.
fn paths(values: &[Option<f64>], max: f64, index: usize) -> Markup {
    let (line, area) = path_data(values, max);
    html! {
        @if index == 0 { path class={ "area area-" (index) } d=(area) {} }
        path class={ "line line-" (index) } d=(line) {}
    }
}

/// Returns the data of the paths of a line and of its area.
fn path_data(values: &[Option<f64>], max: f64) -> (String, String) {
    let steps = u32::try_from(values.len().saturating_sub(1).max(1)).unwrap_or(u32::MAX);
    let x = |index: usize| f64::from(u32::try_from(index).unwrap_or(u32::MAX)) * WIDTH / f64::from(steps);
    // The line is two units wide, and the largest value should not be cut.
    let y = |value: f64| HEIGHT - (value / max).clamp(0.0, 1.0) * (HEIGHT - 2.0);
    let (mut line, mut area) = (String::new(), String::new());
    let mut index = 0;
    for run in values.split(Option::is_none) {
        let points = run.iter().flatten().enumerate().map(|(offset, value)| (x(index + offset), y(*value)));
        let points: Vec<String> = points.map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        if !points.is_empty() {
            let last = index + points.len() - 1;
            // A single value is a dot.
            let end = if points.len() == 1 { "h0.1" } else { "" };
            line.push_str(&format!("M{}{end}", points.join("L")));
            area.push_str(&format!(
                "M{:.1} {HEIGHT}L{}L{:.1} {HEIGHT}Z",
                x(index),
                points.join("L"),
                x(last)
            ));
        }
        // The missing value that ended the run has a place as well.
        index += run.len() + 1;
    }
    (line, area)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_value_is_at_the_top_and_a_missing_one_leaves_a_gap() {
        let (line, area) = path_data(&[Some(0.0), Some(5.0), None, Some(10.0), Some(0.0)], 10.0);
        assert_eq!(line, "M0.0 60.0L60.0 31.0M180.0 2.0L240.0 60.0");
        assert_eq!(area, "M0.0 60L0.0 60.0L60.0 31.0L60.0 60ZM180.0 60L180.0 2.0L240.0 60.0L240.0 60Z");
        assert_eq!(path_data(&[None, Some(1.0)], 1.0).0, "M240.0 2.0h0.1");
        assert_eq!(path_data(&[], 1.0), (String::new(), String::new()));
    }

    #[test]
    fn a_chart_says_what_it_shows() {
        let line = |name| ChartLine { name, values: vec![Some(1.0), Some(2.0)] };
        let chart = TimeChart {
            title: "Calls per second",
            now: "2".to_owned(),
            peak: "3".to_owned(),
            lines: vec![line("<a>"), line("b")],
            span: "hour",
        };
        let html = chart.render().into_string();
        assert!(html.contains("aria-label=\"Calls per second, last hour: 2 now, at most 3\""), "{html}");
        assert!(html.contains("&lt;a&gt;") && html.contains("line-1"), "{html}");
    }
}
