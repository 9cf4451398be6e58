//! Node.js, in the versions that are supported.

use crate::app::{nodes, plain, state};
use crate::{answer, failure, serve, value};
use integration_tests::{Project, wait_until};
use serde_json::{Value, json};
use std::time::Duration;

/// Runs a test on each version.
fn on_each(arguments: &[&str], test: impl Fn(&mut integration_tests::Wire, &crate::app::InspectedApp)) {
    for node in nodes() {
        let project = Project::empty();
        let app = state(&project, &node, arguments);
        let mut wire = serve(&project, &[]);
        test(&mut wire, &app);
    }
}

#[test]
fn every_kind_of_value_is_told_as_what_it_is() {
    on_each(&[], |wire, _| {
        for (path, expected) in [
            ("count", json!(42)),
            ("text", json!("hello")),
            ("yes", json!(true)),
            ("nothing", json!(null)),
            ("missing", json!({"$undefined": true})),
            ("big", json!({"$bigint": "12345678901234567890"})),
            ("nan", json!({"$number": "NaN"})),
            ("zero", json!({"$number": "-0"})),
            ("infinite", json!({"$number": "-Infinity"})),
            ("symbol", json!({"$symbol": "Symbol(mark)"})),
            ("lone", json!("half \u{fffd} pair \u{1f600}")),
            ("date", json!({"$date": "2026-11-20T10:00:00.123Z"})),
            ("never", json!({"$date": "Invalid Date"})),
            ("regexp", json!({"$regexp": "/a+/gi"})),
            ("map", json!({"$map": [["alice", {"age": 30}], [7, "seven"], [{"k": 1}, "object"]]})),
            ("map.alice.age", json!(30)),
            ("map[7]", json!("seven")),
            ("map.get(7)", json!("seven")),
            ("map.get('alice').age", json!(30)),
            ("map.size", json!(3)),
            ("set.size", json!(3)),
            ("set", json!({"$set": [1, "two", {"three": 3}]})),
            ("bytes", json!({"$type": "Buffer", "values": [104, 101, 108, 108, 111]})),
            ("floats", json!({"$type": "Float64Array", "values": [1.5, 2]})),
            ("sparse", json!([1, {"$empty": 2}, 4])),
            ("promise", json!({"$type": "Promise"})),
            ("weak", json!({"$type": "WeakMap"})),
            ("plain", json!({})),
            ("arrow", json!({"$function": "(a, b) => a + b"})),
            ("klass", json!({"$function": "class Cart {"})),
            (
                "cart",
                json!({"$type": "Cart", "items": [{"name": "tea", "price": 2.5}, {"name": "cup", "price": 4}],
                    "$getters": "total", "$private": "#secret"}),
            ),
            ("cart.items[1].price", json!(4)),
            ("cart.items.length", json!(2)),
            ("self.self.count", json!(42)),
            ("[\"dotted.key\"]", json!("dot")),
            ("[\"line\\nkey\"]", json!("newline")),
            ("[\"\"]", json!("empty")),
            ("[\"it's \\\"quoted\\\"\"]", json!("quotes")),
        ] {
            let path = if path.starts_with('[') { format!("state{path}") } else { format!("state.{path}") };
            assert_eq!(value(wire, &path), expected, "{path}");
        }
        let error = value(wire, "state.error");
        assert_eq!(error["code"], "E_BOOM");
        assert!(error["$error"].as_str().unwrap().starts_with("TypeError: boom\n    at "), "{error}");
    });
}

