//! Where each bar of a flame graph stands.

use crate::trace::calls::{CallTree, Frame, Placed};

/// One bar.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bar<'a> {
    pub(super) frame: Option<&'a Frame>,
    /// From the bottom, where callers stand.
    pub(super) row: usize,
    pub(super) left: f64,
    pub(super) width: f64,
    pub(super) total: u64,
}

/// All bars, in a graph that is `width` wide.
#[derive(Clone, Debug)]
pub(super) struct Layout<'a> {
    pub(super) bars: Vec<Bar<'a>>,
    pub(super) rows: usize,
    /// Rows above the last one that is shown.
    pub(super) hidden_rows: usize,
    pub(super) total: u64,
}

impl<'a> Layout<'a> {
    /// The graph of `tree`: bars of at least `narrowest`, in at most `most_rows`.
    #[allow(clippy::cast_precision_loss, reason = "positions in a picture")]
    pub(super) fn new(tree: &'a CallTree, width: f64, narrowest: f64, most_rows: usize) -> Self {
        let places = tree.places();
        let total = places.first().map_or(0, |root| root.total);
        let scale = if total == 0 { 0.0 } else { width / total as f64 };
        let wide = |place: &&Placed<'_>| place.depth == 0 || place.total as f64 * scale >= narrowest;
        let deepest = places.iter().filter(wide).map(|place| place.depth + 1).max().unwrap_or(1);
        let rows = deepest.min(most_rows.max(1));
        let bars = places
            .iter()
            .filter(wide)
            .filter(|place| place.depth < rows)
            .map(|place| Bar {
                frame: place.frame,
                row: place.depth,
                left: place.start as f64 * scale,
                width: if place.depth == 0 { width } else { place.total as f64 * scale },
                total: place.total,
            })
            .collect();
        Self { bars, rows, hidden_rows: deepest - rows, total }
    }
}
