//! The reading of one path: follows it, and copies the value within the bounds of an answer.

use super::locals;
use super::reader::{
    ObjectMembers, PropertyContent, PropertyLookup, RemoteObject, RemoteObjectRead, RemoteReader,
};
use crate::inspect::Error;
use crate::inspect::mask::{MASK, is_secret};
use crate::inspect::path::join;
use crate::inspect::provider::StateRequest;
use crate::inspect::state_value::{PathNotFound, ProviderError, StateValue};
use crate::inspect::tree::{MAX_KEY_CHARS, MAX_KEYS, MAX_LEAF_CHARS, MAX_TEXT_CHARS, ValueTree, mark};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The number of objects that are read concurrently.
const CONCURRENT_READS: usize = 32;
/// The time limit for opening objects. A busy process needs milliseconds for each answer.
const READ_TIMEOUT: Duration = Duration::from_secs(8);
/// The note for a value that cannot be described.
const TRAP_NOTE: &str = "to look at it would run the application's code";
/// The most prototypes that a name is looked up in.
const MAX_PROTOTYPES: usize = 64;

/// Returns the value under the path of `request` in the process of `reader`.
pub(super) async fn read(
    reader: &RemoteReader,
    request: &StateRequest<'_>,
) -> Result<StateValue, ProviderError> {
    let _reading = reader.reading.lock().await;
    let path = request.path();
    let root = match &path.file {
        Some(file) => locals::find_scope(reader, file, path).await.map(|scope| (scope, 0)),
        None => Ok(match (&reader.process, path.segments.first()) {
            (Some(process), Some(first)) if first == "process" => (process.clone(), 1),
            _ => (reader.global.clone(), 0),
        }),
    };
    let result = match root {
        Ok((root, skip)) => read_from(reader, request, &root, skip).await,
        Err(error) => Err(error),
    };
    // A plain value that was read in one call holds no handles, and needs no second call to release them.
    if !matches!(&result, Ok(ReadRemoteValue { holds_handles: false, .. })) && reader.is_open() {
        reader.release().await;
    }
    result.map(|reading| reading.value)
}

/// A value that was read.
struct ReadRemoteValue {
    value: StateValue,
    /// The process holds handles for us, which must be released.
    holds_handles: bool,
}

/// Follows the path from the object `root`; its first `skip` names are followed already.
async fn read_from(
    reader: &RemoteReader,
    request: &StateRequest<'_>,
    root: &str,
    skip: usize,
) -> Result<ReadRemoteValue, ProviderError> {
    let path = request.path();
    let keys: Vec<_> = (skip..path.segments.len()).map(|index| path.key(index)).collect();
    let found = reader.find(root, &keys, MAX_LEAF_CHARS).await?;
    let is_found_directly = found.is_some();
    let content = match found {
        Some(value) => PropertyContent::Value(value),
        None => step_by_step(reader, request, root, skip).await?,
    };
    let holds_handles = !is_found_directly
        || matches!(&content, PropertyContent::Value(remote) if remote.object_id.is_some());
    let mut walk = RemoteValueCopy {
        reader,
        max_depth: request.depth(),
        tree: ValueTree::default(),
        seen_paths: Vec::new(),
    };
    let node = walk.tree.add_node();
    let root = ValueTreeDestination {
        node,
        depth: 0,
        is_secret: request.is_beneath_secret(),
        path: path.to_string(),
    };
    walk.run(content, root).await?;
    let value = StateValue::from_tree(reader.source.clone(), walk.tree, node);
    Ok(ReadRemoteValue { value, holds_handles })
}

