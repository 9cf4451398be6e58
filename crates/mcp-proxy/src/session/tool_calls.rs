//! Calls of tools: judged, sent, and recorded.

use super::state::{
    ForwardedRequestKind, ParkedRequestReason, ProxyPendingCall, ProxySessionState, UpstreamState,
};
use crate::authorizer::{AuthorizedCall, CallRefusal, name_and_arguments};
use crate::observer;
use crate::observer::{CallEnd, ObservedArguments, ObservedCall, ObservedCallOutcome, ProxyDecision};
use json_rpc::error_code::{INVALID_PARAMS, METHOD_NOT_FOUND};
use json_rpc::json::{Json, JsonObject};
use json_rpc::message::{Id, Message, MessageKind};
use role_policy::{Approval, RoleLimits, TokenBucket};
use std::time::{Duration, Instant};

/// The limit of a role that a call would exceed. The message is for the model.
#[derive(Debug, thiserror::Error)]
pub(super) enum RoleLimitExceeded {
    #[error("the arguments have {bytes} bytes; this role may send {max}")]
    ArgumentBytes { bytes: usize, max: u64 },
    #[error("not run: this role may run {max} calls at once, and so many are running")]
    ConcurrentCalls { max: u64 },
    #[error("not run: this role may make {max} calls in a minute; try again in {retry_after_ms} ms")]
    CallsPerMinute { max: u64, retry_after_ms: u128 },
}

impl ProxySessionState {
    pub(super) fn call_tool(&mut self, id: Id, message: Message<'_>, deadline: Option<Instant>) {
        self.judge_call(id, message, deadline, None);
    }

    /// Judges a call, with the approval of a person if there is one, and sends it.
    pub(super) fn judge_call(
        &mut self,
        id: Id,
        message: Message<'_>,
        deadline: Option<Instant>,
        approval: Option<Approval>,
    ) {
        let Some((name, arguments)) = message.params().and_then(name_and_arguments) else {
            self.record_not_sent(&message, ProxyDecision::Invalid, "the parameters do not fit");
            let problem =
                "the parameters of tools/call do not fit: expected {\"name\": string, \"arguments\": object}";
            return self.refuse(&id, INVALID_PARAMS, problem);
        };
        let is_ready = matches!(self.server, UpstreamState::Ready(_));
        let Some(tool_list) = self.tool_list.as_ref().filter(|_| !is_ready || !self.is_stale) else {
            // Also for a name that the policy hides, so that the time says nothing about it.
            self.park(id, message, ParkedRequestReason::Call, deadline);
            return self.start_refresh();
        };
        // Judged also if the server has no such tool, so that the time does not tell a hidden tool from none.
        let known = tool_list.names.get(name);
        let definition = known.and_then(|at| Some(&tool_list.tools.get(*at)?.definition));
        let verdict = self.authorizer.authorize(name, definition, arguments, approval);
        let exists = known.is_some();
        match verdict {
            Ok(authorized) if exists => self.send_call(id, message, &authorized, deadline),
            Err(CallRefusal::Approval(request)) if exists => self.ask_person(id, message, *request),
            Err(CallRefusal::Arguments { rule, reason }) if exists => {
                self.record_not_sent(&message, ProxyDecision::Refused, &rule);
                self.refuse_call(&id, reason);
            }
            verdict => {
                // The specification's code of each era, and one text.
                let code = if message.is_modern() { INVALID_PARAMS } else { METHOD_NOT_FOUND };
                let short: String = name.chars().take(64).collect();
                let text = format!("no tool is called `{short}`; tools/list names those there are");
                match verdict {
                    Err(CallRefusal::Hidden(rule)) if exists => {
                        self.record_not_sent(&message, ProxyDecision::Hidden, &rule);
                    }
                    _ => self.record_not_sent(&message, ProxyDecision::Unknown, ""),
                }
                self.refuse(&id, code, &text);
            }
        }
    }

    /// Answers a call with a tool error, which the model reads: the tool exists, and this call is refused.
    pub(super) fn refuse_call(&mut self, id: &Id, refusal_text: String) {
        let text = [("type", Json::string("text")), ("text", Json::string(refusal_text))];
        let content = Json::Array(vec![Json::Object(text.into_iter().collect())]);
        let result = [("content", content), ("isError", Json::Bool(true))];
        self.answer(&Message::result(id, result.into_iter().collect()));
    }

