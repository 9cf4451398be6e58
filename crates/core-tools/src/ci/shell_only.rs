//! Refuses lines that only a shell understands, with the call that does what was meant.

use process_runner::{CommandLine, ShellSyntax, ShellSyntaxKind};
use serde_json::{Map, Value, json};
use std::fmt;

/// The reason why a line is not run without a shell, and the call to make instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeedsShell {
    found: String,
    advice: String,
}

impl fmt::Display for NeedsShell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, and `command` runs without one; nothing was run. {}", self.found, self.advice)
    }
}

/// The longest call that is written out in an error, in bytes.
const MAX_CALL_BYTES: usize = 800;

/// Commands of shells that change the shell itself. Where programs of these names exist, they change nothing.
const STATE_BUILTINS: [&str; 19] = [
    "cd", "pushd", "popd", "export", "unset", "source", ".", "exit", "return", "logout", "alias", "unalias",
    "set", "shopt", "eval", "exec", "trap", "declare", "umask",
];

/// Further builtins and keywords of shells, which may be programs too.
const OTHER_BUILTINS: [&str; 32] = [
    "if", "for", "while", "until", "case", "select", "function", "[[", "!", "{", "time", "read", "wait",
    "jobs", "fg", "bg", "type", "command", "builtin", "hash", "history", "local", "readonly", "typeset",
    "let", "ulimit", "times", "dirs", "disown", "mapfile", "coproc", ":",
];

/// Returns true if shells have a builtin or a keyword of this name.
pub(super) fn is_builtin(word: &str) -> bool {
    STATE_BUILTINS.contains(&word) || OTHER_BUILTINS.contains(&word)
}

/// A line that is to run without a shell.
#[derive(Clone, Copy)]
pub(super) struct ShelllessLine<'a> {
    pub(super) text: &'a str,
    pub(super) parsed: &'a CommandLine,
    /// The requested folder.
    pub(super) working_directory: Option<&'a str>,
}

