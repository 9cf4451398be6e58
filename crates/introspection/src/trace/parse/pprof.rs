//! Parses pprof's protocol buffer (github.com/google/pprof, `proto/profile.proto`), as Go programs serve it.

use super::MalformedProfile;
use crate::trace::call_tree::{CallTree, ProfiledFunction};
use std::collections::HashMap;
use std::io::Read;

// A profile of 30 seconds takes some hundred KiB. The limit keeps a compressed one from filling the memory.
/// The maximum size of a decompressed profile, in bytes.
const MAX_BYTES: u64 = 64 << 20;
const FORMAT: &str = "pprof";

/// The messages of `profile.proto`, with the fields that are used here.
mod proto {
    use super::super::protobuf::{MalformedMessage, MessageFields};

    #[derive(Debug, Default)]
    pub(super) struct Profile<'a> {
        pub(super) sample_type: Vec<ValueType>,
        pub(super) sample: Vec<Sample>,
        pub(super) location: Vec<Location>,
        pub(super) function: Vec<Function>,
        /// Strings in the schema. Bytes here, as a symbol need not be UTF-8, and one bad name should not cost the profile.
        pub(super) string_table: Vec<&'a [u8]>,
        pub(super) duration_nanos: i64,
        pub(super) period: i64,
    }

    #[derive(Debug, Default)]
    pub(super) struct ValueType {
        pub(super) name: i64,
        pub(super) unit: i64,
    }

    #[derive(Debug, Default)]
    pub(super) struct Sample {
        pub(super) location_id: Vec<u64>,
        pub(super) value: Vec<i64>,
    }

    #[derive(Debug, Default)]
    pub(super) struct Location {
        pub(super) id: u64,
        pub(super) line: Vec<Line>,
    }

    #[derive(Debug, Default)]
    pub(super) struct Line {
        pub(super) function_id: u64,
        pub(super) line: i64,
    }

    #[derive(Debug, Default)]
    pub(super) struct Function {
        pub(super) id: u64,
        pub(super) name: i64,
        pub(super) filename: i64,
        pub(super) start_line: i64,
    }

    impl<'a> Profile<'a> {
        pub(super) fn read(bytes: &'a [u8]) -> Result<Self, MalformedMessage> {
            let mut profile = Self::default();
            for field in MessageFields::new(bytes) {
                match field? {
                    (field @ 1, value) => profile.sample_type.push(ValueType::read(value.bytes(field)?)?),
                    (field @ 2, value) => profile.sample.push(Sample::read(value.bytes(field)?)?),
                    (field @ 4, value) => profile.location.push(Location::read(value.bytes(field)?)?),
                    (field @ 5, value) => profile.function.push(Function::read(value.bytes(field)?)?),
                    (field @ 6, value) => profile.string_table.push(value.bytes(field)?),
                    (field @ 10, value) => profile.duration_nanos = value.signed(field)?,
                    (field @ 12, value) => profile.period = value.signed(field)?,
                    _ => {}
                }
            }
            Ok(profile)
        }
    }

    impl ValueType {
        fn read(bytes: &[u8]) -> Result<Self, MalformedMessage> {
            let mut kind = Self::default();
            for field in MessageFields::new(bytes) {
                match field? {
                    (field @ 1, value) => kind.name = value.signed(field)?,
                    (field @ 2, value) => kind.unit = value.signed(field)?,
                    _ => {}
                }
            }
            Ok(kind)
        }
    }

    impl Sample {
        fn read(bytes: &[u8]) -> Result<Self, MalformedMessage> {
            let (mut sample, mut values) = (Self::default(), Vec::new());
            for field in MessageFields::new(bytes) {
                match field? {
                    (field @ 1, value) => value.numbers(field, &mut sample.location_id)?,
                    (field @ 2, value) => value.numbers(field, &mut values)?,
                    _ => {}
                }
            }
            sample.value = values.into_iter().map(u64::cast_signed).collect();
            Ok(sample)
        }
    }

    impl Location {
        fn read(bytes: &[u8]) -> Result<Self, MalformedMessage> {
            let mut location = Self::default();
            for field in MessageFields::new(bytes) {
                match field? {
                    (field @ 1, value) => location.id = value.number(field)?,
                    (field @ 4, value) => location.line.push(Line::read(value.bytes(field)?)?),
                    _ => {}
                }
            }
            Ok(location)
        }
    }

    impl Line {
        fn read(bytes: &[u8]) -> Result<Self, MalformedMessage> {
            let mut line = Self::default();
            for field in MessageFields::new(bytes) {
                match field? {
                    (field @ 1, value) => line.function_id = value.number(field)?,
                    (field @ 2, value) => line.line = value.signed(field)?,
                    _ => {}
                }
            }
            Ok(line)
        }
    }

    impl Function {
        fn read(bytes: &[u8]) -> Result<Self, MalformedMessage> {
            let mut function = Self::default();
            for field in MessageFields::new(bytes) {
                match field? {
                    (field @ 1, value) => function.id = value.number(field)?,
                    (field @ 2, value) => function.name = value.signed(field)?,
                    (field @ 4, value) => function.filename = value.signed(field)?,
                    (field @ 5, value) => function.start_line = value.signed(field)?,
                    _ => {}
                }
            }
            Ok(function)
        }
    }
}

/// A profile: stacks, and several values for each.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PprofProfile {
    /// The name and the unit of each value: `cpu` and `nanoseconds`, `inuse_space` and `bytes`.
    pub kinds: Vec<(String, String)>,
    /// The distance between two samples, in the unit of the samples, or 0 where the profile has none.
    pub period: i64,
    /// The time that the profile covers, in nanoseconds, or 0 where the profile has none.
    pub duration_ns: i64,
    frames: Vec<ProfiledFunction>,
    samples: Vec<PprofSample>,
}

