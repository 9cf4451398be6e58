//! `get_logs` that counts: which errors there were, how many of each, and when.

use crate::{line, page, serve};
use serde_json::{Value, json};

/// A line of the shop's log.
fn entry(second: u32, level: &str, message: &str, code: Option<&str>) -> String {
    let time = format!("2026-11-20T10:{:02}:{:02}Z", second / 60, second % 60);
    let mut object = json!({"time": time, "level": level, "message": message});
    if let Some(code) = code {
        object["code"] = code.into();
    }
    format!("{object}\n")
}

/// A night with two kinds of errors among much else.
fn night() -> String {
    let mut log = String::new();
    for second in 0..240 {
        log += &match second % 40 {
            7 => {
                entry(second, "error", &format!("no cart for customer {}", 61 + second % 3), Some("NO_CART"))
            }
            31 => entry(second, "error", "payment refused", Some("E_PAY")),
            20 => entry(second, "warn", &format!("slow answer: {}ms", second * 7), None),
            _ => entry(second, "info", &format!("total {}", second * 13), None),
        };
    }
    log
}

fn groups(page: &Value) -> Vec<(u64, &str)> {
    let groups = page["groups"].as_array().unwrap();
    groups.iter().map(|group| (group["count"].as_u64().unwrap(), group["group"].as_str().unwrap())).collect()
}

#[test]
fn the_errors_of_a_night_are_one_call_with_their_counts_times_and_a_sample() {
    let (_project, mut wire) = serve([("logs/shop.log", night().as_str())]);
    let found = page(&mut wire, json!({"level": "error", "group_by": "message"}));
    assert_eq!(groups(&found), [(6, "no cart for customer <n>"), (6, "payment refused")], "{found}");
    assert_eq!((&found["total"], found.get("entries")), (&json!(12), None));
    let carts = &found["groups"][0];
    assert_eq!(
        (&carts["first"], &carts["last"]),
        (&json!("2026-11-20T10:00:07.000Z"), &json!("2026-11-20T10:03:27.000Z"))
    );
    assert_eq!((&carts["level"], &carts["distinct_messages"]), (&json!("error"), &json!(3)));
    assert_eq!(carts["messages"].as_array().unwrap().len(), 3, "{carts}");
    assert_eq!(carts["sample"]["fields"]["code"], "NO_CART");
    assert_eq!(carts["sample"]["line"], 208, "{carts}");
    assert_eq!(found["groups"][1].get("messages"), None, "one text needs no list of texts");
    // One group a line, so that a reader can search the answer.
    let text = wire.text("get_logs", json!({"level": "error", "group_by": "message"}));
    assert_eq!(text.lines().count(), 4, "{text}");
}

#[test]
fn entries_are_counted_by_level_time_and_field() {
    let (_project, mut wire) = serve([("logs/shop.log", night().as_str())]);
    let by = |wire: &mut _, property: &str| page(wire, json!({"level": "debug", "group_by": property}));
    assert_eq!(groups(&by(&mut wire, "level")), [(222, "info"), (12, "error"), (6, "warn")]);
    assert_eq!(groups(&by(&mut wire, "minute")).len(), 4);
    assert_eq!(groups(&by(&mut wire, "hour")), [(240, "2026-11-20T10")]);
    assert_eq!(groups(&by(&mut wire, "code")), [(228, "(none)"), (6, "E_PAY"), (6, "NO_CART")]);
    let some = page(&mut wire, json!({"group_by": "message", "since": "2026-11-20T10:03:00Z", "limit": 1}));
    assert_eq!((groups(&some), &some["total"]), (vec![(55, "total <n>")], &json!(60)));
    assert!(some["notes"].to_string().contains("1 of 4 groups are listed"), "{some}");
}

#[test]
fn a_page_of_the_last_entries_tells_how_many_there_are() {
    let (_project, mut wire) = serve([("logs/shop.log", night().as_str())]);
    let found = page(&mut wire, json!({"level": "error", "limit": 2}));
    assert_eq!((found["entries"].as_array().unwrap().len(), &found["total"]), (2, &json!(12)));
    let all = page(&mut wire, json!({"level": "error", "limit": 50}));
    assert_eq!((all["entries"].as_array().unwrap().len(), &all["total"]), (12, &json!(12)));
}

#[test]
fn no_value_of_a_secret_field_is_a_group() {
    let log: String = (0..3)
        .map(|index| {
            format!(
                "{}\n",
                json!({"level": 50, "msg": "login", "password": format!("tR8kQ2vLx9Zp4Wm{index}")})
            )
        })
        .collect();
    let (_project, mut wire) = serve([("app.log", log.as_str())]);
    let found = page(&mut wire, json!({"group_by": "password"}));
    assert_eq!(groups(&found), [(3, "[masked]")], "{found}");
    assert!(!found.to_string().contains("tR8kQ2"), "{found}");
}

#[test]
fn what_cannot_be_counted_is_said() {
    let (_project, mut wire) = serve([("app.log", line(50, "down").repeat(3).as_str())]);
    let follow = wire.failure("get_logs", json!({"group_by": "message", "follow": true}));
    assert!(follow.contains("`group_by`") && follow.contains("`follow`"), "{follow}");
    let first = page(&mut wire, json!({"limit": 1}));
    let cursor = wire.failure("get_logs", json!({"group_by": "message", "cursor": first["older_cursor"]}));
    assert!(cursor.contains("`group_by`") && cursor.contains("cursor"), "{cursor}");
    let none = page(&mut wire, json!({"group_by": "message", "contains": "nothing has this"}));
    assert_eq!((&none["total"], none.get("groups")), (&json!(0), None));
}

#[test]
fn a_log_that_is_named_without_its_folder_is_found_and_one_that_is_not_there_names_the_others() {
    let (_project, mut wire) = serve([("logs/shop.log", line(50, "down").as_str())]);
    let found = page(&mut wire, json!({"source": "shop.log"}));
    assert_eq!(found["entries"][0]["message"], "down");
    assert_eq!(found["notes"][0], "there is no shop.log: this is logs/shop.log");
    let outside = wire.failure("get_logs", json!({"source": "../other/shop.log"}));
    assert!(outside.contains("leads outside the allowed roots"), "{outside}");
    let said = wire.failure("get_logs", json!({"source": "app.log"}));
    assert!(said.contains("the logs of the project are logs/shop.log"), "{said}");
}
