//! Parses speedscope's file format, as py-spy writes it. Unlike folded stacks it can hold every name.

use super::{CpuProfile, MalformedProfile};
use crate::trace::call_tree::{CallTree, ProfiledFunction};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

#[derive(Deserialize)]
struct SpeedscopeFile {
    shared: SpeedscopeSharedFrames,
    profiles: Vec<SpeedscopeProfile>,
}

#[derive(Deserialize)]
struct SpeedscopeSharedFrames {
    frames: Vec<SpeedscopeFrame>,
}

#[derive(Deserialize)]
struct SpeedscopeFrame {
    name: String,
    file: Option<String>,
    line: Option<u32>,
}

#[derive(Deserialize)]
struct SpeedscopeProfile {
    /// `Thread 123 "name"`.
    #[serde(default)]
    name: String,
    #[serde(default)]
    samples: Vec<Vec<usize>>,
}

/// The samples that were taken while threads waited, and were not counted as work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingSamples {
    /// The time that they stand for, in microseconds.
    pub micros: u64,
    /// The names of the threads that did nothing else.
    pub idle_threads: Vec<String>,
}

/// Parses the samples of all threads, each of which stands for `interval_us` microseconds. `cpu_us` is the processor
/// time that threads used during the samples, by thread id. The samples of a thread count for no more than its
/// processor time. The reason is that the sampler halts the process, which wakes waiting threads, so that a waiting
/// thread can look like a working one. The samples of a thread that is not in `cpu_us` count in full.
///
/// The frames of the file have the lines that ran. `definition` returns the line at which a function begins, by file, name
/// and the first of its lines that ran.
///
/// # Errors
/// The text is no such file.
pub fn read(
    text: &[u8],
    interval_us: u64,
    cpu_us: &BTreeMap<u32, u64>,
    mut definition: impl FnMut(&str, &str, u32) -> Option<u32>,
) -> Result<(CpuProfile, WaitingSamples), MalformedProfile> {
    let file: SpeedscopeFile = serde_json::from_slice(text)
        .map_err(|error| MalformedProfile::new("speedscope", error.to_string()))?;
    let mut tree = CallTree::default();
    // The lines of a function are one frame of the tree.
    let mut first_lines: HashMap<(&str, Option<&str>), Option<u32>> = HashMap::new();
    for frame in &file.shared.frames {
        let first = first_lines.entry((&frame.name, frame.file.as_deref())).or_insert(frame.line);
        *first = (*first).min(frame.line).or(*first).or(frame.line);
    }
    for ((name, file), line) in &mut first_lines {
        if let (Some(file), Some(first)) = (file, *line) {
            *line = definition(file, name, first).or(*line);
        }
    }
    let frames: Vec<usize> = file
        .shared
        .frames
        .iter()
        .map(|frame| {
            let line = first_lines.get(&(frame.name.as_str(), frame.file.as_deref())).copied().flatten();
            tree.frame(ProfiledFunction::new(&frame.name, frame.file.as_deref(), line))
        })
        .collect();
    let waits: Vec<bool> = file.shared.frames.iter().map(is_waiting).collect();
    // A summary is of the process: threads are told apart by their outermost frames.
    let mut counted_samples = 0;
    let mut waiting = WaitingSamples::default();
    let times = |profile: &SpeedscopeProfile| {
        let sampled_us = interval_us.saturating_mul(profile.samples.len() as u64);
        let used_us = thread_id(&profile.name).and_then(|thread| cpu_us.get(&thread).copied());
        (sampled_us, used_us.unwrap_or(sampled_us).min(sampled_us))
    };
    // Being halted and woken a hundred times a second costs a thread some milliseconds, which are no work of its own.
    let is_idle = |profile: &SpeedscopeProfile| {
        let (sampled_us, used_us) = times(profile);
        used_us < interval_us.saturating_mul(2) && used_us.saturating_mul(10) < sampled_us
    };
    let has_busy_thread =
        file.profiles.iter().any(|profile| !profile.samples.is_empty() && !is_idle(profile));
    for profile in &file.profiles {
        let (sampled_us, used_us) = times(profile);
        let mut excess_us = sampled_us - used_us;
        let is_waiting = |sample: &&Vec<usize>| {
            sample.last().and_then(|frame| waits.get(*frame)).copied().unwrap_or_default()
        };
        let mut counted: Vec<&Vec<usize>> = Vec::new();
        for sample in &profile.samples {
            if excess_us >= interval_us && is_waiting(&sample) {
                excess_us -= interval_us;
            } else {
                counted.push(sample);
            }
        }
        if has_busy_thread && is_idle(profile) || counted.is_empty() {
            waiting.micros += sampled_us;
            if !profile.samples.is_empty() {
                waiting.idle_threads.push(profile.name.clone());
            }
            continue;
        }
        let weight = (used_us / counted.len() as u64).min(interval_us);
        waiting.micros += sampled_us - weight * counted.len() as u64;
        for sample in counted {
            let stack: Vec<usize> = sample.iter().filter_map(|index| frames.get(*index).copied()).collect();
            tree.add(&stack, weight);
            let leaf = sample.last().and_then(|index| file.shared.frames.get(*index)?.line);
            if let (Some(frame), Some(line)) = (stack.last(), leaf) {
                tree.add_line(*frame, line, weight);
            }
            counted_samples += 1;
        }
    }
    let profile = CpuProfile {
        tree,
        samples: counted_samples,
        interval_us: Some(interval_us),
        idle_us: None,
        gc_us: None,
    };
    Ok((profile, waiting))
}

