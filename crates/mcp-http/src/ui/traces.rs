//! Flame graphs that were kept.
#![allow(
    clippy::disallowed_methods,
    reason = "the folder is the operator's and lies outside the roots; a name is taken only if it is one of those in it"
)]

use rustix::fs::OFlags;
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

/// How many are shown.
const MOST: usize = 20;
/// What a picture may have; ours have some hundred kilobytes.
const MOST_BYTES: u64 = 16 << 20;

/// A flame graph.
#[derive(Debug)]
pub(super) struct Trace {
    pub(super) name: String,
    pub(super) at: SystemTime,
}

/// The flame graphs in `folder`, the latest first. None where there is no such folder.
pub(super) fn list(folder: &Path) -> Vec<Trace> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut traces: Vec<Trace> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|name| is_name(name))?;
            let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some(Trace { name, at: metadata.modified().ok()? })
        })
        .collect();
    traces.sort_by(|a, b| (b.at, &b.name).cmp(&(a.at, &a.name)));
    traces.truncate(MOST);
    traces
}

/// The flame graph `name`. None where it is none, or gone.
pub(super) fn read(folder: &Path, name: &str) -> Option<String> {
    if !is_name(name) {
        return None;
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(folder.join(name)).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MOST_BYTES {
        return None;
    }
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// As `capture_trace` names them: no separator, nothing above.
fn is_name(name: &str) -> bool {
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    letters && name.len() <= 200 && name.starts_with("trace-") && name.ends_with(".svg")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_but_flame_graphs_of_the_folder_is_read() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = folder.path();
        fs::write(path.join("trace-1.svg"), "<svg/>").unwrap();
        fs::write(path.join("trace-1.cpuprofile"), "secret").unwrap();
        fs::write(path.join("other.svg"), "secret").unwrap();
        fs::write(outside.path().join("trace-2.svg"), "secret").unwrap();
        symlink(outside.path().join("trace-2.svg"), path.join("trace-2.svg")).unwrap();
        assert_eq!(list(path).iter().map(|trace| &*trace.name).collect::<Vec<_>>(), ["trace-1.svg"]);
        assert_eq!(read(path, "trace-1.svg").as_deref(), Some("<svg/>"));
        let above = format!("../{}/trace-2.svg", outside.path().file_name().unwrap().display());
        for name in ["trace-1.cpuprofile", "other.svg", "trace-2.svg", &above, "trace-/../trace-1.svg", ""] {
            assert_eq!(read(path, name), None, "{name}");
        }
    }
}
