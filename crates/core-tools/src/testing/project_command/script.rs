//! The commands of a shell script of one line.

use crate::ci::project::Project;
use process_runner::CommandLine;

/// A command of a script: `MODE=strict jest --ci` of `tsc && MODE=strict jest --ci`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptCommand {
    /// The command, as the script has it.
    pub(crate) text: String,
    /// The variables that it is given.
    pub(crate) assignments: Vec<(String, String)>,
    /// Program and arguments. Empty if the text has no such words.
    pub(crate) words: Vec<String>,
    /// Its failure does not become that of the script: `pytest || true`.
    pub(crate) is_hidden: bool,
    /// The commands of the script in a file of the project that it runs: `sh ci.sh`.
    pub(crate) file_commands: Vec<Self>,
    /// The script goes on before it has ended: `node server.js &`.
    pub(crate) is_background: bool,
    /// The words that the loop around it takes one after the other: `tests/*.sh` of `for f in tests/*.sh; do sh $f; done`.
    pub(crate) loop_words: Vec<String>,
}

impl ScriptCommand {
    fn new(text: &str) -> Self {
        let mut words: Vec<String> = match CommandLine::parse(text) {
            Ok(line) => {
                let is_of_shell = line.shell_syntax().is_some();
                let words = std::iter::once(line.program).chain(line.args).collect();
                if is_of_shell { without_redirections(words) } else { words }
            }
            Err(_) => Vec::new(),
        };
        let mut assignments = Vec::new();
        // A program that sets variables for another one, on every system alike.
        let mut by_program = false;
        while let Some(word) = words.first() {
            if !by_program && ["cross-env", "env"].contains(&word.as_str()) {
                by_program = true;
                words.remove(0);
            } else if let Some((name, value)) = assignment(word) {
                assignments.push((name.to_owned(), value.to_owned()));
                words.remove(0);
            } else {
                break;
            }
        }
        Self {
            text: text.to_owned(),
            assignments,
            words,
            is_hidden: false,
            file_commands: Vec::new(),
            is_background: false,
            loop_words: Vec::new(),
        }
    }

    /// Reads the script that the command runs, if it is a file below `folder`.
    pub(crate) fn read_file(&mut self, folder: &Project) {
        let is_shell = ["sh", "bash", "dash", "zsh"].contains(&self.program());
        let file = if is_shell {
            self.words.iter().skip(1).find(|word| !word.starts_with('-'))
        } else {
            self.words.first().filter(|word| word.contains('/'))
        };
        let text = file.and_then(|file| folder.read(file)).unwrap_or_default();
        let is_of_shell = is_shell
            || text.lines().next().is_some_and(|line| line.starts_with("#!") && line.ends_with("sh"));
        if is_of_shell {
            // A quote in a comment opens none.
            let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
            self.file_commands = split_commands(&lines.collect::<Vec<_>>().join("\n"));
        }
    }

    /// Returns true if a shell looks at its exit code instead of passing it on: `if node a.js`, `! node a.js`.
    pub(crate) fn is_condition(&self) -> bool {
        let first = self.words.first().map_or("", String::as_str);
        ["!", "if", "elif", "while", "until"].contains(&first)
    }

    /// Returns true for `find … -exec COMMAND \;`, which succeeds even if the command fails.
    pub(crate) fn is_find_of_many(&self) -> bool {
        let is_exec = |word: &String| matches!(word.as_str(), "-exec" | "-execdir" | "-ok");
        let is_end = |word: &String| matches!(word.as_str(), ";" | "\\;");
        self.words.iter().any(|word| file_name(word) == "find")
            && self.words.iter().skip_while(|word| !is_exec(word)).any(is_end)
    }

    /// Returns the word that names a program, whatever folder it is in.
    pub(crate) fn program(&self) -> &str {
        self.words.first().map_or("", |word| file_name(word))
    }
}

/// Returns the last part of a path, without the ending of a JavaScript file.
pub(crate) fn file_name(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    [".js", ".mjs", ".cjs"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_name) && !name.starts_with(|c: char| c.is_ascii_digit()))
        .then_some((name, value))
}