/// Returns the id of a thread from its name in the file.
fn thread_id(name: &str) -> Option<u32> {
    let (_, rest) = name.split_once("Thread ")?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns true for the functions of Python's library in which threads wait.
fn is_waiting(frame: &SpeedscopeFrame) -> bool {
    const FUNCTIONS: [(&str, &[&str]); 9] = [
        ("threading.py", &["wait", "_wait_for_tstate_lock", "join", "acquire"]),
        ("queue.py", &["get", "put"]),
        ("selectors.py", &["select"]),
        ("socket.py", &["accept", "readinto", "recv", "connect", "create_connection"]),
        ("ssl.py", &["read", "recv", "recv_into", "do_handshake"]),
        ("subprocess.py", &["_try_wait", "wait", "_wait", "communicate", "_communicate"]),
        ("popen_fork.py", &["poll", "wait"]),
        ("connection.py", &["wait", "_recv", "poll", "_poll"]),
        ("thread.py", &["_worker"]),
    ];
    let file = frame.file.as_deref().unwrap_or_default();
    let file = file.rsplit('/').next().unwrap_or_default();
    let function = frame.name.rsplit('.').next().unwrap_or_default();
    FUNCTIONS.iter().any(|(known, functions)| *known == file && functions.contains(&function))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: &str = r#"{"$schema":"x","shared":{"frames":[{"name":"<module>","file":"app.py","line":1},{"name":"burn;\n<b>","file":"app.py","line":4}]},"profiles":[{"type":"sampled","name":"Thread 1","unit":"seconds","startValue":0,"endValue":3,"samples":[[0,1],[0,1],[0]],"weights":[1,1,1]}],"name":"py-spy profile"}"#;

    #[test]
    fn each_sample_is_worth_its_interval() {
        let (cpu, waiting) = read(FILE.as_bytes(), 10_000, &BTreeMap::new(), |_, _, _| None).unwrap();
        assert_eq!(waiting, WaitingSamples::default());
        assert_eq!(cpu.samples, 3);
        assert_eq!(
            cpu.tree.to_folded(),
            "<module> (app.py:1) 10000\n<module> (app.py:1);burn: <b> (app.py:4) 20000\n"
        );
    }

    #[test]
    fn the_lines_of_a_function_are_one_function_that_begins_at_its_definition() {
        const LINES: &str = r#"{"shared":{"frames":[{"name":"burn","file":"app.py","line":9},{"name":"burn","file":"app.py","line":7}]},
            "profiles":[{"name":"Thread 1","samples":[[0],[1],[0]]}]}"#;
        let definition = |file: &str, name: &str, first: u32| {
            assert_eq!((file, name, first), ("app.py", "burn", 7));
            Some(5)
        };
        let (cpu, _) = read(LINES.as_bytes(), 10_000, &BTreeMap::new(), definition).unwrap();
        assert_eq!(cpu.tree.to_folded(), "burn (app.py:5) 30000\n");
        let burn = ProfiledFunction::new("burn", Some("app.py"), Some(5));
        assert_eq!(cpu.tree.lines(&burn), [(9, 20_000), (7, 10_000)]);
    }

    #[test]
    fn a_thread_counts_for_the_processor_time_that_it_used() {
        const THREADS: &str = r#"{"shared":{"frames":[
            {"name":"work","file":"app.py"},{"name":"Condition.wait","file":"/lib/threading.py"},{"name":"nap","file":"app.py"}]},
            "profiles":[
            {"name":"Thread 7 \"worker\"","samples":[[0],[0],[0,1],[0,2]]},
            {"name":"Thread 8 \"idle\"","samples":[[2],[2],[2]]},
            {"name":"Thread 9 \"waiter\"","samples":[[0,1]]},
            {"name":"Thread 10 \"unknown\"","samples":[[2]]}]}"#;
        let used = BTreeMap::from([(7, 24_000), (8, 300), (9, 0)]);
        let (cpu, waiting) = read(THREADS.as_bytes(), 10_000, &used, |_, _, _| None).unwrap();
        // The wait of the worker goes first; the rest is scaled to the 24 ms that it had.
        let folded = cpu.tree.to_folded();
        let lines: Vec<&str> = folded.lines().collect();
        assert_eq!(lines, ["work (app.py) 16000", "work (app.py);nap (app.py) 8000", "nap (app.py) 10000"]);
        assert_eq!(cpu.samples, 4);
        assert_eq!(waiting.micros, 16_000 + 30_000 + 10_000);
        assert_eq!(waiting.idle_threads, ["Thread 8 \"idle\"", "Thread 9 \"waiter\""]);
    }

    proptest! {
        #[test]
        fn half_a_file_is_an_error_and_no_panic(end in 0..FILE.len()) {
            prop_assert!(read(&FILE.as_bytes()[..end], 1, &BTreeMap::new(), |_, _, _| None).is_err());
        }

        #[test]
        fn no_number_of_a_frame_is_a_panic(samples: Vec<Vec<usize>>, used: u64) {
            let file = serde_json::json!({"shared": {"frames": [{"name": "f"}]}, "profiles": [{"name": "Thread 1", "samples": samples}]});
            prop_assert!(read(file.to_string().as_bytes(), 1, &BTreeMap::from([(1, used)]), |_, _, _| None).is_ok());
        }
    }
}
