//! The tools of the server, as far as they can be offered to the client.

use super::authorizer::is_safe_name;
use json_rpc::json::{Json, JsonObject};
use std::collections::HashMap;

/// A tool of the server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ServerTool {
    pub(super) name: String,
    /// The definition as the server wrote it, unknown members included.
    pub(super) definition: JsonObject<'static>,
}

/// A tool that is not offered, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WithheldTool {
    pub(super) name: String,
    pub(super) reason: String,
}

/// The members of a definition that mean something.
const DEFINITION_MEMBERS: [&str; 7] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta"];

/// Separates the entries of a list into tools and withheld ones, both in the order of the list.
pub(super) fn separate_withheld(entries: Vec<Json<'static>>) -> (Vec<ServerTool>, Vec<WithheldTool>) {
    let (mut tools, mut withheld) = (Vec::new(), Vec::new());
    let mut name_counts: HashMap<String, usize> = HashMap::new();
    for entry in entries {
        match check_entry(entry) {
            Ok(tool) => {
                *name_counts.entry(tool.name.to_ascii_lowercase()).or_default() += 1;
                tools.push(tool);
            }
            Err(refused) => withheld.push(refused),
        }
    }
    // Neither of two such tools is offered, since nobody can say which one a client means.
    tools.retain(|tool: &ServerTool| {
        let is_unique = name_counts.get(&tool.name.to_ascii_lowercase()) == Some(&1);
        if !is_unique {
            let reason = "another tool has the same name but for the case of its letters, if not exactly";
            withheld.push(WithheldTool { name: tool.name.clone(), reason: reason.to_owned() });
        }
        is_unique
    });
    (tools, withheld)
}

fn check_entry(entry: Json<'static>) -> Result<ServerTool, WithheldTool> {
    let Json::Object(definition) = entry else {
        return Err(WithheldTool { name: String::new(), reason: "it is no object".to_owned() });
    };
    let name = definition.get("name").and_then(Json::as_str).unwrap_or_default().to_owned();
    let withheld =
        |reason: String| Err(WithheldTool { name: name.escape_debug().take(128).collect(), reason });
    if !is_safe_name(&name) {
        return withheld("a name is 1 to 128 of the characters A-Z a-z 0-9 _ . -".to_owned());
    }
    // A client that compares names without case, as Go's JSON does, would show a member that was neither checked nor
    // pinned.
    if let Some(variant) = definition.case_variant_of(&DEFINITION_MEMBERS) {
        return withheld(format!("a member is called like `{variant}` in other letters"));
    }
    let mut invisible = None;
    visit_strings(&definition, &mut |text| invisible = invisible.or_else(|| invisible_in(text)));
    if let Some(char) = invisible {
        return withheld(format!("its definition has U+{:04X}, which nobody would see", u32::from(char)));
    }
    Ok(ServerTool { name, definition })
}

/// Calls `visit` with every string in an object, names of members too.
fn visit_strings(object: &JsonObject<'_>, visit: &mut impl FnMut(&str)) {
    fn value(json: &Json<'_>, visit: &mut impl FnMut(&str)) {
        match json {
            Json::String(text) => visit(text),
            Json::Array(items) => items.iter().for_each(|item| value(item, visit)),
            Json::Object(object) => visit_strings(object, visit),
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }
    for (name, member) in object.members() {
        visit(name);
        value(member, visit);
    }
}

/// Returns the first character that a model reads and a person does not see: direction marks, zero-width characters,
/// tags, variation selectors past the common ones, controls (Unicode 17, §23). The two joiners are allowed where a
/// script or an emoji needs them.
fn invisible_in(text: &str) -> Option<char> {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte) || byte == b'\n') {
        return None;
    }
    let mut previous = ' ';
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let hidden = match char {
            '\n' | '\r' | '\t' => false,
            '\u{200c}' | '\u{200d}' => previous.is_ascii() || chars.peek().is_none_or(char::is_ascii),
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
        previous = char;
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
        let (tools, withheld) = separate_withheld(entries);
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
