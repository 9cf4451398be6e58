//! Credentials that HTTP and addresses carry in the open: `scheme://user:password@host` (RFC 3986, section
//! 3.2.1) and `Authorization: Basic …` (RFC 7617).

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use crate::randomness::is_random;
use crate::span::SecretSpan;
use crate::template::is_template;
use crate::token_runs::{ALNUM, BASE64, end_of, is_at, start_of};

/// The number of bytes of an address that are read in search of the `@` that ends its credentials.
const MAX_USERINFO_BYTES: usize = 512;

/// Returns the password in the address that has `://` at `at`.
pub(crate) fn find(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    // The bracket of an IPv6 address stands where a user would.
    if at == 0 || !is_at(bytes, at - 1, ALNUM) || bytes.get(at + 3) == Some(&b'[') {
        return None;
    }
    let start = at + 3;
    let mut colon = None;
    let mut host = None;
    let mut slash = false;
    for (offset, &byte) in bytes[start..].iter().take(MAX_USERINFO_BYTES).enumerate() {
        let here = start + offset;
        match byte {
            b':' if colon.is_none() => colon = Some(here),
            b'@' => {
                host = Some(here);
                if slash {
                    break;
                }
            }
            b'/' | b'?' | b'#' => {
                // A password may hold these, though it ought not to; a port may not.
                let port = colon.is_none_or(|colon| bytes[colon + 1..here].iter().all(u8::is_ascii_digit));
                if host.is_some() || port {
                    break;
                }
                slash = true;
            }
            b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\' | b',' | b';' | b'(' | b')' => break,
            _ if byte <= b' ' => break,
            _ => {}
        }
    }
    let host = host?;
    match colon.filter(|&colon| colon < host) {
        Some(colon) => {
            let password = &bytes[colon + 1..host];
            (!is_template(password)).then_some(SecretSpan {
                start: colon + 1,
                end: host,
                kind: "url-password",
            })
        }
        // A token in the place of the user.
        None => (host - start >= 16 && is_random(&bytes[start..host], 0.2)).then_some(SecretSpan {
            start,
            end: host,
            kind: "url-password",
        }),
    }
}

/// Returns the credentials of `Basic …`, where `asic ` is at `at`. They are credentials if they decode to
/// `user:password`: `basic authentication` is not.
pub(crate) fn basic(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let word = start_of(bytes, at, ALNUM, 2);
    if at - word != 1 || !bytes[word].eq_ignore_ascii_case(&b'b') {
        return None;
    }
    credentials_at(bytes, at + 5)
}

/// Returns the base64 at `start` if it decodes to `user:password`.
pub(crate) fn credentials_at(bytes: &[u8], start: usize) -> Option<SecretSpan> {
    let body = end_of(bytes, start, BASE64, 4096);
    let end = body + bytes[body..].iter().take(2).take_while(|&&byte| byte == b'=').count();
    let token = &bytes[start..end];
    if token.len() < 6 {
        return None;
    }
    let decoded = STANDARD.decode(token).or_else(|_| STANDARD_NO_PAD.decode(&bytes[start..body])).ok()?;
    let readable = decoded.iter().all(|byte| !byte.is_ascii_control());
    (readable && decoded.contains(&b':')).then_some(SecretSpan { start, end, kind: "basic-credentials" })
}
