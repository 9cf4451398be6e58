//! The files that a text names, such as the output of a failed test run.

use std::collections::HashMap;

/// The paths of a project by the name of the file, so that a path in a text is found by its end.
pub(super) struct ProjectPathIndex<'a> {
    by_name: HashMap<&'a str, Vec<(usize, &'a str)>>,
}

impl<'a> ProjectPathIndex<'a> {
    pub(super) fn new(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let mut by_name: HashMap<&str, Vec<(usize, &str)>> = HashMap::new();
        for (index, path) in paths.into_iter().enumerate() {
            by_name.entry(path.rsplit('/').next().unwrap_or(path)).or_default().push((index, path));
        }
        Self { by_name }
    }

    /// Returns the indices of the paths that `text` names, in the order of their first mention, each once.
    ///
    /// A mention may be absolute or relative to any folder: it names the paths that agree with it in most components at the
    /// end. `core.py:12` names every `core.py`, unless there are more than three.
    pub(super) fn mentioned(&self, text: &str) -> Vec<usize> {
        /// The most files that a mention can mean.
        const MAX_MEANT: usize = 3;
        let mut found = Vec::new();
        for mention in text.split(|c: char| c.is_whitespace() || "\"'`()[]{}<>,;:|=".contains(c)) {
            let mention = mention.trim_end_matches('.').replace('\\', "/");
            let name = mention.rsplit('/').next().unwrap_or_default();
            let Some(candidates) = self.by_name.get(name).filter(|_| name.contains('.')) else { continue };
            let agreement = |path: &str| {
                let (mut path, mut mention) = (path.rsplit('/'), mention.rsplit('/'));
                std::iter::from_fn(|| (path.next()? == mention.next()?).then_some(())).count()
            };
            let best = candidates.iter().map(|(_, path)| agreement(path)).max().unwrap_or(0);
            let meant: Vec<usize> = candidates
                .iter()
                .filter(|(_, path)| agreement(path) == best)
                .map(|(index, _)| *index)
                .collect();
            if meant.len() <= MAX_MEANT {
                found.extend(meant);
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        found.retain(|index| seen.insert(*index));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_names_the_paths_that_end_like_it() {
        let paths = [
            "a/mod.rs",
            "b/mod.rs",
            "src/click/core.py",
            "tests/test_core.py",
            "src/lib.rs",
            "web/x.test.ts",
        ];
        let index = ProjectPathIndex::new(paths);
        let named = |text| index.mentioned(text).into_iter().map(|index| paths[index]).collect::<Vec<_>>();
        assert_eq!(named("  File \"/home/u/p/src/click/core.py\", line 12, in f"), ["src/click/core.py"]);
        assert_eq!(named("panicked at b/mod.rs:3:5:\nsrc\\lib.rs(4)"), ["b/mod.rs", "src/lib.rs"]);
        assert_eq!(
            named("FAILED tests/test_core.py::test_a - at web/x.test.ts:1:2."),
            ["tests/test_core.py", "web/x.test.ts"]
        );
        assert_eq!(named("mod.rs and no others: core, lib"), ["a/mod.rs", "b/mod.rs"]);
    }
}
