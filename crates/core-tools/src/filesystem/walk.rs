//! A walk over everything below a folder, by several threads, by directory handle.
//!
//! A folder is opened by name in the handle of its parent, and never through a link; so everything that the walk
//! reaches lies below its start, even if others move folders about meanwhile. Entries come in no particular
//! order: a caller that needs one sorts by [`WalkEntry::write_key`].

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::entry::is_hidden;
use super::error::Error;
use super::ignore_files::{ApplicableIgnoreFiles, GITIGNORE, push_name, slashed};
use super::work_queue::WalkQueue;
use crate::workspace::{ConfinedPath, DirEntry, Folder, PathKind, printable};

/// The most threads of one walk. More of them wait for the disk and for each other.
const MAX_THREADS: usize = 8;
/// The most entries of one task. A folder with more is shared among several threads.
const MAX_TASK_ENTRIES: usize = 256;

/// The entries that a walk leaves out. `.git` is always left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkFilter {
    /// Apply the `.gitignore` files, including those above the start, and `.git/info/exclude` of the root.
    pub(super) gitignore: bool,
    /// Include names that begin with a dot.
    pub(super) hidden: bool,
}

/// A directory entry that a walk found.
pub(super) struct WalkEntry<'a> {
    /// The open folder that holds it.
    pub(super) folder: &'a Folder,
    pub(super) name: &'a OsStr,
    pub(super) kind: PathKind,
    position: &'a WalkedFolderPosition,
}

/// The position of a folder below the start, in the forms that its entries need.
struct WalkedFolderPosition {
    /// Relative to the root, as the rules of ignore files see it.
    path: Vec<u8>,
    /// Relative to the start, as globs see it.
    below: PathBuf,
    /// The names below the start, each ended by a NUL.
    key: Vec<u8>,
    /// The rules that hold in the folder.
    ignored: ApplicableIgnoreFiles,
}

// Both write into a buffer of the caller's: an allocation for each entry would cost more than looking at it.
impl WalkEntry<'_> {
    /// Writes the sort key: the names of the path below the start, with a NUL between them.
    ///
    /// Keys sort folder by folder. Paths themselves do not: `a-b/x` comes before `a/x`, as `-` is less than `/`.
    pub(super) fn write_key(&self, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(&self.position.key);
        key.extend_from_slice(self.name.as_encoded_bytes());
    }

    /// Writes the path below the start.
    pub(super) fn write_path(&self, path: &mut PathBuf) {
        path.clear();
        path.push(&self.position.below);
        path.push(self.name);
    }
}

/// Returns the path with this sort key as clients read it: relative to the root, with slashes.
pub(super) fn display_path(start: &str, key: &[u8]) -> String {
    let names = key.split(|&byte| byte == 0).map(|name| {
        let name = String::from_utf8_lossy(name);
        printable(OsStr::new(&*name))
    });
    let below = names.collect::<Vec<_>>().join("/");
    match start {
        "." => below,
        // A root that is not the first is shown as `name:.`.
        start if start.ends_with(":.") => format!("{}{below}", start.trim_end_matches('.')),
        start => format!("{}/{below}", start.trim_end_matches('/')),
    }
}

/// Returns the path below the start with this sort key. A name that is no UTF-8 becomes one that does not exist.
pub(super) fn relative_path(key: &[u8]) -> String {
    let names: Vec<_> = key.split(|&byte| byte == 0).map(String::from_utf8_lossy).collect();
    names.join("/")
}

/// Receives the entries that one thread finds.
pub(super) trait WalkVisitor: Send {
    /// Takes one entry. `Break` on a folder skips everything below it.
    fn visit(&mut self, entry: &WalkEntry<'_>) -> ControlFlow<()>;

    /// Takes one entry that the ignore files leave out; a folder stands for everything in it.
    fn visit_ignored(&mut self, _entry: &WalkEntry<'_>) {}
}

/// The outcome of a walk.
pub(super) struct WalkOutcome<V> {
    /// The visitor of each thread.
    pub(super) visitors: Vec<V>,
    /// The number of folders that could not be read.
    pub(super) unreadable_folders: u64,
}

/// Walks everything below `start`, in as many threads as there are processors (2 to 8), each with a visitor of
/// its own.
///
/// # Errors
/// `start` cannot be opened, cancellation.
pub(super) fn walk<V: WalkVisitor>(
    start: &ConfinedPath,
    filter: WalkFilter,
    cancel: &CancellationToken,
    new_visitor: impl Fn() -> V,
) -> Result<WalkOutcome<V>, Error> {
    // Shared: the tasks of its entries keep a folder open until the last of them has run.
    let folder = Arc::new(start.open_folder()?);
    let position = WalkedFolderPosition {
        path: slashed(start.relative()),
        below: PathBuf::new(),
        key: Vec::new(),
        ignored: if filter.gitignore {
            ApplicableIgnoreFiles::above(start)
        } else {
            ApplicableIgnoreFiles::default()
        },
    };
    let queue = WalkQueue::new();
    queue.push([WalkTask::List { folder, position }]);
    // Two even on one processor: while one waits for the disk, the other works.
    let threads = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, MAX_THREADS);
    let work = |mut visitor: V| {
        let mut worker =
            WalkThread { queue: &queue, filter, cancel, unreadable_folders: 0, path: Vec::new() };
        while let Some((task, _guard)) = queue.take() {
            if cancel.is_cancelled() {
                // Emptied, so that threads that wait for a task end too.
                queue.clear();
            } else {
                worker.run(task, &mut visitor);
            }
        }
        (visitor, worker.unreadable_folders)
    };
    let mut walked = WalkOutcome { visitors: Vec::with_capacity(threads), unreadable_folders: 0 };
    std::thread::scope(|scope| {
        let spawned: Vec<_> = (1..threads)
            .filter_map(|_| {
                let visitor = new_visitor();
                // Where no thread can be started, this one does all the work.
                std::thread::Builder::new().name("walk".to_owned()).spawn_scoped(scope, || work(visitor)).ok()
            })
            .collect();
        let mut finished = vec![work(new_visitor())];
        finished.extend(spawned.into_iter().filter_map(|thread| thread.join().ok()));
        for (visitor, unreadable_folders) in finished {
            walked.visitors.push(visitor);
            walked.unreadable_folders += unreadable_folders;
        }
    });
    if cancel.is_cancelled() { Err(Error::Cancelled) } else { Ok(walked) }
}

/// A task of a walk.
enum WalkTask {
    /// List this folder, which is the start.
    List { folder: Arc<Folder>, position: WalkedFolderPosition },
    /// Open and list a folder. Its parent stays open until then; so about as many folders are open as the
    /// tree is deep, and not as many as it is wide.
    Enter { parent: Arc<Folder>, position: Arc<WalkedFolderPosition>, name: OsString },
    /// Visit some entries of a folder.
    Visit { folder: Arc<Folder>, position: Arc<WalkedFolderPosition>, entries: Vec<DirEntry> },
}

/// One thread of a walk.
struct WalkThread<'a> {
    queue: &'a WalkQueue<WalkTask>,
    filter: WalkFilter,
    cancel: &'a CancellationToken,
    unreadable_folders: u64,
    /// A buffer in which paths are put together.
    path: Vec<u8>,
}

