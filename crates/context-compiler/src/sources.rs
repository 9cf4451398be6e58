//! Source files: whole, in outline, or by name, as there is room.

use crate::cache::{self, Cache, ContentHash, Quote};
use crate::code::survey::now_ns;
use crate::code::{self, Language, Map, SurveyOptions, workers};
use crate::error::Error;
use crate::form::{SectionHead, fence_of};
use crate::load::{Loaded, Loader, Masked, Refusal};
use crate::manifest::{Kind, LeftOut, SectionEntry};
use crate::request::Code;
use crate::section::{Item, Page, Pen, Source};
use crate::text::{grouped, sha256, shown_path};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::OnceLock;

/// The largest source file that is quoted, in bytes.
const SOURCE_BYTES: u64 = 512 * 1024;
/// Bytes of all files above which they are not parsed: parsing is ten times slower than counting.
const PARSED_BYTES: u64 = 16 * 1024 * 1024;
/// Exported names in a file's line.
const NAMES: usize = 12;
/// Tokens above which a file waits until smaller ones are whole.
const LARGE_TOKENS: usize = 6_000;

/// The source files of a request.
pub(crate) struct Sources<'a> {
    loader: &'a Loader<'a>,
    cache: &'a Cache,
    pen: Pen<'a>,
    how: Code,
    files: Vec<File>,
    bytes: u64,
    /// What the list of files needs with no file in it.
    around: usize,
    changed: Vec<String>,
    known: OnceLock<Known>,
}

/// One file.
struct File {
    path: String,
    /// The path as it is printed, with secrets masked.
    name: String,
    bytes: u64,
    /// Why it cannot be quoted.
    refused: Option<String>,
    /// What its section needs if it is whole; nothing where it cannot be quoted.
    whole: Option<usize>,
    /// Its content, where that was seen.
    hash: Option<ContentHash>,
}

/// What takes parsing to know, and is not asked for where everything is whole.
struct Known {
    /// Places in `files`, what is read first before the others.
    order: Vec<usize>,
    /// How many of those changed, or refer to what changed.
    near: usize,
    /// By place in `files`: its line in the list, and what that needs.
    lines: Vec<(String, usize)>,
    /// By place in `files`: what its section needs as an outline, where that is less than the whole.
    outlines: Vec<Option<usize>>,
}

/// How much of a file is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Hidden,
    Line,
    Outline,
    Whole,
}

/// What is to be known of a request's source files.
pub(crate) struct Selected<'a> {
    pub(crate) sources: Sources<'a>,
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) diagnostics: Vec<String>,
}