/// A stack of indices into the frames, outermost first, with its values.
#[derive(Clone, Debug)]
struct PprofSample {
    stack: Vec<usize>,
    /// The line that ran in the innermost function.
    line: Option<u32>,
    values: Vec<i64>,
}

impl PprofProfile {
    /// Builds the tree of the value called `kind`, each multiplied by `factor` and divided by `divisor`. Negative
    /// values are left out.
    pub fn tree(&self, kind: &str, factor: u64, divisor: u64) -> CallTree {
        let mut tree = CallTree::default();
        let Some(index) = self.kind_index(kind) else { return tree };
        let frames: Vec<usize> = self.frames.iter().map(|frame| tree.frame(frame.clone())).collect();
        for sample in &self.samples {
            let value = sample.values.get(index).and_then(|value| u64::try_from(*value).ok());
            let stack: Vec<usize> =
                sample.stack.iter().filter_map(|frame| frames.get(*frame).copied()).collect();
            let weight = value.unwrap_or_default().saturating_mul(factor) / divisor.max(1);
            tree.add(&stack, weight);
            if let (Some(frame), Some(line)) = (stack.last(), sample.line) {
                tree.add_line(*frame, line, weight);
            }
        }
        tree
    }

    /// Returns the sum of the value called `kind`.
    pub fn sum(&self, kind: &str) -> i64 {
        let Some(index) = self.kind_index(kind) else { return 0 };
        self.samples
            .iter()
            .filter_map(|sample| sample.values.get(index))
            .fold(0, |sum, value| sum.saturating_add(*value))
    }

    fn kind_index(&self, kind: &str) -> Option<usize> {
        self.kinds.iter().position(|(name, _)| name == kind)
    }
}

/// Parses a profile, which may be compressed with gzip.
///
/// # Errors
/// The bytes are no such profile, or have more than 64 MiB.
pub fn read(bytes: &[u8]) -> Result<PprofProfile, MalformedProfile> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return parse(bytes);
    }
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes)
        .take(MAX_BYTES + 1)
        .read_to_end(&mut plain)
        .map_err(|error| MalformedProfile::new(FORMAT, error.to_string()))?;
    if plain.len() as u64 > MAX_BYTES {
        return Err(MalformedProfile::new(FORMAT, "it has more than 64 MiB"));
    }
    parse(&plain)
}

fn parse(bytes: &[u8]) -> Result<PprofProfile, MalformedProfile> {
    let proto = proto::Profile::read(bytes)
        .map_err(|error| MalformedProfile::new(FORMAT, format!("it is cut off, or no profile: {error}")))?;
    // The schema demands that the table begins with the empty string. Without this check nearly every short text is a
    // profile, as every field is optional.
    if proto.string_table.first().is_none_or(|first| !first.is_empty()) {
        return Err(MalformedProfile::new(FORMAT, "its strings do not begin with the empty one"));
    }
    let string = |index: i64| {
        let bytes = usize::try_from(index).ok().and_then(|index| proto.string_table.get(index).copied());
        String::from_utf8_lossy(bytes.unwrap_or_default())
    };
    // The first line that was sampled of each function, for functions whose start line is not known.
    let mut first_lines: HashMap<u64, i64> = HashMap::new();
    let lines = proto.location.iter().flat_map(|location| &location.line);
    for line in lines.filter(|line| line.line > 0) {
        let first = first_lines.entry(line.function_id).or_insert(line.line);
        *first = line.line.min(*first);
    }
    let functions: HashMap<u64, &proto::Function> =
        proto.function.iter().map(|function| (function.id, function)).collect();
    let locations: HashMap<u64, &[proto::Line]> =
        proto.location.iter().map(|location| (location.id, location.line.as_slice())).collect();
    let mut frames: Vec<ProfiledFunction> = Vec::new();
    let mut frame_indices: HashMap<u64, usize> = HashMap::new();
    let mut frame_index = |function_id: u64| {
        *frame_indices.entry(function_id).or_insert_with(|| {
            frames.push(match functions.get(&function_id) {
                Some(function) => {
                    let line = match function.start_line {
                        0 => first_lines.get(&function_id).copied().unwrap_or_default(),
                        line => line,
                    };
                    let line = u32::try_from(line).ok();
                    ProfiledFunction::new(&string(function.name), Some(&string(function.filename)), line)
                }
                None => ProfiledFunction::new("[unknown]", None, None),
            });
            frames.len() - 1
        })
    };
    let mut samples = Vec::with_capacity(proto.sample.len());
    for sample in &proto.sample {
        let mut stack = Vec::new();
        // The leaf is the first location, and the innermost inlined function the first line of a location.
        for lines in sample.location_id.iter().rev().filter_map(|id| locations.get(id)) {
            if lines.is_empty() {
                stack.push(frame_index(0));
            }
            stack.extend(lines.iter().rev().map(|line| frame_index(line.function_id)));
        }
        let leaf = sample.location_id.first().and_then(|id| locations.get(id)?.first());
        let line = leaf.and_then(|leaf| u32::try_from(leaf.line).ok());
        samples.push(PprofSample { stack, line, values: sample.value.clone() });
    }
    let kinds = proto
        .sample_type
        .iter()
        .map(|kind| (string(kind.name).into_owned(), string(kind.unit).into_owned()))
        .collect();
    Ok(PprofProfile { kinds, period: proto.period, duration_ns: proto.duration_nanos, frames, samples })
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
            let tree = profile.tree("cpu", 1, 1);
            let burn = ProfiledFunction::new("main.burn", Some("/app/main.go"), Some(31));
            assert_eq!(tree.lines(&burn), [(31, 90)]);
            let folded = tree.to_folded();
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
