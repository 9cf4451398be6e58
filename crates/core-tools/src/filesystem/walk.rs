//! A walk over everything below a folder, by several threads, by directory handle.
//!
//! A folder is opened in the handle of the one it lies in, and never through a link; so what the walk reaches
//! lies below where it began, whoever moves things about meanwhile. Its order is that of chance: whoever needs
//! an order sorts by [`Found::key`].

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::error::Error;
use super::gitignore::Ignored;
use super::list::is_hidden;
use crate::workspace::{ConfinedPath, Entry, Folder, Kind};

/// More threads than this wait for the disk and for each other.
const MAX_THREADS: usize = 8;
/// A folder with more entries than this is worked on by several threads.
const SHARE: usize = 256;

/// What a walk leaves out. `.git` is always left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter {
    /// Go by the `.gitignore` files, those above the start included.
    pub(super) gitignore: bool,
    /// Include names that begin with a dot.
    pub(super) hidden: bool,
}

/// Something that was found.
pub(super) struct Found<'a> {
    /// The open folder it lies in.
    pub(super) folder: &'a Folder,
    pub(super) name: &'a OsStr,
    pub(super) kind: Kind,
    place: &'a Place,
}

/// Where a folder lies below the start.
struct Place {
    /// Relative to the root, as `.gitignore` patterns see it.
    path: PathBuf,
    /// Relative to the start, as globs see it.
    below: PathBuf,
    /// The names below the start, each ended by a NUL.
    key: Vec<u8>,
    ignored: Ignored,
}

impl Found<'_> {
    /// Writes what sorts as the path does, folder by folder: its names with a NUL between them.
    pub(super) fn key(&self, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(&self.place.key);
        key.extend_from_slice(self.name.as_encoded_bytes());
    }

    /// Writes the path below the start.
    pub(super) fn path(&self, path: &mut PathBuf) {
        path.clear();
        path.push(&self.place.below);
        path.push(self.name);
    }
}

/// The path with this key, as a client reads it: `a/b`, after `start` and a slash.
pub(super) fn shown(start: &str, key: &[u8]) -> String {
    let names = key.split(|&byte| byte == 0).map(|name| {
        let name = String::from_utf8_lossy(name);
        crate::workspace::printable(OsStr::new(&*name))
    });
    let below = names.collect::<Vec<_>>().join("/");
    match start {
        "." => below,
        // The root itself, if it is not the first.
        start if start.ends_with(":.") => format!("{}{below}", start.trim_end_matches('.')),
        start => format!("{}/{below}", start.trim_end_matches('/')),
    }
}

/// What a thread does with what is found.
pub(super) trait Visitor: Send {
    /// Takes one thing. `Break` leaves out what is below it.
    fn visit(&mut self, found: &Found<'_>) -> ControlFlow<()>;
}

/// What a walk came across besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unread {
    /// Folders that could not be read.
    pub(super) folders: u64,
}

/// Walks everything below `start`, in as many threads as there are processors (2 to 8), each with a visitor of
/// its own. Gives the visitors back.
///
/// # Errors
/// `start` cannot be opened, cancellation.
pub(super) fn walk<V: Visitor>(
    start: &ConfinedPath,
    filter: Filter,
    cancel: &CancellationToken,
    visitor: impl Fn() -> V,
) -> Result<(Vec<V>, Unread), Error> {
    let folder = Arc::new(start.open_folder()?);
    let place = Place {
        path: start.relative().to_owned(),
        below: PathBuf::new(),
        key: Vec::new(),
        ignored: if filter.gitignore { Ignored::above(start) } else { Ignored::default() },
    };
    let queue = Queue::default();
    queue.push([Task::List { folder, place }]);
    let threads = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, MAX_THREADS);
    let worker = |mut visitor: V| {
        let mut worker =
            Worker { queue: &queue, filter, cancel, unread: Unread::default(), path: PathBuf::new() };
        while let Some(task) = queue.take() {
            let _done = Done(&queue);
            if cancel.is_cancelled() {
                queue.close();
            } else {
                worker.work(task, &mut visitor);
            }
        }
        (visitor, worker.unread)
    };
    let mut visitors = Vec::with_capacity(threads);
    let mut unread = Unread::default();
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .filter_map(|_| {
                let visitor = visitor();
                // Without threads to be had, this one does the work.
                std::thread::Builder::new()
                    .name("walk".to_owned())
                    .spawn_scoped(scope, || worker(visitor))
                    .ok()
            })
            .collect();
        let mut done = vec![worker(visitor())];
        done.extend(others.into_iter().filter_map(|thread| thread.join().ok()));
        for (visitor, seen) in done {
            visitors.push(visitor);
            unread.folders += seen.folders;
        }
    });
    if cancel.is_cancelled() { Err(Error::Cancelled) } else { Ok((visitors, unread)) }
}

