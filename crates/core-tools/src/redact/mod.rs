//! Redaction of everything that leaves the server: results, logs and audit records.
//!
//! A [`Redactor`] puts a mark such as `[redacted:github-token]` in the place of
//!
//! - tokens of known shape: GitHub, GitLab, AWS, Google, Slack, Stripe, `OpenAI`, Anthropic, npm, JSON web
//!   tokens and some eighty more;
//! - the password in `scheme://user:password@host`, and what follows `Authorization: Basic` and `Bearer`;
//! - the body of a private key in PEM armour, also when only its first or its last part is there, and a text
//!   that is nothing but three or more lines from its middle;
//! - values that look made by a machine beside a name such as `password`, `api_key` or `connection_string`,
//!   in environment files, JSON, YAML, TOML, XML, code and command lines;
//! - the values it was given, as they stand and as JSON, percent-encoding and base64 write them.
//!
//! ```
//! use core_tools::redact::{Options, Redactor};
//!
//! let redactor = Redactor::new(Options::default())?;
//! let line = "origin https://me:s3cret-word@example.org/repository.git";
//! assert_eq!(redactor.redact(line), "origin https://me:[redacted:url-password]@example.org/repository.git");
//! # Ok::<(), core_tools::redact::Error>(())
//! ```
//!
//! Text without a secret is returned as it is, at more than a gigabyte a second. Redacting twice is redacting
//! once. Time grows with the length of the text, whatever is in it.
//!
//! # What it leaves out
//!
//! Redaction is a net and not a wall: a secret without a known shape, a telling name and a known value passes,
//! and so does one that was cut in two before it came here. So cut after redacting, not before.

mod environment;
mod lines;
mod named;
mod pem;
mod runs;
mod tokens;
mod url;

use std::borrow::Cow;

use aho_corasick::packed::{self, Searcher};
use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use serde_json::Value;

pub use environment::{MIN_VALUE_BYTES, is_secret_variable, secret_environment};
pub use lines::LineRedactor;

/// What a [`Redactor`] looks for.
#[derive(Clone)]
pub struct Options {
    /// Look at all. True by default; a redactor that is off returns every text as it is.
    pub enabled: bool,
    /// Exact values that must not leave, such as those of [`secret_environment`]. Those shorter than
    /// [`MIN_VALUE_BYTES`] are ignored: they would be found in ordinary text. Empty by default.
    pub values: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { enabled: true, values: Vec::new() }
    }
}

impl std::fmt::Debug for Options {
    /// Says how many values there are, and none of them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("enabled", &self.enabled).field("values", &self.values.len()).finish()
    }
}

/// Why there is no [`Redactor`].
#[derive(Debug, thiserror::Error)]
#[error("cannot prepare redaction of {values} values")]
pub struct Error {
    /// How many values were given.
    values: usize,
    source: aho_corasick::BuildError,
}

/// Masks secrets in text. Cheap to share; see the [module](self).
#[derive(Clone)]
pub struct Redactor {
    enabled: bool,
    /// The [`SIGNS`].
    signs: Literals,
    /// The exact values in all their forms, if there are any.
    values: Option<Literals>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let values = self.values.is_some();
        f.debug_struct("Redactor")
            .field("enabled", &self.enabled)
            .field("values", &values)
            .finish_non_exhaustive()
    }
}

/// Texts near which there may be a secret without a long run of token characters. Each is rare in ordinary text.
const SIGNS: [&str; 11] =
    ["://", "PRIVATE KEY", "asic ", "ASIC ", "assw", "ASSW", "assphrase", "ecret", "ECRET", "pwd", "PWD"];
const ADDRESS: usize = 0;
const KEY: usize = 1;
const BASIC: std::ops::RangeInclusive<usize> = 2..=3;

/// How marks begin.
const MARK: &str = "[redacted:";
/// A mark may make the edge of another token; so text with marks is looked at again, at most this often.
const MAX_PASSES: usize = 8;
/// How far behind an access key id its secret is looked for.
const AWS_PAIR: usize = 200;

/// A secret in a text, as byte offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
    kind: &'static str,
}

impl Redactor {
    /// A redactor with `options`.
    ///
    /// # Errors
    ///
    /// If there are more values than a search automaton holds (about 2³¹ bytes of them).
    pub fn new(options: Options) -> Result<Self, Error> {
        let count = options.values.len();
        let error = |source| Error { values: count, source };
        let mut forms: Vec<String> = options
            .values
            .into_iter()
            .filter(|value| value.trim().len() >= MIN_VALUE_BYTES)
            .flat_map(|value| forms(&value))
            .collect();
        forms.sort();
        forms.dedup();
        Ok(Self {
            enabled: options.enabled,
            signs: Literals::new(&SIGNS).map_err(error)?,
            values: if forms.is_empty() { None } else { Some(Literals::new(&forms).map_err(error)?) },
        })
    }

