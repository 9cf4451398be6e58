//! The compiled document, and the manifest of what it contains.

use crate::changes::RepositoryChangesOutcome;
use crate::decoded_text::TextEncoding;
use crate::detail_level::SectionDetailLevel;
use crate::format::DocumentFormat;
use serde::Serialize;
use std::fmt;

/// A compiled document in two segments, with its manifest.
///
/// Serialised, it is one flat object with the keys of the first context server's answers: `stable_prefix`,
/// `volatile_tail`, `prefix_hash`, `prefix_bytes`, `volatile_bytes` and so on.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CompiledContext {
    /// The stable segment: the same bytes for one role, budget and format as long as the sources of the segment do not
    /// change.
    #[serde(rename = "stable_prefix")]
    pub prefix: String,
    /// The volatile segment that follows it.
    #[serde(rename = "volatile_tail")]
    pub tail: String,
    /// The contents of both segments, and what was left out.
    #[serde(flatten)]
    pub manifest: Manifest,
}

impl CompiledContext {
    /// Returns the whole document.
    pub fn text(&self) -> String {
        [self.prefix.as_str(), self.tail.as_str()].concat()
    }
}

/// The contents of a document, its size, and what was left out.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Manifest {
    /// The version of the document's format and of this manifest: 1.
    pub format_version: u32,
    /// The role of the request.
    pub role: String,
    /// The phase of the request; `None` for 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<u32>,
    /// The format of the document.
    pub format: DocumentFormat,
    /// The name of the counter: `o200k_base`, `estimate`, or that of an own counter.
    pub counter: String,
    /// True if the counter estimates.
    pub counter_is_estimate: bool,
    /// Tokens of the model per counted token. The budget is in tokens of the model.
    pub factor: f64,
    /// The most tokens of the model that were allowed.
    pub budget: usize,
    /// The tokens of the model that the document has: `counted_tokens` times `factor`, rounded up. Never more than
    /// `budget`.
    pub tokens: usize,
    /// The counted tokens of both segments.
    pub counted_tokens: usize,
    /// The value of `tokens` under the name that the first context server gave it.
    pub input_tokens_estimate: usize,
    /// The SHA-256 of the prefix in hexadecimal.
    pub prefix_hash: String,
    /// The bytes of the prefix.
    pub prefix_bytes: usize,
    /// The counted tokens of the prefix.
    pub prefix_tokens: usize,
    /// The bytes of the tail.
    pub volatile_bytes: usize,
    /// The counted tokens of the tail.
    pub volatile_tokens: usize,
    /// The bytes of both segments.
    pub total_size: usize,
    /// True if the prefix is the one that the request's `known_prefix_hash` names.
    pub cache_hit: bool,
    /// The tokens that a provider's cache can serve: the tokens of the prefix on a hit, otherwise 0.
    pub cache_read_tokens_estimate: usize,
    /// The tokens that a provider's cache has to store: the tokens of the prefix without a hit, otherwise 0.
    pub cache_write_tokens_estimate: usize,
    /// The minimum lengths of providers' caches that the prefix reaches.
    pub cacheable: CacheThresholds,
    /// A summary of the changes, if the request has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSummary>,
    /// The part of the budget that is not used, if it is more than 15 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unused: Option<UnusedBudget>,
    /// The sections, in the order of the document.
    pub sections: Vec<ManifestSectionEntry>,
    /// The contents that were left out, with reasons.
    pub left_out: Vec<OmittedContent>,
    /// Irregularities that did not prevent the document, in words.
    pub diagnostics: Vec<String>,
}

/// The minimum lengths of providers' caches that a prefix reaches, in tokens of the model.
///
/// Anthropic requires 512, 1,024, 2,048 or 4,096 tokens depending on the model; OpenAI 1,024; Gemini 2,048 or 4,096. A
/// shorter prefix is not cached, and no error says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
#[non_exhaustive]
pub struct CacheThresholds {
    pub min_512: bool,
    pub min_1024: bool,
    pub min_2048: bool,
    pub min_4096: bool,
}

