//! The value of an answer while it is built, and its bounds.

use serde::Serialize;
use serde_json::{Map, Value};

/// The largest depth that may be requested.
pub(super) const MAX_DEPTH: u32 = 10;
/// The depth of a request that names none.
pub(super) const DEFAULT_DEPTH: u32 = 3;
/// The most members of one object, and elements of one list.
pub(super) const MAX_KEYS: usize = 50;
/// The most values in one answer.
const MAX_NODES: usize = 5000;
/// The approximate limit of the values of one answer, in bytes of JSON.
const MAX_BYTES: usize = 40_000;
/// The longest text, in characters.
pub(super) const MAX_TEXT_CHARS: usize = 2000;
/// The longest text, in characters, if the path names it itself.
pub(super) const MAX_LEAF_CHARS: usize = 20_000;
/// The longest name, in characters, in the list of the names that exist.
pub(super) const MAX_KEY_CHARS: usize = 200;

/// Counts of the parts that were left out.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct ValueTruncationCounts {
    /// Objects whose members are not shown.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) depth: u64,
    /// Members and elements beyond the first 50.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) keys: u64,
    /// Texts that were shortened.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) strings: u64,
    /// Objects that were not opened because the answer was full, or took too long.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) full: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl ValueTruncationCounts {
    pub(super) fn is_empty(&self) -> bool {
        self.depth + self.keys + self.strings + self.full == 0
    }
}

/// A node. Children are indexes.
#[derive(Debug)]
enum TreeNode {
    Leaf(Value),
    List(Vec<usize>),
    Members(Vec<(String, usize)>),
}

/// A value under construction. A node is named by its index, so that parents can be made before their children; one that
/// is never set is null.
#[derive(Debug, Default)]
pub(super) struct ValueTree {
    nodes: Vec<TreeNode>,
    bytes: usize,
    pub(super) truncation: ValueTruncationCounts,
    /// Values that were masked.
    pub(super) masked: u64,
}

impl ValueTree {
    /// Adds a node that is not part of another yet, and returns its index.
    pub(super) fn add_node(&mut self) -> usize {
        self.nodes.push(TreeNode::Leaf(Value::Null));
        self.nodes.len() - 1
    }

    /// Sets a node to a complete value.
    pub(super) fn set(&mut self, index: usize, value: Value) {
        self.bytes += match &value {
            Value::String(text) => text.len() + 2,
            Value::Object(members) => {
                members.iter().map(|(key, value)| key.len() + value.to_string().len() + 5).sum()
            }
            // Numbers, booleans and null: an estimate, as the limit is approximate.
            _ => 6,
        };
        self.replace(index, TreeNode::Leaf(value));
    }

    /// Sets a node to the mark `{"$name": value}`.
    pub(super) fn set_mark(&mut self, index: usize, name: &str, value: impl Into<Value>) {
        self.set(index, mark(name, value));
    }

    /// Makes a node an empty list.
    pub(super) fn make_list(&mut self, index: usize) {
        self.replace(index, TreeNode::List(Vec::new()));
    }

    /// Makes a node an empty object.
    pub(super) fn make_object(&mut self, index: usize) {
        self.replace(index, TreeNode::Members(Vec::new()));
    }

    /// Adds a node to the end of a list, and returns its index.
    pub(super) fn push_element(&mut self, list: usize) -> usize {
        let node = self.add_node();
        if let Some(TreeNode::List(nodes)) = self.nodes.get_mut(list) {
            nodes.push(node);
        }
        self.bytes += 1;
        node
    }

    /// Adds a node as a member of an object of the application, and returns its index. A name that would read as a mark
    /// gets one more `$`.
    pub(super) fn push_member(&mut self, object: usize, name: &str) -> usize {
        if is_mark_name(name) {
            return self.push_named(object, &format!("${name}"));
        }
        self.push_named(object, name)
    }

