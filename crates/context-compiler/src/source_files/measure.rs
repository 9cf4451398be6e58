//! One source file, and what it costs to quote it.

use crate::cache::{ContentCache, QuotedContentSize, QuotedSizeKey};
use crate::clock::now_ns;
use crate::decoded_text::{display_path, group_digits};
use crate::detail_level::SectionDetailLevel;
use crate::format::{SectionHeading, fence_len};
use crate::hash::ContentHash;
use crate::load::{FileLoader, SourceLoadError};
use crate::outline::Language;
use crate::parallel::{default_threads, map_in_order};
use crate::writer::SectionRenderer;
use std::fmt::Write as _;

/// The largest source file that is quoted, in bytes.
pub(super) const MAX_SOURCE_BYTES: u64 = 512 * 1024;
/// The most exported names in the line of a file.
const MAX_LISTED_NAMES: usize = 12;

/// A source file that was measured. Its text is not kept, so that memory does not grow with the project.
pub(super) struct SourceFile {
    pub(super) path: String,
    /// The path with its secrets masked, as it is printed.
    pub(super) display_name: String,
    pub(super) bytes: u64,
    /// The content of the file, if it was read or is known.
    pub(super) hash: Option<ContentHash>,
    pub(super) quotability: FileQuotability,
}

/// The result of measuring a file.
pub(super) enum FileQuotability {
    /// The file can be quoted; its section needs this many tokens.
    Tokens(usize),
    /// The file cannot be quoted, for this reason.
    Refused(String),
}

impl SourceFile {
    /// Returns the tokens of the section with the whole file; `None` if it cannot be quoted.
    pub(super) fn whole_cost(&self) -> Option<usize> {
        match self.quotability {
            FileQuotability::Tokens(tokens) => Some(tokens),
            FileQuotability::Refused(_) => None,
        }
    }

    /// Returns the line of the file in a list: `src/lib.rs (1,204 bytes): Server, run`.
    pub(super) fn list_line(&self, names: &[String]) -> String {
        let mut line = display_path(&self.display_name).into_owned();
        let _ = match &self.quotability {
            FileQuotability::Refused(reason) => write!(line, " ({reason})"),
            FileQuotability::Tokens(_) => {
                write!(line, " ({} bytes)", group_digits(usize::try_from(self.bytes).unwrap_or(0)))
            }
        };
        for (index, name) in names.iter().take(MAX_LISTED_NAMES).enumerate() {
            line.push_str(if index == 0 { ": " } else { ", " });
            line.push_str(&display_path(name));
        }
        if names.len() > MAX_LISTED_NAMES {
            line.push_str(", …");
        }
        line.push('\n');
        line
    }
}

/// Measures the files at `paths`, on several threads.
pub(super) fn measure_files(
    loader: &FileLoader<'_>,
    cache: &ContentCache,
    renderer: SectionRenderer<'_>,
    paths: &[String],
) -> Vec<SourceFile> {
    // Taken before any file is read: an index entry must not claim a later look than there was.
    let started_ns = now_ns();
    let (files, _) = map_in_order(default_threads(), paths.len(), |(): &mut (), index| {
        let path = paths.get(index).cloned().unwrap_or_default();
        let display_name = loader.mask_name(&path).into_owned();
        unchanged_file(loader, cache, renderer, &path, &display_name)
            .unwrap_or_else(|| read_file(loader, cache, renderer, path, display_name, started_ns))
    });
    files
}

/// Measures a file by reading it, and records it in the cache.
fn read_file(
    loader: &FileLoader<'_>,
    cache: &ContentCache,
    renderer: SectionRenderer<'_>,
    path: String,
    display_name: String,
    started_ns: i128,
) -> SourceFile {
    let (loaded, file) = loader.load_unrecorded(&path, MAX_SOURCE_BYTES);
    let quotability = match loaded {
        Ok(loaded) => {
            let quote = quote(renderer, cache, &loaded.text);
            if let Some(file) = &file
                && let Some(key) = QuotedSizeKey::new(file.hash, renderer.format, loader.masking_key(), None)
            {
                cache.record_quote(key, Some(quote));
                if !file.unstable {
                    cache.record_index_entry(&path, &file.state, started_ns, file.hash);
                }
            }
            FileQuotability::Tokens(section_cost(renderer, &display_name, SectionDetailLevel::Full, quote))
        }
        // It was there when the folder was listed.
        Err(SourceLoadError::NotFound) => FileQuotability::Refused("gone".to_owned()),
        Err(error) => FileQuotability::Refused(error.to_string()),
    };
    let bytes = file.as_ref().map_or(0, |file| file.state.size);
    SourceFile { path, display_name, bytes, hash: file.map(|file| file.hash), quotability }
}

/// Returns what the cache knows about a file that has not changed, without reading it.
fn unchanged_file(
    loader: &FileLoader<'_>,
    cache: &ContentCache,
    renderer: SectionRenderer<'_>,
    path: &str,
    display_name: &str,
) -> Option<SourceFile> {
    if !cache.has_index_entry(path) {
        return None;
    }
    let state = loader.tree.state(path).ok().filter(|state| state.size <= MAX_SOURCE_BYTES)?;
    let hash = cache.indexed_hash(path, &state)?;
    let key = QuotedSizeKey::new(hash, renderer.format, loader.masking_key(), None)?;
    let quote = cache.cached_quote(&key)??;
    let tokens = section_cost(renderer, display_name, SectionDetailLevel::Full, quote);
    Some(SourceFile {
        path: path.to_owned(),
        display_name: display_name.to_owned(),
        bytes: state.size,
        hash: Some(hash),
        quotability: FileQuotability::Tokens(tokens),
    })
}

/// Returns the size of `text` once it is quoted.
pub(super) fn quote(renderer: SectionRenderer<'_>, cache: &ContentCache, text: &str) -> QuotedContentSize {
    QuotedContentSize { fence_len: fence_len(text), tokens: cache.tokens(&renderer.format.escape(text)) }
}

/// Returns the tokens of a section that contains `quote`.
pub(super) fn section_cost(
    renderer: SectionRenderer<'_>,
    path: &str,
    level: SectionDetailLevel,
    quote: QuotedContentSize,
) -> usize {
    let heading = SectionHeading { path, language: fence_language(path), level, fence_len: quote.fence_len };
    renderer.frame_cost(&heading) + quote.tokens
}

/// Returns the language that Markdown's fence names for the file at `path`.
pub(super) fn fence_language(path: &str) -> &'static str {
    match Language::of_path(path) {
        Some(language) => language.name(),
        None if path.ends_with(".md") => "markdown",
        None => "text",
    }
}
