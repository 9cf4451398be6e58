//! Paths as `file:` URIs (RFC 8089), the form in which Codex sends them.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A URI that names no path of this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{uri}` is no path of this machine: expected file:///ABSOLUTE/PATH, percent-encoded")]
pub struct FileUriError {
    uri: String,
}

/// Returns the path that a URI such as `file:///home/me/a%20b` names.
///
/// # Errors
/// It is no `file:` URI of this machine, or names no absolute path.
pub fn path_of_uri(uri: &str) -> Result<PathBuf, FileUriError> {
    let error = || FileUriError { uri: uri.chars().take(200).collect() };
    let rest = uri.strip_prefix("file://").ok_or_else(error)?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    // A query or a fragment is no part of a path, and a NUL ends one.
    if !rest.starts_with('/') || rest.contains(['?', '#']) {
        return Err(error());
    }
    let mut bytes = Vec::with_capacity(rest.len());
    let mut encoded = rest.bytes();
    while let Some(byte) = encoded.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || char::from(encoded.next()?).to_digit(16);
                let value = digit().zip(digit()).ok_or_else(error)?;
                u8::try_from(value.0 * 16 + value.1).map_err(|_| error())?
            }
            byte => byte,
        };
        if byte == 0 {
            return Err(error());
        }
        bytes.push(byte);
    }
    Ok(PathBuf::from(OsString::from_vec(bytes)))
}

/// Returns the URI of an absolute path.
pub fn uri_of_path(path: &Path) -> String {
    let mut uri = String::from("file://");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'/'
            | b'-'
            | b'.'
            | b'_'
            | b'~'
            | b'+'
            | b'@'
            | b','
            | b'=' => {
                uri.push(char::from(*byte));
            }
            byte => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_comes_back_from_its_uri() {
        for path in ["/", "/a b/100%/ключ#?", "/tmp/x+y@z,=~", "/new\nline"] {
            let uri = uri_of_path(Path::new(path));
            assert_eq!(path_of_uri(&uri).unwrap(), Path::new(path), "{uri}");
            assert!(uri.is_ascii() && !uri.contains(' '), "{uri}");
        }
        let bytes = PathBuf::from(OsString::from_vec(b"/\xff".to_vec()));
        assert_eq!(path_of_uri(&uri_of_path(&bytes)).unwrap(), bytes);
        assert_eq!(path_of_uri("file://localhost/a").unwrap(), Path::new("/a"));
    }

    #[test]
    fn what_names_no_path_of_this_machine_is_an_error() {
        let wrong = [
            "/etc/passwd",
            "file://host/a",
            "file:a",
            "file:///a%0",
            "file:///a%zz",
            "file:///a%00b",
            "file:///a#b",
            "",
        ];
        for uri in wrong {
            assert!(path_of_uri(uri).is_err(), "{uri}");
        }
    }
}
