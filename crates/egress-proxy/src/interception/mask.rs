//! Masks the forms of a secret in a stream, also where it is cut between two reads.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// The byte that is written in place of each byte of a secret, so that lengths stay as they are.
const MASK: u8 = b'*';

/// The forms in which a secret is looked for.
#[derive(Debug, Default)]
pub(crate) struct SecretForms(Vec<SecretForm>);

impl SecretForms {
    /// Returns the forms of `secret`, which a request carried in the header value `header`: as they stand, in base64 behind any
    /// other bytes, in hexadecimal digits, in UTF-16, and with any of its characters percent-encoded or escaped as in JSON.
    pub(crate) fn new(secret: &str, header: &str) -> Self {
        // Basic authentication encodes the secret together with a user name.
        let pair = header.strip_prefix("Basic ").filter(|pair| !pair.contains(secret));
        let pair = pair.unwrap_or_default().trim_end_matches('=');
        let mut forms = Vec::new();
        for text in [secret, pair].into_iter().filter(|text| !text.is_empty()) {
            forms.push(SecretForm::escaped(text));
            forms.push(SecretForm::hexadecimal(text));
            forms.extend(base64_forms(text.as_bytes()).iter().map(|form| SecretForm::escaped(form)));
            let units: Vec<u16> = text.encode_utf16().collect();
            for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
                let form: Vec<u8> = units.iter().copied().flat_map(bytes).collect();
                forms.push(SecretForm::exact(&form));
            }
        }
        Self(forms)
    }

    /// Masks the forms in `bytes`.
    pub(crate) fn mask(&self, bytes: &mut [u8]) {
        let hidden = self.find(bytes);
        bytes.iter_mut().zip(hidden).filter(|(_, hidden)| *hidden).for_each(|(byte, _)| *byte = MASK);
    }

    /// Returns for each byte if it is a part of a form. Forms may overlap.
    fn find(&self, bytes: &[u8]) -> Vec<bool> {
        let mut hidden = vec![false; bytes.len()];
        for form in &self.0 {
            for start in 0..bytes.len() {
                if let Some(end) = form.read(bytes, start).end {
                    hidden[start..end].fill(true);
                }
            }
        }
        hidden
    }

    /// Returns the length of the longest end of `bytes` with which a form may begin.
    fn open_end(&self, bytes: &[u8]) -> usize {
        let longest = |form: &SecretForm| {
            let first = bytes.len().saturating_sub(form.max_length);
            (first..bytes.len())
                .find(|start| form.read(bytes, *start).is_open)
                .map_or(0, |at| bytes.len() - at)
        };
        self.0.iter().map(longest).max().unwrap_or(0)
    }
}

/// One form of a secret: for each of its characters, the ways in which the character may be written.
#[derive(Debug)]
struct SecretForm {
    steps: Vec<Vec<Spelling>>,
    /// The bytes with which the form begins.
    first: Box<[bool; 256]>,
    max_length: usize,
}

/// A way to write one character: for each byte the two values that it may have, one of them the other in another case.
type Spelling = Vec<[u8; 2]>;

/// The result of reading a form at one place.
#[derive(Clone, Copy, Debug, Default)]
struct FormRead {
    /// The end of the form, if all of it is there.
    end: Option<usize>,
    /// True if the bytes end before the form does.
    is_open: bool,
}

impl SecretForm {
    fn new(steps: Vec<Vec<Spelling>>) -> Self {
        let mut first = Box::new([false; 256]);
        for byte in steps.iter().take(1).flatten().filter_map(|spelling| spelling.first()).flatten() {
            first[usize::from(*byte)] = true;
        }
        let longest = |step: &Vec<Spelling>| step.iter().map(Vec::len).max().unwrap_or(0);
        Self { max_length: steps.iter().map(longest).sum(), steps, first }
    }

    fn exact(bytes: &[u8]) -> Self {
        Self::new(bytes.iter().map(|byte| vec![vec![[*byte; 2]]]).collect())
    }

    fn hexadecimal(text: &str) -> Self {
        Self::new(text.bytes().map(|byte| vec![hexadecimal(format!("{byte:02x}").as_bytes())]).collect())
    }