/// Follows the path name by name, for a path on which something is out of the ordinary: to read it nevertheless, or to say
/// how far it led.
async fn step_by_step(
    reader: &RemoteReader,
    request: &StateRequest<'_>,
    root: &str,
    skip: usize,
) -> Result<PropertyContent, ProviderError> {
    let path = request.path();
    let global = RemoteObject {
        kind: "object".to_owned(),
        object_id: Some(root.to_owned()),
        ..RemoteObject::default()
    };
    let mut current = PropertyContent::Value(global);
    for (index, name) in path.segments.iter().enumerate().skip(skip) {
        let mut note = None;
        let object = match current {
            PropertyContent::Value(object) if object.is("proxy") => {
                note = Some("it is a proxy, which is not looked into: that would run the application's code");
                None
            }
            PropertyContent::Value(object) => object.object_id.is_some().then_some(object),
            PropertyContent::Trap => {
                note = Some(TRAP_NOTE);
                None
            }
            PropertyContent::Getter | PropertyContent::Setter => {
                note = Some("it is a getter, which is not run");
                None
            }
        };
        let next = match &object {
            Some(object) => match look_up(reader, object, &path.key(index)).await? {
                // The engine's own getter, whose value is known without running it.
                Some(PropertyContent::Getter) if name == "size" && (object.is("map") || object.is("set")) => {
                    Some(number(object.length()))
                }
                found => found,
            },
            None => None,
        };
        if next.is_none() && note.is_none() && name.starts_with('#') {
            note = Some("it would be a private field, which nothing but the code of its class reads");
        }
        current = match next {
            Some(next) => next,
            None => {
                let (keys, total) = match &object {
                    Some(object) => first_keys(reader, object).await?,
                    None => (Vec::new(), 0),
                };
                return Err(ProviderError::PathNotFound(Box::new(PathNotFound {
                    source: reader.source.clone(),
                    resolved: path.prefix(index),
                    failed_at: name.clone(),
                    keys,
                    total,
                    note: note.map(str::to_owned),
                })));
            }
        };
    }
    Ok(current)
}

/// Looks up `name` in an object and its prototypes.
async fn look_up(
    reader: &RemoteReader,
    object: &RemoteObject,
    name: &Value,
) -> Result<Option<PropertyContent>, Error> {
    let mut id = object.object_id.clone().unwrap_or_default();
    for _ in 0..MAX_PROTOTYPES {
        match reader.look_up(&id, name, MAX_LEAF_CHARS).await? {
            PropertyLookup::Own(content) => return Ok(Some(content)),
            PropertyLookup::Inherited(prototype) if !prototype.is("proxy") => {
                id = prototype.object_id.unwrap_or_default();
            }
            PropertyLookup::Inherited(_) | PropertyLookup::Missing => return Ok(None),
        }
    }
    Ok(None)
}

/// Returns the first names of an object, or the range of its indexes, and the number of all.
async fn first_keys(reader: &RemoteReader, object: &RemoteObject) -> Result<(Vec<String>, u64), Error> {
    if object.is("array") || object.is("typedarray") || object.is("set") {
        return Ok((vec![format!("0 to {}", object.length().saturating_sub(1))], object.length()));
    }
    match reader.read_members(object, MAX_KEYS, MAX_KEY_CHARS, true).await? {
        RemoteObjectRead::ObjectMembers(members) => {
            let keys = members.members.iter().map(|(key, _)| key_name(key)).collect();
            Ok((keys, whole_number(members.total)))
        }
        RemoteObjectRead::Seen(_) => Ok((Vec::new(), 0)),
    }
}

/// Returns a number of the process as a value of it.
fn number(number: u64) -> PropertyContent {
    PropertyContent::Value(RemoteObject {
        kind: "number".to_owned(),
        value: Some(number.into()),
        ..RemoteObject::default()
    })
}

/// Converts a count that the process tells, which may be anything if the process is not honest.
fn whole_number(count: f64) -> u64 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count, and none below zero"
    )]
    if count.is_finite() && count > 0.0 { count as u64 } else { 0 }
}

/// Returns a key as text: a string as it is, anything else as it is described.
fn key_name(key: &RemoteObject) -> String {
    let text = match (&key.value, &key.description) {
        (Some(Value::String(text)), _) => text.clone(),
        (Some(value), _) => value.to_string(),
        (None, Some(description)) => format!("[{description}]"),
        (None, None) => key.unserializable_value.clone().unwrap_or_else(|| key.kind.clone()),
    };
    text.chars().take(MAX_TEXT_CHARS).collect()
}

/// The node of the answer that a value belongs into.
struct ValueTreeDestination {
    node: usize,
    depth: u32,
    /// The value is masked.
    is_secret: bool,
    /// The path of the value, for `$ref` marks that lead to it.
    path: String,
}

/// The copying of a value, breadth first.
struct RemoteValueCopy<'a> {
    reader: &'a RemoteReader,
    max_depth: u32,
    tree: ValueTree,
    /// The paths of the objects that were opened, in the order in which `reader.js` numbers them.
    seen_paths: Vec<String>,
}

