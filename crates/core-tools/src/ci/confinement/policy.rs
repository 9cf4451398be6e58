//! The decision whether and how commands are confined.

use super::private_temp::PrivateTempDir;
use super::scope::CommandScope;
use super::toolchain_paths::ToolchainPaths;
use crate::workspace::Workspace;
use process_runner::{Command, Confinement, ConfinementLevel};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The decision whether commands are confined, and to what.
///
/// [`Confinement`] documents what a confined command can reach, and what no confinement stops: Unix sockets
/// with a path, UDP, and files that a command leaves where others run them.
///
/// The [`Display`](fmt::Display) form is one line that says what is in force.
#[derive(Clone, Debug)]
pub struct ConfinementPolicy(ConfinementState);

#[derive(Clone, Debug)]
enum ConfinementState {
    Off { reason: String },
    On { confinement: Confinement, best_effort: bool, temp: Arc<PrivateTempDir> },
    Deferred(Arc<OnceLock<ConfinementPolicy>>),
}

/// The pending decision of a [`ConfinementPolicy::deferred`] policy.
#[derive(Debug)]
pub struct DeferredConfinement(Arc<OnceLock<ConfinementPolicy>>);

impl DeferredConfinement {
    /// Puts `policy` in force for all commands that were created with the deferred one.
    pub fn set(self, policy: ConfinementPolicy) {
        // The cell is empty: there is one handle to it, and this call consumes it.
        let _ = self.0.set(policy);
    }
}

impl ConfinementPolicy {
    /// Creates a policy that confines nothing: commands may reach what the server may. `reason` is shown in
    /// diagnostics.
    pub fn off(reason: impl Into<String>) -> Self {
        Self(ConfinementState::Off { reason: reason.into() })
    }

    /// Creates a policy whose content follows later, and the handle that sets it.
    ///
    /// A server needs this because how a caller's commands are confined follows from the role policy, and that
    /// judges tools which must exist before it. Until the handle is used, no command starts.
    pub fn deferred() -> (Self, DeferredConfinement) {
        let decision = Arc::default();
        (Self(ConfinementState::Deferred(Arc::clone(&decision))), DeferredConfinement(decision))
    }

    /// Creates a policy under which commands may read and write the roots of `workspace` and `temp`, read the
    /// system's programs and configuration, and use `toolchains`; see [`Confinement::project`]. TCP is allowed.
    /// Where that cannot be enforced, no command starts.
    pub fn new(workspace: &Workspace, toolchains: &ToolchainPaths, temp: PrivateTempDir) -> Self {
        let mut confinement = Confinement::project(workspace.roots(), temp.path());
        for path in &toolchains.read {
            confinement = confinement.read(path);
        }
        for path in &toolchains.write {
            confinement = confinement.write(path);
        }
        Self(ConfinementState::On { confinement, best_effort: false, temp: Arc::new(temp) })
    }

    /// Allows or forbids TCP. Allowed by default. No effect if confinement is off.
    #[must_use]
    pub fn network(self, allowed: bool) -> Self {
        self.map(|confinement| confinement.network(allowed))
    }

    /// Sets the layers of the confinement; see [`ConfinementLevel`]. No effect if confinement is off.
    #[must_use]
    pub fn level(self, level: ConfinementLevel) -> Self {
        self.map(|confinement| confinement.level(level))
    }

    /// Returns the level that is in force: [`ConfinementLevel::None`] where confinement is off or not available.
    pub fn achieved_level(&self) -> ConfinementLevel {
        match self.mode() {
            ConfinementState::Off { .. } | ConfinementState::Deferred(_) => ConfinementLevel::None,
            ConfinementState::On { confinement, .. } => confinement.status().level,
        }
    }

    /// Hides `files` from commands, wherever they lie except in the roots; see [`Confinement::without`].
    #[must_use]
    pub fn without(self, files: &[PathBuf]) -> Self {
        self.map(|confinement| confinement.without(files))
    }

