//! The request for a document.

use crate::budget::MAX_BUDGET_TOKENS;
use crate::catalogue::{DiffDetail, is_path_beneath_root, is_role_name};
use crate::changes::RepositoryChanges;
use crate::error::{ContextRequestField, Error};
use crate::format::DocumentFormat;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The budget in tokens where neither the request nor the role sets one.
///
/// With a factor of 1.76, the largest measured for a model of 2026, a document stays below the 25,000 tokens above which
/// a known host stores an answer away instead of showing it to the model.
pub const DEFAULT_BUDGET_TOKENS: usize = 12_000;

/// A request for one document. Together with the content of the files it decides every byte of the result.
///
/// ```
/// use context_compiler::{ContextRequest, DocumentFormat};
///
/// let request = ContextRequest::new("reviewer")
///     .phase(3)
///     .budget_tokens(20_000)
///     .include(["src/**/*.rs"])
///     .format(DocumentFormat::Xml);
/// assert_eq!(request.budget_tokens, Some(20_000));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ContextRequest {
    /// The role: 1 to 64 letters, digits, `-` and `_`, compared byte for byte. A role that the catalogue does not have
    /// reads the documents of the role `default`.
    pub role: String,
    /// The phase whose plans are added. `None`, the default, and 0 add none.
    pub phase: Option<u32>,
    /// The path of a plan beneath the root, which replaces the plans of the phase.
    pub plan: Option<String>,
    /// The most tokens of the model that the document may have, 1 to [`MAX_BUDGET_TOKENS`]. By default the budget of the
    /// role, or [`DEFAULT_BUDGET_TOKENS`] if the role has none.
    pub budget_tokens: Option<usize>,
    /// Tokens of the model for 1,000 counted tokens, 1 to 10,000. 1,000 by default. For Claude, over `o200k_base`: 1,350
    /// up to version 4.6, 1,800 from 4.7 (measured means by kind of file reach 1.33 and 1.76).
    pub token_factor_permille: u32,
    /// The part of the budget that the stable prefix can take at most, in per cent, 1 to 99. 60 by default. The share
    /// is fixed, so that nothing in the tail changes the prefix.
    pub prefix_share_percent: u32,
    /// The format of the document. Markdown by default.
    pub format: DocumentFormat,
    /// The globs of the source files, each of which is wanted whole; an empty list includes none. By default, the globs
    /// of the role. If the role has no globs, every file of the project that has to do with the changes, the failures
    /// or the task.
    pub include: Option<Vec<String>>,
    /// Globs of source files to leave out, in addition to the globs of the role.
    pub exclude: Vec<String>,
    /// The task at hand, in words. Source files that match it come after what changed and what failed.
    pub task: Option<String>,
    /// The detail in which source files are shown.
    pub code_detail: CodeDetail,
    /// The detail in which changes are shown. By default, the detail of the role.
    pub diff_detail: Option<DiffDetail>,
    /// The changes of the repository, if the caller asked git for them.
    pub changes: Option<RepositoryChanges>,
    /// The output of the last test run about its failures.
    pub test_failures: Option<String>,
    /// The [`prefix_hash`](crate::Manifest::prefix_hash) of an earlier document that the caller still has.
    pub known_prefix_hash: Option<String>,
}

/// The detail in which source files are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CodeDetail {
    /// As much of each file as fits: its whole text, else its outline, else its name.
    #[default]
    Auto,
    /// The whole text, or the name.
    Full,
    /// The outline, or the name.
    Outline,
    /// The name, with the symbols that the file exports.
    Map,
}

/// Masks secrets in every text that a document quotes.
///
/// Texts are masked before they are cut, because a part of a secret is not recognised.
pub trait Redact: Send + Sync {
    /// Returns `text` with a mark in the place of every secret, or `text` itself if it contains none. A mark begins with
    /// `[redacted`.
    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str>;

    /// Returns a number that identifies this way of masking among all redactors that are used with one cache. The cache
    /// then remembers the size of masked files, and unchanged files are not read again to measure them. `None`, the
    /// default, has each of them read.
    fn cache_key(&self) -> Option<u64> {
        None
    }
}

