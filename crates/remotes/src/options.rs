//! [`RemoteOptions`]: the program, its runner and the folder of leases, by which a remote is made and called.

use crate::lease::LeaseFolder;
use crate::settings::RemoteSettings;
use process_runner::Runner;

/// The parts of a [`Remote`](crate::Remote).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RemoteOptions {
    /// The name of this program.
    pub program: &'static str,
    /// The version of this program, which the server there must have too.
    pub version: &'static str,
    /// The name of the caller, as the commands of the kind get it ([`caller_slug`](crate::caller_slug)).
    pub caller: String,
    /// Runs the commands of the kind.
    pub runner: Runner,
    /// The folder of leases. Without it no kind can be used that creates anything.
    pub leases: Option<LeaseFolder>,
    /// The remotes of the configuration, which leases of other servers may name.
    pub configured: Vec<RemoteSettings>,
}

impl RemoteOptions {
    /// The options of a program of one local caller.
    pub fn new(program: &'static str, version: &'static str, runner: Runner) -> Self {
        Self { program, version, caller: "local".to_owned(), runner, leases: None, configured: Vec::new() }
    }
}
