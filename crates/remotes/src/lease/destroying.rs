//! [`destroy`]: the commands that destroy what a lease names.

use super::invalid::InvalidLease;
use crate::commands::RemoteCommands;
use crate::error::Error;
use process_runner::Runner;
use std::time::Duration;

/// The time that the commands of a lease may take.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// The pauses after attempts to destroy that failed.
const DESTROY_PAUSES: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_millis(500), Duration::from_secs(1)];

/// The result of destroying what a lease names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destroyed {
    /// The engine had it, and has it no more.
    Listed,
    /// The engine did not have it.
    NotListed,
    /// The kind cannot list.
    Unknown,
}

/// Destroys what a lease names, unless the engine says that it is gone.
pub(super) async fn destroy(
    id: &str,
    commands: &RemoteCommands,
    runner: &Runner,
) -> Result<Destroyed, Error> {
    let mut destroyed = Destroyed::Unknown;
    if let Some(list) = &commands.list {
        let listed = list.run(runner, None, COMMAND_TIMEOUT).await?;
        // A list that was cut may have lost the id, and destroying is right for what is gone too.
        if !listed.stdout.truncated() && !listed.stdout.text().lines().any(|line| line.trim() == id) {
            return Ok(Destroyed::NotListed);
        }
        destroyed = Destroyed::Listed;
    }
    match &commands.destroy {
        Some(destroy) => {
            // An engine that is still busy with the end of a container refuses to remove it at that moment. Destroying is
            // right for what is gone too, so that it can be asked again.
            for pause in DESTROY_PAUSES {
                match destroy.run(runner, None, COMMAND_TIMEOUT).await {
                    Err(Error::CommandFailed { .. }) => tokio::time::sleep(pause).await,
                    result => return result.map(|_| destroyed),
                }
            }
            destroy.run(runner, None, COMMAND_TIMEOUT).await.map(|_| destroyed)
        }
        None => Err(InvalidLease::NoDestroy.into()),
    }
}
