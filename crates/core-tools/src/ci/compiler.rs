//! What compilers say, as data.

use process_runner::Stream;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// One message of a compiler.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Diagnostic {
    /// The file, as the compiler names it, or relative to the folder of the build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The column, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// Such as `E0308`, `TS2322`, `CS0103`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What is wrong.
    pub message: String,
}

/// The longest message that is kept, in bytes.
const MAX_MESSAGE: usize = 4_000;

fn severity(word: &str) -> Option<&'static str> {
    Some(match word.trim() {
        "error" | "fatal error" | "error: internal compiler error" | "ERROR" => "error",
        "warning" | "WARNING" => "warning",
        "note" | "help" | "info" | "message" => "note",
        _ => return None,
    })
}

fn shortened(message: &str) -> String {
    let mut end = message.len().min(MAX_MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message[..end].to_owned()
}

impl Diagnostic {
    /// An error or a warning of one line of `cargo --message-format=json`. Other lines are nothing, and so are
    /// the counts that end a compilation.
    pub fn from_cargo(line: &str) -> Option<Self> {
        if !line.starts_with("{\"reason\":\"compiler-message\"") {
            return None;
        }
        let value: Value = serde_json::from_str(line).ok()?;
        let message = value.get("message")?;
        let text = message.get("message")?.as_str()?;
        let severity = severity(message.get("level")?.as_str()?).filter(|severity| *severity != "note")?;
        let spans = message.get("spans").and_then(Value::as_array);
        let span = spans.and_then(|spans| {
            spans.iter().find(|span| span.get("is_primary").and_then(Value::as_bool) == Some(true))
        });
        if span.is_none()
            && (text.starts_with("aborting due to")
                || text.contains("warning emitted")
                || text.contains("warnings emitted"))
        {
            return None;
        }
        let field = |name: &str| span.and_then(|span| span.get(name));
        let label =
            field("label").and_then(Value::as_str).map_or_else(String::new, |label| format!(": {label}"));
        Some(Self {
            file: field("file_name").and_then(Value::as_str).map(str::to_owned),
            line: field("line_start").and_then(Value::as_u64),
            column: field("column_start").and_then(Value::as_u64),
            severity,
            code: message.pointer("/code/code").and_then(Value::as_str).map(str::to_owned),
            message: shortened(&format!("{text}{label}")),
        })
    }

    /// What a compiler printed for people, as [`DiagnosticReader`] reads it.
    pub fn from_text(text: &str) -> Vec<Self> {
        let mut reader = DiagnosticReader::default();
        for line in text.lines() {
            reader.line(Stream::Stdout, line);
        }
        reader.into_diagnostics()
    }

    /// Errors first, then warnings, then the rest.
    fn rank(&self) -> usize {
        ["error", "warning"].iter().position(|severity| *severity == self.severity).unwrap_or(2)
    }

    /// The file relative to the folder of this prefix, which ends in `/`.
    pub(crate) fn relative_to(&mut self, prefix: &str) {
        if let Some(file) = &mut self.file
            && let Some(relative) = file.strip_prefix(prefix).or_else(|| file.strip_prefix("./"))
        {
            *file = relative.to_owned();
        }
    }
}

/// Reads what compilers print, line by line while they print it: the JSON of cargo, and what rustc, gcc, clang,
/// javac, go, tsc, `MSBuild` and Maven write for people.
///
/// All errors and warnings are counted. Of errors, warnings and notes the first 100 each are kept, so that memory
/// is bounded whatever is printed. One that is told twice counts once.
#[derive(Debug, Default)]
pub struct DiagnosticReader {
    /// rustc's place follows on a line of its own; by stream.
    waiting: [Option<Diagnostic>; 2],
    seen: HashSet<u64>,
    /// Hashes of lines that are a diagnostic by themselves, which need not be read again.
    lines: HashSet<u64>,
    kept: [Vec<Diagnostic>; 3],
    counts: [usize; 3],
}

impl DiagnosticReader {
    /// Kept of each severity.
    const KEPT: usize = 100;
    /// Hashes that are remembered, to tell what has been told before.
    const REMEMBERED: usize = 100_000;

    /// One line, without its end.
    pub fn line(&mut self, stream: Stream, line: &str) {
        if line.starts_with("{\"reason\":") {
            if !self.has_read(line)
                && let Some(diagnostic) = Diagnostic::from_cargo(line)
            {
                self.remember(line);
                self.add(diagnostic);
            }
            return;
        }
        let waiting = &mut self.waiting[usize::from(stream == Stream::Stderr)];
        let trimmed = line.trim();
        if let (Some(place), Some(mut diagnostic)) = (trimmed.strip_prefix("--> "), waiting.take()) {
            if let Some((file, line, column)) = position(place) {
                diagnostic.file = Some(file.to_owned());
                (diagnostic.line, diagnostic.column) = (Some(line), column);
                self.add(diagnostic);
            }
            return;
        }
        // All of the forms below have one of these before their message.
        if !trimmed.contains(": ") && !trimmed.contains("] ") {
            *waiting = None;
            return;
        }
        if self.lines.contains(&hash(trimmed)) {
            return;
        }
        let found = in_parentheses(trimmed)
            .or_else(|| maven(trimmed))
            .or_else(|| pretty_tsc(trimmed))
            .or_else(|| colons(trimmed));
        match found {
            Some(diagnostic) => {
                self.remember(trimmed);
                self.add(diagnostic);
            }
            None => *waiting = rustc(line),
        }
    }

    fn has_read(&self, line: &str) -> bool {
        self.lines.contains(&hash(line))
    }

    fn remember(&mut self, line: &str) {
        if self.lines.len() < Self::REMEMBERED {
            self.lines.insert(hash(line));
        }
    }

    fn add(&mut self, diagnostic: Diagnostic) {
        let mut hasher = DefaultHasher::new();
        diagnostic.hash(&mut hasher);
        if self.seen.contains(&hasher.finish()) {
            return;
        }
        if self.seen.len() < Self::REMEMBERED {
            self.seen.insert(hasher.finish());
        }
        let rank = diagnostic.rank();
        self.counts[rank] += 1;
        if self.kept[rank].len() < Self::KEPT {
            self.kept[rank].push(diagnostic);
        }
    }

    /// How many errors there were.
    pub fn errors(&self) -> usize {
        self.counts[0]
    }

    /// How many warnings there were.
    pub fn warnings(&self) -> usize {
        self.counts[1]
    }

    /// What is kept: errors, then warnings, then notes, each as they came.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.kept.into_iter().flatten().collect()
    }
}

