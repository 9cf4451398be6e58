//! Stands in for the credentials of a gateway where the feature `credentials` is off: a role that has some is refused.

use super::error::{CredentialError, EgressError};
use super::gateway_means::GatewayMeans;
use egress_proxy::{CredentialRule, EgressProxy};
use std::sync::Arc;

/// Returns `proxy`, if there are no credentials to put into requests.
pub(super) fn add_credentials(
    proxy: EgressProxy,
    rules: &[Arc<CredentialRule>],
    _means: &GatewayMeans<'_>,
) -> Result<(EgressProxy, Option<String>), EgressError> {
    match rules.first() {
        None => Ok((proxy, None)),
        Some(rule) => {
            Err(EgressError::Credential { rule: rule.to_string(), problem: CredentialError::NotLinked })
        }
    }
}
