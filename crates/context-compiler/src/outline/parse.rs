//! Parsing within bounds that do not depend on the speed of the machine.

use super::language::Language;
use std::ops::ControlFlow;
use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

/// The longest text that is parsed. A longer one is generated code, and parsing it takes seconds.
pub(super) const MAX_TEXT_BYTES: usize = 1 << 20;
/// Nested definitions that are looked into. Each level costs stack, and generated code can nest without end.
pub(super) const MAX_DEPTH: usize = 48;

/// Parses `text`. The number of steps is limited instead of the time, so that the result does not depend on the speed of
/// the machine.
pub(super) fn parse(language: Language, text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&language.grammar()).ok()?;
    // The parser calls back every hundred steps; a sensible text takes about one step per byte.
    let mut remaining_calls = 1000 + text.len() / 4;
    let mut progress = |_: &ParseState| {
        remaining_calls = remaining_calls.saturating_sub(1);
        if remaining_calls == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let bytes = text.as_bytes();
    let mut read = |offset: usize, _| bytes.get(offset..).unwrap_or_default();
    parser.parse_with_options(&mut read, None, Some(ParseOptions::new().progress_callback(&mut progress)))
}
