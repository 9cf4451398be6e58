//! [`HookAnswer`]: a decision in the form that the client reads.

use crate::client::HookClient;
use crate::judge::{HookDecision, HookVerdict};
use serde_json::{Map, Value, json};

/// An answer to a client.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HookAnswer {
    /// The text for standard output.
    pub output: Value,
}

impl HookAnswer {
    /// Returns the answer that `decision` is for `client`.
    ///
    /// `input` takes the place of the tool's arguments, and `approves` says what an allowed use is: the policy's word alone,
    /// so that the client asks its user as it would without a hook, or the client's own permission too.
    pub fn new(
        client: HookClient,
        decision: &HookDecision,
        input: Option<Map<String, Value>>,
        approves: bool,
    ) -> Self {
        let asks = match input {
            None => client.can_ask(),
            Some(_) => client.can_ask_about_changed_arguments(),
        };
        let output = match decision.verdict {
            HookVerdict::Deny => denial(client, &decision.reason),
            HookVerdict::Ask if asks => question(client, &decision.reason, input),
            // No answer is no: this client has nobody asked.
            HookVerdict::Ask => denial(
                client,
                &format!(
                    "{}; a person must agree, and {} cannot ask one here",
                    decision.reason,
                    client.display_name()
                ),
            ),
            HookVerdict::Allow => allowance(client, input, approves),
        };
        Self { output }
    }

    /// Returns the answer to an event that could not be read or judged.
    pub fn failure(client: HookClient, reason: &str) -> Self {
        Self { output: denial(client, &format!("the CoreTools hook failed, so nothing may run: {reason}")) }
    }
}

fn question(client: HookClient, reason: &str, input: Option<Map<String, Value>>) -> Value {
    let mut output = Map::from_iter([
        ("permissionDecision".to_owned(), json!("ask")),
        ("permissionDecisionReason".to_owned(), json!(reason)),
    ]);
    if client == HookClient::Copilot {
        return Value::Object(output);
    }
    output.insert("hookEventName".to_owned(), json!(client.event()));
    if let Some(input) = input {
        output.insert("updatedInput".to_owned(), Value::Object(input));
    }
    json!({"hookSpecificOutput": output})
}

fn denial(client: HookClient, reason: &str) -> Value {
    match client {
        HookClient::Claude | HookClient::Codex => json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }}),
        HookClient::Gemini | HookClient::Opencode => json!({"decision": "deny", "reason": reason}),
        HookClient::Copilot => json!({"permissionDecision": "deny", "permissionDecisionReason": reason}),
        // Its documents give the model `agent_message`, and some of its versions give it `user_message`.
        HookClient::Cursor => {
            json!({"permission": "deny", "user_message": reason, "agent_message": reason})
        }
    }
}

fn allowance(client: HookClient, input: Option<Map<String, Value>>, approves: bool) -> Value {
    match client {
        HookClient::Claude => {
            let mut output = Map::from_iter([("hookEventName".to_owned(), json!("PreToolUse"))]);
            if approves {
                output.insert("permissionDecision".to_owned(), json!("allow"));
            }
            match input {
                Some(input) => {
                    output.insert("updatedInput".to_owned(), Value::Object(input));
                }
                // An empty object leaves the decision to Claude Code, which then asks its user as without a hook.
                None if !approves => return json!({}),
                None => {}
            }
            json!({"hookSpecificOutput": output})
        }
        // Codex takes other arguments only with this word, which answers nothing else: its own approvals still come.
        HookClient::Codex => match input {
            Some(input) => json!({"hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "allow",
                "updatedInput": input,
            }}),
            None => json!({}),
        },
        HookClient::Gemini => match input {
            Some(input) => {
                json!({"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": input}})
            }
            None => json!({}),
        },
        HookClient::Opencode => match input {
            Some(input) => json!({"decision": "allow", "input": input}),
            None => json!({"decision": "allow"}),
        },
        // The word `allow` would take the place of the client's own question to its user.
        HookClient::Copilot => {
            let mut output = Map::new();
            if approves {
                output.insert("permissionDecision".to_owned(), json!("allow"));
            }
            if let Some(input) = input {
                output.insert("modifiedArgs".to_owned(), Value::Object(input));
            }
            Value::Object(output)
        }
        // With `failClosed`, no word is a refusal.
        HookClient::Cursor => match input {
            Some(input) => json!({"permission": "allow", "updated_input": input}),
            None => json!({"permission": "allow"}),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(verdict: HookVerdict) -> HookDecision {
        let (tool, rule) = ("run_command".to_owned(), "a rule".to_owned());
        HookDecision {
            verdict,
            tool,
            rule,
            reason: "why".to_owned(),
            runs_programs: true,
            opened: Vec::new(),
        }
    }

    #[test]
    fn a_client_that_would_drop_the_changed_line_refuses_instead_of_asking() {
        let input = || Some(Map::from_iter([("command".to_owned(), json!("exec -- bash"))]));
        let answer =
            |client, input| HookAnswer::new(client, &decision(HookVerdict::Ask), input, false).output;
        assert_eq!(answer(HookClient::Copilot, None)["permissionDecision"], "ask");
        let refused = answer(HookClient::Copilot, input());
        assert_eq!(refused["permissionDecision"], "deny");
        assert!(refused["permissionDecisionReason"].as_str().unwrap().contains("a person must agree"));
        let asked = answer(HookClient::Claude, input());
        assert_eq!(asked["hookSpecificOutput"]["permissionDecision"], "ask");
        assert_eq!(asked["hookSpecificOutput"]["updatedInput"]["command"], "exec -- bash");
        for client in [HookClient::Codex, HookClient::Gemini, HookClient::Opencode, HookClient::Cursor] {
            let text = answer(client, None).to_string();
            assert!(text.contains("deny") && text.contains("a person must agree"), "{client}: {text}");
        }
    }

    #[test]
    fn every_answer_that_refuses_has_the_reason() {
        for client in HookClient::ALL {
            let refused =
                HookAnswer::new(client, &decision(HookVerdict::Deny), None, true).output.to_string();
            assert!(refused.contains("deny") && refused.contains("why"), "{client}: {refused}");
            let failed = HookAnswer::failure(client, "broken").output.to_string();
            assert!(failed.contains("deny") && failed.contains("broken"), "{client}: {failed}");
        }
    }
}
