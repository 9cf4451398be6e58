//! Keeps secret values out of everything that leaves a run.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// What stands in the place of a secret.
pub(crate) const HIDDEN: &str = "[redacted]";
/// Shorter values are not hidden: they occur by chance, and hiding them would mangle the output.
const SHORTEST: usize = 6;
/// The same for a form of which the ends are not known (the inner part of a base64 text).
const SHORTEST_INNER: usize = 8;

/// Values that must never appear in captured output, events, spill files, errors or debug text.
///
/// Each value of at least 6 bytes is found as it stands, in base64 and base64url (alone, or anywhere within
/// a longer encoded text), percent-encoded and escaped as in a JSON string, and replaced by `[redacted]`.
/// Shorter values are ignored. Cheap to clone.
#[derive(Clone, Default)]
pub struct Secrets {
    forms: Option<Arc<Forms>>,
}

/// Every spelling of every secret, and how to find them.
///
/// The search is Wu and Manber's ("A fast algorithm for multi-pattern searching", 1994): a look at three
/// bytes tells how far the next occurrence is at least. Secrets are long, so it leaps, and many of them
/// cost little more than one, where an automaton would look at every byte.
struct Forms {
    /// Sorted, so that the forms that begin with some bytes stand together.
    sorted: Vec<Form>,
    longest: usize,
    /// Length of the part of each form that the leaps are made for: no form is shorter.
    window: usize,
    /// By [`block`]: how far after three such bytes at the end of the window it can be moved.
    leaps: Vec<u8>,
    /// The bytes with which a form begins.
    first_bytes: [bool; 256],
}

struct Form {
    bytes: Vec<u8>,
    /// Which other form is the longest one that this one begins with.
    prefix: Option<usize>,
}

impl Secrets {
    /// Hides these values. White space at both ends of a value is not part of it, since a program prints
    /// what it read from a file without the line end.
    pub fn new<V: AsRef<[u8]>>(values: impl IntoIterator<Item = V>) -> Self {
        let mut spelled = Vec::new();
        for value in values {
            let value = value.as_ref().trim_ascii();
            if value.len() >= SHORTEST {
                spellings(value, &mut spelled);
            }
        }
        Self { forms: (!spelled.is_empty()).then(|| Arc::new(Forms::new(spelled))) }
    }

    /// There is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.forms.is_none()
    }

    /// `text` with every secret replaced.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(forms) = &self.forms else { return Cow::Borrowed(text) };
        if forms.find(text.as_bytes(), 0).is_none() {
            return Cow::Borrowed(text);
        }
        let mut hidden = Vec::with_capacity(text.len());
        let mut redactor = Redactor::new(self);
        redactor.push(text.as_bytes(), |bytes| hidden.extend_from_slice(bytes));
        redactor.finish(|bytes| hidden.extend_from_slice(bytes));
        Cow::Owned(String::from_utf8_lossy(&hidden).into_owned())
    }

    /// A redactor for one stream.
    pub fn redactor(&self) -> Redactor {
        Redactor::new(self)
    }
}

/// Says nothing about the values, not even how many there are.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(..)")
    }
}

fn spellings(value: &[u8], into: &mut Vec<Vec<u8>>) {
    into.push(value.to_vec());
    percent(value, into);
    json(value, into);
    for alphabet in [&STANDARD, &URL_SAFE] {
        // Alone, with and without padding.
        let alone = alphabet.encode(value).into_bytes();
        let padding = alone.iter().rev().take_while(|byte| **byte == b'=').count();
        into.push(alone[..alone.len() - padding].to_vec());
        into.push(alone);
        // Within a longer text it stands at one of three offsets; the characters at the ends mix with the
        // neighbours' bits, the ones between are the same always.
        for before in 0..3_usize {
            let mut padded = vec![0; before];
            padded.extend_from_slice(value);
            let encoded = alphabet.encode(&padded).into_bytes();
            let inner = (before * 8).div_ceil(6)..padded.len() * 8 / 6;
            if inner.len() >= SHORTEST_INNER {
                into.push(encoded[inner].to_vec());
            }
        }
    }
}

