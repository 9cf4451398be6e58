//! The section of the source files.

use super::index::{FileIndex, IndexedFiles, outline_text};
use super::measure::{MAX_SOURCE_BYTES, SourceFile, fence_language};
use crate::cache::ContentCache;
use crate::detail_level::DetailLevel;
use crate::format::{SectionHeading, fence_len};
use crate::load::Loader;
use crate::manifest::{SectionEntry, SectionKind};
use crate::request::CodeDetail;
use crate::section::Provenance;
use crate::text::{TextEncoding, group_digits, sha256_hex};
use crate::writer::{FlexibleSection, Renderer, SegmentWriter};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Tokens above which a file is whole only after smaller ones are.
const LARGE_FILE_TOKENS: usize = 6_000;
/// The weight of the source files in the tail.
const WEIGHT: usize = 3;

/// The heading of the list of files.
const LIST_HEADING: SectionHeading<'_> =
    SectionHeading { path: "source files", language: "text", level: DetailLevel::Map, fence_len: 3 };

/// The source files of a request.
pub(crate) struct SourceFiles<'a> {
    loader: &'a Loader<'a>,
    cache: &'a ContentCache,
    renderer: Renderer<'a>,
    detail: CodeDetail,
    files: Vec<SourceFile>,
    total_bytes: u64,
    /// The tokens of the list with no file in it.
    list_frame_tokens: usize,
    changed: BTreeSet<String>,
    /// Computed when it is first needed, because it takes parsing. It is not needed where every file is whole.
    index: OnceLock<FileIndex>,
}

/// The detail in which one file is in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileDetail {
    /// Only counted in the list.
    Hidden,
    /// A line in the list.
    Line,
    Outline,
    Whole,
}

/// A step that brings one file to a detail.
#[derive(Clone, Copy)]
struct Step {
    file: usize,
    detail: FileDetail,
}

impl<'a> SourceFiles<'a> {
    pub(super) fn new(
        loader: &'a Loader<'a>,
        cache: &'a ContentCache,
        renderer: Renderer<'a>,
        detail: CodeDetail,
        files: Vec<SourceFile>,
        changed: BTreeSet<String>,
    ) -> Self {
        let total_bytes = files.iter().map(|file| file.bytes).sum();
        let list_frame_tokens = renderer.frame_cost(&LIST_HEADING)
            + renderer.escaped_cost(&totals_line(files.len(), total_bytes))
            // The longest one: how many files are hidden is known only when the list is written.
            + renderer.escaped_cost(&hidden_line(9_999_999))
            // For the place where the list meets the file before it.
            + 1;
        let index = OnceLock::new();
        Self { loader, cache, renderer, detail, files, total_bytes, list_frame_tokens, changed, index }
    }

