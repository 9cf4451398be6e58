//! pprof's protocol buffer (github.com/google/pprof, `proto/profile.proto`), as Go programs serve it.

use super::Malformed;
use crate::trace::calls::{CallTree, Frame};
use std::collections::HashMap;
use std::io::Read;

/// The most that a profile may have unpacked.
const MOST_BYTES: u64 = 64 << 20;

/// A profile: stacks, and several values for each.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Name and unit of each value: `cpu` and `nanoseconds`, `inuse_space` and `bytes`.
    pub kinds: Vec<(String, String)>,
    /// What one sample is worth, in the unit of the samples, where it is said.
    pub period: i64,
    /// How long it was taken, in nanoseconds, where it is said.
    pub duration_ns: i64,
    frames: Vec<Frame>,
    samples: Vec<(Vec<usize>, Vec<i64>)>,
}

impl Profile {
    /// The tree of the value called `kind`, each multiplied by `of` and divided by `by`. Negative ones are left
    /// out.
    pub fn tree(&self, kind: &str, of: u64, by: u64) -> CallTree {
        let mut tree = CallTree::default();
        let Some(place) = self.kinds.iter().position(|(name, _)| name == kind) else { return tree };
        let frames: Vec<usize> = self.frames.iter().map(|frame| tree.frame(frame.clone())).collect();
        for (stack, values) in &self.samples {
            let value = values.get(place).and_then(|value| u64::try_from(*value).ok()).unwrap_or_default();
            let stack: Vec<usize> = stack.iter().filter_map(|frame| frames.get(*frame).copied()).collect();
            tree.add(&stack, value.saturating_mul(of) / by.max(1));
        }
        tree
    }

    /// The sum of the value called `kind`.
    pub fn sum(&self, kind: &str) -> i64 {
        let Some(place) = self.kinds.iter().position(|(name, _)| name == kind) else { return 0 };
        self.samples
            .iter()
            .filter_map(|(_, values)| values.get(place))
            .fold(0, |sum, value| sum.saturating_add(*value))
    }

    /// What the value called `kind` has in each function that is last in a stack.
    pub fn by_leaf(&self, kind: &str) -> HashMap<&Frame, i64> {
        let mut found = HashMap::new();
        let Some(place) = self.kinds.iter().position(|(name, _)| name == kind) else { return found };
        for (stack, values) in &self.samples {
            let leaf = stack.last().and_then(|frame| self.frames.get(*frame));
            if let (Some(leaf), Some(value)) = (leaf, values.get(place)) {
                let sum: &mut i64 = found.entry(leaf).or_default();
                *sum = sum.saturating_add(*value);
            }
        }
        found
    }
}

/// Reads a profile, which may be compressed with gzip.
///
/// # Errors
/// It is no such profile, or has more than 64 MiB.
pub fn read(bytes: &[u8]) -> Result<Profile, Malformed> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return parse(bytes).ok_or_else(|| Malformed::new("pprof", "it is cut off, or no profile"));
    }
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes)
        .take(MOST_BYTES + 1)
        .read_to_end(&mut plain)
        .map_err(|error| Malformed::new("pprof", error.to_string()))?;
    if plain.len() as u64 > MOST_BYTES {
        return Err(Malformed::new("pprof", "it has more than 64 MiB"));
    }
    parse(&plain).ok_or_else(|| Malformed::new("pprof", "it is cut off, or no profile"))
}

/// One field of a message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Of a type that no field here has.
    Other,
}

/// The fields of a message, each with its number. Ends with `None` where the message is malformed.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let (first, rest) = self.rest.split_first()?;
            self.rest = rest;
            if shift < 64 {
                value |= u64::from(first & 0x7f) << shift;
            }
            if first & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn skip(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.rest.get(..length)?;
        self.rest = self.rest.get(length..)?;
        Some(taken)
    }

    /// The next field; the inner `None` is the end.
    fn next(&mut self) -> Option<Option<(u64, Field<'a>)>> {
        if self.rest.is_empty() {
            return Some(None);
        }
        let key = self.varint()?;
        let field = match key & 7 {
            0 => Field::Number(self.varint()?),
            1 => self.skip(8).map(|_| Field::Other)?,
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Field::Bytes(self.skip(length)?)
            }
            5 => self.skip(4).map(|_| Field::Other)?,
            _ => return None,
        };
        Some(Some((key >> 3, field)))
    }
}

