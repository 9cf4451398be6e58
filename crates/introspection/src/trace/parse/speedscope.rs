//! Parses speedscope's file format, as py-spy writes it. Unlike folded stacks it can hold every name.

use super::{CpuProfile, MalformedProfile};
use crate::trace::calls::{CallTree, ProfiledFunction};
use serde::Deserialize;

#[derive(Deserialize)]
struct SpeedscopeFile {
    shared: SharedFrames,
    profiles: Vec<SpeedscopeProfile>,
}

#[derive(Deserialize)]
struct SharedFrames {
    frames: Vec<FileFrame>,
}

#[derive(Deserialize)]
struct FileFrame {
    name: String,
    file: Option<String>,
    line: Option<u32>,
}

#[derive(Deserialize)]
struct SpeedscopeProfile {
    #[serde(default)]
    samples: Vec<Vec<usize>>,
}

/// Parses the samples of all threads, each of which stands for `interval_us` microseconds.
///
/// # Errors
/// The text is no such file.
pub fn read(text: &[u8], interval_us: u64) -> Result<CpuProfile, MalformedProfile> {
    let file: SpeedscopeFile = serde_json::from_slice(text)
        .map_err(|error| MalformedProfile::new("speedscope", error.to_string()))?;
    let mut tree = CallTree::default();
    let frames: Vec<usize> = file
        .shared
        .frames
        .iter()
        .map(|frame| tree.frame(ProfiledFunction::new(&frame.name, frame.file.as_deref(), frame.line)))
        .collect();
    // A summary is of the process: threads are told apart by their outermost frames.
    let mut samples = 0;
    for profile in &file.profiles {
        for sample in &profile.samples {
            let stack: Vec<usize> = sample.iter().filter_map(|index| frames.get(*index).copied()).collect();
            tree.add(&stack, interval_us);
            samples += 1;
        }
    }
    Ok(CpuProfile { tree, samples, interval_us: Some(interval_us), idle_us: None, gc_us: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: &str = r#"{"$schema":"x","shared":{"frames":[{"name":"<module>","file":"app.py","line":1},{"name":"burn;\n<b>","file":"app.py","line":4}]},"profiles":[{"type":"sampled","name":"Thread 1","unit":"seconds","startValue":0,"endValue":3,"samples":[[0,1],[0,1],[0]],"weights":[1,1,1]}],"name":"py-spy profile"}"#;

    #[test]
    fn each_sample_is_worth_its_interval() {
        let cpu = read(FILE.as_bytes(), 10_000).unwrap();
        assert_eq!(cpu.samples, 3);
        assert_eq!(
            cpu.tree.to_folded(),
            "<module> (app.py:1) 10000\n<module> (app.py:1);burn: <b> (app.py:4) 20000\n"
        );
    }

    proptest! {
        #[test]
        fn half_a_file_is_an_error_and_no_panic(end in 0..FILE.len()) {
            prop_assert!(read(&FILE.as_bytes()[..end], 1).is_err());
        }

        #[test]
        fn no_number_of_a_frame_is_a_panic(samples: Vec<Vec<usize>>) {
            let file = serde_json::json!({"shared": {"frames": [{"name": "f"}]}, "profiles": [{"samples": samples}]});
            prop_assert!(read(file.to_string().as_bytes(), 1).is_ok());
        }
    }
}