    /// `text` with a mark in the place of every secret; `text` itself if there is none.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let spans = self.find(text);
        if spans.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut masked = mask(text, &spans);
        for _ in 1..MAX_PASSES {
            let spans = self.find(&masked);
            if spans.is_empty() {
                break;
            }
            masked = mask(&masked, &spans);
        }
        Cow::Owned(masked)
    }

    /// Redacts every string in `value`, names of members included. A member's own name counts as the name
    /// beside its value.
    pub fn redact_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(masked) = self.redact(text) {
                    *text = masked;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json(item)),
            Value::Object(members) => {
                for (name, member) in members.iter_mut() {
                    let kind = match member {
                        Value::String(text) if self.enabled => named::member(name, text),
                        _ => None,
                    };
                    match kind {
                        Some(kind) => *member = Value::String(format!("{MARK}{kind}]")),
                        None => self.redact_json(member),
                    }
                }
                if members.keys().any(|name| matches!(self.redact(name), Cow::Owned(_))) {
                    *members = std::mem::take(members)
                        .into_iter()
                        .map(|(name, member)| (self.redact(&name).into_owned(), member))
                        .collect();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The secrets of `text`, sorted, none touching another, none within a mark.
    fn find(&self, text: &str) -> Vec<Span> {
        let mut spans = Vec::new();
        if !self.enabled {
            return spans;
        }
        let bytes = text.as_bytes();
        if let Some(values) = &self.values {
            values.each(bytes, |_, start, end| spans.push(Span { start, end, kind: "environment" }));
        }
        let mut aws = None;
        for (start, end) in runs::runs(bytes) {
            let first = spans.len();
            if tokens::find(bytes, start, end, &mut spans) {
                aws = spans[first..]
                    .iter()
                    .rfind(|span| span.kind == "aws-access-key-id")
                    .map(|span| span.end)
                    .or(aws);
            } else if let Some(span) = named::at_run(bytes, start, end) {
                spans.push(span);
            } else if end - start == 40
                && aws.is_some_and(|id| start - id < AWS_PAIR)
                && named::is_random(&bytes[start..end], 0.25)
            {
                spans.push(Span { start, end, kind: "aws-secret-key" });
            }
        }
        self.signs.each(bytes, |sign, at, _| match sign {
            ADDRESS => spans.extend(url::find(bytes, at)),
            KEY => pem::find(text, at, &mut spans),
            sign if BASIC.contains(&sign) => spans.extend(url::basic(bytes, at)),
            _ => spans.extend(named::at_name(bytes, at)),
        });
        pem::middle(text, &mut spans);
        if spans.is_empty() { spans } else { settle(text, spans) }
    }
}

/// Many literal texts, looked for in one pass; of those that begin at one place, the longest.
#[derive(Clone)]
enum Literals {
    /// By vector instructions; for few literals, and where the processor has them.
    Packed(Searcher),
    Automaton(AhoCorasick),
}

impl Literals {
    fn new<P: AsRef<[u8]>>(literals: &[P]) -> Result<Self, aho_corasick::BuildError> {
        let packed = packed::Config::new()
            .match_kind(packed::MatchKind::LeftmostLongest)
            .builder()
            .extend(literals)
            .build();
        match packed {
            Some(searcher) => Ok(Self::Packed(searcher)),
            None => AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(literals)
                .map(Self::Automaton),
        }
    }

    /// Calls `found` with each literal's number, start and end.
    fn each(&self, bytes: &[u8], mut found: impl FnMut(usize, usize, usize)) {
        match self {
            Self::Packed(searcher) => searcher
                .find_iter(bytes)
                .for_each(|hit| found(hit.pattern().as_usize(), hit.start(), hit.end())),
            Self::Automaton(automaton) => automaton
                .find_iter(bytes)
                .for_each(|hit| found(hit.pattern().as_usize(), hit.start(), hit.end())),
        }
    }
}

/// The forms in which `value` may stand in a text.
fn forms(value: &str) -> Vec<String> {
    let json = serde_json::to_string(value).unwrap_or_default();
    let mut percent = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            percent.push(char::from(byte));
        } else {
            percent.push_str(&format!("%{byte:02X}"));
        }
    }
    vec![
        value.to_owned(),
        value.trim().to_owned(),
        json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned(),
        percent,
        base64::engine::general_purpose::STANDARD_NO_PAD.encode(value),
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value),
    ]
}

/// Sorts spans, joins those that overlap, and keeps them off the marks.
fn settle(text: &str, mut spans: Vec<Span>) -> Vec<Span> {
    let marks: Vec<(usize, usize)> = memchr::memmem::find_iter(text.as_bytes(), MARK)
        .filter_map(|start| Some((start, mark_end(text.as_bytes(), start)?)))
        .collect();
    for span in &mut spans {
        let (from, to) = (span.start, span.end);
        let first = marks.partition_point(|mark| mark.1 <= from);
        for &(start, end) in marks[first..].iter().take_while(|mark| mark.0 < to) {
            if start <= from && to <= end {
                // Within a mark.
                span.end = span.start;
                break;
            }
            span.start = span.start.min(start);
            span.end = span.end.max(end);
        }
    }
    spans.retain(|span| span.start < span.end);
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    spans.dedup_by(|next, kept| {
        let overlap = next.start < kept.end;
        if overlap {
            kept.end = kept.end.max(next.end);
        }
        overlap
    });
    spans
}

/// The end of the mark that begins at `start`, if it is one.
fn mark_end(bytes: &[u8], start: usize) -> Option<usize> {
    let kind = start + MARK.len();
    let length = bytes
        .get(kind..)?
        .iter()
        .take(40)
        .take_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || **byte == b'-')
        .count();
    (length > 0 && bytes.get(kind + length) == Some(&b']')).then_some(kind + length + 1)
}

fn mask(text: &str, spans: &[Span]) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut done = 0;
    for span in spans {
        masked.push_str(&text[done..span.start]);
        masked.push_str(MARK);
        masked.push_str(span.kind);
        masked.push(']');
        done = span.end;
    }
    masked.push_str(&text[done..]);
    masked
}

#[cfg(test)]
mod tests;