impl ShelllessLine<'_> {
    /// Refuses the line if somebody who wrote it meant a shell. `matches_a_file` says if a shell would replace a glob:
    /// one that no file matches is the same with a shell and without.
    pub(super) fn check(self, matches_a_file: impl Fn(&str) -> bool) -> Result<(), NeedsShell> {
        let refused = |found: String, advice: String| Err(NeedsShell { found, advice });
        if let Some(syntax) = self.parsed.shell_syntax_but_globs() {
            return refused(syntax.to_string(), self.advice(syntax));
        }
        let program = self.parsed.program.as_str();
        if STATE_BUILTINS.contains(&program) {
            return refused(format!("`{program}` is a command of shells"), self.builtin_advice());
        }
        match self.parsed.shell_syntax_of(ShellSyntaxKind::Glob) {
            Some(syntax) if self.parsed.glob_words().any(matches_a_file) => {
                refused(syntax.to_string(), self.advice(syntax))
            }
            _ => Ok(()),
        }
    }

    fn has(self, kinds: &[ShellSyntaxKind]) -> bool {
        kinds.iter().any(|kind| self.parsed.shell_syntax_of(*kind).is_some())
    }

    fn advice(self, syntax: &ShellSyntax) -> String {
        use ShellSyntaxKind::{Assignment, Braces, Comment, Expansion, Home, Operator, Redirection};
        if let Some(call) = self.in_folder() {
            return make(&call);
        }
        if syntax.kind == Assignment && !self.has(&[Braces, Comment, Expansion, Home, Operator, Redirection])
        {
            return make(&self.with_variables());
        }
        let with_shell = make(&self.with_shell());
        if self.has(&[Operator, Redirection, Assignment]) {
            return with_shell;
        }
        let literal = json!({ "command": self.words() }).to_string();
        // A long call would only repeat what the caller has just written.
        if literal.len() > MAX_CALL_BYTES {
            return format!("{with_shell}. If it is meant as it stands, give `command` as an array of words");
        }
        format!("{with_shell}. If it is meant as it stands: {literal}")
    }

    fn builtin_advice(self) -> String {
        let parsed = self.parsed;
        match (parsed.program.as_str(), parsed.args.as_slice()) {
            ("cd" | "pushd", [folder]) => format!(
                "Each command starts anew: give those that are to run there {}",
                json!({ "working_directory": self.joined(folder) })
            ),
            ("export" | "declare", words) if words.iter().any(|word| word.contains('=')) => {
                let variables: Map<_, _> = words.iter().filter_map(|word| variable(word)).collect();
                format!(
                    "Each command starts anew: give those that are to have it {}",
                    json!({ "env": variables })
                )
            }
            ("source" | ".", [file, ..]) => format!(
                "It changes the shell that runs it, so the command that needs it goes into the same line: {}",
                json!({ "command": format!("source {file} && COMMAND"), "shell": true })
            ),
            ("exit" | "return" | "logout", _) => {
                "There is no shell to leave: each command ends by itself".to_owned()
            }
            _ => make(&self.with_shell()),
        }
    }

    fn with_shell(self) -> Value {
        let mut call = json!({ "command": self.text, "shell": true });
        if let (Some(folder), Some(call)) = (self.working_directory, call.as_object_mut()) {
            call.insert("working_directory".to_owned(), folder.into());
        }
        call
    }

    /// Returns the call for `cd FOLDER && COMMAND`.
    fn in_folder(self) -> Option<Value> {
        let operator = self.parsed.shell_syntax_of(ShellSyntaxKind::Operator)?;
        if self.parsed.program != "cd" || !["&&", ";", "newline"].contains(&operator.token.as_str()) {
            return None;
        }
        let width = if operator.token == "newline" { 1 } else { operator.token.len() };
        let before = CommandLine::parse(self.text.get(..operator.position)?).ok()?;
        let rest = self.text.get(operator.position + width..)?.trim();
        let command = CommandLine::parse(rest).ok()?;
        let [folder] = before.args.as_slice() else { return None };
        let is_plain = before.shell_syntax().is_none()
            // `cd -` and options of `cd` name no folder.
            && !folder.starts_with('-')
            && command.shell_syntax_but_globs().is_none()
            && !is_builtin(&command.program);
        is_plain.then(|| json!({ "command": rest, "working_directory": self.joined(folder) }))
    }

    /// Returns the call for `NAME=value COMMAND`.
    fn with_variables(self) -> Value {
        let words = self.words();
        let assignments = words.iter().take_while(|word| variable(word).is_some()).count();
        let (assignments, words) = words.split_at(assignments);
        let variables: Map<_, _> = assignments.iter().filter_map(|word| variable(word)).collect();
        json!({ "command": words, "env": variables })
    }

    fn words(self) -> Vec<String> {
        std::iter::once(&self.parsed.program).chain(&self.parsed.args).cloned().collect()
    }

    /// Returns a folder that is relative to the requested one.
    fn joined(self, folder: &str) -> String {
        match self.working_directory {
            Some(base) if !folder.starts_with('/') => format!("{}/{folder}", base.trim_end_matches('/')),
            _ => folder.to_owned(),
        }
    }
}

/// Returns the name and the value of `NAME=value`.
fn variable(word: &str) -> Option<(String, Value)> {
    let (name, value) = word.split_once('=')?;
    let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let valid =
        !name.is_empty() && name.chars().all(is_name) && !name.starts_with(|c: char| c.is_ascii_digit());
    valid.then(|| (name.to_owned(), value.into()))
}

/// Returns the sentence that has the call to make. A long one is described.
fn make(call: &Value) -> String {
    let text = call.to_string();
    if text.len() > MAX_CALL_BYTES {
        return "Make the same call with \"shell\": true".to_owned();
    }
    format!("Make this call instead: {text}")
}

