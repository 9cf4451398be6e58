//! The two segments of a document: dividing the budget between them, and writing each within its part.

use crate::budget::{SectionBudgetRequest, TokenBudget, divide};
use crate::manifest::{DocumentSegment, ManifestSectionEntry};
use crate::writer::{FlexibleSegmentSection, SectionRenderer, SegmentWriter};

/// A segment of the document before its size is known.
pub(crate) struct SegmentPlan<'a> {
    segment: DocumentSegment,
    renderer: SectionRenderer<'a>,
    opening: String,
    closing: String,
    sections: Vec<Box<dyn FlexibleSegmentSection + 'a>>,
    /// The tokens of what opens and closes the segment.
    frame_tokens: usize,
    /// The tokens that the complete segment has more than the sum of its parts: more can begin where two parts meet.
    join_tokens: usize,
}

/// A segment as text.
pub(crate) struct RenderedSegment {
    pub(crate) text: String,
    pub(crate) tokens: usize,
    pub(crate) entries: Vec<ManifestSectionEntry>,
}

impl<'a> SegmentPlan<'a> {
    /// The stable prefix.
    pub(crate) fn prefix(
        renderer: SectionRenderer<'a>,
        sections: Vec<Box<dyn FlexibleSegmentSection + 'a>>,
    ) -> SegmentPlan<'a> {
        let format = renderer.format;
        let opening = format.prefix_open().to_owned();
        let closing = format.prefix_close().to_owned();
        // One token for the place where the sections meet the opening.
        let frame_tokens = renderer.raw_cost(&opening) + renderer.raw_cost(&closing) + 1;
        let mut plan = Self {
            segment: DocumentSegment::Prefix,
            renderer,
            opening,
            closing,
            sections,
            frame_tokens,
            join_tokens: 0,
        };
        // Without it, the plan would claim fewer tokens than the complete prefix has, and `render_within` would cut it even
        // under an ample budget.
        plan.join_tokens = plan.render(plan.max_tokens()).tokens.saturating_sub(plan.max_tokens());
        plan
    }

    /// The volatile tail, between `opening` and `closing`. It gets everything that the prefix leaves, so its join tokens
    /// need not be known.
    pub(crate) fn tail(
        renderer: SectionRenderer<'a>,
        opening: String,
        closing: String,
        sections: Vec<Box<dyn FlexibleSegmentSection + 'a>>,
    ) -> SegmentPlan<'a> {
        // One token for each of the places where the sections meet the opening and the summary.
        let frame_tokens = renderer.raw_cost(&opening) + renderer.raw_cost(&closing) + 2;
        let segment = DocumentSegment::Tail;
        Self { segment, renderer, opening, closing, sections, frame_tokens, join_tokens: 0 }
    }

    fn min_tokens(&self) -> usize {
        self.frame_tokens + self.sections.iter().map(|section| section.min_tokens()).sum::<usize>()
    }

    fn max_tokens(&self) -> usize {
        let sections: usize = self.sections.iter().map(|section| section.max_tokens()).sum();
        self.frame_tokens + sections + self.join_tokens
    }

    /// Returns the reason why the sections cannot use more tokens, if one of them tells it.
    pub(crate) fn limit_reason(&self) -> Option<&'static str> {
        self.sections.iter().find_map(|section| section.limit_reason())
    }

    /// Returns the part of `tokens` that each section gets. No part shrinks when there are more tokens.
    fn shares(&self, tokens: usize) -> Vec<usize> {
        let requests = self.sections.iter().map(|section| SectionBudgetRequest {
            weight: section.weight(),
            max_tokens: section.max_tokens() - section.min_tokens(),
        });
        let requests: Vec<SectionBudgetRequest> = requests.collect();
        let shares = divide(tokens.saturating_sub(self.min_tokens()), &requests);
        self.sections.iter().zip(shares).map(|(section, share)| section.min_tokens() + share).collect()
    }

    /// Returns how much of each section is written with `tokens`.
    fn details(&self, tokens: usize) -> Vec<usize> {
        let shares = self.sections.iter().zip(self.shares(tokens));
        shares.map(|(section, share)| section.detail_at(share)).collect()
    }

    /// Writes the segment as if its parts added up to `tokens`.
    fn render(&self, tokens: usize) -> RenderedSegment {
        let mut writer = SegmentWriter {
            renderer: self.renderer,
            segment: self.segment,
            text: self.opening.clone(),
            entries: Vec::new(),
        };
        for (section, share) in self.sections.iter().zip(self.shares(tokens)) {
            section.write(share, &mut writer);
        }
        let SegmentWriter { mut text, entries, .. } = writer;
        text.push_str(&self.closing);
        RenderedSegment { tokens: self.renderer.raw_cost(&text), text, entries }
    }

    /// Writes the segment in at most `max_tokens`, or in as few tokens as possible.
    ///
    /// The segment as a whole can have more tokens than its parts, though rarely and then mostly a few. It is then written
    /// again with fewer.
    pub(crate) fn render_within(&self, max_tokens: usize) -> RenderedSegment {
        /// Steps that are no longer than the excess. Each step writes and counts the whole segment, so every later step is
        /// twice as long as the one before.
        const EXACT_STEPS: u32 = 12;
        let mut target = max_tokens;
        let mut step = 0_u32;
        loop {
            let rendered = self.render(target);
            let excess = rendered.tokens.saturating_sub(max_tokens);
            if excess == 0 {
                return rendered;
            }
            // Targets that change nothing in the text are skipped.
            let Some(smaller) = self.next_smaller_target(target) else { return rendered };
            let length = excess.saturating_mul(1 << step.saturating_sub(EXACT_STEPS).min(31));
            target = smaller.min(target.saturating_sub(length)).max(self.min_tokens());
            step = step.saturating_add(1);
        }
    }

    /// Returns the most tokens with which less is written than with `tokens`, or `None` if there is no less.
    fn next_smaller_target(&self, tokens: usize) -> Option<usize> {
        let details = self.details(tokens);
        let (mut less, mut same) = (self.min_tokens(), tokens);
        if less >= same || self.details(less) == details {
            return None;
        }
        // No section gets more detail with fewer tokens, so the boundary is found by bisection.
        while same - less > 1 {
            let middle = less + (same - less) / 2;
            if self.details(middle) == details {
                same = middle;
            } else {
                less = middle;
            }
        }
        Some(less)
    }
}

