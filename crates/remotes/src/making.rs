//! [`Maker`]: makes what a remote connects to. [`destroy`] destroys it.

use crate::binary::{COPY_TIMEOUT, CopiedBinary, copied_binary};
use crate::commands::{CommandValues, RemoteCommands};
use crate::error::{CopyError, Error};
use crate::lease::Lease;
use crate::options::RemoteOptions;
use crate::settings::RemoteSettings;
use error_causes::chain;
use process_runner::Runner;
use std::time::{Duration, Instant};

/// Makes what the remote of some settings connects to.
#[derive(Clone, Copy)]
pub(crate) struct Maker<'a> {
    pub(crate) settings: &'a RemoteSettings,
    pub(crate) options: &'a RemoteOptions,
    /// The name of the caller, as the commands get it.
    pub(crate) caller: &'a str,
}

impl Maker<'_> {
    /// Returns the values of the commands, with the program that is copied there.
    pub(crate) fn values<'v>(&'v self, copied: Option<&'v CopiedBinary>) -> CommandValues<'v> {
        CommandValues {
            program: self.options.program,
            caller: self.caller,
            copied: copied.map(|copied| (copied.name.as_str(), copied.sha256.as_str())),
            ..CommandValues::default()
        }
    }

    /// Returns the program that is copied there if it is missing. None if the settings copy none.
    pub(crate) async fn copied_binary(&self) -> Result<Option<CopiedBinary>, Error> {
        if !self.settings.copy_binary {
            return Ok(None);
        }
        // A command that tells the architecture is of a kind that creates nothing.
        let architecture = match &self.settings.kind.commands.architecture {
            None => None,
            Some(_) => RemoteCommands::new(self.settings, &self.values(None))?.architecture,
        };
        let RemoteOptions { runner, program, version, .. } = self.options;
        copied_binary(self.settings, architecture.as_ref(), runner, program, version).await.map(Some)
    }

    /// Writes down a lease and creates what it names, if the kind has leases. The lease is put into `lease` first: it names
    /// what must be destroyed if this fails.
    pub(crate) async fn make(
        &self,
        copied: Option<&CopiedBinary>,
        lease: &mut Option<Lease>,
    ) -> Result<(), Error> {
        if !self.settings.kind.has_lease() {
            return Ok(());
        }
        let leases = self.options.leases.as_ref().ok_or(Error::NoLeaseFolder)?;
        *lease = leases.begin(self.settings, &self.values(copied)).await?;
        let Some(lease) = lease else { return Ok(()) };
        let commands = lease.commands.clone();
        let created = self.create(&commands).await;
        match &created {
            // Such a kind creates with the connection.
            Ok(()) if commands.create.is_none() => {}
            Ok(()) => lease.note_created().await?,
            // An engine whose command was ended may go on.
            Err(error) if !matches!(error, Error::TimedOut { .. }) => lease.note_not_created(),
            Err(_) => {}
        }
        created
    }

    /// Creates what `connect` connects to, and waits until it is ready.
    async fn create(&self, commands: &RemoteCommands) -> Result<(), Error> {
        const FIRST_DELAY: Duration = Duration::from_millis(100);
        // The delay doubles, because a container is ready in milliseconds and a virtual machine in minutes.
        const MAX_DELAY: Duration = Duration::from_secs(2);
        let limit = self.settings.create_timeout;
        let deadline = Instant::now() + limit;
        // A command that begins at the deadline still gets a moment, so that it fails by its own message.
        let left = || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        if let Some(create) = &commands.create {
            create.run(&self.options.runner, None, left()).await?;
        }
        let Some(ready) = &commands.ready else { return Ok(()) };
        let mut delay = FIRST_DELAY;
        loop {
            match ready.run(&self.options.runner, None, left()).await {
                Ok(_) => return Ok(()),
                Err(last) if Instant::now() + delay >= deadline => {
                    return Err(Error::NotReady { seconds: limit.as_secs(), last: Box::new(last) });
                }
                Err(_) => tokio::time::sleep(delay).await,
            }
            delay = (delay * 2).min(MAX_DELAY);
        }
    }

    /// Copies the program there.
    pub(crate) async fn copy(&self, commands: &RemoteCommands, copied: &CopiedBinary) -> Result<(), Error> {
        let Some(copy) = &commands.copy else {
            return Err(CopyError::NoCommand.into());
        };
        tracing::info!("copying {} to {}", copied.name, self.settings.label());
        let bytes = copied.bytes()?;
        copy.run(&self.options.runner, Some(bytes), COPY_TIMEOUT).await.map(drop)
    }
}

/// Destroys what a lease names. If that fails, the lease stays written down.
pub(crate) async fn destroy(lease: Lease, runner: &Runner) {
    let id = lease.id().to_owned();
    if let Err(error) = lease.end(runner).await {
        tracing::error!("{id} could not be destroyed, and stays written down: {}", chain(&error));
    }
}
