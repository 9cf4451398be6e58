//! [`UriTemplate`]: the addresses of many resources, with variables in braces.

use serde_json::{Map, Value};

/// The longest address that is compared.
const MAX_URI_BYTES: usize = 8 * 1024;

/// An address with variables (RFC 6570, level 1 and `{+name}`): `{name}` stands for text without a slash, `{+name}` for
/// any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UriTemplate {
    parts: Vec<TemplatePart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    Variable { name: String, crosses_slashes: bool },
}

impl UriTemplate {
    /// Reads a template. A brace without its other is text.
    pub(super) fn new(template: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((expression, behind)) = after.split_once('}') else { break };
            if !before.is_empty() {
                parts.push(TemplatePart::Literal(before.to_owned()));
            }
            let (name, crosses_slashes) = match expression.strip_prefix('+') {
                Some(name) => (name, true),
                None => (expression, false),
            };
            parts.push(TemplatePart::Variable { name: name.to_owned(), crosses_slashes });
            rest = behind;
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Literal(rest.to_owned()));
        }
        Self { parts }
    }

    /// Returns the values of the variables in `uri`, decoded, if it has the form of this template.
    pub(super) fn variables(&self, uri: &str) -> Option<Map<String, Value>> {
        if uri.len() > MAX_URI_BYTES {
            return None;
        }
        let mut values = Map::new();
        let mut rest = uri;
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            match part {
                TemplatePart::Literal(text) => rest = rest.strip_prefix(text.as_str())?,
                TemplatePart::Variable { name, crosses_slashes } => {
                    // To the first place of what follows; the last variable takes all that is left.
                    let end = match parts.peek() {
                        Some(TemplatePart::Literal(next)) => rest.find(next.as_str())?,
                        Some(TemplatePart::Variable { .. }) | None => rest.len(),
                    };
                    let (value, behind) = rest.split_at_checked(end)?;
                    // Decoded first: who joins it to a folder must not get `../` by `..%2F`.
                    let value = percent_decoded(value)?;
                    if value.is_empty() || (!crosses_slashes && value.contains('/')) {
                        return None;
                    }
                    values.insert(name.clone(), Value::String(value));
                    rest = behind;
                }
            }
        }
        rest.is_empty().then_some(values)
    }
}

/// Decodes `%41` to `A`. None if an escape is broken or the bytes are no UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let value = digit()? * 16 + digit()?;
                bytes.push(u8::try_from(value).ok()?);
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_address_of_the_form_has_its_variables_and_any_other_is_none() {
        let data = UriTemplate::new("test://template/{id}/data");
        let all = UriTemplate::new("file:///{+path}");
        let two = UriTemplate::new("a://{one}.{two}");
        for (template, uri, variables) in [
            (&data, "test://template/123/data", Some(json!({"id": "123"}))),
            (&data, "test://template/a%20b/data", Some(json!({"id": "a b"}))),
            (&data, "test://template/a%2Fb/data", None),
            (&data, "test://template/..%2f..%2Fetc/data", None),
            (&data, "test://template/1/2/data", None),
            (&data, "test://template//data", None),
            (&data, "test://template/123/data/more", None),
            (&data, "test://template/%zz/data", None),
            (&data, "test://template/ä/data", Some(json!({"id": "ä"}))),
            (&all, "file:///a/b/c.txt", Some(json!({"path": "a/b/c.txt"}))),
            (&all, "file:///a%2Fb", Some(json!({"path": "a/b"}))),
            (&all, "http:///a", None),
            (&two, "a://x.y.z", Some(json!({"one": "x", "two": "y.z"}))),
        ] {
            assert_eq!(template.variables(uri).map(Value::Object), variables, "{uri}");
        }
    }

    #[test]
    fn a_brace_without_its_other_is_text() {
        assert_eq!(UriTemplate::new("a://{b").variables("a://{b"), Some(Map::new()));
    }
}
