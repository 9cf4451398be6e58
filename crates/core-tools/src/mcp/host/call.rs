//! One call, from its name to its masked and bounded answer.

use super::ask::ApprovedCall;
use super::error::NoSuchTool;
use super::host::{Host, SharedHost};
use super::record::{CallEnding, CallRecording, CallStarted, CallVerdict};
use super::rejected_call::RejectedCall;
use super::tools::{OfferKind, RegisteredTool};
use crate::mcp::answer::Answer;
use crate::mcp::arguments::{self, to_short_json};
use crate::mcp::audit::{ArgumentSummary, CallDecision, CallRecord, Outcome};
use crate::mcp::call_context::CallContext;
use crate::mcp::permits::Permit;
use crate::mcp::rate_limiter::RateLimitedCall;
use crate::mcp::tool_directory::{DirectoryEntry, ToolDirectory};
use crate::mcp::tool_error::ToolError;
use approvals::ApprovalAnswer;
use process_runner::ResourceLimits;
use role_policy::{ApprovalRequest, Authorized, Call, Caller, LexicalResolver, Policy, Refusal, RoleLimits};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// Returns what the programs of a role may use together.
#[must_use]
pub fn resource_limits(limits: RoleLimits) -> ResourceLimits {
    let number = |value: Option<u64>| value.map(|value| u32::try_from(value).unwrap_or(u32::MAX));
    let mut resources = ResourceLimits::default();
    resources.memory_bytes = limits.max_memory_mib.map(|mib| mib.saturating_mul(1024 * 1024));
    resources.processes = number(limits.max_processes);
    resources.cpu_weight = number(limits.cpu_weight);
    resources
}

/// Answers from this size on are masked on another thread, since other calls wait for this one.
const LONG_ANSWER_BYTES: usize = 64 * 1024;

/// A call that the policy and the limits let run.
struct AdmittedCall {
    call: Authorized<Call>,
    rule: Arc<str>,
    /// The answer of the person who was asked, if one was.
    approval: Option<ApprovalAnswer>,
    /// The permits that a call acquired again after it had waited for a person.
    _held: Option<Permit>,
    /// Counts the call among those of its caller until it has ended.
    _running: Option<RateLimitedCall>,
}

/// Returns the record of a call that is about to run.
fn starting_record<'a>(caller: &'a Caller, tool: &'a str, arguments: &'a ArgumentSummary) -> CallRecord<'a> {
    let detail = arguments.detail.get();
    CallRecord::new(caller, tool, CallDecision::Allowed, Outcome::NotRun)
        .arguments(&arguments.text, arguments.bytes)
        .detail(
            detail.and_then(|detail| detail.targets.as_ref()),
            detail.and_then(|detail| detail.full.as_deref()),
        )
}

/// The reason why a call does not run at once.
enum NotAdmitted {
    Rejected(RejectedCall),
    /// A person must approve it.
    NeedsApproval(ApprovalRequest),
}

impl From<RejectedCall> for NotAdmitted {
    fn from(rejected: RejectedCall) -> Self {
        Self::Rejected(rejected)
    }
}