/// The files that `include` and `exclude` mean, but for those at `inside`. Those at `changed` are read first.
#[allow(clippy::too_many_arguments, reason = "each is another part of the request")]
pub(crate) fn select<'a>(
    loader: &'a Loader<'a>,
    cache: &'a Cache,
    pen: Pen<'a>,
    include: &[String],
    exclude: &[String],
    how: Code,
    inside: &[&str],
    changed: Vec<String>,
) -> Result<Option<Selected<'a>>, Error> {
    if include.is_empty() {
        return Ok(None);
    }
    let selection = code::select(loader.tree, include, exclude, &code::SelectOptions::default())
        .map_err(|error| Error::argument("include", format!("cannot be used: {error}")))?;
    let mut left_out: Vec<LeftOut> =
        selection.missing.iter().map(|path| LeftOut::told(path, "missing")).collect();
    left_out.extend(selection.left_out.iter().map(|left| {
        let reason = match left.reason {
            code::Reason::SensitiveName => "its name says that it holds secrets",
            code::Reason::Link => "a link; what it leads to is there under its own name",
            code::Reason::NotRegular => "no regular file",
            code::Reason::Unreadable => "cannot be read",
        };
        LeftOut::untold(&left.path, reason)
    }));
    let paths: Vec<String> =
        selection.files.into_iter().filter(|path| !inside.contains(&path.as_str())).collect();
    let mut diagnostics = Vec::new();
    if selection.ignored > 0 {
        let ignored = grouped(selection.ignored);
        diagnostics.push(format!("{ignored} files and folders are ignored or excluded"));
    }
    // The texts are not kept: memory does not grow with the project.
    let now = now_ns();
    let (files, _) = workers::in_order(workers::default_threads(), paths.len(), |(): &mut (), at| {
        let path = paths.get(at).cloned().unwrap_or_default();
        let name = loader.name(&path).into_owned();
        if let Some(file) = unchanged(loader, cache, pen, &path, &name) {
            return file;
        }
        let (loaded, seen) = loader.load_apart(&path, SOURCE_BYTES);
        let bytes = seen.as_ref().map_or(0, |seen| seen.stamp.size);
        let hash = seen.as_ref().map(|seen| seen.hash);
        match loaded {
            Ok(loaded) => {
                let quote = quote(pen, cache, &loaded.text);
                if let (Some(seen), Some(masks)) = (&seen, loader.masks()) {
                    cache.remember_quote((seen.hash, pen.format as u8, masks, None), Some(quote));
                    if !seen.unstable {
                        cache.remember(&path, &seen.stamp, now, seen.hash);
                    }
                }
                let whole = Some(section_cost(pen, &name, None, quote));
                File { path, name, bytes, refused: None, whole, hash }
            }
            Err(refusal) => {
                let refused = match refusal {
                    Refusal::NotFound => "gone".to_owned(),
                    Refusal::Because(reason) => reason,
                };
                File { path, name, bytes, refused: Some(refused), whole: None, hash }
            }
        }
    });
    for file in &files {
        if let Some(reason) = &file.refused {
            left_out.push(LeftOut::untold(&file.path, reason));
        }
    }
    let bytes = files.iter().map(|file| file.bytes).sum();
    let mut sources =
        Sources { loader, cache, pen, how, files, bytes, around: 0, changed, known: OnceLock::new() };
    sources.around = sources.list_cost();
    Ok(Some(Selected { sources, left_out, diagnostics }))
}

/// What the cache knows of a file that is as it was, without reading it.
fn unchanged(loader: &Loader<'_>, cache: &Cache, pen: Pen<'_>, path: &str, name: &str) -> Option<File> {
    let masks = loader.masks()?;
    if !cache.has_seen(path) {
        return None;
    }
    let stamp = loader.tree.stamp(path).ok().filter(|stamp| stamp.size <= SOURCE_BYTES)?;
    let hash = cache.content_of(path, &stamp)?;
    let quote = cache.quote(&(hash, pen.format as u8, masks, None))??;
    let whole = Some(section_cost(pen, name, None, quote));
    Some(File {
        path: path.to_owned(),
        name: name.to_owned(),
        bytes: stamp.size,
        refused: None,
        whole,
        hash: Some(hash),
    })
}

/// What it takes to quote `text`.
fn quote(pen: Pen<'_>, cache: &Cache, text: &str) -> Quote {
    Quote { fence: fence_of(text), tokens: cache.tokens(&pen.format.escape(text)) }
}

/// What a section needs in which that is quoted.
fn section_cost(pen: Pen<'_>, path: &str, level: Option<&str>, quote: Quote) -> usize {
    let head = SectionHead { path, language: language(path), level, fence: quote.fence };
    pen.counter.count(&pen.format.section_open(&head, 1))
        + quote.tokens
        + pen.counter.count(&pen.format.section_close(&head))
}

fn language(path: &str) -> &'static str {
    match Language::of(path) {
        Some(language) => language.name(),
        None if path.ends_with(".md") => "markdown",
        None => "text",
    }
}

const LIST: SectionHead<'_> =
    SectionHead { path: "source files", language: "text", level: Some("map"), fence: 3 };
const OUTLINE: &str = "outline";