impl CacheThresholds {
    pub(crate) fn reached_by(model_tokens: usize) -> Self {
        Self {
            min_512: model_tokens >= 512,
            min_1024: model_tokens >= 1024,
            min_2048: model_tokens >= 2048,
            min_4096: model_tokens >= 4096,
        }
    }
}

/// A part of a budget that is not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnusedBudget {
    /// The tokens of the model.
    pub tokens: usize,
    /// The reason.
    pub reason: String,
}

/// A summary of the changes of the repository.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct GitSummary {
    /// The result of asking git.
    pub outcome: RepositoryChangesOutcome,
    /// The revision to compare with.
    pub since: String,
    /// The number of changed files, untracked ones included.
    pub files: usize,
    /// Lines added in the files that git counts.
    pub insertions: u64,
    /// Lines removed in the files that git counts.
    pub deletions: u64,
    /// True if not all changes were read.
    pub truncated: bool,
    /// True if the repository's content filters were not run.
    #[serde(rename = "filters_off")]
    pub filters_disabled: bool,
}

/// A segment of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DocumentSegment {
    /// The stable prefix, which a provider's cache can serve.
    #[default]
    Prefix,
    /// The volatile tail.
    Tail,
}

impl fmt::Display for DocumentSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Prefix => "prefix",
            Self::Tail => "tail",
        })
    }
}

/// The kind of a section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SectionKind {
    /// A planning document of the role.
    #[default]
    Document,
    /// A plan of the phase.
    Plan,
    /// The failures of tests that the caller passed in.
    TestFailures,
    /// The changes of the repository.
    Changes,
    /// A source file.
    Code,
    /// A list of source files by name.
    Map,
}

/// The manifest of one section.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ManifestSectionEntry {
    /// The path of the source, or a name for a section without a file.
    pub path: String,
    /// The segment that the section is in.
    #[serde(rename = "half")]
    pub segment: DocumentSegment,
    /// The kind of the section.
    pub kind: SectionKind,
    /// The reason why the section is in the document.
    pub why: String,
    /// The bytes of the section in the document, heading and escapes included.
    pub bytes: usize,
    /// The counted tokens of the section in the document.
    pub tokens: usize,
    /// The SHA-256 of the source in hexadecimal.
    pub sha256: String,
    /// The bytes of the source.
    pub source_bytes: u64,
    /// The SHA-256 of the section in the document, in hexadecimal.
    pub emitted_sha256: String,
    /// True if a part of the source was left out.
    pub truncated: bool,
    /// The part of the source that is there.
    pub level: SectionDetailLevel,
    /// The pieces (blocks, hunks, paragraphs, files of a list) that were left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub pieces_left_out: usize,
    /// The secrets that were masked.
    #[serde(skip_serializing_if = "is_zero")]
    pub redactions: usize,
    /// The encoding of the source.
    pub encoding: TextEncoding,
    /// True if the source has characters that change the direction of writing, so that it may not read as it runs.
    #[serde(skip_serializing_if = "is_false")]
    pub bidirectional: bool,
    /// True if the source changed during each attempt to read it.
    #[serde(skip_serializing_if = "is_false")]
    pub unstable: bool,
}

/// Something that is not in the document, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OmittedContent {
    /// The path, or the name of a document.
    pub path: String,
    /// The reason.
    pub reason: String,
    /// True if the document itself names the omission; others are in the manifest only.
    #[serde(skip)]
    pub(crate) in_summary: bool,
}

impl OmittedContent {
    /// An omission that the summary of the document names.
    pub(crate) fn in_summary(path: impl Into<String>, reason: impl fmt::Display) -> Self {
        Self { path: path.into(), reason: format!("{reason}"), in_summary: true }
    }

    /// An omission that only the manifest names: the reader of the document did not ask for it.
    pub(crate) fn in_manifest(path: impl Into<String>, reason: impl fmt::Display) -> Self {
        Self { in_summary: false, ..Self::in_summary(path, reason) }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}
