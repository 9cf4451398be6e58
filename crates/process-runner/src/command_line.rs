//! Splits the text of a command into a program and its arguments, without a shell.

use std::fmt;

/// A program and its arguments, parsed from text.
///
/// Words are separated by blanks, tabs and newlines. Quotes and backslashes mean what POSIX says
/// ([XCU 2.2](https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_02)):
/// between single quotes everything is literal; between double quotes a backslash escapes `$`, `` ` ``,
/// `"` and `\`, is removed with a newline that follows, and is literal before anything else; elsewhere it
/// escapes any character, and is removed with a newline that follows. `""` and `''` are arguments.
///
/// Nothing is expanded and nothing is an operator: `$HOME`, `*`, `|` and `>` reach the program unchanged.
/// [`CommandLine::shell_syntax`] says whether the text contains such a thing, so that a caller can answer that there
/// is no shell.
///
/// ```
/// use process_runner::CommandLine;
///
/// let line = CommandLine::parse(r#"git commit -m "it's done" --author='A <a@b>'"#)?;
/// assert_eq!(line.program, "git");
/// assert_eq!(line.args, ["commit", "-m", "it's done", "--author=A <a@b>"]);
///
/// let line = CommandLine::parse("cat *.log | wc -l")?;
/// assert_eq!(line.args, ["*.log", "|", "wc", "-l"]);
/// assert_eq!(line.shell_syntax().map(|found| found.token.as_str()), Some("*"));
/// # Ok::<(), process_runner::CommandSplitError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandLine {
    /// The first word. Never empty.
    pub program: String,
    /// The other words.
    pub args: Vec<String>,
    shell_syntax: Option<ShellSyntax>,
}

/// The reason that a text is not a command. Positions are byte offsets into it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandSplitError {
    /// There is no program: the text is blank, or its first word is an empty pair of quotes.
    #[error("no program at byte {position}: the command is empty")]
    Empty {
        /// The position where the program should be.
        position: usize,
    },
    /// A quote is not closed.
    #[error("the {quote} at byte {position} is never closed")]
    UnclosedQuote {
        /// The quote: `'` or `"`.
        quote: char,
        /// The position of the opening quote.
        position: usize,
    },
    /// A backslash is the last character, so that it escapes nothing.
    #[error("the backslash at byte {position} is the last character and escapes nothing")]
    TrailingBackslash {
        /// The position of the backslash.
        position: usize,
    },
}

impl CommandSplitError {
    /// Returns the position of the error in the text, as a byte offset.
    pub fn position(&self) -> usize {
        match self {
            Self::Empty { position }
            | Self::UnclosedQuote { position, .. }
            | Self::TrailingBackslash { position } => *position,
        }
    }
}

/// Characters of a command that a shell would have acted on, and that are literal here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShellSyntax {
    /// The effect that they have in a shell.
    pub kind: ShellSyntaxKind,
    /// The characters: `&&`, `>`, `$`, `*`, `newline` ...
    pub token: String,
    /// Their position, as a byte offset into the text.
    pub position: usize,
}

/// The effect of unquoted characters in a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShellSyntaxKind {
    /// They join or group commands: `|`, `&`, `;`, `&&`, `||`, `(`, `)`, or a newline between commands.
    Operator,
    /// They redirect a stream: `<`, `>`, `>>`, `<<`.
    Redirection,
    /// They are replaced by a value or by output: `$` and `` ` ``, also between double quotes.
    Expansion,
    /// They are replaced by the names of files: `*`, `?`, `[`.
    Glob,
    /// They are replaced by a home folder: `~` at the start of a word.
    Home,
    /// They set a variable for the command: `NAME=value` before the program.
    Assignment,
    /// They make the rest of the line a comment: `#` at the start of a word.
    Comment,
}

impl fmt::Display for ShellSyntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = match self.kind {
            ShellSyntaxKind::Operator => "joins commands only in a shell",
            ShellSyntaxKind::Redirection => "redirects only in a shell",
            ShellSyntaxKind::Expansion => "is expanded only by a shell",
            ShellSyntaxKind::Glob => "matches files only in a shell",
            ShellSyntaxKind::Home => "means a home folder only in a shell",
            ShellSyntaxKind::Assignment => "sets a variable only in a shell",
            ShellSyntaxKind::Comment => "begins a comment only in a shell",
        };
        write!(f, "`{}` at byte {} {effect}", self.token, self.position)
    }
}