impl Host {
    /// Makes one call, from its name to its masked and bounded answer.
    ///
    /// Arguments that do not fit, a refusal by policy, work that failed, a deadline, a panic in the tool:
    /// each is an answer with [`Answer::is_failed`]. Dropping the future ends the call, which is recorded all the same.
    ///
    /// # Errors
    ///
    /// Only where `caller` knows of no such tool.
    pub async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        context: CallContext,
    ) -> Result<Answer, NoSuchTool> {
        self.call_offer(OfferKind::Tool, name, arguments, context).await
    }

    /// Makes one call of a tool, or one that stands for a prompt, a resource or suggestions.
    pub(in crate::mcp) async fn call_offer(
        &self,
        kind: OfferKind,
        name: &str,
        arguments: Map<String, Value>,
        mut context: CallContext,
    ) -> Result<Answer, NoSuchTool> {
        // The time and the caller first: a call that is hidden or refused is recorded as well.
        let started = CallStarted::now(&context);
        // One policy for the whole call, whatever is reloaded meanwhile.
        let mut policy = self.shared.policy.load_full();
        let Some(registered) = self.find_offer(&policy, &started.caller, kind, name) else {
            let verdict = match self.tools.get(name) {
                Some(hidden) => {
                    CallVerdict::new(CallDecision::Hidden, self.hiding_rule(&policy, &started.caller, hidden))
                }
                None => CallVerdict::new(CallDecision::Unknown, "".into()),
            };
            let summary = self.summarise(&started, None, &arguments);
            // The arguments of a tool that is hidden are not checked, so that only those with the right names count.
            if let Some(hidden) = self.tools.get(name) {
                self.note_detail(&summary, hidden, &arguments);
            }
            self.record(&started, name, &verdict, &CallEnding::NOT_RUN, &summary);
            return Err(self.no_such_tool(&policy, &started.caller, name));
        };
        let summary = self.summarise(&started, Some(registered), &arguments);
        let mut recording = CallRecording::new(self, &started, registered.tool.name(), &summary);
        #[cfg(feature = "ci")]
        let egress_log = context.egress_log.clone();
        let admitted = match self.admit(&policy, registered, arguments, &summary, &mut context) {
            Ok(admitted) => Ok(admitted),
            Err(NotAdmitted::Rejected(rejected)) => Err(rejected),
            // Boxed: few calls wait for a person, and every call would be as large as one that does.
            Err(NotAdmitted::NeedsApproval(request)) => {
                let asked =
                    Box::pin(self.ask_person(registered, request, &mut context, &mut recording)).await;
                asked.and_then(|ApprovedCall { call, policy: current, answer, held }| {
                    policy = current;
                    let limits = policy.limits(&context.caller).narrowed_by(context.limits);
                    let admitted =
                        self.admit_authorized(&policy, registered, call, limits, &summary, &mut context);
                    match admitted {
                        Ok(admitted) => Ok(AdmittedCall { approval: Some(answer), _held: held, ..admitted }),
                        Err(rejected) => Err(rejected.answered(answer)),
                    }
                })
            }
        };
        let answer = match admitted {
            Ok(AdmittedCall { call, rule, approval, _held, _running }) => {
                recording.on_decided(CallVerdict { decision: CallDecision::Allowed, rule, approval });
                if let Some(observer) = &started.observer {
                    observer.observe_start(&starting_record(
                        &started.caller,
                        registered.tool.name(),
                        &summary,
                    ));
                }
                if registered.tool.wants_directory() {
                    context.directory = Some(self.directory(Arc::clone(&policy), context.caller.clone()));
                }
                if registered.tool.wants_to_call_tools() {
                    context.tool_caller = Some(self.tool_caller(&context));
                }
                context.policy = Some(policy);
                context.redactor = Some(self.shared.redactor.clone());
                self.dispatch(registered, call, context).await
            }
            Err(RejectedCall { verdict, message }) => {
                recording.on_decided(verdict);
                Err(ToolError::new(message))
            }
        };
        let answer =
            answer.unwrap_or_else(|error| Answer::error(&self.without_hidden_advice(&started.caller, error)));
        #[cfg(feature = "ci")]
        let answer = {
            let refused = egress_log.messages();
            let answer = answer.with_refused_connections(&refused);
            recording.on_connections_refused(refused);
            answer
        };
        // Twice: a client may go away while the answer is masked, and masking may itself make it an error.
        recording.on_finished(&answer);
        let answer = self.finalize(answer).await;
        recording.on_finished(&answer);
        recording.end(answer.size_bytes());
        Ok(answer)
    }

    /// Checks arguments, policy and limits, in this order: what costs least comes first, and nothing is counted for a
    /// call that the policy refuses. Puts what the policy grants into `context`.
    fn admit(
        &self,
        policy: &Policy,
        registered: &RegisteredTool,
        arguments: Map<String, Value>,
        summary: &ArgumentSummary,
        context: &mut CallContext,
    ) -> Result<AdmittedCall, NotAdmitted> {
        let limits = policy.limits(&context.caller).narrowed_by(context.limits);
        if let Some(limit) = limits.max_argument_bytes.filter(|limit| summary.bytes as u64 > *limit) {
            let message = format!("the arguments have {} bytes; this role may send {limit}", summary.bytes);
            return Err(
                RejectedCall::new(CallDecision::Refused, "limits: max_argument_bytes", message).into()
            );
        }
        let call = self.authorize(policy, registered, arguments, summary, &context.caller)?;
        Ok(self.admit_authorized(policy, registered, call, limits, summary, context)?)
    }

    /// Checks the limits on a call that the policy allows.
    fn admit_authorized(
        &self,
        policy: &Policy,
        registered: &RegisteredTool,
        call: Authorized<Call>,
        limits: RoleLimits,
        summary: &ArgumentSummary,
        context: &mut CallContext,
    ) -> Result<AdmittedCall, RejectedCall> {
        let rule = Arc::clone(&call.decision().rule);
        let running =
            match registered.tool.wants_to_call_tools() {
                // The calls that it makes are counted: beside it, a role of one call at once could make none.
                true => None,
                false => self.shared.rate_limiter.admit(&context.caller, limits).map_err(|limited| {
                    RejectedCall::new(CallDecision::Refused, "limits", limited.to_string())
                })?,
            };
        // After the limits, so that the audit has the start of no call that a limit refuses.
        if let Some(audit) = &self.shared.audit
            && let Err(error) =
                audit.start(&starting_record(&context.caller, registered.tool.name(), summary))
        {
            tracing::error!(%error, "the audit cannot be written, so no call runs");
            let message = "not run: calls are recorded on this server, and the record cannot be written now; \
                           its operator must make room";
            return Err(RejectedCall::new(CallDecision::Refused, "audit", message));
        }
        self.grant(policy, registered, &call, limits, context);
        Ok(AdmittedCall { call, rule, approval: None, _held: None, _running: running })
    }

    /// Brings the arguments to their canonical form and asks the policy.
    fn authorize(
        &self,
        policy: &Policy,
        registered: &RegisteredTool,
        arguments: Map<String, Value>,
        summary: &ArgumentSummary,
        caller: &Caller,
    ) -> Result<Authorized<Call>, NotAdmitted> {
        let name = registered.tool.name();
        let arguments = arguments::normalise(name, registered.tool.input(), arguments).map_err(|faults| {
            let mut message = format!("invalid arguments for `{name}`:\n{faults}");
            // Named only to a caller that sees it.
            if let Some((other, arguments)) = faults.other_tool.as_deref()
                && self.find(policy, caller, other).is_some_and(|registered| registered.is_listed)
            {
                let arguments = to_short_json(arguments).unwrap_or_default();
                let _ = write!(message, "; `{other}` does not: {arguments}");
            }
            RejectedCall::new(CallDecision::Invalid, "", message)
        })?;
        self.note_detail(summary, registered, &arguments);
        let call = Call::new(name, arguments);
        policy.authorize(caller, &registered.facts(), call, &*self.tools.effects).map_err(|refusal| {
            match refusal {
                Refusal::Approval(request) => NotAdmitted::NeedsApproval(request),
                Refusal::Arguments { .. } => RejectedCall::new(
                    CallDecision::Refused,
                    refusal.rule(),
                    format!("refused by policy: {refusal}"),
                )
                .into(),
                // Not reached: the tool was found a moment ago, by the same policy.
                _ => RejectedCall::new(CallDecision::Hidden, refusal.rule(), "no such tool").into(),
            }
        })
    }

    /// Puts into `context` what the policy grants the call.
    fn grant(
        &self,
        policy: &Policy,
        registered: &RegisteredTool,
        call: &Authorized<Call>,
        limits: RoleLimits,
        context: &mut CallContext,
    ) {
        context.scope = call.scope().clone();
        context.system_calls = policy.system_calls(&context.caller);
        context.credentials = policy.credentials(&context.caller);
        context.unrestricted =
            registered.tool.wants_unrestricted() && self.is_unrestricted(policy, &context.caller);
        context.restricted = !registered.facts().read_only && !self.sees_everything(policy, &context.caller);
        context.resource_limits = resource_limits(limits);
        context.role_limit = limits.max_seconds.map(Duration::from_secs);
        let max_timeout = self.limits().max_timeout;
        context.max_timeout = context.role_limit.map_or(max_timeout, |limit| limit.min(max_timeout));
    }

    /// Returns an error without the advice to use tools that are not listed to `caller`.
    fn without_hidden_advice(&self, caller: &Caller, error: ToolError) -> ToolError {
        let policy = self.shared.policy.load();
        let listed: HashSet<&str> =
            self.listed(&policy, caller).map(|registered| registered.tool.name()).collect();
        let message = error.to_string();
        match self.tools.known.without_advice(&message, &listed) {
            Cow::Borrowed(_) => error,
            Cow::Owned(shortened) => ToolError::new(shortened).because(error.cause()),
        }
    }

    /// Returns the tools that `caller` may call.
    fn directory(&self, policy: Arc<Policy>, caller: Caller) -> ToolDirectory {
        let host = self.clone();
        ToolDirectory::new(move |visit| {
            let callable: HashSet<&str> =
                host.visible(&policy, &caller).map(|registered| registered.tool.name()).collect();
            for registered in host.visible(&policy, &caller) {
                let definition = &registered.whole_definition(&host.tools.known, &callable);
                let rarely_needed = registered.rarely_needed(definition);
                let RegisteredTool { toolset, is_listed, .. } = registered;
                visit(DirectoryEntry { toolset, definition, rarely_needed, is_listed: *is_listed });
            }
        })
    }

    /// Returns true if the policy keeps nothing from `caller`. Never where several callers share the server: other callers'
    /// programs run beside its own.
    fn is_unrestricted(&self, policy: &Policy, caller: &Caller) -> bool {
        !self.shared.multi_tenant && self.sees_everything(policy, caller)
    }

    /// Returns true if `caller` may call every tool, and the policy requires nothing of the arguments of any.
    fn sees_everything(&self, policy: &Policy, caller: &Caller) -> bool {
        self.tools.of_kind(OfferKind::Tool).map(RegisteredTool::facts).all(|tool| {
            policy.sees(caller, &tool)
                && caller.roles().all(|role| policy.requirements(role, &tool).is_empty())
        })
    }

    /// Returns the rule that hides a tool, for the audit.
    fn hiding_rule(&self, policy: &Policy, caller: &Caller, registered: &RegisteredTool) -> Arc<str> {
        let call = Call::new(registered.tool.name(), Map::new());
        // No argument is there to be resolved, so the text alone will do.
        match policy.authorize(caller, &registered.facts(), call, &LexicalResolver) {
            Ok(_) => "".into(),
            Err(refusal) => Arc::clone(refusal.rule()),
        }
    }

    /// Masks and bounds an answer: the one exit for every answer.
    async fn finalize(&self, answer: Answer) -> Answer {
        if answer.size_bytes() < LONG_ANSWER_BYTES {
            let SharedHost { redactor, limits, answer_format, .. } = &*self.shared;
            return answer.finalize(redactor, limits, *answer_format);
        }
        let shared = Arc::clone(&self.shared);
        let finalized = tokio::task::spawn_blocking(move || {
            answer.finalize(&shared.redactor, &shared.limits, shared.answer_format)
        });
        // Where masking panicked the answer itself must not leave.
        finalized.await.unwrap_or_else(|_| {
            Answer::error(&ToolError::new(
                "the call ended, and its answer was lost by a defect of this server, which its log tells",
            ))
        })
    }
}
