//! The first file that does not fit: as much of it as there is room for, so that one large file leaves no budget unused.

use super::detail_steps::{DetailStep, SourceFileDetail};
use super::index::{IndexedFiles, outline_text};
use super::measure::{MAX_SOURCE_BYTES, SourceFile, quote, section_cost};
use super::outline_head::{GAP_MARK, outline_head};
use crate::cache::QuotedContentSize;
use crate::decoded_text::group_digits;
use crate::detail_level::SectionDetailLevel;
use crate::format::fence_len;
use crate::outline::outline_with_bodies;
use std::fmt::Write as _;

/// Tokens below which a part of a file tells too little.
const MIN_PART_TOKENS: usize = 60;

/// A part of a file, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartialSourceText {
    pub(super) text: String,
    pub(super) level: SectionDetailLevel,
    /// The units that are there; more of them with more tokens.
    pub(super) units: usize,
    pub(super) left_out: usize,
}

/// A file of which parts are taken.
struct DivisibleSourceText<'a> {
    path: &'a str,
    text: String,
    /// True if the units are the bodies that the outline leaves out, else they are lines.
    bodies: bool,
    level: SectionDetailLevel,
    units: usize,
}

impl IndexedFiles<'_> {
    /// Returns the largest part of what `step` would add that fits `tokens`, which is what the section of the file may
    /// have. The part contains everything that the file shows in the detail `from`.
    pub(super) fn part_of_step(
        &self,
        file: &SourceFile,
        step: DetailStep,
        from: SourceFileDetail,
        names: &[String],
        tokens: usize,
    ) -> Option<PartialSourceText> {
        if tokens < MIN_PART_TOKENS {
            return None;
        }
        let text = self.loader.load_unrecorded(&file.path, MAX_SOURCE_BYTES).0.ok()?.text;
        if matches!(step.detail, SourceFileDetail::Head | SourceFileDetail::Outline) {
            return self.part_of_outline(file, &text, names, tokens);
        }
        let divisible = DivisibleSourceText::new(&file.path, text, step.detail, from)?;
        let cost = |part: &str| {
            let quote = quote(self.renderer, self.cache, part);
            section_cost(self.renderer, &file.display_name, divisible.level, quote)
        };
        let (mut fits, mut exceeds) = (0, divisible.units);
        while exceeds - fits > 1 {
            let middle = fits + (exceeds - fits) / 2;
            if cost(&divisible.first_units(middle)?) <= tokens {
                fits = middle;
            } else {
                exceeds = middle;
            }
        }
        (fits > 0).then_some(())?;
        let left_out = divisible.units - fits;
        Some(PartialSourceText {
            text: divisible.first_units(fits)?,
            level: divisible.level,
            units: fits,
            left_out,
        })
    }
}

impl IndexedFiles<'_> {
    /// Returns the most important lines of the outline of a file, as many as `tokens` allow its section.
    fn part_of_outline(
        &self,
        file: &SourceFile,
        text: &str,
        names: &[String],
        tokens: usize,
    ) -> Option<PartialSourceText> {
        let outline = outline_text(self.cache, &file.path, text)?;
        let level = SectionDetailLevel::Outline;
        let frame = QuotedContentSize { fence_len: fence_len(&outline), tokens: 0 };
        let frame = section_cost(self.renderer, &file.display_name, level, frame);
        let cost = |line: &str| self.renderer.escaped_cost(line);
        let text = outline_head(&outline, names, tokens.checked_sub(frame)?, cost)?;
        let quote = quote(self.renderer, self.cache, &text);
        if section_cost(self.renderer, &file.display_name, level, quote) > tokens {
            return None;
        }
        let units = text.lines().filter(|line| *line != GAP_MARK.trim_end()).count();
        let left_out = outline.lines().count().saturating_sub(units);
        Some(PartialSourceText { text, level, units, left_out })
    }
}

impl<'a> DivisibleSourceText<'a> {
    fn new(path: &'a str, text: String, detail: SourceFileDetail, from: SourceFileDetail) -> Option<Self> {
        match (detail, from) {
            (SourceFileDetail::Whole, SourceFileDetail::Outline) => {
                let (_, units) = outline_with_bodies(path, &text, 0)?;
                Some(Self { path, text, bodies: true, level: SectionDetailLevel::Trimmed, units })
            }
            (SourceFileDetail::Whole, _) => {
                let units = text.lines().count();
                Some(Self { path, text, bodies: false, level: SectionDetailLevel::Trimmed, units })
            }
            _ => None,
        }
    }

    /// Returns the text with its first `units` units.
    fn first_units(&self, units: usize) -> Option<String> {
        if self.bodies {
            let mut text = outline_with_bodies(self.path, &self.text, units)?.0;
            text.truncate(text.trim_end().len());
            text.push('\n');
            return Some(text);
        }
        let mut text: String = self.text.split_inclusive('\n').take(units).collect();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let _ = writeln!(text, "[… {} lines left out]", group_digits(self.units - units));
        Some(text)
    }
}
