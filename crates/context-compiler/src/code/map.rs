//! A map of a project: what each file exports, ordered by how much the others use it.

use super::survey::SurveyOptions;
use crate::cache::ContentCache;
use crate::hash::hash_content;
use crate::outline::SymbolKind;
use crate::parallel::map_in_order;
use crate::source::SourceTree;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

/// The most files that define a name which still tells one file from another.
const MAX_DEFINING_FILES: usize = 8;
/// The shortest name that counts, in bytes. Shorter ones are words of every text.
const MIN_NAME_BYTES: usize = 3;
/// The weight of one file that mentions a name. A name that several files define divides it between them.
const MENTION_WEIGHT: usize = 16;

/// The names that the files of a project export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeMap {
    /// The files. The files that other files use most come first; files of equal rank are in byte order.
    pub files: Vec<MappedFile>,
    /// The files that mention names which a changed file exports, without the changed files themselves. Those with most
    /// names come first, then in byte order.
    pub referrers: Vec<ReferringFile>,
}

/// One file of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedFile {
    /// The path of the file.
    pub path: String,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The names that the file exports. Those that most files mention come first, then in byte order.
    pub names: Vec<ExportedName>,
    /// The sum of the weights of its names. A weight is the number of files that mention the name, in sixteenths, divided
    /// by the number of files that define it.
    pub rank: u64,
}

/// A name that a file exports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportedName {
    /// The name.
    pub name: String,
    /// The kind of symbol that it names.
    pub kind: SymbolKind,
    /// The line on which it is defined, from 1.
    pub line: usize,
    /// The number of other files that mention it; 0 if more than 8 files define it or it is shorter than three bytes.
    pub mentioned_in: usize,
}

/// A file that mentions names which a changed file exports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReferringFile {
    /// The path of the file.
    pub path: String,
    /// The names that it mentions, in byte order.
    pub names: Vec<String>,
}

impl fmt::Display for MappedFile {
    /// Writes one line: `src/lib.rs (1204 bytes): Server, run`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes)", self.path, self.bytes)?;
        for (index, name) in self.names.iter().enumerate() {
            f.write_str(if index == 0 { ": " } else { ", " })?;
            f.write_str(&name.name)?;
        }
        Ok(())
    }
}

/// The names that one file exports.
#[derive(Default)]
struct FileExports {
    bytes: u64,
    /// Kind and line of each name. Of several symbols of one name the first counts.
    names: BTreeMap<String, (SymbolKind, usize)>,
}

/// The files that define a name.
#[derive(Default)]
struct NameDefinitions {
    /// Indices of the files.
    files: Vec<usize>,
    in_changed_file: bool,
}

