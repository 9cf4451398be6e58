//! The session that this server runs in, as its supervisor knows it.

use crate::error::Error;
use crate::settings::{SessionIdentity, Settings};

/// Asks the supervisor of the sessions whose credential this is.
///
/// # Errors
/// The credential is nobody's, or the supervisor cannot be reached.
pub(crate) fn ask_supervisor(settings: &Settings, credential: String) -> Result<SessionIdentity, Error> {
    use core_tools::sessions::{SupervisorClient, SupervisorRequest};
    let state = crate::sessions::state_folder(settings)?;
    // A runtime of its own on a thread of its own: settings are read before the server's runtime exists, and one cannot
    // be started within another.
    let ask = move || -> Result<_, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Error::SessionRuntime)?;
        let answer =
            runtime.block_on(SupervisorClient::new(state).ask(&SupervisorRequest::Identify { credential }));
        Ok(serde_json::from_value(answer?)?)
    };
    std::thread::spawn(ask).join().map_err(|_| Error::SessionNotAsked)?
}