fn hash(line: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

/// `FILE:LINE` or `FILE:LINE:COLUMN`, and nothing after it.
fn position(text: &str) -> Option<(&str, u64, Option<u64>)> {
    let (rest, last) = text.rsplit_once(':')?;
    let last = last.parse().ok()?;
    match rest.rsplit_once(':').map(|(file, line)| (file, line.parse())) {
        Some((file, Ok(line))) if !file.is_empty() => Some((file, line, Some(last))),
        _ => (!rest.is_empty()).then_some((rest, last, None)),
    }
}

/// `error[E0308]: mismatched types`.
fn rustc(line: &str) -> Option<Diagnostic> {
    let (head, message) = line.split_once(": ")?;
    let (word, code) = match head.split_once('[') {
        Some((word, code)) => (word, Some(code.strip_suffix(']')?.to_owned())),
        None => (head, None),
    };
    let severity = severity(word).filter(|severity| *severity != "note")?;
    Some(Diagnostic { file: None, line: None, column: None, severity, code, message: shortened(message) })
}

/// `FILE(LINE,COLUMN): error CODE: MESSAGE [PROJECT]`: tsc and `MSBuild`.
fn in_parentheses(line: &str) -> Option<Diagnostic> {
    let open = line.find('(')?;
    let (place, rest) = line[open + 1..].split_once("): ").or_else(|| line[open + 1..].split_once(") : "))?;
    let mut numbers = place.split(',').map(|number| number.trim().parse().ok());
    let (line_number, column) = (numbers.next()??, numbers.next().flatten());
    let (head, message) = rest.split_once(": ")?;
    let (word, code) = head.trim().split_once(' ').unwrap_or((head.trim(), ""));
    // MSBuild names the project at the end.
    let message =
        message.rsplit_once(" [").filter(|(_, end)| end.ends_with("proj]")).map_or(message, |(text, _)| text);
    Some(Diagnostic {
        file: Some(line[..open].to_owned()),
        line: Some(line_number),
        column,
        severity: severity(word)?,
        code: Some(code.to_owned()).filter(|code| !code.is_empty()),
        message: shortened(message),
    })
}

/// `[ERROR] /path/File.java:[12,5] message`.
fn maven(line: &str) -> Option<Diagnostic> {
    let (word, rest) = line.strip_prefix('[')?.split_once("] ")?;
    let (file, rest) = rest.split_once(":[")?;
    let (place, message) = rest.split_once("] ")?;
    let (line, column) = place.split_once(',')?;
    Some(Diagnostic {
        file: Some(file.to_owned()),
        line: Some(line.parse().ok()?),
        column: column.parse().ok(),
        severity: severity(word)?,
        code: None,
        message: shortened(message),
    })
}

/// `FILE:LINE:COLUMN - error TS2322: MESSAGE`: tsc where it thinks that a person reads.
fn pretty_tsc(line: &str) -> Option<Diagnostic> {
    let (place, rest) = line.split_once(" - ")?;
    let (file, line_number, column) = position(place)?;
    let (head, message) = rest.split_once(": ")?;
    let (word, code) = head.split_once(' ')?;
    Some(Diagnostic {
        file: Some(file.to_owned()),
        line: Some(line_number),
        column,
        severity: severity(word)?,
        code: Some(code.to_owned()),
        message: shortened(message),
    })
}

/// `FILE:LINE:COLUMN: error: MESSAGE [-Wcode]` (gcc, clang, javac), and `FILE:LINE:COLUMN: MESSAGE` for go.
fn colons(line: &str) -> Option<Diagnostic> {
    let (place, rest) = line.split_once(": ")?;
    let place = place.strip_prefix("vet: ").unwrap_or(place);
    let (file, line_number, column) = position(place)?;
    if file.contains(' ') && !file.contains('/') {
        return None;
    }
    let word = rest.split_once(": ").and_then(|(word, message)| Some((severity(word)?, message)));
    let (severity, message) = match word {
        Some(found) => found,
        None if file.ends_with(".go") => ("error", rest),
        None => return None,
    };
    let option = message.rsplit_once(" [-").and_then(|(text, code)| Some((text, code.strip_suffix(']')?)));
    Some(Diagnostic {
        file: Some(file.to_owned()),
        line: Some(line_number),
        column,
        severity,
        code: option.map(|(_, code)| format!("-{code}")),
        message: shortened(option.map_or(message, |(text, _)| text)),
    })
}

impl fmt::Display for Diagnostic {
    /// `src/lib.rs:3:5: error[E0308]: mismatched types`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
            for number in [self.line, self.column].into_iter().flatten() {
                write!(f, "{number}:")?;
            }
            f.write_str(" ")?;
        }
        f.write_str(self.severity)?;
        if let Some(code) = &self.code {
            write!(f, "[{code}]")?;
        }
        write!(f, ": {}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_compilers_own_form_is_read() {
        let text = "\
error[E0308]: mismatched types
  --> src/lib.rs:3:5
   |
src/a.ts(4,7): error TS2322: Type 'string' is not assignable to type 'number'.
src/b.ts:4:7 - error TS2304: Cannot find name 'y'.
C:\\x\\Program.cs(5,13): error CS0103: The name 'y' does not exist [C:\\x\\x.csproj]
main.c:7:3: warning: unused variable 'x' [-Wunused-variable]
main.c:9:1: error: expected ';' before '}' token
./main.go:6:2: undefined: foo
[ERROR] /p/src/main/java/App.java:[12,5] cannot find symbol
warning: unused import: `x`
test result: ok. 3 passed
";
        let found: Vec<_> = Diagnostic::from_text(text).iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(found.join("\n"), @r"
        src/lib.rs:3:5: error[E0308]: mismatched types
        src/a.ts:4:7: error[TS2322]: Type 'string' is not assignable to type 'number'.
        src/b.ts:4:7: error[TS2304]: Cannot find name 'y'.
        C:\x\Program.cs:5:13: error[CS0103]: The name 'y' does not exist
        main.c:9:1: error: expected ';' before '}' token
        ./main.go:6:2: error: undefined: foo
        /p/src/main/java/App.java:12:5: error: cannot find symbol
        main.c:7:3: warning[-Wunused-variable]: unused variable 'x'
        ");
    }

    #[test]
    fn all_are_counted_the_first_are_kept_and_one_told_twice_counts_once() {
        let mut reader = DiagnosticReader::default();
        for _ in 0..2 {
            for line in 1..=500 {
                reader.line(Stream::Stderr, &format!("a.c:{line}:1: warning: unused"));
            }
        }
        reader.line(Stream::Stderr, "a.c:1:1: error: at the end");
        assert_eq!((reader.errors(), reader.warnings()), (1, 500));
        let kept = reader.into_diagnostics();
        assert_eq!((kept.len(), kept[0].severity, kept[100].line), (101, "error", Some(100)));
    }

    #[test]
    fn streams_that_are_read_at_once_do_not_mix() {
        let mut reader = DiagnosticReader::default();
        reader.line(Stream::Stderr, "error[E0308]: mismatched types");
        reader.line(Stream::Stdout, "running a build script");
        reader.line(Stream::Stderr, "  --> src/lib.rs:3:5");
        assert_eq!(reader.into_diagnostics()[0].file.as_deref(), Some("src/lib.rs"));
    }

    proptest! {
        #[test]
        fn no_output_makes_it_panic(text in "(\\PC|[():\\[\\],\n0-9]|error|warning|--> ){0,60}") {
            let _ = Diagnostic::from_text(&text);
            let _ = Diagnostic::from_cargo(&text);
        }
    }
}
