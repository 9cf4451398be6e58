//! Programs that start others from their arguments: each is read as far as its own options are known.

use super::arithmetic::is_name;
use super::error::ShellError;
use super::options::{OptionSyntax, SplitOptions, split};
use super::shell_line::ShellProgram;
use super::visitor::{AssignedValue, LineVisitor};
use super::word::ShellWord;
use role_policy::Access;

/// Shells whose lines are read here.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "ash", "ksh"];

/// Shells with a syntax of their own.
const OTHER_SHELLS: [&str; 7] = ["zsh", "fish", "csh", "tcsh", "nu", "pwsh", "powershell"];

/// Programs that start another from their arguments in ways that are not read here. A word of theirs may be a program.
const OTHERS: [&str; 36] = [
    "watch",
    "flock",
    "script",
    "su",
    "runuser",
    "parallel",
    "taskset",
    "chrt",
    "unshare",
    "nsenter",
    "chroot",
    "setpriv",
    "systemd-run",
    "at",
    "batch",
    "strace",
    "ltrace",
    "gdb",
    "expect",
    "unbuffer",
    "entr",
    "npx",
    "bunx",
    "pnpx",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "deno",
    "uvx",
    "uv",
    "pipx",
    "docker",
    "podman",
    "tmux",
    "screen",
];

/// The words that `xargs` adds, as the source of a word that could be any.
const ADDED: &str = "\"$@\"";

/// Folders in which a program is the system's own.
const SYSTEM_FOLDERS: [&str; 6] =
    ["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"];

const NONE: OptionSyntax = OptionSyntax { with_value: "", plain: "", long_with_value: &[], long_plain: &[] };