#[test]
fn numbers_keys_and_what_a_class_hides_are_told_exactly() {
    on_each(&[], |wire, _| {
        for (path, expected) in [
            ("number", "123456789.12345679"),
            ("small", "-1.5e-300"),
            ("keys.get(1)", "\"number\""),
            ("keys[1]", "\"number\""),
            ("keys.get(\"1\")", "\"text\""),
            ("keys['1']", "\"text\""),
            ("keys.get(3)", "\"three\""),
            ("keys.get('2')", "\"two\""),
        ] {
            assert_eq!(value(wire, &format!("exact.{path}")).to_string(), expected, "{path}");
        }
        assert_eq!(
            value(wire, "exact.wallet"),
            json!({"$type": "Wallet", "open": true, "$getters": "x", "$private": "#balance, #items"})
        );
        let purse =
            json!({"$type": "Purse", "open": true, "$getters": "x", "$private": "#coins, #balance, #items"});
        assert_eq!(value(wire, "exact")["purse"], purse);
        assert_eq!(value(wire, "exact.wallet.x"), json!({"$getter": true}));
        let failed = failure(wire, json!({"path": "exact.wallet.#balance"}));
        assert!(failed["notes"].to_string().contains("private field"), "{failed}");
    });
}

#[test]
fn what_an_object_has_beside_its_elements_is_told_too() {
    on_each(&[], |wire, _| {
        for (name, expected) in [
            ("map", json!({"$map": [["a", 1]], "extra": 1})),
            ("set", json!({"$set": [1], "extra": 1})),
            ("list", json!([1, {"$properties": {"extra": "q", "password": "[masked]"}}])),
            ("bytes", json!({"$type": "Uint8Array", "values": [1], "extra": 1})),
            ("called", json!({"$function": "() => 1", "calls": 7})),
            ("no", json!({"$type": "Boolean", "$value": false})),
            ("five", json!({"$type": "Number", "$value": 5})),
        ] {
            assert_eq!(value(wire, &format!("state.beside.{name}")), expected, "{name}");
            let all = value(wire, "state.beside");
            assert_eq!(all[name], expected, "{name} within");
        }
        let many = value(wire, "state.beside.many");
        assert!(many["errors"][0]["$error"].as_str().unwrap().starts_with("Error: inner"), "{many}");
        assert_eq!(value(wire, "state.beside.wrapped")["cause"], json!({"code": 7}));
        let found = value(wire, "state.beside.match");
        assert_eq!((&found[0], &found[2]["$properties"]["index"]), (&json!("bc"), &json!(1)), "{found}");
    });
}

#[test]
fn an_object_is_told_with_cycles_as_references_and_without_what_lies_deeper() {
    on_each(&[], |wire, _| {
        let state = answer(wire, json!({"path": "state", "depth": 2}));
        let value = &state["value"];
        assert_eq!(value["self"], json!({"$ref": "state"}));
        assert_eq!(
            (&value["cart"]["$type"], &value["again"]),
            (&json!("Cart"), &json!({"$ref": "state.cart"}))
        );
        assert_eq!(value["deep"], json!({"a": {"$cut": "Object"}}));
        assert_eq!(value["[Symbol(hidden)]"], 5);
        assert!(state["truncated"]["depth"].as_u64().unwrap() > 0, "{state}");
        assert!(state["source"].as_str().unwrap().starts_with("node: node "), "{state}");
        let whole = answer(wire, json!({"path": "globalThis.state.deep", "depth": 6}));
        assert_eq!(whole["value"], json!({"a": {"b": {"c": {"d": {"e": "bottom"}}}}}));
        assert_eq!(whole.get("truncated"), None);
    });
}

#[test]
fn a_path_that_leads_nowhere_says_how_far_it_led_and_what_is_there() {
    on_each(&[], |wire, _| {
        let failed = failure(wire, json!({"path": "state.cart.zzz.x"}));
        assert_eq!(failed["value"], Value::Null);
        assert_eq!(failed["error"], "Path not found");
        assert_eq!((&failed["resolved"], &failed["failed_at"]), (&json!("state.cart"), &json!("zzz")));
        assert_eq!(failed["keys"], json!(["items"]));
        let failed = failure(wire, json!({"path": "state.map.bob"}));
        assert_eq!(failed["keys"], json!(["alice", "7", "[Object]"]));
        assert_eq!((failed.get("tried"), failed.get("keys_total")), (None, None), "{failed}");
        let failed = failure(wire, json!({"path": "state.cart.item[0].name"}));
        assert_eq!(failed["notes"], json!(["did you mean `state.cart.items[0].name`?"]));
        let call = crate::said(wire, json!({"path": "state.map.keys().next()"}));
        assert!(call.contains("`keys()` is a call") && call.contains("[KEY] or get(KEY)"), "{call}");
        let failed = failure(wire, json!({"path": "state.text.x"}));
        assert_eq!((&failed["resolved"], &failed["keys"]), (&json!("state.text"), &json!([])));
        let failed = failure(wire, json!({"path": "nowhere"}));
        assert!(failed["keys"].as_array().unwrap().contains(&json!("state")), "{failed}");
    });
}

