//! Redaction of text that comes line by line.

use super::Redactor;

/// Masks one line after the other, and knows of a private key that began lines ago.
///
/// Made by [`Redactor::lines`]. Each line has to be whole: half a token is no token.
#[derive(Clone, Debug)]
pub struct LineRedactor {
    redactor: Redactor,
    /// The line that began a key, and how many have come since.
    key: Option<(String, usize)>,
}

/// No key in PEM armour has more lines; RSA with 16384 bits has 200.
const LONGEST_KEY: usize = 250;

impl Redactor {
    /// Starts to redact text that comes line by line.
    pub fn lines(&self) -> LineRedactor {
        LineRedactor { redactor: self.clone(), key: None }
    }
}

impl LineRedactor {
    /// The next line, masked. With or without its end.
    pub fn line(&mut self, line: &str) -> String {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        let masked = match &self.key {
            // A line of a key is seen for what it is behind the line that began the key.
            Some((begin, _)) => {
                let whole = self.redactor.redact(&format!("{begin}\n{line}")).into_owned();
                whole.split_once('\n').map_or_else(String::new, |(_, line)| line.to_owned())
            }
            None => self.redactor.redact(line).into_owned(),
        };
        self.key = match self.key.take() {
            _ if is_armour(line, "BEGIN ") => Some((line.trim_end().to_owned(), 0)),
            Some((begin, lines)) if lines < LONGEST_KEY && goes_on(line) => Some((begin, lines + 1)),
            _ => None,
        };
        masked + end
    }
}

/// A key ends at its END, and never was one where text follows. Its headers have a colon.
fn goes_on(line: &str) -> bool {
    !is_armour(line, "END ") && (line.contains(':') || !line.trim().contains(' '))
}

fn is_armour(line: &str, word: &str) -> bool {
    line.contains("PRIVATE KEY") && line.contains(word)
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    #[test]
    fn a_key_that_comes_line_by_line_is_masked_to_its_end_and_not_beyond() {
        let body: Vec<String> = (0..20)
            .map(|line| format!("{line:02}AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefghijklmnopqrstuv+/"))
            .collect();
        let label = ["PRIVATE", "KEY"].join(" ");
        let mut lines = Redactor::new(Options::default()).unwrap().lines();
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
