//! Calls that wait for the client's own user, who is asked by a form.
//!
//! A client with a handshake gets a request (`elicitation/create`). One without gets the question as the answer to its call,
//! and sends the call again with the answer of its user (`inputRequests` of 2026-07-28).

use super::state::{AskedPerson, ParkedRequestReason, ProxyPausedCall, ProxySessionState, WaitingApproval};
use crate::authorizer::name_and_arguments;
use crate::observer::ProxyDecision;
use approvals::{ApprovalAnswer, ApprovalQuestion, ApprovalVerdict};
use json_rpc::json::{Json, JsonObject};
use json_rpc::message::{Id, Message};
use role_policy::ApprovalRequest;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::time::Instant;

/// The key of the question in the answer to a call.
const KEY: &str = "approval";

/// The most calls that wait to be sent again.
const MAX_PAUSED: usize = 128;

impl ProxySessionState {
    /// Notes if the client shows forms, as it describes itself in the handshake or in a request without one.
    pub(super) fn note_client_forms(&mut self, method: &str, message: &Message<'_>) {
        const MODERN: &str = "io.modelcontextprotocol/clientCapabilities";
        let capabilities = match method {
            "initialize" => message.params().and_then(|params| params.get("capabilities")),
            _ => message.meta().and_then(|meta| meta.get(MODERN)),
        };
        if let Some(capabilities) = capabilities.and_then(Json::as_object) {
            let elicitation = capabilities.get("elicitation").and_then(Json::to_value);
            self.client_shows_forms = ApprovalVerdict::client_shows_forms(elicitation.as_ref());
        }
    }

    /// Asks the client's user about a call.
    pub(super) fn ask_client(
        &mut self,
        id: Id,
        message: Message<'_>,
        request: ApprovalRequest,
        question: ApprovalQuestion,
        deadline: Instant,
    ) {
        if message.is_modern() {
            return self.pause_call(&id, message, request, question, deadline);
        }
        let proxy_id = self.next_id();
        let Some(params) = object(&question.form()) else { return self.not_asked(&id, &message, &request) };
        self.client_questions.insert(self.last_id, id.clone());
        self.park(id.clone(), message, ParkedRequestReason::Approval, Some(deadline));
        self.waiting_approvals.insert(id, WaitingApproval { asked: AskedPerson::Client(question), request });
        self.answer(&Message::request(&proxy_id, "elicitation/create", params));
    }

    /// Takes the client's answer to a question. Returns false if `number` is no question of ours.
    pub(super) fn client_answered(&mut self, number: u64, message: &Message<'_>) -> bool {
        let Some(id) = self.client_questions.remove(&number) else { return false };
        let result = message.result_object().and_then(|result| Some(Value::Object(result.to_map()?)));
        let Some(WaitingApproval { asked: AskedPerson::Client(question), .. }) =
            self.waiting_approvals.get(&id)
        else {
            return true; // The call has ended.
        };
        let question = question.clone();
        match self.client_verdict(&question, result.as_ref()) {
            Ok(answer) => self.resume_parked(&id, &answer),
            Err(reason) => {
                let waiting = self.waiting_approvals.remove(&id);
                for parked in self.take_parked(|parked| parked.id == id) {
                    self.client_requests.remove(&id);
                    if let Some(waiting) = &waiting {
                        self.without_answer(&id, &parked.message, &waiting.request, reason);
                    }
                }
            }
        }
        true
    }

    /// Tells the client that an answer to the questions about the call `id` is not needed any more.
    pub(super) fn withdraw_client_question(&mut self, id: &Id) {
        let numbers: Vec<u64> =
            self.client_questions.iter().filter(|(_, call)| *call == id).map(|(number, _)| *number).collect();
        for number in numbers {
            self.client_questions.remove(&number);
            let params = [
                ("requestId", Json::Number(Cow::Owned(number.to_string()))),
                ("reason", Json::string("the call does not wait for an answer any more")),
            ];
            self.answer(&Message::notification("notifications/cancelled", params.into_iter().collect()));
        }
    }

