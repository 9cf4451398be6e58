//! The value under a path in a JSON document, within the bounds of an answer.

use super::mask::{MASK, is_secret};
use super::path::StatePath;
use super::state_value::{PathNotFound, ProviderError, StateValue};
use super::tree::{MAX_KEY_CHARS, MAX_KEYS, MAX_LEAF_CHARS, MAX_TEXT_CHARS, ValueTree};
use serde_json::Value;
use std::collections::VecDeque;

/// The bounds of an outline that depend on the request.
pub(super) struct OutlineOptions {
    /// The depth to which arrays and objects are opened.
    pub(super) max_depth: u32,
    /// The path leads through a secret-like name, so that every value is masked.
    pub(super) is_beneath_secret: bool,
}

/// The beginning of the name of a mark in a document that we have made ourselves. No name of a program begins with it.
const OWN_MARK: &str = "\0$";

/// Returns a mark for a document: `{"$name": value}` in the answer.
pub(super) fn own_mark(name: &str, value: &str) -> Value {
    Value::Object([(format!("{OWN_MARK}{name}"), value.into())].into_iter().collect())
}

/// Returns the value under `path` in `document`.
pub(super) fn find(
    path: &StatePath,
    source: String,
    document: &Value,
    options: &OutlineOptions,
) -> Result<StateValue, ProviderError> {
    let mut value = document;
    for (index, name) in path.segments.iter().enumerate() {
        let next = match value {
            Value::Object(members) => members.get(name),
            Value::Array(elements) => name.parse().ok().and_then(|index: usize| elements.get(index)),
            _ => None,
        };
        value = match next {
            Some(next) => next,
            None => return Err(ProviderError::PathNotFound(Box::new(not_found(path, index, source, value)))),
        };
    }
    Ok(outline(source, value, options))
}

/// Describes the failure to find segment `index` of `path` in `value`.
fn not_found(path: &StatePath, index: usize, source: String, value: &Value) -> PathNotFound {
    let (keys, total) = match value {
        Value::Object(members) => {
            let keys = members.keys().take(MAX_KEYS).map(|key| key.chars().take(MAX_KEY_CHARS).collect());
            (keys.collect(), members.len() as u64)
        }
        Value::Array(elements) => {
            (vec![format!("0 to {}", elements.len().saturating_sub(1))], elements.len() as u64)
        }
        _ => (Vec::new(), 0),
    };
    let failed_at = path.segments.get(index).cloned().unwrap_or_default();
    PathNotFound { source, resolved: path.prefix(index), failed_at, keys, total, note: None }
}

/// Copies `root` breadth first, within the bounds of an answer. Breadth first, so that an answer that gets full has all
/// of the upper levels and not all of the first branch.
fn outline(source: String, root: &Value, options: &OutlineOptions) -> StateValue {
    let mut outline =
        OutlineBuilder { tree: ValueTree::default(), max_depth: options.max_depth, queue: VecDeque::new() };
    let root_node = outline.tree.add_node();
    outline.add(PendingOutlineValue {
        value: root,
        node: root_node,
        depth: 0,
        is_secret: options.is_beneath_secret,
    });
    while let Some(container) = outline.queue.pop_front() {
        outline.open(container);
    }
    StateValue::from_tree(source, outline.tree, root_node)
}

/// A value, and the node of the tree that it belongs into.
#[derive(Clone, Copy)]
struct PendingOutlineValue<'a> {
    value: &'a Value,
    node: usize,
    depth: u32,
    is_secret: bool,
}

impl<'a> PendingOutlineValue<'a> {
    fn child(self, value: &'a Value, node: usize, is_secret: bool) -> Self {
        // What lies beneath a secret name is secret as well, whatever its own name is.
        Self { value, node, depth: self.depth + 1, is_secret: self.is_secret || is_secret }
    }
}

struct OutlineBuilder<'a> {
    tree: ValueTree,
    max_depth: u32,
    /// The arrays and objects that are still to be opened.
    queue: VecDeque<PendingOutlineValue<'a>>,
}

impl<'a> OutlineBuilder<'a> {
    /// Writes a plain value to its node; queues an array or object.
    fn add(&mut self, pending: PendingOutlineValue<'a>) {
        let PendingOutlineValue { value, node, depth, is_secret } = pending;
        let tree = &mut self.tree;
        if let Value::Object(members) = value
            && members.len() == 1
            && let Some((mark, value)) =
                members.iter().find_map(|(name, value)| Some((name.strip_prefix(OWN_MARK)?, value)))
        {
            tree.truncation.keys += u64::from(mark == "more");
            return tree.set_mark(node, mark, value.clone());
        }
        let (class, size) = match value {
            Value::Array(elements) => ("Array", elements.len()),
            Value::Object(members) => ("Object", members.len()),
            Value::String(_) | Value::Number(_) if is_secret => {
                tree.masked += 1;
                return tree.set(node, MASK.into());
            }
            Value::String(text) => {
                let text = tree.shorten(text, if depth == 0 { MAX_LEAF_CHARS } else { MAX_TEXT_CHARS });
                return tree.set(node, text.into());
            }
            plain => return tree.set(node, plain.clone()),
        };
        if size > 0 && depth >= self.max_depth {
            tree.truncation.depth += 1;
            tree.set_mark(node, "cut", format!("{class}({size})"));
        } else {
            self.queue.push_back(pending);
        }
    }

    /// Adds the members of an array or object.
    fn open(&mut self, container: PendingOutlineValue<'a>) {
        let node = container.node;
        let mut omitted = 0_u64;
        match container.value {
            Value::Array(elements) => {
                self.tree.make_list(node);
                for (index, element) in elements.iter().enumerate() {
                    if self.omits(index) {
                        omitted += 1;
                        continue;
                    }
                    let element_node = self.tree.push_element(node);
                    self.add(container.child(element, element_node, false));
                }
                if omitted > 0 {
                    let mark = self.tree.push_element(node);
                    self.tree.set_mark(mark, "more", omitted);
                }
            }
            Value::Object(members) => {
                self.tree.make_object(node);
                for (index, (name, member)) in members.iter().enumerate() {
                    if self.omits(index) {
                        omitted += 1;
                        continue;
                    }
                    if let Some(mark) = name.strip_prefix(OWN_MARK) {
                        self.tree.truncation.keys += u64::from(mark == "more");
                        let member_node = self.tree.push_mark(node, mark);
                        self.tree.set(member_node, member.clone());
                        continue;
                    }
                    let short_name: String = name.chars().take(MAX_TEXT_CHARS).collect();
                    let member_node = self.tree.push_member(node, &short_name);
                    self.add(container.child(member, member_node, is_secret(name)));
                }
                if omitted > 0 {
                    let mark = self.tree.push_mark(node, "more");
                    self.tree.set(mark, omitted.into());
                }
            }
            _ => {}
        }
    }

    /// Returns true if the member at `index` is left out, and counts it.
    fn omits(&mut self, index: usize) -> bool {
        if index >= MAX_KEYS {
            self.tree.truncation.keys += 1;
        } else if self.tree.is_full() {
            self.tree.truncation.full += 1;
        } else {
            return false;
        }
        true
    }
}