/// Returns the map of the files at `paths`, of which those at `changed` have changed.
///
/// A file mentions a name if it contains the name as a word, in code or in a comment. The search for words is an
/// approximation that needs no compiler and is right for most names. A name that several files define counts for each
/// of them in part. Files are read twice and not kept in memory. Without the feature `outline` no file has names.
pub fn map(
    tree: &dyn SourceTree,
    paths: &[String],
    changed: &[String],
    cache: &ContentCache,
    options: &SurveyOptions,
) -> CodeMap {
    let text = |path: &str| String::from_utf8(tree.read(path, options.max_file_bytes).ok()?.bytes).ok();
    let exports = read_exports(tree, paths, cache, options, text);
    let changed: BTreeSet<&str> = changed.iter().map(String::as_str).collect();
    let definitions = find_definitions(paths, &exports, &changed);
    let (mentions_of_changed, counts) =
        map_in_order(options.threads, paths.len(), |counts: &mut HashMap<&str, usize>, file| {
            let Some(text) = text(&paths[file]) else { return Vec::new() };
            let mentioned: BTreeSet<&str> = words(&text)
                .filter_map(|word| definitions.get_key_value(word))
                // A file that defines the name does not refer to another by it.
                .filter(|(_, definition)| !definition.files.contains(&file))
                .map(|(name, _)| *name)
                .collect();
            for name in &mentioned {
                *counts.entry(name).or_default() += 1;
            }
            let of_changed = mentioned.into_iter().filter(|name| definitions[name].in_changed_file);
            of_changed.map(str::to_owned).collect()
        });
    // Each thread has counted by itself; the sum does not depend on which thread had which file.
    let mention_count = |name: &str| counts.iter().filter_map(|counts| counts.get(name)).sum::<usize>();

    let mut map = CodeMap::default();
    for (path, FileExports { bytes, names }) in paths.iter().zip(&exports) {
        let mut rank = 0;
        let mut weighted: Vec<(u64, ExportedName)> = Vec::with_capacity(names.len());
        for (name, &(kind, line)) in names {
            let mentioned_in = mention_count(name);
            let defined_in = definitions.get(name.as_str()).map_or(1, |definition| definition.files.len());
            let weight = (mentioned_in * MENTION_WEIGHT / defined_in) as u64;
            rank += weight;
            weighted.push((weight, ExportedName { name: name.clone(), kind, line, mentioned_in }));
        }
        // The sort is stable and the names are in byte order, so names of equal weight stay in byte order.
        weighted.sort_by_key(|&(weight, _)| std::cmp::Reverse(weight));
        let names = weighted.into_iter().map(|(_, name)| name).collect();
        map.files.push(MappedFile { path: path.clone(), bytes: *bytes, names, rank });
    }
    map.files.sort_by(|a, b| b.rank.cmp(&a.rank).then_with(|| a.path.cmp(&b.path)));
    for (path, names) in paths.iter().zip(mentions_of_changed) {
        if !names.is_empty() && !changed.contains(path.as_str()) {
            map.referrers.push(ReferringFile { path: path.clone(), names });
        }
    }
    map.referrers.sort_by(|a, b| b.names.len().cmp(&a.names.len()).then_with(|| a.path.cmp(&b.path)));
    map
}

/// Returns what each of the files exports.
fn read_exports(
    tree: &dyn SourceTree,
    paths: &[String],
    cache: &ContentCache,
    options: &SurveyOptions,
    text: impl Fn(&str) -> Option<String> + Sync,
) -> Vec<FileExports> {
    let (exports, _) = map_in_order(options.threads, paths.len(), |(): &mut (), index| {
        let path = &paths[index];
        let Some(text) = text(path) else {
            return FileExports {
                bytes: tree.state(path).map_or(0, |state| state.size),
                ..FileExports::default()
            };
        };
        let mut exports = FileExports { bytes: text.len() as u64, ..FileExports::default() };
        if let Some(outline) = cache.outline(path, &hash_content(text.as_bytes()), &text) {
            for symbol in outline.symbols.iter().filter(|symbol| symbol.exported) {
                exports.names.entry(symbol.name.clone()).or_insert((symbol.kind, symbol.line));
            }
        }
        exports
    });
    exports
}

/// Returns the definitions of the names that tell one file from another.
fn find_definitions<'a>(
    paths: &[String],
    exports: &'a [FileExports],
    changed: &BTreeSet<&str>,
) -> HashMap<&'a str, NameDefinitions> {
    let mut definitions: HashMap<&str, NameDefinitions> = HashMap::new();
    for (file, FileExports { names, .. }) in exports.iter().enumerate() {
        for name in names.keys().filter(|name| name.len() >= MIN_NAME_BYTES) {
            let definition = definitions.entry(name).or_default();
            definition.files.push(file);
            definition.in_changed_file |= changed.contains(paths[file].as_str());
        }
    }
    // Names such as `new` or `main` are defined in many files and would connect all of them.
    definitions.retain(|_, definition| definition.files.len() <= MAX_DEFINING_FILES);
    definitions
}

/// Returns the words of `text` that can be names in most languages.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
        .filter(|word| word.len() >= MIN_NAME_BYTES)
}

impl fmt::Display for CodeMap {
    /// Writes one line for each file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for file in &self.files {
            writeln!(f, "{file}")?;
        }
        Ok(())
    }
}
