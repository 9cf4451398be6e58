//! The record of a call, for the audit and for observers.

use super::host::Host;
use super::tools::RegisteredTool;
use crate::mcp::answer::Answer;
use crate::mcp::audit::{ArgumentSummary, AuditLevel, CallDecision, CallRecord, DetailSource, Outcome};
use crate::mcp::call_context::CallContext;
use crate::mcp::observer::CallObserver;
use crate::mcp::tool_error::FailureCause;
use approvals::ApprovalAnswer;
use role_policy::{Caller, Effect};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::time::Instant;

/// A call that has arrived.
pub(super) struct CallStarted {
    pub(super) caller: Caller,
    at: Instant,
    pub(super) observer: Option<CallObserver>,
}

impl CallStarted {
    pub(super) fn now(context: &CallContext) -> Self {
        Self { caller: context.caller.clone(), at: Instant::now(), observer: context.observer.clone() }
    }
}

/// The decision about a call, and the rule that made it.
#[derive(Debug)]
pub(super) struct CallVerdict {
    pub(super) decision: CallDecision,
    pub(super) rule: Arc<str>,
    /// The answer of the person who was asked.
    pub(super) approval: Option<ApprovalAnswer>,
}

impl CallVerdict {
    /// A verdict without a person.
    pub(super) fn new(decision: CallDecision, rule: Arc<str>) -> Self {
        Self { decision, rule, approval: None }
    }
}

/// The rule in the record of a call that a tool refused because a path leads outside the roots.
const OUTSIDE_ROOTS: &str = "roots";

/// The end of a call.
pub(super) struct CallEnding<'a> {
    pub(super) outcome: Outcome,
    /// The size of the answer.
    pub(super) bytes_out: usize,
    pub(super) refused_connections: &'a [String],
    /// The first line of the error; empty if there is none.
    pub(super) error: &'a str,
}

impl CallEnding<'_> {
    /// The end of a call that did not run.
    pub(super) const NOT_RUN: Self =
        Self { outcome: Outcome::NotRun, bytes_out: 0, refused_connections: &[], error: "" };
}

/// A call on its way to its record. Dropped before its end, as when its client or the server goes away, it is recorded
/// all the same: it may have done a part of its work.
pub(super) struct CallRecording<'a> {
    host: &'a Host,
    started: &'a CallStarted,
    tool: &'static str,
    arguments: &'a ArgumentSummary,
    verdict: Option<CallVerdict>,
    /// True until the call has ended well: one that is dropped has failed.
    failed: bool,
    /// True if the tool refused the call because a path leads outside the roots.
    is_outside_roots: bool,
    refused_connections: Vec<String>,
    /// The first line of the error, masked and cut; empty if there is none.
    error: String,
}

/// The length of the line of an error that observers get.
const MAX_ERROR_CHARS: usize = 200;

impl<'a> CallRecording<'a> {
    pub(super) fn new(
        host: &'a Host,
        started: &'a CallStarted,
        tool: &'static str,
        arguments: &'a ArgumentSummary,
    ) -> Self {
        let (failed, is_outside_roots) = (true, false);
        let (refused_connections, error) = (Vec::new(), String::new());
        Self {
            host,
            started,
            tool,
            arguments,
            verdict: None,
            failed,
            is_outside_roots,
            refused_connections,
            error,
        }
    }

    /// Notes the verdict, before the call runs.
    pub(super) fn on_decided(&mut self, verdict: CallVerdict) {
        self.verdict = Some(verdict);
    }

    /// Notes whether the work failed, and why. The answer has not left yet.
    pub(super) fn on_finished(&mut self, answer: &Answer) {
        self.failed = answer.is_failed();
        self.is_outside_roots = answer.cause() == FailureCause::OutsideRoots;
        // An error may name a path or a host, as the targets do. What a failed program has written is no error of the tool.
        if answer.is_error() && self.host.shared.audit_level != AuditLevel::Names {
            let line = answer.texts().flat_map(str::lines).find(|line| !line.trim().is_empty());
            let line = self.host.shared.redactor.redact(line.unwrap_or_default());
            self.error = line.chars().take(MAX_ERROR_CHARS).collect();
        }
    }

    /// Notes the connections that were refused to the programs of the call.
    #[cfg(feature = "ci")]
    pub(super) fn on_connections_refused(&mut self, refused: Vec<String>) {
        self.refused_connections = refused;
    }

    /// Records the call with an answer of this size.
    pub(super) fn end(mut self, bytes_out: usize) {
        self.record(bytes_out);
    }

    fn record(&mut self, bytes_out: usize) {
        // Taken, so that the drop after `end` records nothing.
        let Some(mut verdict) = self.verdict.take() else { return };
        // The tools keep the roots, so that the policy had allowed the call. Whoever reads the audit looks for a refusal.
        if self.is_outside_roots && verdict.decision == CallDecision::Allowed {
            (verdict.decision, verdict.rule) = (CallDecision::Refused, Arc::from(OUTSIDE_ROOTS));
        }
        let outcome = match (verdict.decision, self.failed) {
            (CallDecision::Allowed, false) => Outcome::Ok,
            (CallDecision::Allowed, true) => Outcome::Failed,
            _ => Outcome::NotRun,
        };
        let ending = CallEnding {
            outcome,
            bytes_out,
            refused_connections: &self.refused_connections,
            error: &self.error,
        };
        self.host.record(self.started, self.tool, &verdict, &ending, self.arguments);
    }
}

impl Drop for CallRecording<'_> {
    fn drop(&mut self) {
        self.record(0);
    }
}

