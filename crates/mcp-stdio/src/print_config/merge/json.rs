//! Members and elements that are put into the text of a JSON file.

use super::error::MergeError;
use super::json_text::{JsonText, ObjectSpan};
use serde::Serialize as _;
use serde_json::{Map, Value, json};

/// Returns `text` with the member `name` in the object that `path` leads to. The objects on the way are made where they are
/// missing. The value is what `value` makes of the old one.
pub(crate) fn with_member(
    text: &str,
    path: &[&str],
    name: &str,
    value: impl Fn(Option<&Value>) -> Value,
) -> Result<String, MergeError> {
    if text.trim().is_empty() {
        let whole = nested(path, json!({name: value(None)}));
        return Ok(format!("{whole:#}\n"));
    }
    let parsed = JsonText::new(text);
    let document = parsed.parse()?;
    let mut object = parsed.object_at(0).ok_or_else(|| MergeError::NotAnObject("the file".to_owned()))?;
    let mut old = &document;
    for (depth, key) in path.iter().enumerate() {
        old = &old[*key];
        match object.members.iter().find(|member| member.key == *key) {
            Some(member) => {
                let inner = parsed.object_at(member.value.start);
                object = inner.ok_or_else(|| MergeError::NotAnObject(path[..=depth].join(".")))?;
            }
            None => {
                let inner = nested(&path[depth + 1..], json!({name: value(None)}));
                return checked(
                    insert(&parsed, &object, depth, key, &inner),
                    &document,
                    path,
                    name,
                    value(None),
                );
            }
        }
    }
    let new = value(old.get(name));
    let merged = match object.members.iter().find(|member| member.key == name) {
        None => insert(&parsed, &object, path.len(), name, &new),
        Some(_) if old.get(name) == Some(&new) => return Ok(text.to_owned()),
        Some(member) if parsed.has_comment(member.value.clone()) => {
            return Err(MergeError::Comments(name.to_owned()));
        }
        Some(member) => {
            let indentation = parsed.indentation(member.key_start).unwrap_or_default();
            let value = pretty(&new, &unit(&parsed), indentation);
            format!("{}{value}{}", &text[..member.value.start], &text[member.value.end..])
        }
    };
    checked(merged, &document, path, name, new)
}

/// Returns `text` with `element` in the list `key`, unless an element of its `id` is there.
pub(super) fn with_element(text: &str, key: &str, element: &Value) -> Result<String, MergeError> {
    let document = JsonText::new(text).parse()?;
    match document.get(key) {
        None => with_member(text, &[], key, |_| json!([element])),
        Some(Value::Array(list)) if list.iter().any(|other| other["id"] == element["id"]) => {
            Ok(text.to_owned())
        }
        Some(Value::Array(list)) => {
            let longer: Vec<_> = list.iter().chain([element]).cloned().collect();
            with_member(text, &[], key, |_| Value::Array(longer.clone()))
        }
        Some(_) => Err(MergeError::Form(key.to_owned())),
    }
}

/// Returns `inner` within an object for each key.
fn nested(path: &[&str], inner: Value) -> Value {
    path.iter().rev().fold(inner, |inner, key| json!({*key: inner}))
}

/// Returns the merged text, if it means what it should: the document as it was, with the new member.
fn checked(
    merged: String,
    document: &Value,
    path: &[&str],
    name: &str,
    value: Value,
) -> Result<String, MergeError> {
    let mut expected = document.clone();
    let mut object = &mut expected;
    for key in path {
        let Value::Object(members) = object else { return Err(MergeError::Form(name.to_owned())) };
        object = members.entry((*key).to_owned()).or_insert_with(|| Value::Object(Map::new()));
    }
    object[name] = value;
    match JsonText::new(&merged).parse() {
        Ok(found) if found == expected => Ok(merged),
        _ => Err(MergeError::Form(name.to_owned())),
    }
}

/// Returns the text with a new member at the end of `object`, which lies `depth` levels deep.
fn insert(text: &JsonText<'_>, object: &ObjectSpan, depth: usize, key: &str, value: &Value) -> String {
    let unit = unit(text);
    let closing = unit.repeat(depth);
    let own = object.members.last().and_then(|last| text.indentation(last.key_start));
    let indentation = own.map_or_else(|| unit.repeat(depth + 1), str::to_owned);
    let member = format!("\n{indentation}{}: {}", Value::from(key), pretty(value, &unit, &indentation));
    let original = text.original;
    let Some(last) = object.members.last() else {
        // Comments in an empty object stay.
        let inside = original[object.start..object.end].trim_end();
        return format!(
            "{}{inside}{member}\n{closing}{}",
            &original[..object.start],
            &original[object.end..]
        );
    };
    let comma = text.trailing_comma(last.value.end..object.end);
    let after = comma.map_or(last.value.end, |comma| comma + 1);
    // A comment behind the last member stays on its line.
    let rest = &original[after..object.end];
    let line = rest.find('\n').filter(|end| !rest[..*end].contains("/*"));
    let split = after + line.map_or(0, |end| rest[..end].trim_end().len());
    let before = format!(
        "{}{}{}",
        &original[..last.value.end],
        if comma.is_none() { "," } else { "" },
        &original[last.value.end..split]
    );
    let behind = &original[split..];
    match original[split..object.end].contains('\n') {
        true => format!("{before}{member}{behind}"),
        false => format!("{before}{member}\n{closing}{}", behind.trim_start_matches([' ', '\t'])),
    }
}

