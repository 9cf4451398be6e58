//! Gathers what a line does, command by command.

use super::error::ShellError;
use super::shell_line::{ShellFile, ShellLine, ShellProgram, ShellSurroundings};
use super::syntax::{read_into, shorten};
use super::variables::{self, VariableUse};
use super::visitor::{AssignedValue, LineVisitor};
use super::word::ShellWord;
use super::{builtins, launchers};
use role_policy::Access;

/// Words that begin a part of the shell's own syntax. As the first word of a command they are something that the grammar did
/// not understand.
const RESERVED: [&str; 22] = [
    "!", "{", "}", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "until", "while", "((",
];

/// The deepest nesting of lines in lines: `sh -c "sh -c …"`.
const MAX_LINES: usize = 8;

/// Files that are none: devices that every program may use.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero"];

/// The contents of a line, as they are found.
pub(super) struct Collector<'s> {
    surroundings: ShellSurroundings<'s>,
    line: ShellLine,
    lines: usize,
    repeats: bool,
    variables: VariableUse,
}

impl<'s> Collector<'s> {
    pub(super) fn new(surroundings: ShellSurroundings<'s>) -> Self {
        Self {
            surroundings,
            line: ShellLine::default(),
            lines: 0,
            repeats: false,
            variables: VariableUse::default(),
        }
    }

    pub(super) fn finish(mut self) -> ShellLine {
        self.line.evaluates_variables |= self.variables.evaluates_text(self.surroundings.variables);
        self.line.values = self.variables.take_values();
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
        // An error keeps the count, which does not matter: the whole line is refused then.
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
        if RESERVED.contains(&program) {
            return Err(ShellError::Syntax { near: shorten(program) });
        }
        self.line.literals.extend(words.iter().filter_map(|word| word.value().map(str::to_owned)));
        if builtins::add(self, program, &words)? || launchers::add(self, program, &words)? {
            return Ok(());
        }
        self.program(ShellProgram::new(words));
        Ok(())
    }

    fn program(&mut self, program: ShellProgram) {
        self.line.programs.push(program);
    }

    fn file(&mut self, path: &str, access: Access) {
        // A redirection to a device changes no file, and stands in many harmless lines.
        if !DEVICES.contains(&path) {
            self.line.literals.push(path.to_owned());
            self.line.files.push(ShellFile { path: path.to_owned(), access });
        }
    }

    fn folder(&mut self, path: &str) {
        // A relative `cd` in a loop leads somewhere else each time.
        self.line.folder_varies |= self.repeats;
        self.line.folders.push(path.to_owned());
    }

    fn folder_varies(&mut self) {
        self.line.folder_varies = true;
    }

    fn evaluates_text(&mut self) {
        self.line.evaluates_variables = true;
    }

    fn computes_with(&mut self, name: &str) {
        self.variables.compute(name);
    }

    fn assign_for_programs(&mut self, name: String, value: AssignedValue) {
        self.line.evaluates_variables |= variables::is_evaluated(&name, &value);
        self.variables.assign(&name, value);
        if !self.line.variables.contains(&name) {
            self.line.variables.push(name);
        }
    }

    fn assign_in_shell(&mut self, name: String, value: AssignedValue) {
        if self.surroundings.variables.contains(&name) || variables::changes_shell(&name) {
            self.assign_for_programs(name, value);
        } else {
            self.line.evaluates_variables |= variables::is_evaluated(&name, &value);
            self.variables.assign(&name, value);
        }
    }
}
