//! The order of the source files: what changed, what failures and changes refer to, what matches the task, and what is
//! connected with those in the graph of definitions and references.

use super::measure::{FileQuotability, MAX_SOURCE_BYTES, SourceFile};
use super::mentions::ProjectPathIndex;
use super::task_words::{TaskMatches, TaskWords, identifiers};
use crate::cache::ContentCache;
use crate::changes::RepositoryChanges;
use crate::code::reference_graph::{FileReferences, ReferenceGraph};
use crate::hash::hash_content;
use crate::load::FileLoader;
use crate::parallel::{default_threads, map_in_order};
use std::collections::{BTreeMap, BTreeSet};

/// The most files that are taken for what changes and failures refer to.
const MAX_REFERENCED_FILES: usize = 12;
/// The most bytes of a text without a grammar whose words are counted.
const MAX_PROSE_BYTES: usize = 256 * 1024;

// The weights of the seeds from which the walk through the graph starts.
const CHANGED_SEED: f64 = 6.0;
const FAILURE_SEED: f64 = 6.0;
const REFERENCED_SEED: f64 = 1.5;
const TASK_SEED: f64 = 8.0;
const ENTRY_POINT_SEED: f64 = 0.05;
/// The weight of a name for each word of the task in it, beside the weight of its uses.
const TASK_NAME_WEIGHT: f64 = 40.0;
/// The part of a match with the task that counts directly, beside the walk.
const DIRECT_TASK_WEIGHT: f64 = 0.6;

/// The reason why a file is in the document, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum InclusionReason {
    Changed,
    NamedByFailures,
    UsedByChanges,
    MatchesTask,
    EntryPoint,
    Neighbour,
    Unrelated,
}

impl InclusionReason {
    /// Returns the reason in words, for the manifest.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::NamedByFailures => "the failures name it",
            Self::UsedByChanges => "defines what the changes or failures use",
            Self::MatchesTask => "matches the task",
            Self::EntryPoint => "entry point",
            Self::Neighbour => "connected by definitions and references",
            Self::Unrelated => "included",
        }
    }
}

/// The request for a ranking.
pub(super) struct RankingRequest<'a> {
    pub(super) loader: &'a FileLoader<'a>,
    pub(super) cache: &'a ContentCache,
    pub(super) files: &'a [SourceFile],
    pub(super) task: Option<&'a str>,
    pub(super) failures: Option<&'a str>,
    pub(super) changes: Option<&'a RepositoryChanges>,
    pub(super) changed: &'a BTreeSet<String>,
}

/// The order of the files. All vectors but `order` are by index of the file.
pub(super) struct SourceFileRanking {
    /// The indices of the files, the most relevant first.
    pub(super) order: Vec<usize>,
    pub(super) reasons: Vec<InclusionReason>,
    /// The names that each file exports, those that others use most first.
    pub(super) exported: Vec<Vec<String>>,
    /// The names that each file defines, in the same order.
    pub(super) names: Vec<Vec<String>>,
    /// True if changes, failures or a task say which files are wanted.
    pub(super) is_directed: bool,
}

/// The facts that one reading of a file gives.
#[derive(Default)]
struct SourceFileSignals {
    references: FileReferences,
    exported: Vec<String>,
    matches: TaskMatches,
}

