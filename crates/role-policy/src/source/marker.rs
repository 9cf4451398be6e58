//! The content of a marker file, and the reasons not to trust one.

use std::io;

/// The content of a marker file: the role and session of the agent that runs beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoleMarker {
    /// The role.
    pub role: String,
    /// The session, where it names one.
    pub session: Option<String>,
    /// True if it was signed with the key.
    pub signed: bool,
}

/// The error for a marker that is not trusted. The caller is then in the minimal role.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MarkerError {
    /// There is no marker, although there must be one.
    #[error("there is no marker, and with a key there must be one")]
    Missing,
    /// It cannot be opened or read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is not what a broker writes, or others may have written it.
    #[error("{0}")]
    Untrusted(String),
    /// Others may have written it, or may read a key.
    #[error(transparent)]
    File(#[from] trusted_file::Error),
    /// It is empty, too long, or does not say what a marker says.
    #[error("{0}")]
    Malformed(&'static str),
    /// It carries no signature that the key made.
    #[error("its signature is missing or was not made with this key")]
    Signature,
    /// Its time is over.
    #[error("it has expired")]
    Expired,
}

/// The names that markers have: our own, and that of the role filter which came before.
pub const MARKER_NAMES: [&str; 2] = ["coretools_role", "teleclaude_role"];

/// The file beside `teleclaude_role` that names its session.
pub const SESSION_MARKER_NAME: &str = "teleclaude_session_id";

/// The shortest key, in bytes.
pub const MIN_KEY_BYTES: usize = 32;
