//! The words of the list: each text teaches, and none names what its reader does not have.

use crate::{PRESETS, all, listed, name};
use integration_tests::{Era, Project};
use regex::Regex;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Phrases that teach a model nothing, or promise what nobody can hold.
const BANNED: [&str; 13] = [
    "etc.",
    "and so on",
    "simply",
    "just ",
    "easily",
    "by itself",
    "Or worse",
    "Or HEAD",
    "Of what",
    "If not yours",
    "Its plans",
    "Or any number of times",
    "whatever",
];

/// The texts of a tool: its description, and those of its parameters at every depth, each with its place.
fn texts(tool: &Value) -> Vec<(String, String)> {
    fn collect(schema: &Value, place: &str, texts: &mut Vec<(String, String)>) {
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            let place = format!("{place}.{key}");
            let text = property["description"].as_str().unwrap_or_default();
            texts.push((place.clone(), text.to_owned()));
            collect(property, &place, texts);
            collect(&property["items"], &place, texts);
            for choice in property["items"]["anyOf"].as_array().into_iter().flatten() {
                collect(choice, &place, texts);
            }
        }
    }
    let mut found =
        vec![(name(tool).to_owned(), tool["description"].as_str().unwrap_or_default().to_owned())];
    collect(&tool["inputSchema"], name(tool), &mut found);
    found
}

#[test]
fn every_description_is_at_least_two_sentences_and_every_parameter_has_one() {
    let mut wrong = Vec::new();
    for tool in all() {
        for (place, text) in texts(&tool) {
            let sentences = text.matches(". ").count() + usize::from(text.ends_with('.'));
            let at_least = if place == name(&tool) { 2 } else { 1 };
            if sentences < at_least || !text.ends_with('.') {
                wrong.push(format!("{place}: {text:?} has {sentences} sentences"));
            }
            if text.starts_with(|first: char| first.is_lowercase()) {
                wrong.push(format!("{place}: {text:?} begins with a small letter"));
            }
            let banned = BANNED.iter().filter(|phrase| text.contains(**phrase));
            wrong.extend(banned.map(|phrase| format!("{place}: {text:?} says {phrase:?}")));
        }
    }
    assert!(wrong.is_empty(), "{} texts:\n{}", wrong.len(), wrong.join("\n"));
}

/// The roles that the built-in policy has.
fn roles() -> Vec<String> {
    let output = Project::empty().server().args(["policy", "matrix", "--json"]).output().unwrap();
    let matrix: Map<String, Value> = serde_json::from_slice(&output.stdout).unwrap();
    matrix.keys().cloned().collect()
}

#[test]
fn no_text_names_a_tool_that_the_list_does_not_have_in_any_preset_and_role() {
    let every: BTreeSet<String> = all().iter().map(|tool| name(tool).to_owned()).collect();
    let word = Regex::new("`?[a-z][a-z_]*`?").unwrap();
    let mut wrong = BTreeSet::new();
    for role in roles() {
        for preset in PRESETS {
            let tools = listed(&["--toolsets", preset, "--role", &role], Era::Modern);
            let here: BTreeSet<&str> = tools.iter().map(name).collect();
            for tool in &tools {
                for (place, text) in texts(tool) {
                    assert!(!text.is_empty(), "{role}, {preset}: nothing is left of {place}");
                    for found in word.find_iter(&text).map(|found| found.as_str()) {
                        let bare = found.trim_matches('`');
                        // A name of one word is a word of the language as well.
                        let is_name = bare.contains('_') || found.len() == bare.len() + 2;
                        if is_name && every.contains(bare) && !here.contains(bare) {
                            wrong.insert(format!("{role}, {preset}: {place} names {bare}"));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_text_names_a_parameter_that_its_tool_does_not_list() {
    let tools = all();
    let every: BTreeSet<String> = tools
        .iter()
        .flat_map(|tool| tool["inputSchema"]["properties"].as_object().cloned().unwrap_or_default())
        .map(|(key, _)| key)
        .filter(|key| key.contains('_'))
        .collect();
    let quoted = Regex::new("`([a-z_]+)`").unwrap();
    let mut wrong = Vec::new();
    for tool in &tools {
        let own = tool["inputSchema"].to_string();
        for (place, text) in texts(tool) {
            for found in quoted.captures_iter(&text) {
                if every.contains(&found[1]) && !own.contains(&format!("\"{}\"", &found[1])) {
                    wrong.push(format!("{place} names {}", &found[1]));
                }
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// The type of a parameter, in a word.
fn kind(schema: &Value) -> String {
    if let Some(choices) = schema["anyOf"].as_array() {
        let mut kinds: Vec<String> = choices.iter().map(kind).collect();
        kinds.sort();
        return kinds.join(" or ");
    }
    schema["type"].as_str().unwrap_or("any").to_owned()
}

#[test]
fn a_parameter_of_one_name_has_one_type() {
    let mut kinds: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for tool in all() {
        // Its command and arguments are those of an agent's prompt, in the words of the system that it comes from.
        if name(&tool) == "run_agent_command" {
            continue;
        }
        for (key, property) in tool["inputSchema"]["properties"].as_object().into_iter().flatten() {
            kinds
                .entry(key.clone())
                .or_default()
                .entry(kind(property))
                .or_default()
                .push(name(&tool).to_owned());
        }
    }
    kinds.retain(|_, kinds| kinds.len() > 1);
    // A list of globs may also be one text. A cursor is what an earlier answer had, whatever its type.
    for known in ["include", "exclude", "cursor"] {
        kinds.remove(known);
    }
    assert!(kinds.is_empty(), "{kinds:#?}");
}