/// Returns the blanks by which the file indents: those of the first member, else two.
fn unit(text: &JsonText<'_>) -> String {
    let first = text.object_at(0).and_then(|root| root.members.first().map(|member| member.key_start));
    let blanks = first.and_then(|start| text.indentation(start)).filter(|blanks| !blanks.is_empty());
    blanks.unwrap_or("  ").to_owned()
}

/// Writes a value over several lines; those after the first begin with `indentation`.
fn pretty(value: &Value, unit: &str, indentation: &str) -> String {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    let text = match value.serialize(&mut serializer) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => value.to_string(),
    };
    text.replace('\n', &format!("\n{indentation}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(text: &str) -> Result<String, MergeError> {
        with_member(text, &["servers"], "coretools", |_| json!({"command": "x"}))
    }

    /// Files in many forms.
    const FILES: &[&str] = &[
        "{}",
        "{ }\n",
        "{\n  // nothing yet\n}\n",
        "{\"a\": 1}",
        "{\"a\": 1,}",
        "{\"a\": 1, // why\n}",
        "{\n\t\"a\": \"}, // no comment\", /* last */\n}\n",
        "{\"servers\": {}}",
        "{\"servers\": {\"other\": {\"url\": \"http://x/\"}}}",
        "{\n    \"servers\": {\n        \"other\": {} // a comment\n        // and another\n    }\n}\n",
        "\u{feff}{\"servers\": {\"other\": [1, 2,], }, \"ключ\": \"漢字\"} // end",
        "{\r\n  \"servers\": {\r\n    \"other\": 1\r\n  }\r\n}\r\n",
    ];

    #[test]
    fn the_rest_of_a_file_stays_comments_included_and_a_second_time_changes_nothing() {
        for text in FILES {
            let once = merged(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(merged(&once).as_deref(), Ok(once.as_str()), "{text}");
            let mut found = JsonText::new(&once).parse().unwrap();
            let servers = found["servers"].as_object_mut().unwrap();
            assert_eq!(servers.remove("coretools"), Some(json!({"command": "x"})), "{text}");
            let mut before = JsonText::new(text).parse().unwrap();
            if before.get("servers").is_none() {
                before["servers"] = json!({});
            }
            assert_eq!(found, before, "{text}");
            for comment in
                ["// nothing yet", "// why", "/* last */", "// a comment\n", "// and another", "// end"]
            {
                assert_eq!(once.contains(comment), text.contains(comment), "{comment}: {once}");
            }
        }
    }

    #[test]
    fn a_new_member_is_written_as_the_others_are() {
        let text = "{\n    \"servers\": {\n        \"other\": {} // a comment\n    }\n}\n";
        let expected = "{\n    \"servers\": {\n        \"other\": {}, // a comment\n        \"coretools\": {\n            \
                        \"command\": \"x\"\n        }\n    }\n}\n";
        assert_eq!(merged(text).unwrap(), expected);
        assert_eq!(
            merged("").unwrap(),
            "{\n  \"servers\": {\n    \"coretools\": {\n      \"command\": \"x\"\n    }\n  }\n}\n"
        );
    }

    #[test]
    fn an_entry_is_replaced_where_it_stands_and_one_with_comments_is_not() {
        let text = "{\"servers\": {\"coretools\": {\"command\": \"old\"}, \"z\": 1}} // end";
        let new = merged(text).unwrap();
        assert!(new.ends_with(", \"z\": 1}} // end") && !new.contains("old"), "{new}");
        let commented = "{\"servers\": {\"coretools\": {\"command\": \"old\" /* mine */}}}";
        assert_eq!(merged(commented), Err(MergeError::Comments("coretools".to_owned())));
    }

    #[test]
    fn what_is_no_json_or_has_another_shape_is_refused() {
        for text in ["{", "{\"a\": }", "not json", "{} {}", "{ /* no end"] {
            assert!(matches!(merged(text), Err(MergeError::Syntax(_))), "{text}: {:?}", merged(text));
        }
        assert_eq!(merged("[]"), Err(MergeError::NotAnObject("the file".to_owned())));
        assert_eq!(merged("{\"servers\": []}"), Err(MergeError::NotAnObject("servers".to_owned())));
    }

    #[test]
    fn an_element_is_added_once() {
        let element = json!({"id": "t", "type": "p"});
        let once = with_element("{\"inputs\": [{\"id\": \"other\"}]}", "inputs", &element).unwrap();
        assert_eq!(JsonText::new(&once).parse().unwrap()["inputs"], json!([{"id": "other"}, element]));
        assert_eq!(with_element(&once, "inputs", &element).unwrap(), once);
        assert_eq!(
            with_element("{\"inputs\": 1}", "inputs", &element),
            Err(MergeError::Form("inputs".to_owned()))
        );
    }
}
