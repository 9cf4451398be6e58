//! The server's own environment, where there is no application to ask: `process.env.NODE_ENV`.

use super::provider::{Passed, Provider, Reading, Request};
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) struct ServerEnvironment(pub(super) Arc<[(String, String)]>);

impl Provider for ServerEnvironment {
    fn name(&self) -> &'static str {
        "server-env"
    }

    fn read<'a>(&'a self, request: &'a Request<'a>) -> Reading<'a> {
        Box::pin(async move {
            let nothing = |why: &str| Err(Passed::Nothing(why.to_owned()));
            if request.has_target() {
                return nothing("a target was named");
            }
            match request.path().segments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                ["process", "env", _] if request.path().file.is_none() => {}
                // The whole of it is nobody's state.
                _ => return nothing("it has only process.env.NAME"),
            }
            if !self.0.iter().any(|(name, _)| request.path().last() == Some(name)) {
                return nothing("the server has no such variable either");
            }
            let env: Value =
                self.0.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
            request.json("server-env", &json!({"process": {"env": env}}))
        })
    }
}
