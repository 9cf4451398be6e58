//! Terminals: whether a stream is one, whether text on it may have colours, and how wide it is.

use std::io::IsTerminal;

/// The width that is assumed where a terminal does not say its own.
#[cfg_attr(not(unix), allow(dead_code, reason = "asked for on Unix alone"))]
const DEFAULT_WIDTH: usize = 80;

/// Returns true if lines on `stream` can be drawn anew: it is a terminal, and not one that can only print (`TERM=dumb`).
pub(crate) fn can_redraw(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Returns the colours for text on `stream`: none where it is no terminal, or where `NO_COLOR` is set
/// (<https://no-color.org>).
pub(crate) fn colours(stream: &impl IsTerminal) -> TerminalColours {
    let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    TerminalColours { enabled: can_redraw(stream) && !is_unwanted }
}

/// Returns the number of columns of the terminal that standard error is.
#[cfg(unix)]
pub(crate) fn width() -> usize {
    let columns = rustix::termios::tcgetwinsize(std::io::stderr()).map_or(0, |size| size.ws_col);
    if columns == 0 { DEFAULT_WIDTH } else { usize::from(columns) }
}

#[cfg(not(unix))]
pub(crate) fn width() -> usize {
    DEFAULT_WIDTH
}

/// The colours of one stream; none at all where it takes none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TerminalColours {
    enabled: bool,
}

impl TerminalColours {
    #[cfg(test)]
    pub(crate) const ON: Self = Self { enabled: true };
    #[cfg(test)]
    pub(crate) const OFF: Self = Self { enabled: false };

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.enabled { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Colours an answer: the lines of a unified diff as git does, and the first line of a failure.
    pub(crate) fn answer(self, text: &str, failed: bool) -> String {
        if !self.enabled {
            return text.to_owned();
        }
        let has_diff = text.lines().any(|line| line.starts_with("@@ -"));
        let lines = text.split('\n').enumerate().map(|(index, line)| match line.as_bytes() {
            _ if failed && index == 0 => self.red(line),
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] if has_diff => self.bold(line),
            [b'@', b'@', ..] if has_diff => self.cyan(line),
            [b'+', ..] if has_diff => self.green(line),
            [b'-', ..] if has_diff => self.red(line),
            _ if line.starts_with("--- ") && line.ends_with(" ---") => self.dim(line),
            _ => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::TerminalColours;

    #[test]
    fn an_answer_without_colours_is_the_answer() {
        let text = "@@ -1 +1 @@\n-a\n+b\n";
        assert_eq!(TerminalColours::OFF.answer(text, true), text);
    }

    #[test]
    fn a_diff_is_coloured_as_git_does_and_a_list_of_dashes_is_none() {
        let diff = TerminalColours::ON.answer("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n c", false);
        let expected = "\u{1b}[1m--- a/x\u{1b}[0m\n\u{1b}[1m+++ b/x\u{1b}[0m\n\u{1b}[36m@@ -1 +1 @@\u{1b}[0m\n\
                        \u{1b}[31m-a\u{1b}[0m\n\u{1b}[32m+b\u{1b}[0m\n c";
        assert_eq!(diff, expected);
        assert_eq!(TerminalColours::ON.answer("- one\n- two", false), "- one\n- two");
        assert_eq!(TerminalColours::ON.answer("exit code 1\nx", true), "\u{1b}[31mexit code 1\u{1b}[0m\nx");
    }
}