impl Host {
    /// Summarises arguments, of a tool that there is or of none. Names are written only where somebody records them.
    pub(super) fn summarise(
        &self,
        started: &CallStarted,
        registered: Option<&RegisteredTool>,
        arguments: &Map<String, Value>,
    ) -> ArgumentSummary {
        if self.shared.audit.is_none() && started.observer.is_none() {
            return ArgumentSummary::size_only(arguments);
        }
        let properties = registered.and_then(|registered| registered.tool.input().get("properties"));
        ArgumentSummary::new(arguments, |name| {
            properties.is_some_and(|properties| properties.get(name).is_some())
        })
    }

    /// Adds to `summary` what the level of the audit asks for, of arguments in their canonical form.
    pub(super) fn note_detail(
        &self,
        summary: &ArgumentSummary,
        registered: &RegisteredTool,
        arguments: &Map<String, Value>,
    ) {
        // Without names, nobody records the call.
        if self.shared.audit_level == AuditLevel::Names || (summary.text.is_empty() && !arguments.is_empty())
        {
            return;
        }
        let source = DetailSource {
            level: self.shared.audit_level,
            redactor: &self.shared.redactor,
            roots: self.roots(),
            resolver: &*self.tools.effects,
        };
        let _ = summary.detail.set(source.detail(registered.facts().effects, arguments));
    }

    /// Hands the record of a call to the audit and to the observer of the call.
    pub(super) fn record(
        &self,
        started: &CallStarted,
        tool: &str,
        verdict: &CallVerdict,
        ending: &CallEnding<'_>,
        arguments: &ArgumentSummary,
    ) {
        let (audit, observer) = (&self.shared.audit, &started.observer);
        if audit.is_none() && observer.is_none() {
            return;
        }
        // A name that nobody registered may hold anything.
        let runs_programs = self.tools.get(tool).is_some_and(|registered| {
            let runs = |effect: &Effect| matches!(effect, Effect::Runs { .. });
            registered.tool.resources().needs_process_permit() || registered.facts().effects.iter().any(runs)
        });
        let tool = self.shared.redactor.redact(tool);
        let record = CallRecord::new(&started.caller, &tool, verdict.decision, ending.outcome)
            .rule(&verdict.rule)
            .duration(started.at.elapsed())
            .arguments(&arguments.text, arguments.bytes)
            .detail(
                arguments.detail.get().and_then(|detail| detail.targets.as_ref()),
                arguments.detail.get().and_then(|detail| detail.full.as_deref()),
            )
            .bytes_out(ending.bytes_out)
            .refused_connections(ending.refused_connections)
            .error(ending.error)
            .runs_programs(runs_programs)
            .approval(verdict.approval.as_ref());
        if let Some(audit) = audit {
            audit.end(&record);
        }
        if let Some(observer) = observer {
            observer.observe(&record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Answer, Tool, ToolError, Toolset};
    use crate::redact::Redactor;
    use futures_util::FutureExt;
    use role_policy::Policy;
    use schemars::JsonSchema;
    use serde::Deserialize;
    use std::sync::Mutex;

    #[derive(Deserialize, JsonSchema)]
    struct NoArguments {}

    #[tokio::test]
    async fn a_call_that_is_dropped_while_it_runs_is_recorded_once_as_failed() {
        let endless =
            Tool::new("endless", "Endless", "Never ends.", |_: NoArguments, _: CallContext| async {
                std::future::pending::<()>().await;
                Ok(Answer::text(""))
            });
        let host = Host::builder(Policy::allow_all(), Redactor::new(Default::default()).unwrap())
            .toolset(Toolset::new("own", [endless]))
            .build()
            .unwrap();
        let recorded: Arc<Mutex<Vec<_>>> = Arc::default();
        let mut context = CallContext::new(Caller::new("orchestrator"), Default::default());
        context.observer = Some(CallObserver::new({
            let recorded = Arc::clone(&recorded);
            move |record| {
                recorded.lock().unwrap().push((record.tool.to_owned(), record.decision, record.outcome));
            }
        }));
        let mut call = Box::pin(host.call("endless", Map::new(), context));
        assert!(call.as_mut().now_or_never().is_none());
        assert_eq!(*recorded.lock().unwrap(), []);
        drop(call);
        assert_eq!(
            *recorded.lock().unwrap(),
            [("endless".to_owned(), CallDecision::Allowed, Outcome::Failed)]
        );
    }

    #[tokio::test]
    async fn an_observer_gets_the_first_line_of_an_error_where_targets_are_recorded() {
        for (level, line) in [(AuditLevel::Names, ""), (AuditLevel::Targets, "the disk is gone")] {
            let broken = Tool::new("broken", "Broken", "Fails.", |_: NoArguments, _: CallContext| async {
                Err::<Answer, _>(ToolError::new(format!("\nthe disk is gone\n{}", "x".repeat(1000))))
            });
            let host = Host::builder(Policy::allow_all(), Redactor::new(Default::default()).unwrap())
                .toolset(Toolset::new("own", [broken]))
                .audit_level(level)
                .build()
                .unwrap();
            let errors: Arc<Mutex<Vec<String>>> = Arc::default();
            let mut context = CallContext::new(Caller::new("orchestrator"), Default::default());
            context.observer = Some(CallObserver::new({
                let errors = Arc::clone(&errors);
                move |record| errors.lock().unwrap().push(record.error.to_owned())
            }));
            let _ = host.call("broken", Map::new(), context).await;
            assert_eq!(*errors.lock().unwrap(), [line], "{level:?}");
        }
    }
}