impl CommandLine {
    /// Splits `text`.
    ///
    /// # Errors
    /// If it has no program, if a quote is not closed, or if it ends in a backslash that escapes nothing.
    pub fn parse(text: &str) -> Result<Self, CommandSplitError> {
        let mut parser = CommandLineParser {
            text,
            offset: 0,
            words: Vec::new(),
            word: None,
            shell_syntax: None,
            newline: None,
        };
        parser.run()?;
        let CommandLineParser { words, shell_syntax, .. } = parser;
        let mut words = words.into_iter();
        match words.next() {
            Some(first) if !first.text.is_empty() => {
                let args = words.map(|word| word.text).collect();
                Ok(Self { program: first.text, args, shell_syntax })
            }
            Some(first) => Err(CommandSplitError::Empty { position: first.start }),
            None => Err(CommandSplitError::Empty { position: text.len() }),
        }
    }

    /// Returns the first unquoted characters that a POSIX shell would not have taken literally. `None` if a shell
    /// would run the same program with the same arguments, apart from its keywords, builtins and aliases.
    pub fn shell_syntax(&self) -> Option<&ShellSyntax> {
        self.shell_syntax.as_ref()
    }
}

/// Returns true if the bracket that `rest` begins with is closed within its word, so that it is a glob and not the
/// program `[`.
fn closes_bracket(rest: &str) -> bool {
    rest.split([' ', '\t', '\n']).next().is_some_and(|word| word.contains(']'))
}

/// A word whose end has not come yet, or one that is complete.
struct CommandWord {
    text: String,
    start: usize,
    /// True if everything so far could be the name in `NAME=value`.
    name_so_far: bool,
}

/// The state of parsing one text.
struct CommandLineParser<'t> {
    text: &'t str,
    /// The offset of the next character.
    offset: usize,
    words: Vec<CommandWord>,
    word: Option<CommandWord>,
    shell_syntax: Option<ShellSyntax>,
    /// The position of a newline after a word. It separates commands in a shell if another word follows.
    newline: Option<usize>,
}

