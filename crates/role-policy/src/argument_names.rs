//! The names of arguments that tools of other servers take. Their parsers may read another name for the one that a rule
//! judges: Go's ignores the case of letters, and the last of two such members counts.

use crate::violation::RuleViolation;
use json_rpc::json::loosely_folded_name;
use serde_json::{Map, Value};

/// Refuses every name that a parser could take for a step of `location`, which is the name of a top-level argument or a
/// JSON Pointer.
pub(crate) fn check_variants(location: &str, arguments: &Map<String, Value>) -> Result<(), RuleViolation> {
    let steps: Vec<String> = match location.strip_prefix('/') {
        None => vec![location.to_owned()],
        // In this order, so that `~01` is read as `~1` (RFC 6901, section 4).
        Some(pointer) => pointer.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect(),
    };
    let mut members = Some(arguments);
    let mut value = None;
    for step in &steps {
        if let Some(members) = members {
            let folded = loosely_folded_name(step);
            let variant = members.keys().find(|name| *name != step && loosely_folded_name(name) == folded);
            if let Some(found) = variant {
                return Err(RuleViolation::ArgumentVariant {
                    argument: location.to_owned(),
                    found: found.clone(),
                });
            }
            value = members.get(step);
        } else {
            value = value
                .and_then(Value::as_array)
                .and_then(|items| step.parse::<usize>().ok().and_then(|index| items.get(index)));
        }
        members = value.and_then(Value::as_object);
    }
    Ok(())
}