/// Adds what the program starts, if it is one that starts others. Returns false if it is any other program.
pub(super) fn add(
    visitor: &mut impl LineVisitor,
    program: &str,
    words: &[ShellWord],
) -> Result<bool, ShellError> {
    let Some(name) = system_name(program) else { return Ok(false) };
    let arguments = words.get(1..).unwrap_or_default();
    match name {
        "env" => env(visitor, arguments)?,
        "timeout" => {
            const SYNTAX: OptionSyntax = OptionSyntax {
                with_value: "sk",
                plain: "fpv",
                long_with_value: &["signal", "kill-after"],
                long_plain: &["foreground", "preserve-status", "verbose"],
            };
            behind_operand(visitor, name, &split(name, arguments, &SYNTAX)?)?;
        }
        "nohup" => visitor.command(split(name, arguments, &NONE)?.rest)?,
        "nice" => {
            // `nice -5` is an old form of `nice -n 5`.
            let old = arguments.first().and_then(ShellWord::value).and_then(|text| text.strip_prefix('-'));
            let skipped = usize::from(old.is_some_and(|text| text.parse::<u8>().is_ok()));
            const SYNTAX: OptionSyntax = OptionSyntax {
                with_value: "n",
                plain: "",
                long_with_value: &["adjustment"],
                long_plain: &[],
            };
            visitor.command(split(name, arguments.get(skipped..).unwrap_or_default(), &SYNTAX)?.rest)?;
        }
        "ionice" => {
            const SYNTAX: OptionSyntax = OptionSyntax {
                with_value: "cn",
                plain: "t",
                long_with_value: &["class", "classdata"],
                long_plain: &["ignore"],
            };
            visitor.command(split(name, arguments, &SYNTAX)?.rest)?;
        }
        "stdbuf" => {
            const SYNTAX: OptionSyntax = OptionSyntax {
                with_value: "ioe",
                plain: "",
                long_with_value: &["input", "output", "error"],
                long_plain: &[],
            };
            visitor.command(split(name, arguments, &SYNTAX)?.rest)?;
        }
        "setsid" => {
            const SYNTAX: OptionSyntax = OptionSyntax {
                with_value: "",
                plain: "cfw",
                long_with_value: &[],
                long_plain: &["ctty", "fork", "wait"],
            };
            visitor.command(split(name, arguments, &SYNTAX)?.rest)?;
        }
        "time" => {
            const SYNTAX: OptionSyntax = OptionSyntax {
                with_value: "f",
                plain: "pv",
                long_with_value: &["format"],
                long_plain: &["portability", "verbose"],
            };
            let rest = split(name, arguments, &SYNTAX)?.rest;
            // The shell's own word stands before a command with its variables.
            match name == program {
                true => assignments_and_command(visitor, &rest)?,
                false => visitor.command(rest)?,
            }
        }
        "sudo" | "doas" => {
            const SYNTAX: OptionSyntax = OptionSyntax {
                with_value: "ugpChrtT",
                plain: "AbEHnPSkK",
                long_with_value: &[
                    "user",
                    "group",
                    "prompt",
                    "chdir",
                    "host",
                    "role",
                    "type",
                    "command-timeout",
                ],
                long_plain: &[
                    "askpass",
                    "background",
                    "preserve-env",
                    "set-home",
                    "non-interactive",
                    "stdin",
                ],
            };
            let found = split(name, arguments, &SYNTAX)?;
            // What runs as somebody else is a program of its own, and the one behind it too.
            visitor.program(ShellProgram::starting_others(words.to_vec()));
            assignments_and_command(visitor, &found.rest)?;
        }
        "xargs" => xargs(visitor, arguments)?,
        "find" => find(visitor, words)?,
        "busybox" | "toybox" => visitor.command(arguments.to_vec())?,
        _ if SHELLS.contains(&name) => shell(visitor, name, words)?,
        _ if OTHER_SHELLS.contains(&name) => return Err(ShellError::OtherShell { program: name.to_owned() }),
        _ if OTHERS.contains(&name) => visitor.program(ShellProgram::starting_others(words.to_vec())),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Returns the name of a program that is found by its name or lies in a folder of the system.
fn system_name(program: &str) -> Option<&str> {
    match program.rsplit_once('/') {
        None => Some(program),
        // Another spelling of a system's folder leads there as well.
        Some((folder, name)) => {
            let is_respelt = folder.split('/').skip(1).any(|part| matches!(part, "" | "." | ".."));
            (SYSTEM_FOLDERS.contains(&folder) || is_respelt).then_some(name)
        }
    }
}

/// Adds the command behind the first operand, which must be fixed.
fn behind_operand(
    visitor: &mut impl LineVisitor,
    program: &str,
    found: &SplitOptions,
) -> Result<(), ShellError> {
    match found.rest.split_first() {
        Some((operand, command)) if operand.is_literal => visitor.command(command.to_vec()),
        Some(_) => Err(ShellError::DynamicScript { program: program.to_owned() }),
        None => Ok(()),
    }
}

fn env(visitor: &mut impl LineVisitor, arguments: &[ShellWord]) -> Result<(), ShellError> {
    const SYNTAX: OptionSyntax = OptionSyntax {
        with_value: "uC",
        plain: "i0v",
        long_with_value: &["unset", "chdir"],
        long_plain: &["ignore-environment", "null", "debug"],
    };
    // A lone `-` is `-i`.
    let skipped = usize::from(arguments.first().and_then(ShellWord::value) == Some("-"));
    let found = split("env", arguments.get(skipped..).unwrap_or_default(), &SYNTAX)?;
    for (option, value) in &found.options {
        match (option.as_str(), value.as_ref().and_then(ShellWord::value)) {
            ("u" | "unset", Some(name)) => {
                visitor.assign_for_programs(name.to_owned(), AssignedValue::Number);
            }
            ("C" | "chdir", Some(folder)) => visitor.folder(folder),
            ("u" | "unset" | "C" | "chdir", None) => visitor.folder_varies(),
            _ => {}
        }
    }
    assignments_and_command(visitor, &found.rest)
}

/// Adds a command behind `NAME=VALUE` words.
fn assignments_and_command(visitor: &mut impl LineVisitor, words: &[ShellWord]) -> Result<(), ShellError> {
    let name = |word: &ShellWord| {
        // The name is literal even where the value is not, as long as nothing is expanded before the `=`.
        let (name, _) = word.text.split_once('=')?;
        (word.is_literal || is_name(name)).then(|| name.to_owned())
    };
    let assigned: Vec<String> = words.iter().map_while(name).collect();
    // A function that programs inherit, and what no shell would take for a name.
    if let Some(builtin) = assigned.iter().find(|name| !is_name(name)) {
        return Err(ShellError::Builtin { builtin: builtin.clone() });
    }
    // An unquoted value that only the run knows could be several words, one of them the program.
    if words.iter().take(assigned.len()).any(|word| !word.is_literal && !word.text.contains("=\"")) {
        return Err(ShellError::DynamicScript { program: "env".to_owned() });
    }
    let command = words.get(assigned.len()..).unwrap_or_default().to_vec();
    assigned.into_iter().for_each(|name| visitor.assign_for_programs(name, AssignedValue::Text));
    visitor.command(command)
}

fn xargs(visitor: &mut impl LineVisitor, arguments: &[ShellWord]) -> Result<(), ShellError> {
    const SYNTAX: OptionSyntax = OptionSyntax {
        with_value: "adEILnPs",
        plain: "0rtpxo",
        long_with_value: &["arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var"],
        // The last two take a value only behind `=`.
        long_plain: &[
            "null",
            "no-run-if-empty",
            "verbose",
            "interactive",
            "exit",
            "open-tty",
            "max-lines",
            "replace",
        ],
    };
    let found = split("xargs", arguments, &SYNTAX)?;
    for (option, value) in &found.options {
        if matches!(option.as_str(), "a" | "arg-file")
            && let Some(path) = value.as_ref().and_then(ShellWord::value)
        {
            visitor.file(path, Access::Read);
        }
    }
    let mut command = found.rest;
    if command.is_empty() {
        return Ok(()); // `echo`
    }
    let replaced = found.options.iter().find_map(|(option, value)| match option.as_str() {
        "I" => value.as_ref().and_then(ShellWord::value),
        "replace" => Some(value.as_ref().and_then(ShellWord::value).unwrap_or("{}")),
        _ => None,
    });
    match replaced {
        // Wherever the mark stands, something else will.
        Some(mark) => {
            for word in command.iter_mut().filter(|word| word.text.contains(mark)) {
                *word = ShellWord::dynamic(ADDED);
            }
        }
        None => command.push(ShellWord::dynamic(ADDED)),
    }
    visitor.command(command)
}

/// Reads `find`: itself, the commands of `-exec`, and the files that it writes.
fn find(visitor: &mut impl LineVisitor, words: &[ShellWord]) -> Result<(), ShellError> {
    let found = found_paths(words);
    let mut at = 1;
    while let Some(word) = words.get(at) {
        at += 1;
        match word.value() {
            Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                let rest = words.get(at..).unwrap_or_default();
                if rest.iter().any(|word| !word.is_literal && word.text.starts_with("$'")) {
                    return Err(ShellError::DynamicScript { program: "find".to_owned() });
                }
                let end = rest
                    .iter()
                    .position(|word| matches!(word.value(), Some(";" | "+")))
                    .unwrap_or(rest.len());
                let filled = rest.get(..end).unwrap_or_default().iter().flat_map(|word| {
                    let is_filled = word.text.contains("{}");
                    let paths = if is_filled { found.as_slice() } else { &[] };
                    let others = (!is_filled).then(|| word.clone());
                    paths.iter().map(|path| path_in_place(word, path)).chain(others)
                });
                let command = filled.collect();
                at += end;
                visitor.repeated(|visitor| visitor.command(command))?;
            }
            Some("-fprint" | "-fprint0" | "-fls" | "-fprintf") => {
                match words.get(at).and_then(ShellWord::value) {
                    Some(path) => visitor.file(path, Access::Write),
                    None => return Err(ShellError::DynamicScript { program: "find".to_owned() }),
                }
            }
            // A path that begins as one can be no action of `find`.
            None if !word.text.starts_with(['.', '/', '~', '*']) && !word.text.starts_with("\"$") => {
                return Err(ShellError::DynamicScript { program: "find".to_owned() });
            }
            _ => {}
        }
    }
    let mut program = ShellProgram::new(words.to_vec());
    if words.iter().any(|word| word.text == "-delete") {
        program.removed = found.into_iter().map(ShellWord::dynamic).collect();
    }
    visitor.program(program);
    Ok(())
}

/// Returns `word` with the path that `find` puts in the place of `{}`.
fn path_in_place(word: &ShellWord, path: &str) -> ShellWord {
    match word.is_literal && word.text == "{}" {
        true => ShellWord::dynamic(path),
        // In a part of a word it could be anything.
        false => ShellWord::dynamic("\"$(find)\""),
    }
}

/// Returns the paths that `find` finds, as the source of words: something beneath each folder that it begins in. Only where
/// every test must hold is a name one of them.
fn found_paths(words: &[ShellWord]) -> Vec<String> {
    let arguments = words.get(1..).unwrap_or_default();
    let starts = arguments.iter().take_while(|word| !word.text.starts_with(['-', '(', '!', ',']));
    let starts: Vec<String> = starts
        .map(|word| match word.value() {
            Some(path) => format!("'{}'", path.replace('\'', "'\\''")),
            None => word.text.clone(),
        })
        .collect();
    let is_plain =
        |pattern: &&str| pattern.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"*?._-".contains(&byte));
    let has_choice = arguments
        .iter()
        .any(|word| matches!(word.text.as_str(), "-o" | "-or" | "," | "!" | "-not" | "(" | ")"));
    let name = arguments.iter().zip(arguments.iter().skip(1)).find_map(|(option, name)| {
        (option.value() == Some("-name")).then(|| name.value().filter(is_plain)).flatten()
    });
    let name = name.filter(|_| !has_choice).unwrap_or_default();
    // Each of them takes the place of each `{}`.
    const MAX_STARTS: usize = 16;
    if starts.len() > MAX_STARTS {
        return vec![ADDED.to_owned()];
    }
    let starts = if starts.is_empty() { vec![".".to_owned()] } else { starts };
    starts.iter().map(|start| format!("{start}/\"$(find)\"{name}")).collect()
}

