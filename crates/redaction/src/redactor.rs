//! [`Redactor`]: all searches for secrets together, and the masking of what they find.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::environment::MIN_VALUE_BYTES;
use crate::error::Error;
use crate::exact_value_forms::written_forms;
use crate::literals::LiteralMatcher;
use crate::mask::{MARK, mask, merge};
use crate::options::RedactionOptions;
use crate::randomness::is_random;
use crate::span::SecretSpan;
use crate::{command_line, log_line, name_forms, named_values, pem, token_runs, tokens, url};

/// Texts near which there may be a secret without a long run of token characters. Each is rare in ordinary text.
// Words lack their first letter, so that one text finds `Password` and `password`.
const SIGNS: [&str; 37] = [
    "://",
    "PRIVATE KEY",
    "asic ",
    "ASIC ",
    "assw",
    "ASSW",
    "assphrase",
    "ecret",
    "ECRET",
    "pwd",
    "PWD",
    // Members of objects, also in a text that is quoted itself.
    "oken\"",
    "oken\\\"",
    "piKey\"",
    "pi_key\"",
    "pikey\"",
    "uthorization\"",
    "uthorization\\\"",
    "uthorization'",
    "ookie\"",
    "ookie\\\"",
    "ookie'",
    // Headers, and the cookies of frameworks.
    "ookie: ",
    "JSESSIONID=",
    "PHPSESSID=",
    "NET_SessionId=",
    "uthorization: ",
    // Names that end so, and no other words.
    "ASSPHRASE",
    "pass\"",
    "pass=",
    "PASS=",
    "requirepass ",
    // Keys of `PuTTY`, registries, signed addresses.
    PUTTY,
    "auth\"",
    "auth=",
    "sig=",
    "Pwd",
];
/// The line before the body of a key in `PuTTY`'s format.
const PUTTY: &str = "Private-Lines: ";
const ADDRESS: usize = 0;
const KEY: usize = 1;
const BASIC: std::ops::RangeInclusive<usize> = 2..=3;
const REQUIREPASS: usize = 31;
const PUTTY_KEY: usize = 32;
const REGISTRY_AUTH: usize = 33;
const REGISTRY_AUTH_SETTING: usize = 34;
const SIGNATURE: usize = 35;

/// A mark may make the edge of another token; so text with marks is looked at again, at most this often.
const MAX_PASSES: usize = 8;
/// The number of bytes behind an access key id in which its secret is looked for.
const AWS_SECRET_DISTANCE: usize = 200;

/// The kind of a text, which tells what may stand in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextKind {
    /// Code, settings, output.
    Any,
    /// Lines of a log.
    Log,
}

/// Masks secrets in text. Cheap to share; see the [crate](crate).
#[derive(Clone)]
pub struct Redactor {
    enabled: bool,
    /// The [`SIGNS`], and behind them those of programs.
    signs: Arc<LiteralMatcher>,
    /// The exact values in all their forms, if there are any.
    values: Option<Arc<LiteralMatcher>>,
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

impl Redactor {
    /// Makes a redactor with `options`.
    ///
    /// # Errors
    ///
    /// If there are more values than a search automaton holds (about 2³¹ bytes of them).
    pub fn new(options: RedactionOptions) -> Result<Self, Error> {
        let count = options.values.len();
        let error = |source| Error { values: count, source };
        let mut forms: Vec<String> = options
            .values
            .into_iter()
            .filter(|value| value.trim().len() >= MIN_VALUE_BYTES)
            .flat_map(|value| written_forms(&value))
            .collect();
        forms.sort();
        forms.dedup();
        Ok(Self {
            enabled: options.enabled,
            signs: Arc::new(
                LiteralMatcher::new(&[SIGNS.as_slice(), &command_line::SIGNS].concat()).map_err(error)?,
            ),
            values: if forms.is_empty() {
                None
            } else {
                Some(Arc::new(LiteralMatcher::new(&forms).map_err(error)?))
            },
        })
    }

    /// Returns true if it masks anything: a setting may switch it off.
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Returns `text` with a mark in the place of every secret; `text` itself if there is none.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redact_text(text, TextKind::Any)
    }

