//! The form that a client shows to its user.

use super::client_answer::ClientAnswer;
use approvals::{ApprovalQuestion, ApprovalVerdict, shown_text};
use rmcp::model::{
    ClientCapabilities, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
};
use serde_json::{Value, json};

const ALLOW_ONCE: &str = "allow once";
const ALLOW_FOR_SESSION: &str = "allow for this session";
const DENY: &str = "deny";

/// Returns true if a client with these capabilities shows forms. One that names no mode shows forms (2025-06-18).
pub(in crate::mcp) fn supports_forms(capabilities: &ClientCapabilities) -> bool {
    capabilities.elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Returns the form of a question.
pub(super) fn form(question: &ApprovalQuestion) -> Option<ElicitRequestParams> {
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Decision",
                "description": "`allow for this session` allows the same call with the same arguments again",
                "enum": [ALLOW_ONCE, ALLOW_FOR_SESSION, DENY],
            },
            "reason": { "type": "string", "title": "Reason", "description": "What the agent reads if you deny" },
        },
        "required": ["decision"],
    });
    let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question.text(),
        requested_schema,
    })
}

/// Returns the decision in the answer to the form. Whatever is not exactly a decision is none.
pub(in crate::mcp) fn verdict(result: &ElicitResult) -> ClientAnswer {
    match result.action {
        ElicitationAction::Accept => {}
        ElicitationAction::Decline => return ClientAnswer::Verdict(ApprovalVerdict::Deny(None)),
        _ => return ClientAnswer::None("the question was closed without a decision"),
    }
    let field =
        |name: &str| result.content.as_ref().and_then(|content| content.get(name)).and_then(Value::as_str);
    match field("decision") {
        Some(ALLOW_ONCE) => ClientAnswer::Verdict(ApprovalVerdict::AllowOnce),
        Some(ALLOW_FOR_SESSION) => ClientAnswer::Verdict(ApprovalVerdict::AllowForSession),
        Some(DENY) => {
            let reason = field("reason").map(str::trim).filter(|reason| !reason.is_empty());
            ClientAnswer::Verdict(ApprovalVerdict::Deny(reason.map(|reason| shown_text(reason, 500))))
        }
        _ => ClientAnswer::None("the form came back without a decision"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_decision_is_one() {
        let answer = |result: Value| verdict(&serde_json::from_value(result).unwrap());
        let allows = |answer| {
            matches!(
                answer,
                ClientAnswer::Verdict(ApprovalVerdict::AllowOnce | ApprovalVerdict::AllowForSession)
            )
        };
        assert!(allows(answer(json!({ "action": "accept", "content": { "decision": "allow once" } }))));
        for refused in [
            json!({ "action": "accept" }),
            json!({ "action": "accept", "content": {} }),
            json!({ "action": "accept", "content": { "decision": true } }),
            json!({ "action": "accept", "content": { "decision": "Allow once" } }),
            json!({ "action": "accept", "content": { "decision": "deny" } }),
            json!({ "action": "decline", "content": { "decision": "allow once" } }),
            json!({ "action": "cancel", "content": { "decision": "allow once" } }),
        ] {
            assert!(!allows(answer(refused.clone())), "{refused}");
        }
    }

    #[test]
    fn the_form_is_one_that_clients_know() {
        let question = ApprovalQuestion::new("git_push", "builder", "f".repeat(64));
        let form = serde_json::to_value(form(&question).unwrap()).unwrap();
        assert_eq!(form["mode"], "form");
        assert_eq!(form["requestedSchema"]["properties"]["decision"]["enum"][0], "allow once");
        assert!(form["message"].as_str().unwrap().contains("asks to call git_push"));
    }
}
