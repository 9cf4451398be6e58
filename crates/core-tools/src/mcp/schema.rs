//! JSON Schemas from Rust types, in the fewest bytes that say the same.
//!
//! Every byte of a tool list is paid for in each conversation, so what a client does not need is cut: the
//! dialect, titles, integer formats, `null` beside a type that may simply be left out, references that are
//! used once.

use super::stored_schemas::{SchemaUse, stored};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock};

/// A JSON Schema object, as rmcp takes it.
pub(crate) type JsonSchemaObject = Map<String, Value>;

/// A schema that is looked up or generated when it is first needed. A start of the program needs those of the tools that it
/// lists, and a single call needs one.
#[derive(Clone, Debug)]
pub(crate) struct LazySchema {
    schema_use: SchemaUse,
    type_name: &'static str,
    generate: fn() -> JsonSchemaObject,
    /// The largest values of parameters that settings bound.
    maxima: Vec<(String, u64)>,
    /// True if it is listed word for word.
    is_verbatim: bool,
    schema: OnceLock<Arc<JsonSchemaObject>>,
}

impl LazySchema {
    /// The schema that arguments of type `T` are checked by.
    pub(crate) fn of_input<T: JsonSchema>() -> Self {
        Self::new::<T>(SchemaUse::Input, input::<T>)
    }

    /// The schema of answers of type `T`.
    pub(crate) fn of_output<T: JsonSchema>() -> Self {
        Self::new::<T>(SchemaUse::Output, output::<T>)
    }

    fn new<T>(schema_use: SchemaUse, generate: fn() -> JsonSchemaObject) -> Self {
        let type_name = std::any::type_name::<T>();
        Self {
            schema_use,
            type_name,
            generate,
            maxima: Vec::new(),
            is_verbatim: false,
            schema: OnceLock::new(),
        }
    }

    /// A schema of arguments that is listed word for word. What is no object takes no arguments.
    pub(crate) fn verbatim(schema: Value) -> Self {
        let mut lazy = Self::new::<Value>(SchemaUse::Input, JsonSchemaObject::new);
        lazy.is_verbatim = true;
        if let Value::Object(schema) = schema {
            lazy.schema = OnceLock::from(Arc::new(schema));
        }
        lazy
    }

    /// Sets the largest value of a number among the properties.
    pub(crate) fn set_maximum(&mut self, property: &str, maximum: u64) {
        self.maxima.push((property.to_owned(), maximum));
        if !self.is_verbatim {
            self.schema = OnceLock::new();
        }
    }

    /// Returns the schema.
    pub(crate) fn get(&self) -> &Arc<JsonSchemaObject> {
        self.schema.get_or_init(|| {
            let mut schema = stored(self.schema_use, self.type_name).unwrap_or_else(|| (self.generate)());
            for (property, maximum) in &self.maxima {
                let property = get_mut(&mut schema, "properties").and_then(|object| object.get_mut(property));
                if let Some(Value::Object(property)) = property {
                    property.insert("maximum".to_owned(), (*maximum).into());
                }
            }
            Arc::new(schema)
        })
    }

    /// Returns the part of an input schema that is [`listed`].
    pub(crate) fn listed(&self) -> JsonSchemaObject {
        if self.is_verbatim {
            return JsonSchemaObject::clone(self.get());
        }
        // What settings change is not in the stored schema.
        let stored = || stored(SchemaUse::Listed, self.type_name).filter(|_| self.maxima.is_empty());
        stored().unwrap_or_else(|| listed(self.get()))
    }

    /// Returns the schemas of the type that can be stored.
    pub(super) fn generated(
        &self,
    ) -> impl Iterator<Item = (SchemaUse, &'static str, JsonSchemaObject)> + use<> {
        let schema = (self.generate)();
        let listed = (self.schema_use == SchemaUse::Input).then(|| listed(&schema));
        let listed = listed.map(|listed| (SchemaUse::Listed, self.type_name, listed));
        std::iter::once((self.schema_use, self.type_name, schema)).chain(listed)
    }
}

/// The key that marks a property which is accepted and not listed.
const UNLISTED: &str = "unlisted";

/// The key of another name of a property, which is accepted and not listed.
pub(crate) const ALIAS: &str = "alias";

/// Returns the schema that arguments are checked by. Descriptions, ranges and defaults stay.
pub(crate) fn input<T: JsonSchema>() -> JsonSchemaObject {
    generate::<T>(SchemaSettings::draft2020_12().for_deserialize().into_generator(), true)
}

/// Returns the schema of an answer: names, types and descriptions.
pub(crate) fn output<T: JsonSchema>() -> JsonSchemaObject {
    generate::<T>(SchemaSettings::draft2020_12().for_serialize().into_generator(), false)
}

