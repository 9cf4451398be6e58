//! The network of one caller's commands.

use super::egress_log::EgressLog;
use super::error::EgressError;
use super::gateway::{EgressGateways, GatewayKey};
use super::gateway_means::GatewayMeans;
use egress_proxy::{CredentialRule, NetworkAccess, SecretSource};
use process_runner::{Command, Confinement, Runner};
use std::path::Path;
use std::sync::Arc;

/// The value that programs get for a variable whose value the proxy puts into their requests.
const PLACEHOLDER: &str = "the-proxy-adds-this-credential";

/// The network that commands may reach, and the gateways through which they reach named hosts.
#[derive(Clone, Debug, Default)]
pub(in crate::ci) struct EgressScope {
    pub(in crate::ci) access: NetworkAccess,
    pub(in crate::ci) log: Option<EgressLog>,
    /// The principal of the caller, whose gateways nobody else uses.
    pub(in crate::ci) owner: Option<String>,
    /// The credentials that the proxy puts into the requests of the caller's commands.
    pub(in crate::ci) credentials: Vec<Arc<CredentialRule>>,
    /// The most that programs of the server may read. No secret may be a part of it.
    readable: Arc<Confinement>,
    gateways: EgressGateways,
}

impl EgressScope {
    /// Returns the network of commands that reach every host, on a server whose programs may read what `readable` grants.
    pub(in crate::ci) fn new(readable: Confinement) -> Self {
        Self { readable: Arc::new(readable), ..Self::default() }
    }

    /// Returns `command` behind `confinement`, and with its way to the network. `temp` is the folder in which commands have
    /// temporary files.
    pub(in crate::ci) fn apply(
        &self,
        command: Command,
        confinement: Confinement,
        temp: &Path,
        runner: &Runner,
    ) -> Result<Command, EgressError> {
        // Whatever the command may reach: it may inherit the variable.
        let placeholders = self.credentials.iter().filter_map(|rule| match &rule.secret {
            SecretSource::Variable(name) => Some((name.clone(), PLACEHOLDER)),
            _ => None,
        });
        let command = command.envs(placeholders);
        let NetworkAccess::Hosts(hosts) = &self.access else {
            // The confinement itself allows or refuses the network.
            return Ok(command.confined(confinement));
        };
        let is_reachable = |rule: &&Arc<CredentialRule>| hosts.check(&rule.host, rule.port).is_ok();
        let key = GatewayKey {
            owner: self.owner.clone(),
            hosts: hosts.clone(),
            credentials: self.credentials.iter().filter(is_reachable).cloned().collect(),
        };
        let gateway = self.gateways.open(&key, &GatewayMeans { readable: &self.readable, temp, runner })?;
        if let Some(log) = &self.log {
            gateway.report_to(log);
        }
        Ok(gateway.apply(command, confinement))
    }
}
