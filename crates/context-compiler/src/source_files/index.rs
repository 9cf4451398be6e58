//! Facts about the source files of a request that take parsing: their order, their lines and their outlines.

use super::measure::{MAX_SOURCE_BYTES, SourceFile, quote, section_cost};
use crate::cache::{ContentCache, Quote, QuoteKey};
use crate::code::{CodeMap, MappedFile, SurveyOptions, map};
use crate::detail_level::DetailLevel;
use crate::hash::hash_content;
use crate::load::{Loader, MaskedTree};
use crate::outline::Language;
use crate::parallel::{default_threads, map_in_order};
use crate::request::CodeDetail;
use crate::writer::Renderer;
use std::collections::{BTreeSet, HashMap};

/// Bytes of all files above which none is parsed: parsing takes ten times as long as counting.
const MAX_PARSED_BYTES: u64 = 16 * 1024 * 1024;

/// The order, the lines and the outlines of the files. All vectors but `order` are by index of the file.
pub(super) struct FileIndex {
    /// The indices of the files, the most relevant first.
    pub(super) order: Vec<usize>,
    /// The number of files at the beginning of `order` that changed or refer to changed files.
    pub(super) near_changes: usize,
    /// The line of each file in the list, and its tokens.
    pub(super) lines: Vec<(String, usize)>,
    /// The tokens of the section with the outline of each file, if that is shorter than the whole file.
    pub(super) outline_costs: Vec<Option<usize>>,
}

/// The files to index, and how they are read and written.
pub(super) struct IndexedFiles<'a> {
    pub(super) loader: &'a Loader<'a>,
    pub(super) cache: &'a ContentCache,
    pub(super) renderer: Renderer<'a>,
    pub(super) detail: CodeDetail,
    pub(super) files: &'a [SourceFile],
    pub(super) total_bytes: u64,
    pub(super) changed: &'a BTreeSet<String>,
}

impl IndexedFiles<'_> {
    /// Reads and parses the files, unless they are too large together.
    pub(super) fn index(&self) -> FileIndex {
        // With full detail a file is whole or only named, and nothing has to be parsed.
        let parses = self.total_bytes <= MAX_PARSED_BYTES && self.detail != CodeDetail::Full;
        let map = if parses { self.map() } else { CodeMap::default() };
        let (order, near_changes) = self.order(&map);
        let mapped: HashMap<&str, &MappedFile> =
            map.files.iter().map(|file| (file.path.as_str(), file)).collect();
        let lines = self.files.iter().map(|file| {
            let line = file.list_line(mapped.get(file.path.as_str()).copied());
            let cost = self.renderer.escaped_cost(&line);
            (line, cost)
        });
        let lines = lines.collect();
        let outlines = parses && matches!(self.detail, CodeDetail::Auto | CodeDetail::Outline);
        let outline_costs = if outlines { self.outline_costs() } else { vec![None; self.files.len()] };
        FileIndex { order, near_changes, lines, outline_costs }
    }

    fn map(&self) -> CodeMap {
        let paths: Vec<String> = self.files.iter().map(|file| file.path.clone()).collect();
        let changed: Vec<String> = self.changed.iter().cloned().collect();
        // From masked texts, so that no exported name is a secret.
        map(&MaskedTree(self.loader), &paths, &changed, self.cache, &SurveyOptions::default())
    }

    /// Returns the order of the files, and how many at its beginning changed or refer to changed ones: those first, then
    /// the files that others use most, then the rest.
    fn order(&self, map: &CodeMap) -> (Vec<usize>, usize) {
        let indices: HashMap<&str, usize> =
            self.files.iter().enumerate().map(|(index, file)| (file.path.as_str(), index)).collect();
        let mut order: Vec<usize> = Vec::with_capacity(self.files.len());
        let mut is_taken = vec![false; self.files.len()];
        let mut take = |path: &str, order: &mut Vec<usize>| {
            if let Some(&index) = indices.get(path)
                && let Some(is_taken) = is_taken.get_mut(index)
                && !std::mem::replace(is_taken, true)
            {
                order.push(index);
            }
        };
        self.changed.iter().for_each(|path| take(path, &mut order));
        map.referrers.iter().for_each(|referrer| take(&referrer.path, &mut order));
        let near_changes = order.len();
        map.files.iter().for_each(|file| take(&file.path, &mut order));
        self.files.iter().for_each(|file| take(&file.path, &mut order));
        (order, near_changes)
    }

    fn outline_costs(&self) -> Vec<Option<usize>> {
        let (costs, _) = map_in_order(default_threads(), self.files.len(), |(): &mut (), index| {
            let file = self.files.get(index)?;
            let whole = file.whole_cost()?;
            let quote = self.outline_quote(file)?;
            let cost = section_cost(self.renderer, &file.display_name, DetailLevel::Outline, quote);
            // An outline that costs more than the whole file is of use only where nothing else is wanted.
            (cost < whole || self.detail == CodeDetail::Outline).then_some(cost)
        });
        costs
    }

    /// Returns the size of the outline of a file once it is quoted; `None` if it has no outline.
    fn outline_quote(&self, file: &SourceFile) -> Option<Quote> {
        let language = Language::of_path(&file.path)?;
        let masking = self.loader.masking_key();
        let key = |hash| QuoteKey::new(hash, self.renderer.format, masking, Some(language));
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
