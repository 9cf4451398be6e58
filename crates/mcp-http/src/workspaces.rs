//! The tools over the roots of each caller.

use crate::auth::principal::Principal;
#[cfg(feature = "remotes")]
use crate::remote_hosts::{DESTROY_LIMIT, RemoteHostError, RemoteHosts};
use core_tools::mcp::{AuditLevel, Host, HostError, WorkspaceEffects};
use core_tools::workspace::Workspace;
use process_runner::Runner;
use role_policy::{Caller, Policy, ToolFacts};
use server_setup::sessions::SessionHandle;
use server_setup::settings::Settings;
use server_setup::{
    approvals, audit, confinement, environment, policy, resources, served_paths, sessions, setup, toolsets,
};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
#[cfg(feature = "remotes")]
use std::time::Duration;

/// The tool hosts, one for each choice of roots. The relative paths of a caller begin in its first root, and the programs
/// that it runs reach its roots and no others.
pub(crate) struct Workspaces {
    settings: Settings,
    pub(crate) runner: Runner,
    /// The sessions of agents that callers have started.
    pub(crate) agents: SessionHandle,
    /// The facts that a policy knows of the tools.
    pub(crate) facts: Vec<ToolFacts<'static>>,
    workspace: Arc<Workspace>,
    effects: WorkspaceEffects,
    /// The host over all the roots.
    full_host: Host,
    /// The hosts of callers whose tools work on remotes.
    #[cfg(feature = "remotes")]
    pub(crate) remotes: RemoteHosts,
    /// The hosts over fewer roots.
    hosts_by_roots: Mutex<HashMap<Arc<[PathBuf]>, Host>>,
    /// The confinement of what the tools run, in words.
    pub(crate) confinement: String,
    /// True if what the tools run is confined.
    pub(crate) is_confined: bool,
}

impl std::fmt::Debug for Workspaces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspaces").field("full_host", &self.full_host).finish_non_exhaustive()
    }
}

/// The choices of roots that are kept ready. The operator makes the tokens, so that more is a mistake.
const MAX_CHOICES: usize = 4096;

/// The error of tools that cannot be set up over the roots of a server or a caller.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkspacesError {
    #[error(transparent)]
    Setup(#[from] server_setup::Error),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("more than {MAX_CHOICES} choices of roots")]
    TooManyChoices,
    #[cfg(feature = "remotes")]
    #[error(
        "--root: a server of several callers has no root on a remote; give tokens a remote, or set `choosable = true`"
    )]
    RemoteRoot,
    #[cfg(feature = "remotes")]
    #[error(transparent)]
    Remote(#[from] RemoteHostError),
    #[cfg(not(feature = "remotes"))]
    #[error("this program is built without remotes, and cannot reach `{name}`")]
    NoRemotes { name: String },
    #[error("the root {} of a token lies in no root of the server", .root.display())]
    RootOutside { root: PathBuf },
}

impl Workspaces {
    /// Sets up the tools that `settings` describe. `reread` reads the settings again.
    pub(crate) fn new(
        settings: Settings,
        reread: impl Fn() -> Result<Settings, server_setup::Error> + Send + Sync + 'static,
    ) -> Result<Self, WorkspacesError> {
        #[cfg(feature = "remotes")]
        if settings.remote.is_some()
            || settings.chosen_remotes.as_ref().is_some_and(|chosen| chosen.roots().next().is_some())
        {
            return Err(WorkspacesError::RemoteRoot);
        }
        let workspace = Arc::new(resources::workspace(&settings)?.for_remote_callers());
        let runner = resources::runner(&settings)?;
        let facts = toolsets::facts(&settings, &workspace, &runner)?;
        let loaded = policy::at_start(&settings, &facts)?;
        settings.config.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        loaded.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let effects = WorkspaceEffects::new(Arc::clone(&workspace), std::env::var_os("PATH"));
        check_policy(&loaded.policy, &workspace, &effects)?;
        let confine = confinement::confine_all(&settings, &workspace)?;
        let level = confine.achieved_level();
        let (confinement, is_confined) = (confine.to_string(), confine.is_enforced());
        let mut host = setup::host(&settings, loaded.policy)
            .approvals(approvals::of_many(&settings))
            .roots(workspace.roots());
        let agents = sessions::of_many(&settings, reread);
        let callers = toolsets::ServedCallers::Many(&agents);
        let environment = environment::for_callers(&settings, &runner);
        for toolset in toolsets::all(&settings, &workspace, &runner, confine, environment, callers)? {
            host = host.toolset(toolset);
        }
        let audit = audit::open(&settings)?;
        // Without an audit, the page still shows the targets of calls.
        let audit_level = audit::level(&settings, AuditLevel::Targets);
        if let Some(audit) = &audit {
            audit.set_confinement(level);
        }
        let full_host = host
            .effects(served_paths::effects_of(&settings, effects.clone()))
            .audit(audit)
            .audit_level(audit_level)
            .multi_tenant(true)
            .build()?;
        #[cfg(feature = "remotes")]
        let remotes = RemoteHosts::new(&settings)?;
        Ok(Self {
            settings,
            #[cfg(feature = "remotes")]
            remotes,
            runner,
            agents,
            facts,
            workspace,
            effects,
            full_host,
            hosts_by_roots: Mutex::default(),
            confinement,
            is_confined,
        })
    }

    /// Refuses a policy whose exclusions do not hold in these roots.
    pub(crate) fn check_policy(&self, policy: &Policy) -> Result<(), server_setup::Error> {
        check_policy(policy, &self.workspace, &self.effects)
    }