/// Returns the part of an input schema that is listed: all that the writer of arguments needs, and nothing that only the
/// check needs. Unknown members are refused whether or not the list says so.
pub(crate) fn listed(schema: &JsonSchemaObject) -> JsonSchemaObject {
    shortened(schema, Parameters::Listed)
}

/// Returns what [`listed`] returns, with the rarely needed parameters that a list leaves out.
pub(crate) fn whole(schema: &JsonSchemaObject) -> JsonSchemaObject {
    shortened(schema, Parameters::All)
}

/// The parameters that a schema keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parameters {
    Listed,
    All,
}

fn shortened(schema: &JsonSchemaObject, parameters: Parameters) -> JsonSchemaObject {
    let mut schema = Value::Object(schema.clone());
    shorten(&mut schema, true, parameters);
    match schema {
        Value::Object(schema) => schema,
        _ => JsonSchemaObject::new(),
    }
}

fn shorten(schema: &mut Value, described: bool, parameters: Parameters) {
    let Value::Object(object) = schema else { return };
    // The list says neither: a client needs no `false` to know which members there are, and `true` is what is left unsaid.
    if get(object, "additionalProperties").is_some_and(Value::is_boolean) {
        remove(object, "additionalProperties");
    }
    // The bound of the type `u32`, which no caller reaches.
    if get(object, "maximum") == Some(&Value::from(u32::MAX)) {
        remove(object, "maximum");
    }
    // Nobody writes fewer than none, or nothing where something is wanted.
    for (key, implied) in [("minimum", 0), ("minimum", 1), ("minItems", 1), ("minLength", 1)] {
        if get(object, key) == Some(&Value::from(implied)) {
            object.remove(key);
        }
    }
    // Both mean any value; not every client takes a boolean for a schema.
    if get(object, "items") == Some(&Value::Bool(true)) {
        object.insert("items".to_owned(), Value::Object(Map::new()));
    }
    // Its description says the default, or it is what everybody assumes: false, or empty.
    let description = get(object, "description").and_then(Value::as_str);
    let says_default = description.is_some_and(|text| text.contains("efault"));
    if says_default || get(object, "default").is_some_and(is_nothing) {
        remove(object, "default");
    }
    if !described {
        remove(object, "description");
    }
    remove(object, ALIAS);
    remove(object, UNLISTED);
    if let Some(Value::Object(properties)) = get_mut(object, "properties") {
        // Rarely needed parameters are found by find_tools, and named in answers and errors that concern them.
        properties.retain(|_, value| parameters == Parameters::All || value.get(UNLISTED).is_none());
        properties.values_mut().for_each(|value| shorten(value, true, parameters));
    }
    // The description of a list says what its items are, so theirs is left out.
    for key in ["items", "additionalProperties"] {
        if let Some(value) = get_mut(object, key) {
            shorten(value, false, parameters);
        }
    }
    if let Some(Value::Array(choices)) = get_mut(object, "anyOf") {
        choices.iter_mut().for_each(|value| shorten(value, false, parameters));
    }
}

/// Returns true for false and for an empty text, list or object.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Null | Value::Number(_) => false,
    }
}

fn generate<T: JsonSchema>(generator: SchemaGenerator, constraints: bool) -> JsonSchemaObject {
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    let definitions = schema.as_object_mut().and_then(|object| object.remove("$defs")).unwrap_or(Value::Null);
    inline(&mut schema, &definitions, 0);
    compact(&mut schema, constraints, true);
    match schema {
        Value::Object(mut object) => {
            object.entry("type").or_insert_with(|| "object".into());
            object
        }
        _ => Map::from_iter([("type".to_owned(), "object".into())]),
    }
}

/// The depth at which a type that contains itself stops being spelt out. No other type here is as deep.
const MAX_DEPTH: usize = 8;

