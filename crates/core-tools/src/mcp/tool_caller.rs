//! The calls of other tools, for a tool that makes them in the name of its caller.

use super::answer::Answer;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

type MakeCall = dyn Fn(String, Map<String, Value>) -> BoxFuture<'static, Answer> + Send + Sync;

/// Makes calls in the name of the caller of one call. Each is a call like any other: it is judged, limited, recorded and
/// masked on its own.
#[derive(Clone)]
pub(crate) struct ToolCaller(Arc<MakeCall>);

impl ToolCaller {
    /// Makes each call by `make_call`.
    pub(crate) fn new(
        make_call: impl Fn(String, Map<String, Value>) -> BoxFuture<'static, Answer> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(make_call))
    }

    /// Calls a tool. Dropping the future ends the call.
    pub(crate) async fn call(&self, tool: String, arguments: Map<String, Value>) -> Answer {
        (self.0)(tool, arguments).await
    }
}

impl fmt::Debug for ToolCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolCaller")
    }
}
