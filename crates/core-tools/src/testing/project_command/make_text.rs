//! The syntax of make and just in the lines of a recipe, before a shell reads them.

use super::script::ScriptCommand;
use std::collections::HashMap;

/// The number of variables that are followed in one line.
const MAX_VALUES: usize = 20;
/// The deepest nesting of references that is followed.
const MAX_DEPTH: usize = 20;
/// The number of brackets without an end that are looked for in one line.
const MAX_UNCLOSED: usize = 20;
/// The longest line that is read, and the longest value of a variable, in bytes.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// The variables of a makefile or a justfile, with their values.
pub(super) struct MakeVariables<'f>(HashMap<&'f str, &'f str>);

/// The work that is left for one line.
struct Budget {
    values: usize,
    unclosed: usize,
}

impl<'f> MakeVariables<'f> {
    /// Reads the variables of a file. The first assignment of each counts.
    pub(super) fn of(file: &'f str) -> Self {
        let mut values = HashMap::new();
        for (name, value) in file.lines().filter_map(assignment) {
            values.entry(name).or_insert(value);
        }
        Self(values)
    }

    /// Returns a line of a recipe as the shell gets it, as far as the file says: `$$x` is `$x`, `$(MAKE)` is `make`, and a
    /// variable of the file has its value. A variable that the file does not give a value stays a variable. A line that is
    /// too long stays as it is, and so does the text of references that are nested too deeply.
    pub(super) fn expand(&self, line: &str) -> String {
        if line.len() > MAX_LINE_BYTES {
            return line.to_owned();
        }
        let mut budget = Budget { values: MAX_VALUES, unclosed: MAX_UNCLOSED };
        self.expanded(line, &mut budget, 0)
    }

    fn expanded(&self, line: &str, budget: &mut Budget, depth: usize) -> String {
        if depth > MAX_DEPTH {
            return line.to_owned();
        }
        let mut text = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(at) = rest.find(['$', '{']) {
            text.push_str(&rest[..at]);
            rest = &rest[at..];
            let is_bracket =
                !rest.starts_with("$$") && ["$(", "${", "{{"].iter().any(|open| rest.starts_with(open));
            if is_bracket && budget.unclosed == 0 {
                break;
            }
            if let Some(after) = rest.strip_prefix("$$") {
                text.push('$');
                // A substitution of the shell is not one of make.
                if let Some(after) = after.strip_prefix(['(', '{']) {
                    text.push_str(rest.get(2..3).unwrap_or_default());
                    rest = after;
                } else {
                    rest = after;
                }
            } else if let Some((inner, after)) =
                enclosed(rest, "$(", ')').or_else(|| enclosed(rest, "${", '}'))
            {
                text.push_str(&self.reference(inner.trim(), budget, depth));
                rest = after;
            } else if let Some((inner, after)) = enclosed(rest, "{{", '}') {
                // A value of just, which only just knows.
                let is_name = inner.trim().chars().all(|c| c.is_alphanumeric() || c == '_');
                text.push_str(if is_name { "$" } else { "$just" });
                text.push_str(if is_name { inner.trim() } else { "" });
                rest = after.strip_prefix('}').unwrap_or(after);
            } else {
                budget.unclosed -= usize::from(is_bracket);
                text.push_str(&rest[..1]);
                rest = &rest[1..];
            }
        }
        text.push_str(rest);
        text
    }

    /// Returns the text of `$(NAME)` or `$(function arguments)`.
    fn reference(&self, inner: &str, budget: &mut Budget, depth: usize) -> String {
        if inner == "MAKE" {
            return "make".to_owned();
        }
        let is_name = !inner.is_empty() && inner.chars().all(|c| c.is_alphanumeric() || c == '_');
        if is_name {
            let value = self.0.get(inner).filter(|_| budget.values > 0);
            return value.map_or_else(
                || format!("${inner}"),
                |value| {
                    budget.values -= 1;
                    self.expanded(value, budget, depth + 1)
                },
            );
        }
        match inner.split_once(char::is_whitespace) {
            Some(("shell", command)) => format!("$({})", self.expanded(command, budget, depth + 1)),
            // `$(wildcard tests/*.sh)`, `$(sort $(FILES))`: the words name the files.
            Some((_, arguments)) => self.expanded(&arguments.replace(',', " "), budget, depth + 1),
            None => "$make".to_owned(),
        }
    }
}

