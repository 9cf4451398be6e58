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
//! - passwords of at least six characters, with a digit or a sign in them, that a person made up, beside a name that
//!   ends in `password`, `passwd`, `pwd` or `secret`, and the members `token`, `apiKey`, `authorization` and `cookie`
//!   of an object: literals only, no expressions, types or texts that stand for a value;
//! - in logs ([`Redactor::redact_log`]) also passwords of letters alone and the ids of sessions;
//! - the values it was given, as they stand and as JSON, percent-encoding and base64 write them.
//!
//! ```
//! use redaction::{RedactionOptions, Redactor};
//!
//! let redactor = Redactor::new(RedactionOptions::default())?;
//! let line = "origin https://me:s3cret-word@example.org/repository.git";
//! assert_eq!(redactor.redact(line), "origin https://me:[redacted:url-password]@example.org/repository.git");
//! # Ok::<(), redaction::Error>(())
//! ```
//!
//! Text without a secret is returned as it is, at more than a gigabyte a second. Redacting twice is redacting
//! once. Time grows with the length of the text, whatever is in it.
//!
//! # What it leaves out
//!
//! Redaction is a net and not a wall: a secret without a known shape, a telling name and a known value passes,
//! and so does one that was cut in two before it came here. So cut after redacting, not before.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod command_line;
#[cfg(test)]
mod corpus;
mod environment;
mod error;
mod exact_value_forms;
mod key_lines;
mod line_redactor;
mod literals;
mod log_line;
mod log_secret;
mod mask;
mod name_forms;
mod named_values;
mod options;
mod password_values;
mod pem;
mod randomness;
mod redactor;
mod secret_name;
mod span;
mod template;
mod token_runs;
mod tokens;
mod url;

#[cfg(test)]
mod tests;

pub use environment::{MIN_VALUE_BYTES, is_secret_variable, secret_environment};
pub use error::Error;
pub use key_lines::{KEY_CONTEXT_LINES, KeyLines, may_be_key_line};
pub use line_redactor::LineRedactor;
pub use options::RedactionOptions;
pub use redactor::Redactor;