/// Percent-encoded as most encoders do it (RFC 3986 unreserved characters kept), in upper and lower case,
/// and with `+` for a blank as in forms.
fn percent(value: &[u8], into: &mut Vec<Vec<u8>>) {
    use std::io::Write as _;
    let (mut upper, mut lower, mut form) = (Vec::new(), Vec::new(), Vec::new());
    for byte in value {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            for text in [&mut upper, &mut lower, &mut form] {
                text.push(*byte);
            }
            continue;
        }
        // Writing to a Vec cannot fail.
        let _ = write!(upper, "%{byte:02X}");
        let _ = write!(lower, "%{byte:02x}");
        if *byte == b' ' {
            form.push(b'+');
        } else {
            let _ = write!(form, "%{byte:02X}");
        }
    }
    into.extend([upper, lower, form]);
}

/// Escaped as in a JSON string: the short escapes, with `/` as it stands and escaped, and with everything
/// outside ASCII as it stands and as `\u` escapes.
fn json(value: &[u8], into: &mut Vec<Vec<u8>>) {
    let Ok(text) = std::str::from_utf8(value) else { return };
    for (escape_slash, ascii) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut escaped = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '"' => escaped.push_str("\\\""),
                '\\' => escaped.push_str("\\\\"),
                '\n' => escaped.push_str("\\n"),
                '\r' => escaped.push_str("\\r"),
                '\t' => escaped.push_str("\\t"),
                '\u{8}' => escaped.push_str("\\b"),
                '\u{c}' => escaped.push_str("\\f"),
                '/' if escape_slash => escaped.push_str("\\/"),
                c if c < ' ' || ascii && !c.is_ascii() => {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        escaped.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                c => escaped.push(c),
            }
        }
        into.push(escaped.into_bytes());
    }
}

/// Hides secrets in one stream, however it is cut into chunks.
///
/// What could be the beginning of a secret is held back until the next chunk decides, and nothing else is,
/// so that a prompt is seen at once. At most the length of the longest secret is held.
#[derive(Clone)]
pub struct Redactor {
    forms: Option<Arc<Forms>>,
    /// The end of the stream so far, as far as it can still matter.
    held: Vec<u8>,
    /// How much of the start of `held` a `[redacted]` that was already given out stands for.
    covered: usize,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor(..)")
    }
}

impl Redactor {
    fn new(secrets: &Secrets) -> Self {
        Self { forms: secrets.forms.clone(), held: Vec::new(), covered: 0 }
    }

    /// Takes the next chunk and gives out what is decided, in order.
    pub fn push(&mut self, chunk: &[u8], mut out: impl FnMut(&[u8])) {
        let Some(forms) = self.forms.clone() else { return out(chunk) };
        if self.held.is_empty() {
            // The usual case: nothing is pending, so the chunk need not be copied.
            let (keep_from, covered) = forms.scan(chunk, 0, &mut out);
            self.held.extend_from_slice(&chunk[keep_from..]);
            self.covered = covered;
            return;
        }
        let mut text = Vec::with_capacity(self.held.len() + chunk.len());
        text.extend_from_slice(&self.held);
        text.extend_from_slice(chunk);
        let (keep_from, covered) = forms.scan(&text, self.covered, &mut out);
        self.held.clear();
        self.held.extend_from_slice(&text[keep_from..]);
        self.covered = covered;
    }

    /// Ends the stream and gives out what was held back.
    ///
    /// A stream that ends within a secret (the program was killed while it wrote) does not show the
    /// beginning of it, if that is 6 bytes or more.
    pub fn finish(&mut self, mut out: impl FnMut(&[u8])) {
        let rest = std::mem::take(&mut self.held);
        let covered = std::mem::take(&mut self.covered);
        let Some(forms) = &self.forms else { return };
        let rest = &rest[covered.min(rest.len())..];
        let begun = forms.begins_at(rest);
        if rest.len() - begun >= SHORTEST {
            out(&rest[..begun]);
            out(HIDDEN.as_bytes());
        } else {
            out(rest);
        }
    }
}

/// Bytes that a leap is looked up by.
const BLOCK: usize = 3;