impl Sources<'_> {
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    fn first_line(&self) -> String {
        format!(
            "{} files, {} bytes\n",
            grouped(self.files.len()),
            grouped(usize::try_from(self.bytes).unwrap_or(0))
        )
    }

    fn list_cost(&self) -> usize {
        let cost = |text: &str| self.pen.counter.count(text);
        let format = self.pen.format;
        cost(&format.section_open(&LIST, 1))
            + cost(&format.section_close(&LIST))
            + self.pen.cost(&self.first_line())
            + self.pen.cost(&more(9_999_999))
            + 1
    }

    fn load(&self, file: &File) -> Option<Loaded> {
        self.loader.load(&file.path, SOURCE_BYTES).ok()
    }

    /// Order, lines and outlines.
    fn known(&self) -> &Known {
        self.known.get_or_init(|| {
            let parses = self.bytes <= PARSED_BYTES && self.how != Code::Full;
            let map = match parses {
                true => {
                    let paths: Vec<String> = self.files.iter().map(|file| file.path.clone()).collect();
                    code::map(
                        &Masked(self.loader),
                        &paths,
                        &self.changed,
                        self.cache,
                        &SurveyOptions::default(),
                    )
                }
                false => Map::default(),
            };
            let place: HashMap<&str, usize> =
                self.files.iter().enumerate().map(|(at, file)| (file.path.as_str(), at)).collect();
            let changed: BTreeSet<&str> = self.changed.iter().map(String::as_str).collect();
            let mut order: Vec<usize> = Vec::with_capacity(self.files.len());
            let mut taken = vec![false; self.files.len()];
            let near_paths =
                changed.iter().copied().chain(map.referrers.iter().map(|other| other.path.as_str()));
            let mut take = |path: &str, order: &mut Vec<usize>| {
                if let Some(&at) = place.get(path)
                    && let Some(taken) = taken.get_mut(at)
                    && !std::mem::replace(taken, true)
                {
                    order.push(at);
                }
            };
            near_paths.for_each(|path| take(path, &mut order));
            let near = order.len();
            map.files.iter().for_each(|file| take(&file.path, &mut order));
            self.files.iter().for_each(|file| take(&file.path, &mut order));

            let names: HashMap<&str, &code::MapFile> =
                map.files.iter().map(|file| (file.path.as_str(), file)).collect();
            let lines = self.files.iter().map(|file| {
                let line = line(file, names.get(file.path.as_str()).copied());
                let cost = self.pen.cost(&line);
                (line, cost)
            });
            let lines = lines.collect();
            let wants = parses && matches!(self.how, Code::Auto | Code::Outline);
            let (outlines, _) = workers::in_order(
                if wants { workers::default_threads() } else { 1 },
                self.files.len(),
                |(): &mut (), at| {
                    let file = self.files.get(at).filter(|_| wants)?;
                    let whole = file.whole?;
                    let quote = self.quote_of_outline(file)?;
                    let cost = section_cost(self.pen, &file.name, Some(OUTLINE), quote);
                    (cost < whole || self.how == Code::Outline).then_some(cost)
                },
            );
            Known { order, near, lines, outlines }
        })
    }

    /// What it takes to quote the outline of a file, if it has one.
    fn quote_of_outline(&self, file: &File) -> Option<Quote> {
        let language = Language::of(&file.path)?;
        let masks = self.loader.masks();
        let key = |hash| Some((hash, self.pen.format as u8, masks?, Some(language)));
        if let Some(known) = file.hash.and_then(key).and_then(|key| self.cache.quote(&key)) {
            return known;
        }
        let (loaded, seen) = self.loader.load_apart(&file.path, SOURCE_BYTES);
        let outline = self.outline(&file.path, &loaded.ok()?.text);
        let quote = outline.map(|outline| quote(self.pen, self.cache, &outline));
        if let Some(key) = seen.and_then(|seen| key(seen.hash)) {
            self.cache.remember_quote(key, quote);
        }
        quote
    }

    /// The outline of `text`, which is masked and normalised already.
    fn outline(&self, path: &str, text: &str) -> Option<String> {
        let outline = self.cache.outline(path, &cache::hash(text.as_bytes()), text)?;
        let mut text = outline.text.trim_end().to_owned();
        text.push('\n');
        Some(text)
    }

    /// The steps from nothing to everything: which file gets to which level.
    fn steps(&self, known: &Known) -> Vec<(usize, Level)> {
        let (near, far) = known.order.split_at_checked(known.near).unwrap_or((&known.order, &[]));
        let is_large =
            |at: &usize| self.files.get(*at).and_then(|file| file.whole).unwrap_or(0) > LARGE_TOKENS;
        let outlines = |places: &[usize]| {
            let has = |at: &&usize| known.outlines.get(**at).is_some_and(Option::is_some);
            places.iter().filter(has).map(|at| (*at, Level::Outline)).collect::<Vec<_>>()
        };
        let wholes = |places: &[usize], large: bool| {
            let can = |at: &&usize| {
                self.files.get(**at).is_some_and(|file| file.whole.is_some()) && is_large(at) == large
            };
            let may = matches!(self.how, Code::Auto | Code::Full);
            places.iter().filter(can).filter(|_| may).map(|at| (*at, Level::Whole)).collect::<Vec<_>>()
        };
        let lines = known.order.iter().map(|at| (*at, Level::Line)).collect();
        [
            lines,
            outlines(near),
            wholes(near, false),
            outlines(far),
            wholes(far, false),
            wholes(near, true),
            wholes(far, true),
        ]
        .concat()
    }

    fn cost(&self, known: &Known, at: usize, level: Level) -> usize {
        match level {
            Level::Hidden => 0,
            Level::Line => known.lines.get(at).map_or(0, |(_, cost)| *cost),
            Level::Outline => known.outlines.get(at).copied().flatten().unwrap_or_default(),
            Level::Whole => self.files.get(at).and_then(|file| file.whole).unwrap_or_default(),
        }
    }

    /// How many of `steps` there is room for in `tokens`.
    fn enough(&self, tokens: usize, known: &Known, steps: &[(usize, Level)]) -> usize {
        let mut levels = vec![Level::Hidden; self.files.len()];
        let mut cost = self.around;
        let mut enough = 0;
        for (taken, (at, level)) in steps.iter().enumerate() {
            if let Some(before) = levels.get_mut(*at) {
                cost = cost + self.cost(known, *at, *level) - self.cost(known, *at, *before);
                *before = *level;
            }
            if cost <= tokens {
                enough = taken + 1;
            }
        }
        enough
    }

    /// The level of each file: as many steps as `tokens` allow.
    fn levels(&self, tokens: usize, known: &Known) -> Vec<Level> {
        let steps = self.steps(known);
        let enough = self.enough(tokens, known, &steps);
        let mut levels = vec![Level::Hidden; self.files.len()];
        for (at, level) in steps.into_iter().take(enough) {
            if let Some(reached) = levels.get_mut(at) {
                *reached = level;
            }
        }
        levels
    }

    /// Whether every file is whole with `tokens`, which needs no parsing to know.
    fn all_whole(&self, tokens: usize) -> bool {
        matches!(self.how, Code::Auto | Code::Full)
            && tokens >= self.most()
            && self.files.iter().all(|file| file.whole.is_some())
    }

    fn write_list(&self, levels: &[Level], known: Option<&Known>, page: &mut Page<'_>) {
        let mut text = self.first_line();
        let hidden = levels.iter().filter(|level| **level == Level::Hidden).count();
        if let Some(known) = known {
            for at in known.order.iter().filter(|at| levels.get(**at) == Some(&Level::Line)) {
                text.push_str(known.lines.get(*at).map_or("", |(line, _)| line));
            }
        }
        if hidden > 0 {
            text.push_str(&more(hidden));
        }
        let entry = SectionEntry {
            path: LIST.path.to_owned(),
            kind: Kind::Map,
            why: "source files that are not whole".to_owned(),
            sha256: sha256(text.as_bytes()),
            source_bytes: text.len() as u64,
            truncated: hidden > 0,
            level: "map",
            pieces_left_out: hidden,
            encoding: "utf-8",
            ..SectionEntry::default()
        };
        page.section(&LIST, &page.pen.format.escape(&text), entry);
    }

    fn write_file(&self, file: &File, level: Level, page: &mut Page<'_>) {
        let Some(loaded) = self.load(file) else { return };
        let Source { bytes, sha256, encoding, bidirectional, unstable, redactions } = loaded.source;
        let (text, level) = match level {
            Level::Outline => match self.outline(&file.path, &loaded.text) {
                Some(outline) => (outline, Some(OUTLINE)),
                None => return,
            },
            _ => (loaded.text, None),
        };
        let head =
            SectionHead { path: &file.name, language: language(&file.name), level, fence: fence_of(&text) };
        let is_changed = self.changed.contains(&file.path);
        let entry = SectionEntry {
            path: file.name.clone(),
            kind: Kind::Code,
            why: if is_changed { "included, and changed" } else { "included" }.to_owned(),
            sha256,
            source_bytes: bytes,
            truncated: level.is_some(),
            level: level.unwrap_or("full"),
            redactions,
            encoding,
            bidirectional,
            unstable,
            ..SectionEntry::default()
        };
        page.section(&head, &page.pen.format.escape(&text), entry);
    }
}