/// Returns the advice for words that were given with `shell`.
pub(super) fn line_advice(words: &[String]) -> String {
    let line = words.join(" ");
    if line.len() > MAX_CALL_BYTES {
        return "give the line as one string, or leave out `shell`".to_owned();
    }
    format!(
        "make this call instead: {}, or leave out `shell`, and the words are taken as they are",
        json!({ "command": line, "shell": true })
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str) -> Result<(), String> {
        let parsed = CommandLine::parse(text).unwrap();
        let line = ShelllessLine { text, parsed: &parsed, working_directory: None };
        line.check(|glob| glob.contains("there")).map_err(|refused| refused.to_string())
    }

    #[test]
    fn what_only_a_shell_understands_is_refused_with_the_call_to_make() {
        for (line, call) in [
            ("echo $HOME", r#"{"command":"echo $HOME","shell":true}"#),
            ("echo \"$HOME\"", r#"{"command":"echo \"$HOME\"","shell":true}"#),
            ("echo `date`", r#"{"command":"echo `date`","shell":true}"#),
            ("echo $(date)", r#"{"command":"echo $(date)","shell":true}"#),
            ("ls ~/src", r#"{"command":"ls ~/src","shell":true}"#),
            ("ls there*.rs", r#"{"command":"ls there*.rs","shell":true}"#),
            ("mkdir -p src/{a,b}", r#"{"command":"mkdir -p src/{a,b}","shell":true}"#),
            ("make > log", r#"{"command":"make > log","shell":true}"#),
            ("cat a*.log | wc -l", r#"{"command":"cat a*.log | wc -l","shell":true}"#),
            ("a && b", r#"{"command":"a && b","shell":true}"#),
            ("A=$B c", r#"{"command":"A=$B c","shell":true}"#),
            ("eval x", r#"{"command":"eval x","shell":true}"#),
            ("A=1 B='x y' env -i z", r#"{"command":["env","-i","z"],"env":{"A":"1","B":"x y"}}"#),
            ("cd 'a b' && cargo test -q", r#"{"command":"cargo test -q","working_directory":"a b"}"#),
            ("cd src; ls", r#"{"command":"ls","working_directory":"src"}"#),
            ("cd src\nls", r#"{"command":"ls","working_directory":"src"}"#),
            ("cd src && ls | wc", r#"{"command":"cd src && ls | wc","shell":true}"#),
            ("cd src", r#"{"working_directory":"src"}"#),
            ("export A=1", r#"{"env":{"A":"1"}}"#),
            ("source .env", r#"{"command":"source .env && COMMAND","shell":true}"#),
            (". .env", r#"{"command":"source .env && COMMAND","shell":true}"#),
            ("exit 0", "ends by itself"),
        ] {
            let refused = check(line).unwrap_err();
            assert!(refused.contains(call) && refused.contains("nothing was run"), "{line}: {refused}");
        }
    }

    #[test]
    fn what_may_be_meant_as_it_stands_is_refused_with_both_ways() {
        let refused = check("grep \"cost $5\" there?").unwrap_err();
        assert!(refused.contains(r#"{"command":["grep","cost $5","there?"]}"#), "{refused}");
    }

    #[test]
    fn what_a_shell_would_run_the_same_way_is_not_refused() {
        for line in [
            "grep 'a*b' file",
            "grep \"a*b\" file",
            "find . -name *.none",
            "pip install requests[security]",
            "git log --format='%h $x' HEAD~1 HEAD^",
            "echo 5$ a=b",
            "time make",
            "sh -c 'cd src && ls > x'",
        ] {
            assert_eq!(check(line), Ok(()), "{line}");
        }
    }

    #[test]
    fn a_folder_is_relative_to_the_one_that_was_given_and_a_long_call_is_described() {
        let text = "cd a && ls";
        let parsed = CommandLine::parse(text).unwrap();
        let line = ShelllessLine { text, parsed: &parsed, working_directory: Some("sub/") };
        assert!(line.check(|_| false).unwrap_err().to_string().contains("sub/a"));
        let long = check(&format!("echo {} | wc", "x".repeat(10_000))).unwrap_err();
        assert!(long.len() < 500, "{long}");
    }

    proptest! {
        #[test]
        fn any_line_is_run_or_refused_in_bounds(text in any::<String>()) {
            if let Ok(parsed) = CommandLine::parse(&text) {
                let line = ShelllessLine { text: &text, parsed: &parsed, working_directory: None };
                if let Err(refused) = line.check(|_| true) {
                    prop_assert!(refused.to_string().len() < 4_000 + text.len());
                }
            }
        }

        #[test]
        fn lines_of_shell_text_never_panic(text in r#"(cd |export |source |A=|[ab '"$`~#{},.;&|<>*?\[\]\n\\é-]){0,12}"#) {
            if let Ok(parsed) = CommandLine::parse(&text) {
                let line = ShelllessLine { text: &text, parsed: &parsed, working_directory: Some("x") };
                let _ = line.check(|_| true).map_err(|refused| refused.to_string());
            }
        }
    }
}
