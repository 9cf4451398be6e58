//! The activity of the last hour and day, for the page: calls, latency, programs, processors and memory, by caller and by
//! tool. It is bounded, in memory, and gone with the process.

mod counts;
mod history;
mod latency;
mod machine;
mod sampler;
mod timeline;

pub(crate) use history::{ActivityHistory, ActivityView, CurrentUse, NamedActivity, PieceView, STRANGERS};
pub(crate) use machine::{DiskSpace, MachineState};
pub(crate) use sampler::sample_continuously;
pub(crate) use timeline::TimeSpan;

/// Returns a number for a chart.
#[allow(clippy::cast_precision_loss, reason = "a chart is drawn in pixels")]
pub(crate) fn as_f64(number: u64) -> f64 {
    number as f64
}