impl ContextRequest {
    /// A request for the planning documents of `role`, with every other field at its default.
    pub fn new(role: impl Into<String>) -> Self {
        Self {
            role: role.into(),
            phase: None,
            plan: None,
            budget_tokens: None,
            token_factor_permille: 1_000,
            prefix_share_percent: 60,
            format: DocumentFormat::default(),
            include: None,
            exclude: Vec::new(),
            task: None,
            code_detail: CodeDetail::default(),
            diff_detail: None,
            changes: None,
            test_failures: None,
            known_prefix_hash: None,
        }
    }

    /// Adds the plans of this [phase](Self::phase).
    #[must_use]
    pub fn phase(mut self, phase: u32) -> Self {
        self.phase = Some(phase);
        self
    }

    /// Adds the plan at this path instead of the plans of the phase.
    #[must_use]
    pub fn plan(mut self, path: impl Into<String>) -> Self {
        self.plan = Some(path.into());
        self
    }

    /// Sets the [budget](Self::budget_tokens).
    #[must_use]
    pub fn budget_tokens(mut self, tokens: usize) -> Self {
        self.budget_tokens = Some(tokens);
        self
    }

    /// Sets the [tokens of the model for 1,000 counted tokens](Self::token_factor_permille).
    #[must_use]
    pub fn token_factor_permille(mut self, factor: u32) -> Self {
        self.token_factor_permille = factor;
        self
    }

    /// Sets the [share of the prefix](Self::prefix_share_percent).
    #[must_use]
    pub fn prefix_share_percent(mut self, percent: u32) -> Self {
        self.prefix_share_percent = percent;
        self
    }

    /// Sets the format of the document.
    #[must_use]
    pub fn format(mut self, format: DocumentFormat) -> Self {
        self.format = format;
        self
    }

    /// Adds the source files that match one of these globs. See [`code::select`](crate::code::select) for their syntax.
    #[must_use]
    pub fn include(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.include = Some(globs.into_iter().map(Into::into).collect());
        self
    }

    /// Leaves out the source files that match one of these globs.
    #[must_use]
    pub fn exclude(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.exclude = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Describes the [task](Self::task) at hand.
    #[must_use]
    pub fn task(mut self, task: impl Into<String>) -> Self {
        self.task = Some(task.into());
        self
    }

    /// Sets the detail in which source files are shown.
    #[must_use]
    pub fn code_detail(mut self, detail: CodeDetail) -> Self {
        self.code_detail = detail;
        self
    }

    /// Sets the detail in which changes are shown.
    #[must_use]
    pub fn diff_detail(mut self, detail: DiffDetail) -> Self {
        self.diff_detail = Some(detail);
        self
    }

    /// Adds the changes of the repository, such as `git::collect_changes` returns them.
    #[must_use]
    pub fn changes(mut self, changes: RepositoryChanges) -> Self {
        self.changes = Some(changes);
        self
    }

    /// Adds the output of the last test run about its failures.
    #[must_use]
    pub fn test_failures(mut self, output: impl Into<String>) -> Self {
        self.test_failures = Some(output.into());
        self
    }

    /// Names the prefix that the caller still has, which the manifest then reports as a cache hit if it is unchanged.
    #[must_use]
    pub fn known_prefix_hash(mut self, hash: impl Into<String>) -> Self {
        self.known_prefix_hash = Some(hash.into());
        self
    }

    /// Checks every field that has a range.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        if !is_role_name(&self.role) {
            let reason = "must be 1 to 64 letters, digits, `-` and `_`";
            return Err(Error::invalid(ContextRequestField::Role, reason));
        }
        if self.budget_tokens.is_some_and(|budget| !(1..=MAX_BUDGET_TOKENS).contains(&budget)) {
            let reason = format!("must be 1 to {MAX_BUDGET_TOKENS} tokens");
            return Err(Error::invalid(ContextRequestField::BudgetTokens, reason));
        }
        if !(1..=10_000).contains(&self.token_factor_permille) {
            return Err(Error::invalid(ContextRequestField::TokenFactor, "must be 1 to 10,000 thousandths"));
        }
        if !(1..=99).contains(&self.prefix_share_percent) {
            return Err(Error::invalid(ContextRequestField::PrefixShare, "must be 1 to 99 per cent"));
        }
        if self.plan.as_deref().is_some_and(|plan| !is_path_beneath_root(plan)) {
            let reason = "must be a path relative to the root, without `..`";
            return Err(Error::invalid(ContextRequestField::Plan, reason));
        }
        Ok(())
    }
}