impl RemoteValueCopy<'_> {
    /// Copies `content` and everything in it, level by level.
    async fn run(&mut self, content: PropertyContent, root: ValueTreeDestination) -> Result<(), Error> {
        let started = Instant::now();
        let mut level: Vec<(RemoteObject, ValueTreeDestination)> = Vec::new();
        self.put(content, root, &mut level);
        let mut is_first = true;
        while !level.is_empty() {
            let mut next = Vec::new();
            let mut objects = level.into_iter();
            loop {
                let mut batch: Vec<(RemoteObject, ValueTreeDestination)> =
                    objects.by_ref().take(CONCURRENT_READS).collect();
                if batch.is_empty() {
                    break;
                }
                if self.tree.is_full() || started.elapsed() > READ_TIMEOUT {
                    for (object, destination) in batch {
                        self.tree.truncation.full += 1;
                        self.tree.set_mark(destination.node, "cut", title(&object));
                    }
                    continue;
                }
                // The first object of a reading alone: its call resets the numbering of `reader.js`.
                let rest = if is_first && batch.len() > 1 { batch.split_off(1) } else { Vec::new() };
                for batch in [batch, rest] {
                    let calls = batch.iter().map(|(object, _)| {
                        self.reader.read_members(object, MAX_KEYS, MAX_TEXT_CHARS, is_first)
                    });
                    let results = futures_util::future::join_all(calls).await;
                    for ((object, destination), result) in batch.into_iter().zip(results) {
                        match result? {
                            RemoteObjectRead::ObjectMembers(members) => {
                                self.seen_paths.push(destination.path.clone());
                                self.open(&object, members, destination, &mut next);
                            }
                            RemoteObjectRead::Seen(index) => {
                                let path = self.seen_paths.get(index).cloned().unwrap_or_default();
                                self.tree.set_mark(destination.node, "ref", path);
                            }
                        }
                    }
                    is_first = false;
                }
            }
            level = next;
        }
        Ok(())
    }

    /// Writes a plain value to its node; adds an object to those that are opened next.
    fn put(
        &mut self,
        content: PropertyContent,
        destination: ValueTreeDestination,
        next: &mut Vec<(RemoteObject, ValueTreeDestination)>,
    ) {
        let node = destination.node;
        let remote = match content {
            PropertyContent::Getter => return self.tree.set_mark(node, "getter", true),
            PropertyContent::Setter => return self.tree.set_mark(node, "setter", true),
            PropertyContent::Trap => return self.tree.set_mark(node, "unread", TRAP_NOTE),
            PropertyContent::Value(remote) => remote,
        };
        let description = || remote.description.clone().unwrap_or_default();
        match (remote.kind.as_str(), remote.subtype.as_deref()) {
            ("string" | "number" | "bigint", _) if destination.is_secret => {
                self.tree.masked += 1;
                self.tree.set(node, MASK.into());
            }
            ("string", _) => {
                let text = remote.value.as_ref().and_then(Value::as_str).unwrap_or_default();
                let max_chars = if destination.depth == 0 { MAX_LEAF_CHARS } else { MAX_TEXT_CHARS };
                let text = self.cut(text, max_chars);
                self.tree.set(node, text.into());
            }
            ("number", _) => match remote.unserializable_value {
                Some(number) => self.tree.set_mark(node, "number", number),
                None => self.tree.set(node, remote.value.unwrap_or_default()),
            },
            ("boolean", _) | ("object", Some("null")) => {
                self.tree.set(node, remote.value.unwrap_or_default());
            }
            ("undefined", _) => self.tree.set_mark(node, "undefined", true),
            ("bigint", _) => {
                let digits = remote.unserializable_value.unwrap_or_default();
                self.tree.set_mark(node, "bigint", digits.trim_end_matches('n'));
            }
            ("symbol", _) => self.tree.set_mark(node, "symbol", description()),
            // The function that the path names is opened to see if it has properties; another one is known to.
            ("function", _) if destination.depth == 0 => next.push((remote, destination)),
            ("function", _) if remote.has_members && destination.depth < self.max_depth => {
                next.push((remote, destination));
            }
            ("function", _) => {
                self.tree.truncation.depth += u64::from(remote.has_members);
                self.tree.set_mark(node, "function", first_line(&remote));
            }
            (_, Some("proxy")) => self.tree.set_mark(node, "proxy", description()),
            (_, Some("regexp")) => {
                let text = self.tree.shorten(&description(), MAX_TEXT_CHARS);
                self.tree.set_mark(node, "regexp", text);
            }
            // Opened at any depth: its only content is a number.
            (_, Some("date")) => next.push((remote, destination)),
            _ if destination.depth >= self.max_depth => {
                self.tree.truncation.depth += 1;
                self.tree.set_mark(node, "cut", title(&remote));
            }
            _ => next.push((remote, destination)),
        }
    }

    /// Adds the members of an object to its node.
    fn open(
        &mut self,
        object: &RemoteObject,
        members: ObjectMembers,
        destination: ValueTreeDestination,
        next: &mut Vec<(RemoteObject, ValueTreeDestination)>,
    ) {
        let ValueTreeDestination { node, depth, is_secret: is_container_secret, path } = destination;
        let class = object.class_name.as_deref().unwrap_or("Object");
        let ObjectMembers { total, members, properties, omitted_properties, getters, private_fields } =
            members;
        let mut omitted = whole_number(total).saturating_sub(MAX_KEYS as u64);
        let child = |node, name: &str, is_secret| ValueTreeDestination {
            node,
            depth: depth + 1,
            is_secret,
            path: join(&path, name),
        };
        match object.subtype.as_deref() {
            Some("date") => return self.tree.set(node, date(total)),
            Some("array") => {
                self.tree.make_list(node);
                let mut next_index = 0;
                for (key, content) in members {
                    if !self.has_room(&mut omitted) {
                        continue;
                    }
                    let index = key.value.as_ref().and_then(Value::as_u64).unwrap_or(next_index);
                    if index > next_index {
                        let gap = self.tree.push_element(node);
                        self.tree.set_mark(gap, "empty", index - next_index);
                    }
                    next_index = index + 1;
                    let element = self.tree.push_element(node);
                    self.put(content, child(element, &index.to_string(), is_container_secret), next);
                }
                if omitted > 0 {
                    let element = self.tree.push_element(node);
                    self.tree.set_mark(element, "more", omitted);
                    self.tree.truncation.keys += omitted;
                }
                if !properties.is_empty() {
                    let element = self.tree.push_element(node);
                    self.tree.make_object(element);
                    let beside = self.tree.push_mark(element, "properties");
                    self.tree.make_object(beside);
                    let child = |node, name: &str| child(node, name, is_container_secret || is_secret(name));
                    self.put_members(beside, properties, omitted_properties, child, next);
                }
                return;
            }
            _ => self.tree.make_object(node),
        }
        let list = |walk: &mut Self, name: &str| {
            let list = match name.strip_prefix('$') {
                Some(mark) => walk.tree.push_mark(node, mark),
                None => walk.tree.push_member(node, name),
            };
            walk.tree.make_list(list);
            list
        };
        match object.subtype.as_deref() {
            Some("map") => {
                let pairs = list(self, "$map");
                for (key, content) in members {
                    if !self.has_room(&mut omitted) {
                        continue;
                    }
                    let text = key_name(&key);
                    let pair = self.tree.push_element(pairs);
                    self.tree.make_list(pair);
                    let (left, right) = (self.tree.push_element(pair), self.tree.push_element(pair));
                    // A key that is an object is opened like any value.
                    self.put(PropertyContent::Value(key), child(left, "(key)", false), next);
                    let is_secret_member = is_container_secret || is_secret(&text);
                    self.put(content, child(right, &text, is_secret_member), next);
                }
            }
            Some(subtype @ ("set" | "typedarray")) => {
                let values = if subtype == "set" {
                    list(self, "$set")
                } else {
                    let class_node = self.tree.push_mark(node, "type");
                    self.tree.set(class_node, class.into());
                    list(self, "values")
                };
                for (index, (_, content)) in members.into_iter().enumerate() {
                    if !self.has_room(&mut omitted) {
                        continue;
                    }
                    let element = self.tree.push_element(values);
                    self.put(content, child(element, &index.to_string(), is_container_secret), next);
                }
            }
            subtype => {
                if object.kind == "function" {
                    let line = first_line(object);
                    if members.is_empty() {
                        return self.tree.set_mark(node, "function", line);
                    }
                    let function = self.tree.push_mark(node, "function");
                    self.tree.set(function, line.into());
                } else if subtype == Some("error") {
                    let described = object.description.clone().unwrap_or_default();
                    let text = self.tree.shorten(&described, MAX_TEXT_CHARS);
                    let error = self.tree.push_mark(node, "error");
                    self.tree.set(error, text.into());
                } else if class != "Object" || subtype.is_some() {
                    let class_node = self.tree.push_mark(node, "type");
                    self.tree.set(class_node, class.into());
                }
                let child = |node, name: &str| child(node, name, is_container_secret || is_secret(name));
                let mut members = members;
                // The value that `reader.js` took out of a `Number` or `Boolean` object comes first.
                let is_unboxed = matches!(class, "Number" | "Boolean")
                    && members.first().is_some_and(|(key, _)| key_name(key) == "$value");
                if is_unboxed {
                    let (_, content) = members.remove(0);
                    let value = self.tree.push_mark(node, "value");
                    self.put(content, child(value, "$value"), next);
                }
                self.put_members(node, members, omitted, child, next);
                for (mark, names) in [("getters", getters), ("private", private_fields)] {
                    if let Some(names) = names {
                        let names = self.cut(&names, MAX_TEXT_CHARS);
                        let mark = self.tree.push_mark(node, mark);
                        self.tree.set(mark, names.into());
                    }
                }
                return;
            }
        }
        let child = |node, name: &str| child(node, name, is_container_secret || is_secret(name));
        self.put_members(node, properties, omitted + omitted_properties, child, next);
    }

    /// Adds named members to an object, and the number of those that are left out.
    fn put_members(
        &mut self,
        node: usize,
        members: Vec<(RemoteObject, PropertyContent)>,
        mut omitted: u64,
        child: impl Fn(usize, &str) -> ValueTreeDestination,
        next: &mut Vec<(RemoteObject, ValueTreeDestination)>,
    ) {
        for (key, content) in members {
            if !self.has_room(&mut omitted) {
                continue;
            }
            let name = key_name(&key);
            let member = self.tree.push_member(node, &name);
            self.put(content, child(member, &name), next);
        }
        if omitted > 0 {
            let node = self.tree.push_mark(node, "more");
            self.tree.set(node, omitted.into());
            self.tree.truncation.keys += omitted;
        }
    }

    /// Returns true if the answer has room for another value. If not, the value is counted, in `omitted` as well.
    fn has_room(&mut self, omitted: &mut u64) -> bool {
        let is_full = self.tree.is_full();
        if is_full {
            *omitted += 1;
            self.tree.truncation.full += 1;
        }
        !is_full
    }

    /// Converts a text of `reader.js`. One that was cut there is longer than `max_chars`, in UTF-16 units, and the rest is
    /// the number of units that it had.
    fn cut(&mut self, text: &str, max_chars: usize) -> String {
        let mut units = 0;
        let end = text.char_indices().find(|(_, c)| {
            let is_end = units >= max_chars;
            units += c.len_utf16();
            is_end
        });
        match end {
            None => text.to_owned(),
            Some((end, _)) => {
                let (start, length) = text.split_at(end);
                let length =
                    length.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(max_chars);
                self.tree.shortened(start, length)
            }
        }
    }
}

/// Returns the first line of a function's text.
fn first_line(function: &RemoteObject) -> String {
    let described = function.description.as_deref().unwrap_or_default();
    described.lines().next().unwrap_or_default().chars().take(100).collect()
}

/// Returns the name of an object that is not opened: its class and size.
fn title(object: &RemoteObject) -> String {
    let described = object.description.as_deref().unwrap_or("Object");
    described.lines().next().unwrap_or_default().chars().take(200).collect()
}

/// Returns the mark `{"$date": …}` for milliseconds since 1970.
fn date(milliseconds: f64) -> Value {
    // The range of a Date in JavaScript.
    if milliseconds.is_nan() || milliseconds.abs() > 8.64e15 {
        return json!({"$date": "Invalid Date"});
    }
    #[allow(clippy::cast_possible_truncation, reason = "it is a whole number in the range")]
    let milliseconds = milliseconds as i64;
    match Timestamp::from_millisecond(milliseconds) {
        Ok(timestamp) => mark("date", format!("{timestamp:.3}")),
        // JavaScript's years go beyond 9999, RFC 3339's do not.
        Err(_) => mark("date", format!("{milliseconds} ms since 1970")),
    }
}
