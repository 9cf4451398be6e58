//! The forms in which compilers write their messages: JSON, and lines for people.

use super::diagnostic::{Diagnostic, DiagnosticSeverity as Severity};
use serde_json::Value;

/// The position of a message in a file. Line and column count from 1.
pub(super) struct DiagnosticPosition<'a> {
    pub(super) file: &'a str,
    pub(super) line: u64,
    pub(super) column: Option<u64>,
}

impl Diagnostic {
    /// Reads an error or a warning from one line of `cargo --message-format=json`.
    ///
    /// Returns `None` for other lines, and for the counts that end a compilation.
    pub(crate) fn from_cargo(line: &str) -> Option<Self> {
        if !line.starts_with("{\"reason\":\"compiler-message\"") {
            return None;
        }
        let value: Value = serde_json::from_str(line).ok()?;
        let message = value.get("message")?;
        let text = message.get("message")?.as_str()?;
        let severity = Severity::from_word(message.get("level")?.as_str()?)
            .filter(|severity| *severity != Severity::Note)?;
        let spans = message.get("spans").and_then(Value::as_array);
        let span = spans.and_then(|spans| {
            spans.iter().find(|span| span.get("is_primary").and_then(Value::as_bool) == Some(true))
        });
        // rustc ends with messages that only count the others.
        let is_count = text.starts_with("aborting due to")
            || text.contains("warning emitted")
            || text.contains("warnings emitted");
        if span.is_none() && is_count {
            return None;
        }
        let field = |name: &str| span.and_then(|span| span.get(name));
        let label = field("label").and_then(Value::as_str).filter(|label| !repeats(text, label));
        let label = label.map_or_else(String::new, |label| format!(": {label}"));
        Some(Self {
            file: field("file_name").and_then(Value::as_str).map(str::to_owned),
            line: field("line_start").and_then(Value::as_u64),
            column: field("column_start").and_then(Value::as_u64),
            code: message.pointer("/code/code").and_then(Value::as_str).map(str::to_owned),
            ..Self::new(severity, &format!("{text}{label}"))
        })
    }

    /// Returns the message at this position.
    pub(super) fn at(self, position: &DiagnosticPosition<'_>) -> Self {
        Self {
            file: Some(position.file.to_owned()),
            line: Some(position.line),
            column: position.column,
            ..self
        }
    }

    fn with_code(self, code: Option<impl Into<String>>) -> Self {
        Self { code: code.map(Into::into), ..self }
    }
}

/// Returns true if a label says nothing that its message does not: `not found in this scope` after `cannot find value
/// `x` in this scope`.
fn repeats(message: &str, label: &str) -> bool {
    const EMPTY_WORDS: [&str; 10] =
        ["a", "found", "here", "is", "method", "no", "not", "the", "this", "value"];
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ':' | ';' | '`'));
        words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    };
    let said = words(message);
    words(label).iter().all(|word| EMPTY_WORDS.contains(&word.as_str()) || said.contains(word))
}

/// Reads a message that stands on one line with its position, in any of the known forms.
pub(super) fn read_line(line: &str) -> Option<Diagnostic> {
    read_msbuild(line)
        .or_else(|| read_maven(line))
        .or_else(|| read_pretty_tsc(line))
        .or_else(|| read_gcc(line))
}

/// Reads `FILE:LINE` or `FILE:LINE:COLUMN` with nothing after it.
pub(super) fn read_position(text: &str) -> Option<DiagnosticPosition<'_>> {
    let (rest, last) = text.rsplit_once(':')?;
    let last = last.parse().ok()?;
    match rest.rsplit_once(':').map(|(file, line)| (file, line.parse())) {
        Some((file, Ok(line))) if !file.is_empty() => {
            Some(DiagnosticPosition { file, line, column: Some(last) })
        }
        _ => (!rest.is_empty()).then_some(DiagnosticPosition { file: rest, line: last, column: None }),
    }
}

/// Reads `error[E0308]: mismatched types` of rustc. The position follows on a line of its own.
pub(super) fn read_rustc_headline(line: &str) -> Option<Diagnostic> {
    let (head, message) = line.split_once(": ")?;
    let (word, code) = match head.split_once('[') {
        Some((word, code)) => (word, Some(code.strip_suffix(']')?)),
        None => (head, None),
    };
    let severity = Severity::from_word(word).filter(|severity| *severity != Severity::Note)?;
    Some(Diagnostic::new(severity, message).with_code(code))
}

