//! [`ServedRemotes`]: the remotes of a server, which end with it.

#[cfg(all(feature = "remotes", unix))]
use error_causes::chain;
use server_setup::setup::LocalServer;
use std::path::Path;
use std::time::Duration;

/// The remotes of a server: that of all its tools, and those that its caller has chosen. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ServedRemotes {
    #[cfg(all(feature = "remotes", unix))]
    remote: Option<remotes::Remote>,
    #[cfg(all(feature = "remotes", unix))]
    chosen: Option<server_setup::remote::ChosenRemotes>,
    #[cfg(all(feature = "remotes", unix))]
    warm: remotes::WarmRemotes,
}

#[cfg(all(feature = "remotes", unix))]
impl ServedRemotes {
    /// Returns the remotes of `server`.
    pub(crate) fn of(server: &LocalServer) -> Self {
        let (remote, chosen) = (server.remote.clone(), server.chosen_remotes.clone());
        Self { remote, chosen, warm: server.warm_remotes.clone() }
    }

    /// Makes remotes ahead from now on, where the configuration says so.
    pub(crate) fn start_warm(&self) {
        if let Some(remote) = &self.remote {
            remote.start_warm();
        }
        if let Some(chosen) = &self.chosen
            && let Err(error) = chosen.start_warm()
        {
            tracing::error!("no remotes are made ahead: {}", chain(&error));
        }
    }

    /// Tells all remotes of a policy that was read again.
    pub(crate) fn policy_has_changed(&self, path: &Path) {
        if let Some(remote) = &self.remote {
            server_setup::remote::policy_has_changed(remote, path);
        }
        if let Some(chosen) = &self.chosen {
            chosen.policy_has_changed(path);
        }
    }

    /// Returns true if something was created for them, which an engine has to destroy.
    pub(crate) fn have_leases(&self) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.settings().kind.has_lease())
            || self.warm.have_leases()
            || self.chosen.as_ref().is_some_and(server_setup::remote::ChosenRemotes::has_lease)
    }

    /// Ends all remotes, and destroys what was created for them, within `limit`. Commands then have `grace` to end.
    pub(crate) async fn end(&self, limit: Duration, grace: Duration) {
        let remote = async {
            if let Some(remote) = &self.remote {
                remote.end(limit).await;
            }
        };
        let chosen = async {
            if let Some(chosen) = &self.chosen {
                chosen.end(limit, grace).await;
            }
        };
        tokio::join!(remote, chosen, self.warm.end(limit));
    }
}

#[cfg(not(all(feature = "remotes", unix)))]
#[allow(clippy::unused_self, clippy::unused_async, reason = "a program without remotes has none to end")]
impl ServedRemotes {
    /// Returns the remotes of `server`, which has none.
    pub(crate) fn of(_: &LocalServer) -> Self {
        Self {}
    }

    /// Makes nothing.
    pub(crate) fn start_warm(&self) {}

    /// Tells nobody.
    pub(crate) fn policy_has_changed(&self, _: &Path) {}

    /// Returns false.
    pub(crate) fn have_leases(&self) -> bool {
        false
    }

    /// Ends nothing.
    pub(crate) async fn end(&self, _: Duration, _: Duration) {}
}
