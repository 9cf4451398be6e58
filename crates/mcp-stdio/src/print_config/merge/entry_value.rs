//! The value of an entry that takes the place of an older one.

use crate::print_config::entry::ENTRY_KEYS;
use serde_json::Value;

/// Returns the new entry: `new`, and the keys of the old one that are the user's own, such as `env`.
pub(super) fn entry_value(old: Option<&Value>, new: &Value) -> Value {
    let mut merged = new.clone();
    if let (Some(merged), Some(Value::Object(old))) = (merged.as_object_mut(), old) {
        for (key, value) in old {
            if !merged.contains_key(key) && !ENTRY_KEYS.contains(&key.as_str()) {
                merged.insert(key.clone(), value.clone());
            }
        }
    }
    merged
}
