//! Parses the output of `perf script -F comm,tid,period,ip,sym,dso` (perf-script(1)): for each sample a line that
//! names the thread, a line for each frame from the innermost out, and an empty line.

use super::CpuProfile;
use crate::trace::call_tree::{CallTree, ProfiledFunction};
use std::collections::HashMap;

/// The address at which each function was sampled most often, in its library.
pub type SampledAddresses = HashMap<ProfiledFunction, u64>;

/// Parses samples, each of which stands for `interval_us` microseconds. Other lines are skipped.
pub fn read(text: &str, interval_us: u64) -> (CpuProfile, SampledAddresses) {
    let mut counts: HashMap<(usize, u64), (u64, ProfiledFunction)> = HashMap::new();
    let mut tree = CallTree::default();
    let mut samples = 0;
    let mut stack: Vec<usize> = Vec::new();
    let mut thread = None;
    // The last sample may have no empty line behind it.
    for line in text.lines().chain([""]) {
        if line.trim().is_empty() {
            if thread.take().is_some() {
                stack.reverse();
                tree.add(&stack, interval_us);
                samples += 1;
            }
            stack.clear();
        } else if thread.is_none() {
            thread = Some(line);
        } else if let Some((frame, address)) = frame(line) {
            let id = tree.frame(frame.clone());
            counts.entry((id, address)).or_insert((0, frame)).0 += 1;
            stack.push(id);
        }
    }
    let mut by_count: Vec<_> =
        counts.into_iter().map(|((_, address), (times, frame))| (times, address, frame)).collect();
    // In ascending order: of several addresses of one function, the most frequent one comes last and stays in the map.
    by_count.sort();
    let addresses = by_count.into_iter().map(|(_, address, frame)| (frame, address)).collect();
    (CpuProfile { tree, samples, interval_us: Some(interval_us), idle_us: None, gc_us: None }, addresses)
}

/// Parses the line of a frame: `            55d0 main::burn (/app/target/release/app)`.
fn frame(line: &str) -> Option<(ProfiledFunction, u64)> {
    let (address, rest) = line.trim_start().split_once(' ').unwrap_or((line.trim(), ""));
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim();
    // The name may hold parentheses; the last pair is the file.
    let (symbol, library) = match rest.rsplit_once(" (") {
        Some((symbol, library)) => (symbol, library.strip_suffix(')').unwrap_or(library)),
        None => match rest.strip_prefix('(').and_then(|library| library.strip_suffix(')')) {
            Some(library) => ("", library),
            None => (rest, ""),
        },
    };
    let symbol = without_hash(symbol.trim());
    let library = library.strip_suffix(" (deleted)").unwrap_or(library);
    let file = match library {
        "" | "[unknown]" | "inlined" => None,
        other => Some(other),
    };
    let unnamed = symbol.is_empty() || symbol == "[unknown]";
    let frame = match (unnamed, file) {
        // The name of the library says more than `[unknown]`.
        (true, Some(file)) => {
            ProfiledFunction::new(&format!("[{}]", file.rsplit('/').next().unwrap_or(file)), Some(file), None)
        }
        (true, None) => ProfiledFunction::new("[unknown]", None, None),
        (false, file) => ProfiledFunction::new(symbol, file, None),
    };
    Some((frame, address))
}

/// Returns a Rust name without the hash of the legacy mangling: `::h` and 16 hexadecimal digits.
fn without_hash(symbol: &str) -> &str {
    match symbol.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => symbol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SCRIPT: &str = "app  4711          1 \n\t    55d0c0 app::burn::h0123456789abcdef (/app/app)\n\t    55d0c1 main (/app/app)\n\n\
        app  4711          1 \n\t    7f00 std::vector<int, (anonymous namespace)::A>::push (/usr/lib/x.so)\n\t    55d0c1 main (/app/app)\n\n\
        a b: 9  4712          1 \n\t    7f00 [unknown] (/usr/lib/libz.so.1)\n\t    1 [unknown] ([unknown])\n";

    #[test]
    fn frames_are_read_from_the_innermost_out_with_their_library() {
        let (cpu, addresses) = read(SCRIPT, 1000);
        assert_eq!(cpu.samples, 3);
        assert_eq!(addresses[&ProfiledFunction::new("main", Some("/app/app"), None)], 0x55_d0c1);
        assert_eq!(
            cpu.tree.to_folded(),
            "main (/app/app);app::burn (/app/app) 1000\n\
             main (/app/app);std::vector<int, (anonymous namespace)::A>::push (/usr/lib/x.so) 1000\n\
             [unknown];[libz.so.1] (/usr/lib/libz.so.1) 1000\n"
        );
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "(?s).{0,200}", end in 0..SCRIPT.len()) {
            read(&text, 1);
            read(&SCRIPT[..end], 1);
        }
    }
}
