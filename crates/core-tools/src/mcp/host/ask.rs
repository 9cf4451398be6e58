//! A call that waits for the approval of a person.

use super::host::Host;
use super::record::{CallRecording, CallVerdict};
use super::rejected_call::RejectedCall;
use super::tools::RegisteredTool;
use crate::mcp::approval::ClientAnswer;
use crate::mcp::audit::CallDecision;
use crate::mcp::call_context::CallContext;
use crate::mcp::permits::Permit;
use approvals::{ApprovalAnswer, ApprovalQuestion, ApprovalVerdict, shown_arguments};
use role_policy::{ApprovalRequest, Authorized, Call, Policy, Refusal};
use std::sync::Arc;

/// A call that a person has approved, judged again by the policy in force.
pub(super) struct ApprovedCall {
    pub(super) call: Authorized<Call>,
    pub(super) policy: Arc<Policy>,
    pub(super) answer: ApprovalAnswer,
    /// The permits that were acquired again, if the transport has such.
    pub(super) held: Option<Permit>,
}

impl Host {
    /// Asks a person about a call, and judges it again when the answer comes. Meanwhile it holds no permit.
    pub(super) async fn ask_person(
        &self,
        registered: &RegisteredTool,
        request: ApprovalRequest,
        context: &mut CallContext,
        recording: &mut CallRecording<'_>,
    ) -> Result<ApprovedCall, RejectedCall> {
        let rule = Arc::clone(request.rule());
        // A call whose client goes away while it waits is recorded as refused.
        recording.on_decided(CallVerdict::new(CallDecision::Refused, Arc::clone(&rule)));
        let question = self.question(&request, context);
        let answer = match self.shared.approvals.queue.session_grant(&question) {
            Some(granted) => granted,
            None => {
                if let Some(permit) = context.call_permit.take() {
                    permit.release();
                }
                if let Some(release) = context.permit_release.take() {
                    release.release();
                }
                self.wait_for_answer(question, &request, context).await?
            }
        };
        if let ApprovalVerdict::Deny(reason) = &answer.verdict {
            let reason = reason.as_deref().map(|reason| format!(", because: {reason}")).unwrap_or_default();
            let message = format!(
                "not run: a person was asked, and denied this call{reason}. Do not try to get the same done in another way"
            );
            return Err(RejectedCall::new(CallDecision::Refused, &rule, message).answered(answer));
        }
        let held = self
            .acquire_again(registered, context)
            .await
            .map_err(|rejected| rejected.answered(answer.clone()))?;
        // The policy of this moment: it may have been replaced while the person thought.
        let policy = self.shared.policy.load_full();
        let call = request.call().clone();
        let approval = request.approve(answer.approver.as_str());
        let judged = policy.authorize_approved(
            &context.caller,
            &registered.facts(),
            call,
            &*self.tools.effects,
            approval,
        );
        match judged {
            Ok(call) => Ok(ApprovedCall { call, policy, answer, held }),
            Err(Refusal::Approval(_)) => {
                let message = "not run: a person approved the call, but since then the policy has changed, or what the \
                               call reaches, and the approval does not fit any more; call again, and a person is asked \
                               again";
                Err(RejectedCall::new(CallDecision::Refused, &rule, message).answered(answer))
            }
            Err(refusal) => {
                let message = format!(
                    "not run: a person approved the call, and since then the policy has changed: {refusal}"
                );
                Err(RejectedCall::new(CallDecision::Refused, refusal.rule(), message).answered(answer))
            }
        }
    }

    /// Returns the question about a call, masked.
    fn question(&self, request: &ApprovalRequest, context: &CallContext) -> ApprovalQuestion {
        let redact = |text: &str| self.shared.redactor.redact(text).into_owned();
        let (caller, call) = (&context.caller, request.call());
        let mut question =
            ApprovalQuestion::new(call.tool(), caller.role(), request.fingerprint().to_string());
        question.principal = caller.principal().map(str::to_owned);
        question.session = caller.session().map(str::to_owned);
        let conditions = request.reasons().filter_map(|reason| reason.condition.as_deref());
        question.conditions = conditions.map(redact).collect();
        question.arguments = shown_arguments(call.arguments(), redact);
        question
    }

    /// Asks the first person that there is, and waits for the answer.
    async fn wait_for_answer(
        &self,
        question: ApprovalQuestion,
        request: &ApprovalRequest,
        context: &CallContext,
    ) -> Result<ApprovalAnswer, RejectedCall> {
        let approvals = &self.shared.approvals;
        let rejected = |message: String| RejectedCall::new(CallDecision::Refused, request.rule(), message);
        context.progress.update("waits for the approval of a person");
        // The time limit of a role covers the whole call, and so the wait for a person as well.
        let limit = context.role_limit.map_or(approvals.timeout, |role| role.min(approvals.timeout));
        let answer = async {
            if let Some(client) = context.client_approver.as_ref().filter(|_| approvals.asks_client()) {
                return match client.ask(&question).await {
                    ClientAnswer::Verdict(verdict) => {
                        let principal = context.caller.principal().map(|name| format!(" of {name}"));
                        let approver =
                            format!("the user of {}{}", client.name, principal.unwrap_or_default());
                        let answer = ApprovalAnswer::now(verdict, approver);
                        approvals.queue.record(&question, &answer);
                        Ok(answer)
                    }
                    ClientAnswer::None(why) => Err(rejected(format!(
                        "not run: {request}, and there was no answer: {why}. No answer is no"
                    ))),
                };
            }
            if !approvals.asks_operator() {
                return Err(rejected(format!(
                    "refused by policy: {request}, and nobody can be asked: the client shows no questions (it has no \
                     elicitation), and no operator answers at this server. Ask the user to make this call, to use a client \
                     with elicitation, or to let the policy allow it"
                )));
            }
            match approvals.queue.ask(question, limit) {
                Ok(mut pending) => Ok(pending.answer().await),
                Err(error) => {
                    Err(rejected(format!("not run: {request}, and nobody can be asked now: {error}")))
                }
            }
        };
        tokio::select! {
            biased;
            // An answer that is there counts, even if the limit is reached at the same moment.
            answer = answer => answer,
            () = context.cancel.cancelled() => Err(rejected("cancelled".to_owned())),
            () = tokio::time::sleep(limit) => Err(rejected(format!(
                "not run: {request}, and nobody answered within {} s. No answer is no; call again when somebody is there",
                limit.as_secs()
            ))),
        }
    }

    /// Acquires the permits again that the call gave back while it waited.
    async fn acquire_again(
        &self,
        registered: &RegisteredTool,
        context: &mut CallContext,
    ) -> Result<Option<Permit>, RejectedCall> {
        // A call that a grant of the session allowed did not wait, and still has its permit.
        let Some(admission) = context.call_admission.as_ref().filter(|_| context.call_permit.is_none())
        else {
            return Ok(None);
        };
        let admitted = tokio::select! {
            biased;
            admitted = admission.admit(registered.tool.resources()) => admitted,
            () = context.cancel.cancelled() => {
                return Err(RejectedCall::new(CallDecision::Refused, "limits", "cancelled"));
            }
        };
        match admitted {
            Ok(permits) => {
                context.call_permit = permits.call_permit;
                Ok(Some(permits.held))
            }
            Err(error) => {
                Err(RejectedCall::new(CallDecision::Refused, "limits", format!("not run: {error}")))
            }
        }
    }
}
