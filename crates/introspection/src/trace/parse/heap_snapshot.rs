//! Parses V8's `.heapsnapshot`: hundreds of megabytes of JSON, read once from beginning to end in little memory.

use super::MalformedProfile;
use serde::Deserialize;
use std::collections::HashMap;
use std::io::{BufRead, Error as IoError};

const FORMAT: &str = "V8 heap snapshot";
/// The maximum number of groups that are counted separately.
const MAX_GROUPS: usize = 200_000;
/// The number of groups in the result.
const LARGEST_GROUPS: usize = 40;
/// The maximum size of the description of the fields, and of a name, in bytes.
const MAX_HEAD_BYTES: usize = 1 << 20;
const MAX_NAME_BYTES: usize = 1000;

/// The objects of one constructor, or of one kind, such as `(string)`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapGroup {
    /// The name of the constructor, or the kind in parentheses.
    pub name: String,
    /// The number of objects.
    pub count: u64,
    /// The size of the objects themselves, in bytes, without what they keep alive.
    pub bytes: u64,
}

/// The content of a heap, by groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapContents {
    /// The size of all objects, in bytes.
    pub bytes: u64,
    /// The number of all objects.
    pub count: u64,
    /// The 40 largest groups, in descending order of their size.
    pub groups: Vec<HeapGroup>,
}

#[derive(Deserialize)]
struct HeapSnapshot {
    meta: SnapshotMeta,
}

#[derive(Deserialize)]
struct SnapshotMeta {
    node_fields: Vec<String>,
    node_types: Vec<serde_json::Value>,
}

/// The positions of the fields in a node.
struct NodeFields {
    length: usize,
    kind: usize,
    name: usize,
    size: usize,
    kinds: Vec<String>,
}

/// Count and size by kind, and by name for the kinds whose names are constructors.
type SizesByKind = HashMap<(usize, Option<u64>), (u64, u64)>;

/// Parses a `.heapsnapshot`.
///
/// # Errors
/// The input is no such snapshot, or cannot be read.
pub fn read(input: impl BufRead) -> Result<HeapContents, MalformedProfile> {
    let mut json = JsonPullParser { input };
    let mut fields = None;
    let mut sums = SizesByKind::new();
    let mut heap = HeapContents::default();
    let mut named = None;
    json.expect(b'{')?;
    if json.peek()? == b'}' {
        return Err(MalformedProfile::new(FORMAT, "it is empty"));
    }
    loop {
        let key = json.string(64)?.ok_or_else(|| MalformedProfile::new(FORMAT, "a key is too long"))?;
        json.expect(b':')?;
        match (key.as_str(), &fields) {
            ("snapshot", _) => fields = Some(parse_fields(&json.value(MAX_HEAD_BYTES)?)?),
            ("nodes", Some(fields)) => count_nodes(&mut json, fields, &mut sums, &mut heap)?,
            ("strings", Some(fields)) => named = Some(largest_groups(&mut json, fields, &sums)?),
            // V8 writes `snapshot` first, `nodes` next and `strings` last, so one pass is enough.
            ("nodes" | "strings", None) => {
                return Err(MalformedProfile::new(FORMAT, "it does not begin with its fields"));
            }
            _ => {
                json.value(0)?;
            }
        }
        match json.next()? {
            b',' => {}
            b'}' => break,
            _ => return Err(MalformedProfile::new(FORMAT, "a comma or the end was expected")),
        }
    }
    heap.groups = named.ok_or_else(|| MalformedProfile::new(FORMAT, "it has no names"))?;
    Ok(heap)
}

/// Parses the description of the fields.
fn parse_fields(text: &[u8]) -> Result<NodeFields, MalformedProfile> {
    let HeapSnapshot { meta } =
        serde_json::from_slice(text).map_err(|error| MalformedProfile::new(FORMAT, error.to_string()))?;
    let index_of = |name: &str| {
        let missing = || MalformedProfile::new(FORMAT, format!("nodes have no field {name}"));
        meta.node_fields.iter().position(|field| field == name).ok_or_else(missing)
    };
    let (kind, name, size) = (index_of("type")?, index_of("name")?, index_of("self_size")?);
    let kinds = meta.node_types.get(kind).and_then(|kinds| kinds.as_array());
    let kinds =
        kinds.into_iter().flatten().map(|kind| kind.as_str().unwrap_or_default().to_owned()).collect();
    Ok(NodeFields { length: meta.node_fields.len(), kind, name, size, kinds })
}

impl NodeFields {
    /// Returns true if objects of this kind are grouped by their names.
    fn is_named(&self, kind: usize) -> bool {
        matches!(self.kinds.get(kind).map(String::as_str), Some("object" | "native"))
    }
}

