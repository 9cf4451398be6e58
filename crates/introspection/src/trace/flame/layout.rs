//! [`FlameLayout`]: the positions of the bars of a flame graph.

use crate::trace::call_tree::{CallNode, CallTree, ProfiledFunction};

/// A bar, with its position in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlameBar<'a> {
    pub(super) frame: Option<&'a ProfiledFunction>,
    /// The row, counted from the bottom, where the outermost callers are.
    pub(super) row: usize,
    pub(super) left: f64,
    pub(super) width: f64,
    pub(super) total: u64,
}

/// The bars of a graph.
#[derive(Clone, Debug)]
pub(super) struct FlameLayout<'a> {
    pub(super) bars: Vec<FlameBar<'a>>,
    pub(super) rows: usize,
    /// The number of rows that are left out, as the graph is too high.
    pub(super) hidden_rows: usize,
    pub(super) total: u64,
}

impl<'a> FlameLayout<'a> {
    /// Lays out `tree` in bars of at least `min_bar_width` pixels, in at most `max_rows` rows.
    #[allow(clippy::cast_precision_loss, reason = "positions in a picture")]
    pub(super) fn new(tree: &'a CallTree, width: f64, min_bar_width: f64, max_rows: usize) -> Self {
        let nodes = tree.nodes_in_order();
        let total = nodes.first().map_or(0, |root| root.total);
        let scale = if total == 0 { 0.0 } else { width / total as f64 };
        let is_drawn = |node: &&CallNode<'_>| node.depth == 0 || node.total as f64 * scale >= min_bar_width;
        let deepest = nodes.iter().filter(is_drawn).map(|node| node.depth + 1).max().unwrap_or(1);
        let rows = deepest.min(max_rows.max(1));
        let bars = nodes
            .iter()
            .filter(is_drawn)
            .filter(|node| node.depth < rows)
            .map(|node| FlameBar {
                frame: node.frame,
                row: node.depth,
                left: node.start as f64 * scale,
                // The root has the whole width even where nothing was sampled.
                width: if node.depth == 0 { width } else { node.total as f64 * scale },
                total: node.total,
            })
            .collect();
        Self { bars, rows, hidden_rows: deepest - rows, total }
    }
}