/// A piece of work.
enum Task {
    /// List this folder, which is the start.
    List { folder: Arc<Folder>, place: Place },
    /// Open and list a folder. Its parent stays open until then; so about as many folders are open as the
    /// tree is deep, and not as many as it is wide.
    Enter { parent: Arc<Folder>, place: Arc<Place>, name: OsString },
    /// Visit some entries of a folder.
    Visit { folder: Arc<Folder>, place: Arc<Place>, entries: Vec<Entry> },
}

/// The work that waits, the newest first.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    tasks: Vec<Task>,
    /// Tasks that wait or are being worked on.
    open: usize,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, tasks: impl IntoIterator<Item = Task>) {
        let mut state = self.state();
        let before = state.tasks.len();
        state.tasks.extend(tasks);
        let new = state.tasks.len() - before;
        state.open += new;
        drop(state);
        if new > 1 {
            self.changed.notify_all();
        } else if new == 1 {
            self.changed.notify_one();
        }
    }

    /// The next task, or none once all are done.
    fn take(&self) -> Option<Task> {
        let mut state = self.state();
        loop {
            if let Some(task) = state.tasks.pop() {
                return Some(task);
            }
            if state.open == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Drops what waits.
    fn close(&self) {
        let mut state = self.state();
        state.open -= state.tasks.len();
        state.tasks.clear();
    }
}

/// Says that a task is done, also when it panics: the other threads must not wait for it.
struct Done<'a>(&'a Queue);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.open -= 1;
        if state.open == 0 {
            self.0.changed.notify_all();
        }
    }
}

struct Worker<'a> {
    queue: &'a Queue,
    filter: Filter,
    cancel: &'a CancellationToken,
    unread: Unread,
    /// Where paths are put together.
    path: PathBuf,
}

impl Worker<'_> {
    fn work<V: Visitor>(&mut self, task: Task, visitor: &mut V) {
        match task {
            Task::List { folder, place } => self.list(&folder, place, visitor),
            Task::Visit { folder, place, entries } => self.visit(&folder, &place, &entries, visitor),
            Task::Enter { parent, place, name } => {
                let Ok(folder) = parent.child(&name) else {
                    self.unread.folders += 1;
                    return;
                };
                drop(parent);
                let mut key = Vec::with_capacity(place.key.len() + name.len() + 1);
                key.extend_from_slice(&place.key);
                key.extend_from_slice(name.as_encoded_bytes());
                key.push(0);
                let below = Place {
                    path: place.path.join(&name),
                    below: place.below.join(&name),
                    key,
                    ignored: place.ignored.clone(),
                };
                self.list(&Arc::new(folder), below, visitor);
            }
        }
    }

    fn list<V: Visitor>(&mut self, folder: &Arc<Folder>, mut place: Place, visitor: &mut V) {
        let Ok(listed) = folder.entries() else {
            self.unread.folders += 1;
            return;
        };
        let mut entries: Vec<Entry> = listed.map_while(Result::ok).collect();
        let gitignore = |entry: &Entry| entry.name == ".gitignore";
        if self.filter.gitignore && entries.iter().any(gitignore) {
            place.ignored = place.ignored.within(folder, &place.path);
        }
        let place = Arc::new(place);
        // What is many is shared: a single large folder keeps all threads busy as well.
        if entries.len() > SHARE {
            let mut tasks = Vec::new();
            while entries.len() > SHARE {
                let entries = entries.split_off(entries.len() - SHARE);
                tasks.push(Task::Visit { folder: Arc::clone(folder), place: Arc::clone(&place), entries });
            }
            self.queue.push(tasks);
        }
        self.visit(folder, &place, &entries, visitor);
    }

    fn visit<V: Visitor>(
        &mut self,
        folder: &Arc<Folder>,
        place: &Arc<Place>,
        entries: &[Entry],
        visitor: &mut V,
    ) {
        let mut folders = Vec::new();
        for entry in entries {
            if self.cancel.is_cancelled() {
                return;
            }
            if self.is_left_out(place, entry) {
                continue;
            }
            let found = Found { folder, name: &entry.name, kind: entry.kind, place };
            if visitor.visit(&found).is_continue() && entry.kind == Kind::Directory {
                folders.push(Task::Enter {
                    parent: Arc::clone(folder),
                    place: Arc::clone(place),
                    name: entry.name.clone(),
                });
            }
        }
        self.queue.push(folders);
    }

    fn is_left_out(&mut self, place: &Place, entry: &Entry) -> bool {
        if entry.name == ".git" || (!self.filter.hidden && is_hidden(&entry.name)) {
            return true;
        }
        if place.ignored.is_empty() {
            return false;
        }
        self.path.clear();
        self.path.push(&place.path);
        self.path.push(&entry.name);
        place.ignored.is_ignored(&self.path, entry.kind == Kind::Directory)
    }
}
