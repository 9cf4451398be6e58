//! Parses the output of `jfr print --json --events jdk.ExecutionSample,jdk.NativeMethodSample`.

use super::{CpuProfile, MalformedProfile};
use crate::trace::call_tree::{CallTree, ProfiledFunction};
use serde::Deserialize;
use std::collections::HashMap;

#[derive(Deserialize)]
struct JfrFileContent {
    recording: JfrRecording,
}

#[derive(Deserialize)]
struct JfrRecording {
    #[serde(default)]
    events: Vec<JfrEvent>,
}

#[derive(Deserialize)]
struct JfrEvent {
    #[serde(rename = "type")]
    kind: String,
    values: JfrEventValues,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JfrEventValues {
    stack_trace: Option<JfrStackTrace>,
}

#[derive(Deserialize)]
struct JfrStackTrace {
    #[serde(default)]
    frames: Vec<JfrStackFrame>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JfrStackFrame {
    method: Option<MethodName>,
    line_number: Option<i64>,
}

#[derive(Deserialize)]
struct MethodName {
    #[serde(rename = "type")]
    class: Option<ClassName>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct ClassName {
    name: Option<String>,
}

/// Parses samples, each of which stands for `interval_us` microseconds. Returns also the number of samples in native
/// code. These samples are left out, because a thread in native code is sampled whether it works or waits.
///
/// # Errors
/// The text is not the output of `jfr`.
pub fn read(text: &[u8], interval_us: u64) -> Result<(CpuProfile, u64), MalformedProfile> {
    let file: JfrFileContent = serde_json::from_slice(text)
        .map_err(|error| MalformedProfile::new("JFR as JSON", error.to_string()))?;
    // A sample has the line that ran. The first line seen of a method stands for all of them, so that it is one frame.
    let mut methods = HashMap::new();
    let mut tree = CallTree::default();
    let (mut samples, mut native) = (0, 0);
    for event in &file.recording.events {
        let Some(trace) = &event.values.stack_trace else { continue };
        if event.kind != "jdk.ExecutionSample" {
            native += 1;
            continue;
        }
        let frames = trace.frames.iter().rev().map(named);
        let stack: Vec<usize> = frames
            .map(|frame| {
                let method = (frame.function.clone(), frame.file.clone());
                *methods.entry(method).or_insert_with(|| tree.frame(frame))
            })
            .collect();
        tree.add(&stack, interval_us);
        let line = trace.frames.first().and_then(|frame| u32::try_from(frame.line_number?).ok());
        if let (Some(frame), Some(line)) = (stack.last(), line) {
            tree.add_line(*frame, line, interval_us);
        }
        samples += 1;
    }
    Ok((CpuProfile { tree, samples, interval_us: Some(interval_us), idle_us: None, gc_us: None }, native))
}

/// Converts a frame: `Server$Handler.handle` in `com/example/Server.java`, the file that the class is by convention in.
fn named(frame: &JfrStackFrame) -> ProfiledFunction {
    let method = frame.method.as_ref();
    let class = method.and_then(|method| method.class.as_ref()).and_then(|class| class.name.as_deref());
    let class = class.unwrap_or_default().replace('.', "/");
    let name = method.and_then(|method| method.name.as_deref()).unwrap_or("[unknown]");
    let short = class.rsplit('/').next().unwrap_or_default();
    let outer = class.split('$').next().unwrap_or_default();
    let file = format!("{outer}.java");
    let function = if short.is_empty() { name.to_owned() } else { format!("{short}.{name}") };
    let line = frame.line_number.and_then(|line| u32::try_from(line).ok());
    ProfiledFunction::new(&function, Some(&file).filter(|_| !outer.is_empty()).map(String::as_str), line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = r#"{"recording": {"events": [
        {"type": "jdk.ExecutionSample", "values": {"startTime": "x", "stackTrace": {"truncated": false, "frames": [
            {"method": {"type": {"name": "com/example/App$Cart"}, "name": "burn"}, "lineNumber": 7},
            {"method": {"type": {"name": "com/example/App"}, "name": "main"}, "lineNumber": 3}]}}},
        {"type": "jdk.NativeMethodSample", "values": {"stackTrace": {"frames": [{"method": null}]}}},
        {"type": "jdk.ExecutionSample", "values": {"stackTrace": null}}]}}"#;

    #[test]
    fn methods_are_named_with_their_class_and_its_file() {
        let (cpu, native) = read(TEXT.as_bytes(), 20_000).unwrap();
        assert_eq!((cpu.samples, native), (1, 1));
        let expected = "App.main (com/example/App.java:3);App$Cart.burn (com/example/App.java:7) 20000\n";
        assert_eq!(cpu.tree.to_folded(), expected);
        let burn = ProfiledFunction::new("App$Cart.burn", Some("com/example/App.java"), Some(7));
        assert_eq!(cpu.tree.lines(&burn), [(7, 20_000)]);
    }

    proptest! {
        #[test]
        fn half_a_text_is_an_error_and_no_panic(end in 0..TEXT.len()) {
            prop_assert!(read(&TEXT.as_bytes()[..end], 1).is_err());
        }
    }
}
