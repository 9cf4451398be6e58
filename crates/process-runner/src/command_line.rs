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
/// [`CommandLine::shell_syntax`] finds such characters, so that a caller can answer that there is no shell.
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
    /// The first of each kind, in the order in which they were found.
    shell_syntax: Vec<ShellSyntax>,
    /// The indices of the words with globs, the program being 0.
    glob_words: Vec<usize>,
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
    /// They become several words, in most shells: `{a,b}`, `{1..9}`.
    Braces,
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
            ShellSyntaxKind::Braces => "becomes several words only in a shell",
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
            shell_syntax: Vec::new(),
            glob_words: Vec::new(),
            newline: None,
        };
        parser.run()?;
        let CommandLineParser { words, shell_syntax, glob_words, .. } = parser;
        let mut words = words.into_iter();
        match words.next() {
            Some(first) if !first.text.is_empty() => {
                let args = words.map(|word| word.text).collect();
                Ok(Self { program: first.text, args, shell_syntax, glob_words })
            }
            Some(first) => Err(CommandSplitError::Empty { position: first.start }),
            None => Err(CommandSplitError::Empty { position: text.len() }),
        }
    }

    /// Returns the first unquoted characters that a shell would not have taken literally. `None` if a shell
    /// would run the same program with the same arguments, apart from its keywords, builtins and aliases.
    pub fn shell_syntax(&self) -> Option<&ShellSyntax> {
        self.shell_syntax.first()
    }

    /// Returns the first unquoted characters of this kind.
    pub fn shell_syntax_of(&self, kind: ShellSyntaxKind) -> Option<&ShellSyntax> {
        self.shell_syntax.iter().find(|found| found.kind == kind)
    }

    /// Returns the first shell syntax that is not a glob. A shell takes a glob literally too, where no file matches
    /// it; see [`glob_words`](Self::glob_words).
    pub fn shell_syntax_but_globs(&self) -> Option<&ShellSyntax> {
        self.shell_syntax.iter().find(|found| found.kind != ShellSyntaxKind::Glob)
    }

    /// Returns the words in which `*`, `?` or `[` stands unquoted, without their quotes.
    pub fn glob_words(&self) -> impl Iterator<Item = &str> {
        self.glob_words.iter().filter_map(|index| match index.checked_sub(1) {
            None => Some(self.program.as_str()),
            Some(index) => self.args.get(index).map(String::as_str),
        })
    }
}

/// Returns true if the bracket that `rest` begins with is closed within its word, so that it is a glob and not the
/// program `[`.
fn closes_bracket(rest: &str) -> bool {
    rest.split([' ', '\t', '\n']).next().is_some_and(|word| word.contains(']'))
}

/// Returns true if the brace that `rest` begins with is closed within its word, and a list or a range is in between.
fn closes_brace(rest: &str) -> bool {
    let word = rest.split([' ', '\t', '\n']).next().unwrap_or_default();
    let inner = word[1..].split_once('}').map_or("", |(inner, _)| inner);
    !inner.contains('{') && (inner.contains(',') || inner.contains(".."))
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
    shell_syntax: Vec<ShellSyntax>,
    glob_words: Vec<usize>,
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
                        // A newline at the end of the text separates nothing, so it is noted when a word follows.
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
        // Both are read before the character is added, because they are about the word before it.
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
            let index = self.words.len();
            if self.glob_words.last() != Some(&index) {
                self.glob_words.push(index);
            }
            self.note_syntax(ShellSyntaxKind::Glob, &rest[..1], start);
        } else if c == '{' && closes_brace(rest) {
            self.note_syntax(ShellSyntaxKind::Braces, &rest[..1], start);
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

    /// Notes shell syntax. Only the first of each kind is kept, so that a text of any length leaves few.
    fn note_syntax(&mut self, kind: ShellSyntaxKind, token: &str, position: usize) {
        // A caller reports the first of a kind. The others would only take memory.
        if self.shell_syntax.iter().all(|noted| noted.kind != kind) {
            self.shell_syntax.push(ShellSyntax { kind, token: token.to_owned(), position });
        }
    }
}

#[cfg(test)]
mod tests;
