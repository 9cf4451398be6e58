//! The form that a client shows to its user, in the types of rmcp.

use super::client_answer::ClientAnswer;
use approvals::{ApprovalQuestion, ApprovalVerdict};
use rmcp::model::{ClientCapabilities, ElicitRequestParams, ElicitResult};

/// Returns true if a client with these capabilities shows forms. One that names no mode shows forms (2025-06-18).
pub(in crate::mcp) fn supports_forms(capabilities: &ClientCapabilities) -> bool {
    capabilities.elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Returns the form of a question.
pub(super) fn form(question: &ApprovalQuestion) -> Option<ElicitRequestParams> {
    serde_json::from_value(question.form()).ok()
}

/// Returns the decision in the answer to the form. Whatever is not exactly a decision is none.
pub(in crate::mcp) fn verdict(result: &ElicitResult) -> ClientAnswer {
    let Ok(result) = serde_json::to_value(result) else {
        return ClientAnswer::None("the answer of the client could not be read");
    };
    match ApprovalVerdict::from_form(&result) {
        Ok(verdict) => ClientAnswer::Verdict(verdict),
        Err(none) => ClientAnswer::None(none.reason()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_form_and_the_answer_survive_the_types_of_the_protocol() {
        let question = ApprovalQuestion::new("git_push", "builder", "f".repeat(64));
        let sent = serde_json::to_value(form(&question).unwrap()).unwrap();
        assert_eq!(sent["message"], question.form()["message"]);
        assert_eq!(sent["requestedSchema"]["properties"]["decision"]["enum"][0], "allow once");
        let answer = |result: Value| verdict(&serde_json::from_value(result).unwrap());
        let allowed = answer(json!({ "action": "accept", "content": { "decision": "allow once" } }));
        assert!(matches!(allowed, ClientAnswer::Verdict(ApprovalVerdict::AllowOnce)));
        let closed = answer(json!({ "action": "cancel", "content": { "decision": "allow once" } }));
        assert!(matches!(closed, ClientAnswer::None(_)));
    }
}
