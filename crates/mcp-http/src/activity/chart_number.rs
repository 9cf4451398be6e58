//! Numbers as charts take them.

/// Returns a number for a chart.
#[allow(clippy::cast_precision_loss, reason = "a chart is drawn in pixels")]
pub(crate) fn as_f64(number: u64) -> f64 {
    number as f64
}
