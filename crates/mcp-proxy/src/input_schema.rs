//! The names of arguments that a tool's input schema declares, and names that its server could take for them.
//!
//! Parsers of JSON disagree on names that differ only in the case of their letters: Go's takes the last of them for one
//! member, Python's keeps both. Where a schema declares properties, such names are refused. A map without declared
//! properties is the user's own: `http_proxy` and `HTTP_PROXY` are two variables.

use json_rpc::json::{Json, JsonObject, loosely_folded_name};
use std::collections::{BTreeSet, HashMap};

/// The most schemas that are looked at for one value. A schema with more is treated as one that declares properties.
const MAX_SCHEMAS: usize = 256;

/// Keywords whose value is an array of schemas that hold for the same value.
const COMBINED: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords whose value is a schema that holds for the same value, at least sometimes.
const CONDITIONAL: [&str; 3] = ["if", "then", "else"];

/// The input schema of one tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct InputSchema<'s> {
    root: &'s JsonObject<'s>,
}

/// Two names in one object of which a parser could see one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AmbiguousNames {
    pub(super) first: String,
    pub(super) second: String,
}

/// The schemas that hold for one value.
struct ValueSchemas<'s> {
    schemas: Vec<&'s JsonObject<'s>>,
    /// True if there are more than were looked at.
    is_cut: bool,
}

impl<'s> InputSchema<'s> {
    /// Returns the schema in a tool's definition, if it has one.
    pub(super) fn of(definition: &'s JsonObject<'s>) -> Option<Self> {
        let root = definition.get("inputSchema")?.as_object()?;
        Some(Self { root })
    }

    /// Returns the names of the top-level arguments that the schema declares.
    pub(super) fn declared_arguments(self) -> Vec<&'s str> {
        let schemas = self.expand(vec![self.root]).schemas;
        let names: BTreeSet<&str> =
            schemas.iter().filter_map(properties).flat_map(JsonObject::names).collect();
        names.into_iter().collect()
    }

    /// Returns the first two names in one object that a parser could take for one, at any depth where the schema
    /// declares properties.
    pub(super) fn ambiguous_names(self, arguments: &JsonObject<'_>) -> Option<AmbiguousNames> {
        self.in_object(arguments, &self.expand(vec![self.root]))
    }

    fn in_object(self, object: &JsonObject<'_>, at: &ValueSchemas<'s>) -> Option<AmbiguousNames> {
        let declares = at.is_cut || at.schemas.iter().any(|schema| properties(schema).is_some());
        if declares && let Some(found) = ambiguous_pair(object) {
            return Some(found);
        }
        object.members().find_map(|(name, value)| {
            let mut schemas = Vec::new();
            for schema in &at.schemas {
                schemas.extend(properties(schema).and_then(|known| known.get(name)?.as_object()));
                schemas.extend(schema.get("additionalProperties").and_then(Json::as_object));
                let patterns = schema.get("patternProperties").and_then(Json::as_object);
                let patterns = patterns.into_iter().flat_map(JsonObject::members);
                schemas.extend(patterns.filter_map(|(_, schema)| schema.as_object()));
            }
            self.in_value(value, schemas)
        })
    }

    fn in_value(self, value: &Json<'_>, schemas: Vec<&'s JsonObject<'s>>) -> Option<AmbiguousNames> {
        if schemas.is_empty() {
            return None;
        }
        match value {
            Json::Object(object) => self.in_object(object, &self.expand(schemas)),
            Json::Array(items) => {
                let at = self.expand(schemas);
                let mut item_schemas = Vec::new();
                for schema in &at.schemas {
                    for keyword in ["items", "prefixItems", "additionalItems", "contains"] {
                        match schema.get(keyword) {
                            Some(Json::Object(schema)) => item_schemas.push(schema),
                            Some(Json::Array(list)) => {
                                item_schemas.extend(list.iter().filter_map(Json::as_object));
                            }
                            _ => {}
                        }
                    }
                }
                items.iter().find_map(|item| self.in_value(item, item_schemas.clone()))
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
        }
    }

    /// Adds the schemas that `schemas` refer to or are combined of.
    fn expand(self, mut schemas: Vec<&'s JsonObject<'s>>) -> ValueSchemas<'s> {
        let mut at = 0;
        while let Some(schema) = schemas.get(at).copied() {
            if schemas.len() > MAX_SCHEMAS {
                return ValueSchemas { schemas, is_cut: true };
            }
            let referred = ["$ref", "$dynamicRef"]
                .into_iter()
                .filter_map(|keyword| self.referred(schema.get(keyword)?.as_str()?));
            let combined = COMBINED.into_iter().filter_map(|keyword| match schema.get(keyword) {
                Some(Json::Array(list)) => Some(list.iter().filter_map(Json::as_object)),
                _ => None,
            });
            let conditional = CONDITIONAL.into_iter().filter_map(|keyword| schema.get(keyword)?.as_object());
            let found: Vec<_> = referred.chain(combined.flatten()).chain(conditional).collect();
            for schema in found {
                // A schema that refers to itself is looked at once.
                if !schemas.iter().any(|known| std::ptr::eq(*known, schema)) {
                    schemas.push(schema);
                }
            }
            at += 1;
        }
        ValueSchemas { schemas, is_cut: false }
    }

    /// Returns the schema at a reference within the same document, such as `#/$defs/Name`.
    fn referred(self, reference: &str) -> Option<&'s JsonObject<'s>> {
        let pointer = reference.strip_prefix('#')?;
        let mut schema = self.root;
        let mut steps = pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"));
        steps.try_for_each(|step| {
            schema = schema.get(&step)?.as_object()?;
            Some(())
        })?;
        Some(schema)
    }
}

