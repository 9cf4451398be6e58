//! Keeps secret values out of everything that leaves a run.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// What stands in the place of a secret.
pub(crate) const HIDDEN: &str = "[hidden]";
/// Shorter values are not hidden: they occur by chance, and hiding them would mangle the output.
const SHORTEST: usize = 6;
/// The same for a form of which the ends are not known (the inner part of a base64 text).
const SHORTEST_INNER: usize = 8;

/// Values that must never appear in captured output, events, spill files, errors or debug text.
///
/// Each value of at least 6 bytes is found as it stands, in base64 and base64url (alone, or anywhere within
/// a longer encoded text), percent-encoded and escaped as in a JSON string, and replaced by `[hidden]`.
/// Shorter values are ignored. Cheap to clone.
#[derive(Clone, Default)]
pub struct Secrets {
    forms: Option<Arc<Forms>>,
}

/// Every spelling of every secret.
struct Forms {
    matcher: AhoCorasick,
    /// Sorted, so that the spellings that begin with some bytes stand together.
    sorted: Vec<Vec<u8>>,
    longest: usize,
}

impl Secrets {
    /// Hides these values. White space at both ends of a value is not part of it, since a program prints
    /// what it read from a file without the line end.
    pub fn new<V: AsRef<[u8]>>(values: impl IntoIterator<Item = V>) -> Self {
        let mut sorted = Vec::new();
        for value in values {
            let value = value.as_ref().trim_ascii();
            if value.len() >= SHORTEST {
                spellings(value, &mut sorted);
            }
        }
        sorted.sort();
        sorted.dedup();
        let longest = sorted.iter().map(Vec::len).max().unwrap_or(0);
        // Construction fails only past 2^31 states: as many bytes of secrets.
        let matcher = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&sorted).ok();
        let forms =
            matcher.filter(|_| longest > 0).map(|matcher| Arc::new(Forms { matcher, sorted, longest }));
        Self { forms }
    }

    /// There is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.forms.is_none()
    }

    /// `text` with every secret replaced.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(forms) = &self.forms else { return Cow::Borrowed(text) };
        if !forms.matcher.is_match(text) {
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
        into.push(alone.trim_ascii_end().to_vec());
        let padding = alone.iter().rev().take_while(|byte| **byte == b'=').count();
        into.push(alone[..alone.len() - padding].to_vec());
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
    /// How much of the start of `held` a `[hidden]` that was already given out stands for.
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
            // The usual case: nothing pending, so the chunk need not be copied.
            let (keep_from, covered) = forms.scan(chunk, 0, &mut out);
            self.held.extend_from_slice(&chunk[keep_from..]);
            self.covered = covered;
            return;
        }
        // Decide what is held with as much of the chunk as it takes; then go on without copying.
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(chunk);
        let (keep_from, covered) = forms.scan(&held, self.covered, &mut out);
        held.drain(..keep_from);
        self.held = held;
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
        let begun = forms.begins_at(rest, 0);
        if rest.len() - begun >= SHORTEST {
            out(&rest[..begun]);
            out(HIDDEN.as_bytes());
        } else {
            out(rest);
        }
    }
}

impl Forms {
    /// Where, from `from` on, the text may be the beginning of a secret that goes on after its end; its
    /// length if nowhere.
    fn begins_at(&self, text: &[u8], from: usize) -> usize {
        let from = from.max(text.len().saturating_sub(self.longest - 1));
        (from..text.len()).find(|at| self.is_beginning(&text[*at..])).unwrap_or(text.len())
    }

    fn is_beginning(&self, bytes: &[u8]) -> bool {
        let at = self.sorted.partition_point(|form| form.as_slice() < bytes);
        // The forms that begin with `bytes` follow at once; `bytes` itself may be the first of them.
        self.sorted[at..].iter().take(2).any(|form| form.len() > bytes.len() && form.starts_with(bytes))
    }

    /// Gives out `text` up to where it is decided, with what matches replaced. The first `covered` bytes
    /// were given out before as `[hidden]`. Returns from where to keep it, and how much of that is covered.
    fn scan(&self, text: &[u8], covered: usize, out: &mut impl FnMut(&[u8])) -> (usize, usize) {
        let undecided = self.begins_at(text, 0);
        let mut shown = covered; // everything before this has been given out
        let mut from = 0;
        while let Some(found) = self.matcher.find(Input::new(text).range(from..)) {
            if found.start() >= undecided {
                break;
            }
            if found.start() >= shown {
                if found.start() > shown {
                    out(&text[shown..found.start()]);
                }
                out(HIDDEN.as_bytes());
            }
            shown = shown.max(found.end());
            // Secrets may overlap: the next one may begin within this one.
            from = found.start() + 1;
        }
        if undecided > shown {
            out(&text[shown..undecided]);
            shown = undecided;
        }
        (undecided, shown - undecided)
    }
}
