//! The server's own environment, if there is no application to ask: `process.env.NODE_ENV`.

use crate::inspect::provider::{Provider, ProviderFuture, StateRequest};
use crate::inspect::state_value::ProviderError;
use serde_json::{Value, json};
use std::sync::Arc;

/// Answers `process.env.NAME` from these variables.
pub(in crate::inspect) struct ServerEnvProvider(pub(in crate::inspect) Arc<[(String, String)]>);

impl Provider for ServerEnvProvider {
    fn name(&self) -> &'static str {
        "server-env"
    }

    fn read<'a>(&'a self, request: &'a StateRequest<'a>) -> ProviderFuture<'a> {
        Box::pin(async move {
            let not_applicable = |reason: &'static str| Err(ProviderError::NotAsked(reason));
            if request.has_target() {
                return not_applicable("a target was named");
            }
            match request.path().segments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                ["process", "env", _] if request.path().file.is_none() => {}
                // The whole environment of the server is not the state of an application.
                _ => return not_applicable("it has only process.env.NAME"),
            }
            if !self.0.iter().any(|(name, _)| request.path().last() == Some(name)) {
                return not_applicable("the server has no such variable either");
            }
            let env: Value =
                self.0.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
            request.json("server-env", &json!({"process": {"env": env}}))
        })
    }
}
