//! Parses V8's `.heapprofile`: `HeapProfiler.SamplingHeapProfile` of the inspector protocol. It holds the memory that
//! was allocated while it was taken and is still alive, by the calls that allocated it.

use super::MalformedProfile;
use super::cpuprofile::CallFrame;
use crate::trace::call_tree::CallTree;
use serde::Deserialize;

#[derive(Deserialize)]
struct HeapSampleProfile {
    head: HeapSampleNode,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeapSampleNode {
    call_frame: CallFrame,
    #[serde(default)]
    self_size: f64,
    #[serde(default)]
    children: Vec<HeapSampleNode>,
}

const FORMAT: &str = "V8 heap profile";
/// The maximum depth of brackets. V8 records 128 nested calls, each of which takes two.
const MAX_DEPTH: usize = 600;

/// Parses a `.heapprofile` to bytes by the calls that allocated them.
///
/// # Errors
/// The text is no such profile.
pub fn read(text: &[u8]) -> Result<CallTree, MalformedProfile> {
    let malformed = |error: serde_json::Error| MalformedProfile::new(FORMAT, error.to_string());
    // The nesting is deeper than serde_json's own limit. Check it first, as parsing without a limit uses the stack.
    if depth(text) > MAX_DEPTH {
        return Err(MalformedProfile::new(FORMAT, format!("its calls lie more than {} deep", MAX_DEPTH / 2)));
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    reader.disable_recursion_limit();
    let profile = HeapSampleProfile::deserialize(&mut reader).map_err(malformed)?;
    reader.end().map_err(malformed)?;
    let mut tree = CallTree::default();
    let mut next = vec![(&profile.head, Vec::new())];
    while let Some((node, mut stack)) = next.pop() {
        if node.call_frame.name() != "(root)" {
            stack.push(tree.frame(node.call_frame.frame()));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let bytes = node.self_size.clamp(0.0, 1e15) as u64;
        if bytes > 0 {
            tree.add(&stack, bytes);
        }
        next.extend(node.children.iter().map(|child| (child, stack.clone())));
    }
    Ok(tree)
}

/// Returns the depth to which the brackets of a JSON text are nested.
fn depth(text: &[u8]) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nested(deep: usize) -> String {
        let frame = |name: &str| {
            format!(
                r#"{{"callFrame":{{"functionName":"{name}","url":"file:///a.js","lineNumber":1}},"selfSize":8,"children":["#
            )
        };
        let mut text = format!(r#"{{"head":{}"#, frame("(root)"));
        for _ in 0..deep {
            text.push_str(&frame("f{[\\\"g"));
        }
        text.push_str(&"]}".repeat(deep + 1));
        text.push('}');
        text
    }

    #[test]
    fn bytes_are_booked_to_the_calls_that_allocated_them() {
        let tree = read(nested(2).as_bytes()).unwrap();
        assert_eq!(tree.total(), 24);
        assert_eq!(tree.functions()[0].frame.to_text(), "f{[\"g (/a.js:2)");
    }

    #[test]
    fn stacks_as_deep_as_v8_keeps_them_are_read_and_deeper_ones_refused() {
        assert_eq!(read(nested(128).as_bytes()).unwrap().total(), 129 * 8);
        assert!(read(nested(100_000).as_bytes()).unwrap_err().reason.contains("deep"));
    }

    proptest! {
        #[test]
        fn half_a_profile_is_an_error_and_no_panic(end in 0..nested(4).len()) {
            prop_assert!(read(&nested(4).as_bytes()[..end]).is_err());
        }
    }
}
