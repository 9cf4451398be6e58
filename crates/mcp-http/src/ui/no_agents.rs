//! This server supervises no agents.

use super::Viewer;
use super::html::Html;
use crate::route::App;

#[allow(clippy::unused_async, reason = "where there are some it asks")]
pub(super) async fn section(_app: &App, _viewer: &Viewer) -> Html {
    Html::default()
}
