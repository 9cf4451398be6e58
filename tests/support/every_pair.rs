//! Every role × every tool × list and call × both eras, over whatever carries it.

use crate::{Era, Wire};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// One who can ask a server.
pub trait Ask {
    /// Sends a request and waits for its answer, a JSON-RPC response.
    fn request(&mut self, method: &str, params: Value) -> Value;

    /// The names of the tools that are listed.
    fn listed(&mut self) -> BTreeSet<String> {
        let answer = self.request("tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("no list: {answer}"));
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }
}

impl Ask for Wire {
    fn request(&mut self, method: &str, params: Value) -> Value {
        Self::request(self, method, params)
    }
}

/// Checks that what `matrix` has of each role is what a server lists for it, that all of that can be called, and that
/// what is hidden is answered word for word as by a server in which it was never built in. `connect` makes a client of
/// a role, of a server with all tools or with some.
pub fn check_every_pair<A: Ask>(
    matrix: &Map<String, Value>,
    tools: &BTreeSet<String>,
    mut connect: impl FnMut(&str, Option<&[&str]>, Era) -> A,
) {
    assert!(tools.len() > 20, "{tools:?}");
    let mut hidden_pairs = 0;
    for (role, decisions) in matrix {
        let visible: BTreeSet<String> =
            tools.iter().filter(|tool| decisions[*tool] != "hidden").cloned().collect();
        let hidden: Vec<&String> = tools.difference(&visible).collect();
        hidden_pairs += hidden.len();
        for era in Era::BOTH {
            let mut client = connect(role, None, era);
            assert_eq!(client.listed(), visible, "{role}, {era:?}");
            for tool in &visible {
                let answer = client.request("tools/call", json!({"name": tool, "arguments": {}}));
                assert!(answer["result"]["content"].is_array(), "{role}, {tool}: {answer}");
            }
            // A server in which what is hidden was never built in.
            let chosen: Vec<&str> = visible.iter().map(String::as_str).collect();
            let mut lesser = connect(role, Some(&chosen), era);
            for tool in &hidden {
                for arguments in [json!({}), json!({"path": "README.md", "command": ["true"], "x": [1]})] {
                    let call = json!({"name": tool, "arguments": arguments});
                    let mut answer = client.request("tools/call", call.clone());
                    let mut truth = lesser.request("tools/call", call);
                    assert!(answer["error"].is_object(), "{role} called {tool}: {answer}");
                    // The two connections count for themselves.
                    answer["id"].take();
                    truth["id"].take();
                    assert_eq!(answer.to_string(), truth.to_string(), "{role}, {tool}, {era:?}");
                }
            }
        }
    }
    assert!(hidden_pairs > 40, "only {hidden_pairs} pairs were hidden, so nothing was shown");
}
