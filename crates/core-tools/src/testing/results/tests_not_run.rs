//! Tests that a project has and that a run left out, although nothing in the request did.

use super::excerpt::OutputExcerpt;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// The number of names that are kept of one reason.
const MAX_NAMED: usize = 20;
/// The number of reasons that are kept.
const MAX_REASONS: usize = 20;
/// The number of bytes of a name, and of a reason.
const MAX_TEXT_BYTES: usize = 300;

/// Tests that a project has and that a run left out, although nothing in the request did: files, packages or classes that
/// the runner passes over without a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct TestsNotRun {
    /// The first of them: files, folders, packages or names of tests, relative to the folder of the run.
    pub what: Vec<String>,
    /// The number of all of them.
    pub total: u64,
    /// The reason, and how they can be run.
    pub why: String,
}

impl TestsNotRun {
    /// Creates an entry without names.
    fn new(why: &str) -> Self {
        Self { what: Vec::new(), total: 0, why: why.to_owned() }
    }

    /// Adds what was left out to a list, in which each reason stands once.
    pub(crate) fn add(list: &mut Vec<Self>, what: &str, why: &str) {
        let why = OutputExcerpt::new(why, MAX_TEXT_BYTES).text;
        let known = list.iter().position(|entry| entry.why == why);
        let index = known.unwrap_or_else(|| {
            if list.len() < MAX_REASONS {
                list.push(Self::new(&why));
            } else if list.len() == MAX_REASONS {
                list.push(Self::new("further reasons"));
            }
            list.len() - 1
        });
        if let Some(entry) = list.get_mut(index) {
            entry.total = entry.total.saturating_add(1);
            if entry.what.len() < MAX_NAMED {
                entry.what.push(OutputExcerpt::new(what, MAX_TEXT_BYTES).text);
            }
        }
    }

    /// Adds the entries of another list.
    pub(crate) fn merge(list: &mut Vec<Self>, others: Vec<Self>) {
        for other in others {
            if let Some(entry) = list.iter_mut().find(|entry| entry.why == other.why) {
                entry.total = entry.total.saturating_add(other.total);
                let room = MAX_NAMED.saturating_sub(entry.what.len());
                entry.what.extend(other.what.into_iter().take(room));
            } else {
                list.push(other);
            }
        }
    }
}

impl fmt::Display for TestsNotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what.join(", "))?;
        let more = self.total.saturating_sub(self.what.len() as u64);
        if more > 0 {
            write!(f, " and {more} more")?;
        }
        write!(f, ": {}", self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_stands_once_with_the_first_names_and_the_number_of_all() {
        let mut list = Vec::new();
        for index in 0..30 {
            TestsNotRun::add(&mut list, &format!("{index}.rs"), "one");
        }
        TestsNotRun::add(&mut list, "a", "other");
        let mut merged = vec![TestsNotRun::new("other")];
        TestsNotRun::merge(&mut merged, list);
        let told: Vec<_> =
            merged.iter().map(|entry| (entry.what.len(), entry.total, entry.why.as_str())).collect();
        assert_eq!(told, [(1, 1, "other"), (20, 30, "one")]);
        assert!(merged[1].to_string().ends_with("19.rs and 10 more: one"), "{}", merged[1]);
    }

    #[test]
    fn the_number_of_reasons_is_bounded_and_nothing_is_uncounted() {
        let mut list = Vec::new();
        for index in 0..100 {
            TestsNotRun::add(&mut list, "a", &format!("why {index}"));
        }
        assert_eq!(list.len(), MAX_REASONS + 1);
        assert_eq!(list.iter().map(|entry| entry.total).sum::<u64>(), 100);
    }
}
