//! State that the application serves as JSON: a page of its own, Go's `expvar`, Spring's actuator.

use crate::inspect::Error;
use crate::inspect::http::{self, MAX_BYTES};
use crate::inspect::provider::{Provider, ProviderFuture, StateRequest};
use crate::inspect::state_value::ProviderError;
use crate::inspect::target::{InspectTarget, TargetError, TargetUrl, behind};
use std::net::SocketAddr;

/// Answers from a JSON document that the application serves.
pub(in crate::inspect) struct HttpProvider {
    /// The URL of the settings. It may hold a secret, so messages show host and port only.
    pub(in crate::inspect) url: Option<TargetUrl>,
}

impl Provider for HttpProvider {
    fn name(&self) -> &'static str {
        "http"
    }

    fn read<'a>(&'a self, request: &'a StateRequest<'a>) -> ProviderFuture<'a> {
        Box::pin(async move {
            let (url, is_configured) = match (request.target, &self.url) {
                (Some(InspectTarget::Http(url)), _) => (url, request.is_target_configured),
                (Some(_), _) => {
                    return Err(ProviderError::NotAsked("the target is no http:// URL"));
                }
                (None, Some(url)) => (url, true),
                (None, None) => return Err(ProviderError::NotAsked("STATE_URL is not set")),
            };
            let mut addresses = url.loopback();
            // Only the settings may name another machine, so only for them a name is resolved.
            if addresses.is_empty() && is_configured {
                addresses = resolve(url).await?;
            }
            if addresses.is_empty() {
                return Err(Error::from(TargetError::NotLocal(url.authority())).into());
            }
            // A restricted caller may only ask a process that it could look into.
            if !is_configured {
                behind(url.port(), request.required_workspace()).map_err(Error::from)?;
            }
            let location = format!("http://{}", url.authority());
            let body = http::get(url, &addresses, MAX_BYTES)
                .await
                .map_err(|source| Error::Http { location: location.clone(), source })?;
            let document = serde_json::from_slice(&body)
                .map_err(|error| Error::Document { location: location.clone(), reason: error.to_string() })?;
            request.json(format!("http: {}", url.authority()), &document)
        })
    }
}

/// Resolves the host of a URL of the settings.
async fn resolve(url: &TargetUrl) -> Result<Vec<SocketAddr>, Error> {
    let addresses = tokio::net::lookup_host((url.host(), url.port())).await;
    let failed = |error| Error::Http {
        location: format!("http://{}", url.authority()),
        source: http::HttpGetError::Connect(error),
    };
    Ok(addresses.map_err(failed)?.collect())
}
