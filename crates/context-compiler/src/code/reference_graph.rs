//! The graph of definitions and references between the files of a project, and the rank of each file in it.
//!
//! A file that uses a name refers to the files that define it. A walk that starts at the seeds and follows references, in
//! both directions, is at a file the more often, the more the file has to do with the seeds (a personalised page rank). Only
//! additions, multiplications, divisions and square roots are used, in a fixed order, so the ranks are the same on any
//! machine.

use std::collections::{BTreeMap, HashMap};

/// The most files that define a name which still tells one file from another.
const MAX_DEFINING_FILES: usize = 8;
/// The shortest name that connects files, in bytes.
const MIN_NAME_BYTES: usize = 3;
/// Steps of the walk. The part of a seed that is not distributed yet halves with each.
const WALK_STEPS: usize = 24;
/// The probability that a walk goes on instead of starting again at a seed.
const DAMPING: f64 = 0.55;
/// The weight of a reference against its direction: from a definition to those who use it, such as tests.
const BACKWARD_WEIGHT: f64 = 0.4;
/// The weight of a name that the task, a failure or a change mentions, relative to others.
const FOCUS_WEIGHT: f64 = 8.0;

/// The names that one file defines and uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileReferences {
    /// The names that the file defines, each once.
    pub(crate) definitions: Vec<String>,
    /// The names that the file uses, and how often.
    pub(crate) identifiers: Vec<(String, u32)>,
}

/// The graph over files, which are named by their indices.
pub(crate) struct ReferenceGraph<'a> {
    /// The files that define each name that tells files apart.
    definers: HashMap<&'a str, Vec<usize>>,
    /// The edges of each file, in the order of their targets.
    edges: Vec<Vec<(usize, f64)>>,
    /// The weight of each name of a file: how much it is used by other files.
    pub(crate) name_weights: Vec<HashMap<&'a str, f64>>,
}

impl<'a> ReferenceGraph<'a> {
    /// The graph of `files`, in which names for which `is_focus` is true count more.
    pub(crate) fn new(files: &'a [FileReferences], is_focus: impl Fn(&str) -> bool) -> Self {
        let mut definers: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, file) in files.iter().enumerate() {
            for name in file.definitions.iter().filter(|name| name.len() >= MIN_NAME_BYTES) {
                definers.entry(name).or_default().push(index);
            }
        }
        // Names such as `new` or `main` are defined in many files and would connect all of them.
        definers.retain(|_, files| files.len() <= MAX_DEFINING_FILES);
        let mut edges: Vec<BTreeMap<usize, f64>> = vec![BTreeMap::new(); files.len()];
        let mut name_weights: Vec<HashMap<&str, f64>> = vec![HashMap::new(); files.len()];
        for (user, file) in files.iter().enumerate() {
            for (name, count) in &file.identifiers {
                let Some((name, definers)) = definers.get_key_value(name.as_str()) else { continue };
                // A file that defines a name itself means its own.
                if definers.contains(&user) {
                    continue;
                }
                let share = name_weight(name, is_focus(name)) * f64::from(*count).sqrt();
                #[allow(clippy::cast_precision_loss, reason = "at most 8")]
                let weight = share / definers.len() as f64;
                for &definer in definers {
                    *edges[user].entry(definer).or_default() += weight;
                    *edges[definer].entry(user).or_default() += weight * BACKWARD_WEIGHT;
                    *name_weights[definer].entry(name).or_default() += weight;
                }
            }
        }
        let edges = edges.into_iter().map(|edges| edges.into_iter().collect()).collect();
        Self { definers, edges, name_weights }
    }

    /// Returns the files that define `name`, if that tells files apart.
    pub(crate) fn definers(&self, name: &str) -> &[usize] {
        self.definers.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the rank of each file for a walk that starts at `seeds`, one for each file. The ranks add up to 1, or are all
    /// 0 if there is no seed.
    pub(crate) fn rank(&self, seeds: &[f64]) -> Vec<f64> {
        let total: f64 = seeds.iter().sum();
        if total <= 0.0 {
            return vec![0.0; seeds.len()];
        }
        let seeds: Vec<f64> = seeds.iter().map(|seed| seed / total).collect();
        let mut ranks = seeds.clone();
        for _ in 0..WALK_STEPS {
            let mut next = vec![0.0; ranks.len()];
            // The part of files without edges starts again at the seeds.
            let mut restarted = 1.0 - DAMPING;
            for (rank, edges) in ranks.iter().zip(&self.edges) {
                let sum: f64 = edges.iter().map(|(_, weight)| weight).sum();
                if sum > 0.0 {
                    for (target, weight) in edges {
                        next[*target] += DAMPING * rank * weight / sum;
                    }
                } else {
                    restarted += DAMPING * rank;
                }
            }
            for (next, seed) in next.iter_mut().zip(&seeds) {
                *next += restarted * seed;
            }
            ranks = next;
        }
        ranks
    }
}

/// Returns how much a name says about which file is meant.
fn name_weight(name: &str, is_focus: bool) -> f64 {
    let is_compound = name.len() >= 8
        && (name.trim_matches('_').contains('_')
            || name.bytes().skip(1).any(|byte| byte.is_ascii_uppercase())
                && name.bytes().any(|byte| byte.is_ascii_lowercase()));
    let base = match (name.starts_with('_'), is_compound) {
        (true, _) => 0.3,
        (false, true) => 3.0,
        (false, false) => 1.0,
    };
    if is_focus { base * FOCUS_WEIGHT } else { base }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(definitions: &[&str], identifiers: &[(&str, u32)]) -> FileReferences {
        FileReferences {
            definitions: definitions.iter().map(|&name| name.to_owned()).collect(),
            identifiers: identifiers.iter().map(|&(name, count)| (name.to_owned(), count)).collect(),
        }
    }

    #[test]
    fn a_walk_reaches_what_a_seed_uses_and_those_who_use_it_and_nothing_else() {
        let files = [
            file(&["parse_option"], &[]),
            file(&["Command"], &[("parse_option", 4)]),
            file(&["test_command"], &[("Command", 2)]),
            file(&["unrelated"], &[("elsewhere", 3)]),
        ];
        let graph = ReferenceGraph::new(&files, |_| false);
        let ranks = graph.rank(&[0.0, 1.0, 0.0, 0.0]);
        assert!(ranks[1] > ranks[0] && ranks[0] > ranks[2] && ranks[2] > 0.0, "{ranks:?}");
        assert!(ranks[3] == 0.0 && (ranks.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{ranks:?}");
        assert_eq!(graph.definers("Command"), [1]);
        assert!(graph.rank(&[0.0; 4]).iter().all(|rank| *rank == 0.0));
    }

    #[test]
    fn a_name_that_many_files_define_connects_none() {
        let mut files: Vec<FileReferences> = (0..9).map(|_| file(&["new"], &[])).collect();
        files.push(file(&[], &[("new", 1)]));
        let graph = ReferenceGraph::new(&files, |_| false);
        assert!(graph.edges.iter().all(Vec::is_empty) && graph.definers("new").is_empty());
    }
}