#[test]
fn no_getter_and_no_trap_of_the_application_runs() {
    on_each(&[], |wire, _| {
        let before = value(wire, "state.seen");
        for path in [
            "",
            "state",
            "state.cart",
            "state.proxy",
            "state.callable",
            "state.above",
            "state.liar",
            "state.json",
        ] {
            answer(wire, json!({"path": path, "depth": 10}));
        }
        assert_eq!(value(wire, "state.getter"), json!({"$getter": true}));
        assert_eq!(value(wire, "state.thrower"), json!({"$getter": true}));
        assert_eq!(value(wire, "state.setter"), json!({"$setter": true}));
        assert_eq!(value(wire, "state.cart.total"), json!({"$getter": true}));
        assert_eq!(value(wire, "trappedNow"), json!({"$getter": true}));
        assert_eq!(value(wire, "state.__proto__"), json!({"$getter": true}));
        assert_eq!(value(wire, "state.proxy"), json!({"$proxy": "Proxy(Object)"}));
        for path in
            ["state.proxy.a", "state.callable.x", "state.above.x", "state.getter.x", "state.liar.message.x"]
        {
            failure(wire, json!({"path": path}));
        }
        assert_eq!(value(wire, "state.json.__proto__"), json!({"polluted": true}));
        assert_eq!(value(wire, "state.json"), json!({"__proto__": {"polluted": true}, "constructor": "own"}));
        // Behind everything that ran meanwhile.
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(value(wire, "state.seen"), before);
        assert!(
            value(wire, "state.above")["$unread"].is_string()
                && value(wire, "state.liar")["$unread"].is_string()
        );
        assert_eq!(value(wire, "state.seen"), before);
    });
}

#[test]
fn variables_of_a_module_are_found_by_its_closures() {
    for node in nodes() {
        let project = Project::empty();
        let _app = state(&project, &node, &[]);
        let mut wire = serve(&project, &[]);
        assert_eq!(value(&mut wire, "local:state.cjs/hiddenCounter"), 7);
        assert_eq!(value(&mut wire, "local:state.cjs/hiddenTable.a"), 1);
        assert_eq!(value(&mut wire, "local:state.cjs/state.cart.items[0].name"), "tea");
        let failed = failure(&mut wire, json!({"path": "local:state.cjs/nobody"}));
        assert_eq!((&failed["error"], &failed["failed_at"]), (&json!("Path not found"), &json!("nobody")));
        assert!(failed["keys"].as_array().unwrap().contains(&json!("hiddenCounter")), "{failed}");
        let failed = failure(&mut wire, json!({"path": "local:other.js/x"}));
        assert!(failed["error"].as_str().unwrap().contains("loaded no such file"), "{failed}");
    }
}

#[test]
fn a_debugger_statement_does_not_stop_a_program_whose_locals_are_read() {
    for node in nodes() {
        let project = Project::empty();
        let app = plain(&project, &node, &["--inspect=127.0.0.1:0", "module.mjs"]);
        assert_eq!(app.line(), "ready");
        let mut wire = serve(&project, &[]);
        for _ in 0..5 {
            assert_eq!(value(&mut wire, "local:module.mjs/visits"), 3);
            assert_eq!(value(&mut wire, "local:module.mjs/rooms.lobby.guests[0]"), "ada");
        }
    }
}

#[test]
fn a_program_in_a_busy_loop_is_read() {
    on_each(&["--busy"], |wire, app| {
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(value(wire, "state.count"), 42);
        assert_eq!(answer(wire, json!({"path": "state.cart"}))["value"]["$type"], "Cart");
        assert_eq!(value(wire, "process.pid"), app.pid());
    });
}

