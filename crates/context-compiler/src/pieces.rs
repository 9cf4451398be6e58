//! A text in pieces that can be left out one by one: between blocks of Markdown, hunks, paragraphs. Never in a
//! fence, a table, an item of a list or a character. A paragraph that is [`LARGE`] is cut at its lines, else between
//! sentences, else between words.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag};
use std::ops::Range;

/// A piece of a text. The pieces of a text follow each other without gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) range: Range<usize>,
    /// Those with smaller ranks are kept first; those of one rank in their order. Never kept where there is none.
    pub(crate) rank: Option<Rank>,
}

/// How early a piece is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) class: Class,
    /// Smaller is earlier.
    pub(crate) within: usize,
}

/// First what says what the text is; last what is over, or would keep everything behind it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    First,
    Usual,
    /// Larger than [`LARGE`].
    Large,
    /// About a phase that is over.
    Over,
}

/// Bytes above which a piece waits for smaller ones.
pub(crate) const LARGE: usize = 6_000;
/// Bytes at most of a part of what is [`LARGE`] and has no blocks.
const PART: usize = 2_000;
/// Lines of a piece of plain text.
const PLAIN_LINES: usize = 20;

impl Rank {
    pub(crate) fn new(class: Class, within: usize) -> Self {
        Self { class, within }
    }
}

/// A block of Markdown at the top level, or an item of a list there.
struct Block {
    start: usize,
    heading: Option<usize>,
    metadata: bool,
    /// It can be cut within.
    paragraph: bool,
}

/// The blocks of `text`, by a parser: a line that begins with `#` may well be in a fence.
fn blocks(text: &str) -> Vec<Block> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    let mut blocks: Vec<Block> = Vec::new();
    let mut depth = 0_usize;
    let mut in_list = false;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        let block = match &event {
            Event::Start(Tag::List(_)) if depth == 0 => {
                in_list = true;
                None
            }
            Event::Start(Tag::Item) if depth == 1 && in_list => Some((None, false)),
            Event::Start(Tag::Heading { level, .. }) if depth == 0 => Some((Some(number(*level)), false)),
            Event::Start(Tag::MetadataBlock(_)) if depth == 0 => Some((None, true)),
            Event::Start(_) if depth == 0 => {
                in_list = false;
                Some((None, false))
            }
            Event::End(_) => None,
            _ if depth == 0 => Some((None, false)),
            _ => None,
        };
        match &event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let Some((heading, metadata)) = block {
            let before = text.get(..range.start).unwrap_or_default();
            let start = before.rfind('\n').map_or(0, |newline| newline + 1);
            if blocks.last().is_none_or(|last| last.start < start) {
                let paragraph = matches!(event, Event::Start(Tag::Paragraph));
                blocks.push(Block { start, heading, metadata, paragraph });
            }
        }
    }
    blocks
}

fn number(level: HeadingLevel) -> usize {
    level as usize
}

/// Markdown in pieces. What is over is ranked last where `completed` is true, and else never kept.
pub(crate) fn markdown(text: &str, completed: bool) -> Vec<Piece> {
    let blocks = blocks(text);
    let over = completed_phases(text);
    let mut pieces: Vec<Piece> = Vec::with_capacity(blocks.len());
    // The opening: front matter, the title and what follows it.
    let mut opening = true;
    let mut depth = 1;
    let mut over_below: Option<usize> = None;
    for (index, block) in blocks.iter().enumerate() {
        let start = if index == 0 { 0 } else { block.start };
        let end = blocks.get(index + 1).map_or(text.len(), |next| next.start);
        let words = text.get(start..end).unwrap_or_default();
        if let Some(level) = block.heading {
            depth = level;
            if over_below.is_some_and(|above| level <= above) {
                over_below = None;
            }
            let heading = words.lines().next().unwrap_or_default();
            if over_below.is_none() && phase_of(heading).is_some_and(|phase| over.contains(&phase)) {
                over_below = Some(level);
            }
        }
        let first = opening && (block.metadata || block.heading.is_none_or(|level| level == 1));
        if opening && !block.metadata && block.heading.is_none() || !first {
            opening = false;
        }
        let class = match over_below {
            Some(_) => Class::Over,
            None if words.len() > LARGE => Class::Large,
            None if first => Class::First,
            None => Class::Usual,
        };
        let rank = (completed || class != Class::Over).then(|| Rank::new(class, depth));
        if block.paragraph && words.len() > LARGE {
            let parts = parts(words).into_iter();
            pieces.extend(parts.map(|part| Piece { range: start + part.start..start + part.end, rank }));
        } else {
            pieces.push(Piece { range: start..end, rank });
        }
    }
    if pieces.is_empty() && !text.is_empty() {
        pieces.push(Piece { range: 0..text.len(), rank: Some(Rank::new(Class::First, 0)) });
    }
    pieces
}