/// Where the leap for these three bytes stands in a table of `size`, a power of two. (The multiplier is
/// the golden ratio: Knuth's multiplicative hashing.)
fn block(bytes: &[u8], size: usize) -> usize {
    let number = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
    (number.wrapping_mul(0x9E37_79B1) >> 8) as usize & (size - 1)
}

impl Forms {
    /// `spelled` is not empty, and each of its values has at least [`SHORTEST`] bytes.
    fn new(mut spelled: Vec<Vec<u8>>) -> Self {
        spelled.sort();
        spelled.dedup();
        let longest = spelled.iter().map(Vec::len).max().unwrap_or(0);
        let window = spelled.iter().map(Vec::len).min().unwrap_or(SHORTEST).min(32);
        // Sparse, so that most blocks of a text that is no secret lead to the longest leap.
        let size = (spelled.len() * window * 8).next_power_of_two().clamp(1 << 12, 1 << 18);
        let none = window - BLOCK + 1;
        let mut leaps = vec![u8::try_from(none).unwrap_or(u8::MAX); size];
        let mut first_bytes = [false; 256];
        let mut sorted: Vec<Form> = Vec::with_capacity(spelled.len());
        for bytes in spelled {
            first_bytes[usize::from(bytes[0])] = true;
            for (start, part) in bytes[..window].windows(BLOCK).enumerate() {
                let leap = &mut leaps[block(part, size)];
                *leap = (*leap).min(u8::try_from(window - BLOCK - start).unwrap_or(u8::MAX));
            }
            // In sorted order it is the one before, or one that that one begins with.
            let mut prefix = sorted.len().checked_sub(1);
            while let Some(at) = prefix
                && !bytes.starts_with(&sorted[at].bytes)
            {
                prefix = sorted[at].prefix;
            }
            sorted.push(Form { bytes, prefix });
        }
        Self { sorted, longest, window, leaps, first_bytes }
    }

    /// The first place from `from` on where a form stands, and the end of the longest that stands there.
    fn find(&self, text: &[u8], from: usize) -> Option<(usize, usize)> {
        let mut end = from + self.window;
        while end <= text.len() {
            let leap = usize::from(self.leaps[block(&text[end - BLOCK..end], self.leaps.len())]);
            if leap == 0
                && let Some(length) = self.longest_at(&text[end - self.window..])
            {
                let start = end - self.window;
                return Some((start, start + length));
            }
            end += leap.max(1);
        }
        None
    }

    /// Length of the longest form that `text` begins with.
    fn longest_at(&self, text: &[u8]) -> Option<usize> {
        if !self.first_bytes[usize::from(*text.first()?)] {
            return None;
        }
        // In sorted order it is the last one not after `text`, or one that that one begins with.
        let mut candidate = self.sorted.partition_point(|form| form.bytes.as_slice() <= text).checked_sub(1);
        while let Some(at) = candidate {
            let form = &self.sorted[at];
            if text.starts_with(&form.bytes) {
                return Some(form.bytes.len());
            }
            candidate = form.prefix;
        }
        None
    }

    /// Where the text may be the beginning of a secret that goes on after its end; its length if nowhere.
    fn begins_at(&self, text: &[u8]) -> usize {
        let from = text.len().saturating_sub(self.longest - 1);
        let begins = |at: &usize| self.first_bytes[usize::from(text[*at])] && self.is_beginning(&text[*at..]);
        (from..text.len()).find(begins).unwrap_or(text.len())
    }

    fn is_beginning(&self, bytes: &[u8]) -> bool {
        let at = self.sorted.partition_point(|form| form.bytes.as_slice() <= bytes);
        // The forms that are longer and begin with `bytes` follow at once.
        self.sorted.get(at).is_some_and(|form| form.bytes.starts_with(bytes))
    }

