//! [`LineVisitor`]: the receiver of what a line does.

use super::error::ShellError;
use super::shell_line::ShellProgram;
use super::word::ShellWord;
use role_policy::Access;

/// The kind of a value that a variable is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AssignedValue {
    /// A number, or nothing.
    Number,
    /// Any text.
    Text,
    /// One of these words.
    Words(Vec<ShellWord>),
    /// Any text, as a value in a declaration. It is a list in brackets if the variable is one.
    DeclaredText,
    /// A list of texts.
    List,
}

/// Receives what a line does, part by part, from the readers of its syntax and of its commands.
pub(super) trait LineVisitor: Sized {
    /// Returns the home folder, which `~` stands for.
    fn home(&self) -> Option<&str>;

    /// Adds the commands of a line within this one.
    fn inner_line(&mut self, text: &str) -> Result<(), ShellError>;

    /// Calls `add` for commands that may run several times.
    fn repeated<T>(&mut self, add: impl FnOnce(&mut Self) -> T) -> T;

    /// Adds one command: a word of the shell, a program that starts another, or a program.
    fn command(&mut self, words: Vec<ShellWord>) -> Result<(), ShellError>;

    /// Adds a program.
    fn program(&mut self, program: ShellProgram);

    /// Adds a file that the line opens.
    fn file(&mut self, path: &str, access: Access);

    /// Adds a folder that the line goes to.
    fn folder(&mut self, path: &str);

    /// Notes that the folder cannot be known.
    fn folder_varies(&mut self);

    /// Notes that a text is evaluated as more than text.
    fn evaluates_text(&mut self);

    /// Notes a variable whose value is computed as an expression.
    fn computes_with(&mut self, name: &str);

    /// Notes a variable that programs get.
    fn assign_for_programs(&mut self, name: String, value: AssignedValue);

    /// Notes a variable of the shell, which programs get only if they got it before.
    fn assign_in_shell(&mut self, name: String, value: AssignedValue);
}
