//! The words that a requested command runs as, the same for the policy that judges it and for the run.

use process_runner::{CommandLine, CommandSplitError};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

/// A command: an array of program and arguments, or one line that is split as a shell splits words.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CommandText {
    /// One line, such as "git log -n 3".
    Line(String),
    /// The program and its arguments, such as ["git", "log", "-n", "3"].
    Vector(#[schemars(length(min = 1))] Vec<String>),
}

/// The programs that words can name: those in the folders of a `PATH`, and paths relative to a folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramLookup<'a> {
    path: &'a OsStr,
    folder: &'a Path,
}

impl<'a> ProgramLookup<'a> {
    /// Looks for names in `path`, and for relative paths in `folder`.
    pub(crate) fn new(path: Option<&'a OsStr>, folder: &'a Path) -> Self {
        Self { path: path.unwrap_or_default(), folder }
    }

    /// Returns true if `word` names a program. `cargo ../x` never does: a policy that judges it as `cargo` must not be
    /// deceived by a folder that somebody has called `cargo ..`.
    fn has(&self, word: &str) -> bool {
        let is_path = |text: &str| text.contains(std::path::is_separator);
        let first = word.split(char::is_whitespace).next().unwrap_or_default();
        is_path(word) == is_path(first) && which::which_in(word, Some(self.path), self.folder).is_ok()
    }

    /// Returns the shell that lines run in: bash, which most lines are written for, or `sh` where there is none.
    pub(crate) fn shell(&self) -> &'static str {
        if self.has("bash") { "bash" } else { "sh" }
    }
}

impl CommandText {
    /// Reads what models write in place of a line or an array of words: the JSON text of an array, and an array
    /// whose only word is a whole line, unless a program is called so.
    pub(crate) fn understood(&self, programs: ProgramLookup<'_>) -> Cow<'_, Self> {
        match self {
            Self::Line(line) => match json_words(line) {
                Some(words) => Cow::Owned(Self::Vector(words).understood(programs).into_owned()),
                None => Cow::Borrowed(self),
            },
            Self::Vector(words) => match words.as_slice() {
                // A program may have a blank in its name, and then the array is meant as it stands.
                [word] if word.trim().contains(char::is_whitespace) && !programs.has(word) => {
                    Cow::Owned(Self::Line(word.clone()))
                }
                _ => Cow::Borrowed(self),
            },
        }
    }

    /// Returns program and arguments, as the command runs without a shell.
    ///
    /// # Errors
    /// A line cannot be split into words.
    #[cfg_attr(not(feature = "mcp"), allow(dead_code, reason = "a policy judges them"))]
    pub(crate) fn words(&self, programs: ProgramLookup<'_>) -> Result<Vec<String>, CommandSplitError> {
        match self.understood(programs).into_owned() {
            Self::Vector(words) => Ok(words),
            Self::Line(line) => {
                let line = CommandLine::parse(&line)?;
                Ok(std::iter::once(line.program).chain(line.args).collect())
            }
        }
    }
}

/// Returns the words that run `line` in a shell.
pub(crate) fn shell_words(line: &str, programs: ProgramLookup<'_>) -> Vec<String> {
    vec![programs.shell().to_owned(), "-c".to_owned(), line.to_owned()]
}

/// Returns the words of `["ls", "-la"]` written as text. `[ -f x ]` is a command and no JSON.
fn json_words(line: &str) -> Option<Vec<String>> {
    let line = line.trim();
    if !(line.starts_with('[') && line.ends_with(']')) {
        return None;
    }
    // Only an array of strings is a command. `[1]` and `[ -f x ]` stay lines.
    serde_json::from_str::<Vec<String>>(line).ok().filter(|words| !words.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[allow(clippy::needless_pass_by_value, reason = "each is made for its call")]
    fn words(text: CommandText) -> Vec<String> {
        text.words(ProgramLookup::new(Some("/usr/bin:/bin".as_ref()), Path::new("/"))).unwrap()
    }

    fn vector(words: &[&str]) -> CommandText {
        CommandText::Vector(words.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_json_text_of_an_array_is_the_array() {
        assert_eq!(words(CommandText::Line(r#" ["echo", "a b"] "#.to_owned())), ["echo", "a b"]);
        assert_eq!(words(CommandText::Line(r#"["ls -la"]"#.to_owned())), ["ls", "-la"]);
        assert_eq!(words(CommandText::Line("[ -f x ]".to_owned())), ["[", "-f", "x", "]"]);
        assert_eq!(words(CommandText::Line("[]".to_owned())), ["[]"]);
    }

    #[test]
    fn the_only_word_of_an_array_is_a_line_unless_a_program_is_called_so() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(words(vector(&["ls -la 'a b'"])), ["ls", "-la", "a b"]);
        assert_eq!(words(vector(&["ls"])), ["ls"]);
        assert_eq!(words(vector(&["ls -la", "x"])), ["ls -la", "x"]);
        #[allow(clippy::disallowed_methods, reason = "a program for the test")]
        #[cfg(unix)]
        {
            let file = folder.path().join("my program");
            std::fs::write(&file, "#!/bin/sh\n").unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&file, mode).unwrap();
            let in_path = ProgramLookup::new(Some(folder.path().as_os_str()), Path::new("/"));
            assert_eq!(vector(&["my program"]).words(in_path).unwrap(), ["my program"]);
            let relative = ProgramLookup::new(None, folder.path());
            assert_eq!(vector(&["./my program"]).words(relative).unwrap(), ["./my program"]);
            std::fs::create_dir(folder.path().join("my ..")).unwrap();
            std::fs::copy(&file, folder.path().join("my ../program")).unwrap();
            assert_eq!(vector(&["my ../program"]).words(relative).unwrap(), ["my", "../program"]);
        }
    }

    #[test]
    fn the_shell_is_bash_where_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let none = ProgramLookup::new(Some(folder.path().as_os_str()), Path::new("/"));
        assert_eq!(shell_words("a | b", none), ["sh", "-c", "a | b"]);
        #[allow(clippy::disallowed_methods, reason = "a program for the test")]
        #[cfg(unix)]
        {
            let file = folder.path().join("bash");
            std::fs::write(&file, "#!/bin/sh\n").unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&file, mode).unwrap();
            assert_eq!(shell_words("a | b", none), ["bash", "-c", "a | b"]);
        }
    }

    proptest! {
        #[test]
        fn an_array_of_words_is_taken_as_it_is(words in prop::collection::vec(any::<String>(), 2..5)) {
            let programs = ProgramLookup::new(None, Path::new("/"));
            prop_assert_eq!(CommandText::Vector(words.clone()).words(programs), Ok(words));
        }
    }
}