    /// Gives out `text` up to where it is decided, with what matches replaced. The first `covered` bytes
    /// were given out before as `[redacted]`. Returns from where to keep it, and how much of that is covered.
    fn scan(&self, text: &[u8], covered: usize, out: &mut impl FnMut(&[u8])) -> (usize, usize) {
        let undecided = self.begins_at(text);
        let mut shown = covered; // everything before this has been given out
        let mut from = 0;
        while let Some((start, end)) = self.find(text, from) {
            if start >= undecided {
                break;
            }
            if start >= shown {
                if start > shown {
                    out(&text[shown..start]);
                }
                out(HIDDEN.as_bytes());
            }
            shown = shown.max(end);
            // Secrets may overlap: the next one may begin within this one.
            from = start + 1;
        }
        if undecided > shown {
            out(&text[shown..undecided]);
            shown = undecided;
        }
        (undecided, shown - undecided)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 40 bytes with everything that an encoding changes.
    const SECRET: &str = "s3cr3t/+~\"\\ é%&=p4ssw0rd-ABCDEFGHIJKLMN";

    fn redact(secrets: &Secrets, chunks: &[&[u8]]) -> String {
        let mut redactor = secrets.redactor();
        let mut shown = Vec::new();
        for chunk in chunks {
            redactor.push(chunk, |bytes| shown.extend_from_slice(bytes));
        }
        redactor.finish(|bytes| shown.extend_from_slice(bytes));
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// No 8 bytes in a row of `secret` are in `shown`.
    fn shows(shown: &[u8], secret: &[u8]) -> bool {
        secret.windows(8).any(|part| memchr::memmem::find(shown, part).is_some())
    }

    #[test]
    fn the_secret_of_these_tests_has_40_bytes() {
        assert_eq!(SECRET.len(), 40);
    }

    #[test]
    fn a_secret_split_at_any_place_is_hidden_and_what_is_around_it_stays() {
        let secrets = Secrets::new([SECRET]);
        let text = format!("before {SECRET} after");
        for at in 0..=text.len() {
            let (left, right) = text.as_bytes().split_at(at);
            assert_eq!(redact(&secrets, &[left, right]), "before [redacted] after", "split at {at}");
        }
        let bytes: Vec<_> = text.as_bytes().chunks(1).collect();
        assert_eq!(redact(&secrets, &bytes), "before [redacted] after");
    }

    #[test]
    fn encoded_forms_are_hidden_at_any_split_and_any_offset() {
        let secrets = Secrets::new([SECRET]);
        let percent = |upper: bool| -> String {
            let each = |byte: &u8| match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    char::from(*byte).to_string()
                }
                _ if upper => format!("%{byte:02X}"),
                _ => format!("%{byte:02x}"),
            };
            SECRET.as_bytes().iter().map(each).collect()
        };
        let mut forms = vec![
            STANDARD.encode(SECRET),
            URL_SAFE.encode(SECRET),
            STANDARD.encode(SECRET).trim_end_matches('=').to_owned(),
            percent(true),
            percent(false),
            serde_json::to_string(SECRET).expect("a string").trim_matches('"').to_owned(),
        ];
        for before in ["u:", "u", "", "user:"] {
            for after in ["", "x", "xy", "\n"] {
                forms.push(STANDARD.encode(format!("{before}{SECRET}{after}")));
                forms.push(URL_SAFE.encode(format!("{before}{SECRET}{after}")));
            }
        }
        for form in forms {
            for at in 0..=form.len() {
                let (left, right) = form.as_bytes().split_at(at);
                let shown = redact(&secrets, &[b"<", left, right, b">"]);
                assert!(shown.contains(HIDDEN), "{form} split at {at}: {shown}");
                // In base64 8 bytes of the secret are at least 10 whole characters.
                let left_over = shown.replace(HIDDEN, "");
                assert!(left_over.len() < 2 + 16, "{form} split at {at}: {shown}");
            }
        }
    }

    #[test]
    fn a_stream_that_ends_within_a_secret_does_not_show_8_bytes_of_it() {
        let secrets = Secrets::new([SECRET]);
        for length in 0..=SECRET.len() {
            let shown = redact(&secrets, &[b"x", &SECRET.as_bytes()[..length]]);
            assert!(!shows(shown.as_bytes(), SECRET.as_bytes()), "{length}: {shown}");
        }
    }

    #[test]
    fn what_cannot_begin_a_secret_is_not_held_back() {
        let mut redactor = Secrets::new([SECRET]).redactor();
        let mut shown = Vec::new();
        redactor.push(b"Password: ", |bytes| shown.extend_from_slice(bytes));
        assert_eq!(shown, b"Password: ");
    }

