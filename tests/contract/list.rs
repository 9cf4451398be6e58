//! `tools/list`: what it says, and in how many bytes.

use crate::{all, listed, name};
use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn bytes(tools: &[Value]) -> usize {
    json!({"tools": tools}).to_string().len()
}

#[test]
fn tools_are_listed_as_recorded() {
    insta::assert_json_snapshot!("tools", all());
}

#[test]
fn presets_and_toolsets_choose_tools_as_recorded() {
    let mut choices = Vec::new();
    for choice in [
        "all",
        "full",
        "edit",
        "introspect",
        "minimal",
        "filesystem",
        "git",
        "ci",
        "read_file,edit_file",
        "minimal,get_diagnostics",
    ] {
        let tools = listed(&["--toolsets", choice], Era::Modern);
        choices.push(format!("{choice}: {}", tools.iter().map(name).collect::<Vec<_>>().join(" ")));
    }
    insta::assert_snapshot!("choices", choices.join("\n"));
}

#[test]
fn a_preset_lists_a_tool_as_the_whole_list_does() {
    let all = all();
    for preset in ["full", "edit", "introspect", "minimal"] {
        for tool in listed(&["--toolsets", preset], Era::Modern) {
            assert!(all.contains(&tool), "{preset}: {tool}");
        }
    }
}

#[test]
fn every_version_lists_the_same_tools_in_the_same_order_whenever_it_is_asked() {
    let all = all();
    for era in Era::all() {
        let project = Project::empty();
        let mut wire = Wire::connect(project.server(), era);
        let mut expected = json!(all);
        if matches!(era, Era::Initialize("2024-11-05" | "2025-03-26")) {
            // Structured answers, and the schemas that promise them, came with 2025-06-18.
            for tool in expected.as_array_mut().unwrap() {
                tool.as_object_mut().unwrap().remove("outputSchema");
            }
        }
        for _ in 0..2 {
            let result = wire.request("tools/list", json!({}))["result"].clone();
            assert_eq!(result["tools"], expected, "{era:?}");
            assert_eq!(result.get("nextCursor"), None);
        }
    }
}

#[test]
fn the_list_and_its_presets_keep_within_their_bytes() {
    let all = all();
    let sizes: Vec<_> = all.iter().map(|tool| (name(tool), tool.to_string().len())).collect();
    let average = sizes.iter().map(|(_, size)| size).sum::<usize>() / all.len();
    assert!(average < 750, "{average} bytes a tool: {sizes:?}");
    for (preset, limit) in [("full", 32 * 1024), ("edit", 12_000), ("introspect", 8_000), ("minimal", 5_000)]
    {
        let size = bytes(&listed(&["--toolsets", preset], Era::Modern));
        assert!(size <= limit, "{preset}: {size} bytes");
    }
}

#[test]
fn names_are_unique_and_of_the_form_that_every_client_takes() {
    let all = all();
    let names: BTreeSet<_> = all.iter().map(name).collect();
    assert_eq!(names.len(), all.len());
    for name in names {
        assert!((1..=48).contains(&name.len()), "{name}");
        assert!(name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_')), "{name}");
    }
}

#[test]
fn every_tool_has_a_title_a_short_description_and_all_four_hints() {
    for tool in all() {
        let title = tool["title"].as_str().unwrap_or_default();
        assert!(!title.is_empty(), "{tool}");
        let description = tool["description"].as_str().unwrap_or_default();
        assert!(!description.is_empty() && description.len() < 1024, "{tool}");
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{} has no {hint}", name(&tool));
        }
        let annotations = &tool["annotations"];
        assert!(
            annotations["readOnlyHint"] != annotations["destructiveHint"]
                || annotations["readOnlyHint"] == false
        );
    }
}

#[test]
fn what_changes_something_is_never_listed_as_read_only() {
    let changing =
        ["write", "edit", "delete", "move", "create", "run", "start", "stop", "commit", "add", "checkout"];
    for tool in all() {
        let changes = name(&tool).split('_').any(|word| changing.contains(&word));
        if changes {
            assert_eq!(tool["annotations"]["readOnlyHint"], false, "{}", name(&tool));
        }
    }
}

/// Calls `visit` with each schema in `schema`, and where it is.
fn walk(schema: &Value, place: &str, visit: &mut impl FnMut(&Value, &str)) {
    visit(schema, place);
    for key in ["properties", "$defs"] {
        for (name, property) in schema[key].as_object().into_iter().flatten() {
            walk(property, &format!("{place}.{name}"), visit);
        }
    }
    for key in ["items", "additionalProperties"] {
        if schema[key].is_object() {
            walk(&schema[key], &format!("{place}[]"), visit);
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        for choice in schema[key].as_array().into_iter().flatten() {
            walk(choice, place, visit);
        }
    }
}

#[test]
fn input_schemas_are_objects_whose_every_property_is_described() {
    for tool in all() {
        let schema = &tool["inputSchema"];
        assert_eq!(schema["type"], "object", "{}", name(&tool));
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        for required in schema["required"].as_array().into_iter().flatten() {
            assert!(properties.contains_key(required.as_str().unwrap()), "{}: {required}", name(&tool));
        }
        walk(schema, name(&tool), &mut |schema, place| {
            for (key, property) in schema["properties"].as_object().into_iter().flatten() {
                let description = property["description"].as_str().unwrap_or_default();
                assert!(!description.is_empty(), "{place}.{key} has no description");
                let snake = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
                assert!(key.bytes().all(snake), "{place}.{key}");
            }
        });
    }
}

#[test]
fn schemas_use_only_what_every_client_understands() {
    for tool in all() {
        for schema in [&tool["inputSchema"], &tool["outputSchema"]] {
            walk(schema, name(&tool), &mut |schema, place| {
                for key in ["$ref", "$schema", "format", "$defs", "title"] {
                    assert!(schema.get(key).is_none(), "{place} has {key}");
                }
                assert!(!schema["type"].is_array(), "{place} is a union of types");
                assert_ne!(schema["type"], "null", "{place}");
            });
        }
    }
}

#[test]
fn output_schemas_are_objects() {
    for tool in all() {
        if let Some(schema) = tool.get("outputSchema") {
            assert_eq!(schema["type"], "object", "{}", name(&tool));
        }
    }
}

#[test]
fn schemas_are_valid_json_schema() {
    for tool in all() {
        for key in ["inputSchema", "outputSchema"] {
            if let Some(schema) = tool.get(key) {
                assert!(jsonschema::meta::is_valid(schema), "{} {key}", name(&tool));
            }
        }
    }
}

#[test]
fn without_structured_content_no_output_schema_is_promised() {
    let tools = listed(&["--text-only"], Era::Modern);
    assert!(tools.iter().all(|tool| tool.get("outputSchema").is_none()));
    let project = Project::empty();
    let mut command = project.server();
    command.arg("--text-only");
    let mut wire = Wire::connect(command, Era::Modern);
    let result = wire.call("run_command", json!({"command": ["echo", "hi"]}));
    assert_eq!(result.get("structuredContent"), None);
    assert!(result["content"][0]["text"].as_str().unwrap().contains("hi"), "{result}");
}
