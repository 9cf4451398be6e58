//! Stands in for the credentials of a gateway where the feature `credentials` is off: a role that has some is refused.

use super::error::{CredentialError, EgressError};
use super::gateway::GatewayMeans;
use egress_proxy::{CredentialRule, EgressProxy};
use process_runner::{Command, Confinement};
use std::convert::Infallible;
use std::sync::Arc;

/// The credentials of a gateway, which there are none of.
#[derive(Debug)]
pub(super) struct GatewayCredentials(Infallible);

impl GatewayCredentials {
    pub(super) fn add_to(
        proxy: EgressProxy,
        rules: &[Arc<CredentialRule>],
        _means: &GatewayMeans<'_>,
    ) -> Result<(EgressProxy, Option<Self>), EgressError> {
        match rules.first() {
            None => Ok((proxy, None)),
            Some(rule) => {
                Err(EgressError::Credential { rule: rule.to_string(), problem: CredentialError::NotLinked })
            }
        }
    }

    pub(super) fn apply(&self, _command: Command, _confinement: Confinement) -> Command {
        match self.0 {}
    }
}