/// Plain text in pieces: paragraphs, the long ones in parts.
pub(crate) fn plain(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut start, mut end, mut lines, mut blank) = (0, 0, 0, false);
    let mut push = |range: Range<usize>| {
        if range.len() <= LARGE {
            pieces.push(Piece { range, rank: Some(Rank::new(Class::Usual, 0)) });
            return;
        }
        let rank = Some(Rank::new(Class::Large, 0));
        let parts = parts(text.get(range.clone()).unwrap_or_default()).into_iter();
        pieces.extend(
            parts.map(|part| Piece { range: range.start + part.start..range.start + part.end, rank }),
        );
    };
    for line in text.split_inclusive('\n') {
        let is_blank = line.trim().is_empty();
        if lines == PLAIN_LINES || (blank && !is_blank) {
            push(start..end);
            (start, lines) = (end, 0);
        }
        end += line.len();
        lines += 1;
        blank = is_blank;
    }
    if end > start {
        push(start..end);
    }
    pieces
}

/// `text` in parts of at most [`PART`] bytes.
fn parts(text: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let mut end = text.len().min(start + PART);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        if end < text.len() {
            let window = text.get(start..end).unwrap_or_default();
            let sentence =
                [". ", "! ", "? "].iter().filter_map(|end| window.rfind(end)).max().map(|at| at + 2);
            let cut = window.rfind('\n').or_else(|| window.rfind(' ').filter(|_| sentence.is_none()));
            end = cut.map(|at| at + 1).or(sentence).map_or(end, |cut| start + cut);
        }
        parts.push(start..end);
        start = end;
    }
    parts
}

/// The number of the phase that a heading, a cell or an item is about: `Phase 3: x`, `3. x`, `3`.
fn phase_of(text: &str) -> Option<u32> {
    let text = text.trim_start_matches(['#', '*', '_', '[', ' ']);
    let text = match text.get(..5) {
        Some(word) if word.eq_ignore_ascii_case("phase") => text.get(5..)?.trim_start(),
        _ => text,
    };
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = text.split_at_checked(digits)?;
    // Phase 3.1 is another one.
    let decimal = rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if decimal || rest.starts_with(char::is_alphanumeric) { None } else { number.parse().ok() }
}

