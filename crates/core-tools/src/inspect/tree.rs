//! An answer as it grows, breadth first, within its bounds.

use serde::Serialize;
use serde_json::{Map, Value};

/// How deep a value may be asked for.
pub const MOST_DEPTH: u32 = 10;
/// How deep it is answered where nothing is said.
pub(super) const DEFAULT_DEPTH: u32 = 3;
/// Members of one object, elements of one list.
pub(super) const MOST_KEYS: usize = 50;
/// Values in one answer.
const MOST_NODES: usize = 5000;
/// About how many bytes of values one answer has.
const MOST_BYTES: usize = 40_000;
/// Characters of one text.
pub(super) const MOST_TEXT: usize = 2000;
/// Characters of a text that was asked for itself.
pub(super) const MOST_LEAF: usize = 20_000;

/// What was left out, and how often.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Cuts {
    /// Objects whose members are not shown.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) depth: u64,
    /// Members and elements beyond the first 50.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) keys: u64,
    /// Texts that were shortened.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) strings: u64,
    /// Objects left as they are because the answer was full, or took too long.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) full: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Cuts {
    pub(super) fn is_empty(&self) -> bool {
        self.depth + self.keys + self.strings + self.full == 0
    }
}

#[derive(Debug)]
enum Node {
    Leaf(Value),
    List(Vec<usize>),
    Members(Vec<(String, usize)>),
}

/// Values by number. What is not filled is null.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    bytes: usize,
    pub(super) cuts: Cuts,
    /// Values that were masked.
    pub(super) masked: u64,
}

impl Tree {
    /// A place for a value.
    pub(super) fn place(&mut self) -> usize {
        self.nodes.push(Node::Leaf(Value::Null));
        self.nodes.len() - 1
    }

    /// Fills a place with a value that holds no others to come.
    pub(super) fn set(&mut self, place: usize, value: Value) {
        self.bytes += match &value {
            Value::String(text) => text.len() + 2,
            Value::Object(members) => {
                members.iter().map(|(key, value)| key.len() + value.to_string().len() + 5).sum()
            }
            _ => 6,
        };
        self.fill(place, Node::Leaf(value));
    }

    /// The mark `{"$name": value}`.
    pub(super) fn mark(&mut self, place: usize, name: &str, value: impl Into<Value>) {
        self.set(place, mark(name, value));
    }

    /// Makes a place a list.
    pub(super) fn list(&mut self, place: usize) {
        self.fill(place, Node::List(Vec::new()));
    }

    /// Makes a place an object.
    pub(super) fn members(&mut self, place: usize) {
        self.fill(place, Node::Members(Vec::new()));
    }

    /// A new last element of a list.
    pub(super) fn element(&mut self, list: usize) -> usize {
        let place = self.place();
        if let Some(Node::List(places)) = self.nodes.get_mut(list) {
            places.push(place);
        }
        self.bytes += 1;
        place
    }

    /// A new member of an object. A name that it has, as a symbol and a text may have the same, gets a mark.
    pub(super) fn member(&mut self, object: usize, name: &str) -> usize {
        let place = self.place();
        self.bytes += name.len() + 4;
        if let Some(Node::Members(members)) = self.nodes.get_mut(object) {
            let mut name = name.to_owned();
            while members.iter().any(|(known, _)| *known == name) {
                name.push('\'');
            }
            members.push((name, place));
        }
        place
    }

    /// Whether nothing more should be opened.
    pub(super) fn is_full(&self) -> bool {
        self.nodes.len() >= MOST_NODES || self.bytes >= MOST_BYTES
    }

    /// `text`, shortened where it is longer than `most` characters.
    pub(super) fn text(&mut self, text: &str, most: usize) -> String {
        match text.char_indices().nth(most) {
            None => text.to_owned(),
            Some((end, _)) => {
                let all = text.chars().count();
                self.shortened(text.get(..end).unwrap_or_default(), all)
            }
        }
    }

    /// The start of a text that has `all` characters.
    pub(super) fn shortened(&mut self, start: &str, all: usize) -> String {
        self.cuts.strings += 1;
        format!("{start}… ({all} characters)")
    }

    fn fill(&mut self, place: usize, node: Node) {
        if let Some(empty) = self.nodes.get_mut(place) {
            *empty = node;
        }
    }

    /// The value at `place`, with all it holds.
    pub(super) fn value(&mut self, place: usize) -> Value {
        match self.nodes.get_mut(place).map(|node| std::mem::replace(node, Node::Leaf(Value::Null))) {
            None => Value::Null,
            Some(Node::Leaf(value)) => value,
            Some(Node::List(places)) => places.into_iter().map(|place| self.value(place)).collect(),
            Some(Node::Members(members)) => {
                let members = members.into_iter().map(|(name, place)| (name, self.value(place)));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }
}

/// `{"$name": value}`: what JSON has no form for.
pub(super) fn mark(name: &str, value: impl Into<Value>) -> Value {
    Value::Object(Map::from_iter([(format!("${name}"), value.into())]))
}