impl CommandLineParser<'_> {
    fn run(&mut self) -> Result<(), CommandSplitError> {
        while let Some((start, c)) = self.next() {
            match c {
                ' ' | '\t' | '\n' => {
                    self.words.extend(self.word.take());
                    if c == '\n' && !self.words.is_empty() {
                        self.newline.get_or_insert(start);
                    }
                }
                '\\' => match self.next() {
                    None => return Err(CommandSplitError::TrailingBackslash { position: start }),
                    // A joined line alone begins no word, unlike empty quotes.
                    Some((_, '\n')) => {}
                    Some((_, escaped)) => self.quoted(start, Some(escaped)),
                },
                '\'' => self.single_quotes(start)?,
                '"' => self.double_quotes(start)?,
                c => self.plain(start, c),
            }
        }
        self.words.extend(self.word.take());
        Ok(())
    }

    fn next(&mut self) -> Option<(usize, char)> {
        let start = self.offset;
        let c = self.text[start..].chars().next()?;
        self.offset += c.len_utf8();
        Some((start, c))
    }

    /// Returns the current word, and begins one if there is none.
    fn word(&mut self, start: usize) -> &mut CommandWord {
        if let Some(newline) = self.newline.take() {
            self.note_syntax(ShellSyntaxKind::Operator, "newline", newline);
        }
        self.word.get_or_insert_with(|| CommandWord { text: String::new(), start, name_so_far: true })
    }

    /// Adds a quoted character, or the start of quotes, which make a word even if they are empty.
    fn quoted(&mut self, start: usize, c: Option<char>) {
        let word = self.word(start);
        word.name_so_far = false;
        word.text.extend(c);
    }

    fn single_quotes(&mut self, start: usize) -> Result<(), CommandSplitError> {
        self.quoted(start, None);
        loop {
            match self.next() {
                Some((_, '\'')) => return Ok(()),
                Some((_, c)) => self.quoted(start, Some(c)),
                None => return Err(CommandSplitError::UnclosedQuote { quote: '\'', position: start }),
            }
        }
    }

    fn double_quotes(&mut self, start: usize) -> Result<(), CommandSplitError> {
        let unclosed = CommandSplitError::UnclosedQuote { quote: '"', position: start };
        self.quoted(start, None);
        loop {
            match self.next() {
                Some((_, '"')) => return Ok(()),
                Some((_, '\\')) => match self.next() {
                    Some((_, '\n')) => {}
                    Some((_, c @ ('$' | '`' | '"' | '\\'))) => self.quoted(start, Some(c)),
                    Some((_, c)) => {
                        self.quoted(start, Some('\\'));
                        self.quoted(start, Some(c));
                    }
                    None => return Err(unclosed),
                },
                Some((position, c)) => {
                    if c == '`' || c == '$' && self.expands() {
                        self.note_syntax(ShellSyntaxKind::Expansion, c.encode_utf8(&mut [0; 4]), position);
                    }
                    self.quoted(start, Some(c));
                }
                None => return Err(unclosed),
            }
        }
    }

    /// Adds an unquoted character, and notes what a shell would do with it.
    fn plain(&mut self, start: usize, c: char) {
        let at_start = self.word.is_none();
        let assigns = c == '=' && self.assigns();
        let word = self.word(start);
        word.text.push(c);
        let name_goes_on = c == '_' || c.is_ascii_alphabetic() || c.is_ascii_digit() && !at_start;
        word.name_so_far &= name_goes_on;
        let word_start = word.start;
        let rest = &self.text[start..];
        // Longest first, so that `&&` is not reported as `&`.
        let operator =
            ["&&", "||", ";;", "|", "&", ";", "(", ")"].into_iter().find(|op| rest.starts_with(op));
        let redirection =
            ["<<", "<>", "<&", ">>", ">|", ">&", "<", ">"].into_iter().find(|op| rest.starts_with(op));
        if let Some(token) = operator {
            self.note_syntax(ShellSyntaxKind::Operator, token, start);
        } else if let Some(token) = redirection {
            self.note_syntax(ShellSyntaxKind::Redirection, token, start);
        } else if c == '`' || c == '$' && (self.expands() || rest[1..].starts_with(['\'', '"'])) {
            // `$'...'` and `$"..."` are quotes of their own in most shells.
            self.note_syntax(ShellSyntaxKind::Expansion, &rest[..1], start);
        } else if matches!(c, '*' | '?') || c == '[' && closes_bracket(rest) {
            self.note_syntax(ShellSyntaxKind::Glob, &rest[..1], start);
        } else if c == '~' && at_start {
            self.note_syntax(ShellSyntaxKind::Home, "~", start);
        } else if c == '#' && at_start {
            self.note_syntax(ShellSyntaxKind::Comment, "#", start);
        } else if assigns {
            self.note_syntax(ShellSyntaxKind::Assignment, &self.text[word_start..=start], word_start);
        }
    }

    /// Returns true if the `$` just read is followed by something that a shell would expand.
    fn expands(&self) -> bool {
        self.text[self.offset..]
            .starts_with(|c: char| c == '_' || c.is_ascii_alphanumeric() || "{(@*#?-$!".contains(c))
    }

    /// Returns true if the `=` just read ends a variable's name before the program.
    fn assigns(&self) -> bool {
        self.words.is_empty()
            && self.word.as_ref().is_some_and(|word| word.name_so_far && !word.text.is_empty())
    }

    /// Notes shell syntax. Only the first is kept.
    fn note_syntax(&mut self, kind: ShellSyntaxKind, token: &str, position: usize) {
        self.shell_syntax.get_or_insert_with(|| ShellSyntax { kind, token: token.to_owned(), position });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        let line = CommandLine::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        std::iter::once(line.program).chain(line.args).collect()
    }

    fn error(text: &str) -> CommandSplitError {
        CommandLine::parse(text).expect_err(text)
    }

    fn hint(text: &str) -> Option<(ShellSyntaxKind, String, usize)> {
        let line = CommandLine::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        line.shell_syntax().map(|found| (found.kind, found.token.clone(), found.position))
    }

    #[test]
    fn blanks_tabs_and_newlines_separate_words() {
        assert_eq!(words("  a b\tc\n\n d\t "), ["a", "b", "c", "d"]);
    }

    #[test]
    fn other_white_space_is_part_of_a_word() {
        assert_eq!(words("a\u{a0}b\rc\u{b}d"), ["a\u{a0}b\rc\u{b}d"]);
    }

    #[test]
    fn quotes_group_and_join_with_what_touches_them() {
        assert_eq!(words(r#"a 'b c'd"e f" "g"'h'"#), ["a", "b cde f", "gh"]);
    }

    #[test]
    fn empty_quotes_are_arguments() {
        assert_eq!(words(r#"a "" '' b"" """#), ["a", "", "", "b", ""]);
    }

    #[test]
    fn single_quotes_keep_everything() {
        assert_eq!(words(r#"a '\ "$x" `y` \'"#), ["a", r#"\ "$x" `y` \"#]);
    }

    #[test]
    fn in_double_quotes_a_backslash_escapes_four_characters_and_newline_only() {
        assert_eq!(words("a \"\\$ \\` \\\" \\\\ \\n \\' x\\\ny\""), ["a", "$ ` \" \\ \\n \\' xy"]);
    }

    #[test]
    fn outside_quotes_a_backslash_escapes_anything_and_joins_lines() {
        assert_eq!(words("a\\ b \\' \\\" \\\\ \\é c\\\nd \\\n e"), ["a b", "'", "\"", "\\", "é", "cd", "e"]);
    }

    #[test]
    fn a_joined_line_alone_is_no_argument() {
        assert_eq!(words("a \\\n b"), ["a", "b"]);
    }

    #[test]
    fn nothing_is_expanded() {
        let text = "echo $HOME ${x} $(y) `z` * ? [a] ~ ~/b # c ; d | e && f > g < h & i ! {j,k}";
        assert_eq!(words(text), text.split(' ').collect::<Vec<_>>());
    }

    #[test]
    fn errors_give_the_position_in_bytes() {
        assert_eq!(error(""), CommandSplitError::Empty { position: 0 });
        assert_eq!(error(" \n\t"), CommandSplitError::Empty { position: 3 });
        assert_eq!(error(" '' a"), CommandSplitError::Empty { position: 1 });
        assert_eq!(error("\\\n"), CommandSplitError::Empty { position: 2 });
        assert_eq!(error("é 'b"), CommandSplitError::UnclosedQuote { quote: '\'', position: 3 });
        assert_eq!(error("a \"b' \\\""), CommandSplitError::UnclosedQuote { quote: '"', position: 2 });
        assert_eq!(error("a \"b\\"), CommandSplitError::UnclosedQuote { quote: '"', position: 2 });
        assert_eq!(error("é b\\"), CommandSplitError::TrailingBackslash { position: 4 });
        assert_eq!(error("é 'b").position(), 3);
    }

    #[test]
    fn messages_say_what_and_where() {
        assert_eq!(error("a 'b").to_string(), "the ' at byte 2 is never closed");
        assert_eq!(error(" ").to_string(), "no program at byte 1: the command is empty");
        let line = CommandLine::parse("make && make test").expect("parses");
        let found = line.shell_syntax().expect("found").to_string();
        assert_eq!(found, "`&&` at byte 5 joins commands only in a shell");
    }

    #[test]
    fn the_first_thing_that_needs_a_shell_is_found() {
        use ShellSyntaxKind::*;
        for (text, kind, token, position) in [
            ("a | b", Operator, "|", 2),
            ("a || b && c", Operator, "||", 2),
            ("a&&b", Operator, "&&", 1),
            ("a; b", Operator, ";", 1),
            ("(a)", Operator, "(", 0),
            ("cd x\nmake", Operator, "newline", 4),
            ("a > b", Redirection, ">", 2),
            ("a 2>&1", Redirection, ">&", 3),
            ("a << b", Redirection, "<<", 2),
            ("é $HOME", Expansion, "$", 3),
            ("a \"x $(y)\"", Expansion, "$", 5),
            ("a \"`y`\"", Expansion, "`", 3),
            ("a $'b'", Expansion, "$", 2),
            ("ls *.rs", Glob, "*", 3),
            ("ls [ab].rs", Glob, "[", 3),
            ("ls a?", Glob, "?", 4),
            ("ls ~/x", Home, "~", 3),
            ("A_1=b make", Assignment, "A_1=", 0),
            ("a # b", Comment, "#", 2),
        ] {
            assert_eq!(hint(text), Some((kind, token.to_owned(), position)), "{text:?}");
        }
    }

    #[test]
    fn what_a_shell_takes_literally_is_not_reported() {
        for text in [
            "git log --format='%h > $x'",
            "a \\| \\> \\$x \\* \\~ \\# \\; \\(",
            "a \"| > * ~ # ;\" \"\\$x\"",
            "a b~c d#e f=g --h=~",
            "a $ 5$",
            "[ -f x ]",
            "\n a b \n",
            "1A=b make",
            "\"A\"=b make",
        ] {
            assert_eq!(hint(text), None, "{text:?}");
        }
    }

    /// Returns the words that a real `sh` reads in `text`, or `None` if it finds a syntax error.
    #[allow(clippy::disallowed_methods, reason = "the independent judge of this parser is a shell")]
    fn words_of_sh(text: &str) -> Option<Vec<String>> {
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("printf '%s\\0' {text}")])
            .output()
            .expect("this test needs sh");
        if !output.status.success() {
            return None;
        }
        let text = String::from_utf8(output.stdout).expect("the words are UTF-8");
        Some(text.strip_suffix('\0').expect("printf ends each word").split('\0').map(str::to_owned).collect())
    }

    /// Returns a piece of a command, for this parser and for `sh`, to which a newline would separate commands.
    fn piece() -> impl Strategy<Value = (String, String)> {
        let same = |text: String| (text.clone(), text);
        prop_oneof![
            prop_oneof![Just(" "), Just("\t"), Just("\n")]
                .prop_map(|separator| (separator.to_owned(), separator.replace('\n', " "))),
            "[a-z0-9é,.:/+@%^_-]{1,4}".prop_map(same),
            "\\\\[ -~\n\té]".prop_map(same),
            "'[ -&(-~\n\té]{0,6}'".prop_map(same),
            r#""([ !#%-\[\]^_a-~\té\n]|\\[ -~\n]){0,6}""#.prop_map(same),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn words_are_those_of_sh_for_text_made_of_quotes_and_escapes(pieces in prop::collection::vec(piece(), 1..8)) {
            let (ours, theirs): (String, String) = pieces.into_iter().unzip();
            let Ok(line) = CommandLine::parse(&format!("x{ours}")) else {
                return Err(TestCaseError::fail("every piece is complete"));
            };
            let words: Vec<_> = std::iter::once(line.program).chain(line.args).collect();
            prop_assert_eq!(Some(words), words_of_sh(&format!("x{theirs}")));
        }

        #[test]
        fn words_and_errors_are_those_of_sh_for_any_mix_of_quotes(text in r#"[ \t'"\\abé=]{1,16}"#) {
            match CommandLine::parse(&format!("x{text}")) {
                Ok(line) => {
                    let words: Vec<_> = std::iter::once(line.program).chain(line.args).collect();
                    prop_assert_eq!(Some(words), words_of_sh(&format!("x{text}")));
                }
                // Shells differ about a backslash at the very end: some keep it.
                Err(CommandSplitError::TrailingBackslash { position }) => prop_assert_eq!(position, text.len()),
                Err(_) => prop_assert_eq!(None, words_of_sh(&format!("x{text}"))),
            }
        }

        #[test]
        fn any_text_is_split_or_refused_at_a_position_within_it(text in any::<String>()) {
            match CommandLine::parse(&text) {
                Ok(line) => prop_assert!(!line.program.is_empty()),
                Err(error) => {
                    prop_assert!(error.position() <= text.len());
                    prop_assert!(text.is_char_boundary(error.position()));
                }
            }
        }
    }
}