/// Returns the words without redirections, which are no arguments: `> out.txt`, `2>&1`, `<in.txt`.
fn without_redirections(words: Vec<String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let rest = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        match rest.trim_start_matches(['>', '<', '|', '&']) {
            _ if !rest.starts_with(['>', '<']) => kept.push(word),
            // The file is the next word.
            "" => {
                words.next();
            }
            _ => {}
        }
    }
    kept
}

/// An operator that ends a command of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    And,
    Or,
    Pipe,
    /// `&`.
    Background,
    /// `;` or the end of a line.
    Next,
}

/// Splits a script at the operators that join commands. Quotes keep them; a redirection is part of its command.
pub(crate) fn split_commands(script: &str) -> Vec<ScriptCommand> {
    let mut commands: Vec<(String, Operator)> = Vec::new();
    let mut text = String::new();
    let mut quote = None;
    let mut previous = ' ';
    let mut chars = script.chars().peekable();
    while let Some(c) = chars.next() {
        let is_redirection = c == '&' && (previous == '>' || chars.peek() == Some(&'>'));
        match quote {
            None if c == '\\' => {
                text.push(c);
                text.extend(chars.next());
            }
            None if matches!(c, ';' | '\n' | '|' | '&') && !is_redirection => {
                let is_double = chars.next_if_eq(&c).is_some();
                let operator = match c {
                    '|' if is_double => Operator::Or,
                    '&' if is_double => Operator::And,
                    '|' => Operator::Pipe,
                    '&' => Operator::Background,
                    _ => Operator::Next,
                };
                commands.push((std::mem::take(&mut text), operator));
            }
            _ => {
                if quote == Some(c) {
                    quote = None;
                } else if quote.is_none() && matches!(c, '\'' | '"') {
                    quote = Some(c);
                }
                text.push(c);
            }
        }
        previous = c;
    }
    commands.push((text, Operator::Next));
    let commands = commands.into_iter().filter(|(text, _)| !text.trim().is_empty());
    let (texts, operators): (Vec<_>, Vec<_>) = commands.unzip();
    let mut commands: Vec<_> = texts.iter().map(|text| ScriptCommand::new(text.trim())).collect();
    for index in 0..commands.len() {
        commands[index].is_hidden = is_hidden(&commands, &operators, index) || is_trapped(&commands, index);
        commands[index].is_hidden |= commands[index].is_find_of_many();
        commands[index].is_background = operators.get(index) == Some(&Operator::Background);
    }
    add_loop_words(&mut commands, &operators);
    commands
}

/// Gives the commands of each loop the words that it takes: the list of `for`, and of `while read` what the pipe or the file
/// before it names.
fn add_loop_words(commands: &mut [ScriptCommand], operators: &[Operator]) {
    let mut open: Vec<(usize, Vec<String>)> = Vec::new();
    for index in 0..commands.len() {
        // `do` may stand before a loop within another one.
        let words: Vec<String> =
            commands[index].words.iter().skip_while(|word| is_keyword(word)).cloned().collect();
        match words.first().map(String::as_str) {
            Some("for") => open.push((index, words.into_iter().skip(2).collect())),
            Some("while" | "until") => {
                let is_piped = |at: &usize| operators.get(*at) == Some(&Operator::Pipe);
                let head = (0..index).rev().take_while(is_piped);
                open.push((index, head.flat_map(|at| commands[at].words.clone()).collect()));
            }
            Some("done") => {
                let Some((start, mut taken)) = open.pop() else { continue };
                taken.extend(commands[index].text.split_whitespace().map(str::to_owned));
                for command in &mut commands[start..index] {
                    command.loop_words.extend(taken.iter().cloned());
                }
            }
            _ => {}
        }
    }
}

/// Returns true for a word of the shell before a command.
pub(crate) fn is_keyword(word: &str) -> bool {
    ["do", "then", "else", "{", "(", "!", "if", "elif", "time"].contains(&word)
}