    /// Sends a call to the server: the only way there for a `tools/call`.
    pub(super) fn send_call(
        &mut self,
        id: Id,
        message: Message<'_>,
        authorized: &AuthorizedCall,
        deadline: Option<Instant>,
    ) {
        let Some((name, arguments)) = message.params().and_then(name_and_arguments) else { return };
        // One that waits is judged again, by the policy and the list of that moment.
        if !matches!(self.server, UpstreamState::Ready(_)) {
            return self.park(id, message, ParkedRequestReason::Call, deadline);
        }
        let limits = self.authorizer.limits();
        if let Err(exceeded) = self.check_limits(limits, arguments) {
            self.record_not_sent(&message, ProxyDecision::Refused, "limits");
            return self.refuse_call(&id, exceeded.to_string());
        }
        let max = limits.max_seconds.map_or(Duration::MAX, Duration::from_secs);
        let call = ProxyPendingCall {
            tool: name.to_owned(),
            rule: authorized.rule(),
            arguments: self.argument_summary(name, arguments),
            started_at: Instant::now(),
            limit: self.limits.timeout_of(name).min(max),
        };
        // Recorded before it is sent: a call that cannot be recorded must not run.
        if let Some(observer) = &self.observer
            && let Err(error) = observer.starts(&call.observed_call(self.authorizer.caller()))
        {
            tracing::error!(%error, "the audit cannot be written, so no call is sent");
            self.record_not_sent(&message, ProxyDecision::Refused, "audit");
            let refusal_text = "not sent: calls are recorded here, and the record cannot be written now; the \
                         operator must make room";
            return self.refuse_call(&id, refusal_text.to_owned());
        }
        // Only now: a call that is not recorded is not sent, and costs no token.
        if let Some(bucket) = self.calls_per_minute.as_mut().filter(|_| limits.calls_per_minute.is_some()) {
            bucket.spend(1.0, call.started_at);
        }
        self.send(id, message, ForwardedRequestKind::Plain, Some(call), deadline);
    }

    /// Refuses a call that would exceed the role's limits.
    ///
    /// # Errors
    /// The limit that the call would exceed.
    pub(super) fn check_limits(
        &mut self,
        limits: RoleLimits,
        arguments: Option<&JsonObject<'_>>,
    ) -> Result<(), RoleLimitExceeded> {
        const MINUTE: Duration = Duration::from_secs(60);
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        if let Some(max) = limits.max_argument_bytes {
            let bytes = arguments.map_or(0, observer::json_bytes);
            if count(bytes) > max {
                return Err(RoleLimitExceeded::ArgumentBytes { bytes, max });
            }
        }
        if let Some(max) = limits.concurrent_calls {
            let running = self.pending_requests.values().filter(|pending| pending.call.is_some()).count();
            if count(running) >= max {
                return Err(RoleLimitExceeded::ConcurrentCalls { max });
            }
        }
        if let Some(max) = limits.calls_per_minute {
            let now = Instant::now();
            let bucket = self.calls_per_minute.get_or_insert_with(|| TokenBucket::new(max, max, MINUTE, now));
            // A policy may be reloaded.
            bucket.set_limit(max, max, MINUTE);
            if bucket.available(now) < 1.0 {
                return Err(RoleLimitExceeded::CallsPerMinute {
                    max,
                    // Rounded up: a call that is repeated at that time must find a token.
                    retry_after_ms: bucket.time_until(1.0).as_nanos().div_ceil(1_000_000),
                });
            }
        }
        Ok(())
    }

    pub(super) fn argument_summary(
        &self,
        name: &str,
        arguments: Option<&JsonObject<'_>>,
    ) -> ObservedArguments {
        // Without an observer nobody reads the summary.
        if self.observer.is_none() {
            return ObservedArguments::default();
        }
        let tool = self.tool_list.as_ref().and_then(|list| list.tools.get(*list.names.get(name)?));
        observer::argument_summary(arguments, tool.map(|tool| &tool.definition))
    }

    /// Records a call that is not sent; of another request nothing is recorded.
    pub(super) fn record_not_sent(&self, message: &Message<'_>, decision: ProxyDecision, rule: &str) {
        let Some(observer) = &self.observer else { return };
        if !is_call(message) {
            return;
        }
        let params = message.params();
        let name = params.and_then(|params| params.get("name")).and_then(Json::as_str).unwrap_or_default();
        let arguments = params.and_then(|params| params.get("arguments")).and_then(Json::as_object);
        let summary = self.argument_summary(name, arguments);
        let call = ObservedCall::new(self.authorizer.caller(), name, decision, rule, &summary);
        observer.ended(&call, &CallEnd::NOT_RUN);
    }

    /// Records the end of a call that was sent.
    pub(super) fn record_end(
        &self,
        call: Option<&ProxyPendingCall>,
        outcome: ObservedCallOutcome,
        bytes_out: usize,
    ) {
        if let (Some(observer), Some(call)) = (&self.observer, call) {
            let end = CallEnd::after(call.started_at.elapsed(), outcome, bytes_out);
            observer.ended(&call.observed_call(self.authorizer.caller()), &end);
        }
    }
}

fn is_call(message: &Message<'_>) -> bool {
    matches!(&message.kind, MessageKind::Request { method, .. } if method == "tools/call")
}
