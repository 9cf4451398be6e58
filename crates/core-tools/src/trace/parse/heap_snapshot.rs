//! V8's `.heapsnapshot`: hundreds of megabytes of JSON, read once from beginning to end in little memory.

use super::Malformed;
use serde::Deserialize;
use std::collections::HashMap;
use std::io::{BufRead, Error as IoError};

const FORMAT: &str = "V8 heap snapshot";
/// Groups that are told apart; further ones are counted together.
const MOST_GROUPS: usize = 200_000;
/// Groups that are answered.
const ANSWERED: usize = 40;
/// The longest description of the fields, and the longest name, in bytes.
const HEAD_BYTES: usize = 1 << 20;
const NAME_BYTES: usize = 1000;

/// What the objects of one constructor take, or those of one other kind: `(string)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The constructor, or the kind in parentheses.
    pub name: String,
    /// How many there are.
    pub count: u64,
    /// What they take themselves, in bytes; what they keep alive is not in it.
    pub bytes: u64,
}

/// What is in a heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heap {
    /// Bytes of everything.
    pub bytes: u64,
    /// How many things there are.
    pub count: u64,
    /// The 40 groups that take most, the largest first.
    pub groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Snapshot {
    meta: Meta,
}

#[derive(Deserialize)]
struct Meta {
    node_fields: Vec<String>,
    node_types: Vec<serde_json::Value>,
}

/// Where the fields of a node are.
struct Fields {
    length: usize,
    kind: usize,
    name: usize,
    size: usize,
    kinds: Vec<String>,
}

/// By kind, and by name where the kind has names that are constructors.
type Sums = HashMap<(usize, Option<u64>), (u64, u64)>;

/// Reads a `.heapsnapshot`.
///
/// # Errors
/// It is no such snapshot, or cannot be read.
pub fn read(input: impl BufRead) -> Result<Heap, Malformed> {
    let mut json = Json { input };
    let mut fields = None;
    let mut sums = Sums::new();
    let mut heap = Heap::default();
    let mut named = None;
    json.expect(b'{')?;
    if json.peek()? == b'}' {
        return Err(Malformed::new(FORMAT, "it is empty"));
    }
    loop {
        let key = json.string(64)?.ok_or_else(|| Malformed::new(FORMAT, "a key is too long"))?;
        json.expect(b':')?;
        match (key.as_str(), &fields) {
            ("snapshot", _) => fields = Some(head(&json.value(HEAD_BYTES)?)?),
            ("nodes", Some(fields)) => nodes(&mut json, fields, &mut sums, &mut heap)?,
            ("strings", Some(fields)) => named = Some(names(&mut json, fields, &sums)?),
            ("nodes" | "strings", None) => {
                return Err(Malformed::new(FORMAT, "it does not begin with its fields"));
            }
            _ => {
                json.value(0)?;
            }
        }
        match json.next()? {
            b',' => {}
            b'}' => break,
            _ => return Err(Malformed::new(FORMAT, "a comma or the end was expected")),
        }
    }
    heap.groups = named.ok_or_else(|| Malformed::new(FORMAT, "it has no names"))?;
    Ok(heap)
}

fn head(text: &[u8]) -> Result<Fields, Malformed> {
    let Snapshot { meta } =
        serde_json::from_slice(text).map_err(|error| Malformed::new(FORMAT, error.to_string()))?;
    let place = |name: &str| {
        let missing = || Malformed::new(FORMAT, format!("nodes have no field {name}"));
        meta.node_fields.iter().position(|field| field == name).ok_or_else(missing)
    };
    let (kind, name, size) = (place("type")?, place("name")?, place("self_size")?);
    let kinds = meta.node_types.get(kind).and_then(|kinds| kinds.as_array());
    let kinds =
        kinds.into_iter().flatten().map(|kind| kind.as_str().unwrap_or_default().to_owned()).collect();
    Ok(Fields { length: meta.node_fields.len(), kind, name, size, kinds })
}

impl Fields {
    /// Whether things of this kind are grouped by their names.
    fn is_named(&self, kind: usize) -> bool {
        matches!(self.kinds.get(kind).map(String::as_str), Some("object" | "native"))
    }
}