    /// Returns the text as it stands, with any of its characters percent-encoded or escaped as in JSON.
    fn escaped(text: &str) -> Self {
        let spellings = |character: char| {
            let (mut bytes, mut units) = ([0; 4], [0; 2]);
            let bytes = character.encode_utf8(&mut bytes).as_bytes();
            let percent = bytes.iter().flat_map(|byte| hexadecimal(format!("%{byte:02x}").as_bytes()));
            let json = character.encode_utf16(&mut units).iter().flat_map(|unit| {
                let digits = hexadecimal(format!("{unit:04x}").as_bytes());
                [[b'\\'; 2], [b'u'; 2]].into_iter().chain(digits)
            });
            let mut spellings =
                vec![bytes.iter().map(|byte| [*byte; 2]).collect(), percent.collect(), json.collect()];
            if character == ' ' {
                spellings.push(vec![[b'+'; 2]]);
            }
            if matches!(character, '"' | '\\' | '/') {
                spellings.push(vec![[b'\\'; 2], [bytes[0]; 2]]);
            }
            spellings
        };
        Self::new(text.chars().map(spellings).collect())
    }

    /// Reads the form from `start` on.
    fn read(&self, bytes: &[u8], start: usize) -> FormRead {
        let mut read = FormRead::default();
        if !bytes.get(start).is_some_and(|byte| self.first[usize::from(*byte)]) {
            return read;
        }
        // Several, where a spelling of one character begins with another: a backslash, and an escaped one.
        let mut ends = vec![start];
        for step in &self.steps {
            let mut next = Vec::new();
            for end in ends {
                let rest = &bytes[end..];
                for spelling in step {
                    let fits = rest.iter().zip(spelling).all(|(byte, allowed)| allowed.contains(byte));
                    if fits && rest.len() < spelling.len() {
                        read.is_open = true;
                    } else if fits && !next.contains(&(end + spelling.len())) {
                        next.push(end + spelling.len());
                    }
                }
            }
            ends = next;
        }
        read.end = ends.into_iter().max();
        read
    }
}

/// Returns the spelling of lower-case text in which each letter may be in either case.
fn hexadecimal(text: &[u8]) -> Spelling {
    text.iter().map(|byte| [*byte, byte.to_ascii_uppercase()]).collect()
}

/// Returns the parts of base64 that only `bytes` decide, for each number of other bytes before them.
fn base64_forms(bytes: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for before in 0..3_usize {
        let text: Vec<u8> = vec![0; before].into_iter().chain(bytes.iter().copied()).collect();
        // A digit holds six bits. One that a byte before or behind them has a part in is left out.
        let (first, last) = ((before * 8).div_ceil(6), text.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
            // At the end of the data, the last digit is the secret's alone.
            forms.extend(
                [encoded.get(first..last), encoded.get(first..)].into_iter().flatten().map(str::to_owned),
            );
        }
    }
    forms.sort_unstable();
    forms.dedup();
    forms.retain(|form| !form.is_empty());
    forms
}

/// A stream whose secrets are masked. What may be the beginning of a secret is held back until more has come.
#[derive(Debug)]
pub(crate) struct MaskedStream<'a> {
    forms: &'a SecretForms,
    held: Vec<u8>,
    /// For each byte that is held back: it is a part of a secret that was found already.
    hidden: Vec<bool>,
}

impl<'a> MaskedStream<'a> {
    pub(crate) fn new(forms: &'a SecretForms) -> Self {
        Self { forms, held: Vec::new(), hidden: Vec::new() }
    }

