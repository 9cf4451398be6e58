//! The section of the source files.

use super::detail_steps::{DetailStep, SourceFileDetail, detail_steps};
use super::index::{IndexedFiles, SourceFileIndex, outline_text};
use super::measure::{MAX_SOURCE_BYTES, SourceFile, fence_language};
use super::partial::PartialSourceText;
use crate::cache::ContentCache;
use crate::changes::RepositoryChanges;
use crate::decoded_text::{TextEncoding, group_digits, sha256_hex};
use crate::detail_level::SectionDetailLevel;
use crate::format::{SectionHeading, fence_len};
use crate::load::FileLoader;
use crate::manifest::{ManifestSectionEntry, SectionKind};
use crate::request::CodeDetail;
use crate::section::SourceProvenance;
use crate::writer::{FlexibleSegmentSection, SectionRenderer, SegmentWriter};
use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The weight of the source files in the tail.
const WEIGHT: usize = 3;

/// The heading of the list of files.
const LIST_HEADING: SectionHeading<'_> =
    SectionHeading { path: "source files", language: "text", level: SectionDetailLevel::Map, fence_len: 3 };

/// The source files of a request.
pub(crate) struct SourceFiles<'a> {
    loader: &'a FileLoader<'a>,
    cache: &'a ContentCache,
    renderer: SectionRenderer<'a>,
    files: Vec<SourceFile>,
    wishes: SourceFileWishes<'a>,
    total_bytes: u64,
    /// The tokens of the list with no file in it.
    list_frame_tokens: usize,
    /// Computed when it is first needed, because it takes parsing. It is not needed where every file is whole.
    index: OnceLock<SourceFileIndex>,
    steps: OnceLock<DetailStepCosts>,
    last_part: Mutex<Option<ComputedDetailSteps>>,
}

/// The part that was computed last.
struct ComputedDetailSteps {
    steps_before: usize,
    tokens: usize,
    part: Option<PartialSourceText>,
}

/// The part of a request that concerns source files.
pub(super) struct SourceFileWishes<'a> {
    pub(super) detail: CodeDetail,
    /// True if the request names the files, so that each of them is wanted whole.
    pub(super) every_file: bool,
    /// The paths of the files that changed.
    pub(super) changed: BTreeSet<String>,
    pub(super) task: Option<&'a str>,
    pub(super) failures: Option<&'a str>,
    pub(super) changes: Option<&'a RepositoryChanges>,
}

/// The files as a document with some budget shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileSelection {
    details: Vec<SourceFileDetail>,
    steps: usize,
    /// The file of the first step that does not fit, if there is room for a part of it.
    part: Option<(usize, PartialSourceText)>,
}

/// The steps, and the tokens of the list and the files after each of them.
struct DetailStepCosts {
    steps: Vec<DetailStep>,
    costs: Vec<usize>,
}

impl<'a> SourceFiles<'a> {
    pub(super) fn new(
        loader: &'a FileLoader<'a>,
        cache: &'a ContentCache,
        renderer: SectionRenderer<'a>,
        files: Vec<SourceFile>,
        wishes: SourceFileWishes<'a>,
    ) -> Self {
        let total_bytes = files.iter().map(|file| file.bytes).sum();
        let list_frame_tokens = renderer.frame_cost(&LIST_HEADING)
            + renderer.escaped_cost(&totals_line(files.len(), total_bytes))
            // The longest one: how many files are hidden is known only when the list is written.
            + renderer.escaped_cost(&hidden_line(9_999_999))
            // For the place where the list meets the file before it.
            + 1;
        let (index, steps, last_part) = (OnceLock::new(), OnceLock::new(), Mutex::default());
        Self {
            loader,
            cache,
            renderer,
            files,
            wishes,
            total_bytes,
            list_frame_tokens,
            index,
            steps,
            last_part,
        }
    }

