//! Redaction of text that comes line by line.

use crate::redactor::Redactor;

/// Masks one line after the other, including the lines of a private key that began in an earlier line.
///
/// Made by [`Redactor::lines`]. Each line has to be complete, because half of a token is not recognized.
#[derive(Clone, Debug)]
pub struct LineRedactor {
    redactor: Redactor,
    /// The line that began a key, and the number of lines since.
    open_key: Option<(String, usize)>,
}

/// The most lines of a key in PEM armour: RSA with 16384 bits has 200. Beyond it the text was no key.
const MAX_KEY_LINES: usize = 250;

impl Redactor {
    /// Starts to redact text that comes line by line.
    pub fn lines(&self) -> LineRedactor {
        LineRedactor { redactor: self.clone(), open_key: None }
    }
}

impl LineRedactor {
    /// Returns the places of the secrets in `text`, as [`Redactor::spans`] does.
    pub fn spans(&self, text: &str) -> Vec<std::ops::Range<usize>> {
        self.redactor.spans(text)
    }

    /// Masks the next line, which may have its line end or not.
    pub fn line(&mut self, line: &str) -> String {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        let masked = match &self.open_key {
            // A line of a key is seen for what it is behind the line that began the key.
            Some((begin, _)) => {
                let whole = self.redactor.redact(&format!("{begin}\n{line}")).into_owned();
                whole.split_once('\n').map_or_else(String::new, |(_, line)| line.to_owned())
            }
            None => self.redactor.redact(line).into_owned(),
        };
        self.open_key = match self.open_key.take() {
            _ if is_armour(line, "BEGIN ") => Some((line.trim_end().to_owned(), 0)),
            Some((begin, lines)) if lines < MAX_KEY_LINES && continues_key(line) => Some((begin, lines + 1)),
            _ => None,
        };
        masked + end
    }
}

/// Returns true if `line` may belong to a key that began before. A key ends at its END line, and was none where
/// ordinary text follows, which has blanks. Its headers have a colon.
fn continues_key(line: &str) -> bool {
    !is_armour(line, "END ") && (line.contains(':') || !line.trim().contains(' '))
}

fn is_armour(line: &str, word: &str) -> bool {
    line.contains("PRIVATE KEY") && line.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::RedactionOptions;

    #[test]
    fn a_key_that_comes_line_by_line_is_masked_to_its_end_and_not_beyond() {
        let body: Vec<String> = (0..20)
            .map(|line| format!("{line:02}AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefghijklmnopqrstuv+/"))
            .collect();
        let label = ["PRIVATE", "KEY"].join(" ");
        let mut lines = Redactor::new(RedactionOptions::default()).unwrap().lines();
        assert_eq!(lines.line("before\n"), "before\n");
        assert!(lines.line(&format!("-----BEGIN {label}-----\n")).contains("BEGIN"));
        for line in &body {
            let masked = lines.line(&format!("{line}\n"));
            assert_eq!(masked, "[redacted:private-key]\n", "{line}");
        }
        assert!(!lines.line("c2hvcnQgZW5k\n").contains("c2hvcnQ"));
        assert!(lines.line(&format!("-----END {label}-----\n")).contains("END"));
        assert_eq!(lines.line(&format!("{}\n", body[0])), format!("{}\n", body[0]));
    }
}
