//! Tools whose work another server does: the definitions are those of this one, and so is everything that stands before
//! and behind a call.

use super::answer::Answer;
use super::call_context::CallContext;
use super::client_notices::ClientNotices;
use super::tool::Tool;
use super::tool_error::ToolError;
use super::tool_hooks::ConnectNotices;
use super::toolset::Toolset;
use futures_util::future::{BoxFuture, FutureExt};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// A call that another server is to make.
#[derive(Debug)]
#[non_exhaustive]
pub struct ForwardedCall {
    /// The canonical name of the tool.
    pub tool: &'static str,
    /// The arguments in their canonical form, as they were judged.
    pub arguments: Map<String, Value>,
    /// The context of the call.
    pub context: CallContext,
}

type Forward = dyn Fn(ForwardedCall) -> BoxFuture<'static, Result<Answer, ToolError>> + Send + Sync;

/// Makes calls on another server. Cheap to clone.
#[derive(Clone)]
pub struct CallForwarder {
    forward: Arc<Forward>,
    connect_notices: Option<Arc<ConnectNotices>>,
}

impl CallForwarder {
    /// Makes each call by `forward`. Its answer is masked and bounded here, as every answer is.
    pub fn new<R>(forward: impl Fn(ForwardedCall) -> R + Send + Sync + 'static) -> Self
    where
        R: Future<Output = Result<Answer, ToolError>> + Send + 'static,
    {
        Self { forward: Arc::new(move |call| forward(call).boxed()), connect_notices: None }
    }

    /// Hands `connect` the way to tell clients of changes on the other server.
    #[must_use]
    pub fn sends_notices(mut self, connect: impl Fn(&ClientNotices) + Send + Sync + 'static) -> Self {
        self.connect_notices = Some(Arc::new(connect));
        self
    }
}

impl fmt::Debug for CallForwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallForwarder")
    }
}

impl Toolset {
    /// Returns the same tools, whose work `forwarder` does. The tools about tools work here: what they find and call is
    /// forwarded on its own. Prompts and resources stay if they [use tools](super::Prompt::uses_tools). The others would
    /// tell of this machine, and are left out.
    #[must_use]
    pub fn forwarded(self, forwarder: &CallForwarder) -> Self {
        let forward = |tool: Tool| match tool.wants_directory() || tool.wants_to_call_tools() {
            true => tool,
            false => {
                let (name, forward) = (tool.name(), Arc::clone(&forwarder.forward));
                let tool = tool.with_handler(move |arguments, context| {
                    forward(ForwardedCall { tool: name, arguments, context })
                });
                tool.also_sends_notices(forwarder.connect_notices.as_ref())
            }
        };
        Self {
            name: self.name,
            tools: self.tools.into_iter().map(forward).collect(),
            prompts: self
                .prompts
                .into_iter()
                .filter(|prompt| prompt.parts.tool.wants_to_call_tools())
                .collect(),
            resources: self
                .resources
                .into_iter()
                .filter(|resource| resource.parts.tool.wants_to_call_tools())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Host, HostBuilder, discovery};
    use crate::redact::Redactor;
    use role_policy::{Caller, Policy};
    use serde_json::json;
    use std::sync::Mutex;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Greet {
        /// Somebody
        name: String,
    }

    #[tokio::test]
    async fn only_what_was_checked_here_is_forwarded_and_the_answer_is_masked_here() {
        let greet = Tool::new("greet", "Greet", "Greets.", |greet: Greet, _: CallContext| async move {
            Err(ToolError::new(format!("{} is not greeted here", greet.name)))
        });
        let forwarded: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&forwarded);
        let forwarder = CallForwarder::new(move |call: ForwardedCall| {
            log.lock().unwrap().push(format!("{} {}", call.tool, Value::Object(call.arguments)));
            async { Ok(Answer::text("key ghp_0123456789abcdefghijABCDEFGHIJ012345")) }
        });
        let toolsets = [Toolset::new("manners", [greet]), discovery::toolset()];
        let builder = Host::builder(Policy::allow_all(), Redactor::new(Default::default()).unwrap());
        let host = toolsets
            .into_iter()
            .map(|toolset| toolset.forwarded(&forwarder))
            .fold(builder, HostBuilder::toolset)
            .build()
            .unwrap();
        let call = |tool: &'static str, arguments: Value| {
            let context = CallContext::new(Caller::new("anyone"), Default::default());
            let host = host.clone();
            async move { host.call(tool, arguments.as_object().cloned().unwrap(), context).await.unwrap() }
        };
        assert!(call("greet", json!({"nam": 1})).await.is_failed());
        assert!(forwarded.lock().unwrap().is_empty());
        assert_eq!(call("greet", json!({"name": "Ada"})).await.to_text(), "key [redacted:github-token]");
        // What finds and calls tools works here.
        assert!(call("find_tools", json!({"query": "greet"})).await.to_text().contains("greet"));
        let calls = json!({"calls": [{"tool": "greet", "arguments": {"name": "Bob"}}]});
        let answer = call("call_tools", calls).await.to_text();
        assert!(answer.contains("[redacted"), "{answer}");
        assert_eq!(*forwarded.lock().unwrap(), [r#"greet {"name":"Ada"}"#, r#"greet {"name":"Bob"}"#]);
    }
}
