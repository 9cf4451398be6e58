//! A section: what is quoted under one heading, as much of it as there is room for.

use crate::count::TokenCounter;
use crate::form::{SectionHead, fence_of};
use crate::manifest::{Kind, SectionEntry};
use crate::pieces::Piece;
use crate::request::Format;
use crate::text::{grouped, sha256};

/// Something to quote.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) path: String,
    pub(crate) kind: Kind,
    pub(crate) why: String,
    /// For Markdown's fence.
    pub(crate) language: &'static str,
    pub(crate) text: String,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) source: Source,
}

/// Where the text of a section is from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    pub(crate) encoding: &'static str,
    pub(crate) bidirectional: bool,
    pub(crate) unstable: bool,
    pub(crate) redactions: usize,
}

/// What a text is written with.
#[derive(Clone, Copy)]
pub(crate) struct Pen<'a> {
    pub(crate) format: Format,
    pub(crate) counter: &'a dyn TokenCounter,
}

impl Pen<'_> {
    /// The tokens of `text` as it is written.
    pub(crate) fn cost(&self, text: &str) -> usize {
        self.counter.count(&self.format.escape(text))
    }
}

/// Something that takes tokens, more or fewer.
pub(crate) trait Item {
    /// The fewest it needs.
    fn least(&self) -> usize;
    /// The most it can use; at least [`least`](Item::least).
    fn most(&self) -> usize;
    /// Its share, relative to those of the others.
    fn weight(&self) -> usize;
    /// How much it writes with `tokens`: with more tokens the same number or a larger one.
    fn level(&self, tokens: usize) -> usize;
    /// Writes as much as `tokens` allow. With more, it writes all that it wrote with fewer.
    fn write(&self, tokens: usize, page: &mut Page<'_>);
}

/// One half of the document, while it is written.
pub(crate) struct Page<'a> {
    pub(crate) pen: Pen<'a>,
    pub(crate) text: String,
    pub(crate) entries: Vec<SectionEntry>,
    pub(crate) in_prefix: bool,
}

impl Page<'_> {
    /// Writes a section whose text is `body`, escaped already.
    pub(crate) fn section(&mut self, head: &SectionHead<'_>, body: &str, entry: SectionEntry) {
        let format = self.pen.format;
        let start = self.text.len();
        self.text.push_str(&format.section_open(head, self.entries.len()));
        self.text.push_str(body);
        self.text.push_str(&format.section_close(head));
        let written = self.text.get(start..).unwrap_or_default();
        let entry = SectionEntry {
            half: if self.in_prefix { "prefix" } else { "tail" },
            bytes: written.len(),
            tokens: self.pen.counter.count(written),
            emitted_sha256: sha256(written.as_bytes()),
            ..entry
        };
        self.entries.push(entry);
    }
}

/// A section whose pieces are kept one after the other, by rank, as long as there is room.
pub(crate) struct Ladder {
    section: Section,
    weight: usize,
    fence: usize,
    /// Tokens of each piece, as it is written.
    costs: Vec<usize>,
    /// Pieces in the order in which they are kept.
    order: Vec<usize>,
    /// What the section needs at most with the first so many of `order`.
    bounds: Vec<usize>,
}

impl Ladder {
    pub(crate) fn new(section: Section, weight: usize, pen: Pen<'_>) -> Self {
        let fence = fence_of(&section.text);
        let text = |piece: &Piece| section.text.get(piece.range.clone()).unwrap_or_default();
        let costs: Vec<usize> = section.pieces.iter().map(|piece| pen.cost(text(piece))).collect();
        let mut order: Vec<usize> = (0..costs.len())
            .filter(|index| section.pieces.get(*index).is_some_and(|p| p.rank.is_some()))
            .collect();
        order.sort_by_key(|index| (section.pieces.get(*index).and_then(|piece| piece.rank), *index));
        let head =
            SectionHead { path: &section.path, language: section.language, level: Some(TRIMMED), fence };
        let around = pen.counter.count(&pen.format.section_open(&head, 1))
            + pen.counter.count(&pen.format.section_close(&head));
        let note = pen.cost(&note(section.kind, 9_999_999, 9_999_999, 99_999_999));
        let bounds = bounds(&costs, &order, around, note);
        Self { section, weight, fence, costs, order, bounds }
    }
}