    /// Returns the number of files.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    fn index(&self) -> &FileIndex {
        self.index.get_or_init(|| {
            let files = IndexedFiles {
                loader: self.loader,
                cache: self.cache,
                renderer: self.renderer,
                detail: self.detail,
                files: &self.files,
                total_bytes: self.total_bytes,
                changed: &self.changed,
            };
            files.index()
        })
    }

    /// Returns the steps from no file to every file whole. With more tokens more of them are taken, so nothing is lost.
    fn steps(&self, index: &FileIndex) -> Vec<Step> {
        let (near, far) = index.order.split_at_checked(index.near_changes).unwrap_or((&index.order, &[]));
        let whole_cost = |file: &usize| self.files.get(*file).and_then(SourceFile::whole_cost);
        let outlines = |files: &[usize]| {
            let has_outline = |file: &&usize| index.outline_costs.get(**file).is_some_and(Option::is_some);
            steps_to(FileDetail::Outline, files.iter().filter(has_outline))
        };
        let wholes = |files: &[usize], is_large: bool| {
            let is_candidate = |file: &&usize| {
                self.may_be_whole()
                    && whole_cost(file).is_some_and(|tokens| (tokens > LARGE_FILE_TOKENS) == is_large)
            };
            steps_to(FileDetail::Whole, files.iter().filter(is_candidate))
        };
        [
            // Every file is named before one is opened. Files near the changes come before the others, and large ones
            // last, since one of them can take what many small ones need.
            steps_to(FileDetail::Line, index.order.iter()),
            outlines(near),
            wholes(near, false),
            outlines(far),
            wholes(far, false),
            wholes(near, true),
            wholes(far, true),
        ]
        .concat()
    }

    /// Returns the tokens of a file in `detail`.
    fn cost(&self, index: &FileIndex, file: usize, detail: FileDetail) -> usize {
        match detail {
            FileDetail::Hidden => 0,
            FileDetail::Line => index.lines.get(file).map_or(0, |(_, cost)| *cost),
            FileDetail::Outline => index.outline_costs.get(file).copied().flatten().unwrap_or_default(),
            FileDetail::Whole => self.files.get(file).and_then(SourceFile::whole_cost).unwrap_or_default(),
        }
    }

    /// Returns how many of `steps` fit `tokens`. Steps need not cost more than the ones before them, since a short file can
    /// be cheaper whole than in outline; the last one that fits counts.
    fn fitting_steps(&self, tokens: usize, index: &FileIndex, steps: &[Step]) -> usize {
        let mut details = vec![FileDetail::Hidden; self.files.len()];
        let mut cost = self.list_frame_tokens;
        let mut fitting = 0;
        for (taken, step) in steps.iter().enumerate() {
            if let Some(detail) = details.get_mut(step.file) {
                cost += self.cost(index, step.file, step.detail);
                cost -= self.cost(index, step.file, *detail);
                *detail = step.detail;
            }
            if cost <= tokens {
                fitting = taken + 1;
            }
        }
        fitting
    }

    /// Returns the detail of each file after as many steps as fit `tokens`.
    fn details(&self, tokens: usize, index: &FileIndex) -> Vec<FileDetail> {
        let steps = self.steps(index);
        let fitting = self.fitting_steps(tokens, index, &steps);
        let mut details = vec![FileDetail::Hidden; self.files.len()];
        for step in steps.into_iter().take(fitting) {
            if let Some(detail) = details.get_mut(step.file) {
                *detail = step.detail;
            }
        }
        details
    }

    fn may_be_whole(&self) -> bool {
        matches!(self.detail, CodeDetail::Auto | CodeDetail::Full)
    }

    /// Returns true if every file is whole with `tokens`. It takes no parsing to know.
    fn is_all_whole(&self, tokens: usize) -> bool {
        self.may_be_whole()
            && tokens >= self.max_tokens()
            && self.files.iter().all(|file| file.whole_cost().is_some())
    }

    fn write_list(&self, details: &[FileDetail], index: Option<&FileIndex>, writer: &mut SegmentWriter<'_>) {
        let mut text = totals_line(self.files.len(), self.total_bytes);
        let hidden = details.iter().filter(|detail| **detail == FileDetail::Hidden).count();
        if let Some(index) = index {
            let is_listed = |file: &&usize| details.get(**file) == Some(&FileDetail::Line);
            for file in index.order.iter().filter(is_listed) {
                text.push_str(index.lines.get(*file).map_or("", |(line, _)| line));
            }
        }
        if hidden > 0 {
            text.push_str(&hidden_line(hidden));
        }
        let entry = SectionEntry {
            path: LIST_HEADING.path.to_owned(),
            kind: SectionKind::Map,
            why: "source files that are not whole".to_owned(),
            sha256: sha256_hex(text.as_bytes()),
            source_bytes: text.len() as u64,
            truncated: hidden > 0,
            level: DetailLevel::Map,
            pieces_left_out: hidden,
            encoding: TextEncoding::Utf8,
            ..SectionEntry::default()
        };
        let body = writer.renderer.format.escape(&text);
        writer.push_section(&LIST_HEADING, &body, entry);
    }

    /// Writes the section of one file, which is read again. A file that is gone meanwhile is not written.
    fn write_file(&self, file: &SourceFile, level: DetailLevel, writer: &mut SegmentWriter<'_>) {
        // Its state is recorded, unlike when it was measured: if it changes from here on, the document is compiled
        // again.
        let Ok(loaded) = self.loader.load(&file.path, MAX_SOURCE_BYTES) else { return };
        let Provenance { bytes, sha256, encoding, bidirectional, unstable, redactions } = loaded.provenance;
        let text = match level {
            DetailLevel::Outline => match outline_text(self.cache, &file.path, &loaded.text) {
                Some(outline) => outline,
                None => return,
            },
            _ => loaded.text,
        };
        let heading = SectionHeading {
            path: &file.display_name,
            language: fence_language(&file.display_name),
            level,
            fence_len: fence_len(&text),
        };
        let is_changed = self.changed.contains(&file.path);
        let entry = SectionEntry {
            path: file.display_name.clone(),
            kind: SectionKind::Code,
            why: if is_changed { "included, and changed" } else { "included" }.to_owned(),
            sha256,
            source_bytes: bytes,
            truncated: level != DetailLevel::Full,
            level,
            redactions,
            encoding,
            bidirectional,
            unstable,
            ..SectionEntry::default()
        };
        let body = writer.renderer.format.escape(&text);
        writer.push_section(&heading, &body, entry);
    }
}

impl FlexibleSection for SourceFiles<'_> {
    fn min_tokens(&self) -> usize {
        self.list_frame_tokens
    }

    fn max_tokens(&self) -> usize {
        // A file that is whole is not in the list, and a file that cannot be quoted is only there.
        let files: usize = if self.may_be_whole() {
            let cost = |file: &SourceFile| {
                file.whole_cost().unwrap_or_else(|| self.renderer.escaped_cost(&file.list_line(None)))
            };
            self.files.iter().map(cost).sum()
        } else {
            let index = self.index();
            let cost = |file: usize| {
                let line = self.cost(index, file, FileDetail::Line);
                line.max(self.cost(index, file, FileDetail::Outline))
            };
            (0..self.files.len()).map(cost).sum()
        };
        self.list_frame_tokens + files
    }

    fn weight(&self) -> usize {
        WEIGHT
    }

    fn detail_at(&self, tokens: usize) -> usize {
        if self.is_all_whole(tokens) {
            return usize::MAX;
        }
        let index = self.index();
        self.fitting_steps(tokens, index, &self.steps(index))
    }

    fn write(&self, tokens: usize, writer: &mut SegmentWriter<'_>) {
        let (details, index) = if self.is_all_whole(tokens) {
            (vec![FileDetail::Whole; self.files.len()], None)
        } else {
            let index = self.index();
            (self.details(tokens, index), Some(index))
        };
        for (file, detail) in self.files.iter().zip(&details) {
            match detail {
                FileDetail::Outline => self.write_file(file, DetailLevel::Outline, writer),
                FileDetail::Whole => self.write_file(file, DetailLevel::Full, writer),
                FileDetail::Hidden | FileDetail::Line => {}
            }
        }
        // The list comes last: its totals change with every file, and what follows a change is not cached.
        self.write_list(&details, index, writer);
    }
}

fn steps_to<'f>(detail: FileDetail, files: impl Iterator<Item = &'f usize>) -> Vec<Step> {
    files.map(|file| Step { file: *file, detail }).collect()
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