/// Returns what stands between `open` and the bracket that closes it, and what follows.
fn enclosed<'t>(text: &'t str, open: &str, close: char) -> Option<(&'t str, &'t str)> {
    let inner = text.strip_prefix(open)?;
    let opening = open.chars().next_back()?;
    let mut depth = 0_usize;
    for (at, c) in inner.char_indices() {
        if c == close && depth == 0 {
            return Some((&inner[..at], &inner[at + c.len_utf8()..]));
        }
        if c == close {
            depth -= 1;
        } else if c == opening {
            depth += 1;
        }
    }
    None
}

/// Returns the variable that a line of a makefile gives a value, and the value.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("export ").unwrap_or(line);
    let end = line.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start();
    let value = ["::=", ":=", "?=", "="].iter().find_map(|operator| rest.strip_prefix(operator))?.trim();
    // Of several lines only make knows the end.
    let is_read = !name.is_empty() && !value.ends_with('\\') && value.len() <= MAX_LINE_BYTES;
    is_read.then(|| (name, value.split(" #").next().unwrap_or(value).trim()))
}

/// Returns the rules that a command makes from the same file: `make -s unit`. None if it may be about another file.
pub(super) fn called_rules(command: &ScriptCommand) -> Vec<String> {
    if !["make", "gmake"].contains(&command.program()) {
        return Vec::new();
    }
    let arguments = command.words.get(1..).unwrap_or_default();
    let is_elsewhere = |word: &String| {
        let is_option = |name: &str| word.starts_with(name);
        ["-C", "-f", "-I", "--directory", "--file", "--makefile"].iter().any(|name| is_option(name))
    };
    if arguments.iter().any(is_elsewhere) {
        return Vec::new();
    }
    let rules = arguments.iter().filter(|word| !word.starts_with('-') && !word.contains(['=', '$']));
    rules.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::project_command::shell::split_commands;

    #[test]
    fn a_line_is_read_as_the_shell_gets_it() {
        let file =
            "PYTHON ?= python3 # the program\nFILES := $(wildcard t/*.sh)\nLOOP = $(LOOP)\nLONG = a \\\n b\n";
        let variables = MakeVariables::of(file);
        for (line, expected) in [
            ("echo $$HOME $$(date) $${x}", "echo $HOME $(date) ${x}"),
            ("$(MAKE) -s unit && ${MAKE} more", "make -s unit && make more"),
            ("$(PYTHON) -m pytest", "python3 -m pytest"),
            ("for f in $(FILES); do sh $$f; done", "for f in t/*.sh; do sh $f; done"),
            ("$(UNKNOWN) a $(LONG)", "$UNKNOWN a $LONG"),
            ("sh $(sort $(wildcard a/*.sh, b))", "sh a/*.sh  b"),
            ("echo $(shell ls $(FILES))", "echo $(ls t/*.sh)"),
            ("cc $< -o $@", "cc $< -o $@"),
            ("pytest {{args}} {{ path / 'x' }} {a,b}", "pytest $args $just {a,b}"),
            ("echo $(unclosed", "echo $(unclosed"),
        ] {
            assert_eq!(variables.expand(line), expected, "{line}");
        }
        assert_eq!(variables.expand("$(LOOP)"), "$LOOP");
    }

    #[test]
    fn lines_without_measure_are_read_in_a_small_stack() {
        let nested = format!("echo {}x{}", "$(a ".repeat(10_000), ")".repeat(10_000));
        let read = |line: String| {
            let thread = std::thread::Builder::new().stack_size(256 * 1024);
            let reads = thread.spawn(move || MakeVariables::of("").expand(&line)).unwrap();
            reads.join().unwrap()
        };
        // The outer references are read, and what is nested more deeply stands as it is.
        let text = read(nested);
        assert!(text.starts_with("echo $(a $(a "), "{}", &text[..40]);
        assert_eq!(text.matches("$(a ").count(), 10_000 - MAX_DEPTH - 1);
        let long = "$(a ".repeat(200_000);
        assert_eq!(read(long.clone()), long);
        let unclosed = "$(".repeat(30_000);
        assert_eq!(read(unclosed.clone()), unclosed);
        let values: String = (0..30).map(|number| format!("V{number} = $(V{})\n", number + 1)).collect();
        assert_eq!(MakeVariables::of(&values).expand("$(V0)"), "$V20");
    }

    #[test]
    fn the_rules_that_make_is_called_for_are_found() {
        for (line, rules) in [
            ("make -s a b X=1", "a b"),
            ("make", ""),
            ("make -C sub test", ""),
            ("cmake a", ""),
            ("make $x", ""),
        ] {
            assert_eq!(called_rules(&split_commands(line)[0]).join(" "), rules, "{line}");
        }
    }
}
