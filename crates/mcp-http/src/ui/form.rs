//! The forms of the page (`application/x-www-form-urlencoded`), read strictly.

use crate::response;
use axum::extract::{FromRequest, Request};
use axum::middleware::Next;
use axum::response::Response;
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The size of a form, in bytes: it has a token or a few words.
const MAX_FORM_BYTES: usize = 16 * 1024;
/// The time that a browser has to send a form.
const FORM_TIMEOUT: Duration = Duration::from_secs(10);

/// The forms that are read at once. To sign in needs no token, and over HTTP/2 one connection can begin many.
static READERS: Semaphore = Semaphore::const_new(256);

/// The fields of a form.
#[derive(Debug)]
pub(super) struct PageForm(HashMap<String, String>);

impl PageForm {
    /// Returns the value of a field.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl<S: Sync> FromRequest<S> for PageForm {
    type Rejection = Response;

    async fn from_request(request: Request, _: &S) -> Result<Self, Response> {
        let refuse = |status| response::text(status, "that is no form of this page\n");
        // A queue would let slow clients hold up the forms of everybody else.
        let Ok(_reader) = READERS.try_acquire() else {
            return Err(response::text(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many forms at once; try again\n",
            ));
        };
        let body = Limited::new(request.into_body(), MAX_FORM_BYTES).collect();
        let bytes = match tokio::time::timeout(FORM_TIMEOUT, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(_)) => return Err(refuse(StatusCode::BAD_REQUEST)),
            Err(_) => return Err(refuse(StatusCode::REQUEST_TIMEOUT)),
        };
        parse(&bytes).map(Self).ok_or_else(|| refuse(StatusCode::BAD_REQUEST))
    }
}

/// Refuses forms that a page of another origin sends. Browsers say where a form comes from, and other clients say nothing.
/// The cookie does not tell: it is sent to all ports of a machine, and so to and from the pages of other servers there.
pub(super) async fn require_same_origin(request: Request, next: Next) -> Response {
    let mut sites = request.headers().get_all("sec-fetch-site").iter();
    if request.method() == Method::POST && !sites.all(|site| site == "same-origin") {
        return response::text(StatusCode::FORBIDDEN, "this is not done from another page\n");
    }
    next.run(request).await
}

/// Parses a form. Returns `None` where it is not one, or where a field is there twice.
pub(super) fn parse(bytes: &[u8]) -> Option<HashMap<String, String>> {
    let mut fields = HashMap::new();
    for pair in bytes.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let name = decode(halves.next().unwrap_or_default())?;
        let value = decode(halves.next().unwrap_or_default())?;
        // Two values for one field mean different things to different readers, so that such a form is refused.
        if fields.insert(name, value).is_some() {
            return None;
        }
    }
    Some(fields)
}

/// Decodes percent-encoded text as the URL Standard reads forms. Returns `None` where it is not text.
fn decode(bytes: &[u8]) -> Option<String> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match (byte, tail) {
            (b'+', _) => decoded.push(b' '),
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                decoded.push(u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?);
                rest = after;
            }
            (b'%', _) => return None,
            _ => decoded.push(*byte),
        }
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read_as_browsers_write_them() {
        for (written, read) in [
            ("a+b%20c", Some("a b c")),
            ("%C3%A4%26", Some("ä&")),
            ("", Some("")),
            ("%", None),
            ("%4", None),
            ("%zz", None),
            ("%+1", None),
            ("%FF", None),
        ] {
            assert_eq!(decode(written.as_bytes()).as_deref(), read, "{written}");
        }
        assert!(parse(b"a=1&b=2&").is_some() && parse(b"a=1&a=2").is_none());
    }
}