    #[test]
    fn many_secrets_are_all_found() {
        let values: Vec<String> =
            (0..500_u64).map(|n| format!("{:016x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
        let secrets = Secrets::new(&values);
        for value in &values {
            assert_eq!(secrets.hide(&format!("<{value}>")), "<[redacted]>");
        }
        assert_eq!(secrets.hide(&values.join(" ")), vec![HIDDEN; 500].join(" "));
    }

    #[test]
    fn secrets_that_overlap_are_hidden_together() {
        let secrets = Secrets::new(["1234567890ab", "67890abXXXXXXXXXXXX"]);
        let text = b"<1234567890abXXXXXXXXXXXX>";
        for at in 0..text.len() {
            assert_eq!(redact(&secrets, &[&text[..at], &text[at..]]), "<[redacted]>");
        }
    }

    #[test]
    fn of_two_secrets_at_one_place_the_longer_is_hidden() {
        let secrets = Secrets::new(["abcdef", "abcdefghij"]);
        assert_eq!(
            redact(&secrets, &[b"abcdef", b"ghij abcdef", b"gh abcdef"]),
            "[redacted] [redacted]gh [redacted]"
        );
    }

    #[test]
    fn neighbours_are_hidden_one_by_one() {
        let secrets = Secrets::new(["abcdef"]);
        assert_eq!(redact(&secrets, &[b"abcdefabc", b"def"]), "[redacted][redacted]");
    }

    #[test]
    fn short_values_and_white_space_around_values_are_ignored() {
        assert!(Secrets::new(["12345", "", "  abc \n"]).is_empty());
        assert_eq!(Secrets::new([" abcdef\n"]).hide("xabcdefx"), "x[redacted]x");
    }

    #[test]
    fn text_without_a_secret_is_borrowed() {
        assert!(matches!(Secrets::new([SECRET]).hide("nothing"), Cow::Borrowed("nothing")));
        assert_eq!(Secrets::new([SECRET]).hide(&format!("{SECRET}.")), "[redacted].");
    }

    #[test]
    fn debug_text_says_nothing() {
        let secrets = Secrets::new([SECRET]);
        let mut redactor = secrets.redactor();
        redactor.push(&SECRET.as_bytes()[..20], |_| {});
        assert_eq!(format!("{secrets:?} {redactor:?}"), "Secrets(..) Redactor(..)");
    }

    #[test]
    fn a_stream_that_repeats_a_secret_without_end_holds_no_more_than_its_length() {
        let mut redactor = Secrets::new(["aaaaaaaa"]).redactor();
        let mut shown = 0;
        for _ in 0..1000 {
            redactor.push(&[b'a'; 100], |bytes| shown += bytes.len());
            assert!(redactor.held.len() < 16, "{}", redactor.held.len());
        }
        redactor.finish(|bytes| shown += bytes.len());
        assert_eq!(shown, HIDDEN.len());
    }

    proptest! {
        #[test]
        fn what_is_shown_does_not_depend_on_how_the_stream_is_cut(
            values in prop::collection::vec("[ab]{6,9}", 1..4),
            text in "[abc]{0,60}",
            cuts in prop::collection::vec(0..60_usize, 0..8),
        ) {
            let secrets = Secrets::new(&values);
            let mut cuts: Vec<_> = cuts.into_iter().map(|at| at.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<_> = cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
            let shown = redact(&secrets, &chunks);
            for value in &values {
                prop_assert!(!shown.contains(value.as_str()), "{} in {}", value, shown);
            }
            prop_assert_eq!(shown, redact(&secrets, &[text.as_bytes()]));
        }

        #[test]
        fn text_without_a_secret_or_its_beginning_passes_unchanged(text in "[^s]{0,60}", at in 0..60_usize) {
            let at = at.min(text.len());
            let secrets = Secrets::new(["ssssssss"]);
            prop_assert_eq!(redact(&secrets, &[&text.as_bytes()[..at], &text.as_bytes()[at..]]), text);
        }
    }
}
