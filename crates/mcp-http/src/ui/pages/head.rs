//! The head of every page.

use super::super::html_response::STYLE;
use maud::{Markup, PreEscaped, html};

/// Renders the head of a page.
pub(super) fn head(title: &str, is_live: bool) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            title { (title) " · CoreTools" }
            meta name="viewport" content="width=device-width, initial-scale=1";
            link rel="icon" href="data:,";
            style { (PreEscaped(STYLE)) }
            @if is_live {
                noscript { meta http-equiv="refresh" content="10"; }
                script src="/ui/live.js" defer {}
            }
        }
    }
}
