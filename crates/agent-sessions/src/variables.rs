//! The environment variables that the processes of a session get.

/// The environment variable with the id of the session, for the session's processes.
pub const SESSION_VARIABLE: &str = "CORETOOLS_SESSION_ID";
/// The environment variable with the credential of the session.
pub const CREDENTIAL_VARIABLE: &str = "CORETOOLS_SESSION_TOKEN";
/// The environment variable with the state directory, by which the session's processes find their supervisor. The
/// variable sets the configuration key `sessions.state_dir`.
pub const STATE_VARIABLE: &str = "CORETOOLS_SESSIONS_STATE_DIR";
/// The environment variable with the agent's command from which the session's role was derived.
pub(crate) const AGENT_COMMAND_VARIABLE: &str = "CORETOOLS_AGENT_COMMAND";
