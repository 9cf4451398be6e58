//! Answers for browsers, and what a browser may do with them.

use crate::response;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, StatusCode, header};
use maud::Markup;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// The style of all pages.
pub(super) const STYLE: &str = include_str!("style.css");
/// The script that keeps a page up to date.
pub(super) const SCRIPT: &str = include_str!("live.js");

/// Allows the server's own style and script, nothing inline but that style, and frames with its own pictures. No other page
/// may show these in a frame.
static CONTENT_SECURITY_POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
         frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    );
    // The fallback forbids everything, which shows at once. A missing header would allow everything.
    HeaderValue::from_str(&policy).unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"))
});

/// Allows a picture its own styles and the script of every flame graph, which acts on nothing but the picture: in a sandbox
/// it has no cookies and no origin.
static PICTURE_SECURITY_POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    #[cfg(feature = "introspection")]
    let script = {
        let hash = STANDARD.encode(Sha256::digest(core_tools::trace::flame::SCRIPT.as_bytes()));
        format!("script-src 'sha256-{hash}'; sandbox allow-scripts")
    };
    #[cfg(not(feature = "introspection"))]
    let script = "sandbox";
    let policy = format!("default-src 'none'; style-src 'unsafe-inline'; {script}");
    HeaderValue::from_str(&policy).unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'; sandbox"))
});

/// Makes a page.
pub(super) fn html(status: StatusCode, markup: Markup) -> Response {
    let text = without_hidden(&markup.into_string());
    let mut response = isolated(response::document(status, "text/html; charset=utf-8", text));
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY.clone());
    response
}

/// Makes an answer with the script of the pages.
pub(super) fn script() -> Response {
    isolated(response::document(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT.to_owned()))
}

/// Makes an answer with a picture.
pub(super) fn svg(picture: String) -> Response {
    let mut response = isolated(response::document(StatusCode::OK, "image/svg+xml", picture));
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, PICTURE_SECURITY_POLICY.clone());
    response
}

/// Makes the answer to a form that was carried out: the browser gets `location`, and does not send the form again.
pub(super) fn see_other(location: &'static str) -> Response {
    let mut response = response::text(StatusCode::SEE_OTHER, "");
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static(location));
    response
}

/// Makes the answer to a path of the page that there is not.
pub(super) fn nothing_here() -> Response {
    response::text(StatusCode::NOT_FOUND, "there is nothing here\n")
}

/// Keeps other origins from reading an answer. The referrer is sent to this origin: without it, a browser sends forms with
/// the origin `null`.
fn isolated(mut response: Response) -> Response {
    for (name, value) in [
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Replaces the characters that nobody can see, and those that turn the direction of the text around them. They come with
/// names and commands of callers; the markup has none.
fn without_hidden(text: &str) -> String {
    let is_hidden = |character: char| {
        (character.is_control() && character != '\n' && character != '\t') || is_direction_mark(character)
    };
    text.chars().map(|character| if is_hidden(character) { '\u{fffd}' } else { character }).collect()
}

/// Returns true for a mark of direction (Unicode Standard Annex 9, table 4 and the marks of section 2.6).
fn is_direction_mark(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use maud::html;
    use proptest::prelude::*;

    fn escaped(text: &str) -> String {
        without_hidden(&html! { (text) }.into_string())
    }

    /// Reads text as a browser does.
    fn unescape(html: &str) -> String {
        let mut text = html.to_owned();
        for (entity, letter) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\"")] {
            text = text.replace(entity, letter);
        }
        text.replace("&amp;", "&")
    }

    proptest! {
        #[test]
        fn no_text_ends_its_element_or_attribute_and_each_is_read_as_it_was(
            text in "\\PC{0,40}|[<>&\"'a;#lt \n]{0,40}"
        ) {
            let escaped = escaped(&text);
            prop_assert!(!escaped.contains(['<', '>', '"']), "{escaped}");
            let shown = text.chars().map(|letter| if is_direction_mark(letter) { '\u{fffd}' } else { letter });
            prop_assert_eq!(unescape(&escaped), shown.collect::<String>());
        }

        #[test]
        fn no_character_is_left_that_hides_or_turns(text in any::<String>()) {
            let is_hidden = |letter: char| {
                (letter.is_control() && letter != '\n' && letter != '\t') || is_direction_mark(letter)
            };
            prop_assert!(!escaped(&text).chars().any(is_hidden));
        }
    }

    #[test]
    fn the_style_that_the_policy_allows_is_the_one_that_is_sent() {
        assert_eq!(without_hidden(STYLE), STYLE);
        assert!(!STYLE.contains(['<', '&']), "it stands in a page as it is");
    }
}
