//! What a document was made of, and what was left out.

use crate::changes::Outcome;
use crate::request::Format;
use serde::Serialize;

/// The document, in its two halves, and what it was made of.
///
/// As JSON it has the names that the first context server gave its answers: `stable_prefix`, `volatile_tail`,
/// `prefix_hash`, `prefix_bytes`, `volatile_bytes` and so on, all at the top.
#[derive(Clone, Debug, Serialize)]
pub struct Compiled {
    /// The half that stays the same, byte for byte, for one role, budget and format, as long as its sources do.
    #[serde(rename = "stable_prefix")]
    pub prefix: String,
    /// The half that follows it.
    #[serde(rename = "volatile_tail")]
    pub tail: String,
    /// What they were made of.
    #[serde(flatten)]
    pub manifest: Manifest,
}

impl Compiled {
    /// The document.
    pub fn text(&self) -> String {
        [self.prefix.as_str(), self.tail.as_str()].concat()
    }
}

/// What a document was made of.
#[derive(Clone, Debug, Serialize)]
pub struct Manifest {
    /// Of the document's form and of this manifest: 1.
    pub format_version: u32,
    /// As asked for.
    pub role: String,
    /// As asked for; nothing for 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<u32>,
    /// As asked for.
    pub format: Format,
    /// What counted the tokens: `o200k_base`, or `estimate`.
    pub counter: String,
    /// The counter guesses.
    pub counter_is_estimate: bool,
    /// Tokens of the model for each counted one; the budget is in the model's.
    pub factor: f64,
    /// The most tokens that were allowed.
    pub budget: usize,
    /// What the document has of those: `counted_tokens` by `factor`, rounded up. Never more than `budget`.
    pub tokens: usize,
    /// What the counter says of both halves.
    pub counted_tokens: usize,
    /// The same as `tokens`, under the name it had.
    pub input_tokens_estimate: usize,
    /// The SHA-256 of the prefix.
    pub prefix_hash: String,
    /// Bytes of the prefix.
    pub prefix_bytes: usize,
    /// Counted tokens of the prefix.
    pub prefix_tokens: usize,
    /// Bytes of the tail.
    pub volatile_bytes: usize,
    /// Counted tokens of the tail.
    pub volatile_tokens: usize,
    /// Bytes of both.
    pub total_size: usize,
    /// The caller has this prefix already.
    pub cache_hit: bool,
    /// What a provider's cache can give: the prefix on a hit.
    pub cache_read_tokens_estimate: usize,
    /// What it has to take in: the prefix otherwise.
    pub cache_write_tokens_estimate: usize,
    /// Whether the prefix is long enough to be cached at all, by what a provider asks for at least.
    pub cacheable: Cacheable,
    /// What git said, where somebody asked it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<GitEntry>,
    /// Each section, in the order of the document.
    pub sections: Vec<SectionEntry>,
    /// What is not there, and why.
    pub left_out: Vec<LeftOut>,
    /// What was odd, in words.
    pub diagnostics: Vec<String>,
}

/// Whether a prefix reaches the least length that providers cache, in tokens of the model. Anthropic asks, by model,
/// for 512, 1,024, 2,048 or 4,096; OpenAI for 1,024; Gemini for 2,048 or 4,096. Below it nothing is cached, and
/// nobody says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Cacheable {
    pub min_512: bool,
    pub min_1024: bool,
    pub min_2048: bool,
    pub min_4096: bool,
}

/// What git said.
#[derive(Clone, Debug, Serialize)]
pub struct GitEntry {
    /// How asking went.
    pub outcome: Outcome,
    /// What is compared with.
    pub since: String,
    /// Files that changed, untracked ones among them.
    pub files: usize,
    /// Lines added, of those that git counts.
    pub insertions: u64,
    /// Lines removed.
    pub deletions: u64,
    /// Not all lines were read.
    pub truncated: bool,
    /// The repository's own filters were not run.
    pub filters_off: bool,
}

/// What a section is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// A planning document of the role.
    #[default]
    Document,
    /// A plan of the phase.
    Plan,
    /// Failures of tests, as the caller handed them in.
    TestFailures,
    /// What changed.
    Changes,
    /// A source file.
    Code,
    /// Source files by name.
    Map,
}

/// One section.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SectionEntry {
    /// Where its text is from.
    pub path: String,
    /// `prefix` or `tail`.
    pub half: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Why it is there.
    pub why: String,
    /// Bytes in the document, heading and escapes included.
    pub bytes: usize,
    /// Tokens in the document.
    pub tokens: usize,
    /// The SHA-256 of the source.
    pub sha256: String,
    /// Bytes of the source.
    pub source_bytes: u64,
    /// The SHA-256 of what is in the document.
    pub emitted_sha256: String,
    /// Something of it was left out.
    pub truncated: bool,
    /// How much of it is there: `full`, `trimmed`, `outline` or `map`.
    pub level: &'static str,
    /// Pieces (blocks, hunks, paragraphs) that were left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub pieces_left_out: usize,
    /// Secrets that were masked.
    #[serde(skip_serializing_if = "is_zero")]
    pub redactions: usize,
    /// What the source is written in.
    pub encoding: &'static str,
    /// The source has characters that change the direction of writing: it may not read as it runs.
    #[serde(skip_serializing_if = "is_false")]
    pub bidirectional: bool,
    /// The source changed each time it was read.
    #[serde(skip_serializing_if = "is_false")]
    pub unstable: bool,
}

/// What is not in the document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// What it is.
    pub path: String,
    /// Why.
    pub reason: String,
    /// It is named in the document. The rest is here only.
    #[serde(skip)]
    pub(crate) told: bool,
}

impl LeftOut {
    pub(crate) fn told(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into(), told: true }
    }

    pub(crate) fn untold(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { told: false, ..Self::told(path, reason) }
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