const TRIMMED: &str = "trimmed";

/// What the section needs with the first `n` of `order`, for each `n`: the pieces, and a note for each gap.
fn bounds(costs: &[usize], order: &[usize], around: usize, note: usize) -> Vec<usize> {
    let mut kept = vec![false; costs.len()];
    let mut gaps = usize::from(!costs.is_empty());
    let mut pieces = 0;
    let mut bounds = vec![around + gaps * (note + 1)];
    for &index in order {
        // Beyond both ends nothing is missing.
        let before = index.checked_sub(1).is_none_or(|index| kept.get(index) == Some(&true));
        let after = kept.get(index + 1).is_none_or(|kept| *kept);
        match (before, after) {
            (true, true) => gaps -= 1,
            (false, false) => gaps += 1,
            _ => {}
        }
        if let Some(kept) = kept.get_mut(index) {
            *kept = true;
        }
        pieces += costs.get(index).copied().unwrap_or_default();
        bounds.push(around + pieces + gaps * (note + 1));
    }
    bounds
}

/// What stands in the place of what was left out, and how to read it.
fn note(kind: Kind, first: usize, last: usize, tokens: usize) -> String {
    let tokens = grouped(tokens);
    match kind {
        // Their lines are not those of a file.
        Kind::Changes | Kind::TestFailures => {
            format!("[… {} lines left out, {tokens} tokens]\n", grouped(last + 1 - first))
        }
        _ => format!("[… lines {first}-{last} left out, {tokens} tokens]\n"),
    }
}

impl Item for Ladder {
    fn least(&self) -> usize {
        self.bounds.iter().copied().min().unwrap_or_default()
    }

    fn most(&self) -> usize {
        self.bounds.last().copied().unwrap_or_default().max(self.least())
    }

    fn weight(&self) -> usize {
        self.weight
    }

    /// How many of `order` are kept.
    fn level(&self, tokens: usize) -> usize {
        self.bounds.iter().rposition(|bound| *bound <= tokens).unwrap_or(0)
    }

    fn write(&self, tokens: usize, page: &mut Page<'_>) {
        let Section { path, kind, why, language, text, pieces, source } = &self.section;
        let mut kept = vec![false; pieces.len()];
        for index in self.order.iter().take(self.level(tokens)) {
            if let Some(kept) = kept.get_mut(*index) {
                *kept = true;
            }
        }
        let format = page.pen.format;
        let mut body = String::new();
        let (mut line, mut gap_line, mut gap_tokens, mut left_out) = (1, 1, 0, 0);
        // Of what is cut in a line, the note has a line of its own.
        let mut is_open = false;
        for (index, piece) in pieces.iter().enumerate() {
            let words = text.get(piece.range.clone()).unwrap_or_default();
            let lines = words.matches('\n').count();
            let is_kept = kept.get(index) == Some(&true);
            if is_kept {
                body.push_str(&format.escape(words));
                is_open = !words.ends_with('\n');
            } else {
                if gap_tokens == 0 {
                    gap_line = line;
                }
                if std::mem::take(&mut is_open) {
                    body.push_str(&format.escape("\n"));
                }
                gap_tokens += self.costs.get(index).copied().unwrap_or_default();
                left_out += 1;
                if kept.get(index + 1).is_none_or(|kept| *kept) {
                    let last = (line + lines).saturating_sub(1).max(gap_line);
                    body.push_str(&format.escape(&note(*kind, gap_line, last, gap_tokens)));
                    gap_tokens = 0;
                }
            }
            line += lines;
        }
        let head =
            SectionHead { path, language, level: (left_out > 0).then_some(TRIMMED), fence: self.fence };
        let entry = SectionEntry {
            path: path.clone(),
            kind: *kind,
            why: why.clone(),
            sha256: source.sha256.clone(),
            source_bytes: source.bytes,
            truncated: left_out > 0,
            level: if left_out > 0 { TRIMMED } else { "full" },
            pieces_left_out: left_out,
            redactions: source.redactions,
            encoding: source.encoding,
            bidirectional: source.bidirectional,
            unstable: source.unstable,
            ..SectionEntry::default()
        };
        page.section(&head, &body, entry);
    }
}
