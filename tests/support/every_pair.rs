//! Every role × every tool × list and call × both eras, over whatever carries it.

use crate::{Era, Wire};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

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

/// The prompts and resources that are listed to a client, each by the name that a policy knows.
fn listed_offers(client: &mut impl Ask) -> BTreeMap<String, Offer> {
    let mut offers = BTreeMap::new();
    for (method, list, kind) in [
        ("prompts/list", "prompts", "prompts"),
        ("resources/list", "resources", "resources"),
        ("resources/templates/list", "resourceTemplates", "resources"),
    ] {
        let answer = client.request(method, json!({}));
        let entries = answer["result"][list].as_array().unwrap_or_else(|| panic!("no list: {answer}"));
        for entry in entries {
            let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            let name = text("name");
            // A prompt for each role has the role behind its name.
            let known = if name.starts_with("work_as_") { "work_as" } else { &name };
            let address = text("uri") + &text("uriTemplate");
            offers.insert(format!("mcp/{kind}/{known}"), Offer { name, address });
        }
    }
    offers
}

/// A prompt or a resource of a list.
struct Offer {
    name: String,
    /// The address or its template; empty for a prompt.
    address: String,
}

impl Offer {
    /// The request that gets it, with the first value for each variable that comes to mind.
    fn request(&self) -> (&'static str, Value) {
        match self.address.as_str() {
            "" => ("prompts/get", json!({"name": self.name})),
            template => {
                ("resources/read", json!({"uri": template.replace("{role}", "dev").replace("{id}", "1")}))
            }
        }
    }

    /// The request for suggestions.
    fn completions(&self) -> Value {
        let reference = match self.address.as_str() {
            "" => json!({"type": "ref/prompt", "name": self.name}),
            address => json!({"type": "ref/resource", "uri": address}),
        };
        json!({"ref": reference, "argument": {"name": "x", "value": ""}})
    }
}

/// Checks that the prompts and resources of `matrix` are those that a role is listed and given, and that those which are hidden
/// are answered as what was never there.
fn check_offers(role: &str, decisions: &Value, all: &BTreeMap<String, Offer>, client: &mut impl Ask) {
    let listed = listed_offers(client);
    for (known, offer) in all {
        let decision = decisions[known].as_str().unwrap_or_else(|| panic!("no decision on {known}"));
        assert_eq!(listed.contains_key(known), decision != "hidden", "{role}, {known}");
        // A prompt has the role in its name, and each role has its own.
        let offer = listed.get(known).unwrap_or(offer);
        let (method, params) = offer.request();
        let unknown = match method {
            "prompts/get" => json!({"name": "no_such"}),
            _ => json!({"uri": "coretools://no-such"}),
        };
        let mut error = |method: &str, params: &Value| {
            let answer = client.request(method, params.clone());
            let named = params["name"].as_str().or_else(|| params["uri"].as_str());
            answer["error"].to_string().replace(named.unwrap_or("no name"), "NAME")
        };
        let answered = error(method, &params);
        let missing = error(method, &unknown);
        let suggested = error("completion/complete", &offer.completions());
        match decision {
            "hidden" => {
                assert_eq!(answered, missing, "{role}, {known}");
                assert_ne!(suggested, "null", "{role}, {known}");
            }
            _ => {
                assert_ne!(answered, missing, "{role}, {known}");
                assert_eq!(suggested, "null", "{role}, {known}");
            }
        }
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
    let known = matrix.values().next().and_then(Value::as_object).expect("a role");
    let known: BTreeSet<&str> =
        known.keys().map(String::as_str).filter(|name| name.starts_with("mcp/")).collect();
    for (role, decisions) in matrix {
        let visible: BTreeSet<String> =
            tools.iter().filter(|tool| decisions[*tool] != "hidden").cloned().collect();
        let hidden: Vec<&String> = tools.difference(&visible).collect();
        hidden_pairs += hidden.len();
        for era in Era::BOTH {
            let mut client = connect(role, None, era);
            assert_eq!(client.listed(), visible, "{role}, {era:?}");
            let offers = listed_offers(&mut connect("orchestrator", None, era));
            let listed: BTreeSet<&str> = offers.keys().map(String::as_str).collect();
            let expected: BTreeSet<&str> =
                known.iter().copied().filter(|name| !name.starts_with("mcp/completions/")).collect();
            assert_eq!(listed, expected, "the first role of the matrix has all");
            check_offers(role, decisions, &offers, &mut client);
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