    /// Takes the next bytes, and returns those that can be passed on.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let known = std::mem::take(&mut self.hidden);
        self.hidden = self.forms.find(&self.held);
        self.hidden.iter_mut().zip(known).for_each(|(hidden, known)| *hidden |= known);
        let ready = self.held.len() - self.forms.open_end(&self.held);
        self.take(ready)
    }

    /// Returns what was held back, at the end of the stream.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.take(self.held.len())
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let hidden = self.hidden.drain(..length);
        self.held.drain(..length).zip(hidden).map(|(byte, hidden)| if hidden { MASK } else { byte }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn masked(forms: &SecretForms, pieces: &[&[u8]]) -> String {
        let mut stream = MaskedStream::new(forms);
        let mut out: Vec<u8> = pieces.iter().flat_map(|piece| stream.push(piece)).collect();
        out.extend(stream.finish());
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_secret_is_masked_in_each_of_its_forms_and_wherever_it_is_cut() {
        let forms = SecretForms::new("pa\"ss/w0rd", "Basic bWU6cGEic3MvdzByZA==");
        for form in [
            "pa\"ss/w0rd",
            "pa\\\"ss/w0rd",
            "pa%22ss%2Fw0rd",
            "pa%22ss%2fw0rd",
            "bWU6cGEic3MvdzByZA",
            &STANDARD_NO_PAD.encode("pa\"ss/w0rd"),
            "70612273732f77307264",
            "70612273732F77307264",
            "%70%61%22%73%73%2F%77%30%72%64",
            "pa%22%73s/w%30rd",
            "\\u0070\\u0061\\u0022\\u0073\\u0073\\u002F\\u0077\\u0030\\u0072\\u0064",
            "pa\\u0022ss\\/w0rd",
        ] {
            let text = format!("before {form} after");
            let expected = format!("before {} after", "*".repeat(form.len()));
            for cut in 0..text.len() {
                let (one, two) = text.as_bytes().split_at(cut);
                assert_eq!(masked(&forms, &[one, two]), expected, "{cut}");
            }
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(masked(&forms, &bytes), expected);
        }
    }

    #[test]
    fn a_secret_in_the_middle_of_encoded_bytes_is_masked() {
        let secret = "hunter2-Zx81kk";
        let forms = SecretForms::new(secret, &format!("Bearer {secret}"));
        for before in ["", "x", "xy", "xyz", "Bearer ", "Authorization: Bearer "] {
            let encoded = STANDARD_NO_PAD.encode(format!("{before}{secret}, and more"));
            let masked = masked(&forms, &[encoded.as_bytes()]);
            let hidden = masked.matches('*').count();
            // A digit at either end belongs to another byte too.
            assert!(hidden >= secret.len() * 8 / 6 - 1, "{before}: {masked}");
        }
        for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            let text: Vec<u8> = secret.encode_utf16().flat_map(bytes).collect();
            assert_eq!(masked(&forms, &[&text]), "*".repeat(text.len()));
        }
        let mixed: String = secret
            .bytes()
            .zip(0..)
            .map(|(byte, at)| match at % 2 {
                0 => format!("{byte:02x}"),
                _ => format!("{byte:02X}"),
            })
            .collect();
        assert_eq!(masked(&forms, &[mixed.as_bytes()]), "*".repeat(mixed.len()));
    }

    #[test]
    fn the_rest_of_a_header_is_no_secret() {
        let forms = SecretForms::new("abcdefgh", "Token abcdefgh v2");
        assert_eq!(masked(&forms, &[b"Token abcdefgh v2 v2 Basic"]), "Token ******** v2 v2 Basic");
    }

    #[test]
    fn only_what_may_begin_a_secret_waits() {
        let forms = SecretForms::new("abcdefgh", "abcdefgh");
        let mut stream = MaskedStream::new(&forms);
        assert_eq!(stream.push(b"data: 1\n\n"), b"data: 1\n\n");
        assert_eq!(stream.push(b"x abc"), b"x ");
        assert_eq!(stream.push(b"x"), b"abcx");
        assert_eq!(stream.push(b"abcd"), b"");
        assert_eq!(stream.finish(), b"abcd");
    }

    #[test]
    fn secrets_that_overlap_are_masked_whole() {
        let forms = SecretForms::new("abcabc", "abcabc");
        for size in 1..9 {
            let pieces: Vec<&[u8]> = b"xabcabcabcy".chunks(size).collect();
            assert_eq!(masked(&forms, &pieces), "x*********y", "{size}");
        }
    }

    proptest! {
        #[test]
        fn no_cut_changes_what_is_masked(
            text in "[abc]{0,40}",
            secret in "[abc]{1,6}",
            cuts in proptest::collection::vec(0usize..8, 0..20),
        ) {
            let forms = SecretForms::new(&secret, &format!("Bearer {secret}"));
            let mut whole = text.clone().into_bytes();
            forms.mask(&mut whole);
            let mut rest = text.as_bytes();
            let mut pieces = Vec::new();
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            pieces.push(rest);
            prop_assert_eq!(masked(&forms, &pieces).into_bytes(), whole);
        }
    }
}