/// The phases that `text` says are over: rows of a table with a cell "Complete", and ticked items.
fn completed_phases(text: &str) -> Vec<u32> {
    let is_over = |cell: &str| {
        let cell = cell.trim_matches(|c: char| !c.is_ascii_alphabetic());
        ["complete", "completed", "done"].iter().any(|word| cell.eq_ignore_ascii_case(word))
    };
    let mut over = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some(row) = line.strip_prefix('|') {
            if row.split('|').skip(1).any(is_over) {
                over.extend(row.split('|').next().and_then(phase_of));
            }
        } else if let Some(item) =
            ["- [x] ", "- [X] ", "* [x] ", "* [X] "].iter().find_map(|mark| line.strip_prefix(mark))
            && item.trim_start_matches(['*', '_']).get(..5).is_some_and(|w| w.eq_ignore_ascii_case("phase"))
        {
            over.extend(phase_of(item));
        }
    }
    over
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts<'a>(text: &'a str, pieces: &[Piece]) -> Vec<(&'a str, Option<(Class, usize)>)> {
        let rank = |piece: &Piece| piece.rank.map(|rank| (rank.class, rank.within));
        pieces.iter().map(|piece| (&text[piece.range.clone()], rank(piece))).collect()
    }

    #[test]
    fn markdown_is_cut_between_blocks_and_items_and_not_at_a_hash_in_a_fence() {
        let text = "---\na: 1\n---\n# T\n\nIntro.\n\n```sh\n# no heading\n\nx\n```\n\n## B\n- one\n  more\n- two\n\n\
                    | a |\n|---|\n| b |\n\nSetext\n---\nend\n";
        let expected = [
            ("---\na: 1\n---\n", Some((Class::First, 1))),
            ("# T\n\n", Some((Class::First, 1))),
            ("Intro.\n\n", Some((Class::First, 1))),
            ("```sh\n# no heading\n\nx\n```\n\n", Some((Class::Usual, 1))),
            ("## B\n", Some((Class::Usual, 2))),
            ("- one\n  more\n", Some((Class::Usual, 2))),
            ("- two\n\n", Some((Class::Usual, 2))),
            ("| a |\n|---|\n| b |\n\n", Some((Class::Usual, 2))),
            ("Setext\n---\n", Some((Class::Usual, 2))),
            ("end\n", Some((Class::Usual, 2))),
        ];
        assert_eq!(texts(text, &markdown(text, true)), expected);
    }

    #[test]
    fn sections_of_completed_phases_come_last_or_not_at_all() {
        let text = "# Map\n\n| Phase | State |\n|---|---|\n| 1. Core | Complete |\n| 2. Tools | In progress |\n\n\
                    - [x] **Phase 3: Done**\n\n## Phase 1: Core\n\na\n\n### Detail\n\n## Phase 2: Tools\n\n## Phase 3\n";
        let over: Vec<_> = markdown(text, true)
            .into_iter()
            .filter(|piece| piece.rank.unwrap().class == Class::Over)
            .map(|piece| text[piece.range].trim().to_owned())
            .collect();
        assert_eq!(over, ["## Phase 1: Core", "a", "### Detail", "## Phase 3"]);
        assert_eq!(markdown(text, false).iter().filter(|piece| piece.rank.is_none()).count(), 4);
    }

    #[test]
    fn plain_text_is_cut_between_paragraphs_and_long_ones_between_lines() {
        let text = format!("a\nb\n\nc\n\n\n{}", "x\n".repeat(25));
        let lengths: Vec<_> = plain(&text).iter().map(|piece| piece.range.len()).collect();
        assert_eq!(lengths, [5, 4, 40, 10]);
    }

    #[test]
    fn a_large_paragraph_is_cut_at_lines_else_between_sentences_else_words_and_never_in_a_character() {
        for (unit, end) in
            [("a line. of words\n", "\n"), ("A word. Is here. ", ". "), ("word ", " "), ("\u{e9}", "")]
        {
            let text = format!("{}\n", unit.repeat(20_000 / unit.len()).trim_end());
            for pieces in [markdown(&text, true), plain(&text)] {
                assert!(pieces.len() > 8 && pieces.iter().all(|piece| piece.range.len() <= PART));
                let cut = &pieces[..pieces.len() - 1];
                assert!(cut.iter().all(|piece| text[piece.range.clone()].ends_with(end)), "{unit}");
                assert_eq!(pieces.iter().map(|piece| &text[piece.range.clone()]).collect::<String>(), text);
            }
        }
    }

    proptest! {
        #[test]
        fn pieces_are_the_whole_text_in_order(text in "([#>\\-`|*a1. \n~\t]|Phase |```\n|---\n|\u{e9}){0,60}") {
            for pieces in [markdown(&text, true), plain(&text)] {
                let whole: String = pieces.iter().map(|piece| &text[piece.range.clone()]).collect();
                prop_assert_eq!(&whole, &text);
            }
        }
    }
}