/// Returns true if a trap that was set before a command ends the script with exit code 0: `trap 'exit 0' EXIT`.
fn is_trapped(commands: &[ScriptCommand], index: usize) -> bool {
    commands.iter().take(index).any(|command| {
        let [program, action, signals @ ..] = command.words.as_slice() else { return false };
        program == "trap"
            && signals.iter().any(|signal| matches!(signal.as_str(), "EXIT" | "0" | "ERR"))
            && (exits_with_zero(&split_commands(action)) || exits_with_zero(body(commands, action)))
    })
}

fn exits_with_zero(commands: &[ScriptCommand]) -> bool {
    // In a body of one line, the exit stands behind the brace.
    commands.iter().any(|command| command.words.ends_with(&["exit".to_owned(), "0".to_owned()]))
}

/// Returns the commands of the function of this name.
fn body<'a>(commands: &'a [ScriptCommand], function: &str) -> &'a [ScriptCommand] {
    let begins = |command: &ScriptCommand| {
        let text = command.text.strip_prefix("function ").unwrap_or(&command.text).trim_start();
        text.strip_prefix(function).is_some_and(|rest| rest.trim_start().starts_with(['(', '{']))
    };
    let start = commands.iter().position(begins);
    let body = start.and_then(|start| commands.get(start..)).unwrap_or_default();
    let end = body.iter().position(|command| command.text == "}").unwrap_or(body.len());
    body.get(..end).unwrap_or_default()
}

