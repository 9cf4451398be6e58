//! The activity of the last hour and day, for the page: calls, latency, programs, processors and memory, by caller and by
//! tool. It is bounded, in memory, and gone with the process.

mod activity_counts;
mod chart_number;
mod history;
mod latency;
mod machine;
mod sampler;
mod timeline;

pub(crate) use chart_number::as_f64;
pub(crate) use history::{
    ActivityHistory, ActivityView, CurrentUse, NamedActivity, STRANGERS, TimeBucketView,
};
pub(crate) use machine::{DiskSpace, MachineState};
pub(crate) use sampler::sample_continuously;
pub(crate) use timeline::TimeSpan;
