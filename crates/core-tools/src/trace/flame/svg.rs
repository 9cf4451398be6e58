//! A flame graph as SVG: no scripts, nothing loaded from elsewhere.

use super::layout::Layout;
use super::{ROOT, Title, colour, percent, shade};
use crate::trace::calls::CallTree;
use std::fmt::Write as _;

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: f64 = 18.0;
const HEAD: f64 = 58.0;
/// The width of a character of the 12 px monospace font.
const CHARACTER: f64 = 7.22;
/// A narrower bar is left out, in pixels.
const NARROWEST: f64 = 0.2;

/// The flame graph of `tree`. Callers stand below what they call; each bar tells function, place and share where
/// the pointer rests on it. `amount` writes what was spent.
pub fn svg(tree: &CallTree, title: &Title, amount: impl Fn(u64) -> String) -> String {
    let layout = Layout::new(tree, WIDTH - 2.0 * MARGIN, NARROWEST, usize::MAX);
    #[allow(clippy::cast_precision_loss, reason = "rows of a picture")]
    let height = HEAD + layout.rows as f64 * ROW + MARGIN;
    let mut svg = format!(
        r##"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="12">
<style>rect:hover {{ stroke: #000; stroke-width: 1 }} text {{ pointer-events: none }}</style>
<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>
<text x="{MARGIN}" y="24" font-size="16">{}</text>
<text x="{MARGIN}" y="44" fill="#555555">{}</text>
"##,
        escaped(&title.title),
        escaped(&title.note),
    );
    for bar in &layout.bars {
        #[allow(clippy::cast_precision_loss, reason = "rows of a picture")]
        let top = height - MARGIN - (bar.row as f64 + 1.0) * ROW;
        let [red, green, blue] = bar.frame.map_or(ROOT, |frame| colour(shade(frame)));
        let name = bar.frame.map_or_else(|| "all".to_owned(), crate::trace::Frame::label);
        let told = bar.frame.map_or_else(|| "all".to_owned(), crate::trace::Frame::to_text);
        let left = MARGIN + bar.left;
        let _ = writeln!(
            svg,
            r##"<g><title>{}: {}, {}</title><rect x="{left:.2}" y="{top:.1}" width="{:.2}" height="{:.1}" fill="#{red:02x}{green:02x}{blue:02x}"/>{}</g>"##,
            escaped(&told),
            amount(bar.total),
            percent(bar.total, layout.total),
            (bar.width - 0.5).max(0.1),
            ROW - 1.0,
            label(&name, left, top, bar.width),
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The name, as much as fits.
fn label(name: &str, left: f64, top: f64, width: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a width in characters")]
    let room = ((width - 6.0) / CHARACTER).max(0.0) as usize;
    let shown = fit(name, room);
    if shown.is_empty() {
        return String::new();
    }
    format!(r#"<text x="{:.2}" y="{:.1}">{}</text>"#, left + 3.0, top + 12.5, escaped(&shown))
}

/// As much of `name` as `room` characters hold; nothing if that tells nothing.
pub(super) fn fit(name: &str, room: usize) -> String {
    if name.chars().count() <= room {
        return name.to_owned();
    }
    if room < 3 {
        return String::new();
    }
    name.chars().take(room - 2).chain("..".chars()).collect()
}

/// `text` as XML has it. Names hold no control characters: see [`Frame::new`](crate::trace::Frame::new).
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            control if control.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}