/// Returns true if the failure of a command does not become that of its script.
fn is_hidden(commands: &[ScriptCommand], operators: &[Operator], index: usize) -> bool {
    if commands[index].is_condition() {
        return true;
    }
    let later = commands.get(index + 1..).unwrap_or_default();
    let own = operators.get(index..).unwrap_or_default();
    let has_option = |letter: char, name: &str| {
        commands[..index].iter().any(|command| {
            let is_option = |word: &String| {
                word == name || (word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
            };
            command.program() == "set" && command.words.iter().skip(1).any(is_option)
        })
    };
    if own.first() == Some(&Operator::Pipe) && !has_option('\0', "pipefail") {
        return own.len() > 1;
    }
    // What follows `&&`, and the pipe that begins there, is not run after a failure.
    let Some(end) = own.iter().position(|operator| !matches!(operator, Operator::And | Operator::Pipe))
    else {
        return false;
    };
    let (operator, later) = (own[end], later.get(end..).unwrap_or_default());
    let fails = |command: &ScriptCommand| match command.words.get(..2).unwrap_or(&command.words) {
        [program] => matches!(program.as_str(), "exit" | "false"),
        [program, code] => program == "exit" && code.trim_end_matches([')', '}']) != "0",
        _ => false,
    };
    let closes = |command: &ScriptCommand| matches!(command.text.as_str(), "fi" | "esac" | "}" | ")");
    match (operator, later) {
        (_, later) if later.iter().all(closes) => false,
        (Operator::Or, [next, ..]) if next.text.starts_with(['(', '{']) => !later.iter().any(fails),
        (Operator::Or, [next, ..]) => !fails(next),
        _ => {
            let passes_on =
                |command: &ScriptCommand| command.program() == "exit" && command.text.contains('$');
            !has_option('e', "errexit") && !later.iter().any(passes_on)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(script: &str) -> Vec<String> {
        split_commands(script).into_iter().map(|command| command.text).collect()
    }

    #[test]
    fn a_script_is_split_at_its_operators_and_not_in_quotes() {
        assert_eq!(texts("vitest run && node integration.js"), ["vitest run", "node integration.js"]);
        assert_eq!(texts("a; b | c || d & e"), ["a", "b", "c", "d", "e"]);
        assert_eq!(texts("mocha \"a;b\" 'c && d' e\\;f"), ["mocha \"a;b\" 'c && d' e\\;f"]);
        assert_eq!(texts("node a.js 2>&1 &> log"), ["node a.js 2>&1 &> log"]);
        assert_eq!(texts(" "), [""; 0]);
    }

    #[test]
    fn a_command_whose_failure_the_script_does_not_pass_on_is_hidden() {
        for (script, hidden) in [
            ("a && b", ""),
            ("a || true", "a"),
            ("a; b", "a"),
            ("a && b; c", "a b"),
            ("a && b || true", "a b"),
            ("a | b", "a"),
            ("a && b | c", "b"),
            ("set -o pipefail; a | b", "set -o pipefail"),
            ("a & b", "a"),
            ("(a; b) && c", "(a"),
            ("a || exit 1", ""),
            ("a || exit 0", "a"),
            // Too careful: what `exit` gets is not looked at there.
            ("a || { echo b; exit 3; }", "{ echo b"),
            ("a || (echo b)", "a"),
            ("set -e; a; b", "set -e"),
            ("set -eu\na\nb", "set -eu"),
            ("a; code=$?; b; exit $code", ""),
            ("! a", "! a"),
            ("a;", ""),
            ("if a; then b; fi", "if a"),
            ("for a in 1 2; do b; done", "for a in 1 2 do b"),
            ("trap 'exit 0' EXIT; set -e; a", "trap 'exit 0' EXIT set -e a"),
            ("trap 'rm -rf x; exit 0' EXIT\na && b", "trap 'rm -rf x; exit 0' EXIT a b"),
            ("trap end EXIT\nend() { rm -rf x; exit 0; }\na", "trap end EXIT end() { rm -rf x exit 0 } a"),
            ("trap 'rm -rf x' EXIT; set -e; a", "trap 'rm -rf x' EXIT set -e"),
            ("trap 'exit 0' TERM; set -e; a", "trap 'exit 0' TERM set -e"),
            ("find t -exec sh {} \\;", "find t -exec sh {} \\;"),
            ("find t -exec sh {} +", ""),
        ] {
            let commands = split_commands(script);
            let found: Vec<_> = commands.iter().filter(|command| command.is_hidden).collect();
            let found: Vec<_> = found.iter().map(|command| command.text.as_str()).collect();
            assert_eq!(found.join(" "), hidden, "{script}");
        }
    }

    #[test]
    fn a_command_in_a_loop_has_the_words_of_the_loop() {
        for (script, command, words) in [
            ("for f in t/*.sh u; do sh $f; done; echo", "do sh $f", "in t/*.sh u done"),
            ("ls t/*.sh | sort | while read f; do sh $f; done", "do sh $f", "sort ls t/*.sh done"),
            ("while read f; do sh $f; done < list.txt", "do sh $f", "done < list.txt"),
            ("for f in a; do for g in b; do sh $g; done; done", "do sh $g", "in b done in a done"),
            ("for f in a; do x; done; sh b", "sh b", ""),
        ] {
            let commands = split_commands(script);
            let found = commands.iter().find(|found| found.text == command).unwrap();
            assert_eq!(found.loop_words.join(" "), words, "{script}");
        }
    }

    #[test]
    fn a_command_has_its_variables_and_its_program() {
        for script in
            ["MODE=strict jest --ci", "cross-env MODE=strict jest --ci", "env MODE=strict jest --ci"]
        {
            let command = &split_commands(script)[0];
            assert_eq!(command.assignments, [("MODE".to_owned(), "strict".to_owned())]);
            assert_eq!((command.program(), &command.words[1..]), ("jest", &["--ci".to_owned()][..]));
        }
        assert_eq!(split_commands("./node_modules/mocha/bin/mocha.js -b")[0].program(), "mocha");
        for script in
            ["node a.js > /dev/null", "node a.js 2>&1", "node a.js >>out 2>&1", "<in node a.js &> log"]
        {
            assert_eq!(split_commands(script)[0].words, ["node", "a.js"], "{script}");
        }
        assert_eq!(split_commands("node '>' a.js")[0].words, ["node", ">", "a.js"]);
    }
}
