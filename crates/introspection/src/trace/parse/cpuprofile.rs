//! Parses V8's `.cpuprofile`: `Profiler.Profile` of the inspector protocol.

use super::{CpuProfile, MalformedProfile};
use crate::trace::call_tree::{CallTree, ProfiledFunction};
use serde::Deserialize;
use std::collections::HashMap;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CpuProfileFile {
    nodes: Vec<CpuProfileNode>,
    start_time: f64,
    end_time: f64,
    #[serde(default)]
    samples: Vec<i64>,
    #[serde(default)]
    time_deltas: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CpuProfileNode {
    id: i64,
    call_frame: CallFrame,
    #[serde(default)]
    children: Vec<i64>,
    /// The lines that ran in samples of the node itself.
    #[serde(default)]
    position_ticks: Vec<PositionTicks>,
}

/// The number of samples in one line, which counts from 1.
#[derive(Deserialize)]
struct PositionTicks {
    line: u32,
    ticks: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallFrame {
    function_name: String,
    #[serde(default)]
    url: String,
    #[serde(default = "no_line")]
    line_number: i64,
}

/// Returns the line number of a function without a location.
fn no_line() -> i64 {
    -1
}

impl CallFrame {
    /// Returns the name of the function, as V8 has it.
    pub(super) fn name(&self) -> &str {
        &self.function_name
    }

    /// Converts the frame; V8 counts lines from 0.
    pub(super) fn frame(&self) -> ProfiledFunction {
        let file = self.url.strip_prefix("file://").unwrap_or(&self.url);
        // The query of a module's URL may hold secrets.
        let file = file.split(['?', '#']).next().unwrap_or_default();
        let line = u32::try_from(self.line_number.saturating_add(1)).ok();
        ProfiledFunction::new(&self.function_name, Some(file), line.filter(|_| !file.is_empty()))
    }
}

/// Parses a `.cpuprofile`.
///
/// # Errors
/// The text is no such profile.
pub fn read(text: &[u8]) -> Result<CpuProfile, MalformedProfile> {
    let profile: CpuProfileFile = serde_json::from_slice(text)
        .map_err(|error| MalformedProfile::new("V8 CPU profile", error.to_string()))?;
    let mut tree = CallTree::default();
    let mut parents = HashMap::new();
    for node in &profile.nodes {
        parents.extend(node.children.iter().map(|child| (*child, node.id)));
    }
    let frames: HashMap<i64, (&str, usize)> = profile
        .nodes
        .iter()
        .map(|node| (node.id, (node.call_frame.name(), tree.frame(node.call_frame.frame()))))
        .collect();
    // A sample stands for the time until the next one, the last sample for the time until the end.
    let mut time = profile.start_time;
    let times: Vec<f64> = profile
        .time_deltas
        .iter()
        .map(|delta| {
            time += delta;
            time
        })
        .collect();
    let mut spent: HashMap<i64, u64> = HashMap::new();
    for (index, (sample, time)) in profile.samples.iter().zip(&times).enumerate() {
        let next = times.get(index + 1).copied().unwrap_or(profile.end_time);
        let elapsed = (next - time).clamp(0.0, 1e12);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped above")]
        let elapsed = elapsed as u64;
        *spent.entry(*sample).or_default() += elapsed;
    }
    for node in &profile.nodes {
        let ticks = node.position_ticks.iter().fold(0_u64, |sum, at| sum.saturating_add(at.ticks)).max(1);
        let (Some(spent), Some((_, frame))) = (spent.get(&node.id), frames.get(&node.id)) else { continue };
        for at in &node.position_ticks {
            let share = u128::from(*spent) * u128::from(at.ticks) / u128::from(ticks);
            tree.add_line(*frame, at.line, u64::try_from(share).unwrap_or(u64::MAX));
        }
    }
    let (mut idle, mut gc) = (0, 0);
    for (node, spent) in spent {
        let mut stack = Vec::new();
        let mut next = Some(node);
        let mut steps = 0;
        while let Some(id) = next {
            let Some((name, frame)) = frames.get(&id) else { break };
            match (*name, steps) {
                ("(idle)", 0) => idle += spent,
                ("(garbage collector)", 0) => gc += spent,
                _ => {}
            }
            if *name != "(root)" {
                stack.push(*frame);
            }
            steps += 1;
            // A malformed profile may have a cycle.
            next = parents.get(&id).copied().filter(|_| steps < 10_000);
        }
        stack.reverse();
        // Idle time is reported separately. As a function it would have the largest share of nearly every server.
        let is_idle = stack.len() == 1 && frames.get(&node).is_some_and(|(name, _)| *name == "(idle)");
        if !is_idle && spent > 0 {
            tree.add(&stack, spent);
        }
    }
    Ok(CpuProfile {
        tree,
        samples: profile.samples.len() as u64,
        interval_us: None,
        idle_us: Some(idle),
        gc_us: Some(gc),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PROFILE: &str = r#"{"nodes":[
        {"id":1,"callFrame":{"functionName":"(root)","scriptId":"0","url":"","lineNumber":-1,"columnNumber":-1},"children":[2,3,5]},
        {"id":2,"callFrame":{"functionName":"(idle)","scriptId":"0","url":"","lineNumber":-1,"columnNumber":-1}},
        {"id":3,"callFrame":{"functionName":"handle","scriptId":"9","url":"file:///app/server.js?token=x","lineNumber":11,"columnNumber":2},"children":[4]},
        {"id":4,"callFrame":{"functionName":"","scriptId":"9","url":"file:///app/server.js","lineNumber":0,"columnNumber":2},"positionTicks":[{"line":4,"ticks":1},{"line":3,"ticks":3}]},
        {"id":5,"callFrame":{"functionName":"(garbage collector)","scriptId":"0","url":"","lineNumber":-1,"columnNumber":-1}}],
        "startTime":1000,"endTime":2000,"samples":[2,3,4,4,5],"timeDeltas":[100,200,100,100,300]}"#;

    #[test]
    fn a_sample_lasts_until_the_next_and_idle_time_is_not_in_the_tree() {
        let cpu = read(PROFILE.as_bytes()).unwrap();
        assert_eq!((cpu.samples, cpu.idle_us, cpu.gc_us), (5, Some(200), Some(200)));
        let mut folded: Vec<_> = cpu.tree.to_folded().lines().map(str::to_owned).collect();
        folded.sort();
        assert_eq!(
            folded,
            [
                "(garbage collector) 200",
                "handle (/app/server.js:12) 100",
                "handle (/app/server.js:12);(anonymous) (/app/server.js:1) 400"
            ]
        );
    }

    #[test]
    fn the_time_of_a_function_is_divided_among_its_lines() {
        let cpu = read(PROFILE.as_bytes()).unwrap();
        let frame = ProfiledFunction::new("", Some("/app/server.js"), Some(1));
        assert_eq!(cpu.tree.lines(&frame), [(3, 300), (4, 100)]);
        assert_eq!(cpu.tree.lines(&ProfiledFunction::new("handle", Some("/app/server.js"), Some(12))), []);
    }

    #[test]
    fn a_ring_of_callers_ends() {
        let ring = PROFILE.replace(
            "\"columnNumber\":2},\"positionTicks\"",
            "\"columnNumber\":2},\"children\":[3],\"positionTicks\"",
        );
        assert_eq!(read(ring.as_bytes()).unwrap().samples, 5);
    }

    proptest! {
        #[test]
        fn half_a_profile_is_an_error_and_no_panic(end in 0..PROFILE.len()) {
            prop_assert!(read(&PROFILE.as_bytes()[..end]).is_err());
        }

        #[test]
        fn no_numbers_are_a_panic(samples: Vec<i64>, deltas: Vec<f64>, start: f64, end: f64) {
            let profile = serde_json::json!({"nodes": [{"id": 1, "callFrame": {"functionName": "f"}}], "startTime": start,
                "endTime": end, "samples": samples, "timeDeltas": deltas});
            let _ = read(profile.to_string().as_bytes());
        }
    }
}
