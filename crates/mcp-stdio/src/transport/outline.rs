//! What can be known of a message that is too long to keep, or that is not JSON.

use rmcp::model::RequestId;

/// The members of a message that decide who waits for an answer to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outline {
    /// Its id, where it is one that may be used.
    pub(super) id: Option<RequestId>,
    /// At most so many JSON values are in it.
    pub(super) values: usize,
    has_id: bool,
    has_method: bool,
    has_outcome: bool,
}

impl Outline {
    /// Whether its sender may wait for an answer. None waits for one to a notification or to a response, and
    /// JSON-RPC 2.0 §4.1 and §5 forbid to send one.
    pub(super) fn is_answered(&self) -> bool {
        let notification = self.has_method && !self.has_id;
        let response = !self.has_method && self.has_outcome;
        !notification && !response
    }
}

/// Finds the outline of a message while its bytes go by, in constant memory.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    outline: Outline,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The string or number at depth 1 that is being read, as far as it fits.
    token: Vec<u8>,
    /// The value that comes next is the id.
    id_is_next: bool,
}

impl Scanner {
    /// Longer than any id that a client uses.
    const LONGEST: usize = 128;

    pub(super) fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    pub(super) fn finish(self) -> Outline {
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
                self.outline.values += 1;
                self.depth += 1;
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.value_ends();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => self.key_ends(),
            b',' => {
                self.outline.values += 1;
                if self.depth == 1 {
                    self.value_ends();
                }
            }
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
        match self.token.as_slice() {
            b"\"id\"" => {
                self.outline.has_id = true;
                self.id_is_next = true;
            }
            b"\"method\"" => self.outline.has_method = true,
            b"\"result\"" | b"\"error\"" => self.outline.has_outcome = true,
            _ => {}
        }
        self.token.clear();
    }

    fn value_ends(&mut self) {
        if std::mem::take(&mut self.id_is_next) && self.token.len() <= Self::LONGEST {
            self.outline.id = serde_json::from_slice(&self.token).ok();
        }
        self.token.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(text: &str) -> Outline {
        let mut scanner = Scanner::default();
        scanner.push(text.as_bytes());
        scanner.finish()
    }

    #[test]
    fn the_id_is_found_before_and_after_the_bulk_and_never_inside_it() {
        for (text, id) in [
            (r#"{"id": 17, "x": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#, Some(RequestId::Number(17))),
            (r#"{"x": {"id": 3, "y": ["id", 4]}, "id" : 18 }"#, Some(RequestId::Number(18))),
            (r#"{"id":"a\"b","x":"\ud83d"}"#, Some(RequestId::String("a\"b".into()))),
            (r#"{"x": "\"id\": 5, \\", "y": "id"}"#, None),
            (r#"{"id":[1]}"#, None),
            (r#"{"id":1.5}"#, None),
            (r#"{"id":17"#, None),
            ("no json at all", None),
        ] {
            assert_eq!(outline(text).id, id, "{text}");
        }
    }

    #[test]
    fn neither_a_notification_nor_a_response_is_answered() {
        for (text, answered) in [
            (r#"{"method":"a","id":1"#, true),
            (r#"{"id":null,"method":"a"}"#, true),
            (r#"{"id":1,"method":"a","params":{"result":1}}"#, true),
            (r#"{"id":1}"#, true),
            ("nonsense", true),
            (r#"{"method":"a","params":{"id":1}}"#, false),
            (r#"{"id":1,"result":{}}"#, false),
            (r#"{"id":1,"error":{"code":1}}"#, false),
        ] {
            assert_eq!(outline(text).is_answered(), answered, "{text}");
        }
    }

    #[test]
    fn values_are_counted_but_not_in_strings() {
        assert_eq!(outline(r#"{"a":"[,,,[[","b":[[],[],{}]}"#).values, 8);
    }
}
