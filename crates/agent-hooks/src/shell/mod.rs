//! A line of a shell as a policy sees it: the programs that it names, the files that it redirects, the folders that it
//! goes to.
//!
//! [`read`] parses the line as bash does and follows what starts other programs: `sh -c`, `env`, `xargs`,
//! `find -exec`, `sudo`, `eval` and others. It guesses nothing: a line that it cannot read whole is a [`ShellError`].

mod builtins;
mod collector;
mod error;
mod launchers;
mod options;
mod syntax;
mod word;

pub use error::ShellError;
pub use word::ShellWord;

use collector::Collector;
use role_policy::Access;

/// The longest line that is read, in bytes.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// The surroundings of a line, as far as its meaning depends on them.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShellSurroundings<'a> {
    /// The home folder, which `~` stands for.
    pub home: Option<&'a str>,
    /// The names of the variables that programs inherit.
    pub variables: &'a [String],
}

/// A program that a line starts, with the words that it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShellProgram {
    /// The program and its arguments. The program is literal.
    pub words: Vec<ShellWord>,
    /// True if the program starts others from its arguments, which are not read in full.
    pub starts_others: bool,
}

/// A file that a line itself opens, by a redirection or through a program that is known to write it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShellFile {
    /// The path, as it is written.
    pub path: String,
    /// The use that is made of it.
    pub access: Access,
}

/// The contents of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShellLine {
    /// The programs, in the order of the line.
    pub programs: Vec<ShellProgram>,
    /// The files of its redirections.
    pub files: Vec<ShellFile>,
    /// The folders that it goes to (`cd`), as they are written.
    pub folders: Vec<String>,
    /// True if the folder that a relative path begins in cannot be known: `cd` in a loop or a function.
    pub folder_varies: bool,
    /// The variables that it gives to programs.
    pub variables: Vec<String>,
    /// True if the line evaluates the value of a variable as more than text, as bash does in arithmetic: a value may then
    /// hold commands.
    pub evaluates_variables: bool,
    /// Every literal word, to find the names of protected files in them.
    pub literals: Vec<String>,
}

/// Reads a line of a shell.
///
/// ```
/// use agent_hooks::shell::{ShellSurroundings, read};
///
/// let line = read("cd src && git log | xargs -n 1 sh -c 'rm -f x > out.txt'", ShellSurroundings::default())?;
/// let programs: Vec<&str> = line.programs.iter().map(|program| program.words[0].text.as_str()).collect();
/// assert_eq!(programs, ["git", "rm"]);
/// assert_eq!(line.files[0].path, "out.txt");
/// assert_eq!(line.folders, ["src"]);
/// // The program is known only when the line runs.
/// assert!(read("$PROGRAM --version", ShellSurroundings::default()).is_err());
/// # Ok::<(), agent_hooks::shell::ShellError>(())
/// ```
///
/// # Errors
/// The line is not one that this reader understands whole.
pub fn read(line: &str, surroundings: ShellSurroundings<'_>) -> Result<ShellLine, ShellError> {
    let mut collector = Collector::new(surroundings);
    syntax::read_into(line, &mut collector)?;
    Ok(collector.finish())
}

/// Reads a command that is given as words, such as `["bash", "-lc", "cargo test"]`.
///
/// # Errors
/// As [`read`].
pub fn read_words(words: &[String], surroundings: ShellSurroundings<'_>) -> Result<ShellLine, ShellError> {
    let mut collector = Collector::new(surroundings);
    collector.command(words.iter().map(|word| ShellWord::literal(word.as_str())).collect())?;
    Ok(collector.finish())
}
