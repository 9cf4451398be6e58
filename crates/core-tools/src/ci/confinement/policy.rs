//! The decision whether and how commands are confined.

use super::private_temp::PrivateTempDir;
use super::scope::CommandScope;
use super::toolchain_paths::ToolchainPaths;
use crate::ci::egress::{EgressError, EgressScope};
use crate::workspace::Workspace;
use egress_proxy::NetworkAccess;
use process_runner::{
    Command, Confinement, ConfinementLevel, Protection, ResourceControl, ResourceControls, Runner,
};
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
    Off { reason: String, network: NetworkAccess },
    On { confinement: Confinement, best_effort: bool, temp: Arc<PrivateTempDir>, egress: EgressScope },
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
        Self(ConfinementState::Off { reason: reason.into(), network: NetworkAccess::Allow })
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
        let (temp, egress) = (Arc::new(temp), EgressScope::new(confinement.clone()));
        Self(ConfinementState::On { confinement, best_effort: false, temp, egress })
    }

    /// Sets the network that commands may reach, as far as they were allowed to before. All of it by default.
    ///
    /// Where confinement is off, no command starts unless this is [`NetworkAccess::Allow`].
    #[must_use]
    pub fn network(mut self, access: &NetworkAccess) -> Self {
        // A deferred policy is replaced by its decision, which could otherwise not be narrowed for one caller.
        self.0 = self.mode().clone();
        match &mut self.0 {
            ConfinementState::Off { network, .. } => *network = network.narrowed_by(access),
            ConfinementState::On { confinement, egress, .. } => {
                egress.access = egress.access.narrowed_by(access);
                let has_network = egress.access != NetworkAccess::None;
                *confinement = std::mem::take(confinement).network(has_network);
            }
            ConfinementState::Deferred(_) => {}
        }
        self
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

    /// Lets commands start where the confinement can be enforced only in part, or not at all. By default, such commands
    /// do not start. The [`Display`](fmt::Display) form says what is missing.
    #[must_use]
    pub fn best_effort(mut self, allowed: bool) -> Self {
        if let ConfinementState::On { best_effort, .. } = &mut self.0 {
            *best_effort = allowed;
        }
        self.map(|confinement| confinement.best_effort(allowed))
    }

    /// Lets commands write `path` too. No effect if confinement is off.
    #[cfg(feature = "git")]
    #[must_use]
    pub(in crate::ci) fn write(self, path: &Path) -> Self {
        self.map(|confinement| confinement.write(path))
    }

    /// Returns the policy for a caller whose commands may reach less.
    pub(in crate::ci) fn narrowed(self, scope: &CommandScope) -> Self {
        let narrow = |confinement: Confinement| {
            let narrowed = confinement.narrowed(scope.read.as_deref(), scope.write.as_deref());
            scope.system_calls.iter().fold(narrowed, |confinement, permission| confinement.allow(*permission))
        };
        let mut narrowed = self.map(narrow).network(&scope.network);
        if let ConfinementState::On { egress, .. } = &mut narrowed.0 {
            egress.log.clone_from(&scope.egress_log);
            egress.owner.clone_from(&scope.principal);
            egress.credentials.clone_from(&scope.credentials);
        }
        narrowed
    }

    /// Returns the network that commands may reach.
    #[cfg_attr(not(feature = "git"), allow(dead_code, reason = "only git asks"))]
    pub(in crate::ci) fn network_access(&self) -> NetworkAccess {
        match self.mode() {
            ConfinementState::Off { network, .. } => network.clone(),
            ConfinementState::On { egress, .. } => egress.access.clone(),
            ConfinementState::Deferred(_) => NetworkAccess::None,
        }
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
    ///
    /// # Errors
    /// The network is limited in a way that cannot be kept for what this server does not start.
    pub fn confinement_within(&self, scope: &CommandScope) -> Result<Option<Confinement>, EgressError> {
        self.clone().narrowed(scope).foreign_confinement()
    }

    /// Returns `command`, which is to run in the foreground of this process, behind the confinement, the limits and the network
    /// of a caller who may reach `scope`. `runner` is asked for where the network has named hosts.
    ///
    /// The command is in namespaces only where a limit needs them: in namespaces, an interactive shell has no job control.
    ///
    /// # Errors
    /// The network that the policy allows cannot be kept.
    pub fn apply_in_foreground(
        &self,
        command: Command,
        scope: &CommandScope,
        runner: impl FnOnce() -> Runner,
    ) -> Result<Command, EgressError> {
        let narrowed = self.clone().narrowed(scope);
        let command = command.resource_limits(scope.resource_limits);
        if let ConfinementState::On { egress, .. } = narrowed.mode()
            && matches!(egress.access, NetworkAccess::Hosts(_))
        {
            return narrowed.apply(command, &runner());
        }
        let counts_in_namespace = || {
            scope.resource_limits.processes.is_some()
                && ResourceControls::available(false).processes != ResourceControl::Cgroup
        };
        Ok(match narrowed.foreign_confinement()? {
            Some(confinement) if counts_in_namespace() => command.confined(confinement),
            Some(confinement) => command.confined(confinement.outliving()),
            None => command,
        })
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

    /// Returns the confinement of what this server does not start itself, such as an agent session.
    pub(in crate::ci) fn foreign_confinement(&self) -> Result<Option<Confinement>, EgressError> {
        match self.mode() {
            ConfinementState::On { egress, .. } if matches!(egress.access, NetworkAccess::Hosts(_)) => {
                Err(EgressError::NotOurs(egress.access.to_string()))
            }
            ConfinementState::On { confinement, egress, .. }
                if egress.access == NetworkAccess::None && !refuses_tcp(confinement) =>
            {
                Err(EgressError::TcpNotRefused)
            }
            ConfinementState::Off { reason, network } if !network.is_unrestricted() => {
                Err(EgressError::Unconfined { access: network.to_string(), reason: reason.clone() })
            }
            _ => Ok(self.confinement()),
        }
    }

    /// Returns true if commands that are started are confined, if only in part. False if confinement is off, or if
    /// the system cannot confine.
    pub fn is_enforced(&self) -> bool {
        match self.mode() {
            ConfinementState::Off { .. } => false,
            ConfinementState::Deferred(_) => true,
            ConfinementState::On { .. } => Confinement::available().is_ok(),
        }
    }

    /// Returns `command` behind this policy's confinement, and with its way to the network.
    ///
    /// # Errors
    /// The network that the policy allows cannot be kept.
    pub(in crate::ci) fn apply(&self, command: Command, runner: &Runner) -> Result<Command, EgressError> {
        match self.mode() {
            ConfinementState::Off { reason, network } if !network.is_unrestricted() => {
                Err(EgressError::Unconfined { access: network.to_string(), reason: reason.clone() })
            }
            // Best effort is for the rest of the confinement: a network that was closed must not be open.
            ConfinementState::On { confinement, egress, .. }
                if egress.access == NetworkAccess::None && !refuses_tcp(confinement) =>
            {
                Err(EgressError::TcpNotRefused)
            }
            // Behind a Unix socket with a path, another program resolves names or connects for whoever asks.
            ConfinementState::On { confinement, egress, .. }
                if matches!(egress.access, NetworkAccess::Hosts(_)) && !hides_unix_sockets(confinement) =>
            {
                Err(EgressError::UnixSocketsReachable(confinement.status().level))
            }
            ConfinementState::On { confinement, egress, temp, .. } => {
                egress.apply(command, confinement.clone(), temp.path(), runner)
            }
            ConfinementState::Off { .. } => Ok(command),
            ConfinementState::Deferred(_) => Ok(command.confined(Confinement::default())),
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

/// Returns true if a program with this confinement, which allows no network, cannot connect by TCP.
fn refuses_tcp(confinement: &Confinement) -> bool {
    let status = confinement.status();
    let has = |protection| status.enforced.contains(&protection);
    // Landlock's rights on TCP do not know MPTCP, which falls back to TCP. The filter of system calls refuses its sockets.
    has(Protection::Network) || (has(Protection::Tcp) && has(Protection::SystemCalls))
}

/// Returns true if a program with this confinement cannot connect to the Unix sockets of others.
fn hides_unix_sockets(confinement: &Confinement) -> bool {
    confinement.status().enforced.contains(&Protection::Mounts)
}

impl fmt::Display for ConfinementPolicy {
    /// Writes "off: …", "level `namespaces`: files, …", or "not available: …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mode() {
            ConfinementState::Off { reason, network } if network.is_unrestricted() => {
                write!(f, "off: {reason}")
            }
            ConfinementState::Off { reason, network } => {
                write!(f, "off: {reason}; and the network is to be limited ({network}), so no command starts")
            }
            ConfinementState::Deferred(_) => f.write_str("not decided; so no command starts"),
            ConfinementState::On { confinement, best_effort, egress, .. } => {
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
                    (true, _) => {}
                    (false, false) => f.write_str("; so no command starts")?,
                    (false, true) => f.write_str("; commands start all the same")?,
                }
                match &egress.access {
                    NetworkAccess::Hosts(hosts) => write!(f, "; hosts: {hosts}")?,
                    _ => return Ok(()),
                }
                let credentials: Vec<_> = egress.credentials.iter().map(ToString::to_string).collect();
                match credentials.is_empty() {
                    true => Ok(()),
                    false => write!(f, "; credentials for: {}", credentials.join(", ")),
                }
            }
        }
    }
}
