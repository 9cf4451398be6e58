//! The tools that a server offers, as far as they can be offered on.

use super::json::{Json, Object};
use super::judge::is_safe_name;
use std::collections::HashMap;

/// One tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tool {
    pub(super) name: String,
    /// As the server has it, with what nobody here knows.
    pub(super) definition: Object<'static>,
}

/// A tool that is not offered on, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Withheld {
    pub(super) name: String,
    pub(super) reason: String,
}

/// The members of a definition that mean something.
const MEMBERS: [&str; 7] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta"];

/// Sorts the entries of a list into tools and what is withheld. The order stays.
pub(super) fn sort(entries: Vec<Json<'static>>) -> (Vec<Tool>, Vec<Withheld>) {
    let (mut tools, mut withheld) = (Vec::new(), Vec::new());
    let mut seen: HashMap<String, usize> = HashMap::new();
    for entry in entries {
        match read(entry) {
            Ok(tool) => {
                *seen.entry(tool.name.to_ascii_lowercase()).or_default() += 1;
                tools.push(tool);
            }
            Err(refused) => withheld.push(refused),
        }
    }
    tools.retain(|tool: &Tool| {
        let alone = seen.get(&tool.name.to_ascii_lowercase()) == Some(&1);
        if !alone {
            let reason = "another tool has the same name but for the case of its letters, if not exactly";
            withheld.push(Withheld { name: tool.name.clone(), reason: reason.to_owned() });
        }
        alone
    });
    (tools, withheld)
}

fn read(entry: Json<'static>) -> Result<Tool, Withheld> {
    let Json::Object(definition) = entry else {
        return Err(Withheld { name: String::new(), reason: "it is no object".to_owned() });
    };
    let name = definition.get("name").and_then(Json::as_str).unwrap_or_default().to_owned();
    let withheld = |reason: String| Err(Withheld { name: name.escape_debug().take(128).collect(), reason });
    if !is_safe_name(&name) {
        return withheld("a name is 1 to 128 of the characters A-Z a-z 0-9 _ . -".to_owned());
    }
    if let Some(twin) = definition.twin(&MEMBERS) {
        return withheld(format!("a member is called like `{twin}` in other letters"));
    }
    let mut invisible = None;
    strings(&definition, &mut |text| invisible = invisible.or_else(|| invisible_in(text)));
    if let Some(char) = invisible {
        return withheld(format!("its definition has U+{:04X}, which nobody would see", u32::from(char)));
    }
    Ok(Tool { name, definition })
}

/// Calls `look` with every string in it, names of members too.
fn strings(object: &Object<'_>, look: &mut impl FnMut(&str)) {
    fn value(json: &Json<'_>, look: &mut impl FnMut(&str)) {
        match json {
            Json::String(text) => look(text),
            Json::Array(items) => items.iter().for_each(|item| value(item, look)),
            Json::Object(object) => strings(object, look),
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }
    for (name, member) in object.members() {
        look(name);
        value(member, look);
    }
}

/// A character that a model reads and a person does not see: direction marks, zero-width characters, tags,
/// variation selectors past the common ones, controls (Unicode 17, §23). The two joiners stand where a
/// script or an emoji needs them.
fn invisible_in(text: &str) -> Option<char> {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte) || byte == b'\n') {
        return None;
    }
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let hidden = match char {
            '\n' | '\r' | '\t' => false,
            '\u{200c}' | '\u{200d}' => before.is_ascii() || chars.peek().is_none_or(char::is_ascii),
            _ => {
                char.is_control()
                    || matches!(char,
                    '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                    | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
                    | '\u{e0000}'..='\u{e0fff}')
            }
        };
        if hidden {
            return Some(char);
        }
        before = char;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(text: &str) -> (Vec<String>, Vec<String>) {
        let Json::Array(entries) = Json::parse(text.as_bytes()).unwrap().into_owned() else {
            panic!("{text}")
        };
        let (tools, withheld) = sort(entries);
        (
            tools.into_iter().map(|tool| tool.name).collect(),
            withheld.into_iter().map(|tool| tool.name).collect(),
        )
    }

    #[test]
    fn tools_that_look_like_others_are_withheld_and_the_rest_keeps_its_order() {
        let (tools, withheld) = sorted(
            r#"[{"name":"z"},{"name":"a"},{"name":"dup"},{"name":"Dup"},{"name":"b c"},{"name":5},7,
                {"name":"n","Name":"m"},{"name":"t","description":"x\u202ey"},{"name":"u","inputSchema":
                {"properties":{"p":{"description":"\udb40\udc41"}}}},{"name":"v","description":"a\u200db"},
                {"name":"w","description":"\u001b[2J"},{"name":"ok","description":"\ud83d\udc68\u200d\ud83d\udc69 \u00e9\n"}]"#,
        );
        assert_eq!(tools, ["z", "a", "ok"]);
        assert_eq!(withheld, ["b c", "", "", "n", "t", "u", "v", "w", "dup", "Dup"]);
    }

    #[test]
    fn two_tools_of_one_name_are_both_withheld() {
        assert_eq!(sorted(r#"[{"name":"a"},{"name":"a"},{"name":"b"}]"#).0, ["b"]);
    }
}
