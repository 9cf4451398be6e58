//! Finds the id of a line that cannot be parsed, and whether its sender waits for an answer.
//!
//! Nothing is judged or forwarded by what is found here; it only decides who gets the refusal.

use super::id::Id;
use super::json::Json;

/// The members of a message that decide who waits for an answer to it.
#[derive(Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageOutline {
    /// The id, if there is exactly one.
    pub id: Option<Id>,
    /// An upper bound of the JSON values in the message: brackets and commas outside strings.
    pub max_values: usize,
    id_count: usize,
    has_method: bool,
    has_outcome: bool,
}

impl MessageOutline {
    /// Returns true if the sender may wait for an answer. JSON-RPC 2.0 §4.1 and §5 forbid to answer a notification or a
    /// response.
    pub fn is_answered(&self) -> bool {
        let is_notification = self.has_method && self.id_count == 0;
        let is_response = !self.has_method && self.has_outcome;
        !is_notification && !is_response
    }
}

/// Finds the outline of a line while its bytes go by, in constant memory.
#[derive(Debug, Default)]
pub struct OutlineScanner {
    outline: MessageOutline,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The string or number at depth 1 that is being read, as far as it fits.
    token: Vec<u8>,
    /// True if there was a colon since the last comma at depth 1.
    in_value: bool,
    id_is_next: bool,
}

impl OutlineScanner {
    /// The most bytes of an id that is found. Clients use shorter ones.
    const MAX_TOKEN_BYTES: usize = 256;

    /// Reads the next bytes of the line.
    pub fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    /// Returns the outline of all the bytes that were pushed.
    pub fn finish(mut self) -> MessageOutline {
        // Of two ids nobody knows under which the sender waits.
        if self.outline.id_count != 1 {
            self.outline.id = None;
        }
        self.outline
    }

    // No parser: a line that is cut off, or is not JSON at all, still has its id read wherever one stands at the top.
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
                self.outline.max_values += 1;
                // Kept, so that an array or object in the place of the id is no id, whatever is in it.
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
            b',' => {
                self.outline.max_values += 1;
                if self.depth == 1 {
                    self.value_ends();
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            byte => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        // One byte more than the limit is kept, by which `value_ends` sees that a token is too long.
        if self.depth == 1 && self.token.len() <= Self::MAX_TOKEN_BYTES {
            self.token.push(byte);
        }
    }

    fn key_ends(&mut self) {
        self.in_value = true;
        match self.token.as_slice() {
            b"\"id\"" => {
                self.outline.id_count += 1;
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
        if std::mem::take(&mut self.id_is_next) && self.token.len() <= Self::MAX_TOKEN_BYTES {
            self.outline.id = Json::parse(&self.token).ok().as_ref().and_then(Id::from_json);
        }
        self.token.clear();
    }
}

/// Finds the outline of a line, whatever bytes it holds.
pub fn outline(line: &[u8]) -> MessageOutline {
    let mut scanner = OutlineScanner::default();
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

    #[test]
    fn neither_a_notification_nor_a_response_is_answered() {
        for (line, answered) in [
            (r#"{"method":"a","id":1"#, true),
            (r#"{"id":null,"method":"a"}"#, true),
            (r#"{"id":1,"method":"a","params":{"result":1}}"#, true),
            (r#"{"id":1}"#, true),
            ("nonsense", true),
            (r#"{"method":"a","params":{"id":1}}"#, false),
            (r#"{"id":1,"result":{}}"#, false),
            (r#"{"id":1,"error":{"code":1}}"#, false),
        ] {
            assert_eq!(outline(line.as_bytes()).is_answered(), answered, "{line}");
        }
    }

    #[test]
    fn values_are_counted_but_not_in_strings() {
        assert_eq!(outline(br#"{"a":"[,,,[[","b":[[],[],{}]}"#).max_values, 8);
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
