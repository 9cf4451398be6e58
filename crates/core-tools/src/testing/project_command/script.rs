//! A command of a script: its words, and how the script takes its failure.

use super::shell::LoopWords;
use process_runner::CommandLine;

/// A command of a script: `MODE=strict jest --ci` of `tsc && MODE=strict jest --ci`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "the facts are independent of each other")]
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
    /// A shell looks at its exit code instead of passing it on: `if node a.js`, `! node a.js`.
    pub(crate) is_condition: bool,
    /// The text that it is part of was not understood whole.
    pub(crate) is_unread: bool,
    /// The words that the loop around it takes one after the other: `tests/*.sh` of `for f in tests/*.sh; do sh $f; done`.
    pub(crate) loop_words: LoopWords,
}

impl ScriptCommand {
    pub(super) fn new(text: &str) -> Self {
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
            is_condition: false,
            is_unread: false,
            loop_words: LoopWords::default(),
        }
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

#[cfg(test)]
mod tests {
    use crate::testing::project_command::shell::split_commands;

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
