//! The flame graphs that `capture_trace` has kept, for the page.
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

/// The number of flame graphs in a list.
const MAX_LISTED: usize = 20;
/// The size of a picture, in bytes. `capture_trace` writes some hundred kilobytes.
const MAX_BYTES: u64 = 16 << 20;

/// A flame graph in the folder.
#[derive(Debug)]
pub(crate) struct FlameGraph {
    pub(crate) name: String,
    pub(crate) at: SystemTime,
}

/// Returns the latest flame graphs in `folder`, the latest first; none where there is no such folder.
pub(crate) fn list(folder: &Path) -> Vec<FlameGraph> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut traces: Vec<FlameGraph> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|name| is_name(name))?;
            let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some(FlameGraph { name, at: metadata.modified().ok()? })
        })
        .collect();
    traces.sort_by(|a, b| (b.at, &b.name).cmp(&(a.at, &a.name)));
    traces.truncate(MAX_LISTED);
    traces
}

/// Reads the flame graph `name`. Returns `None` where there is none of that name.
pub(crate) fn read(folder: &Path, name: &str) -> Option<String> {
    if !is_name(name) {
        return None;
    }
    // NOFOLLOW keeps a link from leading out of the folder; without NONBLOCK, opening a pipe would wait for a writer.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(folder.join(name)).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Returns true for a name that `capture_trace` gives: without a separator, so that it leads nowhere else.
fn is_name(name: &str) -> bool {
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    letters && name.len() <= 200 && name.starts_with("trace-") && name.ends_with(".svg")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_flame_graphs_of_the_folder_are_read() {
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
