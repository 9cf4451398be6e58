//! Paths into a JSON document.

use super::mask::{MASK, is_secret};
use super::path::StatePath;
use super::provider::{Found, Missing, Passed, Request};
use super::tree::{MOST_KEYS, MOST_LEAF, MOST_TEXT, Tree};
use serde_json::Value;
use std::collections::VecDeque;

/// What `path` names in `document`, as far as the request wants it. `skip` names of the path have been followed to
/// the document.
pub(super) fn find(
    request: &Request<'_>,
    source: String,
    document: &Value,
    skip: usize,
) -> Result<Found, Passed> {
    let path = request.path();
    let mut value = document;
    for (at, name) in path.segments.iter().enumerate().skip(skip) {
        let next = match value {
            Value::Object(members) => members.get(name),
            Value::Array(elements) => name.parse().ok().and_then(|index: usize| elements.get(index)),
            _ => None,
        };
        value = next.ok_or_else(|| Passed::Missing(Box::new(missing(path, at, source.clone(), value))))?;
    }
    Ok(outline(request, source, value))
}

fn missing(path: &StatePath, at: usize, source: String, value: &Value) -> Missing {
    let keys = match value {
        Value::Object(members) => {
            members.keys().take(MOST_KEYS).map(|key| key.chars().take(200).collect()).collect()
        }
        Value::Array(elements) => vec![format!("0 to {}", elements.len().saturating_sub(1))],
        _ => Vec::new(),
    };
    let failed_at = path.segments.get(at).cloned().unwrap_or_default();
    Missing { source, resolved: path.upto(at), failed_at, keys, note: None }
}

/// `root`, as deep as the request wants it.
fn outline(request: &Request<'_>, source: String, root: &Value) -> Found {
    let mut outline = Outline { tree: Tree::default(), most: request.depth(), waiting: VecDeque::new() };
    let first = outline.tree.place();
    outline.put(root, first, 0, request.is_beneath_secret());
    while let Some((value, place, depth, secret)) = outline.waiting.pop_front() {
        outline.open(value, place, depth, secret);
    }
    Found::of(source, outline.tree, first)
}

struct Outline<'a> {
    tree: Tree,
    most: u32,
    /// Arrays and objects that are opened next.
    waiting: VecDeque<(&'a Value, usize, u32, bool)>,
}

impl<'a> Outline<'a> {
    fn put(&mut self, value: &'a Value, place: usize, depth: u32, secret: bool) {
        let tree = &mut self.tree;
        let (class, size) = match value {
            Value::Array(elements) => ("Array", elements.len()),
            Value::Object(members) => ("Object", members.len()),
            Value::String(_) | Value::Number(_) if secret => {
                tree.masked += 1;
                return tree.set(place, MASK.into());
            }
            Value::String(text) => {
                let text = tree.text(text, if depth == 0 { MOST_LEAF } else { MOST_TEXT });
                return tree.set(place, text.into());
            }
            plain => return tree.set(place, plain.clone()),
        };
        if size > 0 && depth >= self.most {
            tree.cuts.depth += 1;
            tree.mark(place, "cut", format!("{class}({size})"));
        } else {
            self.waiting.push_back((value, place, depth, secret));
        }
    }

    fn open(&mut self, value: &'a Value, place: usize, depth: u32, secret: bool) {
        let mut more = 0_u64;
        match value {
            Value::Array(elements) => {
                self.tree.list(place);
                for (at, element) in elements.iter().enumerate() {
                    if self.is_cut(at) {
                        more += 1;
                        continue;
                    }
                    let element_place = self.tree.element(place);
                    self.put(element, element_place, depth + 1, secret);
                }
                if more > 0 {
                    let place = self.tree.element(place);
                    self.tree.mark(place, "more", more);
                }
            }
            Value::Object(members) => {
                self.tree.members(place);
                for (at, (name, member)) in members.iter().enumerate() {
                    if self.is_cut(at) {
                        more += 1;
                        continue;
                    }
                    let shown: String = name.chars().take(MOST_TEXT).collect();
                    let member_place = self.tree.member(place, &shown);
                    self.put(member, member_place, depth + 1, secret || is_secret(name));
                }
                if more > 0 {
                    let place = self.tree.member(place, "$more");
                    self.tree.set(place, more.into());
                }
            }
            _ => {}
        }
    }

    /// Whether the member at this place is left out; counts it.
    fn is_cut(&mut self, at: usize) -> bool {
        if at >= MOST_KEYS {
            self.tree.cuts.keys += 1;
        } else if self.tree.is_full() {
            self.tree.cuts.full += 1;
        } else {
            return false;
        }
        true
    }
}
