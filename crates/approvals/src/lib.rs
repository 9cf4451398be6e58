//! Calls that wait for the word of a person: the queue of questions, the text that a person reads, and a folder through
//! which a terminal answers.
//!
//! The crate knows no policy and no protocol. A server puts a question into an [`ApprovalQueue`] and waits; a page or a
//! terminal answers it. The first answer counts, and no answer is no.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod answer;
mod error;
mod folder;
mod form;
mod grant;
mod pending_question;
mod question;
mod queue;
mod shown_text;

pub use answer::{ApprovalAnswer, ApprovalVerdict};
pub use error::Error;
pub use folder::{ApprovalFolder, FolderQuestion};
pub use form::NoVerdict;
pub use pending_question::PendingQuestion;
pub use question::ApprovalQuestion;
pub use queue::{ApprovalQueue, PendingApproval, random_id};
pub use shown_text::{shown_arguments, shown_text};
