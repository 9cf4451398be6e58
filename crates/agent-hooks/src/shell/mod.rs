//! A line of a shell as a policy sees it: the programs that it names, the files that it redirects, the folders that it
//! goes to.
//!
//! [`read`] parses the line as bash does and follows what starts other programs: `sh -c`, `env`, `xargs`,
//! `find -exec`, `sudo`, `eval` and others. It guesses nothing: a line that it cannot read whole is a [`ShellError`].

mod arithmetic;
mod builtins;
mod collector;
mod conditions;
mod declarations;
mod error;
mod expansions;
mod launchers;
mod options;
mod shell_line;
mod syntax;
mod variables;
mod visitor;
mod word;

pub use error::ShellError;
pub use shell_line::{ShellFile, ShellLine, ShellProgram, ShellSurroundings, VariableValues};
pub use syntax::syntax_tree;
pub use word::ShellWord;

use collector::Collector;
use visitor::LineVisitor as _;

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
