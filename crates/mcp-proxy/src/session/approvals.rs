//! Calls that wait for the approval of a person.

use super::state::{AskedPerson, ParkedRequestReason, ProxySessionState, WaitingApproval};
use crate::observer::ProxyDecision;
use crate::proxy_approvals::ProxyApprovals;
use approvals::{ApprovalAnswer, ApprovalQuestion, ApprovalVerdict, shown_arguments};
use json_rpc::message::{Id, Message};
use role_policy::ApprovalRequest;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time between two looks for answers. Nothing wakes the session when a person answers.
pub(super) const ANSWER_INTERVAL: Duration = Duration::from_millis(200);

impl ProxySessionState {
    /// Asks a person about a call, which is parked or paused meanwhile.
    pub(super) fn ask_person(&mut self, id: Id, message: Message<'_>, request: ApprovalRequest) {
        let rule = Arc::clone(request.rule());
        let approvals = self.approvals.clone();
        let asks_client =
            approvals.as_ref().is_some_and(|approvals| approvals.asks_client) && self.client_shows_forms;
        let approvals = approvals.filter(|approvals| approvals.asks_operator || asks_client);
        let Some(ProxyApprovals { queue, timeout, redact, .. }) = approvals else {
            self.record_not_sent(&message, ProxyDecision::Refused, &rule);
            return self
                .refuse_call(&id, format!("refused by policy: {request}, and nobody can be asked here"));
        };
        let (caller, call) = (self.authorizer.caller(), request.call());
        let mut question =
            ApprovalQuestion::new(call.tool(), caller.role(), request.fingerprint().to_string());
        question.principal = caller.principal().map(str::to_owned);
        let conditions = request.reasons().filter_map(|reason| reason.condition.as_deref());
        question.conditions = conditions.map(|condition| redact(condition)).collect();
        question.arguments = shown_arguments(call.arguments(), |text| redact(text));
        if let Some(granted) = queue.session_grant(&question) {
            return self.answered_call(id, message, request, &granted);
        }
        let deadline = Instant::now() + timeout;
        if asks_client {
            return self.ask_client(id, message, request, question, deadline);
        }
        match queue.ask(question, timeout) {
            Ok(pending) => {
                self.park(id.clone(), message, ParkedRequestReason::Approval, Some(deadline));
                let asked = AskedPerson::Operator(pending);
                self.waiting_approvals.insert(id, WaitingApproval { asked, request });
                self.wake_at(Some(Instant::now() + ANSWER_INTERVAL));
            }
            Err(error) => {
                self.record_not_sent(&message, ProxyDecision::Refused, &rule);
                self.refuse_call(&id, format!("not run: {request}, and nobody can be asked now: {error}"));
            }
        }
    }

    /// Lets the calls go on whose questions were answered, and takes the questions back whose calls have ended.
    pub(super) fn take_approvals(&mut self) {
        let parked = &self.parked_requests;
        self.waiting_approvals.retain(|id, _| parked.iter().any(|parked| parked.id == *id));
        let answers: Vec<(Id, ApprovalAnswer)> = self
            .waiting_approvals
            .iter_mut()
            .filter_map(|(id, waiting)| match &mut waiting.asked {
                AskedPerson::Operator(pending) => Some((id.clone(), pending.try_answer()?)),
                AskedPerson::Client(_) => None,
            })
            .collect();
        for (id, answer) in answers {
            self.resume_parked(&id, &answer);
        }
    }

    /// Lets a parked call go on with the answer of a person.
    pub(super) fn resume_parked(&mut self, id: &Id, answer: &ApprovalAnswer) {
        let Some(waiting) = self.waiting_approvals.remove(id) else { return };
        for parked in self.take_parked(|parked| parked.id == *id) {
            self.client_requests.remove(id);
            self.answered_call(id.clone(), parked.message, waiting.request.clone(), answer);
        }
    }

    /// Judges a call again, now with the answer of a person.
    pub(super) fn answered_call(
        &mut self,
        id: Id,
        message: Message<'_>,
        request: ApprovalRequest,
        answer: &ApprovalAnswer,
    ) {
        let said = format!("{}; {} by {}", request.rule(), answer.verdict.as_str(), answer.approver);
        match &answer.verdict {
            ApprovalVerdict::Deny(reason) => {
                self.record_not_sent(&message, ProxyDecision::Refused, &said);
                let reason =
                    reason.as_deref().map(|reason| format!(", because: {reason}")).unwrap_or_default();
                let text = format!(
                    "not run: a person was asked, and denied this call{reason}. Do not try to get the same done in \
                     another way"
                );
                self.refuse_call(&id, text);
            }
            ApprovalVerdict::AllowOnce | ApprovalVerdict::AllowForSession => {
                self.judge_call(id, message, None, Some(request.approve(said)));
            }
        }
    }
}