#[test]
fn a_stopped_program_is_told_as_such_at_once_and_read_when_it_goes_on() {
    on_each(&[], |wire, app| {
        let target = format!("pid:{}", app.pid());
        // The connection is made before, or not at all.
        let named = json!({"path": "state.count", "target": &target});
        for is_connected in [true, false] {
            if is_connected {
                assert_eq!(answer(wire, named.clone())["value"], 42);
            }
            app.signal(rustix::process::Signal::STOP);
            wait_until(Duration::from_secs(20), "the program is stopped", || {
                let status = std::fs::read_to_string(format!("/proc/{}/status", app.pid())).unwrap();
                status.contains("State:\tT")
            });
            let began = std::time::Instant::now();
            for request in [named.clone(), json!({"path": "state.count"})] {
                let failed = failure(wire, request);
                let expected = format!(
                    "is stopped (by SIGSTOP, Ctrl-Z or a debugger) and answers nothing until it goes on; to let it go on, run `kill -CONT {}`",
                    app.pid()
                );
                assert!(failed["error"].as_str().unwrap().contains(&expected), "{failed}");
                assert!(!failed.to_string().contains("no inspector is open"), "{failed}");
            }
            assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
            // Its facts are read all the same.
            let status = answer(wire, json!({"path": "process.status.State", "target": &target}));
            assert!(status["value"].as_str().unwrap().starts_with('T'), "{status}");
            app.signal(rustix::process::Signal::CONT);
            assert_eq!(answer(wire, named.clone())["value"], 42);
        }
    });
}

#[test]
fn a_kept_connection_does_not_keep_a_program_from_ending() {
    on_each(&[], |wire, _| {
        assert_eq!(value(wire, "state.count"), 42);
    });
    for node in nodes() {
        let project = Project::empty();
        let script = "globalThis.n = 1; console.log('ready'); process.on('SIGTERM', () => process.exit(0)); setInterval(() => {}, 1000)";
        let mut app = plain(&project, &node, &["--inspect=127.0.0.1:0", "-e", script]);
        assert_eq!(app.line(), "ready");
        let mut wire = serve(&project, &[]);
        assert_eq!(value(&mut wire, "n"), 1);
        app.signal(rustix::process::Signal::TERM);
        app.ends_within(Duration::from_secs(20));
        let failed = failure(&mut wire, json!({"path": "n"}));
        assert_eq!(failed["error"], "No inspectable process", "{failed}");
    }
}

#[test]
fn values_under_secret_like_names_are_masked_unless_the_leaf_itself_is_asked_for() {
    on_each(&[], |wire, _| {
        let state = answer(wire, json!({"path": "state"}));
        assert_eq!(state["value"]["password"], "[masked]");
        assert_eq!(state["value"]["set-cookie"], "[masked]");
        assert_eq!(state["value"]["key"], "an ordinary key");
        let nested = &state["value"]["nested"];
        assert_eq!(
            nested,
            &json!({"apiKey": "[masked]", "credentials": {"user": "[masked]", "pin": "[masked]"}})
        );
        // And `dotted.key` and `line\nkey`, for their names, and the one beside a list.
        assert_eq!(state["masked"], 8);
        assert_eq!(value(wire, "state.nested.apiKey"), "k-123");
    });
}

#[test]
fn the_environment_of_the_program_is_its_own() {
    for node in nodes() {
        let project = Project::empty();
        let app = plain(
            &project,
            &node,
            &[
                "--inspect=127.0.0.1:0",
                "-e",
                "process.env.MODE = 'shop'; console.log('ready'); setInterval(() => {}, 1000)",
            ],
        );
        assert_eq!(app.line(), "ready");
        let mut wire = serve(&project, &[("MODE", "server")]);
        let answer = answer(&mut wire, json!({"path": "process.env.MODE"}));
        assert_eq!(answer["value"], "shop");
        assert!(answer["source"].as_str().unwrap().starts_with("node: "), "{answer}");
    }
}