/// Replaces each reference by the definition that it names.
fn inline(schema: &mut Value, definitions: &Value, depth: usize) {
    match schema {
        Value::Object(object) => {
            if let Some(reference) = get(object, "$ref").and_then(Value::as_str) {
                let name = reference.trim_start_matches("#/$defs/").to_owned();
                let target = if depth < MAX_DEPTH { definitions.get(&name).cloned() } else { None };
                object.remove("$ref");
                if let Some(Value::Object(target)) = target {
                    for (key, value) in target {
                        object.entry(key).or_insert(value);
                    }
                }
                inline(schema, definitions, depth + 1);
            } else {
                object.values_mut().for_each(|value| inline(value, definitions, depth));
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| inline(value, definitions, depth)),
        _ => {}
    }
}

fn compact(schema: &mut Value, constraints: bool, root: bool) {
    let Value::Object(object) = schema else { return };
    if get(object, "format").and_then(Value::as_str) == Some("uint32") {
        object.entry("maximum").or_insert_with(|| u32::MAX.into());
    }
    for key in ["$schema", "title", "format"] {
        remove(object, key);
    }
    if let Some(Value::String(text)) = get_mut(object, "description") {
        // A line of a comment ends where it is full, which means nothing to a reader of the schema.
        *text = text.replace('\n', " ");
    }
    if root {
        remove(object, "description");
    }
    if get(object, "default") == Some(&Value::Null) {
        remove(object, "default");
    }
    drop_null(object);
    flatten_enum(object);
    for key in ["properties", "patternProperties"] {
        if let Some(Value::Object(properties)) = get_mut(object, key) {
            properties.values_mut().for_each(|value| compact(value, constraints, false));
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(value) = get_mut(object, key) {
            compact(value, constraints, false);
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(values)) = get_mut(object, key) {
            values.iter_mut().for_each(|value| compact(value, constraints, false));
        }
    }
    if !constraints {
        // The list says what an answer has, for those who look for it. `tests/contract` checks the rest.
        for key in ["additionalProperties", "minimum", "maximum", "required", "enum", "items"] {
            remove(object, key);
        }
    }
}

/// Removes `null` from `["string", "null"]` and `anyOf: [X, null]`, which mean an optional member: a client leaves it out.
/// Some clients cannot read type unions at all.
fn drop_null(object: &mut JsonSchemaObject) {
    if let Some(Value::Array(types)) = get_mut(object, "type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = get_mut(object, "anyOf") {
        values.retain(|value| value.get("type").and_then(Value::as_str) != Some("null"));
        if let [Value::Object(only)] = values.as_slice() {
            let only = only.clone();
            remove(object, "anyOf");
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
}

/// Turns `oneOf: [{const: a}, {const: b}]`, which schemars makes of documented variants, into `enum: [a, b]`.
fn flatten_enum(object: &mut JsonSchemaObject) {
    let Some(Value::Array(values)) = get(object, "oneOf") else { return };
    let constants: Option<Vec<Value>> = values
        .iter()
        .map(|value| {
            value.get("const").cloned().or_else(|| match value.get("enum") {
                Some(Value::Array(one)) if one.len() == 1 => one.first().cloned(),
                _ => None,
            })
        })
        .collect();
    if let Some(constants) = constants {
        remove(object, "oneOf");
        object.insert("type".to_owned(), "string".into());
        object.insert("enum".to_owned(), constants.into());
    }
}

// Every start of a server asks a schema's objects for many members that they do not have. They have few: comparing
// the names takes a fifth of the time of hashing each.

fn get<'a>(object: &'a JsonSchemaObject, key: &str) -> Option<&'a Value> {
    object.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
}

fn get_mut<'a>(object: &'a mut JsonSchemaObject, key: &str) -> Option<&'a mut Value> {
    object.iter_mut().find(|(name, _)| *name == key).map(|(_, value)| value)
}

fn remove(object: &mut JsonSchemaObject, key: &str) {
    if get(object, key).is_some() {
        object.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum WriteMode {
        /// Replace what is there.
        Overwrite,
        /// Fail if something is there.
        Create,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct NestedInput {
        name: String,
    }

    /// Not for clients.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct SampleInput {
        /// Where.
        path: String,
        /// How many lines.
        #[schemars(range(min = 1, max = 10))]
        limit: Option<u32>,
        mode: Option<WriteMode>,
        inner: Vec<NestedInput>,
    }

    #[test]
    fn what_is_listed_is_what_a_writer_of_arguments_needs() {
        insta::assert_json_snapshot!(listed(&input::<SampleInput>()), @r#"
        {
          "type": "object",
          "required": [
            "path",
            "inner"
          ],
          "properties": {
            "path": {
              "type": "string",
              "description": "Where."
            },
            "limit": {
              "type": "integer",
              "maximum": 10,
              "description": "How many lines."
            },
            "mode": {
              "type": "string",
              "enum": [
                "overwrite",
                "create"
              ]
            },
            "inner": {
              "type": "array",
              "items": {
                "type": "object",
                "required": [
                  "name"
                ],
                "properties": {
                  "name": {
                    "type": "string"
                  }
                }
              }
            }
          }
        }
        "#);
    }

    #[test]
    fn what_is_checked_knows_which_members_there_are() {
        assert_eq!(input::<SampleInput>()["additionalProperties"], false);
    }

    #[test]
    fn an_answer_is_listed_with_names_types_and_descriptions() {
        insta::assert_json_snapshot!(output::<SampleInput>(), @r#"
        {
          "type": "object",
          "properties": {
            "path": {
              "type": "string",
              "description": "Where."
            },
            "limit": {
              "type": "integer",
              "description": "How many lines."
            },
            "mode": {
              "type": "string"
            },
            "inner": {
              "type": "array"
            }
          }
        }
        "#);
    }
}
