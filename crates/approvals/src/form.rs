//! The form by which a client asks its user (`elicitation/create` of MCP), and the decision in its answer.

use crate::answer::ApprovalVerdict;
use crate::question::ApprovalQuestion;
use crate::shown_text::shown_text;
use serde_json::{Value, json};

const ALLOW_ONCE: &str = "allow once";
const ALLOW_FOR_SESSION: &str = "allow for this session";
const DENY: &str = "deny";

/// The answer to a form holds no decision, for this reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoVerdict(&'static str);

impl ApprovalQuestion {
    /// Returns the parameters of `elicitation/create` that ask the question by a form.
    pub fn form(&self) -> Value {
        json!({
            "mode": "form",
            "message": self.text(),
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "decision": {
                        "type": "string",
                        "title": "Decision",
                        "description": "`allow for this session` allows the same call with the same arguments again",
                        "enum": [ALLOW_ONCE, ALLOW_FOR_SESSION, DENY],
                    },
                    "reason": {
                        "type": "string",
                        "title": "Reason",
                        "description": "What the agent reads if you deny",
                    },
                },
                "required": ["decision"],
            },
        })
    }
}

impl ApprovalVerdict {
    /// Returns the decision in the result of `elicitation/create`.
    ///
    /// # Errors
    /// Whatever is not exactly a decision is none.
    pub fn from_form(result: &Value) -> Result<Self, NoVerdict> {
        match result["action"].as_str() {
            Some("accept") => {}
            Some("decline") => return Ok(Self::Deny(None)),
            _ => return Err(NoVerdict("the question was closed without a decision")),
        }
        match result["content"]["decision"].as_str() {
            Some(ALLOW_ONCE) => Ok(Self::AllowOnce),
            Some(ALLOW_FOR_SESSION) => Ok(Self::AllowForSession),
            Some(DENY) => {
                let reason = result["content"]["reason"].as_str().map(str::trim);
                let reason = reason.filter(|reason| !reason.is_empty());
                Ok(Self::Deny(reason.map(|reason| shown_text(reason, 500))))
            }
            _ => Err(NoVerdict("the form came back without a decision")),
        }
    }

    /// Returns true if a client with this member `elicitation` in its capabilities shows forms. A member that names no
    /// mode means forms (2025-06-18).
    pub fn client_shows_forms(elicitation: Option<&Value>) -> bool {
        elicitation
            .and_then(Value::as_object)
            .is_some_and(|modes| modes.contains_key("form") || !modes.contains_key("url"))
    }
}

impl NoVerdict {
    /// Returns the reason.
    pub const fn reason(self) -> &'static str {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_decision_is_one() {
        let decided = |decision: &str| {
            ApprovalVerdict::from_form(&json!({"action": "accept", "content": {"decision": decision}}))
        };
        assert_eq!(decided("allow once"), Ok(ApprovalVerdict::AllowOnce));
        assert_eq!(decided("allow for this session"), Ok(ApprovalVerdict::AllowForSession));
        assert_eq!(decided("deny"), Ok(ApprovalVerdict::Deny(None)));
        for refused in [
            json!({ "action": "accept" }),
            json!({ "action": "accept", "content": {} }),
            json!({ "action": "accept", "content": { "decision": true } }),
            json!({ "action": "accept", "content": { "decision": "Allow once" } }),
            json!({ "action": "decline", "content": { "decision": "allow once" } }),
            json!({ "action": "cancel", "content": { "decision": "allow once" } }),
            json!("accept"),
            json!(null),
        ] {
            let verdict = ApprovalVerdict::from_form(&refused);
            assert!(matches!(verdict, Err(_) | Ok(ApprovalVerdict::Deny(_))), "{refused}");
        }
    }

    #[test]
    fn a_client_shows_forms_unless_it_names_another_mode_alone() {
        for (elicitation, shows) in [
            (json!({}), true),
            (json!({"form": {}}), true),
            (json!({"form": {}, "url": {}}), true),
            (json!({"url": {}}), false),
            (json!(null), false),
        ] {
            assert_eq!(ApprovalVerdict::client_shows_forms(Some(&elicitation)), shows, "{elicitation}");
        }
        assert!(!ApprovalVerdict::client_shows_forms(None));
    }

    #[test]
    fn the_form_is_one_that_clients_know() {
        let form = ApprovalQuestion::new("git_push", "builder", "f".repeat(64)).form();
        assert_eq!(form["mode"], "form");
        assert_eq!(form["requestedSchema"]["properties"]["decision"]["enum"][0], "allow once");
        assert!(form["message"].as_str().unwrap().contains("asks to call git_push"));
    }
}
