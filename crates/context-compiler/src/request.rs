//! What is asked for.

use crate::budget::MAX_BUDGET;
use crate::catalogue::{Diff, is_beneath, is_role_name};
use crate::changes::Changes;
use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The budget where neither a request nor a role names one: with a factor of 1.76, the largest measured for a model
/// of 2026, it stays below the 25,000 tokens above which a known host stores an answer away instead of showing it.
pub const DEFAULT_BUDGET: usize = 12_000;

/// What is asked for. Nothing else decides what comes out, but the files themselves.
#[derive(Clone, Debug)]
pub struct Request {
    /// The role, compared byte for byte; 1 to 64 letters, digits, `-` and `_`. One that the catalogue does not
    /// know reads what its `default` reads.
    pub role: String,
    /// The phase whose plans are added. None, like 0, adds none.
    pub phase: Option<u32>,
    /// A plan by its path beneath the root, instead of those of the phase.
    pub plan: Option<String>,
    /// The most tokens that the document may have, 1 to [`MAX_BUDGET`]. The role's if absent, else
    /// [`DEFAULT_BUDGET`].
    pub budget: Option<usize>,
    /// How many tokens of the model one counted token may be, in thousandths. 1,000 by default. For Claude, over
    /// `o200k_base`: 1,350 up to 4.6, 1,800 from 4.7 (measured means by kind of file reach 1.33 and 1.76).
    pub factor: u32,
    /// The part of the budget, in per cent, that the stable prefix can take at most, 1 to 99. 60 by default. It
    /// is a fixed part, and not what the rest leaves, so that nothing in the rest changes the prefix.
    pub prefix_share: u32,
    /// The form of the document.
    pub format: Format,
    /// Globs of source files. The role's if absent.
    pub include: Option<Vec<String>>,
    /// Globs of files that are left out of those, beside the role's.
    pub exclude: Vec<String>,
    /// How source files are shown.
    pub code: Code,
    /// How much of what changed is shown. The role's if absent.
    pub diff: Option<Diff>,
    /// What changed, where somebody has asked git.
    pub changes: Option<Changes>,
    /// What the last test run said of its failures.
    pub test_failures: Option<String>,
    /// The `prefix_hash` that the caller has from before.
    pub known_prefix: Option<String>,
}

/// The form of a document. All three can be read back into the same sections, whatever is in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A heading for each section, and its text in a fence that is longer than any in it.
    #[default]
    Markdown,
    /// XML 1.0, escaped.
    Xml,
    /// JSON.
    Json,
}

/// How source files are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Code {
    /// As much of each as there is room for: whole, else its outline, else its name.
    #[default]
    Auto,
    /// Whole, or by name.
    Full,
    /// Outlines, or names.
    Outline,
    /// Names, with what they export.
    Map,
}

/// Masks secrets. Done to everything that is quoted, before it is cut: half a secret is not recognised.
pub trait Redact: Send + Sync {
    /// `text` with a mark in the place of every secret; `text` itself if there is none.
    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str>;

    /// A number that is the same only for redactors that mask the same, as long as one cache is used with them: then
    /// files that have not changed since are not read to know how much room they need. `None`, the default, has each
    /// of them read.
    fn key(&self) -> Option<u64> {
        None
    }
}

impl Request {
    /// A request of `role` for its planning documents, with everything else as the members say.
    pub fn new(role: impl Into<String>) -> Self {
        Self {
            role: role.into(),
            phase: None,
            plan: None,
            budget: None,
            factor: 1_000,
            prefix_share: 60,
            format: Format::default(),
            include: None,
            exclude: Vec::new(),
            code: Code::default(),
            diff: None,
            changes: None,
            test_failures: None,
            known_prefix: None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if !is_role_name(&self.role) {
            return Err(Error::argument("role", "must be 1 to 64 letters, digits, `-` and `_`"));
        }
        if self.budget.is_some_and(|budget| !(1..=MAX_BUDGET).contains(&budget)) {
            return Err(Error::argument("budget", format!("must be 1 to {MAX_BUDGET} tokens")));
        }
        if !(1..=10_000).contains(&self.factor) {
            return Err(Error::argument("factor", "must be 1 to 10,000 thousandths"));
        }
        if !(1..=99).contains(&self.prefix_share) {
            return Err(Error::argument("prefix_share", "must be 1 to 99 per cent"));
        }
        if self.plan.as_deref().is_some_and(|plan| !is_beneath(plan)) {
            return Err(Error::argument("plan", "must be a path relative to the root, without `..`"));
        }
        Ok(())
    }
}