fn fields<'a>(message: &'a [u8], mut each: impl FnMut(u64, Field<'a>) -> Option<()>) -> Option<()> {
    let mut fields = Fields { rest: message };
    while let Some((number, field)) = fields.next()? {
        each(number, field)?;
    }
    Some(())
}

/// A repeated number: packed, or one at a time.
fn numbers(field: &Field<'_>, into: &mut Vec<u64>) -> Option<()> {
    match field {
        Field::Number(number) => into.push(*number),
        Field::Bytes(packed) => {
            let mut packed = Fields { rest: packed };
            while !packed.rest.is_empty() {
                into.push(packed.varint()?);
            }
        }
        Field::Other => {}
    }
    Some(())
}

#[allow(clippy::cast_possible_wrap, reason = "protocol buffers store int64 as the same 64 bits")]
fn signed(number: u64) -> i64 {
    number as i64
}

/// A function: its name and file as places in the table of strings.
#[derive(Default)]
struct Function {
    name: u64,
    file: u64,
    start_line: u64,
}

fn parse(bytes: &[u8]) -> Option<Profile> {
    let mut strings: Vec<&str> = Vec::new();
    let (mut kinds, mut samples, mut locations, mut functions) =
        (Vec::new(), Vec::new(), HashMap::new(), HashMap::new());
    // Of each function the first line that was seen, for those who do not say where it begins.
    let mut first_lines: HashMap<u64, u64> = HashMap::new();
    let mut profile = Profile::default();
    fields(bytes, |number, field| {
        match (number, field) {
            (1, Field::Bytes(message)) => {
                let (mut name, mut unit) = (0, 0);
                fields(message, |number, field| {
                    match (number, field) {
                        (1, Field::Number(at)) => name = at,
                        (2, Field::Number(at)) => unit = at,
                        _ => {}
                    }
                    Some(())
                })?;
                kinds.push((name, unit));
            }
            (2, Field::Bytes(message)) => {
                let (mut at, mut values) = (Vec::new(), Vec::new());
                fields(message, |number, field| match number {
                    1 => numbers(&field, &mut at),
                    2 => numbers(&field, &mut values),
                    _ => Some(()),
                })?;
                samples.push((at, values));
            }
            (4, Field::Bytes(message)) => {
                let (mut id, mut lines) = (0, Vec::new());
                fields(message, |number, field| {
                    match (number, field) {
                        (1, Field::Number(number)) => id = number,
                        (4, Field::Bytes(line)) => {
                            let (mut function, mut at) = (0, u64::MAX);
                            fields(line, |number, field| {
                                match (number, field) {
                                    (1, Field::Number(number)) => function = number,
                                    (2, Field::Number(number)) => at = number,
                                    _ => {}
                                }
                                Some(())
                            })?;
                            let first: &mut u64 = first_lines.entry(function).or_insert(at);
                            *first = at.min(*first);
                            lines.push(function);
                        }
                        _ => {}
                    }
                    Some(())
                })?;
                locations.insert(id, lines);
            }
            (5, Field::Bytes(message)) => {
                let (mut id, mut function) = (0, Function::default());
                fields(message, |number, field| {
                    match (number, field) {
                        (1, Field::Number(number)) => id = number,
                        (2, Field::Number(number)) => function.name = number,
                        (4, Field::Number(number)) => function.file = number,
                        (5, Field::Number(number)) => function.start_line = number,
                        _ => {}
                    }
                    Some(())
                })?;
                functions.insert(id, function);
            }
            (6, Field::Bytes(text)) => strings.push(std::str::from_utf8(text).unwrap_or("\u{fffd}")),
            (10, Field::Number(number)) => profile.duration_ns = signed(number),
            (12, Field::Number(number)) => profile.period = signed(number),
            _ => {}
        }
        Some(())
    })?;
    let string =
        |at: u64| usize::try_from(at).ok().and_then(|at| strings.get(at)).copied().unwrap_or_default();
    profile.kinds =
        kinds.into_iter().map(|(name, unit)| (string(name).to_owned(), string(unit).to_owned())).collect();
    let mut known: HashMap<u64, usize> = HashMap::new();
    let mut frame_of = |function: u64, frames: &mut Vec<Frame>| {
        *known.entry(function).or_insert_with(|| {
            frames.push(match functions.get(&function) {
                Some(found) => Frame::new(
                    string(found.name),
                    Some(string(found.file)),
                    match (found.start_line, first_lines.get(&function)) {
                        (0, Some(seen)) => u32::try_from(*seen).ok(),
                        (line, _) => u32::try_from(line).ok(),
                    },
                ),
                None => Frame::new("[unknown]", None, None),
            });
            frames.len() - 1
        })
    };
    for (at, values) in samples {
        let mut stack = Vec::new();
        // The leaf comes first, and of one place what was inlined into the others comes first.
        for location in at.iter().rev() {
            let Some(lines) = locations.get(location) else { continue };
            if lines.is_empty() {
                stack.push(frame_of(0, &mut profile.frames));
            }
            for function in lines.iter().rev() {
                stack.push(frame_of(*function, &mut profile.frames));
            }
        }
        profile.samples.push((stack, values.into_iter().map(signed).collect()));
    }
    // Every profile begins its strings with the empty one.
    (strings.first() == Some(&"")).then_some(profile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn varint(mut number: u64, out: &mut Vec<u8>) {
        while number >= 0x80 {
            out.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
            number >>= 7;
        }
        out.push(u8::try_from(number).unwrap());
    }

    fn number(field: u64, number: u64) -> Vec<u8> {
        let mut out = Vec::new();
        varint(field << 3, &mut out);
        varint(number, &mut out);
        out
    }

    fn bytes(field: u64, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        varint(field << 3 | 2, &mut out);
        varint(bytes.len() as u64, &mut out);
        out.extend(bytes);
        out
    }

    fn profile() -> Vec<u8> {
        let mut profile = Vec::new();
        profile.extend(bytes(1, &[number(1, 1), number(2, 2)].concat()));
        profile.extend(bytes(1, &[number(1, 3), number(2, 4)].concat()));
        // Packed, as Go writes them, and one at a time, as the format also allows.
        profile.extend(bytes(2, &[bytes(1, &[2, 1]), bytes(2, &[3, 90])].concat()));
        profile.extend(bytes(2, &[number(1, 1), number(2, 1), number(2, 10)].concat()));
        for (id, function) in [(1, 1), (2, 2)] {
            profile.extend(bytes(
                4,
                &[number(1, id), bytes(4, &[number(1, function), number(2, 31)].concat())].concat(),
            ));
        }
        profile.extend(bytes(5, &[number(1, 1), number(2, 5), number(4, 7), number(5, 9)].concat()));
        profile.extend(bytes(5, &[number(1, 2), number(2, 6), number(4, 7)].concat()));
        for string in ["", "samples", "count", "cpu", "nanoseconds", "main.main", "main.burn", "/app/main.go"]
        {
            profile.extend(bytes(6, string.as_bytes()));
        }
        profile.extend(number(12, 10_000_000));
        profile
    }

    #[test]
    fn stacks_are_read_from_the_outermost_in_whether_packed_or_compressed() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&profile()).unwrap();
        for bytes in [profile(), packed.finish().unwrap()] {
            let profile = read(&bytes).unwrap();
            assert_eq!(profile.kinds[1], ("cpu".to_owned(), "nanoseconds".to_owned()));
            assert_eq!((profile.period, profile.sum("cpu"), profile.sum("none")), (10_000_000, 100, 0));
            let folded = profile.tree("cpu", 1, 1).to_folded();
            assert_eq!(
                folded,
                "main.main (/app/main.go:9) 10\nmain.main (/app/main.go:9);main.burn (/app/main.go:31) 90\n"
            );
        }
    }

    #[test]
    fn what_unpacks_to_too_much_is_refused() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let zeros = vec![0; 1 << 20];
        for _ in 0..=64 {
            packed.write_all(&zeros).unwrap();
        }
        assert!(read(&packed.finish().unwrap()).unwrap_err().reason.contains("64 MiB"));
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes: Vec<u8>, end in 0..profile().len()) {
            let _ = read(&bytes);
            let _ = read(&profile()[..end]);
        }

        #[test]
        fn no_changed_byte_is_a_panic(at in 0..profile().len(), byte: u8) {
            let mut changed = profile();
            changed[at] = byte;
            if let Ok(profile) = read(&changed) {
                profile.tree("cpu", 1, 1).to_folded();
            }
        }
    }
}