/// Reads `FILE(LINE,COLUMN): error CODE: MESSAGE [PROJECT]` of tsc and `MSBuild`.
fn read_msbuild(line: &str) -> Option<Diagnostic> {
    let open = line.find('(')?;
    let inner = &line[open + 1..];
    let (numbers, rest) = inner.split_once("): ").or_else(|| inner.split_once(") : "))?;
    let mut numbers = numbers.split(',').map(|number| number.trim().parse().ok());
    let (line_number, column) = (numbers.next()??, numbers.next().flatten());
    let (head, message) = rest.split_once(": ")?;
    let (word, code) = head.trim().split_once(' ').unwrap_or((head.trim(), ""));
    // MSBuild names the project at the end.
    let message =
        message.rsplit_once(" [").filter(|(_, end)| end.ends_with("proj]")).map_or(message, |(text, _)| text);
    Some(
        Diagnostic::new(Severity::from_word(word)?, message)
            .with_code(Some(code).filter(|code| !code.is_empty()))
            .at(&DiagnosticPosition { file: &line[..open], line: line_number, column }),
    )
}

/// Reads `[ERROR] /path/File.java:[12,5] message` of Maven.
fn read_maven(line: &str) -> Option<Diagnostic> {
    let (word, rest) = line.strip_prefix('[')?.split_once("] ")?;
    let (file, rest) = rest.split_once(":[")?;
    let (numbers, message) = rest.split_once("] ")?;
    let (line, column) = numbers.split_once(',')?;
    let position = DiagnosticPosition { file, line: line.parse().ok()?, column: column.parse().ok() };
    Some(Diagnostic::new(Severity::from_word(word)?, message).at(&position))
}

/// Reads `FILE:LINE:COLUMN - error TS2322: MESSAGE`, which tsc writes where it believes that a person reads.
fn read_pretty_tsc(line: &str) -> Option<Diagnostic> {
    let (position, rest) = line.split_once(" - ")?;
    let position = read_position(position)?;
    let (head, message) = rest.split_once(": ")?;
    let (word, code) = head.split_once(' ')?;
    Some(Diagnostic::new(Severity::from_word(word)?, message).with_code(Some(code)).at(&position))
}

/// Reads `FILE:LINE:COLUMN: error: MESSAGE [-Wcode]` of gcc, clang and javac, and `FILE:LINE:COLUMN: MESSAGE`
/// of go.
fn read_gcc(line: &str) -> Option<Diagnostic> {
    let (position, rest) = line.split_once(": ")?;
    // `go vet` puts its name in front of the position.
    let position = position.strip_prefix("vet: ").unwrap_or(position);
    let position = read_position(position)?;
    // A name with blanks and without a slash is a sentence with a number in it, not a file.
    if position.file.contains(' ') && !position.file.contains('/') {
        return None;
    }
    let named = rest.split_once(": ").and_then(|(word, message)| Some((Severity::from_word(word)?, message)));
    let (severity, message) = match named {
        Some(named) => named,
        None if position.file.ends_with(".go") => (Severity::Error, rest),
        None => return None,
    };
    let option = message.rsplit_once(" [-").and_then(|(text, code)| Some((text, code.strip_suffix(']')?)));
    let (message, code) = option.map_or((message, None), |(text, code)| (text, Some(format!("-{code}"))));
    Some(Diagnostic::new(severity, message).with_code(code).at(&position))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_that_only_repeats_its_message_is_left_out() {
        for (message, label, is_repeated) in [
            ("cannot find value `x` in this scope", "not found in this scope", true),
            (
                "no method named `go` found for struct `Y` in the current scope",
                "method not found in `Y`",
                true,
            ),
            ("mismatched types", "expected `u8`, found `&str`", false),
            ("cannot borrow `a` as mutable", "cannot borrow as mutable", true),
            ("use of moved value: `a`", "value used here after move", false),
        ] {
            assert_eq!(repeats(message, label), is_repeated, "{message}: {label}");
        }
    }
}