    /// Returns the host over all the roots.
    pub(crate) fn full_host(&self) -> &Host {
        &self.full_host
    }

    /// Returns the host of `caller`: on its remote, if `principal` has one, else over its roots.
    pub(crate) fn host_of(&self, principal: &Principal, caller: &Caller) -> Result<Host, WorkspacesError> {
        let Some(template) = &principal.remote else { return self.host(&principal.roots) };
        #[cfg(feature = "remotes")]
        return Ok(self.remotes.host(
            &self.settings,
            &self.agents,
            &self.full_host,
            (&principal.name, template),
            caller,
        )?);
        #[cfg(not(feature = "remotes"))]
        {
            let _ = caller;
            Err(WorkspacesError::NoRemotes { name: template.to_string() })
        }
    }

    /// Returns the host over `roots`, or over all where that is empty.
    pub(crate) fn host(&self, roots: &Arc<[PathBuf]>) -> Result<Host, WorkspacesError> {
        if roots.is_empty() {
            return Ok(self.full_host.clone());
        }
        let mut hosts = self.hosts_by_roots();
        if let Some(host) = hosts.get(roots) {
            return Ok(host.clone());
        }
        if hosts.len() >= MAX_CHOICES {
            return Err(WorkspacesError::TooManyChoices);
        }
        // Built under the lock: of two hosts for the same roots one would be dropped, with the programs that it has
        // started.
        let host = self.build_host(roots)?;
        hosts.insert(Arc::clone(roots), host.clone());
        Ok(host)
    }

    fn hosts_by_roots(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<[PathBuf]>, Host>> {
        self.hosts_by_roots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn build_host(&self, roots: &[PathBuf]) -> Result<Host, WorkspacesError> {
        for root in roots {
            if !self.lies_inside(root) {
                return Err(WorkspacesError::RootOutside { root: root.clone() });
            }
        }
        let workspace = Arc::new(resources::workspace_of(&self.settings, roots)?.for_remote_callers());
        let effects = WorkspaceEffects::new(Arc::clone(&workspace), std::env::var_os("PATH"));
        let confine = confinement::confine_all(&self.settings, &workspace)?;
        let callers = toolsets::ServedCallers::Many(&self.agents);
        let environment = environment::for_callers(&self.settings, &self.runner);
        let toolsets =
            toolsets::all(&self.settings, &workspace, &self.runner, confine, environment, callers)?;
        let roots = workspace.roots().map(Path::to_owned).collect();
        Ok(self.full_host.for_workspace(
            toolsets,
            served_paths::effects_of(&self.settings, effects),
            roots,
        )?)
    }

    /// Returns true if `root` is the real path of a folder in one of the server's roots: a link in a root may lead
    /// anywhere.
    fn lies_inside(&self, root: &Path) -> bool {
        let Ok(real) = root.canonicalize() else { return false };
        // A root that is named by a link would move when the link is changed.
        real == root
            && self
                .settings
                .roots
                .iter()
                .any(|outer| outer.canonicalize().is_ok_and(|outer| real.starts_with(outer)))
    }

    /// Drops the hosts whose roots are none of `in_use`.
    pub(crate) fn retain(&self, in_use: &[Arc<[PathBuf]>]) {
        self.hosts_by_roots().retain(|roots, _| in_use.contains(roots));
    }

    /// Returns all hosts that a caller has used.
    pub(crate) fn hosts(&self) -> Vec<Host> {
        let narrowed: Vec<Host> = self.hosts_by_roots().values().cloned().collect();
        std::iter::once(self.full_host.clone()).chain(narrowed).collect()
    }

    /// Makes the remotes of the configuration ahead from now on, as many as each says.
    #[cfg(feature = "remotes")]
    pub(crate) fn start_warm_remotes(&self) {
        self.remotes.start_warm(&self.settings);
    }

    /// Ends the remotes of all callers at once.
    #[cfg(feature = "remotes")]
    pub(crate) async fn end_remotes(&self, grace: Duration) {
        let chosen = async {
            if let Some(chosen) = &self.settings.chosen_remotes {
                chosen.end(DESTROY_LIMIT, grace).await;
            }
        };
        tokio::join!(self.remotes.shutdown(&self.settings, grace), chosen);
    }

    /// Tells the remotes of all callers of a policy that was read again.
    #[cfg(feature = "remotes")]
    pub(crate) fn policy_has_changed(&self, path: &Path) {
        self.remotes.policy_has_changed(path);
        if let Some(chosen) = &self.settings.chosen_remotes {
            chosen.policy_has_changed(path);
        }
    }

    /// Ends the programs that `principal` has running in the background.
    pub(crate) fn end_programs(&self, principal: &str) {
        self.hosts().iter().for_each(|host| host.release_caller(principal));
        #[cfg(feature = "remotes")]
        self.remotes.release(principal);
        #[cfg(feature = "remotes")]
        if let Some(chosen) = &self.settings.chosen_remotes {
            chosen.release(principal, DESTROY_LIMIT);
        }
    }
}

/// Refuses a policy whose exclusions do not hold in `workspace` for one of its roles: a caller may have any.
fn check_policy(
    policy: &Policy,
    workspace: &Workspace,
    effects: &WorkspaceEffects,
) -> Result<(), server_setup::Error> {
    policy
        .roles()
        .try_for_each(|role| policy::check_exclusions(policy, &Caller::new(role), workspace, effects))
}
