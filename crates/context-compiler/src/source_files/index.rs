//! Facts about the source files of a request that take parsing: their order, their lines and their outlines.

use super::measure::{MAX_SOURCE_BYTES, SourceFile, quote, section_cost};
use super::outline_head::outline_head;
use super::ranking::{RankingRequest, SourceFileRanking};
use crate::cache::{ContentCache, QuotedContentSize, QuotedSizeKey};
use crate::changes::RepositoryChanges;
use crate::decoded_text::display_path;
use crate::detail_level::SectionDetailLevel;
use crate::hash::hash_content;
use crate::load::FileLoader;
use crate::outline::Language;
use crate::parallel::{default_threads, map_in_order};
use crate::request::CodeDetail;
use crate::writer::SectionRenderer;
use std::collections::BTreeSet;

/// Bytes of all files above which none is parsed: parsing takes ten times as long as counting.
const MAX_PARSED_BYTES: u64 = 16 * 1024 * 1024;
/// Tokens of the head of an outline. A longer outline is shown in two steps.
const HEAD_TOKENS: usize = 420;

/// The order, the lines and the outlines of the files, all by index of the file.
pub(super) struct SourceFileIndex {
    pub(super) ranking: SourceFileRanking,
    /// The path of each file in the list, and its tokens.
    pub(super) names: Vec<(String, usize)>,
    /// The line of each file in the list with its names, and its tokens.
    pub(super) lines: Vec<(String, usize)>,
    /// The tokens of the section with the outline of each file, if that is shorter than the whole file.
    pub(super) outline_costs: Vec<Option<usize>>,
    /// The most important lines of each outline that is long, and the tokens of the section with them.
    pub(super) heads: Vec<Option<(String, usize)>>,
}

/// The tokens of outlines, and the heads of long ones, by index of the file.
struct OutlineTexts {
    costs: Vec<Option<usize>>,
    heads: Vec<Option<(String, usize)>>,
}

/// The files to index, and how they are read and written.
pub(super) struct IndexedFiles<'a> {
    pub(super) loader: &'a FileLoader<'a>,
    pub(super) cache: &'a ContentCache,
    pub(super) renderer: SectionRenderer<'a>,
    pub(super) detail: CodeDetail,
    pub(super) files: &'a [SourceFile],
    pub(super) total_bytes: u64,
    pub(super) changed: &'a BTreeSet<String>,
    pub(super) task: Option<&'a str>,
    pub(super) failures: Option<&'a str>,
    pub(super) changes: Option<&'a RepositoryChanges>,
}

impl IndexedFiles<'_> {
    /// Reads and parses the files, unless they are too large together.
    pub(super) fn index(&self) -> SourceFileIndex {
        let fits = self.total_bytes <= MAX_PARSED_BYTES;
        // With full detail a file is whole or only named, and nothing has to be parsed.
        let ranking = self.ranking(fits && self.detail != CodeDetail::Full);
        let names = self.files.iter().map(|file| {
            let name = format!("{}\n", display_path(&file.display_name));
            let cost = self.renderer.escaped_cost(&name);
            (name, cost)
        });
        let names = names.collect();
        let lines = self.files.iter().zip(&ranking.exported).map(|(file, exported)| {
            let line = file.list_line(exported);
            let cost = self.renderer.escaped_cost(&line);
            (line, cost)
        });
        let lines = lines.collect();
        let outlines = fits && matches!(self.detail, CodeDetail::Auto | CodeDetail::Outline);
        let OutlineTexts { costs: outline_costs, heads } = match outlines {
            true => self.outlines(&ranking),
            false => {
                OutlineTexts { costs: vec![None; self.files.len()], heads: vec![None; self.files.len()] }
            }
        };
        SourceFileIndex { ranking, names, lines, outline_costs, heads }
    }

    fn ranking(&self, reads: bool) -> SourceFileRanking {
        let request = RankingRequest {
            loader: self.loader,
            cache: self.cache,
            files: self.files,
            task: self.task,
            failures: self.failures,
            changes: self.changes,
            changed: self.changed,
        };
        request.rank(reads)
    }

    fn outlines(&self, ranking: &SourceFileRanking) -> OutlineTexts {
        let (outlines, _) = map_in_order(default_threads(), self.files.len(), |(): &mut (), index| {
            let Some(file) = self.files.get(index) else { return (None, None) };
            let cost = self.outline_cost(file);
            let is_long = cost.is_some_and(|cost| cost > HEAD_TOKENS * 3 / 2);
            let names = ranking.names.get(index).map(Vec::as_slice).unwrap_or_default();
            (cost, is_long.then(|| self.head(file, names)).flatten())
        });
        let (costs, heads) = outlines.into_iter().unzip();
        OutlineTexts { costs, heads }
    }

    fn outline_cost(&self, file: &SourceFile) -> Option<usize> {
        let whole = file.whole_cost()?;
        let quote = self.outline_quote(file)?;
        let cost = section_cost(self.renderer, &file.display_name, SectionDetailLevel::Outline, quote);
        // An outline that costs more than the whole file is of use only where nothing else is wanted.
        (cost < whole || self.detail == CodeDetail::Outline).then_some(cost)
    }

    fn head(&self, file: &SourceFile, names: &[String]) -> Option<(String, usize)> {
        let (loaded, _) = self.loader.load_unrecorded(&file.path, MAX_SOURCE_BYTES);
        let outline = outline_text(self.cache, &file.path, &loaded.ok()?.text)?;
        let cost = |line: &str| self.renderer.escaped_cost(line);
        let head = outline_head(&outline, names, HEAD_TOKENS, cost)?;
        let quote = quote(self.renderer, self.cache, &head);
        let cost = section_cost(self.renderer, &file.display_name, SectionDetailLevel::Outline, quote);
        Some((head, cost))
    }

    /// Returns the size of the outline of a file once it is quoted; `None` if it has no outline.
    fn outline_quote(&self, file: &SourceFile) -> Option<QuotedContentSize> {
        let language = Language::of_path(&file.path)?;
        let masking = self.loader.masking_key();
        let key = |hash| QuotedSizeKey::new(hash, self.renderer.format, masking, Some(language));
        if let Some(quote) = file.hash.and_then(key).and_then(|key| self.cache.cached_quote(&key)) {
            return quote;
        }
        let (loaded, read) = self.loader.load_unrecorded(&file.path, MAX_SOURCE_BYTES);
        let outline = outline_text(self.cache, &file.path, &loaded.ok()?.text);
        let quote = outline.map(|outline| quote(self.renderer, self.cache, &outline));
        if let Some(key) = read.and_then(|read| key(read.hash)) {
            self.cache.record_quote(key, quote);
        }
        quote
    }
}

/// Returns the outline of `text`, which is masked and normalised already, with one line feed at its end.
pub(super) fn outline_text(cache: &ContentCache, path: &str, text: &str) -> Option<String> {
    let outline = cache.outline(path, &hash_content(text.as_bytes()), text)?;
    let mut text = outline.text.trim_end().to_owned();
    text.push('\n');
    Some(text)
}
