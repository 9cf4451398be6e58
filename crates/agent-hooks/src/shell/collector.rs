//! Gathers what a line does, command by command.

use super::error::ShellError;
use super::syntax::{read_into, shorten};
use super::word::ShellWord;
use super::{ShellFile, ShellLine, ShellProgram, ShellSurroundings, builtins, launchers};
use role_policy::Access;

/// The deepest nesting of lines in lines: `sh -c "sh -c …"`.
const MAX_LINES: usize = 8;

/// Variables that change how the shell itself reads what follows, whether or not programs inherit them.
const SHELL_VARIABLES: [&str; 9] =
    ["PATH", "IFS", "BASH_ENV", "ENV", "CDPATH", "SHELLOPTS", "BASHOPTS", "GLOBIGNORE", "HOME"];

/// Files that are none: devices that every program may use.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero"];

/// The contents of a line, as they are found.
pub(super) struct Collector<'s> {
    surroundings: ShellSurroundings<'s>,
    line: ShellLine,
    lines: usize,
    repeats: bool,
}

impl<'s> Collector<'s> {
    pub(super) fn new(surroundings: ShellSurroundings<'s>) -> Self {
        Self { surroundings, line: ShellLine::default(), lines: 0, repeats: false }
    }

    pub(super) fn finish(self) -> ShellLine {
        self.line
    }

    pub(super) fn home(&self) -> Option<&'s str> {
        self.surroundings.home
    }

    /// Adds the commands of a line within this one.
    pub(super) fn inner_line(&mut self, text: &str) -> Result<(), ShellError> {
        if self.lines >= MAX_LINES {
            return Err(ShellError::TooDeep);
        }
        self.lines += 1;
        read_into(text, self)?;
        self.lines -= 1;
        Ok(())
    }

    /// Calls `add` for commands that may run several times.
    pub(super) fn repeated<T>(&mut self, add: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.repeats, true);
        let added = add(self);
        self.repeats = before;
        added
    }

    /// Adds one command: a word of the shell, a program that starts another, or a program.
    pub(super) fn command(&mut self, words: Vec<ShellWord>) -> Result<(), ShellError> {
        let Some(first) = words.first() else { return Ok(()) };
        let Some(program) = first.value() else {
            return Err(ShellError::DynamicProgram { word: shorten(&first.text) });
        };
        self.line.literals.extend(words.iter().filter_map(|word| word.value().map(str::to_owned)));
        if builtins::add(self, program, &words)? || launchers::add(self, program, &words)? {
            return Ok(());
        }
        self.program(words, false);
        Ok(())
    }

    /// Adds a program.
    pub(super) fn program(&mut self, words: Vec<ShellWord>, starts_others: bool) {
        self.line.programs.push(ShellProgram { words, starts_others });
    }

    /// Adds a file that the line opens.
    pub(super) fn file(&mut self, path: &str, access: Access) {
        if !DEVICES.contains(&path) {
            self.line.literals.push(path.to_owned());
            self.line.files.push(ShellFile { path: path.to_owned(), access });
        }
    }

    /// Adds a folder that the line goes to.
    pub(super) fn folder(&mut self, path: &str) {
        self.line.folder_varies |= self.repeats;
        self.line.folders.push(path.to_owned());
    }

    /// Notes that the folder cannot be known.
    pub(super) fn folder_varies(&mut self) {
        self.line.folder_varies = true;
    }

    /// Notes that a value is evaluated as more than text.
    pub(super) fn evaluates_variables(&mut self) {
        self.line.evaluates_variables = true;
    }

    /// Notes a variable that programs get.
    pub(super) fn assign_for_programs(&mut self, name: String) {
        if !self.line.variables.contains(&name) {
            self.line.variables.push(name);
        }
    }

    /// Notes a variable of the shell, which programs get only if they got it before.
    pub(super) fn assign_in_shell(&mut self, name: String) {
        if self.surroundings.variables.contains(&name) || SHELL_VARIABLES.contains(&name.as_str()) {
            self.assign_for_programs(name);
        }
    }
}