fn nodes<R: BufRead>(
    json: &mut Json<R>,
    fields: &Fields,
    sums: &mut Sums,
    heap: &mut Heap,
) -> Result<(), Malformed> {
    let mut node = vec![0; fields.length];
    let mut at = 0;
    json.numbers(|number| {
        if let Some(field) = node.get_mut(at) {
            *field = number;
        }
        at += 1;
        if at < fields.length {
            return;
        }
        at = 0;
        let field = |place: usize| node.get(place).copied().unwrap_or_default();
        let kind = usize::try_from(field(fields.kind)).unwrap_or(usize::MAX);
        let size = field(fields.size);
        let name = Some(field(fields.name)).filter(|_| fields.is_named(kind));
        let key = match sums.len() >= MOST_GROUPS && !sums.contains_key(&(kind, name)) {
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

/// The largest groups, with their names. Only these are kept of all strings.
fn names<R: BufRead>(json: &mut Json<R>, fields: &Fields, sums: &Sums) -> Result<Vec<Group>, Malformed> {
    let mut largest: Vec<_> = sums.iter().collect();
    largest.sort_by(|(a, (_, more)), (b, (_, less))| less.cmp(more).then(a.cmp(b)));
    largest.truncate(ANSWERED);
    let wanted: HashMap<u64, ()> = largest.iter().filter_map(|((_, name), _)| Some(((*name)?, ()))).collect();
    let mut found = HashMap::new();
    json.strings(
        |at| wanted.contains_key(&at),
        |at, name| {
            found.insert(at, name);
        },
    )?;
    let groups = largest.into_iter().map(|((kind, name), (count, bytes))| {
        let kind = fields.kinds.get(*kind).map_or("unknown", String::as_str);
        let name = match name {
            Some(name) => found.get(name).cloned().unwrap_or_else(|| "[a long name]".to_owned()),
            None => format!("({kind})"),
        };
        Group { name: crate::trace::Frame::new(&name, None, None).function, count: *count, bytes: *bytes }
    });
    Ok(groups.collect())
}

/// As much of JSON as a snapshot has, byte by byte.
struct Json<R> {
    input: R,
}

fn failed(error: &IoError) -> Malformed {
    Malformed::new(FORMAT, error.to_string())
}

fn cut() -> Malformed {
    Malformed::new(FORMAT, "it is cut off")
}

impl<R: BufRead> Json<R> {
    fn byte(&mut self) -> Result<u8, Malformed> {
        let byte = self.input.fill_buf().map_err(|error| failed(&error))?.first().copied().ok_or_else(cut)?;
        self.input.consume(1);
        Ok(byte)
    }

    /// The next byte that is no space, which stays.
    fn peek(&mut self) -> Result<u8, Malformed> {
        loop {
            let byte =
                self.input.fill_buf().map_err(|error| failed(&error))?.first().copied().ok_or_else(cut)?;
            if !byte.is_ascii_whitespace() {
                return Ok(byte);
            }
            self.input.consume(1);
        }
    }

    fn next(&mut self) -> Result<u8, Malformed> {
        let byte = self.peek()?;
        self.input.consume(1);
        Ok(byte)
    }

    fn expect(&mut self, expected: u8) -> Result<(), Malformed> {
        match self.next()? {
            byte if byte == expected => Ok(()),
            byte => Err(Malformed::new(
                FORMAT,
                format!("`{}` was expected, not `{}`", char::from(expected), byte.escape_ascii()),
            )),
        }
    }

    /// A string; nothing if it is longer than `most` bytes.
    fn string(&mut self, most: usize) -> Result<Option<String>, Malformed> {
        self.expect(b'"')?;
        let mut text = vec![b'"'];
        let mut whole = true;
        loop {
            let buffer = self.input.fill_buf().map_err(|error| failed(&error))?;
            if buffer.is_empty() {
                return Err(cut());
            }
            let end = memchr::memchr2(b'"', b'\\', buffer);
            let length = end.unwrap_or(buffer.len());
            whole &= text.len() + length <= most + 1;
            if whole {
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
            if !whole {
                text.clear();
            }
        }
        Ok(if whole {
            Some(serde_json::from_slice(&text).unwrap_or_else(|_| "\u{fffd}".to_owned()))
        } else {
            None
        })
    }

    /// Any value, as text if it has at most `most` bytes and empty if not, but for `most` 0 an error.
    fn value(&mut self, most: usize) -> Result<Vec<u8>, Malformed> {
        let mut text = Vec::new();
        let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
        self.peek()?;
        loop {
            let buffer = self.input.fill_buf().map_err(|error| failed(&error))?;
            let Some(&byte) = buffer.first() else { return Err(cut()) };
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
            if most > 0 {
                if text.len() == most {
                    return Err(Malformed::new(FORMAT, format!("its head has more than {most} bytes")));
                }
                text.push(byte);
            }
        }
    }

    /// Each of an array of whole numbers.
    fn numbers(&mut self, mut each: impl FnMut(u64)) -> Result<(), Malformed> {
        self.expect(b'[')?;
        let mut number = None;
        loop {
            let buffer = self.input.fill_buf().map_err(|error| failed(&error))?;
            if buffer.is_empty() {
                return Err(cut());
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
                    _ => return Err(Malformed::new(FORMAT, "a whole number was expected")),
                }
            }
            self.input.consume(used);
            if ended {
                return Ok(());
            }
        }
    }

    /// Those of an array of strings that are `wanted` by their places.
    fn strings(
        &mut self,
        wanted: impl Fn(u64) -> bool,
        mut each: impl FnMut(u64, String),
    ) -> Result<(), Malformed> {
        self.expect(b'[')?;
        if self.peek()? == b']' {
            return self.expect(b']');
        }
        for at in 0.. {
            let most = if wanted(at) { NAME_BYTES } else { 0 };
            if let Some(text) = self.string(most)?.filter(|_| most > 0) {
                each(at, text);
            }
            match self.next()? {
                b',' => {}
                b']' => break,
                _ => return Err(Malformed::new(FORMAT, "a string was expected")),
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
            let group = |name: &str, count, bytes| Group { name: name.to_owned(), count, bytes };
            let groups =
                vec![group("(string)", 1, 1000), group("Cart", 2, 150), group("Evil <Class>", 1, 10)];
            assert_eq!(heap, Heap { bytes: 1160, count: 4, groups });
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
