//! The hosts of callers whose tools work on remotes: each caller has a remote of its own, by the template that its token or
//! JWT names.

use core_tools::mcp::{Host, HostError};
use process_runner::Runner;
use remotes::{Remote, caller_slug};
use role_policy::Caller;
use server_setup::remote::{self, ForwardedTools};
use server_setup::sessions::SessionHandle;
use server_setup::settings::Settings;
use server_setup::toolsets::Callers;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The callers that may have remotes at once. The operator names the remotes, so that more is a mistake.
const MAX_REMOTES: usize = 4096;

/// The time that an engine has to destroy what was created, when a caller may call no more and when the server ends.
pub(crate) const DESTROY_LIMIT: Duration = Duration::from_secs(20);

/// The error of a caller whose remote cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteHostError {
    #[error(transparent)]
    Setup(#[from] server_setup::Error),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("more than {MAX_REMOTES} callers have remotes")]
    TooMany,
    #[error("the configuration has no [remotes.{name}]")]
    NoSuchRemote { name: String },
}

/// A caller and the template of its remote. A caller whose token names another one gets another.
type RemoteKey = (Arc<str>, Arc<str>);

/// The hosts of callers whose tools work on remotes.
pub(crate) struct RemoteHosts {
    /// Runs the commands of the kinds. Not the runner of tools: each connection is a program that runs for long.
    runner: Runner,
    hosts: Mutex<HashMap<RemoteKey, RemoteHost>>,
}

#[derive(Clone)]
struct RemoteHost {
    host: Host,
    remote: Remote,
}

impl fmt::Debug for RemoteHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteHosts").field("hosts", &self.lock().len()).finish_non_exhaustive()
    }
}

impl RemoteHosts {
    /// Creates the hosts of a server that has none yet.
    pub(crate) fn new(settings: &Settings) -> Result<Self, RemoteHostError> {
        Ok(Self { runner: remote::runner(settings, MAX_REMOTES)?, hosts: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RemoteKey, RemoteHost>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the host of `caller`, the principal `name`, on its own remote of the template `template`.
    pub(crate) fn host(
        &self,
        settings: &Settings,
        agents: &SessionHandle,
        full_host: &Host,
        (name, template): (&Arc<str>, &Arc<str>),
        caller: &Caller,
    ) -> Result<Host, RemoteHostError> {
        let key = (Arc::clone(name), Arc::clone(template));
        let mut hosts = self.lock();
        if let Some(found) = hosts.get(&key) {
            return Ok(found.host.clone());
        }
        if hosts.len() >= MAX_REMOTES {
            // The bearers of JWTs come and go, and nobody says which of them have gone.
            hosts.retain(|_, host| host.remote.is_in_use());
        }
        if hosts.len() >= MAX_REMOTES {
            return Err(RemoteHostError::TooMany);
        }
        let remote = settings.config.remotes.iter().find(|remote| remote.name == **template);
        let remote = remote.ok_or_else(|| RemoteHostError::NoSuchRemote { name: template.to_string() })?;
        // Under the lock: of two remotes for one caller one would be lost, with what was created for it.
        let remote =
            remote::connect_for(settings, remote.clone(), caller, caller_slug(name), self.runner.clone())?;
        let ForwardedTools { toolsets, effects, roots, .. } =
            remote::forwarded_tools(settings, &self.runner, Callers::Many(agents), &remote)?;
        let host = full_host.for_workspace(toolsets, Arc::new(effects), roots)?;
        hosts.insert(key, RemoteHost { host: host.clone(), remote });
        Ok(host)
    }

    /// Tells all remotes of a policy that was read again.
    pub(crate) fn policy_has_changed(&self, path: &Path) {
        for RemoteHost { remote, .. } in self.lock().values() {
            remote::policy_has_changed(remote, path);
        }
    }

    /// Ends the remotes of `principal`, and destroys what was created for them.
    pub(crate) fn release(&self, principal: &str) {
        let ended: Vec<RemoteHost> =
            self.lock().extract_if(|(name, _), _| **name == *principal).map(|(_, host)| host).collect();
        for RemoteHost { remote, .. } in ended {
            tokio::spawn(async move { remote.end(DESTROY_LIMIT).await });
        }
    }

    /// Makes the remotes of the configuration ahead from now on, as many as each says.
    pub(crate) fn start_warm(&self, settings: &Settings) {
        remote::start_warm(settings, &self.runner);
    }

    /// Ends all remotes at once, and those that were made ahead.
    pub(crate) async fn shutdown(&self, settings: &Settings, grace: Duration) {
        settings.warm_remotes.end(DESTROY_LIMIT).await;
        let ended: Vec<RemoteHost> = std::mem::take(&mut *self.lock()).into_values().collect();
        let ending: Vec<_> = ended
            .into_iter()
            .map(|RemoteHost { remote, .. }| tokio::spawn(async move { remote.end(DESTROY_LIMIT).await }))
            .collect();
        for task in ending {
            if let Err(error) = task.await {
                tracing::error!(%error, "a remote may not have ended");
            }
        }
        self.runner.shutdown(grace).await;
    }
}