    /// Returns the number of files.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns the paths of the changed files that `is_wanted` selects and that are whole in the document: they come first
    /// in the budget, and have at most `max_tokens` together.
    pub(crate) fn surely_whole(&self, max_tokens: usize, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
        if !self.may_be_whole() {
            return Vec::new();
        }
        let wanted = self
            .files
            .iter()
            .filter(|file| self.wishes.changed.contains(&file.path) && is_wanted(&file.path));
        let mut costs: Vec<(usize, &str)> =
            wanted.filter_map(|file| Some((file.whole_cost()?, file.path.as_str()))).collect();
        costs.sort_unstable();
        let mut tokens = 0;
        let fitting = costs.into_iter().take_while(|(cost, _)| {
            tokens += cost;
            tokens <= max_tokens
        });
        fitting.map(|(_, path)| path.to_owned()).collect()
    }

    fn indexed(&self) -> IndexedFiles<'_> {
        IndexedFiles {
            loader: self.loader,
            cache: self.cache,
            renderer: self.renderer,
            detail: self.wishes.detail,
            files: &self.files,
            total_bytes: self.total_bytes,
            changed: &self.wishes.changed,
            task: self.wishes.task,
            failures: self.wishes.failures,
            changes: self.wishes.changes,
        }
    }

    fn index(&self) -> &SourceFileIndex {
        self.index.get_or_init(|| self.indexed().index())
    }

    fn step_costs(&self) -> &DetailStepCosts {
        self.steps.get_or_init(|| {
            let index = self.index();
            let whole_costs: Vec<Option<usize>> = self.files.iter().map(SourceFile::whole_cost).collect();
            let steps = detail_steps(index, &whole_costs, self.may_be_whole(), self.wishes.every_file);
            let mut details = vec![SourceFileDetail::Hidden; self.files.len()];
            let mut cost = self.list_frame_tokens;
            let costs = steps.iter().map(|step| {
                if let Some(detail) = details.get_mut(step.file) {
                    cost += self.cost(index, step.file, step.detail);
                    cost -= self.cost(index, step.file, *detail);
                    *detail = step.detail;
                }
                cost
            });
            let costs = costs.collect();
            DetailStepCosts { steps, costs }
        })
    }

    /// Returns the tokens of a file in `detail`.
    fn cost(&self, index: &SourceFileIndex, file: usize, detail: SourceFileDetail) -> usize {
        match detail {
            SourceFileDetail::Hidden => 0,
            SourceFileDetail::Name => index.names.get(file).map_or(0, |(_, cost)| *cost),
            SourceFileDetail::Line => index.lines.get(file).map_or(0, |(_, cost)| *cost),
            SourceFileDetail::Head => {
                index.heads.get(file).and_then(Option::as_ref).map_or(0, |(_, cost)| *cost)
            }
            SourceFileDetail::Outline => index.outline_costs.get(file).copied().flatten().unwrap_or_default(),
            SourceFileDetail::Whole => {
                self.files.get(file).and_then(SourceFile::whole_cost).unwrap_or_default()
            }
        }
    }

    /// Returns what is shown with `tokens`. With more of them no file loses detail: the steps that fit are taken, and a part
    /// of the one after them.
    fn select(&self, tokens: usize) -> FileSelection {
        let DetailStepCosts { steps, costs } = self.step_costs();
        // Steps need not cost more than the ones before them, since a short file can be cheaper whole than in outline; the
        // last one that fits counts.
        let taken = costs.iter().rposition(|cost| *cost <= tokens).map_or(0, |last| last + 1);
        let mut details = vec![SourceFileDetail::Hidden; self.files.len()];
        for step in steps.iter().take(taken) {
            if let Some(detail) = details.get_mut(step.file) {
                *detail = step.detail;
            }
        }
        let used = taken.checked_sub(1).and_then(|last| costs.get(last)).copied();
        let free = tokens.saturating_sub(used.unwrap_or(self.list_frame_tokens));
        let part = steps.get(taken).and_then(|step| {
            let from = details.get(step.file).copied().unwrap_or(SourceFileDetail::Hidden);
            let room = free + self.cost(self.index(), step.file, from);
            Some((step.file, self.part(*step, from, taken, room)?))
        });
        FileSelection { details, steps: taken, part }
    }

    fn part(
        &self,
        step: DetailStep,
        from: SourceFileDetail,
        taken: usize,
        tokens: usize,
    ) -> Option<PartialSourceText> {
        // The same part is asked for several times while a segment is fitted.
        let mut last = self.last_part.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_ref().filter(|last| (last.steps_before, last.tokens) == (taken, tokens)) {
            return last.part.clone();
        }
        let names = self.index().ranking.names.get(step.file).map(Vec::as_slice).unwrap_or_default();
        let part = self
            .files
            .get(step.file)
            .and_then(|file| self.indexed().part_of_step(file, step, from, names, tokens));
        *last = Some(ComputedDetailSteps { steps_before: taken, tokens, part: part.clone() });
        part
    }

    fn may_be_whole(&self) -> bool {
        matches!(self.wishes.detail, CodeDetail::Auto | CodeDetail::Full)
    }

    /// Returns true if every file is whole with `tokens`. It takes no parsing to know.
    fn is_all_whole(&self, tokens: usize) -> bool {
        self.wishes.every_file
            && self.may_be_whole()
            && tokens >= self.max_tokens()
            && self.files.iter().all(|file| file.whole_cost().is_some())
    }

    fn reason_of_limit(&self) -> &'static str {
        match (self.wishes.every_file, self.index.get().is_some_and(|index| index.ranking.is_directed)) {
            (true, _) => "every source file of the request is whole",
            (false, true) => "every file that has to do with the changes, the failures or the task is whole",
            (false, false) => {
                "no changes, failures or task say which files are wanted whole; `task` or `include` would"
            }
        }
    }

    fn write_list(&self, selection: &FileSelection, writer: &mut SegmentWriter<'_>) {
        let mut text = totals_line(self.files.len(), self.total_bytes);
        let hidden = selection.hidden();
        if let Some(index) = self.index.get() {
            let in_part = |file: usize| selection.part.as_ref().is_some_and(|(part, _)| *part == file);
            for file in index.ranking.order.iter().copied().filter(|file| !in_part(*file)) {
                let listed = match selection.details.get(file) {
                    Some(SourceFileDetail::Name) => index.names.get(file),
                    Some(SourceFileDetail::Line) => index.lines.get(file),
                    _ => None,
                };
                text.push_str(listed.map_or("", |(line, _)| line));
            }
        }
        if hidden > 0 {
            text.push_str(&hidden_line(hidden));
        }
        let entry = ManifestSectionEntry {
            path: LIST_HEADING.path.to_owned(),
            kind: SectionKind::Map,
            why: "source files that are not whole".to_owned(),
            sha256: sha256_hex(text.as_bytes()),
            source_bytes: text.len() as u64,
            truncated: hidden > 0,
            level: SectionDetailLevel::Map,
            pieces_left_out: hidden,
            encoding: TextEncoding::Utf8,
            ..ManifestSectionEntry::default()
        };
        let body = writer.renderer.format.escape(&text);
        writer.push_section(&LIST_HEADING, &body, entry);
    }

    /// Writes the section of one file, which is read again. A file that is gone meanwhile is not written.
    fn write_file(&self, index: usize, shown: &ShownSourceText<'_>, writer: &mut SegmentWriter<'_>) {
        let Some(file) = self.files.get(index) else { return };
        // Its state is recorded, unlike when it was measured: if it changes from here on, the document is compiled
        // again.
        let Ok(loaded) = self.loader.load(&file.path, MAX_SOURCE_BYTES) else { return };
        let SourceProvenance { bytes, sha256, encoding, bidirectional, unstable, redactions } =
            loaded.provenance;
        let (text, level, left_out) = match shown {
            ShownSourceText::Whole => (loaded.text, SectionDetailLevel::Full, 0),
            ShownSourceText::Outline => match outline_text(self.cache, &file.path, &loaded.text) {
                Some(outline) => (outline, SectionDetailLevel::Outline, 0),
                None => return,
            },
            ShownSourceText::Head(head) => ((*head).to_owned(), SectionDetailLevel::Outline, 1),
            ShownSourceText::Part(part) => (part.text.clone(), part.level, part.left_out),
        };
        let heading = SectionHeading {
            path: &file.display_name,
            language: fence_language(&file.display_name),
            level,
            fence_len: fence_len(&text),
        };
        let is_changed = self.wishes.changed.contains(&file.path);
        let reason = self.index.get().and_then(|files| files.ranking.reasons.get(index));
        let why = match (self.wishes.every_file, is_changed, reason) {
            (true, true, _) => "included, and changed",
            (true, false, _) | (false, _, None) => "included",
            (false, _, Some(reason)) => reason.as_str(),
        };
        let entry = ManifestSectionEntry {
            path: file.display_name.clone(),
            kind: SectionKind::Code,
            why: why.to_owned(),
            sha256,
            source_bytes: bytes,
            truncated: level != SectionDetailLevel::Full,
            level,
            pieces_left_out: left_out,
            redactions,
            encoding,
            bidirectional,
            unstable,
            ..ManifestSectionEntry::default()
        };
        let body = writer.renderer.format.escape(&text);
        writer.push_section(&heading, &body, entry);
    }
}

