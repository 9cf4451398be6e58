//! Which entries a query finds.

use crate::call::{CallDecision, Outcome};
use crate::entry::{AuditEntry, AuditEvent};
use crate::targets::CallTargets;
use globset::{GlobBuilder, GlobMatcher};

/// A query for entries. An entry has to fit all conditions that are set. The starts of calls are left out, because each
/// call has an end as well. The ends of writers are left out too.
#[derive(Clone, Debug, Default)]
pub struct AuditQuery {
    caller: Option<GlobMatcher>,
    tool: Option<GlobMatcher>,
    paths: Option<[GlobMatcher; 2]>,
    text: Option<String>,
    mentioned: Option<([GlobMatcher; 2], String)>,
    outcome: Option<OutcomeFilter>,
    since: Option<String>,
    until: Option<String>,
}

/// The ends of calls that a query finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeFilter {
    /// Calls that ended so.
    Outcome(Outcome),
    /// Calls about which this was decided.
    Decision(CallDecision),
}

/// The error of a pattern that is no glob.
#[derive(Debug, thiserror::Error)]
#[error("`{pattern}` is not a pattern")]
pub struct PatternError {
    pattern: String,
    source: globset::Error,
}

fn matcher(pattern: &str, is_path: bool) -> Result<GlobMatcher, PatternError> {
    let glob = GlobBuilder::new(pattern).literal_separator(is_path).build();
    let glob = glob.map_err(|source| PatternError { pattern: pattern.to_owned(), source })?;
    Ok(glob.compile_matcher())
}

impl AuditQuery {
    /// Finds the calls of this caller. `*` stands for any text.
    ///
    /// # Errors
    /// The pattern is no glob.
    pub fn caller(mut self, pattern: &str) -> Result<Self, PatternError> {
        self.caller = Some(matcher(pattern, false)?);
        Ok(self)
    }

    /// Finds the calls of this tool. `*` stands for any text.
    ///
    /// # Errors
    /// The pattern is no glob.
    pub fn tool(mut self, pattern: &str) -> Result<Self, PatternError> {
        self.tool = Some(matcher(pattern, false)?);
        Ok(self)
    }

    /// Finds the calls that name a path which the glob matches, in whole or from one of its folders on: `*.rs`,
    /// `src/**`, `/srv/projects/a/Cargo.toml`.
    ///
    /// # Errors
    /// The pattern is no glob.
    pub fn path(mut self, pattern: &str) -> Result<Self, PatternError> {
        let relative = pattern.trim_start_matches('/');
        self.paths = Some([matcher(pattern, true)?, matcher(&format!("**/{relative}"), true)?]);
        Ok(self)
    }

    /// Finds the calls whose targets or arguments contain `text`.
    #[must_use]
    pub fn containing(mut self, text: &str) -> Self {
        self.text = Some(text.to_owned());
        self
    }

    /// Finds the calls that name a path which the glob `text` matches, as [`Self::path`] does, and those whose targets or
    /// arguments contain `text`.
    ///
    /// # Errors
    /// `text` is no glob.
    pub fn mentioning(mut self, text: &str) -> Result<Self, PatternError> {
        let relative = text.trim_start_matches('/');
        let paths = [matcher(text, true)?, matcher(&format!("**/{relative}"), true)?];
        self.mentioned = Some((paths, text.to_owned()));
        Ok(self)
    }

    /// Finds the calls that ended so.
    #[must_use]
    pub fn outcome(mut self, outcome: OutcomeFilter) -> Self {
        self.outcome = Some(outcome);
        self
    }

    /// Finds the calls from this time on, as [`parse_time`](crate::parse_time) returns it.
    #[must_use]
    pub fn since(mut self, time: String) -> Self {
        self.since = Some(time);
        self
    }

    /// Finds the calls before this time.
    #[must_use]
    pub fn until(mut self, time: String) -> Self {
        self.until = Some(time);
        self
    }

    /// Returns the times between which entries are found.
    #[cfg(feature = "database")]
    pub(crate) fn times(&self) -> (Option<&str>, Option<&str>) {
        (self.since.as_deref(), self.until.as_deref())
    }

