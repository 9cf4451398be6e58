//! The hosts of callers whose tools work on remotes: each caller has a remote of its own, by the template that its token or
//! JWT names.

use core_tools::mcp::{Host, HostError};
use process_runner::Runner;
use remotes::{Remote, caller_slug};
use role_policy::Caller;
use server_setup::remote::{self, ForwardedTools};
use server_setup::sessions::SessionHandle;
use server_setup::settings::Settings;
use server_setup::toolsets::ServedCallers;
use std::collections::{BTreeSet, HashMap};
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

/// A caller, the template of its remote, and its roles. A caller whose token names another template, or other roles, gets
/// another remote: the server there judges by the roles with which its channel was opened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RemoteKey {
    principal: Arc<str>,
    template: Arc<str>,
    /// In order, and each once.
    roles: BTreeSet<String>,
}

/// The place of a remote, which the first caller fills while others wait for that one alone.
type RemoteSlot = Arc<Mutex<Option<RemoteHost>>>;

/// The hosts of callers whose tools work on remotes.
pub(crate) struct RemoteHosts {
    /// Runs the commands of the kinds. Not the runner of tools: each connection is a program that runs for long.
    runner: Runner,
    hosts: Mutex<HashMap<RemoteKey, RemoteSlot>>,
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

    fn lock(&self) -> MutexGuard<'_, HashMap<RemoteKey, RemoteSlot>> {
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
        let slot = self.slot(RemoteKey {
            principal: Arc::clone(name),
            template: Arc::clone(template),
            roles: caller.roles().map(str::to_owned).collect(),
        })?;
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = &*slot {
            return Ok(found.host.clone());
        }
        let remote = settings.config.remotes.iter().find(|remote| remote.name == **template);
        let remote = remote.ok_or_else(|| RemoteHostError::NoSuchRemote { name: template.to_string() })?;
        // Under the lock of its place: of two remotes for one caller one would be lost, with what was created for it.
        let remote =
            remote::connect_for(settings, remote.clone(), caller, caller_slug(name), self.runner.clone())?;
        let ForwardedTools { toolsets, effects, roots, .. } =
            remote::forwarded_tools(settings, &self.runner, ServedCallers::Many(agents), &remote)?;
        let host = full_host.for_workspace(toolsets, Arc::new(effects), roots)?;
        *slot = Some(RemoteHost { host: host.clone(), remote });
        Ok(host)
    }

    /// Returns the place of a remote. What takes time is done with the lock of that place: callers of others do not wait.
    fn slot(&self, key: RemoteKey) -> Result<RemoteSlot, RemoteHostError> {
        let mut hosts = self.lock();
        if let Some(found) = hosts.get(&key) {
            return Ok(Arc::clone(found));
        }
        if hosts.len() >= MAX_REMOTES {
            // The bearers of JWTs come and go, and nobody says which of them have gone.
            hosts.retain(|_, slot| match slot.try_lock() {
                // A count of one: nobody is about to fill it.
                Ok(host) => {
                    host.as_ref().is_some_and(|host| host.remote.is_in_use())
                        || host.is_none() && Arc::strong_count(slot) > 1
                }
                Err(_) => true,
            });
        }
        if hosts.len() >= MAX_REMOTES {
            return Err(RemoteHostError::TooMany);
        }
        Ok(Arc::clone(hosts.entry(key).or_default()))
    }

    /// Tells all remotes of a policy that was read again.
    pub(crate) fn policy_has_changed(&self, path: &Path) {
        let slots: Vec<RemoteSlot> = self.lock().values().cloned().collect();
        for slot in slots {
            if let Some(RemoteHost { remote, .. }) = &*slot.lock().unwrap_or_else(PoisonError::into_inner) {
                remote::policy_has_changed(remote, path);
            }
        }
    }

    /// Ends the remotes of `principal`, and destroys what was created for them.
    pub(crate) fn release(&self, principal: &str) {
        let ended: Vec<RemoteSlot> =
            self.lock().extract_if(|key, _| *key.principal == *principal).map(|(_, slot)| slot).collect();
        for RemoteHost { remote, .. } in ended.iter().filter_map(taken) {
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
        let ended: Vec<RemoteSlot> = std::mem::take(&mut *self.lock()).into_values().collect();
        let ending: Vec<_> = ended
            .iter()
            .filter_map(taken)
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

fn taken(slot: &RemoteSlot) -> Option<RemoteHost> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}