impl WalkThread<'_> {
    fn run<V: WalkVisitor>(&mut self, task: WalkTask, visitor: &mut V) {
        match task {
            WalkTask::List { folder, position } => self.list(&folder, position, visitor),
            WalkTask::Visit { folder, position, entries } => {
                self.visit(&folder, &position, &entries, visitor);
            }
            WalkTask::Enter { parent, position, name } => {
                let Ok(folder) = parent.child(&name) else {
                    self.unreadable_folders += 1;
                    return;
                };
                // Before the folder is listed, so that few folders are open at a time.
                drop(parent);
                let mut key = Vec::with_capacity(position.key.len() + name.len() + 1);
                key.extend_from_slice(&position.key);
                key.extend_from_slice(name.as_encoded_bytes());
                key.push(0);
                let mut path = position.path.clone();
                push_name(&mut path, &name);
                let below = WalkedFolderPosition {
                    path,
                    below: position.below.join(&name),
                    key,
                    ignored: position.ignored.clone(),
                };
                self.list(&Arc::new(folder), below, visitor);
            }
        }
    }

    fn list<V: WalkVisitor>(
        &mut self,
        folder: &Arc<Folder>,
        mut position: WalkedFolderPosition,
        visitor: &mut V,
    ) {
        let Ok(entries) = folder.entries() else {
            self.unreadable_folders += 1;
            return;
        };
        let mut entries: Vec<DirEntry> = entries.map_while(Result::ok).collect();
        // Looked for in the list: to try to open it in every folder costs a system call for each.
        let is_gitignore = |entry: &DirEntry| entry.name == GITIGNORE;
        if self.filter.gitignore && entries.iter().any(is_gitignore) {
            position.ignored = position.ignored.within(folder, &position.path);
        }
        let position = Arc::new(position);
        // Shared, so that a single large folder keeps all threads busy as well.
        if entries.len() > MAX_TASK_ENTRIES {
            let mut tasks = Vec::new();
            while entries.len() > MAX_TASK_ENTRIES {
                let entries = entries.split_off(entries.len() - MAX_TASK_ENTRIES);
                tasks.push(WalkTask::Visit {
                    folder: Arc::clone(folder),
                    position: Arc::clone(&position),
                    entries,
                });
            }
            self.queue.push(tasks);
        }
        self.visit(folder, &position, &entries, visitor);
    }

    fn visit<V: WalkVisitor>(
        &mut self,
        folder: &Arc<Folder>,
        position: &Arc<WalkedFolderPosition>,
        entries: &[DirEntry],
        visitor: &mut V,
    ) {
        let mut folders = Vec::new();
        for entry in entries {
            if self.cancel.is_cancelled() {
                return;
            }
            if entry.name == ".git" || (!self.filter.hidden && is_hidden(&entry.name)) {
                continue;
            }
            let found = WalkEntry { folder, name: &entry.name, kind: entry.kind, position };
            if self.is_ignored(position, entry) {
                visitor.visit_ignored(&found);
                continue;
            }
            if visitor.visit(&found).is_continue() && entry.kind == PathKind::Directory {
                folders.push(WalkTask::Enter {
                    parent: Arc::clone(folder),
                    position: Arc::clone(position),
                    name: entry.name.clone(),
                });
            }
        }
        self.queue.push(folders);
    }

    fn is_ignored(&mut self, position: &WalkedFolderPosition, entry: &DirEntry) -> bool {
        if position.ignored.is_empty() {
            return false;
        }
        self.path.clear();
        self.path.extend_from_slice(&position.path);
        push_name(&mut self.path, &entry.name);
        position.ignored.is_ignored(&self.path, entry.kind == PathKind::Directory)
    }
}