/// The text that the section of a file shows.
enum ShownSourceText<'a> {
    Whole,
    Outline,
    Head(&'a str),
    Part(&'a PartialSourceText),
}

impl FileSelection {
    /// Returns the number of files that are not even named.
    fn hidden(&self) -> usize {
        let hidden = self.details.iter().filter(|detail| **detail == SourceFileDetail::Hidden).count();
        let part = self.part.as_ref().and_then(|(file, _)| self.details.get(*file));
        hidden - usize::from(part == Some(&SourceFileDetail::Hidden))
    }
}

impl FlexibleSegmentSection for SourceFiles<'_> {
    fn min_tokens(&self) -> usize {
        self.list_frame_tokens
    }

    fn max_tokens(&self) -> usize {
        // A file that is whole is not in the list.
        let wholes: Option<Vec<usize>> = self.files.iter().map(SourceFile::whole_cost).collect();
        match wholes {
            // Known without parsing.
            Some(wholes) if self.wishes.every_file && self.may_be_whole() => {
                self.list_frame_tokens + wholes.iter().sum::<usize>()
            }
            _ => self.step_costs().costs.last().copied().unwrap_or_default().max(self.list_frame_tokens),
        }
    }

    fn weight(&self) -> usize {
        WEIGHT
    }

    fn limit_reason(&self) -> Option<&'static str> {
        Some(self.reason_of_limit())
    }

    fn detail_at(&self, tokens: usize) -> usize {
        /// More than any file has units.
        const MAX_UNITS: usize = 1 << 20;
        if self.is_all_whole(tokens) {
            return usize::MAX;
        }
        let selection = self.select(tokens);
        let units = selection.part.map_or(0, |(_, part)| part.units.min(MAX_UNITS - 1));
        selection.steps.saturating_mul(MAX_UNITS).saturating_add(units)
    }

    fn write(&self, tokens: usize, writer: &mut SegmentWriter<'_>) {
        let selection = match self.is_all_whole(tokens) {
            true => FileSelection {
                details: vec![SourceFileDetail::Whole; self.files.len()],
                steps: 0,
                part: None,
            },
            false => self.select(tokens),
        };
        for (file, detail) in selection.details.iter().enumerate() {
            if let Some((_, part)) = selection.part.as_ref().filter(|(part, _)| *part == file) {
                self.write_file(file, &ShownSourceText::Part(part), writer);
                continue;
            }
            match detail {
                SourceFileDetail::Head => {
                    if let Some((head, _)) = self.index().heads.get(file).and_then(Option::as_ref) {
                        self.write_file(file, &ShownSourceText::Head(head), writer);
                    }
                }
                SourceFileDetail::Outline => self.write_file(file, &ShownSourceText::Outline, writer),
                SourceFileDetail::Whole => self.write_file(file, &ShownSourceText::Whole, writer),
                SourceFileDetail::Hidden | SourceFileDetail::Name | SourceFileDetail::Line => {}
            }
        }
        // The list comes last: its totals change with every file, and what follows a change is not cached.
        self.write_list(&selection, writer);
    }
}

/// Returns the first line of the list.
fn totals_line(files: usize, bytes: u64) -> String {
    let bytes = group_digits(usize::try_from(bytes).unwrap_or(0));
    format!("{} files, {bytes} bytes\n", group_digits(files))
}

/// Returns the last line of the list, for files that are not in it.
fn hidden_line(files: usize) -> String {
    format!("… and {} more files\n", group_digits(files))
}