    /// Answers a call with the question about it, and keeps it until the client sends it again.
    fn pause_call(
        &mut self,
        id: &Id,
        message: Message<'_>,
        request: ApprovalRequest,
        question: ApprovalQuestion,
        deadline: Instant,
    ) {
        let state = approvals::random_id();
        let result = state.as_ref().ok().and_then(|state| {
            object(&json!({
                "resultType": "input_required",
                "inputRequests": { KEY: { "method": "elicitation/create", "params": question.form() } },
                "requestState": state,
            }))
        });
        let (Ok(state), Some(result), true) = (state, result, self.paused_calls.len() < MAX_PAUSED) else {
            return self.not_asked(id, &message, &request);
        };
        let message = message.into_owned();
        self.paused_calls.insert(state, ProxyPausedCall { message, question, request, deadline });
        self.wake_at(Some(deadline));
        self.answer(&Message::result(id, result));
    }

    /// Goes on with a call that the client sends again with the answer of its user. Returns the message if it is none.
    pub(super) fn resume_paused<'m>(&mut self, id: &Id, mut message: Message<'m>) -> Option<Message<'m>> {
        let state = message.params().and_then(|params| params.get("requestState")).and_then(Json::as_str);
        // Each state is used once.
        let Some(paused) = state.and_then(|state| self.paused_calls.remove(state)) else {
            return Some(message);
        };
        let call = |message: &Message<'_>| {
            let (name, arguments) = message.params().and_then(name_and_arguments)?;
            Some((name.to_owned(), arguments.cloned().unwrap_or_default().into_owned()))
        };
        if call(&message) != call(&paused.message) {
            self.record_not_sent(&message, ProxyDecision::Refused, paused.request.rule());
            let text = "not run: this is another call than the one that a person was asked about; call again without \
                        `requestState`";
            self.refuse_call(id, text.to_owned());
            return None;
        }
        let responses = message.params().and_then(|params| params.get("inputResponses"));
        let response = responses.and_then(Json::as_object).and_then(|all| all.get(KEY)?.to_value());
        let params = message.params_mut();
        params.remove("requestState");
        params.remove("inputResponses");
        match self.client_verdict(&paused.question, response.as_ref()) {
            Ok(answer) => self.answered_call(id.clone(), message, paused.request, &answer),
            Err(reason) => self.without_answer(id, &message, &paused.request, reason),
        }
        None
    }

    /// Ends the calls that their client did not send again in time.
    pub(super) fn expire_paused_calls(&mut self, now: Instant) {
        let is_over = |paused: &ProxyPausedCall| paused.deadline <= now;
        let states: Vec<String> = self
            .paused_calls
            .iter()
            .filter(|(_, paused)| is_over(paused))
            .map(|(state, _)| state.clone())
            .collect();
        for state in states {
            if let Some(paused) = self.paused_calls.remove(&state) {
                self.record_not_sent(&paused.message, ProxyDecision::Refused, "nobody answered");
            }
        }
    }

    /// Returns the answer in the result of a form.
    fn client_verdict(
        &self,
        question: &ApprovalQuestion,
        result: Option<&Value>,
    ) -> Result<ApprovalAnswer, &'static str> {
        let result = result.ok_or("the client did not ask its user")?;
        let verdict = ApprovalVerdict::from_form(result).map_err(approvals::NoVerdict::reason)?;
        let principal = self.authorizer.caller().principal().map(|name| format!(" of {name}"));
        let approver = format!("the user of the client{}", principal.unwrap_or_default());
        let answer = ApprovalAnswer::now(verdict, approver);
        if let Some(approvals) = &self.approvals {
            approvals.queue.record(question, &answer);
        }
        Ok(answer)
    }

    fn without_answer(&mut self, id: &Id, message: &Message<'_>, request: &ApprovalRequest, reason: &str) {
        self.record_not_sent(message, ProxyDecision::Refused, request.rule());
        self.refuse_call(
            id,
            format!("not run: {request}, and there was no answer: {reason}. No answer is no"),
        );
    }

    fn not_asked(&mut self, id: &Id, message: &Message<'_>, request: &ApprovalRequest) {
        self.without_answer(id, message, request, "the client cannot be asked now");
    }
}

fn object(value: &Value) -> Option<JsonObject<'static>> {
    match Json::parse(value.to_string().as_bytes()).ok()?.into_owned() {
        Json::Object(object) => Some(object),
        _ => None,
    }
}