    /// Returns `text`, which is a log, with a mark in the place of every secret. Beyond [`redact`](Self::redact) it masks
    /// passwords of letters alone and the ids of sessions, which in code would be expressions.
    #[must_use]
    pub fn redact_log<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redact_text(text, TextKind::Log)
    }

    fn redact_text<'a>(&self, text: &'a str, text_kind: TextKind) -> Cow<'a, str> {
        let spans = self.find(text, text_kind);
        if spans.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut masked = mask(text, &spans);
        for _ in 1..MAX_PASSES {
            let spans = self.find(&masked, text_kind);
            if spans.is_empty() {
                break;
            }
            masked = mask(&masked, &spans);
        }
        Cow::Owned(masked)
    }

    /// Redacts every string in the value of the member `name` of a log entry, as [`redact_log`](Self::redact_log) does. A
    /// name counts as the name beside the elements of its list. Returns whether anything was masked.
    pub fn redact_log_member(&self, name: &str, value: &mut Value) -> bool {
        match value {
            Value::String(text) => {
                let kind = if self.enabled { log_line::member(name, text) } else { None };
                match (kind, self.redact_log(text)) {
                    (Some(kind), _) => *text = format!("{MARK}{kind}]"),
                    (None, Cow::Owned(masked)) => *text = masked,
                    (None, Cow::Borrowed(_)) => return false,
                }
                true
            }
            Value::Array(items) => {
                items.iter_mut().fold(false, |masked, item| self.redact_log_member(name, item) | masked)
            }
            Value::Object(members) => members
                .iter_mut()
                .fold(false, |masked, (name, member)| self.redact_log_member(name, member) | masked),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
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
                        Value::String(text) if self.enabled => named_values::member(name, text),
                        _ => None,
                    };
                    match kind {
                        Some(kind) => *member = Value::String(format!("{MARK}{kind}]")),
                        None => self.redact_json(member),
                    }
                }
                // A name cannot be changed in place, so the map is built anew; hardly ever, as few names hold a
                // secret.
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

    /// Returns the places of the secrets of `text` as byte offsets, sorted, for a caller that must not divide a secret.
    pub fn spans(&self, text: &str) -> Vec<std::ops::Range<usize>> {
        self.find(text, TextKind::Any).into_iter().map(|span| span.start..span.end).collect()
    }

    /// Returns the secrets of `text`, as [`spans`](Self::spans) does, with their kinds.
    pub(crate) fn secrets(&self, text: &str) -> Vec<SecretSpan> {
        self.find(text, TextKind::Any)
    }

    /// Returns the secrets of `text`, sorted, none overlapping another, none within a mark.
    fn find(&self, text: &str, text_kind: TextKind) -> Vec<SecretSpan> {
        let mut spans = Vec::new();
        if !self.enabled {
            return spans;
        }
        let bytes = text.as_bytes();
        if let Some(values) = &self.values {
            values.for_each_match(bytes, |_, start, end| {
                spans.push(SecretSpan { start, end, kind: "environment" });
            });
        }
        // The end of the last AWS access key id: the secret that belongs to it has no shape of its own.
        let mut aws_key_id_end = None;
        for (start, end) in token_runs::runs(bytes) {
            let first = spans.len();
            if tokens::find(bytes, start, end, &mut spans) {
                aws_key_id_end = spans[first..]
                    .iter()
                    .rfind(|span| span.kind == "aws-access-key-id")
                    .map(|span| span.end)
                    .or(aws_key_id_end);
            } else if let Some(span) = named_values::at_run(bytes, start, end) {
                spans.push(span);
            } else if end - start == 40
                && aws_key_id_end.is_some_and(|id| start - id < AWS_SECRET_DISTANCE)
                // The hash of a commit.
                && !bytes[start..end].iter().all(|byte| token_runs::is(*byte, token_runs::HEX))
                && is_random(&bytes[start..end], 0.25)
            {
                spans.push(SecretSpan { start, end, kind: "aws-secret-key" });
            }
        }
        self.signs.for_each_match(bytes, |sign, at, _| match sign {
            ADDRESS => spans.extend(url::find(bytes, at)),
            KEY => pem::find(text, at, &mut spans),
            sign if BASIC.contains(&sign) => spans.extend(url::basic(bytes, at)),
            PUTTY_KEY => pem::putty(bytes, at + PUTTY.len(), &mut spans),
            REGISTRY_AUTH | REGISTRY_AUTH_SETTING => spans.extend(name_forms::registry_auth(bytes, at)),
            SIGNATURE => spans.extend(name_forms::shared_access_signature(bytes, at)),
            REQUIREPASS => spans.extend(command_line::directive(bytes, at + SIGNS[REQUIREPASS].len())),
            sign if sign >= SIGNS.len() => command_line::find(bytes, sign - SIGNS.len(), at, &mut spans),
            _ => {
                spans.extend(named_values::at_name(bytes, at));
                named_values::list(bytes, at, &mut spans);
            }
        });
        if text_kind == TextKind::Log {
            log_line::find(bytes, &mut spans);
        }
        pem::middle(text, &mut spans);
        if spans.is_empty() { spans } else { merge(text, spans) }
    }
}
