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
        let output = match decision.verdict {
            HookVerdict::Deny => denial(client, &decision.reason),
            HookVerdict::Ask if client.can_ask() => {
                let mut output = Map::from_iter([
                    ("hookEventName".to_owned(), json!("PreToolUse")),
                    ("permissionDecision".to_owned(), json!("ask")),
                    ("permissionDecisionReason".to_owned(), json!(decision.reason)),
                ]);
                if let Some(input) = input {
                    output.insert("updatedInput".to_owned(), Value::Object(input));
                }
                json!({"hookSpecificOutput": output})
            }
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

fn denial(client: HookClient, reason: &str) -> Value {
    match client {
        HookClient::Claude | HookClient::Codex => json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }}),
        HookClient::Gemini | HookClient::Opencode => json!({"decision": "deny", "reason": reason}),
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
    }
}
