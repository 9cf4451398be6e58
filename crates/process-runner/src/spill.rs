//! Everything a program printed, in a private file, once there is more of it than memory keeps.
#![allow(
    clippy::disallowed_methods,
    reason = "the one place of this crate that makes a file: its own, under a new name"
)]

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::sync::Notify;

use crate::text::human_bytes;

/// Where and how much of a long output is written to a file.
///
/// The file is made only when a stream passes what memory keeps; it then holds the stream from its first
/// byte, with secrets hidden. It is the caller's to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spill {
    /// The folder of the file. It must exist.
    pub dir: PathBuf,
    /// The most bytes written for one stream; a marker line says how much is missing. 64 MiB by default.
    pub max_bytes: u64,
}

impl Spill {
    /// Long outputs go to new files in `dir`, at most 64 MiB of each stream.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), max_bytes: 64 * 1024 * 1024 }
    }

    /// Writes at most this many bytes of each stream.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }
}

/// Chunks on their way to the disk, at most.
const QUEUE: usize = 16;
/// How long `finish` waits for a disk that does not answer.
const PATIENCE: Duration = Duration::from_millis(250);

/// One spill file and the thread that writes it.
///
/// Writing blocks, on a slow or hung disk for long, so it happens on a thread of its own, whichever runtime
/// the run is in. The queue between is short: [`SpillWriter::backlogged`] tells the reader to stop until it
/// has drained, which holds the program back through its pipe.
#[derive(Debug)]
pub(crate) struct SpillWriter {
    path: PathBuf,
    chunks: mpsc::SyncSender<Vec<u8>>,
    result: mpsc::Receiver<io::Result<()>>,
    queue: Arc<Queue>,
    /// Bytes still to be written before the cap.
    room: u64,
    dropped: u64,
    max_bytes: u64,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: AtomicUsize,
    drained: Notify,
}

impl SpillWriter {
    pub(crate) fn create(spill: &Spill) -> io::Result<Self> {
        let (path, file) = private_file(&spill.dir)?;
        let (chunks, incoming) = mpsc::sync_channel::<Vec<u8>>(QUEUE);
        let (report, result) = mpsc::sync_channel(1);
        let queue = Arc::new(Queue::default());
        let writer_queue = Arc::clone(&queue);
        let writer = move || {
            let written = write_all(file, &incoming, &writer_queue);
            let _ = report.send(written);
        };
        if let Err(error) = std::thread::Builder::new().name("spill".into()).spawn(writer) {
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        Ok(Self {
            path,
            chunks,
            result,
            queue,
            room: spill.max_bytes,
            dropped: 0,
            max_bytes: spill.max_bytes,
        })
    }

    /// Queues `bytes`. Blocks if the queue is full, which a caller that obeys `backlogged` never meets.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let take = usize::try_from(self.room).unwrap_or(usize::MAX).min(bytes.len());
        self.room -= take as u64;
        self.dropped += (bytes.len() - take) as u64;
        if take > 0 {
            self.send(bytes[..take].to_vec());
        }
    }

    fn send(&self, chunk: Vec<u8>) {
        self.queue.waiting.fetch_add(1, Ordering::AcqRel);
        // Fails only once the writer has ended, at an error that `finish` reports.
        if self.chunks.send(chunk).is_err() {
            self.queue.waiting.store(0, Ordering::Release);
        }
    }

    /// The writer is behind: read no more until [`SpillWriter::drained`].
    pub(crate) fn backlogged(&self) -> bool {
        self.queue.waiting.load(Ordering::Acquire) >= QUEUE / 2
    }

    /// Resolves when the writer has caught up, or has given up.
    pub(crate) fn drained(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let queue = Arc::clone(&self.queue);
        async move {
            loop {
                let notified = queue.drained.notified();
                if queue.waiting.load(Ordering::Acquire) == 0 {
                    return;
                }
                notified.await;
            }
        }
    }

    /// Writes the marker if bytes are missing, and waits for the writer, but not for long.
    pub(crate) fn finish(self) -> (PathBuf, Option<String>) {
        if self.dropped > 0 {
            let marker = format!(
                "\n[... {} more left out: this file is limited to {} ...]\n",
                human_bytes(self.dropped),
                human_bytes(self.max_bytes)
            );
            self.send(marker.into_bytes());
        }
        drop(self.chunks);
        let error = match self.result.recv_timeout(PATIENCE) {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("the file is incomplete: {error}")),
            Err(_) => Some("the disk is slow: the file was still being written".to_owned()),
        };
        (self.path, error)
    }
}

fn write_all(mut file: File, incoming: &mpsc::Receiver<Vec<u8>>, queue: &Queue) -> io::Result<()> {
    let result = loop {
        let Ok(chunk) = incoming.recv() else { break Ok(()) };
        if let Err(error) = file.write_all(&chunk) {
            break Err(error);
        }
        if queue.waiting.fetch_sub(1, Ordering::AcqRel) <= 1 {
            queue.drained.notify_waiters();
        }
    };
    queue.waiting.store(0, Ordering::Release);
    queue.drained.notify_waiters();
    result
}

/// A new file that only this user can read, under a name that nobody can guess and so prepare for.
fn private_file(dir: &Path) -> io::Result<(PathBuf, File)> {
    let mut options = OpenOptions::new();
    // `create_new` is O_EXCL: it fails on whatever stands there, a dangling symlink included.
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(libc::O_NOFOLLOW);
    }
    let path = dir.join(format!("output-{:016x}{:016x}.log", random(), random()));
    let file = options.open(&path)?;
    Ok((path, file))
}

/// A number from the keys that the standard library draws from the operating system for its hash maps.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
