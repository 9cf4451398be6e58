//! The audit: one line of JSON for each call and each refusal, in a file that is only added to.
//!
//! [`Audit`] writes a [`CallRecord`] as one entry of the crate `audit-log`. Of arguments it holds the
//! [summary](arguments), names and sizes, and the [detail](detail) that the level asks for.

mod arguments;
mod detail;
mod log;
mod record;

pub(crate) use arguments::ArgumentSummary;
pub use arguments::summarize_arguments;
pub use audit_log::{AuditEntry, AuditLevel, CallDecision, CallTargets, Outcome};
pub(crate) use detail::DetailSource;
pub use log::{Audit, AuditFailureMode, AuditFileHealth};
pub use record::CallRecord;
