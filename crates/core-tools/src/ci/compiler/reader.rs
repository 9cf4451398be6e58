//! Reads diagnostics while a compiler prints them.

use super::diagnostic::{Diagnostic, DiagnosticSeverity};
use super::formats::{read_line, read_position, read_rustc_headline};
use process_runner::Stream;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher as _};

impl Diagnostic {
    /// Reads the lines that a compiler printed for people, as [`DiagnosticReader`] does.
    pub fn from_text(text: &str) -> Vec<Self> {
        let mut reader = DiagnosticReader::default();
        for line in text.lines() {
            reader.line(Stream::Stdout, line);
        }
        reader.into_diagnostics()
    }
}

/// Reads what compilers print, line by line while they print it: the JSON of cargo, and what rustc, gcc, clang,
/// javac, go, tsc, `MSBuild` and Maven write for people.
///
/// All errors and warnings are counted. Of errors, warnings and notes the first 100 each are kept, so that memory
/// is bounded whatever is printed. A message that is printed twice counts once.
#[derive(Debug, Default)]
pub struct DiagnosticReader {
    /// The headline of rustc whose position follows on the next lines, by stream: lines of the two streams
    /// alternate.
    pending: [Option<Diagnostic>; 2],
    /// Hashes of the diagnostics that were counted.
    seen: HashSet<u64>,
    /// Hashes of the lines that are a diagnostic by themselves: the same line need not be read again.
    read_lines: HashSet<u64>,
    /// By rank: errors, warnings, notes.
    kept: [Vec<Diagnostic>; 3],
    counts: [usize; 3],
}

impl DiagnosticReader {
    /// The number of diagnostics that are kept of each severity.
    const MAX_KEPT: usize = 100;
    /// The number of hashes that are remembered. Beyond it, a repeated message counts again.
    const MAX_HASHES: usize = 100_000;

    /// Reads one line, without its end.
    pub fn line(&mut self, stream: Stream, line: &str) {
        if line.starts_with("{\"reason\":") {
            if !self.read_lines.contains(&hash(line))
                && let Some(diagnostic) = Diagnostic::from_cargo(line)
            {
                self.remember(line);
                self.add(diagnostic);
            }
            return;
        }
        let pending = &mut self.pending[usize::from(stream == Stream::Stderr)];
        let trimmed = line.trim();
        if let (Some(position), Some(diagnostic)) = (trimmed.strip_prefix("--> "), pending.take()) {
            if let Some(position) = read_position(position) {
                self.add(diagnostic.at(&position));
            }
            return;
        }
        // All forms below have one of these before their message. The check spares most lines the rest.
        if !trimmed.contains(": ") && !trimmed.contains("] ") {
            *pending = None;
            return;
        }
        if self.read_lines.contains(&hash(trimmed)) {
            return;
        }
        match read_line(trimmed) {
            Some(diagnostic) => {
                self.remember(trimmed);
                self.add(diagnostic);
            }
            // Counted only once its position follows: headlines such as `error: aborting due to 2 errors` have none.
            None => *pending = read_rustc_headline(line),
        }
    }

    fn remember(&mut self, line: &str) {
        if self.read_lines.len() < Self::MAX_HASHES {
            self.read_lines.insert(hash(line));
        }
    }

    fn add(&mut self, diagnostic: Diagnostic) {
        let hash = hash(&diagnostic);
        if self.seen.contains(&hash) {
            return;
        }
        if self.seen.len() < Self::MAX_HASHES {
            self.seen.insert(hash);
        }
        let rank = rank(diagnostic.severity);
        self.counts[rank] += 1;
        if self.kept[rank].len() < Self::MAX_KEPT {
            self.kept[rank].push(diagnostic);
        }
    }

    /// Returns the number of errors.
    pub fn errors(&self) -> usize {
        self.counts[rank(DiagnosticSeverity::Error)]
    }

    /// Returns the number of warnings.
    pub fn warnings(&self) -> usize {
        self.counts[rank(DiagnosticSeverity::Warning)]
    }

    /// Returns the diagnostics that were kept: errors, then warnings, then notes, each in the order they came.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.kept.into_iter().flatten().collect()
    }
}

/// Returns the index of a severity in the reader's arrays.
fn rank(severity: DiagnosticSeverity) -> usize {
    match severity {
        DiagnosticSeverity::Error => 0,
        DiagnosticSeverity::Warning => 1,
        DiagnosticSeverity::Note => 2,
    }
}

fn hash(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_form_of_each_compiler_is_read() {
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
    fn all_are_counted_the_first_are_kept_and_a_repeated_one_counts_once() {
        let mut reader = DiagnosticReader::default();
        for _ in 0..2 {
            for line in 1..=500 {
                reader.line(Stream::Stderr, &format!("a.c:{line}:1: warning: unused"));
            }
        }
        reader.line(Stream::Stderr, "a.c:1:1: error: at the end");
        assert_eq!((reader.errors(), reader.warnings()), (1, 500));
        let kept = reader.into_diagnostics();
        assert_eq!(
            (kept.len(), kept[0].severity, kept[100].line),
            (101, DiagnosticSeverity::Error, Some(100))
        );
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
