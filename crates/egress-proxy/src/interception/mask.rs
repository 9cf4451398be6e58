//! Masks the forms of a secret in a stream, also where it is cut between two reads.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// The byte that is written in place of each byte of a secret, so that lengths stay as they are.
const MASK: u8 = b'*';

/// The forms in which a secret is looked for.
#[derive(Debug, Default)]
pub(crate) struct SecretForms(Vec<Vec<u8>>);

impl SecretForms {
    /// Returns the forms of `secret`, which a request carried in the header value `header`: as they stand, in base64, in
    /// hexadecimal digits, percent-encoded, and as a string of JSON.
    pub(crate) fn new(secret: &str, header: &str) -> Self {
        let hexadecimal = |upper: bool| {
            let digits =
                secret.bytes().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") });
            digits.collect::<String>()
        };
        let percent = |upper: bool| {
            let encode = |byte: u8| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    char::from(byte).to_string()
                }
                _ if upper => format!("%{byte:02X}"),
                _ => format!("%{byte:02x}"),
            };
            secret.bytes().map(encode).collect::<String>()
        };
        let json = |escapes: &[char]| -> String {
            let escape = |letter: char| match escapes.contains(&letter) {
                true => format!("\\{letter}"),
                false => letter.to_string(),
            };
            secret.chars().map(escape).collect()
        };
        // Basic authentication encodes the secret together with a user name.
        let pair = header.strip_prefix("Basic ").filter(|pair| !pair.contains(secret));
        let mut forms = vec![
            secret.to_owned(),
            pair.unwrap_or_default().trim_end_matches('=').to_owned(),
            STANDARD_NO_PAD.encode(secret),
            URL_SAFE_NO_PAD.encode(secret),
            hexadecimal(true),
            hexadecimal(false),
            percent(true),
            percent(false),
            json(&['"', '\\']),
            json(&['"', '\\', '/']),
        ];
        forms.sort_unstable();
        forms.dedup();
        Self(forms.into_iter().filter(|form| !form.is_empty()).map(String::into_bytes).collect())
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
            let finder = memchr::memmem::Finder::new(form);
            let mut from = 0;
            while let Some(at) = finder.find(&bytes[from..]) {
                hidden[from + at..from + at + form.len()].fill(true);
                from += at + 1;
            }
        }
        hidden
    }

    /// Returns the length of the longest end of `bytes` with which a form may begin.
    fn open_end(&self, bytes: &[u8]) -> usize {
        let longest = |form: &Vec<u8>| {
            let most = bytes.len().min(form.len() - 1);
            (1..=most).rev().find(|length| bytes.ends_with(&form[..*length])).unwrap_or(0)
        };
        self.0.iter().map(longest).max().unwrap_or(0)
    }
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
