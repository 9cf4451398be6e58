//! The audit: one line of JSON for each call and each refusal, in a file that is only added to.
//!
//! [`Audit`] writes a [`CallRecord`] as one line of a [file](file) that is rotated by size. Of arguments it holds the
//! [summary](arguments): names and sizes, never values.

mod arguments;
mod file;
mod line;
mod log;
mod record;

pub(crate) use arguments::ArgumentSummary;
pub use arguments::summarize_arguments;
pub use log::{Audit, AuditFailureMode};
pub use record::{CallDecision, CallRecord, Outcome};