/// The division of a budget between the two segments.
pub(crate) struct BudgetSplit<'a> {
    pub(crate) prefix: &'a SegmentPlan<'a>,
    pub(crate) tail: &'a SegmentPlan<'a>,
    /// The part that the prefix can have at most.
    pub(crate) prefix_share_percent: usize,
    /// True if the prefix has the documents of a project without planning documents. They introduce a reader, and say
    /// less about the task than the tail, so they have a smaller part.
    pub(crate) is_orientation: bool,
}

/// The part of the budget for the documents of a project without planning documents, in per cent.
const ORIENTATION_SHARE_PERCENT: usize = 20;

impl BudgetSplit<'_> {
    /// Returns the counted tokens of the prefix and of the tail. Those of the prefix depend on nothing in the tail; the
    /// tail gets what the prefix cannot use.
    pub(crate) fn divide(&self, budget: TokenBudget) -> (usize, usize) {
        let total = budget.counted_tokens();
        // The prefix is measured against its own limit only, and not against what the tail needs: it must not change
        // with the tail.
        let limit = total.saturating_mul(self.prefix_share_percent) / 100;
        let limit = if self.is_orientation { self.orientation_limit(total, limit) } else { limit };
        let prefix = limit.min(self.prefix.max_tokens());
        (prefix, total - prefix)
    }

    /// Returns the tokens for the documents of a project without planning documents: a small part, unless they need more
    /// for a line of each, at most `limit`; or what a small project leaves. That is rounded down to a tenth of the budget,
    /// so that few changes in the tail move the prefix.
    fn orientation_limit(&self, total: usize, limit: usize) -> usize {
        let small = (total.saturating_mul(ORIENTATION_SHARE_PERCENT) / 100).min(limit);
        let needed = self.prefix.min_tokens().min(limit);
        let free = total.saturating_sub(self.tail.max_tokens());
        let tenths = free.saturating_mul(10) / total.max(1);
        small.max(needed).max(tenths * total / 10)
    }

    /// Returns true if each segment gets the tokens that it needs at least.
    pub(crate) fn fits(&self, budget: TokenBudget) -> bool {
        let (prefix, tail) = self.divide(budget);
        prefix >= self.prefix.min_tokens() && tail >= self.tail.min_tokens()
    }

    /// Returns the smallest budget that fits, in tokens of the model. A larger budget gives both segments more, so it is
    /// found by bisection.
    pub(crate) fn smallest_budget(&self, factor_permille: u32) -> usize {
        let fits = |model_tokens| self.fits(TokenBudget { model_tokens, factor_permille });
        let (mut too_small, mut enough) = (0, 1_usize);
        // The bound keeps the products in `Budget` and `divide` from overflowing.
        while !fits(enough) && enough < usize::MAX / 20_000 {
            too_small = enough;
            enough *= 2;
        }
        while enough - too_small > 1 {
            let middle = too_small + (enough - too_small) / 2;
            if fits(middle) {
                enough = middle;
            } else {
                too_small = middle;
            }
        }
        enough
    }
}
