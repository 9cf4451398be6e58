//! Projects in memory to compile.
#![allow(dead_code, reason = "each test target uses its part")]

use context_compiler::source::{
    SourceEntryKind, SourceFileContent, SourceFileState, SourceReadError, SourceTree, SourceTreeEntry,
};
use std::collections::BTreeMap;

/// A project in memory, which can list its folders in either order.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryTree {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// True to list folders backwards.
    pub(crate) backwards: bool,
}

impl MemoryTree {
    pub(crate) fn with<P: Into<String>, B: Into<Vec<u8>>>(files: impl IntoIterator<Item = (P, B)>) -> Self {
        let files = files.into_iter().map(|(path, bytes)| (path.into(), bytes.into())).collect();
        Self { files, backwards: false }
    }

    fn bytes(&self, path: &str) -> Result<&Vec<u8>, SourceReadError> {
        let beneath = format!("{path}/");
        match self.files.get(path) {
            Some(bytes) => Ok(bytes),
            None if self.files.keys().any(|other| other.starts_with(&beneath)) => {
                Err(SourceReadError::IsFolder)
            }
            None => Err(SourceReadError::NotFound),
        }
    }
}

impl SourceTree for MemoryTree {
    fn read(&self, path: &str, max_bytes: u64) -> Result<SourceFileContent, SourceReadError> {
        let bytes = self.bytes(path)?;
        if bytes.len() as u64 > max_bytes {
            return Err(SourceReadError::TooLarge { bytes: bytes.len() as u64 });
        }
        Ok(SourceFileContent { bytes: bytes.clone(), state: self.state(path)?, unstable: false })
    }

    fn list(&self, folder: &str) -> Result<Vec<SourceTreeEntry>, SourceReadError> {
        let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut names = BTreeMap::new();
        for path in self.files.keys() {
            let Some(rest) = path.strip_prefix(&start) else { continue };
            let (name, kind) = match rest.split_once('/') {
                Some((name, _)) => (name, SourceEntryKind::Folder),
                None => (rest, SourceEntryKind::File),
            };
            names.insert(name.to_owned(), kind);
        }
        if names.is_empty() {
            return Err(SourceReadError::NotFound);
        }
        let mut entries: Vec<_> =
            names.into_iter().map(|(name, kind)| SourceTreeEntry { name, kind }).collect();
        if self.backwards {
            entries.reverse();
        }
        Ok(entries)
    }

    fn state(&self, path: &str) -> Result<SourceFileState, SourceReadError> {
        let bytes = self.bytes(path)?;
        Ok(SourceFileState { size: bytes.len() as u64, mtime_ns: 0, ctime_ns: 0, inode: 0 })
    }
}

/// Returns a project with the planning documents that agents keep.
pub(crate) fn fixture() -> MemoryTree {
    let long = |title: &str, sections: usize| {
        let mut text = format!("# {title}\n\nWhat everybody must know about it.\n");
        for number in 1..=sections {
            text.push_str(&format!(
                "\n## Part {number}\n\nThe part numbered {number} says what is to be said of {title}.\n\n\
                 - one rule of part {number}\n- another rule of it,\n  which goes on\n\n\
                 ### Detail of {number}\n\n```rust\n// # no heading\nfn part_{number}() {{}}\n```\n"
            ));
        }
        text
    };
    let roadmap = "# Roadmap\n\n| Phase | Status |\n|---|---|\n| 1. Core | Complete |\n| 2. Tools | In progress |\n\n\
                   ## Phase 1: Core\n\nThe core was built.\n\n## Phase 2: Tools\n\nThe tools are being built.\n\n\
                   ## Phase 3: Server\n\nThe server comes last.\n";
    MemoryTree::with([
        (".yolo-planning/codebase/ARCHITECTURE.md", long("Architecture", 6)),
        (".yolo-planning/codebase/STACK.md", long("Stack", 2)),
        (".yolo-planning/codebase/CONVENTIONS.md", long("Conventions", 4)),
        (".yolo-planning/ROADMAP.md", roadmap.to_owned()),
        (".yolo-planning/REQUIREMENTS.md", long("Requirements", 3)),
        (
            ".yolo-planning/phases/02-tools/02-01-PLAN.md",
            "---\nphase: 2\n---\n\n# Plan one\n\nDo `this`.\n".to_owned(),
        ),
        (".yolo-planning/phases/02-tools/02-02-PLAN.md", "# Plan two\n\n````\n```\n````\n".to_owned()),
        (".yolo-planning/phases/02-tools/02-03-PLAN.md", "# Plan three\n".to_owned()),
        (".yolo-planning/phases/02-tools/02-RESEARCH.md", "# Research\n".to_owned()),
        ("CONVENTIONS.md", "# Another one\n".to_owned()),
        ("notes.txt", "a note\nof two lines\n".to_owned()),
        ("src/main.rs", "fn main() {}\n".to_owned()),
    ])
}
