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
    let mut tree = Tree::default();
    let first = tree.place();
    let mut waiting = VecDeque::from([(root, first, 0, request.is_beneath_secret())]);
    while let Some((value, place, depth, secret)) = waiting.pop_front() {
        match value {
            Value::String(_) | Value::Number(_) if secret => {
                tree.masked += 1;
                tree.set(place, MASK.into());
            }
            Value::String(text) => {
                let text = tree.text(text, if depth == 0 { MOST_LEAF } else { MOST_TEXT });
                tree.set(place, text.into());
            }
            Value::Array(elements) if !elements.is_empty() && depth >= request.depth() => {
                tree.cuts.depth += 1;
                tree.mark(place, "cut", format!("Array({})", elements.len()));
            }
            Value::Object(members) if !members.is_empty() && depth >= request.depth() => {
                tree.cuts.depth += 1;
                tree.mark(place, "cut", format!("Object({})", members.len()));
            }
            Value::Array(_) | Value::Object(_) if tree.is_full() => {
                tree.cuts.full += 1;
                tree.mark(place, "cut", "the answer is full");
            }
            Value::Array(elements) => {
                tree.list(place);
                for element in elements.iter().take(MOST_KEYS) {
                    waiting.push_back((element, tree.element(place), depth + 1, secret));
                }
                if elements.len() > MOST_KEYS {
                    let more = elements.len() - MOST_KEYS;
                    tree.cuts.keys += more as u64;
                    let place = tree.element(place);
                    tree.mark(place, "more", more);
                }
            }
            Value::Object(members) => {
                tree.members(place);
                for (name, member) in members.iter().take(MOST_KEYS) {
                    let shown: String = name.chars().take(MOST_TEXT).collect();
                    let secret = secret || is_secret(name);
                    waiting.push_back((member, tree.member(place, &shown), depth + 1, secret));
                }
                if members.len() > MOST_KEYS {
                    let more = members.len() - MOST_KEYS;
                    tree.cuts.keys += more as u64;
                    let place = tree.member(place, "$more");
                    tree.set(place, more.into());
                }
            }
            plain => tree.set(place, plain.clone()),
        }
    }
    Found::of(source, tree, first)
}
