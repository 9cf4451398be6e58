//! Gathers what a line does, command by command.

use super::error::ShellError;
use super::shell_line::{ShellFile, ShellLine, ShellProgram, ShellSurroundings};
use super::syntax::{read_into, shorten};
use super::visitor::LineVisitor;
use super::word::ShellWord;
use super::{builtins, launchers};
use role_policy::Access;

/// The deepest nesting of lines in lines: `sh -c "sh -c …"`.
const MAX_LINES: usize = 8;

/// Variables that change how the shell itself reads what follows, whether or not programs inherit them.
const SHELL_VARIABLES: [&str; 15] = [
    "PATH",
    "IFS",
    "BASH_ENV",
    "ENV",
    "CDPATH",
    "SHELLOPTS",
    "BASHOPTS",
    "GLOBIGNORE",
    "HOME",
    "PS4",
    "BASH_CMDS",
    "BASH_ALIASES",
    "EXECIGNORE",
    "BASH_XTRACEFD",
    "HISTFILE",
];

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
}

impl LineVisitor for Collector<'_> {
    fn home(&self) -> Option<&str> {
        self.surroundings.home
    }

    fn inner_line(&mut self, text: &str) -> Result<(), ShellError> {
        if self.lines >= MAX_LINES {
            return Err(ShellError::TooDeep);
        }
        self.lines += 1;
        read_into(text, self)?;
        self.lines -= 1;
        Ok(())
    }

    fn repeated<T>(&mut self, add: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.repeats, true);
        let added = add(self);
        self.repeats = before;
        added
    }

    fn command(&mut self, words: Vec<ShellWord>) -> Result<(), ShellError> {
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

    fn program(&mut self, words: Vec<ShellWord>, starts_others: bool) {
        self.line.programs.push(ShellProgram { words, starts_others });
    }

    fn file(&mut self, path: &str, access: Access) {
        if !DEVICES.contains(&path) {
            self.line.literals.push(path.to_owned());
            self.line.files.push(ShellFile { path: path.to_owned(), access });
        }
    }

    fn folder(&mut self, path: &str) {
        self.line.folder_varies |= self.repeats;
        self.line.folders.push(path.to_owned());
    }

    fn folder_varies(&mut self) {
        self.line.folder_varies = true;
    }

    fn evaluates_variables(&mut self) {
        self.line.evaluates_variables = true;
    }

    fn assign_for_programs(&mut self, name: String) {
        if !self.line.variables.contains(&name) {
            self.line.variables.push(name);
        }
    }

    fn assign_in_shell(&mut self, name: String) {
        if self.surroundings.variables.contains(&name) || SHELL_VARIABLES.contains(&name.as_str()) {
            self.assign_for_programs(name);
        }
    }
}
