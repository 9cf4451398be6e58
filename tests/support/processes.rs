//! What is in the process table.

use std::fs;
use std::time::Duration;

/// Processes that are alive (no zombies) and whose command line holds `mark`. Tests mark what they start
/// with a number that nothing else has: `sleep 31.415`.
pub fn alive(mark: &str) -> Vec<u32> {
    pids()
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| contains(&line, mark.as_bytes()))
        })
        .filter(|pid| state(*pid).is_some_and(|state| state != 'Z'))
        .filter(|pid| *pid != std::process::id())
        .collect()
}

/// The zombies whose parent is `parent`.
pub fn zombies_of(parent: u32) -> Vec<u32> {
    pids()
        .filter(|pid| state(*pid) == Some('Z'))
        .filter(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.lines().any(|line| line.strip_prefix("PPid:").map(str::trim) == Some(&parent.to_string()))
        })
        .collect()
}

/// Waits until no process with `mark` is alive.
pub fn wait_until_gone(mark: &str, limit: Duration) {
    crate::wait_until(limit, &format!("processes with {mark:?} end"), || alive(mark).is_empty());
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").expect("/proc is there");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    // The arguments stand between NULs; a mark may hold blanks.
    let text: Vec<u8> = text.iter().map(|byte| if *byte == 0 { b' ' } else { *byte }).collect();
    text.windows(part.len()).any(|window| window == part)
}
