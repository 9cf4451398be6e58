//! Draws a flame graph as SVG. It loads nothing from elsewhere, and its one script is [`SCRIPT`], the same in each: names
//! come from the profiled program, are nothing but text, and the file may be opened in a browser.

use super::layout::FlameLayout;
use super::style::{FlameBarShade, FlameGraphTitle, ROOT_COLOUR, fit, percent};
use crate::trace::call_tree::{CallTree, ProfiledFunction};
use std::fmt::Write as _;

// All lengths are in pixels.
const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
/// The width of the whole profile.
const INNER_WIDTH: f64 = WIDTH - 2.0 * MARGIN;
/// The height of a row of bars.
const ROW: f64 = 18.0;
/// The height of the title, with room for the field of the script.
const HEAD: f64 = 88.0;
/// The width of a character of the 12 px monospace font.
const CHARACTER_WIDTH: f64 = 7.22;
/// The minimum width of a bar; narrower ones are left out.
const MIN_BAR_WIDTH: f64 = 0.2;

/// The script of every graph: it fits the graph to the window, zooms into a bar that is clicked, and finds functions. A
/// server that sends graphs allows it by its hash. Where it does not run, as in an `img`, the graph is whole and still.
pub const SCRIPT: &str = include_str!("interaction.js");

/// Draws the flame graph of `tree`. Callers are below their callees; a bar shows its function, location and share while
/// the pointer rests on it. `amount` formats a weight.
pub fn svg(tree: &CallTree, title: &FlameGraphTitle, amount: impl Fn(u64) -> String) -> String {
    let layout = FlameLayout::new(tree, INNER_WIDTH, MIN_BAR_WIDTH, usize::MAX);
    #[allow(clippy::cast_precision_loss, reason = "rows of a picture")]
    let height = HEAD + layout.rows as f64 * ROW + MARGIN;
    // Without `pointer-events: none` the text would hide the tooltip of its bar.
    let mut svg = format!(
        r##"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="12">
<style>rect:hover {{ stroke: #000; stroke-width: 1 }} text {{ pointer-events: none }}</style>
<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>
<text id="title" x="{MARGIN}" y="24" font-size="16">{}</text>
<text id="note" x="{MARGIN}" y="44" fill="#555555">{}</text>
"##,
        escape_xml(&title.title),
        escape_xml(&title.note),
    );
    for bar in &layout.bars {
        #[allow(clippy::cast_precision_loss, reason = "rows of a picture")]
        let top = height - MARGIN - (bar.row as f64 + 1.0) * ROW;
        let [red, green, blue] = bar.frame.map_or(ROOT_COLOUR, |frame| FlameBarShade::of(frame).colour());
        let name = bar.frame.map_or_else(|| "all".to_owned(), ProfiledFunction::label);
        let tooltip = bar.frame.map_or_else(|| "all".to_owned(), ProfiledFunction::to_text);
        let left = MARGIN + bar.left;
        let _ = writeln!(
            svg,
            r##"<g data-name="{}" data-start="{:.6}" data-share="{:.6}"><title>{}: {}, {}</title><rect x="{left:.2}" y="{top:.1}" width="{:.2}" height="{:.1}" fill="#{red:02x}{green:02x}{blue:02x}"/>{}</g>"##,
            escape_xml(&name),
            bar.left / INNER_WIDTH,
            bar.width / INNER_WIDTH,
            escape_xml(&tooltip),
            amount(bar.total),
            percent(bar.total, layout.total),
            // Half a pixel is the gap to the next bar.
            (bar.width - 0.5).max(0.1),
            ROW - 1.0,
            label(&name, left, top, bar.width),
        );
    }
    let _ = write!(svg, "<script>{SCRIPT}</script>\n</svg>\n");
    svg
}

/// Returns the text element with as much of the name as fits the bar.
fn label(name: &str, left: f64, top: f64, width: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a width in characters")]
    let max_chars = ((width - 6.0) / CHARACTER_WIDTH).max(0.0) as usize;
    let text = fit(name, max_chars);
    if text.is_empty() {
        return String::new();
    }
    format!(r#"<text x="{:.2}" y="{:.1}">{}</text>"#, left + 3.0, top + 12.5, escape_xml(&text))
}

/// Escapes `text` for XML. Frames hold no control characters, see [`ProfiledFunction::new`], but the title may.
fn escape_xml(text: &str) -> String {
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
