//! Division of a text into pieces that can be left out one by one.
//!
//! A text is cut between blocks of Markdown, hunks and paragraphs, and never inside a fence, a table, a list item or a
//! character. A paragraph of more than [`LARGE_PIECE_BYTES`] is cut at its lines, else between sentences, else between
//! words.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag};
use std::ops::Range;

/// A piece of a text. The pieces of a text follow each other without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextPiece {
    pub(crate) range: Range<usize>,
    /// Pieces with a smaller rank are kept first, pieces of one rank in the order of the text. A piece without a rank is
    /// never kept.
    pub(crate) rank: Option<TextPieceRank>,
}

/// The order in which pieces are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TextPieceRank {
    pub(crate) class: TextPieceClass,
    /// The order within the class: smaller is earlier.
    pub(crate) order_in_class: usize,
}

/// The main order in which pieces are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TextPieceClass {
    /// The pieces that tell what the text is about: front matter, title, introduction, statistics.
    Opening,
    /// A piece about the phase that was asked for.
    AskedPhase,
    Normal,
    /// A piece of more than [`LARGE_PIECE_BYTES`], which would keep out everything after it.
    Large,
    /// A piece about a phase that is completed.
    Completed,
}

/// Bytes above which a piece is kept after smaller ones.
pub(crate) const LARGE_PIECE_BYTES: usize = 6_000;
/// The most bytes of a part of a large paragraph.
const MAX_PART_BYTES: usize = 2_000;
/// The most lines of a piece of plain text.
const MAX_PLAIN_LINES: usize = 20;

impl TextPieceRank {
    pub(crate) fn new(class: TextPieceClass, order_in_class: usize) -> Self {
        Self { class, order_in_class }
    }
}

/// A top-level block of Markdown, or an item of a top-level list.
struct MarkdownBlock {
    start: usize,
    heading: Option<usize>,
    metadata: bool,
    /// True for a paragraph, which can be cut inside.
    paragraph: bool,
}

/// Returns the blocks of `text`. It takes a parser, because a line that begins with `#` may be inside a fence.
fn blocks(text: &str) -> Vec<MarkdownBlock> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    let mut blocks: Vec<MarkdownBlock> = Vec::new();
    let mut depth = 0_usize;
    let mut in_list = false;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        let block = match &event {
            // Its items are blocks of their own, so that a long list can be cut between them.
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
            // The parser leaves out the indentation of a block; a piece begins with its line.
            let before = text.get(..range.start).unwrap_or_default();
            let start = before.rfind('\n').map_or(0, |newline| newline + 1);
            if blocks.last().is_none_or(|last| last.start < start) {
                let paragraph = matches!(event, Event::Start(Tag::Paragraph));
                blocks.push(MarkdownBlock { start, heading, metadata, paragraph });
            }
        }
    }
    blocks
}

fn number(level: HeadingLevel) -> usize {
    level as usize
}

/// Divides Markdown into pieces. Sections of completed phases are ranked last if `keep_completed` is true, and never kept
/// otherwise. Sections of `asked_phase` are kept before all others, whether it is completed or not.
pub(crate) fn split_markdown(text: &str, keep_completed: bool, asked_phase: Option<u32>) -> Vec<TextPiece> {
    let blocks = blocks(text);
    let completed = completed_phases(text);
    let mut pieces: Vec<TextPiece> = Vec::with_capacity(blocks.len());
    // The opening is the front matter, the title and the block after it.
    let mut opening = true;
    let mut depth = 1;
    // The level of the heading of a completed phase, while the blocks below it last.
    let mut completed_heading: Option<usize> = None;
    // The same for the phase that was asked for.
    let mut asked_heading: Option<usize> = None;
    for (index, block) in blocks.iter().enumerate() {
        let start = if index == 0 { 0 } else { block.start };
        let end = blocks.get(index + 1).map_or(text.len(), |next| next.start);
        let block_text = text.get(start..end).unwrap_or_default();
        if let Some(level) = block.heading {
            depth = level;
            if completed_heading.is_some_and(|above| level <= above) {
                completed_heading = None;
            }
            if asked_heading.is_some_and(|above| level <= above) {
                asked_heading = None;
            }
            let heading = block_text.lines().next().unwrap_or_default();
            if asked_heading.is_none() && asked_phase.is_some() && phase_number(heading) == asked_phase {
                asked_heading = Some(level);
            }
            if completed_heading.is_none()
                && phase_number(heading).is_some_and(|phase| completed.contains(&phase))
            {
                completed_heading = Some(level);
            }
        }
        let first = opening && (block.metadata || block.heading.is_none_or(|level| level == 1));
        if opening && !block.metadata && block.heading.is_none() || !first {
            opening = false;
        }
        let class = match completed_heading {
            _ if asked_heading.is_some() => TextPieceClass::AskedPhase,
            Some(_) => TextPieceClass::Completed,
            None if block_text.len() > LARGE_PIECE_BYTES => TextPieceClass::Large,
            None if first => TextPieceClass::Opening,
            None => TextPieceClass::Normal,
        };
        let rank =
            (keep_completed || class != TextPieceClass::Completed).then(|| TextPieceRank::new(class, depth));
        if block.paragraph && block_text.len() > LARGE_PIECE_BYTES {
            let parts = split_paragraph(block_text).into_iter();
            pieces.extend(parts.map(|part| TextPiece { range: start + part.start..start + part.end, rank }));
        } else {
            pieces.push(TextPiece { range: start..end, rank });
        }
    }
    if pieces.is_empty() && !text.is_empty() {
        pieces.push(TextPiece {
            range: 0..text.len(),
            rank: Some(TextPieceRank::new(TextPieceClass::Opening, 0)),
        });
    }
    pieces
}

