//! What is told of a call once it has ended: to the audit, and to whoever counts.

use super::{Host, Registered};
use crate::mcp::audit::{Outcome, Record, shape};
use role_policy::Caller;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::time::Instant;

/// Told of a call or a refusal, once it has ended, for figures and traces. It must neither block nor panic.
#[derive(Clone)]
pub struct Observer(Arc<dyn Fn(&Record<'_>) + Send + Sync>);

impl Observer {
    /// Calls `observe` with each.
    pub fn new(observe: impl Fn(&Record<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }

    /// Tells it of one.
    pub fn tell(&self, record: &Record<'_>) {
        (self.0)(record);
    }
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Observer")
    }
}

/// A call, as it came.
pub(super) struct Made {
    pub(super) by: Caller,
    pub(super) at: Instant,
    pub(super) observer: Option<Observer>,
}

/// What was decided of a call.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) decision: &'static str,
    pub(super) rule: Arc<str>,
}

/// What is recorded of arguments.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) text: String,
    /// About as many as their JSON has.
    pub(super) bytes: usize,
}

/// A call on its way to its record. One that is dropped before its end, as its client or the server is gone, is recorded
/// all the same: it may have done a part of its work.
pub(super) struct Recording<'a> {
    host: &'a Host,
    made: &'a Made,
    tool: &'static str,
    shape: &'a Shape,
    said: Option<Said>,
    /// As far as is known: until it has ended well, it failed.
    failed: bool,
}

impl<'a> Recording<'a> {
    pub(super) fn of(host: &'a Host, made: &'a Made, tool: &'static str, shape: &'a Shape) -> Self {
        Self { host, made, tool, shape, said: None, failed: true }
    }

    /// What was decided of it, before it runs.
    pub(super) fn decided(&mut self, said: Said) {
        self.said = Some(said);
    }

    /// Whether its work failed. Its answer has not left yet.
    pub(super) fn came_out(&mut self, failed: bool) {
        self.failed = failed;
    }

    pub(super) fn end(mut self, bytes_out: usize) {
        self.record(bytes_out);
    }

    fn record(&mut self, bytes_out: usize) {
        let Some(said) = self.said.take() else { return };
        let outcome = match (said.decision == "allowed", self.failed) {
            (false, _) => Outcome::NotRun,
            (true, true) => Outcome::Failed,
            (true, false) => Outcome::Ok,
        };
        self.host.record(self.made, self.tool, &said, outcome, self.shape, bytes_out);
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.record(0);
    }
}

impl Host {
    /// What is recorded of arguments. Nothing costs anything where nothing asks for it.
    pub(super) fn shape(
        &self,
        made: &Made,
        registered: Option<&Registered>,
        arguments: &Map<String, Value>,
    ) -> Shape {
        let properties = registered.and_then(|registered| registered.tool.input().get("properties"));
        let known = |name: &str| properties.is_some_and(|properties| properties.get(name).is_some());
        let text = match self.shared.audit.is_some() || made.observer.is_some() {
            true => shape(arguments, known),
            false => String::new(),
        };
        Shape { text, bytes: object_size(arguments) }
    }

    pub(super) fn record(
        &self,
        made: &Made,
        tool: &str,
        said: &Said,
        outcome: Outcome,
        shape: &Shape,
        bytes_out: usize,
    ) {
        let (audit, observer) = (&self.shared.audit, &made.observer);
        if audit.is_none() && observer.is_none() {
            return;
        }
        // A name that nobody registered may hold anything.
        let tool = self.shared.redactor.redact(tool);
        let record = Record {
            caller: &made.by,
            tool: &tool,
            decision: said.decision,
            rule: &said.rule,
            outcome,
            duration: made.at.elapsed(),
            arguments: &shape.text,
            bytes_in: shape.bytes,
            bytes_out,
        };
        if let Some(audit) = audit {
            audit.end(&record);
        }
        if let Some(observer) = observer {
            observer.tell(&record);
        }
    }
}

/// About how many bytes of JSON a value has, without writing it.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        // What holds nothing has its brackets and its comma, or any number of them would weigh nothing.
        Value::Array(elements) => 2 + elements.iter().map(|element| size(element) + 1).sum::<usize>(),
        Value::Object(members) => object_size(members),
    }
}

fn object_size(members: &Map<String, Value>) -> usize {
    2 + members.iter().map(|(name, value)| name.len() + size(value) + 4).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Answer, Context, Tool, Toolset};
    use crate::redact::Redactor;
    use futures_util::FutureExt;
    use role_policy::Policy;
    use schemars::JsonSchema;
    use serde::Deserialize;
    use std::sync::Mutex;

    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}

    #[tokio::test]
    async fn a_call_that_is_dropped_while_it_runs_is_recorded_once_as_failed() {
        let endless = Tool::new("endless", "Endless", "Never ends.", |_: Nothing, _: Context| async {
            std::future::pending::<()>().await;
            Ok(Answer::text(""))
        });
        let host = Host::builder(Policy::allow_all(), Redactor::new(Default::default()).unwrap())
            .toolset(Toolset { name: "own", tools: vec![endless] })
            .build()
            .unwrap();
        let told: Arc<Mutex<Vec<_>>> = Arc::default();
        let mut context = Context::new(Caller::new("orchestrator"), Default::default());
        context.observer = Some(Observer::new({
            let told = Arc::clone(&told);
            move |record| {
                told.lock().unwrap().push((record.tool.to_owned(), record.decision, record.outcome));
            }
        }));
        let mut call = Box::pin(host.call("endless", Map::new(), context));
        assert!(call.as_mut().now_or_never().is_none());
        assert_eq!(*told.lock().unwrap(), []);
        drop(call);
        assert_eq!(*told.lock().unwrap(), [("endless".to_owned(), "allowed", Outcome::Failed)]);
    }
}