/// Reads a shell: the line of `-c`, or the file that it runs.
fn shell(visitor: &mut impl LineVisitor, name: &str, words: &[ShellWord]) -> Result<(), ShellError> {
    let arguments = words.get(1..).unwrap_or_default();
    let mut takes_line = false;
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let Some(text) = word.value() else {
            return Err(ShellError::DynamicScript { program: name.to_owned() });
        };
        let unknown = || ShellError::Option { program: name.to_owned(), option: text.to_owned() };
        match text {
            "--" => {
                at += 1;
                break;
            }
            "--norc" | "--noprofile" | "--login" | "--posix" => at += 1,
            "--version" | "--help" => return Ok(()),
            _ if text.starts_with(['-', '+']) && text.len() > 1 => {
                if !text[1..].chars().all(|flag| "abcefhmnouvxlpBCHP".contains(flag)) {
                    return Err(unknown());
                }
                takes_line |= text.contains('c');
                // Each `o` takes a word.
                at += 1 + text.matches('o').count();
            }
            _ => break,
        }
    }
    match (arguments.get(at), takes_line) {
        (Some(line), true) => match line.value() {
            Some(line) => {
                let line = line.to_owned();
                visitor.inner_line(&line)
            }
            None => Err(ShellError::DynamicScript { program: name.to_owned() }),
        },
        (Some(_), false) => {
            visitor.program(ShellProgram::new(words.to_vec()));
            Ok(())
        }
        (None, true) => Ok(()),
        (None, false) => Err(ShellError::StandardInput { program: name.to_owned() }),
    }
}