/// Divides plain text into pieces: paragraphs, of which long ones are divided further.
pub(crate) fn split_plain_text(text: &str) -> Vec<TextPiece> {
    let mut pieces = Vec::new();
    let (mut start, mut end, mut lines, mut blank) = (0, 0, 0, false);
    let mut push = |range: Range<usize>| {
        if range.len() <= LARGE_PIECE_BYTES {
            pieces.push(TextPiece { range, rank: Some(TextPieceRank::new(TextPieceClass::Normal, 0)) });
            return;
        }
        let rank = Some(TextPieceRank::new(TextPieceClass::Large, 0));
        let parts = split_paragraph(text.get(range.clone()).unwrap_or_default()).into_iter();
        pieces.extend(
            parts.map(|part| TextPiece { range: range.start + part.start..range.start + part.end, rank }),
        );
    };
    for line in text.split_inclusive('\n') {
        let is_blank = line.trim().is_empty();
        if lines == MAX_PLAIN_LINES || (blank && !is_blank) {
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

/// Divides `text` into parts of at most [`MAX_PART_BYTES`] bytes.
fn split_paragraph(text: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let mut end = text.len().min(start + MAX_PART_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        if end < text.len() {
            let window = text.get(start..end).unwrap_or_default();
            let sentence =
                [". ", "! ", "? "].iter().filter_map(|end| window.rfind(end)).max().map(|offset| offset + 2);
            let cut = window.rfind('\n').or_else(|| window.rfind(' ').filter(|_| sentence.is_none()));
            end = cut.map(|offset| offset + 1).or(sentence).map_or(end, |cut| start + cut);
        }
        parts.push(start..end);
        start = end;
    }
    parts
}

/// Returns the number of the phase that a heading, a table cell or a list item is about: `Phase 3: x`, `3. x`, `3`.
fn phase_number(text: &str) -> Option<u32> {
    let text = text.trim_start_matches(['#', '*', '_', '[', ' ']);
    let text = match text.get(..5) {
        Some(word) if word.eq_ignore_ascii_case("phase") => text.get(5..)?.trim_start(),
        _ => text,
    };
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = text.split_at_checked(digits)?;
    // `3.1` names a phase that was inserted later, not phase 3.
    let decimal = rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if decimal || rest.starts_with(char::is_alphanumeric) { None } else { number.parse().ok() }
}

/// Returns the phases that `text` marks as completed: by a table row with a cell "Complete", or by a ticked list item.
fn completed_phases(text: &str) -> Vec<u32> {
    let is_completed = |cell: &str| {
        let cell = cell.trim_matches(|c: char| !c.is_ascii_alphabetic());
        ["complete", "completed", "done"].iter().any(|word| cell.eq_ignore_ascii_case(word))
    };
    let mut completed = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some(row) = line.strip_prefix('|') {
            if row.split('|').skip(1).any(is_completed) {
                completed.extend(row.split('|').next().and_then(phase_number));
            }
        } else if let Some(item) =
            ["- [x] ", "- [X] ", "* [x] ", "* [X] "].iter().find_map(|mark| line.strip_prefix(mark))
            && item.trim_start_matches(['*', '_']).get(..5).is_some_and(|w| w.eq_ignore_ascii_case("phase"))
        {
            completed.extend(phase_number(item));
        }
    }
    completed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts<'a>(text: &'a str, pieces: &[TextPiece]) -> Vec<(&'a str, Option<(TextPieceClass, usize)>)> {
        let rank = |piece: &TextPiece| piece.rank.map(|rank| (rank.class, rank.order_in_class));
        pieces.iter().map(|piece| (&text[piece.range.clone()], rank(piece))).collect()
    }

    #[test]
    fn markdown_is_cut_between_blocks_and_items_and_not_at_a_hash_in_a_fence() {
        let text = "---\na: 1\n---\n# T\n\nIntro.\n\n```sh\n# no heading\n\nx\n```\n\n## B\n- one\n  more\n- two\n\n\
                    | a |\n|---|\n| b |\n\nSetext\n---\nend\n";
        let expected = [
            ("---\na: 1\n---\n", Some((TextPieceClass::Opening, 1))),
            ("# T\n\n", Some((TextPieceClass::Opening, 1))),
            ("Intro.\n\n", Some((TextPieceClass::Opening, 1))),
            ("```sh\n# no heading\n\nx\n```\n\n", Some((TextPieceClass::Normal, 1))),
            ("## B\n", Some((TextPieceClass::Normal, 2))),
            ("- one\n  more\n", Some((TextPieceClass::Normal, 2))),
            ("- two\n\n", Some((TextPieceClass::Normal, 2))),
            ("| a |\n|---|\n| b |\n\n", Some((TextPieceClass::Normal, 2))),
            ("Setext\n---\n", Some((TextPieceClass::Normal, 2))),
            ("end\n", Some((TextPieceClass::Normal, 2))),
        ];
        assert_eq!(texts(text, &split_markdown(text, true, None)), expected);
    }

    #[test]
    fn sections_of_completed_phases_come_last_or_not_at_all() {
        let text = "# Map\n\n| Phase | State |\n|---|---|\n| 1. Core | Complete |\n| 2. Tools | In progress |\n\n\
                    - [x] **Phase 3: Done**\n\n## Phase 1: Core\n\na\n\n### Detail\n\n## Phase 2: Tools\n\n## Phase 3\n";
        let completed: Vec<_> = split_markdown(text, true, None)
            .into_iter()
            .filter(|piece| piece.rank.unwrap().class == TextPieceClass::Completed)
            .map(|piece| text[piece.range].trim().to_owned())
            .collect();
        assert_eq!(completed, ["## Phase 1: Core", "a", "### Detail", "## Phase 3"]);
        assert_eq!(split_markdown(text, false, None).iter().filter(|piece| piece.rank.is_none()).count(), 4);
    }

    #[test]
    fn the_phase_that_was_asked_for_comes_before_the_others_even_if_it_is_completed() {
        let text = "# Map\n\n- [x] Phase 1\n\n## Phase 1: Core\n\na\n\n### Detail\n\n## Phase 2: Tools\n\nb\n\n## Phase 12\n";
        let asked = |phase| -> Vec<String> {
            let pieces = split_markdown(text, false, Some(phase)).into_iter();
            let asked = pieces
                .filter(|piece| piece.rank.is_some_and(|rank| rank.class == TextPieceClass::AskedPhase));
            asked.map(|piece| text[piece.range].trim().to_owned()).collect()
        };
        assert_eq!(asked(1), ["## Phase 1: Core", "a", "### Detail"]);
        assert_eq!(asked(2), ["## Phase 2: Tools", "b"]);
        assert!(asked(3).is_empty());
    }

    #[test]
    fn plain_text_is_cut_between_paragraphs_and_long_ones_between_lines() {
        let text = format!("a\nb\n\nc\n\n\n{}", "x\n".repeat(25));
        let lengths: Vec<_> = split_plain_text(&text).iter().map(|piece| piece.range.len()).collect();
        assert_eq!(lengths, [5, 4, 40, 10]);
    }

    #[test]
    fn a_large_paragraph_is_cut_at_lines_else_between_sentences_else_words_and_never_in_a_character() {
        for (unit, end) in
            [("a line. of words\n", "\n"), ("A word. Is here. ", ". "), ("word ", " "), ("\u{e9}", "")]
        {
            let text = format!("{}\n", unit.repeat(20_000 / unit.len()).trim_end());
            for pieces in [split_markdown(&text, true, None), split_plain_text(&text)] {
                assert!(pieces.len() > 8 && pieces.iter().all(|piece| piece.range.len() <= MAX_PART_BYTES));
                let cut = &pieces[..pieces.len() - 1];
                assert!(cut.iter().all(|piece| text[piece.range.clone()].ends_with(end)), "{unit}");
                assert_eq!(pieces.iter().map(|piece| &text[piece.range.clone()]).collect::<String>(), text);
            }
        }
    }

    proptest! {
        #[test]
        fn pieces_are_the_whole_text_in_order(text in "([#>\\-`|*a1. \n~\t]|Phase |```\n|---\n|\u{e9}){0,60}") {
            for pieces in [split_markdown(&text, true, None), split_plain_text(&text)] {
                let whole: String = pieces.iter().map(|piece| &text[piece.range.clone()]).collect();
                prop_assert_eq!(&whole, &text);
            }
        }
    }
}
