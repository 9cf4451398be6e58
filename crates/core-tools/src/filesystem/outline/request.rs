//! The input and the output of `file_outline`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Source files to outline.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FileOutline {
    /// Up to 100 source files and folders: `["src/app.py", "src/models"]`. A folder stands for the source files below it
    /// that .gitignore does not name.
    #[schemars(length(min = 1, max = 100), extend("alias" = "path"))]
    pub paths: Vec<String>,
}

impl FileOutline {
    /// An input that outlines the files at `paths`.
    pub fn new<P: Into<String>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self { paths: paths.into_iter().map(Into::into).collect() }
    }
}

/// The definitions of several files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct OutlinedFiles {
    /// The files, in the order asked for; those of a folder by their paths.
    pub files: Vec<OutlinedFile>,
    /// Remarks: what was left out and how to get it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The definitions of one file, or the reason why there are none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct OutlinedFile {
    /// The file, relative to its root; as it was given, if it could not be read.
    pub path: String,
    /// The number of its lines.
    pub lines: u64,
    /// True if the parser did not understand all of it, so that definitions may be missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_errors: bool,
    /// The definitions, in its order.
    pub definitions: Vec<OutlineDefinition>,
    /// The reason why the file could not be read or parsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A definition: a function, a type, a constant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct OutlineDefinition {
    /// Its text before its body, on one line.
    pub signature: String,
    /// Its kind: `function`, `method`, `type`, `constant`, `field`, `macro`, `module`.
    pub kind: &'static str,
    /// Its first line, from 1.
    pub first_line: u64,
    /// Its last line.
    pub last_line: u64,
    /// The number of definitions that it stands in.
    pub depth: u64,
}

/// The words that tell what a definition is.
const KEYWORDS: [&str; 32] = [
    "fn",
    "def",
    "func",
    "function",
    "class",
    "struct",
    "enum",
    "trait",
    "impl",
    "interface",
    "type",
    "mod",
    "module",
    "namespace",
    "const",
    "static",
    "let",
    "var",
    "macro_rules",
    "record",
    "union",
    "typedef",
    "#define",
    "concept",
    "delegate",
    "event",
    "operator",
    "extern",
    "package",
    "using",
    "@interface",
    "declare",
];

impl OutlineDefinition {
    /// Returns the line of an outline: lines, kind where the signature does not tell it, signature.
    fn to_line(&self) -> String {
        let indent = "  ".repeat(usize::try_from(self.depth).unwrap_or_default());
        let lines = if self.first_line == self.last_line {
            self.first_line.to_string()
        } else {
            format!("{}-{}", self.first_line, self.last_line)
        };
        // A method of Java or C++ has no keyword of its own, and only then the kind is written.
        let is_told = self.signature.split([' ', '(', '<', '!']).any(|word| KEYWORDS.contains(&word));
        let kind = if is_told { String::new() } else { format!("{} ", self.kind) };
        format!("{indent}{lines} {kind}{}\n", self.signature)
    }
}

impl OutlinedFile {
    /// Returns a line with path and length, and one for each definition down to `max_depth`.
    pub(super) fn to_text(&self, max_depth: u64) -> String {
        if let Some(error) = &self.error {
            return format!("==> {} <==\n[error: {error}]\n", self.path);
        }
        let plural = if self.lines == 1 { "" } else { "s" };
        let errors = if self.has_errors { ", parsed with errors" } else { "" };
        let mut text = format!("==> {} ({} line{plural}{errors}) <==\n", self.path, self.lines);
        if self.definitions.is_empty() {
            text.push_str("[no definitions]\n");
        }
        let shown = self.definitions.iter().filter(|definition| definition.depth <= max_depth);
        text.extend(shown.map(OutlineDefinition::to_line));
        text
    }
}

impl OutlinedFiles {
    /// Returns the number of files that could not be outlined.
    pub fn failures(&self) -> usize {
        self.files.iter().filter(|file| file.error.is_some()).count()
    }

    /// Returns each file under a line `==> path (20 lines) <==`, then the notes.
    pub fn to_text(&self) -> String {
        let mut text: String = self.files.iter().map(|file| file.to_text(u64::MAX)).collect();
        for note in &self.notes {
            text.push_str(&format!("[{note}]\n"));
        }
        text
    }
}
