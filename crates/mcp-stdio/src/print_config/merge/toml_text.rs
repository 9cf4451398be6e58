//! A table that is put into the text of a TOML file.

use super::entry_value::entry_value;
use super::error::MergeError;
use serde_json::Value;
use std::ops::Range;
use toml::Table;

/// Returns `text` with the table `key.name`, whose content is the object `value`. Tables below it stay.
pub(super) fn with_table(text: &str, key: &str, name: &str, value: &Value) -> Result<String, MergeError> {
    let parse = |text: &str| {
        text.parse::<Table>()
            .map_err(|error| MergeError::Syntax(error.to_string().trim_end().replace('\n', " ")))
    };
    let document = parse(text)?;
    let path = format!("{key}.{name}");
    let old = match document.get(key).map(|servers| servers.as_table()) {
        None => None,
        Some(None) => return Err(MergeError::NotAnObject(key.to_owned())),
        Some(Some(servers)) => servers.get(name),
    };
    let old_json = old.map(serde_json::to_value).transpose().map_err(|_| MergeError::Form(path.clone()))?;
    let merged = entry_value(old_json.as_ref(), value);
    if old_json.as_ref() == Some(&merged) {
        return Ok(text.to_owned());
    }
    let new = Table::try_from(&merged).map_err(|_| MergeError::Form(path.clone()))?;
    let changed = match (old, section(text, key, name)) {
        (None, _) => appended(text, &format!("[{path}]\n{}", own_values(&merged))),
        (Some(_), Some(section)) if text[section.clone()].lines().any(has_comment) => {
            return Err(MergeError::Comments(name.to_owned()));
        }
        (Some(_), Some(section)) => {
            format!("{}{}{}", &text[..section.start], own_values(&merged), &text[section.end..])
        }
        (Some(_), None) => return Err(MergeError::Form(path)),
    };
    let mut expected = document;
    let servers = expected.entry(key).or_insert_with(|| toml::Value::Table(Table::new()));
    if let Some(servers) = servers.as_table_mut() {
        servers.insert(name.to_owned(), toml::Value::Table(new));
    }
    match parse(&changed) {
        Ok(found) if found == expected => Ok(changed),
        _ => Err(MergeError::Form(path)),
    }
}

/// Returns the values of an object as lines, in their order. Objects within it have sections of their own, which stay.
pub(in crate::print_config) fn own_values(object: &Value) -> String {
    let members = object.as_object().into_iter().flatten().filter(|(_, value)| !value.is_object());
    let values = members.filter_map(|(key, value)| Some((key, toml::Value::try_from(value).ok()?)));
    values.map(|(key, value)| format!("{} = {value}\n", quoted_key(key))).collect()
}

fn quoted_key(key: &str) -> String {
    let is_bare =
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_bare { key.to_owned() } else { toml::Value::from(key).to_string() }
}

fn appended(text: &str, section: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() { section.to_owned() } else { format!("{text}\n\n{section}") }
}

/// Returns the lines of the section `[key.name]`: from behind its header to its last value. Lines within strings and lists
/// that look like headers would be misread, which the check of the result finds.
fn section(text: &str, key: &str, name: &str) -> Option<Range<usize>> {
    let (mut start, mut end, mut at) = (None, 0, 0);
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        match (start, header(line)) {
            (None, Some(parts)) if parts == [key, name] => (start, end) = (Some(next), next),
            (None, _) => {}
            (Some(_), Some(_)) => break,
            // Blank lines and comments before the next header are not this section's.
            (Some(_), None) => {
                if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
                    end = next;
                }
            }
        }
        at = next;
    }
    Some(start?..end)
}

/// Returns the words of a header such as `[mcp_servers.coretools]`.
fn header(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim_start().strip_prefix('[')?.split(']').next()?;
    let parts: Vec<_> = inner.split('.').map(|part| part.trim().trim_matches(['"', '\''])).collect();
    (!inner.starts_with('"')).then_some(parts)
}

/// Returns true if a line may have a comment: a `#` in a string counts too, as only then it would be lost for certain.
fn has_comment(line: &str) -> bool {
    line.contains('#')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn merged(text: &str) -> Result<String, MergeError> {
        with_table(
            text,
            "mcp_servers",
            "coretools",
            &json!({"command": "/bin/x", "args": ["--root", "/a b"]}),
        )
    }

    const TABLE: &str = "[mcp_servers.coretools]\ncommand = \"/bin/x\"\nargs = [\"--root\", \"/a b\"]\n";

    #[test]
    fn a_table_is_added_at_the_end_once_and_the_rest_stays() {
        assert_eq!(merged("").unwrap(), TABLE);
        let text = "model = \"m\" # mine\n\n[mcp_servers.other]\ncommand = \"y\"\n\n# the end\n";
        let once = merged(text).unwrap();
        assert_eq!(once, format!("{}\n\n{TABLE}", text.trim_end()));
        assert_eq!(merged(&once).unwrap(), once);
    }

    #[test]
    fn the_values_of_a_table_are_replaced_and_the_users_own_stay() {
        let text = "[mcp_servers.coretools]\ncommand = \"old\"\nargs = [\n  \"a\",\n]\nstartup_timeout_sec = 20\n\n\
                    # of the tools\n[mcp_servers.coretools.env]\nA = \"1\"\n\n[tui]\ntheme = \"x\"\n";
        let new = merged(text).unwrap();
        let expected = format!(
            "{TABLE}startup_timeout_sec = 20\n\n# of the tools\n[mcp_servers.coretools.env]\nA = \"1\"\n\n[tui]\ntheme = \"x\"\n"
        );
        assert_eq!(new, expected);
        assert_eq!(merged(&new).unwrap(), new);
    }

    #[test]
    fn what_cannot_be_changed_without_harm_is_refused() {
        let comment = "[mcp_servers.coretools]\ncommand = \"old\" # mine\n";
        assert_eq!(merged(comment), Err(MergeError::Comments("coretools".to_owned())));
        let inline = "mcp_servers = { coretools = { command = \"old\" } }\n";
        assert_eq!(merged(inline), Err(MergeError::Form("mcp_servers.coretools".to_owned())));
        let sibling = "mcp_servers = { other = { command = \"y\" } }\n";
        assert_eq!(merged(sibling), Err(MergeError::Form("mcp_servers.coretools".to_owned())));
        assert_eq!(merged("mcp_servers = 1\n"), Err(MergeError::NotAnObject("mcp_servers".to_owned())));
        assert!(matches!(merged("a ="), Err(MergeError::Syntax(_))));
        let lookalike =
            "text = \"\"\"\n[mcp_servers.coretools]\n\"\"\"\n[mcp_servers]\ncoretools.command = \"old\"\n";
        assert!(merged(lookalike).is_err(), "{:?}", merged(lookalike));
    }
}