/// Returns the properties that a schema declares, if there are any.
fn properties<'s>(schema: &&'s JsonObject<'s>) -> Option<&'s JsonObject<'s>> {
    schema.get("properties")?.as_object().filter(|declared| declared.names().next().is_some())
}

fn ambiguous_pair(object: &JsonObject<'_>) -> Option<AmbiguousNames> {
    let mut seen = HashMap::new();
    object.names().find_map(|name| {
        let first = seen.insert(loosely_folded_name(name), name)?;
        Some(AmbiguousNames { first: first.to_owned(), second: name.to_owned() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFINITION: &str = r##"{"name":"t","inputSchema":{"type":"object","properties":{
        "path":{"type":"string"},
        "env":{"type":"object","additionalProperties":{"type":"string"}},
        "free":{"type":"object"},
        "filter":{"$ref":"#/$defs/Filter"},
        "edits":{"type":"array","items":{"anyOf":[{"type":"null"},{"properties":{"file":{}}}]}},
        "by_name":{"additionalProperties":{"$ref":"#/$defs/Filter"}}},
        "$defs":{"Filter":{"properties":{"glob":{},"not":{"$ref":"#/$defs/Filter"}}}}}}"##;

    fn found(arguments: &str) -> bool {
        let definition = Json::parse(DEFINITION.as_bytes()).unwrap();
        let arguments = Json::parse(arguments.as_bytes()).unwrap();
        let schema = InputSchema::of(definition.as_object().unwrap()).unwrap();
        schema.ambiguous_names(arguments.as_object().unwrap()).is_some()
    }

    #[test]
    fn names_that_a_parser_takes_for_one_are_found_at_every_depth_with_declared_properties() {
        for (arguments, ambiguous) in [
            (r#"{"path":1,"PATH":2}"#, true),
            (r#"{"path":1,"p\u0041th":2}"#, true),
            (r#"{"x_y":1,"xY":2}"#, true),
            (r#"{"other":1,"Other":2}"#, true),
            (r#"{"path":1,"paths":2}"#, false),
            (r#"{"env":{"http_proxy":"a","HTTP_PROXY":"b"}}"#, false),
            (r#"{"free":{"a":{"b":1,"B":2}}}"#, false),
            (r#"{"filter":{"glob":1,"Glob":2}}"#, true),
            (r#"{"filter":{"not":{"not":{"glob":1,"gLob":2}}}}"#, true),
            (r#"{"edits":[{"file":1},{"file":1,"FILE":2}]}"#, true),
            (r#"{"by_name":{"a":{"glob":1},"A":{"glob":1}}}"#, false),
            (r#"{"by_name":{"a":{"glob":1,"GLOB":2}}}"#, true),
        ] {
            assert_eq!(found(arguments), ambiguous, "{arguments}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_is_read_once() {
        let text =
            r##"{"name":"t","inputSchema":{"$ref":"#","anyOf":[{"$ref":"#"}],"properties":{"a":{}}}}"##;
        let definition = Json::parse(text.as_bytes()).unwrap();
        let schema = InputSchema::of(definition.as_object().unwrap()).unwrap();
        assert_eq!(schema.declared_arguments(), ["a"]);
    }
}
