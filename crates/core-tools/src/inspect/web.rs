//! State that the application serves as JSON: a page of its own, Go's `expvar`, Spring's actuator.

use super::Error;
use super::http::{self, MOST_BYTES};
use super::provider::{Passed, Provider, Reading, Request};
use super::target::{Target, Url, behind};
use std::net::SocketAddr;

pub(super) struct Web {
    /// The URL of the settings. It may hold a secret, so no message shows more than its host.
    pub(super) url: Option<Url>,
}

impl Provider for Web {
    fn name(&self) -> &'static str {
        "http"
    }

    fn read<'a>(&'a self, request: &'a Request<'a>) -> Reading<'a> {
        Box::pin(async move {
            let (url, is_operators) = match (request.target, &self.url) {
                (Some(Target::Http(url)), _) => (url, request.is_operators),
                (Some(_), _) => return Err(Passed::Nothing("the target is no http:// URL".to_owned())),
                (None, Some(url)) => (url, true),
                (None, None) => return Err(Passed::Nothing("STATE_URL is not set".to_owned())),
            };
            let mut addresses = url.loopback();
            if addresses.is_empty() && is_operators {
                addresses = resolve(url).await?;
            }
            if addresses.is_empty() {
                return Err(Error::from(super::Unreachable::NotLocal(url.authority())).into());
            }
            if !is_operators {
                behind(url.port(), request.within()).map_err(Error::from)?;
            }
            let what = format!("http://{}", url.authority());
            let body = http::get(url, &addresses, MOST_BYTES)
                .await
                .map_err(|source| Error::Http { what: what.clone(), source })?;
            let document = serde_json::from_slice(&body)
                .map_err(|error| Error::Document { what: what.clone(), why: error.to_string() })?;
            request.json(format!("http: {}", url.authority()), &document)
        })
    }
}

/// Where a URL of the settings leads.
async fn resolve(url: &Url) -> Result<Vec<SocketAddr>, Error> {
    let found = tokio::net::lookup_host((url.host(), url.port())).await;
    let source = |error| Error::Http {
        what: format!("http://{}", url.authority()),
        source: http::Error::Connect(error),
    };
    Ok(found.map_err(source)?.collect())
}