impl RankingRequest<'_> {
    /// Returns the order of the files, which are read and parsed if `reads` is true; else only their paths count.
    pub(super) fn rank(&self, reads: bool) -> SourceFileRanking {
        let task = TaskWords::of(self.task.unwrap_or_default());
        let (signals, _) = map_in_order(default_threads(), self.files.len(), |(): &mut (), index| {
            self.files.get(index).map(|file| self.signals(file, &task, reads)).unwrap_or_default()
        });
        let (mut references, mut exported, mut matches) = (Vec::new(), Vec::new(), Vec::new());
        for file in signals {
            references.push(file.references);
            exported.push(file.exported);
            matches.push(file.matches);
        }
        let focus = self.focus_names();
        let graph = ReferenceGraph::new(&references, |name| focus.contains(name) || task.has_name(name));
        let mut reasons = vec![InclusionReason::Unrelated; self.files.len()];
        let seeds = self.seeds(&graph, &focus, &task, &matches, &mut reasons);
        let is_directed = reasons.iter().any(|reason| *reason < InclusionReason::EntryPoint);
        let ranks = match is_directed {
            true => graph.rank(&seeds.walk),
            // Nothing says what is wanted, so what most others use comes first.
            false => graph.rank(&seeds.walk.iter().map(|seed| seed + ENTRY_POINT_SEED).collect::<Vec<_>>()),
        };
        let scores: Vec<f64> = ranks
            .iter()
            .zip(&seeds.direct)
            .map(|(rank, direct)| rank + direct * DIRECT_TASK_WEIGHT)
            .collect();
        for (reason, rank) in reasons.iter_mut().zip(&ranks) {
            if *reason == InclusionReason::Unrelated && *rank > 0.0 {
                *reason = InclusionReason::Neighbour;
            }
        }
        let mut order: Vec<usize> = (0..self.files.len()).collect();
        // Files of one score stay in the order of their paths.
        let score = |index: usize| scores.get(index).copied().unwrap_or_default();
        order.sort_by(|a, b| score(*b).total_cmp(&score(*a)));
        let mut names: Vec<Vec<String>> = references.iter().map(|file| file.definitions.clone()).collect();
        for (index, weights) in graph.name_weights.iter().enumerate() {
            let weight = |name: &String| {
                let used = weights.get(name.as_str()).copied().unwrap_or_default();
                used + task.relevance(name) * TASK_NAME_WEIGHT
            };
            for names in [names.get_mut(index), exported.get_mut(index)].into_iter().flatten() {
                // The sort is stable, so names of equal weight stay in the order of the file.
                names.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
            }
        }
        SourceFileRanking { order, reasons, exported, names, is_directed }
    }

    fn signals(&self, file: &SourceFile, task: &TaskWords, reads: bool) -> SourceFileSignals {
        let mut signals = SourceFileSignals::default();
        if !reads || matches!(file.quotability, FileQuotability::Refused(_)) {
            signals.matches = task.matches(&file.path, &[], "");
            return signals;
        }
        // The masked text, so that no exported name is a secret.
        let (loaded, _) = self.loader.load_unrecorded(&file.path, MAX_SOURCE_BYTES);
        let Ok(loaded) = loaded else { return signals };
        let text = &loaded.text;
        match self.cache.outline(&file.path, &hash_content(text.as_bytes()), text) {
            Some(outline) => {
                let mut seen = BTreeSet::new();
                for symbol in &outline.symbols {
                    if seen.insert(&symbol.name) {
                        signals.references.definitions.push(symbol.name.clone());
                        if symbol.exported {
                            signals.exported.push(symbol.name.clone());
                        }
                    }
                }
                signals.references.identifiers = outline.identifiers.clone();
            }
            None if text.len() <= MAX_PROSE_BYTES => signals.references.identifiers = prose_identifiers(text),
            None => {}
        }
        if !task.is_empty() {
            signals.matches = task.matches(&file.path, &signals.references.definitions, text);
        }
        signals
    }

    /// Returns the names in the changed lines and in the failures.
    fn focus_names(&self) -> BTreeSet<&str> {
        let hunks = self.changes.iter().flat_map(|changes| &changes.files).flat_map(|file| &file.hunks);
        let changed = hunks.flat_map(|hunk| hunk.lines()).filter(|line| line.starts_with(['+', '-']));
        let texts = changed.chain(self.failures);
        texts.flat_map(identifiers).filter(|name| name.len() >= 3).collect()
    }

    fn seeds(
        &self,
        graph: &ReferenceGraph<'_>,
        focus: &BTreeSet<&str>,
        task: &TaskWords,
        matches: &[TaskMatches],
        reasons: &mut [InclusionReason],
    ) -> RankSeeds {
        let count = self.files.len();
        let mut seeds = RankSeeds { walk: vec![0.0; count], direct: vec![0.0; count] };
        let mut claim = |index: usize, reason: InclusionReason| {
            if let Some(current) = reasons.get_mut(index) {
                *current = reason.min(*current);
            }
        };
        for (index, file) in self.files.iter().enumerate() {
            if self.changed.contains(&file.path) {
                claim(index, InclusionReason::Changed);
                seeds.walk[index] += CHANGED_SEED;
            }
            if is_entry_point(&file.path) {
                claim(index, InclusionReason::EntryPoint);
                seeds.walk[index] += ENTRY_POINT_SEED;
            }
        }
        let paths = ProjectPathIndex::new(self.files.iter().map(|file| file.path.as_str()));
        for index in paths.mentioned(self.failures.unwrap_or_default()) {
            claim(index, InclusionReason::NamedByFailures);
            seeds.walk[index] += FAILURE_SEED;
        }
        // Names that several files define count for each of them in part.
        let mut used: BTreeMap<usize, f64> = BTreeMap::new();
        for definers in focus.iter().map(|name| graph.definers(name)) {
            for &definer in definers {
                *used.entry(definer).or_default() +=
                    1.0 / f64::from(u32::try_from(definers.len()).unwrap_or(1));
            }
        }
        let mut used: Vec<(usize, f64)> = used.into_iter().collect();
        used.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        for (index, weight) in used.into_iter().take(MAX_REFERENCED_FILES) {
            claim(index, InclusionReason::UsedByChanges);
            seeds.walk[index] += REFERENCED_SEED * weight.min(4.0);
        }
        for index in paths.mentioned(self.task.unwrap_or_default()) {
            claim(index, InclusionReason::MatchesTask);
            seeds.walk[index] += TASK_SEED;
        }
        let scores = task.scores(matches);
        let best = scores.iter().copied().fold(0.0, f64::max);
        if best > 0.0 {
            for (index, score) in scores.iter().enumerate() {
                let relative = score / best;
                seeds.walk[index] += relative * relative * TASK_SEED;
                seeds.direct[index] += relative * relative;
                // A weak match is one that most files have.
                if relative > 0.25 {
                    claim(index, InclusionReason::MatchesTask);
                }
            }
            let total: f64 = seeds.direct.iter().sum();
            seeds.direct.iter_mut().for_each(|direct| *direct /= total);
        }
        seeds
    }
}

/// The starting points of a walk, and what counts beside the walk.
struct RankSeeds {
    walk: Vec<f64>,
    direct: Vec<f64>,
}

/// Returns the words of a text without a grammar that may be names: those with a capital or an underscore inside.
fn prose_identifiers(text: &str) -> Vec<(String, u32)> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for word in identifiers(text).filter(|word| (4..=80).contains(&word.len())) {
        *counts.entry(word).or_default() += 1;
    }
    // Prose mentions a name for its readers, however often.
    counts.into_keys().map(|word| (word.to_owned(), 1)).collect()
}

/// Returns true if a program or a library begins in the file at `path`, as far as its name tells.
fn is_entry_point(path: &str) -> bool {
    const NAMES: [&str; 14] = [
        "main.rs",
        "lib.rs",
        "main.py",
        "__main__.py",
        "cli.py",
        "app.py",
        "main.go",
        "index.ts",
        "index.js",
        "main.ts",
        "cli.ts",
        "Main.java",
        "Program.cs",
        "main.c",
    ];
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let in_tests =
        path.split('/').any(|part| matches!(part, "test" | "tests" | "examples" | "docs" | "fixtures"));
    NAMES.contains(&name) && !in_tests && folder.split('/').count() <= 3
}