    /// Adds a node as the mark `$name` of an object, and returns its index.
    pub(super) fn push_mark(&mut self, object: usize, name: &str) -> usize {
        self.push_named(object, &format!("${name}"))
    }

    /// Adds a node under `name`. If the name is taken, a prime is added: in JavaScript a symbol and a string may read the
    /// same.
    fn push_named(&mut self, object: usize, name: &str) -> usize {
        let node = self.add_node();
        self.bytes += name.len() + 4;
        if let Some(TreeNode::Members(members)) = self.nodes.get_mut(object) {
            let mut name = name.to_owned();
            // An object has at most 50 members here, so that a search is faster than a set of names.
            while members.iter().any(|(known, _)| *known == name) {
                name.push('\'');
            }
            members.push((name, node));
        }
        node
    }

    /// Returns true once nothing more should be added.
    pub(super) fn is_full(&self) -> bool {
        self.nodes.len() >= MAX_NODES || self.bytes >= MAX_BYTES
    }

    /// Returns `text`, shortened if it is longer than `max_chars`, and counts that.
    pub(super) fn shorten(&mut self, text: &str, max_chars: usize) -> String {
        match text.char_indices().nth(max_chars) {
            None => text.to_owned(),
            Some((end, _)) => {
                let total_chars = text.chars().count();
                self.shortened(text.get(..end).unwrap_or_default(), total_chars)
            }
        }
    }

    /// Returns `start` with the note that the text has `total_chars` characters, and counts that.
    pub(super) fn shortened(&mut self, start: &str, total_chars: usize) -> String {
        self.truncation.strings += 1;
        format!("{start}… ({total_chars} characters)")
    }

    fn replace(&mut self, index: usize, node: TreeNode) {
        if let Some(slot) = self.nodes.get_mut(index) {
            *slot = node;
        }
    }

    /// Takes the value of a node out of the tree, with everything in it.
    pub(super) fn take_value(&mut self, index: usize) -> Value {
        match self.nodes.get_mut(index).map(|node| std::mem::replace(node, TreeNode::Leaf(Value::Null))) {
            None => Value::Null,
            Some(TreeNode::Leaf(value)) => value,
            Some(TreeNode::List(nodes)) => nodes.into_iter().map(|node| self.take_value(node)).collect(),
            Some(TreeNode::Members(members)) => {
                let members = members.into_iter().map(|(name, node)| (name, self.take_value(node)));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }
}

/// The names of marks, without their `$`.
const MARK_NAMES: [&str; 23] = [
    "bigint",
    "cut",
    "date",
    "empty",
    "error",
    "function",
    "getter",
    "getters",
    "map",
    "more",
    "number",
    "private",
    "properties",
    "proxy",
    "ref",
    "regexp",
    "set",
    "setter",
    "symbol",
    "type",
    "undefined",
    "unread",
    "value",
];

/// Returns whether `name` is that of a mark, or one to which a `$` was added.
fn is_mark_name(name: &str) -> bool {
    name.starts_with('$') && MARK_NAMES.contains(&name.trim_start_matches('$'))
}

/// Returns `{"$name": value}`, for a value that JSON has no form for.
pub(super) fn mark(name: &str, value: impl Into<Value>) -> Value {
    Value::Object(Map::from_iter([(format!("${name}"), value.into())]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_member_of_the_application_does_not_read_as_a_mark() {
        let mut tree = ValueTree::default();
        let object = tree.add_node();
        tree.make_object(object);
        let class = tree.push_mark(object, "type");
        tree.set(class, "Order".into());
        for name in ["$type", "$$type", "$typed", "type"] {
            let member = tree.push_member(object, name);
            tree.set(member, name.into());
        }
        let expected = json!({
            "$type": "Order", "$$type": "$type", "$$$type": "$$type", "$typed": "$typed", "type": "type"
        });
        assert_eq!(tree.take_value(object), expected);
    }
}
