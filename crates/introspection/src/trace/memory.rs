//! Memory profiles by the system's map of a process (`proc_pid_smaps(5)`), for runtimes without a heap profiler.

use super::capture_run::{CaptureOutput, CaptureRun, CaptureWaitOutcome, millis};
use super::error::Error;
use super::parse::heap_snapshot::{HeapContents, HeapGroup};
use super::profile::{HeapSummary, ProfileSummary};
use crate::inspect::proc;
use std::collections::HashMap;
use std::time::Instant;

const FILE: &str = "json";

/// Takes the memory map at the beginning and at the end. `note` says why there is no more detailed profile.
pub(super) async fn heap(run: &CaptureRun<'_>, note: String) -> Result<CaptureOutput, Error> {
    let started = Instant::now();
    let before = read_map(run)?;
    let waited = run.wait(run.duration).await?;
    let elapsed = started.elapsed();
    let mut warnings = vec![note];
    let (Ok(after), CaptureWaitOutcome::Elapsed) = (read_map(run), waited) else {
        return Err(run.target_exited(elapsed));
    };
    let mut summary = HeapSummary::from_heap(&after, Some(&before));
    // Mappings without resident pages take no memory.
    summary.biggest.retain(|big| big.bytes > 0 || big.grown.is_some_and(|grown| grown != 0));
    // The count is of mappings, which are no objects.
    summary.objects = None;
    summary.used_bytes = Some([before.bytes, after.bytes]);
    let json = serde_json::json!({"duration_ms": millis(elapsed), "before": to_json(&before), "after": to_json(&after)});
    run.files.write(FILE, json.to_string().as_bytes()).map_err(|error| run.store_error(error))?;
    warnings.push("bytes are resident memory by mapping, `count` is mappings".to_owned());
    let summary = Some(ProfileSummary::Heap(summary));
    Ok(CaptureOutput {
        format: "json",
        extension: FILE,
        elapsed,
        summary,
        warnings,
        ..CaptureOutput::default()
    })
}

/// Formats the memory map for the file.
fn to_json(heap: &HeapContents) -> serde_json::Value {
    let group = |group: &HeapGroup| serde_json::json!({"name": group.name, "bytes": group.bytes, "mappings": group.count});
    serde_json::json!({"bytes": heap.bytes, "mappings": heap.groups.iter().map(group).collect::<Vec<_>>()})
}

/// Reads the memory map of the target.
fn read_map(run: &CaptureRun<'_>) -> Result<HeapContents, Error> {
    match proc::text(run.pid(), "smaps") {
        Ok(text) => Ok(parse(&text)),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Err(Error::Refused {
            what: "reading the memory map".to_owned(),
            reason: error.to_string(),
            remedy:
                "run this server as the target's user, with CAP_SYS_PTRACE where the target is not dumpable"
                    .to_owned(),
        }),
        Err(_) => Err(run.target_exited(std::time::Duration::ZERO)),
    }
}

/// Parses `/proc/PID/smaps` to resident bytes by the name of the mapping.
fn parse(text: &str) -> HeapContents {
    let mut groups: HashMap<String, (u64, u64)> = HashMap::new();
    let mut current_mapping = None;
    for line in text.lines() {
        if let Some(name) = mapping(line) {
            groups.entry(name.clone()).or_default().0 += 1;
            current_mapping = Some(name);
        } else if let (Some(name), Some(size)) = (&current_mapping, line.strip_prefix("Rss:")) {
            let bytes = size.trim().strip_suffix(" kB").and_then(|size| size.trim().parse::<u64>().ok());
            if let Some((_, sum)) = groups.get_mut(name) {
                *sum = sum.saturating_add(bytes.unwrap_or_default().saturating_mul(1024));
            }
        }
    }
    let mut heap = HeapContents::default();
    for (name, (count, bytes)) in groups {
        heap.bytes = heap.bytes.saturating_add(bytes);
        heap.count += count;
        let name = super::call_tree::ProfiledFunction::new(&name, None, None).function;
        heap.groups.push(HeapGroup { name, count, bytes });
    }
    // The map comes from a hash map: sort it completely, so that equal maps give equal answers.
    heap.groups.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    heap
}

/// Returns the name of a mapping, if `line` begins one: `addresses rwxp offset device inode name`.
fn mapping(line: &str) -> Option<String> {
    let (range, rest) = line.split_once(' ')?;
    let (from, to) = range.split_once('-')?;
    let hexadecimal = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !hexadecimal(from) || !hexadecimal(to) {
        return None;
    }
    let name = rest.splitn(5, ' ').nth(4).unwrap_or_default().trim_start();
    Some(match name {
        "" => "(anonymous)".to_owned(),
        "[heap]" => "(heap, by brk)".to_owned(),
        "[stack]" => "(stack of the main thread)".to_owned(),
        name => name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMAPS: &str = "55a0-55b0 r-xp 00000000 fe:00 123                        /app/my app\nSize: 4 kB\nRss:                  100 kB\nPss: 7 kB\n\
        55b0-55c0 rw-p 00000000 00:00 0                          [heap]\nRss:                  900 kB\n\
        7f00-7f10 rw-p 00000000 00:00 0 \nRss:                  50 kB\n7f10-7f20 rw-p 00000000 00:00 0 \nRss: 51 kB\nVmFlags: rd wr\n";

    #[test]
    fn resident_memory_is_summed_by_what_is_mapped() {
        let heap = parse(SMAPS);
        let groups: Vec<_> =
            heap.groups.iter().map(|group| (group.name.as_str(), group.bytes / 1024, group.count)).collect();
        assert_eq!(groups, [("(heap, by brk)", 900, 1), ("(anonymous)", 101, 2), ("/app/my app", 100, 1)]);
        assert_eq!(heap.bytes, 1101 * 1024);
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "(?s)[-0-9a-f :Rkpws\n]{0,200}", end in 0..SMAPS.len()) {
            parse(&text);
            parse(&SMAPS[..end]);
        }
    }
}
