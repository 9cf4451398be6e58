//! The languages that have outlines, and the file names that tell them.

/// A language that [`outline`](super::outline()) can parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Language {
    /// `.rs`
    Rust,
    /// `.py`, `.pyi`
    Python,
    /// `.js`, `.mjs`, `.cjs`, `.jsx`
    JavaScript,
    /// `.ts`, `.mts`, `.cts`
    TypeScript,
    /// `.tsx`
    Tsx,
    /// `.go`
    Go,
    /// `.java`
    Java,
    /// `.cs`
    CSharp,
    /// `.c`
    C,
    /// `.cpp`, `.cc`, `.cxx`, `.hpp`, `.hh`, `.hxx`, and `.h`, because nearly every C header is valid C++
    Cpp,
}

impl Language {
    // The position is the tag in the files of a cache: add a language at the end only.
    const ALL: [Self; 10] = [
        Self::Rust,
        Self::Python,
        Self::JavaScript,
        Self::TypeScript,
        Self::Tsx,
        Self::Go,
        Self::Java,
        Self::CSharp,
        Self::C,
        Self::Cpp,
    ];

    /// Returns the language of the file at `path`, told by the extension of its name.
    pub fn of_path(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next()?;
        let (_, extension) = name.rsplit_once('.')?;
        Some(match extension {
            "rs" => Self::Rust,
            "py" | "pyi" => Self::Python,
            "js" | "mjs" | "cjs" | "jsx" => Self::JavaScript,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" => Self::Tsx,
            "go" => Self::Go,
            "java" => Self::Java,
            "cs" => Self::CSharp,
            "c" => Self::C,
            "cpp" | "cc" | "cxx" | "hpp" | "hh" | "hxx" | "h" => Self::Cpp,
            _ => return None,
        })
    }

    /// Returns the name of the language in a Markdown fence.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::TypeScript => "typescript",
            Self::Tsx => "tsx",
            Self::Go => "go",
            Self::Java => "java",
            Self::CSharp => "csharp",
            Self::C => "c",
            Self::Cpp => "cpp",
        }
    }

    /// Returns a number that stays the same from version to version, for the files of a cache.
    pub(crate) fn tag(self) -> u8 {
        Self::ALL.iter().zip(0..).find(|&(&language, _)| language == self).map_or(u8::MAX, |(_, tag)| tag)
    }

    /// Returns the language with this [`tag`](Self::tag).
    pub(crate) fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.get(usize::from(tag)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Language;

    #[test]
    fn a_language_is_told_by_the_extension_of_the_file() {
        for (path, language) in [
            ("a/b.rs", Some(Language::Rust)),
            ("x.d.ts", Some(Language::TypeScript)),
            ("rs", None),
            ("a.rs/b", None),
        ] {
            assert_eq!(Language::of_path(path), language, "{path}");
        }
    }

    #[test]
    fn a_tag_leads_back_to_its_language() {
        for language in Language::ALL {
            assert_eq!(Language::from_tag(language.tag()), Some(language));
        }
        assert_eq!(Language::from_tag(200), None);
    }
}
