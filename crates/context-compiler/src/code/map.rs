//! What each file of a project exports, by how much the others use it.

use super::survey::Options;
use super::{ItemKind, workers};
use crate::cache::{self, Cache};
use crate::source::Tree;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

/// A name that more files define than this says nothing about which one is meant.
const AMBIGUOUS: usize = 8;
/// A shorter name is a word of every text.
const SHORTEST: usize = 3;

/// A project in names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    /// The files, those that others use most first; where that is equal, in byte order.
    pub files: Vec<MapFile>,
    /// Which files mention names that a changed file exports: most names first, then in byte order. The changed
    /// files are not among them.
    pub referrers: Vec<Referrer>,
}

/// One file of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapFile {
    /// Where it is.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// What it exports: what most files mention first, then in byte order.
    pub names: Vec<MapName>,
    /// The sum of its names' weights, in sixteenths of a file that mentions one.
    pub rank: u64,
}

/// A name that a file exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapName {
    /// The name.
    pub name: String,
    /// What it is the name of.
    pub kind: ItemKind,
    /// The line that it is defined on, from 1.
    pub line: usize,
    /// How many other files mention it. 0 where more than 8 files define it, or it is shorter than three letters.
    pub mentioned_in: usize,
}

/// A file that mentions names of changed files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Referrer {
    /// Where it is.
    pub path: String,
    /// Which names, in byte order.
    pub names: Vec<String>,
}

impl fmt::Display for MapFile {
    /// One line: `src/lib.rs (1204 bytes): Server, run`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes)", self.path, self.bytes)?;
        for (at, name) in self.names.iter().enumerate() {
            f.write_str(if at == 0 { ": " } else { ", " })?;
            f.write_str(&name.name)?;
        }
        Ok(())
    }
}

/// What one file exports.
#[derive(Default)]
struct Exports {
    bytes: u64,
    /// By name, and so each once: the first of them.
    names: BTreeMap<String, (ItemKind, usize)>,
}

/// Where a name is defined.
#[derive(Default)]
struct Definition {
    files: Vec<usize>,
    in_changed: bool,
}

/// The map of the files at `paths`, of which those in `changed` have changed.
///
/// A file mentions a name where the name stands in it as a word, in code or comment: a guess that needs no compiler
/// and is right for most names that are worth a place here. What more than one file defines counts for each of
/// them in part. Files are read twice and not kept. Without the feature `outline` no file has names.
pub fn map(tree: &dyn Tree, paths: &[String], changed: &[String], cache: &Cache, options: &Options) -> Map {
    let text = |path: &str| String::from_utf8(tree.read(path, options.file_limit).ok()?.bytes).ok();
    let (exports, _) = workers::in_order(options.threads, paths.len(), |(): &mut (), at| {
        let path = &paths[at];
        let Some(text) = text(path) else {
            return Exports { bytes: tree.stamp(path).map_or(0, |stamp| stamp.size), ..Exports::default() };
        };
        let mut exports = Exports { bytes: text.len() as u64, ..Exports::default() };
        if let Some(outline) = cache.outline(path, &cache::hash(text.as_bytes()), &text) {
            for item in outline.items.iter().filter(|item| item.exported) {
                exports.names.entry(item.name.clone()).or_insert((item.kind, item.line));
            }
        }
        exports
    });
    let changed: BTreeSet<&str> = changed.iter().map(String::as_str).collect();
    let mut definitions: HashMap<&str, Definition> = HashMap::new();
    for (file, Exports { names, .. }) in exports.iter().enumerate() {
        for name in names.keys().filter(|name| name.len() >= SHORTEST) {
            let definition = definitions.entry(name).or_default();
            definition.files.push(file);
            definition.in_changed |= changed.contains(paths[file].as_str());
        }
    }
    definitions.retain(|_, definition| definition.files.len() <= AMBIGUOUS);

    let (referrers, counts) =
        workers::in_order(options.threads, paths.len(), |counts: &mut HashMap<&str, usize>, file| {
            let Some(text) = text(&paths[file]) else { return Vec::new() };
            let mentioned: BTreeSet<&str> = words(&text)
                .filter_map(|word| definitions.get_key_value(word))
                .filter(|(_, definition)| !definition.files.contains(&file))
                .map(|(name, _)| *name)
                .collect();
            for name in &mentioned {
                *counts.entry(name).or_default() += 1;
            }
            mentioned.into_iter().filter(|name| definitions[name].in_changed).map(str::to_owned).collect()
        });
    let count = |name: &str| counts.iter().filter_map(|counts| counts.get(name)).sum::<usize>();

    let mut map = Map::default();
    for (path, Exports { bytes, names }) in paths.iter().zip(&exports) {
        let mut rank = 0;
        let mut weighed: Vec<(u64, MapName)> = Vec::with_capacity(names.len());
        for (name, &(kind, line)) in names {
            let mentioned_in = count(name);
            let defined_in = definitions.get(name.as_str()).map_or(1, |definition| definition.files.len());
            let weight = (mentioned_in * 16 / defined_in) as u64;
            rank += weight;
            weighed.push((weight, MapName { name: name.clone(), kind, line, mentioned_in }));
        }
        // Stable, and the names came in byte order.
        weighed.sort_by_key(|&(weight, _)| std::cmp::Reverse(weight));
        let names = weighed.into_iter().map(|(_, name)| name).collect();
        map.files.push(MapFile { path: path.clone(), bytes: *bytes, names, rank });
    }
    map.files.sort_by(|a, b| b.rank.cmp(&a.rank).then_with(|| a.path.cmp(&b.path)));
    for (path, names) in paths.iter().zip(referrers) {
        if !names.is_empty() && !changed.contains(path.as_str()) {
            map.referrers.push(Referrer { path: path.clone(), names });
        }
    }
    map.referrers.sort_by(|a, b| b.names.len().cmp(&a.names.len()).then_with(|| a.path.cmp(&b.path)));
    map
}

/// The words of `text`, as most languages have them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).filter(|word| word.len() >= SHORTEST)
}

impl fmt::Display for Map {
    /// A line for each file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for file in &self.files {
            writeln!(f, "{file}")?;
        }
        Ok(())
    }
}