    /// Returns true if the query finds `entry`.
    pub fn matches(&self, entry: &AuditEntry) -> bool {
        let fits = |pattern: &Option<GlobMatcher>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
        };
        entry.event == AuditEvent::Call
            && self.since.as_ref().is_none_or(|since| entry.time >= *since)
            && self.until.as_ref().is_none_or(|until| entry.time < *until)
            && fits(&self.caller, entry.principal.as_deref().unwrap_or_default())
            && fits(&self.tool, &entry.tool)
            && self.outcome.is_none_or(|outcome| match outcome {
                OutcomeFilter::Outcome(outcome) => entry.outcome == Some(outcome),
                OutcomeFilter::Decision(decision) => entry.decision == Some(decision),
            })
            && self.paths.as_ref().is_none_or(|patterns| names_path(entry, patterns))
            && self.text.as_ref().is_none_or(|text| contains(entry, text))
            && self
                .mentioned
                .as_ref()
                .is_none_or(|(patterns, text)| names_path(entry, patterns) || contains(entry, text))
    }
}

/// Returns true if one of the patterns matches a path of the entry.
fn names_path(entry: &AuditEntry, patterns: &[GlobMatcher]) -> bool {
    let mut paths = entry.targets.iter().flat_map(CallTargets::paths);
    paths.any(|path| patterns.iter().any(|pattern| pattern.is_match(path)))
}

/// Returns true if the targets or the arguments of the entry contain `text`.
fn contains(entry: &AuditEntry, text: &str) -> bool {
    let targets = entry.targets.as_ref().map(CallTargets::summary);
    targets.is_some_and(|targets| targets.contains(text))
        || entry.full_arguments.as_ref().is_some_and(|arguments| arguments.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_query_finds_what_fits_all_that_is_set() {
        let mut entry =
            AuditEntry::new(AuditEvent::Call, SystemTime::UNIX_EPOCH + Duration::from_secs(1_763_764_620));
        entry.principal = Some("jwt:ada".to_owned());
        entry.tool = "delete_file".to_owned();
        (entry.decision, entry.outcome) = (Some(CallDecision::Allowed), Some(Outcome::Ok));
        entry.targets = Some(CallTargets {
            writes: vec!["/srv/projects/a/src/lib.rs".to_owned()],
            command: Some("rm -rf target".to_owned()),
            ..CallTargets::default()
        });
        let query = AuditQuery::default;
        let found = |query: AuditQuery| query.matches(&entry);
        assert!(found(query()));
        for pattern in
            ["*.rs", "lib.rs", "src/*.rs", "/srv/projects/**", "a/**", "/srv/projects/a/src/lib.rs"]
        {
            assert!(found(query().path(pattern).unwrap()), "{pattern}");
        }
        for pattern in ["*.py", "src/*", "src/lib", "/srv/*", "b.rs"] {
            assert_eq!(found(query().path(pattern).unwrap()), pattern == "src/*", "{pattern}");
        }
        assert!(found(query().caller("jwt:*").unwrap()) && !found(query().caller("ada").unwrap()));
        assert!(found(query().tool("delete_*").unwrap()) && !found(query().tool("delete").unwrap()));
        assert!(found(query().containing("rm -rf")) && !found(query().containing("rm -r x")));
        for text in ["lib.rs", "src/*.rs", "rm -rf", "lib"] {
            assert!(found(query().mentioning(text).unwrap()), "{text}");
        }
        assert!(!found(query().mentioning("main.rs").unwrap()));
        assert!(found(query().since("2025-11-21T22:37:00.000Z".into())));
        assert!(!found(query().until("2025-11-21T22:37:00.000Z".into())));
        assert!(found(query().outcome(OutcomeFilter::Outcome(Outcome::Ok))));
        assert!(!found(query().outcome(OutcomeFilter::Decision(CallDecision::Refused))));
        assert!(query().path("{").is_err());
        entry.event = AuditEvent::Start;
        assert!(!query().matches(&entry));
    }
}
