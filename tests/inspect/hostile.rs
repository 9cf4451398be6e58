//! State that is too big, and programs that mean harm.

use crate::app::{nodes, state};
use crate::{answer, failure, inspect, serve, value};
use integration_tests::{Project, wait_until};
use serde_json::json;
use std::time::Duration;

#[test]
fn a_million_keys_and_texts_of_ten_megabytes_are_answered_within_the_bounds() {
    for node in nodes() {
        let project = Project::empty();
        let _app = state(&project, &node, &["--big"]);
        let mut wire = serve(&project, &[]);
        for (path, more) in [("keys", 999_950_u64), ("list", 999_950), ("table", 999_950)] {
            let answer = answer(&mut wire, json!({"path": path}));
            assert_eq!(answer["truncated"]["keys"], more, "{path}");
            assert!(answer.to_string().len() < 10_000, "{path}");
        }
        assert_eq!(value(&mut wire, "keys.item999999"), 999_999);
        assert_eq!(value(&mut wire, "list[999999]"), 999_999);
        assert_eq!(value(&mut wire, "table[999999]"), 999_999);
        let failed = failure(&mut wire, json!({"path": "keys.nothing"}));
        assert_eq!(
            (failed["keys"].as_array().unwrap().len(), &failed["keys_total"]),
            (50, &json!(1_000_000))
        );

        let texts = answer(&mut wire, json!({"path": "texts"}));
        let text = texts["value"]["t4"].as_str().unwrap();
        assert!(text.starts_with("xxx") && text.ends_with("x… (10000000 characters)"), "{}", text.len());
        assert_eq!((text.chars().count(), &texts["truncated"]["strings"]), (2000 + 23, &json!(5)));
        let text = value(&mut wire, "texts.t0");
        assert_eq!(text.as_str().unwrap().chars().count(), 20_000 + 23);

        let wide = answer(&mut wire, json!({"path": "wide", "depth": 10}));
        assert!(wide["truncated"]["full"].as_u64().unwrap() > 0 && wide.to_string().len() < 100_000);
    }
}

#[test]
fn built_in_functions_that_the_program_replaced_are_not_called() {
    for node in nodes() {
        for reflect in [&["--polluted"][..], &["--polluted", "--reflect"]] {
            let project = Project::empty();
            let _app = state(&project, &node, reflect);
            let mut first = serve(&project, &[]);
            wait_until(Duration::from_secs(20), "it is polluted", || {
                inspect(&mut first, json!({"path": "state.polluted"})).0["value"] == true
            });
            // Another connection, that knew nothing before.
            let mut wire = serve(&project, &[]);
            let (all, failed) = inspect(&mut wire, json!({"path": "state", "depth": 10}));
            assert!(!failed, "{reflect:?}: {all}");
            assert_eq!(value(&mut wire, "state.cart.items[0].name"), "tea");
            assert_eq!(value(&mut wire, "state.map.alice.age"), 30);
        }
    }
}

#[test]
fn a_program_that_dies_while_it_is_read_is_an_answer() {
    for node in nodes() {
        let project = Project::empty();
        let mut app = state(&project, &node, &["--big"]);
        let mut wire = serve(&project, &[]);
        assert_eq!(value(&mut wire, "state.count"), 42);
        let id = wire.ask("tools/call", json!({"name": "inspect_state", "arguments": {"path": "keys"}}));
        app.kill();
        // Either it was faster, or it says what happened.
        let result = wire.answer(id)["result"].clone();
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(
            result["isError"] == false || text.contains("ended") || text.contains("No inspectable"),
            "{text}"
        );
        let failed = failure(&mut wire, json!({"path": "state.count"}));
        assert_eq!(failed["error"], "No inspectable process");
    }
}

#[test]
fn many_readings_at_once_are_all_answered_and_leave_nothing_behind() {
    for node in nodes() {
        let project = Project::empty();
        let _app = state(&project, &node, &[]);
        let mut wire = serve(&project, &[]);
        let ids: Vec<_> = (0..40)
            .map(|_| {
                wire.ask(
                    "tools/call",
                    json!({"name": "inspect_state", "arguments": {"path": "state", "depth": 5}}),
                )
            })
            .collect();
        let texts: Vec<String> =
            ids.into_iter().map(|id| wire.answer(id)["result"]["content"][0]["text"].to_string()).collect();
        for text in &texts {
            assert!(text.contains("$ref") && text == &texts[0], "{text}\n{}", texts[0]);
        }
        wait_until(Duration::from_secs(10), "it answers", || value(&mut wire, "state.count") == 42);
    }
}
