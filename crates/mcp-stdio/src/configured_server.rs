//! The server that the settings describe: over folders of this machine, or in front of a remote.

use server_setup::Error;
use server_setup::settings::Settings;
use server_setup::setup::LocalServer;

/// Builds the server that `settings` describe.
pub(crate) fn server(settings: Settings) -> Result<LocalServer, Error> {
    #[cfg(all(feature = "remotes", unix))]
    return server_setup::remote::server(settings);
    #[cfg(not(all(feature = "remotes", unix)))]
    server_setup::setup::server(settings)
}
