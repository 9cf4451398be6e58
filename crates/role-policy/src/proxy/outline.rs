//! What can be known of a line that cannot be read: under which id its sender waits, if it waits at all.
//!
//! Nothing is judged or forwarded by what is found here; it only decides who gets the refusal.

use super::json::Json;
use super::message::Id;

/// The members of a message that decide who waits for an answer to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outline {
    /// Its id, where it has exactly one.
    pub(super) id: Option<Id>,
    ids: usize,
    has_method: bool,
    has_outcome: bool,
}

impl Outline {
    /// JSON-RPC 2.0 §4.1 and §5: neither a notification nor a response is answered.
    pub(super) fn is_answered(&self) -> bool {
        let notification = self.has_method && self.ids == 0;
        let response = !self.has_method && self.has_outcome;
        !notification && !response
    }
}

/// Finds the outline of a line while its bytes go by, in constant memory.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    outline: Outline,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The string or number at depth 1 that is being read, as far as it fits.
    token: Vec<u8>,
    /// Since the last comma at depth 1 there was a colon.
    in_value: bool,
    id_is_next: bool,
}

impl Scanner {
    /// Longer than any id that a client uses.
    const LONGEST: usize = 256;

    /// The next bytes of the line.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    /// What was found.
    pub(super) fn finish(mut self) -> Outline {
        if self.outline.ids != 1 {
            self.outline.id = None;
        }
        self.outline
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            self.keep(byte);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => {
                // Not an id, whatever follows.
                self.keep(byte);
                self.depth += 1;
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.value_ends();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 && !self.in_value => self.key_ends(),
            b',' if self.depth == 1 => self.value_ends(),
            byte if byte.is_ascii_whitespace() => {}
            byte => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() <= Self::LONGEST {
            self.token.push(byte);
        }
    }

    fn key_ends(&mut self) {
        self.in_value = true;
        match self.token.as_slice() {
            b"\"id\"" => {
                self.outline.ids += 1;
                self.id_is_next = true;
            }
            b"\"method\"" => self.outline.has_method = true,
            b"\"result\"" | b"\"error\"" => self.outline.has_outcome = true,
            _ => {}
        }
        self.token.clear();
    }

    fn value_ends(&mut self) {
        self.in_value = false;
        if std::mem::take(&mut self.id_is_next) && self.token.len() <= Self::LONGEST {
            self.outline.id = Json::parse(&self.token).ok().as_ref().and_then(Id::of);
        }
        self.token.clear();
    }
}

/// Finds the outline of a line, whatever is in it.
pub(super) fn outline(line: &[u8]) -> Outline {
    let mut scanner = Scanner::default();
    scanner.push(line);
    scanner.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_id_is_found_before_and_after_the_bulk_and_never_inside_it() {
        let number = |text: &str| Some(Id::Number(text.into()));
        for (line, id) in [
            (r#"{"id": 17, "x": "\ud83d"}"#, number("17")),
            (r#"{"x": {"id": 3, "y": ["id", 4]}, "id" : 18 }"#, number("18")),
            (r#"{"x":[{"a":1,"a":2}],"id":19}"#, number("19")),
            (r#"{"id":"a\"b","x":"\ud83d"}"#, Some(Id::Text("a\"b".into()))),
            (r#"{"x": "\"id\": 5, \\", "y": "id"}"#, None),
            (r#"{"id":[1]}"#, None),
            (r#"{"id":1.5}"#, None),
            (r#"{"id":1,"id":2}"#, None),
            (r#"{"id":17"#, None),
            ("no json at all", None),
        ] {
            assert_eq!(outline(line.as_bytes()).id, id, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            outline(&bytes);
        }

        #[test]
        fn nor_does_nearly_json(text in r#"[\[\]{}:,"\\id0-9 ]{0,24}"#) {
            outline(text.as_bytes());
        }
    }
}