impl Item for Sources<'_> {
    fn least(&self) -> usize {
        self.around
    }

    fn most(&self) -> usize {
        let whole: usize = match self.how {
            // What is whole is not in the list.
            Code::Auto | Code::Full => self.files.iter().filter_map(|file| file.whole).sum(),
            Code::Outline | Code::Map => 0,
        };
        let refused = self.files.iter().filter(|file| file.whole.is_none());
        let lines: usize = match self.how {
            Code::Auto | Code::Full => refused.map(|file| self.pen.cost(&line(file, None))).sum(),
            Code::Outline | Code::Map => {
                let known = self.known();
                let cost =
                    |at: usize| self.cost(known, at, Level::Line).max(self.cost(known, at, Level::Outline));
                (0..self.files.len()).map(cost).sum()
            }
        };
        self.around + whole + lines
    }

    fn weight(&self) -> usize {
        3
    }

    fn level(&self, tokens: usize) -> usize {
        if self.all_whole(tokens) {
            return usize::MAX;
        }
        let known = self.known();
        self.enough(tokens, known, &self.steps(known))
    }

    fn write(&self, tokens: usize, page: &mut Page<'_>) {
        let (levels, known) = if self.all_whole(tokens) {
            (vec![Level::Whole; self.files.len()], None)
        } else {
            let known = self.known();
            (self.levels(tokens, known), Some(known))
        };
        for (file, level) in self.files.iter().zip(&levels) {
            if matches!(level, Level::Outline | Level::Whole) {
                self.write_file(file, *level, page);
            }
        }
        // Its totals change with each file.
        self.write_list(&levels, known, page);
    }
}

/// A file by name: `src/lib.rs (1,204 bytes): Server, run`.
fn line(file: &File, map: Option<&code::MapFile>) -> String {
    let mut line = shown_path(&file.name).into_owned();
    let _ = match &file.refused {
        Some(reason) => write!(line, " ({reason})"),
        None => write!(line, " ({} bytes)", grouped(usize::try_from(file.bytes).unwrap_or(0))),
    };
    let names = map.map(|map| map.names.as_slice()).unwrap_or_default();
    for (at, name) in names.iter().take(NAMES).enumerate() {
        line.push_str(if at == 0 { ": " } else { ", " });
        line.push_str(&shown_path(&name.name));
    }
    if names.len() > NAMES {
        line.push_str(", …");
    }
    line.push('\n');
    line
}

fn more(count: usize) -> String {
    format!("… and {} more files\n", grouped(count))
}
