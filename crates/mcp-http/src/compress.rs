//! Answers in gzip (RFC 1952), for clients that ask for it and where it pays.
//!
//! A stream of events is left as it is: each event would have to be flushed by itself, and 300 KB of window kept for
//! every stream that is open. What could be compressed holds no secret beside what its reader chose: a bearer token is
//! in no answer, and no page of another origin can make a browser send one (BREACH needs both).

use crate::answer::Body;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use std::io::{self, Write};

/// Less fits into one packet anyway.
const LEAST: u64 = 1400;
/// More takes milliseconds, and is compressed where it keeps nobody waiting.
const LONG: usize = 64 * 1024;
/// What is worth it; the rest is compressed already, or has no end.
const KINDS: [&str; 4] = ["application/json", "text/plain", "text/html", "text/css"];

/// Whether a client takes gzip, and would not rather have the answer as it is (RFC 9110 §12.5.3).
pub(crate) fn is_asked_for(headers: &HeaderMap) -> bool {
    let (mut gzip, mut any, mut identity) = (None, None, None);
    let lists = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|list| list.to_str().ok());
    for element in lists.flat_map(|list| list.split(',')) {
        let (coding, weight) = element
            .split_once(';')
            .map_or((element, Some(1000)), |(coding, weight)| (coding, self::weight(weight)));
        let place = match coding.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => &mut gzip,
            "*" => &mut any,
            "identity" => &mut identity,
            _ => continue,
        };
        // One that cannot be read asks for nothing.
        *place = Some(weight.unwrap_or(0));
    }
    gzip.or(any).is_some_and(|gzip| gzip > 0 && gzip >= identity.unwrap_or(0))
}

/// `q=0.5`, in thousandths.
fn weight(parameter: &str) -> Option<u16> {
    let (name, value) = parameter.trim().split_once('=')?;
    let (whole, part) = value.split_once('.').unwrap_or((value, ""));
    if !name.eq_ignore_ascii_case("q") || part.len() > 3 || !part.bytes().all(|digit| digit.is_ascii_digit())
    {
        return None;
    }
    let part: u16 = format!("{part:0<3}").parse().ok()?;
    match whole {
        "0" => Some(part),
        "1" if part == 0 => Some(1000),
        _ => None,
    }
}

/// The answer, compressed if the client `asked` for that and it pays.
pub(crate) async fn compress(asked: bool, mut response: Response<Body>) -> Response<Body> {
    if !pays(&response) {
        return response;
    }
    response.headers_mut().append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if !asked {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(body) = body.collect().await;
    let plain = body.to_bytes();
    let packed = match plain.len() < LONG {
        true => gzip(&plain).ok(),
        false => {
            let plain = plain.clone();
            tokio::task::spawn_blocking(move || gzip(&plain).ok()).await.ok().flatten()
        }
    };
    let body = match packed.filter(|packed| packed.len() < plain.len()) {
        None => plain,
        Some(packed) => {
            parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            parts.headers.remove(header::CONTENT_LENGTH);
            packed
        }
    };
    Response::from_parts(parts, Full::new(body).boxed())
}

/// Whether an answer is whole, large enough, and of a kind that gets smaller.
fn pays(response: &Response<Body>) -> bool {
    let headers = response.headers();
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    response.status() != StatusCode::PARTIAL_CONTENT
        && !headers.contains_key(header::CONTENT_ENCODING)
        && KINDS.iter().any(|known| kind.eq_ignore_ascii_case(known))
        && response.body().size_hint().exact().is_some_and(|size| size >= LEAST)
}

/// At the fastest level: on JSON and source it leaves a quarter, and the best would leave a fifth for ten times the time.
fn gzip(plain: &[u8]) -> io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 3), Compression::fast());
    encoder.write_all(plain)?;
    encoder.finish().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_to_whom_it_is_not_refused() {
        let asked = |lists: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for list in lists {
                headers.append(header::ACCEPT_ENCODING, HeaderValue::from_static(list));
            }
            is_asked_for(&headers)
        };
        for lists in [
            &["gzip"] as &[&str],
            &["GZip;Q=0.5"],
            &["x-gzip"],
            &["*"],
            &["br, gzip ; q=0.001, deflate"],
            &["gzip, identity;q=0.5, *;q=0"],
            &["identity;q=0.5, gzip;q=0.5"],
            &["br", "gzip;q=1.000"],
            &["identity;q=0, *"],
            &["gzip,,"],
        ] {
            assert!(asked(lists), "{lists:?}");
        }
        for lists in [
            &[] as &[&str],
            &[""],
            &["identity"],
            &["br, deflate"],
            &["gzip;q=0"],
            &["gzip;q=0.000, *"],
            &["*;q=0"],
            &["identity, gzip;q=0.5"],
            &["gzip;q=2"],
            &["gzip;q=1.001"],
            &["gzip;q=0.0001"],
            &["gzip;q=-1"],
            &["gzip;q="],
            &["gzip;level=9"],
            &["gzipped"],
        ] {
            assert!(!asked(lists), "{lists:?}");
        }
    }

    #[tokio::test]
    async fn what_does_not_get_smaller_is_sent_as_it_is() {
        let mut random = vec![0; 4096];
        getrandom::fill(&mut random).unwrap();
        let body = Full::new(Bytes::from(random.clone())).boxed();
        let response = Response::builder().header("content-type", "text/plain").body(body).unwrap();
        let response = compress(true, response).await;
        assert!(!response.headers().contains_key("content-encoding"));
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), random);
    }
}
