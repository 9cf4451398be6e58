//! The words that bash itself carries out.

use super::arithmetic::is_name;
use super::conditions::{may_be_several, read_test, split_variable};
use super::declarations;
use super::error::ShellError;
use super::options::{OptionSyntax, split};
use super::syntax::shorten;
use super::visitor::{AssignedValue, LineVisitor};
use super::word::ShellWord;

/// Words that start nothing, open nothing and change nothing for later commands.
const HARMLESS: [&str; 23] = [
    ":", "true", "false", "echo", "pwd", "exit", "return", "break", "continue", "shift", "umask", "ulimit",
    "times", "fg", "bg", "kill", "disown", "type", "dirs", "suspend", "logout", "caller", "help",
];

/// Words that change what later words mean, or run what cannot be read here.
const REFUSED: [&str; 14] = [
    "source", ".", "alias", "unalias", "enable", "hash", "bind", "complete", "compgen", "compopt", "coproc",
    "fc", "shopt", "history",
];

/// Adds the command if its first word is one of the shell's. Returns false if it is a program.
pub(super) fn add(
    visitor: &mut impl LineVisitor,
    name: &str,
    words: &[ShellWord],
) -> Result<bool, ShellError> {
    let arguments = words.get(1..).unwrap_or_default();
    let refused = || ShellError::Builtin { builtin: name.to_owned() };
    match name {
        _ if HARMLESS.contains(&name) => {}
        _ if REFUSED.contains(&name) => return Err(refused()),
        "cd" | "pushd" | "popd" => folder(visitor, name, arguments),
        "test" | "[" => read_test(arguments, visitor),
        "declare" | "typeset" | "local" | "export" | "readonly" | "unset" => {
            declarations::read_words(visitor, arguments);
        }
        // `jobs -x` runs a program.
        "jobs" => {
            let only_lists = |word: &ShellWord| {
                word.value()
                    .is_some_and(|text| !text.starts_with('-') || matches!(text, "-l" | "-p" | "-r" | "-s"))
            };
            if !arguments.iter().all(only_lists) {
                return Err(refused());
            }
        }
        // `wait -p` assigns to a name, whose index is evaluated.
        "wait" => {
            let only_waits = |word: &ShellWord| match word.value() {
                Some(text) => !text.starts_with('-') || matches!(text, "-n" | "-f"),
                None => matches!(word.text.as_str(), "$!" | "\"$!\""),
            };
            if !arguments.iter().all(only_waits) {
                return Err(refused());
            }
        }
        "getopts" => {
            assign(visitor, arguments.get(1), &refused)?;
            visitor.assign_in_shell("OPTARG".to_owned(), AssignedValue::Text);
        }
        "printf" => {
            // A first word that only the run knows may be `-v`.
            if let Some(format) = arguments.first().filter(|word| !word.is_literal) {
                match arguments.len() {
                    1 if may_be_several(format) => split_variable(format, visitor),
                    1 => {}
                    _ => visitor.evaluates_text(),
                }
            }
            if let Some(at) =
                arguments.iter().position(|word| word.value().is_some_and(|text| text.starts_with("-v")))
            {
                let attached = arguments[at].text.strip_prefix("-v").filter(|rest| !rest.is_empty());
                let named = attached.map(ShellWord::literal).or_else(|| arguments.get(at + 1).cloned());
                assign(visitor, named.as_ref(), &refused)?;
            }
        }
        "read" => {
            let names = read_names(arguments);
            if names.is_empty() {
                visitor.assign_in_shell("REPLY".to_owned(), AssignedValue::Text);
            }
            for word in names {
                assign(visitor, Some(&word), &refused)?;
            }
        }
        "mapfile" | "readarray" => {
            const SYNTAX: OptionSyntax =
                OptionSyntax { with_value: "dnOsuCc", plain: "t", long_with_value: &[], long_plain: &[] };
            let found = split(name, arguments, &SYNTAX)?;
            // `-C` calls a command for each line. `-O` takes an index.
            if found.options.iter().any(|(option, _)| matches!(option.as_str(), "C" | "O")) {
                return Err(refused());
            }
            let default = ShellWord::literal("MAPFILE");
            assign(visitor, Some(found.rest.first().unwrap_or(&default)), &refused)?;
        }
        "let" => visitor.evaluates_text(),
        "set" => {
            let plain = |text: &str| {
                matches!(
                    text.trim_start_matches(['-', '+']),
                    "pipefail" | "errexit" | "nounset" | "xtrace" | "posix"
                ) || text
                    .strip_prefix(['-', '+'])
                    .is_some_and(|flags| flags.chars().all(|flag| "euxvfnCBHmbo-".contains(flag)))
            };
            if !arguments.iter().all(|word| word.value().is_some_and(plain)) {
                return Err(refused());
            }
        }
        "eval" => {
            let is_end = arguments.first().and_then(ShellWord::value) == Some("--");
            let arguments = arguments.get(usize::from(is_end)..).unwrap_or_default();
            let texts: Option<Vec<&str>> = arguments.iter().map(ShellWord::value).collect();
            let line = texts.ok_or_else(|| ShellError::DynamicScript { program: name.to_owned() })?.join(" ");
            visitor.inner_line(&line)?;
        }
        "trap" => {
            let is_end = arguments.first().and_then(ShellWord::value) == Some("--");
            match arguments.get(usize::from(is_end)).map(ShellWord::value) {
                Some(Some("-p" | "-l" | "-" | "")) | None => {}
                Some(Some(line)) => {
                    let line = line.to_owned();
                    visitor.repeated(|visitor| visitor.inner_line(&line))?;
                }
                Some(None) => return Err(ShellError::DynamicScript { program: name.to_owned() }),
            }
        }
        "command" => {
            const SYNTAX: OptionSyntax =
                OptionSyntax { with_value: "", plain: "pvV", long_with_value: &[], long_plain: &[] };
            let found = split(name, arguments, &SYNTAX)?;
            // `-v` and `-V` only print.
            if !found.options.iter().any(|(option, _)| matches!(option.as_str(), "v" | "V")) {
                visitor.command(found.rest)?;
            }
        }
        "builtin" => {
            let is_end = arguments.first().and_then(ShellWord::value) == Some("--");
            visitor.command(arguments.get(usize::from(is_end)..).unwrap_or_default().to_vec())?;
        }
        "exec" => {
            const SYNTAX: OptionSyntax =
                OptionSyntax { with_value: "a", plain: "cl", long_with_value: &[], long_plain: &[] };
            visitor.command(split(name, arguments, &SYNTAX)?.rest)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn folder(visitor: &mut impl LineVisitor, name: &str, arguments: &[ShellWord]) {
    let target: Vec<&ShellWord> =
        arguments.iter().filter(|word| !matches!(word.value(), Some("-L" | "-P" | "-e" | "--"))).collect();
    match target.as_slice() {
        [] if name == "cd" => match visitor.home().map(str::to_owned) {
            Some(home) => visitor.folder(&home),
            None => visitor.folder_varies(),
        },
        [word] => match word.value() {
            Some(path) if !path.starts_with('-') && !path.starts_with('+') && name != "popd" => {
                visitor.folder(path);
            }
            // `cd -`, and what only the run knows.
            _ => visitor.folder_varies(),
        },
        _ => visitor.folder_varies(),
    }
}

/// Returns the names that `read` fills.
fn read_names(arguments: &[ShellWord]) -> Vec<ShellWord> {
    let mut names = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(option) =
            word.value().and_then(|text| text.strip_prefix('-')).filter(|option| !option.is_empty())
        else {
            names.push(word.clone());
            continue;
        };
        match option.find(['a', 'd', 'i', 'n', 'N', 'p', 't', 'u']) {
            // The value is the next word.
            Some(at) if at + 1 == option.len() => {
                let value = words.next().cloned();
                if option.ends_with('a') {
                    names.extend(value);
                }
            }
            _ => {}
        }
    }
    names
}

/// Notes the variable that a word names. An index in it would be evaluated.
fn assign(
    visitor: &mut impl LineVisitor,
    word: Option<&ShellWord>,
    refused: &dyn Fn() -> ShellError,
) -> Result<(), ShellError> {
    let Some(word) = word else { return Ok(()) };
    let name = word.value().ok_or_else(|| ShellError::DynamicPath { word: shorten(&word.text) })?;
    if !is_name(name) {
        return Err(refused());
    }
    // `read -a` and `mapfile` fill lists.
    visitor.assign_in_shell(name.to_owned(), AssignedValue::List);
    Ok(())
}
