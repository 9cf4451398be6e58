//! Calls of tools: judged, sent, and recorded.

use super::state::{Call, Core, Passing, Server, Wants};
use super::{INVALID_PARAMS, METHOD_NOT_FOUND};
use crate::RoleLimits;
use crate::proxy::json::{Json, Object};
use crate::proxy::judge::{NotPermitted, Permit, call_parts};
use crate::proxy::message::{Id, Kind, Message};
use crate::proxy::observe;
use crate::proxy::observe::{Ended, Observed, Outcome};
use std::time::{Duration, Instant};

impl Core {
    pub(super) fn call_tool(&mut self, id: Id, message: Message<'_>, deadline: Option<Instant>) {
        let Some((name, arguments)) = message.params().and_then(call_parts) else {
            self.not_sent(&message, "invalid", "the parameters do not fit");
            let problem =
                "the parameters of tools/call do not fit: expected {\"name\": string, \"arguments\": object}";
            return self.refuse(&id, INVALID_PARAMS, problem);
        };
        let is_ready = matches!(self.server, Server::Ready(_));
        let Some(catalogue) = self.catalogue.as_ref().filter(|_| !is_ready || !self.is_stale) else {
            // Also for a name that the policy hides, so that the time says nothing about it.
            self.park(id, message, Wants::Call, deadline);
            return self.start_refresh();
        };
        let verdict = self.judge.call(name, arguments);
        let exists = catalogue.names.contains_key(name);
        match verdict {
            Ok(permit) if exists => self.send_call(id, message, &permit, deadline),
            Err(NotPermitted::Arguments { rule, words }) if exists => {
                self.not_sent(&message, "refused", &rule);
                self.refuse_call(&id, words);
            }
            verdict => {
                // The specification's code of each era, and one text.
                let code = if message.is_modern() { INVALID_PARAMS } else { METHOD_NOT_FOUND };
                let short: String = name.chars().take(64).collect();
                let text = format!("no tool is called `{short}`; tools/list names those there are");
                match verdict {
                    Err(NotPermitted::Hidden(rule)) if exists => self.not_sent(&message, "hidden", &rule),
                    _ => self.not_sent(&message, "unknown", ""),
                }
                self.refuse(&id, code, &text);
            }
        }
    }

    /// A refusal that the model reads: the tool is there, and this call of it may not be.
    pub(super) fn refuse_call(&mut self, id: &Id, words: String) {
        let text = [("type", Json::string("text")), ("text", Json::string(words))];
        let content = Json::Array(vec![Json::Object(text.into_iter().collect())]);
        let result = [("content", content), ("isError", Json::Bool(true))];
        self.answer(&Message::result(id, result.into_iter().collect()));
    }

    /// The only way of a `tools/call` to the server.
    pub(super) fn send_call(
        &mut self,
        id: Id,
        message: Message<'_>,
        permit: &Permit,
        deadline: Option<Instant>,
    ) {
        let Some((name, arguments)) = message.params().and_then(call_parts) else { return };
        // One that waits is judged again, by the policy and the list of that moment.
        if !matches!(self.server, Server::Ready(_)) {
            return self.park(id, message, Wants::Call, deadline);
        }
        let limits = self.judge.limits();
        if let Err(words) = self.within(limits, arguments) {
            self.not_sent(&message, "refused", "limits");
            return self.refuse_call(&id, words);
        }
        let most = limits.max_seconds.map_or(Duration::MAX, Duration::from_secs);
        let call = Call {
            tool: name.to_owned(),
            rule: permit.rule(),
            shape: self.shape(name, arguments),
            began: Instant::now(),
            limit: self.limits.of(name).min(most),
        };
        if let Some(observer) = &self.observer
            && let Err(error) = observer.starts(&call.observed(self.judge.caller()))
        {
            tracing::error!(%error, "the audit cannot be written, so no call is sent");
            self.not_sent(&message, "refused", "audit");
            let words = "not sent: calls are recorded here, and the record cannot be written now; the \
                         operator must make room";
            return self.refuse_call(&id, words.to_owned());
        }
        if limits.calls_per_minute.is_some() {
            self.recent.push_back(call.began);
        }
        self.send(id, message, Passing::Plain, Some(call), deadline);
    }

    /// Whether the role's limits leave room for one call more.
    pub(super) fn within(
        &mut self,
        limits: RoleLimits,
        arguments: Option<&Object<'_>>,
    ) -> Result<(), String> {
        const MINUTE: Duration = Duration::from_secs(60);
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        if let Some(most) = limits.max_argument_bytes {
            let bytes = arguments.map_or(0, observe::bytes);
            if count(bytes) > most {
                return Err(format!("the arguments have {bytes} bytes; this role may send {most}"));
            }
        }
        if let Some(most) = limits.concurrent_calls {
            let running = self.sent.values().filter(|sent| sent.call.is_some()).count();
            if count(running) >= most {
                return Err(format!(
                    "not run: this role may run {most} calls at once, and so many are running"
                ));
            }
        }
        if let Some(most) = limits.calls_per_minute {
            let now = Instant::now();
            while self.recent.front().is_some_and(|sent| now.duration_since(*sent) >= MINUTE) {
                self.recent.pop_front();
            }
            if count(self.recent.len()) >= most {
                let first = self.recent.front().map_or(MINUTE, |sent| MINUTE - now.duration_since(*sent));
                return Err(format!(
                    "not run: this role may make {most} calls in a minute; try again in {} ms",
                    first.as_millis() + 1
                ));
            }
        }
        Ok(())
    }

    pub(super) fn shape(&self, name: &str, arguments: Option<&Object<'_>>) -> (String, usize) {
        // What nobody asks for costs nothing.
        if self.observer.is_none() {
            return (String::new(), 0);
        }
        let tool = self.catalogue.as_ref().and_then(|list| list.tools.get(*list.names.get(name)?));
        observe::shape(arguments, tool.map(|tool| &tool.definition))
    }

    /// Records a call that is not sent; of another request nothing is recorded.
    pub(super) fn not_sent(&self, message: &Message<'_>, decision: &'static str, rule: &str) {
        let Some(observer) = &self.observer else { return };
        if !is_call(message) {
            return;
        }
        let params = message.params();
        let name = params.and_then(|params| params.get("name")).and_then(Json::as_str).unwrap_or_default();
        let arguments = params.and_then(|params| params.get("arguments")).and_then(Json::as_object);
        let (shape, bytes) = self.shape(name, arguments);
        let call = Observed::new(self.judge.caller(), name, (decision, rule), (&shape, bytes));
        observer.ended(&call, &Ended::NOT_RUN);
    }

    /// Records the end of a call that was sent.
    pub(super) fn ended(&self, call: Option<&Call>, outcome: Outcome, bytes_out: usize) {
        if let (Some(observer), Some(call)) = (&self.observer, call) {
            let end = Ended::after(call.began.elapsed(), outcome, bytes_out);
            observer.ended(&call.observed(self.judge.caller()), &end);
        }
    }
}

fn is_call(message: &Message<'_>) -> bool {
    matches!(&message.kind, Kind::Request { method, .. } if method == "tools/call")
}
