//! The type errors that deno prints: a headline, the line of the source, and the position after it.

use super::diagnostic::{Diagnostic, DiagnosticSeverity};
use super::formats::DiagnosticPosition;

impl Diagnostic {
    /// Reads `TS2322 [ERROR]: MESSAGE`, whose position is `    at file:///FILE:LINE:COLUMN` some lines below.
    pub(crate) fn from_deno(text: &str) -> Vec<Self> {
        let mut diagnostics: Vec<Self> = Vec::new();
        for line in text.lines() {
            if let Some((code, message)) = line.trim_start().split_once(" [ERROR]: ")
                && let Some(number) = code.strip_prefix("TS")
                && number.bytes().all(|byte| byte.is_ascii_digit())
            {
                let diagnostic = Self::new(DiagnosticSeverity::Error, message);
                diagnostics.push(Self { code: Some(code.to_owned()), ..diagnostic });
            } else if let Some(position) =
                line.trim_start().strip_prefix("at file://").and_then(read_position)
                && let Some(last) = diagnostics.pop_if(|last| last.file.is_none())
            {
                diagnostics.push(last.at(&position));
            }
        }
        diagnostics
    }
}

/// Reads `FILE:LINE:COLUMN`.
fn read_position(text: &str) -> Option<DiagnosticPosition<'_>> {
    let mut parts = text.trim_end().rsplitn(3, ':');
    let (column, line, file) = (parts.next()?, parts.next()?, parts.next()?);
    Some(DiagnosticPosition { file, line: line.parse().ok()?, column: column.parse().ok() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_errors_have_their_positions() {
        let text = "Check b_test.ts\nTS2322 [ERROR]: Type 'string' is not assignable to type 'number'.\nconst x: number = \"a\";\n      ^\n    at file:///p/b_test.ts:1:7\n\nTS2304 [ERROR]: Cannot find name 'y'.\n\nerror: Type checking failed.\n";
        let read: Vec<_> = Diagnostic::from_deno(text).iter().map(ToString::to_string).collect();
        assert_eq!(
            read,
            [
                "/p/b_test.ts:1:7: error[TS2322]: Type 'string' is not assignable to type 'number'.",
                "error[TS2304]: Cannot find name 'y'."
            ]
        );
    }
}
