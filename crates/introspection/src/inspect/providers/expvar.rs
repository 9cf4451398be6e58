//! Reads the variables that a Go program publishes by `expvar`, at a port of the process and without any setting.
//!
//! Only a program that contains the path of `expvar` is asked: a request to any other would be one to the application.

use crate::inspect::Error;
use crate::inspect::http::{self, MAX_BYTES};
use crate::inspect::proc;
use crate::inspect::provider::{Provider, ProviderFuture, StateRequest};
use crate::inspect::state_value::ProviderError;
use crate::inspect::target::{LanguageRuntime, Process, TargetUrl};
use std::path::Path;
use std::time::Duration;

/// The path at which `expvar` serves its variables.
const PATH: &str = "/debug/vars";
/// The time limit of one port.
const PORT_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum number of ports that are asked.
const MAX_PORTS: usize = 8;

/// Answers from the variables that a Go program publishes.
#[derive(Debug)]
pub(in crate::inspect) struct ExpvarProvider;

impl Provider for ExpvarProvider {
    fn name(&self) -> &'static str {
        "expvar"
    }

    fn read<'a>(&'a self, request: &'a StateRequest<'a>) -> ProviderFuture<'a> {
        Box::pin(async move {
            let not_applicable = |reason: String| Err(ProviderError::NotApplicable(reason));
            if request.path().file.is_some() {
                return Err(ProviderError::NotAsked("it has no variables of modules"));
            }
            let process = request.process(&[LanguageRuntime::Go]).await?;
            if !proc::file_contains(
                &Path::new("/proc").join(process.pid.to_string()).join("exe"),
                PATH.as_bytes(),
            ) {
                return not_applicable(format!(
                    "{} publishes nothing; add import _ \"expvar\" and serve http.DefaultServeMux on 127.0.0.1",
                    process.display_name()
                ));
            }
            process.check_not_stopped().map_err(Error::from)?;
            let Some((port, body)) = fetch(&process).await else {
                return not_applicable(format!(
                    "{} has expvar, and serves {PATH} by plain HTTP on none of its ports; register expvar.Handler() there",
                    process.display_name()
                ));
            };
            let document = serde_json::from_slice(&body).map_err(|error| Error::Document {
                location: format!("http://127.0.0.1:{port}{PATH}"),
                reason: error.to_string(),
            })?;
            request.json(format!("expvar: {}, port {port}", process.display_name()), &document)
        })
    }
}

/// Fetches the variables from the first port of the process that serves them.
async fn fetch(process: &Process) -> Option<(u16, Vec<u8>)> {
    for address in process.local_ports().into_iter().take(MAX_PORTS) {
        let url = TargetUrl::local("http", address, PATH);
        let body = http::get_within(&url, &[address], MAX_BYTES, PORT_TIMEOUT).await;
        if let Some(body) = body.ok().filter(|body| body.trim_ascii_start().starts_with(b"{")) {
            return Some((address.port(), body));
        }
    }
    None
}
