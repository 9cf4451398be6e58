//! [`ShellError`]: the reasons why a line cannot be judged.

use super::shell_line::MAX_LINE_BYTES;

/// The reason why a line cannot be judged. The message says what to write instead, in words for a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShellError {
    /// The line is too long.
    #[error(
        "it has more than {MAX_LINE_BYTES} bytes; write a script into a file of the project and run that"
    )]
    TooLong,
    /// It has a character that no shell reads as text.
    #[error("it has a control character; write the line without it")]
    ControlCharacter,
    /// It is not valid, or is nothing that the parser knows.
    #[error("the shell syntax near `{near}` is not understood; write simpler commands, joined by `&&`")]
    Syntax {
        /// The text that is not understood.
        near: String,
    },
    /// It is nested too deeply.
    #[error("it is nested too deeply; run its parts one after the other")]
    TooDeep,
    /// The program is known only when the line runs.
    #[error("the program `{word}` is known only when the line runs; write its name out")]
    DynamicProgram {
        /// The word, as it is written.
        word: String,
    },
    /// A line for another shell is known only when this one runs.
    #[error("what `{program}` is to run is known only when the line runs; write it out in this line")]
    DynamicScript {
        /// The program that would run it.
        program: String,
    },
    /// A program that runs what it reads.
    #[error(
        "`{program}` would run what it reads from its input; write the commands in this line, or run a file"
    )]
    StandardInput {
        /// The program.
        program: String,
    },
    /// A path of a redirection is known only when the line runs.
    #[error("the path `{word}` is known only when the line runs; write it out")]
    DynamicPath {
        /// The word, as it is written.
        word: String,
    },
    /// A word of the shell whose effect reaches further than one command.
    #[error("`{builtin}` changes what later words mean; do without it")]
    Builtin {
        /// The word.
        builtin: String,
    },
    /// An option whose meaning is not known here.
    #[error("the option `{option}` of `{program}` is not known here; run the command without `{program}`")]
    Option {
        /// The program.
        program: String,
        /// The option.
        option: String,
    },
    /// A shell whose syntax is another.
    #[error("lines of `{program}` cannot be judged; write the line for bash")]
    OtherShell {
        /// The shell.
        program: String,
    },
}
