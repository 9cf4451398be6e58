//! The call that was probably meant by arguments that do not fit.

use super::synonyms::{ArgumentKeyMeaning, meaning};
use super::units::bare_time;
use crate::mcp::schema::JsonSchemaObject;
use did_you_mean::nearest;
use serde_json::{Map, Value};

/// Returns `object` with every unknown member under the name that is probably meant. `None` if nothing would change, or
/// if one of them has no such name.
pub(super) fn corrected(
    schema: &JsonSchemaObject,
    object: &Map<String, Value>,
) -> Option<Map<String, Value>> {
    let mut is_changed = false;
    let corrected = correct_object(schema, object, &mut is_changed)?;
    is_changed.then_some(corrected)
}

fn correct_object(
    schema: &JsonSchemaObject,
    object: &Map<String, Value>,
    is_changed: &mut bool,
) -> Option<Map<String, Value>> {
    let Some(Value::Object(properties)) = schema.get("properties") else { return Some(object.clone()) };
    let mut corrected = Map::with_capacity(object.len());
    for (key, value) in object {
        let (name, value) = match meaning(properties, key, value) {
            ArgumentKeyMeaning::Property(name, property) => {
                (name.to_owned(), correct_value(property, value, is_changed)?)
            }
            ArgumentKeyMeaning::Note => continue,
            // The corrected call shows the first name. The fault itself lists all of them.
            ArgumentKeyMeaning::Ambiguous(names) => {
                *is_changed = true;
                ((*names.first()?).to_owned(), value.clone())
            }
            ArgumentKeyMeaning::Unknown => match suggestion(properties, key, value) {
                Some(suggested) => {
                    *is_changed = true;
                    suggested
                }
                // One that is only rewritten by the check stays for it.
                None => (key.clone(), value.clone()),
            },
        };
        // Two members under one name would lose a value, so no correction is offered.
        if corrected.insert(name, value).is_some() {
            return None;
        }
    }
    Some(corrected)
}

fn correct_value(property: &Value, value: &Value, is_changed: &mut bool) -> Option<Value> {
    let Value::Object(property) = property else { return Some(value.clone()) };
    match (value, property.get("items")) {
        (Value::Object(object), _) => Some(Value::Object(correct_object(property, object, is_changed)?)),
        (Value::Array(items), Some(item)) => items
            .iter()
            .map(|value| correct_value(item, value, is_changed))
            .collect::<Option<_>>()
            .map(Value::Array),
        _ => Some(value.clone()),
    }
}

/// Returns the name and the value that an unknown member probably has.
fn suggestion(properties: &Map<String, Value>, key: &str, value: &Value) -> Option<(String, Value)> {
    if let Some((name, seconds)) = bare_time(properties, key, value) {
        return Some((name.to_owned(), seconds.into()));
    }
    let name = nearest(key, properties.keys().map(String::as_str))?;
    Some((name.to_owned(), value.clone()))
}