/// Counts the nodes by group.
fn count_nodes<R: BufRead>(
    json: &mut JsonPullParser<R>,
    fields: &NodeFields,
    sums: &mut SizesByKind,
    heap: &mut HeapContents,
) -> Result<(), MalformedProfile> {
    let mut node = vec![0; fields.length];
    let mut field_index = 0;
    json.numbers(|number| {
        if let Some(field) = node.get_mut(field_index) {
            *field = number;
        }
        field_index += 1;
        if field_index < fields.length {
            return;
        }
        field_index = 0;
        let field = |index: usize| node.get(index).copied().unwrap_or_default();
        let kind = usize::try_from(field(fields.kind)).unwrap_or(usize::MAX);
        let size = field(fields.size);
        let name = Some(field(fields.name)).filter(|_| fields.is_named(kind));
        // Further constructors count for their kind.
        let key = match sums.len() >= MAX_GROUPS && !sums.contains_key(&(kind, name)) {
            true => (kind, None),
            false => (kind, name),
        };
        let (count, bytes) = sums.entry(key).or_default();
        *count += 1;
        *bytes = bytes.saturating_add(size);
        heap.count += 1;
        heap.bytes = heap.bytes.saturating_add(size);
    })
}

/// Returns the largest groups with their names, which are the only strings that are kept.
fn largest_groups<R: BufRead>(
    json: &mut JsonPullParser<R>,
    fields: &NodeFields,
    sums: &SizesByKind,
) -> Result<Vec<HeapGroup>, MalformedProfile> {
    let mut largest: Vec<_> = sums.iter().collect();
    largest.sort_by(|(a, (_, more)), (b, (_, less))| less.cmp(more).then(a.cmp(b)));
    largest.truncate(LARGEST_GROUPS);
    let wanted: HashMap<u64, ()> = largest.iter().filter_map(|((_, name), _)| Some(((*name)?, ()))).collect();
    let mut found = HashMap::new();
    json.strings(
        |index| wanted.contains_key(&index),
        |index, name| {
            found.insert(index, name);
        },
    )?;
    let groups = largest.into_iter().map(|((kind, name), (count, bytes))| {
        let kind = fields.kinds.get(*kind).map_or("unknown", String::as_str);
        let name = match name {
            Some(name) => found.get(name).cloned().unwrap_or_else(|| "[a long name]".to_owned()),
            None => format!("({kind})"),
        };
        HeapGroup {
            name: crate::trace::call_tree::ProfiledFunction::new(&name, None, None).function,
            count: *count,
            bytes: *bytes,
        }
    });
    Ok(groups.collect())
}

/// A pull parser for the part of JSON that a snapshot uses.
// serde_json would hold the strings of the whole heap in memory.
struct JsonPullParser<R> {
    input: R,
}

/// Converts an error of the input.
fn read_error(error: &IoError) -> MalformedProfile {
    MalformedProfile::new(FORMAT, error.to_string())
}

/// Returns the error for an input that ends too early.
fn truncated() -> MalformedProfile {
    MalformedProfile::new(FORMAT, "it is cut off")
}

impl<R: BufRead> JsonPullParser<R> {
    /// Takes the next byte.
    fn byte(&mut self) -> Result<u8, MalformedProfile> {
        let byte = self
            .input
            .fill_buf()
            .map_err(|error| read_error(&error))?
            .first()
            .copied()
            .ok_or_else(truncated)?;
        self.input.consume(1);
        Ok(byte)
    }

    /// Returns the next byte that is no white space, without taking it.
    fn peek(&mut self) -> Result<u8, MalformedProfile> {
        loop {
            let byte = self
                .input
                .fill_buf()
                .map_err(|error| read_error(&error))?
                .first()
                .copied()
                .ok_or_else(truncated)?;
            if !byte.is_ascii_whitespace() {
                return Ok(byte);
            }
            self.input.consume(1);
        }
    }

    /// Takes the next byte that is no white space.
    fn next(&mut self) -> Result<u8, MalformedProfile> {
        let byte = self.peek()?;
        self.input.consume(1);
        Ok(byte)
    }

    /// Takes the next byte that is no white space, which must be `expected`.
    fn expect(&mut self, expected: u8) -> Result<(), MalformedProfile> {
        match self.next()? {
            byte if byte == expected => Ok(()),
            byte => Err(MalformedProfile::new(
                FORMAT,
                format!("`{}` was expected, not `{}`", char::from(expected), byte.escape_ascii()),
            )),
        }
    }

    /// Takes a string. `None` if it is longer than `max_bytes`.
    fn string(&mut self, max_bytes: usize) -> Result<Option<String>, MalformedProfile> {
        self.expect(b'"')?;
        let mut text = vec![b'"'];
        let mut fits = true;
        loop {
            let buffer = self.input.fill_buf().map_err(|error| read_error(&error))?;
            if buffer.is_empty() {
                return Err(truncated());
            }
            let end = memchr::memchr2(b'"', b'\\', buffer);
            let length = end.unwrap_or(buffer.len());
            fits &= text.len() + length <= max_bytes + 1;
            if fits {
                text.extend_from_slice(buffer.get(..length).unwrap_or_default());
            }
            self.input.consume(length);
            if end.is_none() {
                continue;
            }
            let byte = self.byte()?;
            text.push(byte);
            if byte == b'"' {
                break;
            }
            let escaped = self.byte()?;
            text.push(escaped);
            if !fits {
                text.clear();
            }
        }
        Ok(if fits {
            // A name may hold half a surrogate pair, which serde_json rejects.
            Some(serde_json::from_slice(&text).unwrap_or_else(|_| "\u{fffd}".to_owned()))
        } else {
            None
        })
    }

