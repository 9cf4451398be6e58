//! The error with which a session cannot begin.

use super::pinned_tools::PinError;
use std::io;

/// The error with which a session cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file of pinned tools cannot be used.
    #[error(transparent)]
    Pins(#[from] PinError),
    /// The operating system gives no thread or pipe.
    #[error("cannot begin the session")]
    System(#[from] io::Error),
}
