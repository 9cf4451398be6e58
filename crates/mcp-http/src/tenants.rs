//! The same host over the roots of each caller.

use core_tools::mcp::{Host, WorkspaceEffects};
use core_tools::workspace::Workspace;
use process_runner::Runner;
use role_policy::{Caller, Policy, ToolFacts};
use server_setup::sessions::{self, SessionHandle};
use server_setup::settings::Settings;
use server_setup::{confinement, identity, setup, toolsets};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The hosts, one for each choice of roots. A caller's first root is where its relative paths begin, and what it runs
/// reaches its roots and no others.
pub(crate) struct Tenants {
    settings: Settings,
    pub(crate) runner: Runner,
    /// Agents' sessions, each its caller's.
    pub(crate) agents: SessionHandle,
    /// What a policy knows of the tools.
    pub(crate) facts: Vec<ToolFacts<'static>>,
    /// What the rules of a policy must fit.
    checked: (Arc<Workspace>, WorkspaceEffects),
    /// Over all the roots.
    whole: Host,
    narrower: Mutex<HashMap<Arc<[PathBuf]>, Host>>,
    /// How what the tools run is confined, in words.
    pub(crate) confinement: String,
}

impl std::fmt::Debug for Tenants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tenants").field("whole", &self.whole).finish_non_exhaustive()
    }
}

/// Choices of roots that are kept ready. Tokens are the operator's, so more is a mistake.
const MAX_CHOICES: usize = 4096;

impl Tenants {
    /// Sets up what `settings` describe. `again` reads them again.
    pub(crate) fn new(
        settings: Settings,
        again: impl Fn() -> Result<Settings, String> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let workspace = Arc::new(setup::workspace(&settings)?);
        let runner = setup::runner(&settings)?;
        let facts = toolsets::facts(&settings, &workspace, &runner)?;
        let loaded = identity::policy(&settings, &facts)?;
        settings.config.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        loaded.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let effects = WorkspaceEffects::new(Arc::clone(&workspace), std::env::var_os("PATH"));
        check(&loaded.policy, &workspace, &effects)?;
        let checked = (Arc::clone(&workspace), effects.clone());
        let confine = confinement::confine_all(&settings, &workspace)?;
        let confinement = confine.to_string();
        let mut host = setup::host(&settings, loaded.policy);
        let agents = sessions::of_many(&settings, again);
        let callers = toolsets::Callers::Many(&agents);
        for toolset in toolsets::all(&settings, &workspace, &runner, confine, callers)? {
            host = host.toolset(toolset);
        }
        let audit = identity::audit(&settings)?;
        let whole = host
            .effects(Arc::new(effects))
            .audit(audit)
            .many_callers(true)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { settings, runner, agents, facts, checked, whole, narrower: Mutex::default(), confinement })
    }

    /// Refuses a policy whose exclusions do not hold here.
    pub(crate) fn check(&self, policy: &Policy) -> Result<(), String> {
        let (workspace, effects) = &self.checked;
        check(policy, workspace, effects)
    }

    /// The host over all the roots.
    pub(crate) fn whole(&self) -> &Host {
        &self.whole
    }

    /// The host over `roots`; none are all.
    pub(crate) fn host(&self, roots: &Arc<[PathBuf]>) -> Result<Host, String> {
        if roots.is_empty() {
            return Ok(self.whole.clone());
        }
        let mut narrower = self.narrower();
        if let Some(host) = narrower.get(roots) {
            return Ok(host.clone());
        }
        if narrower.len() >= MAX_CHOICES {
            return Err(format!("more than {MAX_CHOICES} choices of roots"));
        }
        let host = self.make(roots)?;
        narrower.insert(Arc::clone(roots), host.clone());
        Ok(host)
    }

    fn narrower(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<[PathBuf]>, Host>> {
        self.narrower.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, roots: &[PathBuf]) -> Result<Host, String> {
        for root in roots {
            if !self.lies_inside(root) {
                return Err(format!("the root {} of a token lies in no root of the server", root.display()));
            }
        }
        let workspace = Arc::new(setup::workspace_of(&self.settings, roots)?);
        let effects = WorkspaceEffects::new(Arc::clone(&workspace), std::env::var_os("PATH"));
        let confine = confinement::confine_all(&self.settings, &workspace)?;
        let callers = toolsets::Callers::Many(&self.agents);
        let toolsets = toolsets::all(&self.settings, &workspace, &self.runner, confine, callers)?;
        self.whole.over(toolsets, Arc::new(effects)).map_err(|error| error.to_string())
    }

    /// By where it really lies: a link in a root may lead anywhere.
    fn lies_inside(&self, root: &Path) -> bool {
        let Ok(real) = root.canonicalize() else { return false };
        // Named by its real path, or a link that is turned later would take the token with it.
        real == root
            && self
                .settings
                .roots
                .iter()
                .any(|outer| outer.canonicalize().is_ok_and(|outer| real.starts_with(outer)))
    }

    /// Forgets the hosts whose roots nobody has any more.
    pub(crate) fn keep(&self, named: &[Arc<[PathBuf]>]) {
        self.narrower().retain(|roots, _| named.contains(roots));
    }

    /// All the hosts that somebody used.
    pub(crate) fn hosts(&self) -> Vec<Host> {
        let narrower: Vec<Host> = self.narrower().values().cloned().collect();
        std::iter::once(self.whole.clone()).chain(narrower).collect()
    }

    /// Ends what `principal` left running.
    pub(crate) fn leave(&self, principal: &str) {
        self.hosts().iter().for_each(|host| host.leave(principal));
    }
}

/// Anybody may come, in any role.
fn check(policy: &Policy, workspace: &Workspace, effects: &WorkspaceEffects) -> Result<(), String> {
    policy.roles().try_for_each(|role| identity::check_places(policy, &Caller::new(role), workspace, effects))
}