    /// Takes any value and returns its text. A text longer than `max_bytes` is an error, except that 0 skips the value.
    fn value(&mut self, max_bytes: usize) -> Result<Vec<u8>, MalformedProfile> {
        let mut text = Vec::new();
        let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
        self.peek()?;
        loop {
            let buffer = self.input.fill_buf().map_err(|error| read_error(&error))?;
            let Some(&byte) = buffer.first() else { return Err(truncated()) };
            if !quoted && depth == 0 && matches!(byte, b',' | b'}' | b']') {
                return Ok(text);
            }
            self.input.consume(1);
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ if quoted => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if max_bytes > 0 {
                if text.len() == max_bytes {
                    return Err(MalformedProfile::new(
                        FORMAT,
                        format!("its head has more than {max_bytes} bytes"),
                    ));
                }
                text.push(byte);
            }
        }
    }

    /// Takes an array of whole numbers and calls `each` for every one.
    fn numbers(&mut self, mut each: impl FnMut(u64)) -> Result<(), MalformedProfile> {
        self.expect(b'[')?;
        let mut number = None;
        loop {
            // Read from the reader's own buffer: a snapshot has hundreds of megabytes of numbers.
            let buffer = self.input.fill_buf().map_err(|error| read_error(&error))?;
            if buffer.is_empty() {
                return Err(truncated());
            }
            let mut used = 0;
            let mut ended = false;
            for byte in buffer {
                used += 1;
                match byte {
                    b'0'..=b'9' => {
                        let digit = u64::from(byte - b'0');
                        number = Some(number.unwrap_or(0_u64).saturating_mul(10).saturating_add(digit));
                    }
                    b',' | b']' => {
                        if let Some(number) = number.take() {
                            each(number);
                        }
                        ended = *byte == b']';
                        if ended {
                            break;
                        }
                    }
                    byte if byte.is_ascii_whitespace() => {}
                    _ => return Err(MalformedProfile::new(FORMAT, "a whole number was expected")),
                }
            }
            self.input.consume(used);
            if ended {
                return Ok(());
            }
        }
    }

    /// Takes an array of strings and calls `each` for those whose index is `wanted`.
    fn strings(
        &mut self,
        wanted: impl Fn(u64) -> bool,
        mut each: impl FnMut(u64, String),
    ) -> Result<(), MalformedProfile> {
        self.expect(b'[')?;
        if self.peek()? == b']' {
            return self.expect(b']');
        }
        for index in 0.. {
            let max_bytes = if wanted(index) { MAX_NAME_BYTES } else { 0 };
            if let Some(text) = self.string(max_bytes)?.filter(|_| max_bytes > 0) {
                each(index, text);
            }
            match self.next()? {
                b',' => {}
                b']' => break,
                _ => return Err(MalformedProfile::new(FORMAT, "a string was expected")),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::BufReader;

    const SNAPSHOT: &str = r#"{"snapshot":{"meta":{"node_fields":["type","name","id","self_size","edge_count","detachedness"],
        "node_types":[["hidden","array","string","object","native"],"string","number","number","number","number"],"edge_fields":["]\""]},"node_count":4},
        "nodes":[3,1,1,100,0,0
        ,3,1,3,50,0,0,2,2,5,1000,0,0,3,3,7,10,0,0],
        "edges":[1,2,3],"trace_tree":[],"samples":[],"locations":[1,2],
        "strings":["","Cart","a secret, \" in a string","Ev\u0069l\n<Class>"]}"#;

    #[test]
    fn objects_are_grouped_by_constructor_and_the_rest_by_kind() {
        // Each read may end anywhere.
        for capacity in [1, 7, 8192] {
            let heap = read(BufReader::with_capacity(capacity, SNAPSHOT.as_bytes())).unwrap();
            let group = |name: &str, count, bytes| HeapGroup { name: name.to_owned(), count, bytes };
            let groups =
                vec![group("(string)", 1, 1000), group("Cart", 2, 150), group("Evil <Class>", 1, 10)];
            assert_eq!(heap, HeapContents { bytes: 1160, count: 4, groups });
        }
    }

    #[test]
    fn a_name_that_nobody_asked_for_is_not_kept_however_long_it_is() {
        let long = SNAPSHOT.replace("a secret", &"x\\n".repeat(1 << 20)).replace("Cart", &"y".repeat(5000));
        let heap = read(BufReader::new(long.as_bytes())).unwrap();
        assert_eq!(heap.groups[1].name, "[a long name]");
    }

    proptest! {
        #[test]
        fn half_a_snapshot_is_an_error_and_no_panic(end in 0..SNAPSHOT.len()) {
            prop_assert!(read(&SNAPSHOT.as_bytes()[..end]).is_err());
        }

        #[test]
        fn no_changed_byte_is_a_panic(at in 0..SNAPSHOT.len(), byte: u8) {
            let mut changed = SNAPSHOT.as_bytes().to_vec();
            changed[at] = byte;
            let _ = read(&changed[..]);
        }
    }
}
