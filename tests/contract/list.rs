//! `tools/list`: what it says, and in how many bytes.

use crate::{PRESETS, all, listed, name};
use context_compiler::tokens::{O200kCounter, TokenCounter as _};
use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn tools_are_listed_as_recorded() {
    insta::assert_json_snapshot!("tools", all());
}

#[test]
fn presets_and_toolsets_choose_tools_as_recorded() {
    let mut choices = Vec::new();
    for choice in [
        "all",
        "standard",
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
fn a_preset_lists_a_tool_as_the_whole_list_does_but_for_what_it_says_of_others() {
    let all = all();
    for preset in PRESETS {
        for tool in listed(&["--toolsets", preset], Era::Modern) {
            let whole =
                all.iter().find(|other| name(other) == name(&tool)).expect("a tool of the whole list");
            for key in ["title", "annotations", "outputSchema", "_meta"] {
                assert_eq!(tool[key], whole[key], "{preset}: {}", name(&tool));
            }
            let sentences = |tool: &Value| tool["description"].as_str().unwrap().len();
            assert!(sentences(&tool) <= sentences(whole), "{preset}: {tool}");
        }
    }
}

#[test]
fn full_is_everything_and_all_is_another_name_of_it() {
    assert_eq!(listed(&["--toolsets", "full"], Era::Modern), all());
    let names: Vec<_> = all().iter().map(|tool| name(tool).to_owned()).collect();
    for contract in ["file_exists", "directory_exists", "run_test_suite", "run_test_task", "get_file_info"] {
        assert!(names.iter().any(|name| name == contract), "{contract}");
    }
}

#[test]
fn the_default_is_standard_and_what_it_leaves_out_can_be_called() {
    let project = Project::with([("a.txt", "one\n")]);
    let mut command = project.server();
    command.env_remove("CORETOOLS_TOOLSETS");
    let mut wire = Wire::connect(command, Era::Modern);
    let tools = wire.request("tools/list", json!({}))["result"]["tools"].take();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(name).collect();
    let standard = listed(&["--toolsets", "standard"], Era::Modern);
    assert_eq!(names, standard.iter().map(name).collect::<Vec<_>>());
    assert!(names.contains(&"find_tools") && !names.contains(&"file_exists"), "{names:?}");
    assert_eq!(wire.call("file_exists", json!({"path": "a.txt"}))["structuredContent"]["exists"], true);
    // Toolsets and tools that are named are all there is.
    let mut command = project.server();
    command.args(["--toolsets", "read_file,search_files"]);
    let mut wire = Wire::connect(command, Era::Modern);
    let answer = wire.request("tools/call", json!({"name": "file_exists", "arguments": {"path": "a.txt"}}));
    assert!(answer["error"].is_object(), "{answer}");
}

#[test]
fn sessions_are_in_the_default_list_where_a_supervisor_is_configured() {
    // Such a file has to be named: one that lies in a project could start programs otherwise.
    let config =
        Project::with([("sessions.toml", "toolsets = \"standard\"\n[sessions]\ncommand = [\"cat\"]\n")]);
    let project = Project::empty();
    let names = |arguments: &[&str]| {
        let mut command = project.server();
        command.env_remove("CORETOOLS_TOOLSETS").args(arguments);
        let mut wire = Wire::connect(command, Era::Modern);
        let tools = wire.request("tools/list", json!({}))["result"]["tools"].take();
        tools.as_array().unwrap().iter().map(|tool| name(tool).to_owned()).collect::<Vec<_>>()
    };
    let file = config.join("sessions.toml").display().to_string();
    assert!(names(&["--config", &file]).contains(&"new_session".to_owned()));
    assert!(!names(&[]).contains(&"new_session".to_owned()));
}

#[test]
fn a_client_is_told_when_what_it_found_is_added_to_its_list() {
    let project = Project::empty();
    let mut command = project.server();
    command.args(["--toolsets", "standard"]);
    let mut wire = Wire::connect(command, Era::Initialize("2025-11-25"));
    wire.text("find_tools", json!({"query": "git_blame"}));
    let told = |wire: &mut Wire| {
        wire.others().iter().filter(|message| message["method"] == "notifications/tools/list_changed").count()
    };
    assert_eq!(told(&mut wire), 1);
    // What it knows already changes nothing.
    wire.text("find_tools", json!({"query": "git_blame"}));
    assert_eq!(told(&mut wire), 0);
}

#[test]
fn what_is_not_listed_is_found_with_its_whole_definition() {
    let project = Project::empty();
    let mut command = project.server();
    command.args(["--toolsets", "standard"]);
    let mut wire = Wire::connect(command, Era::Modern);
    let found: Value =
        serde_json::from_str(&wire.text("find_tools", json!({"query": "who changed a line (blame)"})))
            .unwrap();
    let blame = &found["tools"][0];
    assert_eq!(blame["name"], "git_blame", "{found}");
    let whole = all().into_iter().find(|tool| name(tool) == "git_blame").unwrap();
    assert_eq!(blame["inputSchema"], whole["inputSchema"]);
    // It is listed from then on, since many clients let a model call nothing else.
    let tools = wire.request("tools/list", json!({}))["result"]["tools"].take();
    assert!(tools.as_array().unwrap().iter().any(|tool| name(tool) == "git_blame"), "{tools}");
    // Of a tool that is listed the caller has the definition already, but for what is rarely needed.
    let found: Value = serde_json::from_str(&wire.text("find_tools", json!({"query": "commit"}))).unwrap();
    assert!(found["in_your_list"].to_string().contains("git_commit"), "{found}");
    let found: Value =
        serde_json::from_str(&wire.text("find_tools", json!({"query": "search_files multiline"}))).unwrap();
    let further = &found["further_parameters"]["search_files"];
    assert!(further["multiline"]["description"].is_string() && further.get("pattern").is_none(), "{found}");
    let whole = wire.text("find_tools", json!({"query": "directory_tree show a folder tree"}));
    let whole: Value = serde_json::from_str(&whole).unwrap();
    let properties = &whole["tools"][0]["inputSchema"]["properties"];
    assert!(properties["path"].is_object() && !whole.to_string().contains("unlisted"), "{whole}");
    // A word that many tools have is no match.
    let found: Value = serde_json::from_str(
        &wire.text("find_tools", json!({"query": "replace regular expression in many files"})),
    )
    .unwrap();
    for other in ["file_exists", "move_file"] {
        assert!(!found.to_string().contains(other), "{found}");
    }
    // What a role hides is found by none of its words.
    let mut command = project.server();
    command.args(["--toolsets", "minimal", "--role", "readonly"]);
    let mut wire = Wire::connect(command, Era::Modern);
    for query in ["write file", "run_command shell", "new_session agent", ""] {
        let found = wire.text("find_tools", json!({"query": query}));
        for hidden in ["write_file", "run_command", "new_session", "git_commit"] {
            assert!(!found.contains(hidden), "{query}: {found}");
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

/// The tokens of what a client gives its model of a list: name, description and input schema of each tool.
fn tokens(tools: &[Value]) -> usize {
    let given = |tool: &Value| json!({"name": tool["name"], "description": tool["description"], "input_schema": tool["inputSchema"]});
    O200kCounter.count(&Value::Array(tools.iter().map(given).collect()).to_string())
}

#[test]
fn the_default_list_keeps_within_its_tokens() {
    let standard = listed(&["--toolsets", "standard"], Era::Modern);
    let each: Vec<_> = standard.iter().map(|tool| (tokens(std::slice::from_ref(tool)), name(tool))).collect();
    let all = tokens(&standard);
    assert!(all <= 8_000, "{all} tokens: {each:?}");
    for preset in ["edit", "introspect", "minimal"] {
        let size = tokens(&listed(&["--toolsets", preset], Era::Modern));
        assert!(size < all, "{preset}: {size} tokens");
    }
}

#[test]
fn clients_that_load_tools_on_demand_are_told_what_to_load_and_how_to_find_the_rest() {
    let mut always = 0;
    for tool in all() {
        let meta = tool["_meta"].as_object().unwrap_or_else(|| panic!("{} has no _meta", name(&tool)));
        always += usize::from(meta.get("anthropic/alwaysLoad") == Some(&json!(true)));
        let hint = meta.get("anthropic/searchHint").and_then(Value::as_str).unwrap_or_default();
        assert!(meta.len() == 1 && hint.len() < 80, "{}: {meta:?}", name(&tool));
    }
    assert_eq!(always, 6);
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
