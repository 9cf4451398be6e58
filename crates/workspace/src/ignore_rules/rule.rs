//! One line of an ignore file.

use super::wildcard::{class_len, matches_name, matches_path};

/// The longest line that is a rule: no path is longer (`PATH_MAX` of Linux), and matching recurses once for each star.
const MAX_RULE_BYTES: usize = 4096;

/// One line of an ignore file.
#[derive(Debug)]
pub(super) struct IgnoreRule {
    /// True for a line with `!`: a path that it matches is not ignored.
    pub(super) negated: bool,
    /// True for a line with a trailing slash: it matches folders only.
    folders_only: bool,
    pub(super) matcher: RulePattern,
}

/// The pattern of a rule. The plain forms are the usual ones, and are compared without the wildcard matcher.
#[derive(Debug)]
pub(super) enum RulePattern {
    /// Matches a path whose last component is this.
    Name(Vec<u8>),
    /// Matches a path whose last component ends with this.
    NameSuffix(Vec<u8>),
    /// Matches a path whose last component matches `pattern`, and so has `literal` at `at`. Most names have not, which takes
    /// a tenth of the time to see.
    NamePattern { pattern: Vec<u8>, literal: Vec<u8>, at: usize },
    /// Matches this path, relative to the folder of the ignore file.
    Path(Vec<u8>),
    /// Matches a path, relative to the folder of the ignore file, that begins with `prefix` and whose rest matches
    /// `pattern`.
    PathPattern { prefix: Vec<u8>, pattern: Vec<u8> },
}

impl IgnoreRule {
    /// Parses a line; `None` if it is blank, a comment, or too long.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        // To git a line is a C string.
        let line = line.split(|&byte| byte == 0).next().unwrap_or(line);
        let line = trim_trailing_spaces(line);
        if line.is_empty() || line.starts_with(b"#") || line.len() > MAX_RULE_BYTES {
            return None;
        }
        let (negated, line) = line.strip_prefix(b"!").map_or((false, line), |rest| (true, rest));
        let (folders_only, line) = line.strip_suffix(b"/").map_or((false, line), |rest| (true, rest));
        Some(Self { negated, folders_only, matcher: RulePattern::parse(line) })
    }

    /// Returns true if the rule is about this kind of entry and matches `path`, whose last component is `name`.
    pub(super) fn matches(&self, path: &[u8], name: &[u8], is_folder: bool) -> bool {
        (is_folder || !self.folders_only) && self.matcher.matches(path, name)
    }
}

impl RulePattern {
    fn parse(pattern: &[u8]) -> Self {
        if !pattern.contains(&b'/') {
            return match pattern.strip_prefix(b"*") {
                _ if plain_len(pattern) == pattern.len() => Self::Name(pattern.to_vec()),
                Some(suffix) if plain_len(suffix) == suffix.len() => Self::NameSuffix(suffix.to_vec()),
                _ => {
                    let (literal, at) = first_literal(pattern);
                    Self::NamePattern { pattern: pattern.to_vec(), literal: literal.to_vec(), at }
                }
            };
        }
        // `**/name` is what `name` is.
        if let Some(name) = pattern.strip_prefix(b"**/")
            && !name.is_empty()
            && !name.contains(&b'/')
        {
            return Self::parse(name);
        }
        let pattern = pattern.strip_prefix(b"/").unwrap_or(pattern);
        if plain_len(pattern) == pattern.len() {
            return Self::Path(pattern.to_vec());
        }
        // One byte before the first wildcard stays in the pattern: `**` depends on the byte before it.
        let plain = plain_len(pattern).saturating_sub(1);
        Self::PathPattern { prefix: pattern[..plain].to_vec(), pattern: pattern[plain..].to_vec() }
    }

    /// Returns true if the pattern matches `path`, whose last component is `name`.
    fn matches(&self, path: &[u8], name: &[u8]) -> bool {
        match self {
            Self::Name(expected) => name == expected,
            Self::NameSuffix(suffix) => name.ends_with(suffix),
            Self::NamePattern { pattern, literal, at } => {
                name.get(*at..).is_some_and(|rest| rest.starts_with(literal)) && matches_name(pattern, name)
            }
            Self::Path(expected) => path == expected,
            Self::PathPattern { prefix, pattern } => {
                path.strip_prefix(prefix.as_slice()).is_some_and(|rest| matches_path(pattern, rest))
            }
        }
    }
}

/// Returns `line` without the spaces at its end, unless a backslash escapes them.
fn trim_trailing_spaces(line: &[u8]) -> &[u8] {
    let mut end = 0;
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b' ' => {}
            b'\\' => {
                at += 1;
                end = (at + 1).min(line.len());
            }
            _ => end = at + 1,
        }
        at += 1;
    }
    &line[..end]
}

/// Returns the first bytes of a pattern that stand for themselves, and where a name that matches has them. Empty if a star,
/// whose length is open, or an escape comes before.
fn first_literal(pattern: &[u8]) -> (&[u8], usize) {
    let (mut rest, mut at) = (pattern, 0);
    loop {
        rest = match rest.first() {
            Some(b'?') => &rest[1..],
            Some(b'[') => match class_len(&rest[1..]) {
                Some(length) => &rest[1 + length..],
                None => return (&[], 0),
            },
            _ => return (&rest[..plain_len(rest)], at),
        };
        at += 1;
    }
}

/// Returns the number of bytes of `pattern` before its first wildcard or escape.
fn plain_len(pattern: &[u8]) -> usize {
    pattern.iter().position(|byte| b"*?[\\".contains(byte)).unwrap_or(pattern.len())
}