    /// Lets commands start where the confinement can be enforced only in part, or not at all. They do not by
    /// default. The [`Display`](fmt::Display) form says what is missing.
    #[must_use]
    pub fn best_effort(mut self, allowed: bool) -> Self {
        if let ConfinementState::On { best_effort, .. } = &mut self.0 {
            *best_effort = allowed;
        }
        self.map(|confinement| confinement.best_effort(allowed))
    }

    /// Returns the policy for a caller whose commands may reach less.
    pub(in crate::ci) fn narrowed(self, scope: &CommandScope) -> Self {
        self.map(|confinement| {
            let narrowed = confinement.narrowed(scope.read.as_deref(), scope.write.as_deref());
            scope.system_calls.iter().fold(narrowed, |confinement, permission| confinement.allow(*permission))
        })
    }

    /// Returns the temporary folder that commands may write, or `None` where they may write any.
    #[cfg_attr(not(feature = "testing"), allow(dead_code, reason = "reports of tests go there"))]
    pub(in crate::ci) fn temp_folder(&self) -> Option<&Path> {
        match self.mode() {
            ConfinementState::Off { .. } | ConfinementState::Deferred(_) => None,
            ConfinementState::On { temp, .. } => Some(temp.path()),
        }
    }

    /// Returns the confinement of a command that somebody else starts, for a caller who may reach `scope`. `None` where it is
    /// off.
    pub fn confinement_within(&self, scope: &CommandScope) -> Option<Confinement> {
        self.clone().narrowed(scope).confinement()
    }

    /// Returns the confinement of a command, or `None` where it is off.
    pub(in crate::ci) fn confinement(&self) -> Option<Confinement> {
        match self.mode() {
            ConfinementState::Off { .. } => None,
            ConfinementState::On { confinement, .. } => Some(confinement.clone()),
            // A confinement that grants nothing: not even the program itself can be executed.
            ConfinementState::Deferred(_) => Some(Confinement::default()),
        }
    }

    /// Returns true if commands that are started are confined, if only in part. They are not where confinement is off, or
    /// where the system has not the means.
    pub fn is_enforced(&self) -> bool {
        match self.mode() {
            ConfinementState::Off { .. } => false,
            ConfinementState::Deferred(_) => true,
            ConfinementState::On { .. } => Confinement::available().is_ok(),
        }
    }

    /// Returns `command` behind this policy's confinement.
    pub(in crate::ci) fn apply(&self, command: Command) -> Command {
        match self.confinement() {
            Some(confinement) => command.confined(confinement),
            None => command,
        }
    }

    /// Returns the mode in force: that of the decision, where one was deferred and has been made.
    fn mode(&self) -> &ConfinementState {
        match &self.0 {
            ConfinementState::Deferred(decision) => decision.get().map_or(&self.0, Self::mode),
            mode => mode,
        }
    }

    fn map(mut self, change: impl FnOnce(Confinement) -> Confinement) -> Self {
        self.0 = self.mode().clone();
        if let ConfinementState::On { confinement, .. } = &mut self.0 {
            *confinement = change(std::mem::take(confinement));
        }
        self
    }
}

impl fmt::Display for ConfinementPolicy {
    /// Writes "off: …", "level `namespaces`: files, …", or "not available: …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mode() {
            ConfinementState::Off { reason } => write!(f, "off: {reason}"),
            ConfinementState::Deferred(_) => f.write_str("not decided; so no command starts"),
            ConfinementState::On { confinement, best_effort, .. } => {
                let is_complete = match Confinement::available() {
                    Ok(_) => {
                        let status = confinement.status();
                        status.fmt(f)?;
                        status.missing.is_empty()
                    }
                    Err(why) => {
                        write!(f, "not available: {why}")?;
                        false
                    }
                };
                match (is_complete, best_effort) {
                    (true, _) => Ok(()),
                    (false, false) => f.write_str("; so no command starts"),
                    (false, true) => f.write_str("; commands start all the same"),
                }
            }
        }
    }
}
