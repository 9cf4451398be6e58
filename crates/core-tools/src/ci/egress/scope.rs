//! The network of one caller's commands.

use super::error::EgressError;
use super::gateway::EgressGateways;
use super::log::EgressLog;
use egress_proxy::NetworkAccess;
use process_runner::Command;

/// The network that commands may reach, and the gateways through which they reach named hosts.
#[derive(Clone, Debug, Default)]
pub(in crate::ci) struct EgressScope {
    pub(in crate::ci) access: NetworkAccess,
    pub(in crate::ci) log: Option<EgressLog>,
    /// The principal of the caller, whose gateways nobody else uses.
    pub(in crate::ci) owner: Option<String>,
    gateways: EgressGateways,
}

impl EgressScope {
    /// Returns `command`, which is confined, with its way to the network.
    pub(in crate::ci) fn apply(&self, command: Command) -> Result<Command, EgressError> {
        match &self.access {
            NetworkAccess::Hosts(hosts) => {
                let gateway = self.gateways.open(self.owner.as_deref(), hosts)?;
                if let Some(log) = &self.log {
                    gateway.report_to(log);
                }
                Ok(gateway.apply(command))
            }
            // The confinement itself allows or refuses the network.
            _ => Ok(command),
        }
    }
}
