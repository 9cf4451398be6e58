//! Compresses answers with gzip (RFC 1952), for clients that accept it and where it pays.
//!
//! A stream of events is left as it is: each event would have to be flushed by itself, and 300 KB of window kept for
//! every stream that is open. BREACH does not apply: no answer contains a bearer token, and no page of another origin can
//! make a browser send one.
//!
//! `tower-http`'s layer compresses as it sends, on the threads that serve everybody; it would give no length to an answer
//! that is known as a whole, and send one that became larger.

use crate::app_state::App;
use crate::middleware::Next;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use std::io::{self, Write};

/// The smallest answer that is compressed, in bytes: a smaller one fits into one packet anyway.
const MIN_BYTES: u64 = 1400;
/// The size from which an answer is compressed on a thread for blocking work, in bytes: it takes milliseconds, in which the
/// thread would serve nobody else.
const BLOCKING_BYTES: usize = 64 * 1024;
/// The media types that become smaller; the others are compressed already, or have no end.
const MEDIA_TYPES: [&str; 5] =
    ["application/json", "application/openmetrics-text", "text/plain", "text/html", "text/css"];

/// Compresses the answers of the inner layers.
pub(crate) async fn compress(_app: App, request: Request, next: impl Next<Request>) -> Response {
    let accepts_gzip = accepts_gzip(request.headers());
    gzip_response(accepts_gzip, next(request).await).await
}

/// Returns true if a client accepts gzip, and does not prefer the answer as it is (RFC 9110 §12.5.3).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let (mut gzip, mut any, mut identity) = (None, None, None);
    let lists = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|list| list.to_str().ok());
    for element in lists.flat_map(|list| list.split(',')) {
        let (coding, weight) = element
            .split_once(';')
            .map_or((element, Some(1000)), |(coding, weight)| (coding, parse_weight(weight)));
        let entry = match coding.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => &mut gzip,
            "*" => &mut any,
            "identity" => &mut identity,
            _ => continue,
        };
        // A weight that cannot be read accepts nothing.
        *entry = Some(weight.unwrap_or(0));
    }
    gzip.or(any).is_some_and(|gzip| gzip > 0 && gzip >= identity.unwrap_or(0))
}

/// Parses a weight such as `q=0.5`, to thousandths.
fn parse_weight(parameter: &str) -> Option<u16> {
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

/// Compresses an answer if the client accepts that and it pays.
async fn gzip_response(accepts_gzip: bool, mut response: Response) -> Response {
    if !is_compressible(&response) {
        return response;
    }
    // On both forms of the answer: which one is sent depends on the request (RFC 9110 §12.5.5).
    response.headers_mut().append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if !accepts_gzip {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(body) = body.collect().await else {
        // A body of a known size is in memory, and cannot fail.
        return crate::response::text(StatusCode::INTERNAL_SERVER_ERROR, "the answer broke off\n");
    };
    let plain = body.to_bytes();
    let compressed = match plain.len() < BLOCKING_BYTES {
        true => gzip(&plain).ok(),
        false => {
            let plain = plain.clone();
            tokio::task::spawn_blocking(move || gzip(&plain).ok()).await.ok().flatten()
        }
    };
    let body = match compressed.filter(|compressed| compressed.len() < plain.len()) {
        None => plain,
        Some(compressed) => {
            parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            parts.headers.remove(header::CONTENT_LENGTH);
            compressed
        }
    };
    Response::from_parts(parts, Body::from(body))
}

/// Returns true if an answer is whole, large enough, and of a media type that becomes smaller.
fn is_compressible(response: &Response) -> bool {
    let headers = response.headers();
    let media_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    response.status() != StatusCode::PARTIAL_CONTENT
        && !headers.contains_key(header::CONTENT_ENCODING)
        && MEDIA_TYPES.iter().any(|known| media_type.eq_ignore_ascii_case(known))
        && response.body().size_hint().exact().is_some_and(|size| size >= MIN_BYTES)
}

/// Compresses at the fastest level, which leaves a quarter of JSON and source code. The best level would leave a fifth and
/// take ten times as long.
fn gzip(plain: &[u8]) -> io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 3), Compression::fast());
    encoder.write_all(plain)?;
    encoder.finish().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_to_clients_that_accept_it() {
        let accepts = |lists: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for list in lists {
                headers.append(header::ACCEPT_ENCODING, HeaderValue::from_static(list));
            }
            accepts_gzip(&headers)
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
            assert!(accepts(lists), "{lists:?}");
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
            assert!(!accepts(lists), "{lists:?}");
        }
    }

    #[tokio::test]
    async fn an_answer_that_does_not_become_smaller_is_sent_as_it_is() {
        let mut random = vec![0; 4096];
        getrandom::fill(&mut random).unwrap();
        let body = Body::from(random.clone());
        let response = Response::builder().header("content-type", "text/plain").body(body).unwrap();
        let response = gzip_response(true, response).await;
        assert!(!response.headers().contains_key("content-encoding"));
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), random);
    }
}
