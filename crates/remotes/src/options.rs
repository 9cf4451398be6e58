//! [`RemoteOptions`]: the program, its runner and the registry of leases, by which a remote is made and called.

use crate::lease::LeaseRegistry;
use crate::reaping;
use crate::settings::RemoteSettings;
use process_runner::Runner;

/// The parts of a [`Remote`](crate::Remote).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RemoteOptions {
    /// The name of this program.
    pub program: &'static str,
    /// The version of this program, in the name of its copy. The first message has the one that the server there must have.
    pub version: &'static str,
    /// The name of the caller, as the commands of the kind get it ([`caller_slug`](crate::caller_slug)).
    pub caller: String,
    /// Runs the commands of the kind.
    pub runner: Runner,
    /// The registry of leases. Without it no kind can be used that creates anything.
    pub leases: Option<LeaseRegistry>,
    /// The remotes of the configuration, which leases of other servers may name.
    pub configured: Vec<RemoteSettings>,
}

impl RemoteOptions {
    /// The options of a program of one local caller.
    pub fn new(program: &'static str, version: &'static str, runner: Runner) -> Self {
        Self { program, version, caller: "local".to_owned(), runner, leases: None, configured: Vec::new() }
    }

    /// Destroys what other servers have left behind from now on, in the background. A remote that is connected begins that as
    /// well, so this is for a server that may not be called for long. To be called in a runtime.
    pub fn start_reaping(&self) {
        if let Some(leases) = &self.leases {
            reaping::start(leases, &self.configured, &self.runner);
        }
    }
}
