//! One message of a compiler.

use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// One message of a compiler.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
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
    /// The severity: `error`, `warning` or `note`.
    #[schemars(with = "String")]
    pub severity: DiagnosticSeverity,
    /// The code of the message, such as `E0308`, `TS2322`, `CS0103`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The message itself.
    pub message: String,
}

/// The severity of a compiler's message. Errors come before warnings, and warnings before notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DiagnosticSeverity {
    /// The code does not compile.
    Error,
    /// The code compiles, and is probably wrong.
    Warning,
    /// An explanation, or advice.
    Note,
}

impl DiagnosticSeverity {
    /// Reads the word that a compiler writes before its message.
    pub(super) fn from_word(word: &str) -> Option<Self> {
        Some(match word.trim() {
            "error" | "fatal error" | "error: internal compiler error" | "ERROR" => Self::Error,
            "warning" | "WARNING" => Self::Warning,
            "note" | "help" | "info" | "message" => Self::Note,
            _ => return None,
        })
    }

    /// Returns the name, as it is in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// The length of the longest message that is kept, in bytes.
const MAX_MESSAGE_BYTES: usize = 4_000;

impl Diagnostic {
    /// Creates a message without a place and a code, cut to 4,000 bytes.
    pub(super) fn new(severity: DiagnosticSeverity, message: &str) -> Self {
        // A message about generic types can have thousands of lines, and says what is wrong at its beginning.
        let message = message[..message.floor_char_boundary(MAX_MESSAGE_BYTES)].to_owned();
        Self { file: None, line: None, column: None, severity, code: None, message }
    }

    /// Makes the file relative to the folder of this prefix, which ends in `/`.
    pub(crate) fn relative_to(&mut self, prefix: &str) {
        if let Some(file) = &mut self.file
            && let Some(relative) = file.strip_prefix(prefix).or_else(|| file.strip_prefix("./"))
        {
            *file = relative.to_owned();
        }
    }
}

impl fmt::Display for Diagnostic {
    /// Writes `src/lib.rs:3:5: error[E0308]: mismatched types`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
            for number in [self.line, self.column].into_iter().flatten() {
                write!(f, "{number}:")?;
            }
            f.write_str(" ")?;
        }
        f.write_str(self.severity.name())?;
        if let Some(code) = &self.code {
            write!(f, "[{code}]")?;
        }
        write!(f, ": {}", self.message)
    }
}
