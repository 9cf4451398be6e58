//! The syntax of make and just in the lines of a recipe, before a shell reads them.

use super::script::ScriptCommand;

/// The number of variables in variables that are followed.
const MAX_VALUES: usize = 20;

/// Returns a line of a recipe as the shell gets it, as far as the file says: `$$x` is `$x`, `$(MAKE)` is `make`, and a variable
/// of the file has its value. A variable that the file does not give a value stays a variable.
pub(super) fn without_make_syntax(line: &str, file: &str) -> String {
    let mut values = MAX_VALUES;
    expanded(line, file, &mut values)
}

fn expanded(line: &str, file: &str, values: &mut usize) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['$', '{']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("$$") {
            text.push('$');
            // A substitution of the shell is not one of make.
            if let Some(after) = after.strip_prefix(['(', '{']) {
                text.push_str(rest.get(2..3).unwrap_or_default());
                rest = after;
            } else {
                rest = after;
            }
        } else if let Some((inner, after)) = enclosed(rest, "$(", ')').or_else(|| enclosed(rest, "${", '}')) {
            text.push_str(&reference(inner.trim(), file, values));
            rest = after;
        } else if let Some((inner, after)) = enclosed(rest, "{{", '}') {
            // A value of just, which only just knows.
            let is_name = inner.trim().chars().all(|c| c.is_alphanumeric() || c == '_');
            text.push_str(if is_name { "$" } else { "$just" });
            text.push_str(if is_name { inner.trim() } else { "" });
            rest = after.strip_prefix('}').unwrap_or(after);
        } else {
            text.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    text.push_str(rest);
    text
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

/// Returns the text of `$(NAME)` or `$(function arguments)`.
fn reference(inner: &str, file: &str, values: &mut usize) -> String {
    if inner == "MAKE" {
        return "make".to_owned();
    }
    let is_name = !inner.is_empty() && inner.chars().all(|c| c.is_alphanumeric() || c == '_');
    if is_name {
        let value = value_of(inner, file).filter(|_| *values > 0);
        return value.map_or_else(
            || format!("${inner}"),
            |value| {
                *values -= 1;
                expanded(value, file, values)
            },
        );
    }
    match inner.split_once(char::is_whitespace) {
        Some(("shell", command)) => format!("$({})", expanded(command, file, values)),
        // `$(wildcard tests/*.sh)`, `$(sort $(FILES))`: the words name the files.
        Some((_, arguments)) => expanded(&arguments.replace(',', " "), file, values),
        None => "$make".to_owned(),
    }
}

/// Returns the value that a makefile gives a variable.
fn value_of<'f>(name: &str, file: &'f str) -> Option<&'f str> {
    file.lines().find_map(|line| {
        let rest = line.strip_prefix("export ").unwrap_or(line).strip_prefix(name)?.trim_start();
        let value = ["::=", ":=", "?=", "="].iter().find_map(|operator| rest.strip_prefix(operator))?.trim();
        // Of several lines only make knows the end.
        (!value.ends_with('\\')).then(|| value.split(" #").next().unwrap_or(value).trim())
    })
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
    use crate::testing::project_command::script::split_commands;

    #[test]
    fn a_line_is_read_as_the_shell_gets_it() {
        let file =
            "PYTHON ?= python3 # the program\nFILES := $(wildcard t/*.sh)\nLOOP = $(LOOP)\nLONG = a \\\n b\n";
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
            assert_eq!(without_make_syntax(line, file), expected, "{line}");
        }
        assert_eq!(without_make_syntax("$(LOOP)", file), "$LOOP");
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
