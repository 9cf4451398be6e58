//! Writes a stream to a private file once it is longer than memory keeps.
#![allow(clippy::disallowed_methods, reason = "creates a file of its own under a new name")]

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::sync::Notify;

use crate::lossy_text::human_bytes;

/// The settings of a file for a long stream.
///
/// The file is created only when a stream exceeds the memory limit. The file then has the stream from its first byte,
/// with secrets hidden. The caller must remove the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpillOptions {
    /// The folder in which the file is created. It must exist.
    pub dir: PathBuf,
    /// The most bytes written for one stream. A marker line says how much is missing. 64 MiB by default.
    pub max_bytes: u64,
}

impl SpillOptions {
    /// Returns settings for new files in `dir` with at most 64 MiB of each stream.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), max_bytes: 64 * 1024 * 1024 }
    }

    /// Sets [`SpillOptions::max_bytes`].
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }
}

/// The most chunks on their way to the disk.
const MAX_QUEUED_CHUNKS: usize = 16;
/// The time for which `finish` waits for a disk that does not answer.
const FINISH_TIMEOUT: Duration = Duration::from_millis(250);

/// A spill file with the thread that writes it.
///
/// Writing can block for long on a slow or hung disk, so it happens on a thread of its own. The queue to the thread is
/// short: [`SpillWriter::is_backlogged`] tells the reader to stop until it has drained, which holds the program back
/// through its pipe.
#[derive(Debug)]
pub(crate) struct SpillWriter {
    path: PathBuf,
    chunks: mpsc::SyncSender<Vec<u8>>,
    result: mpsc::Receiver<io::Result<()>>,
    queue: Arc<ChunkQueue>,
    /// The bytes that may still be written.
    remaining: u64,
    /// The bytes that were left out.
    dropped: u64,
    max_bytes: u64,
}

/// The number of queued chunks, and a notification when there are none.
#[derive(Debug, Default)]
struct ChunkQueue {
    queued_chunks: AtomicUsize,
    drained: Notify,
}

impl SpillWriter {
    /// Creates the file and starts the thread.
    ///
    /// # Errors
    /// If there is no such folder, no permission or no thread.
    pub(crate) fn create(spill: &SpillOptions) -> io::Result<Self> {
        let (path, file) = private_file(&spill.dir)?;
        Self::to_file(file, path, spill.max_bytes)
    }

    fn to_file(file: File, path: PathBuf, max_bytes: u64) -> io::Result<Self> {
        let (chunks, incoming) = mpsc::sync_channel::<Vec<u8>>(MAX_QUEUED_CHUNKS);
        // Room for the one result, so that the thread can end although nobody waits for it.
        let (report, result) = mpsc::sync_channel(1);
        let queue = Arc::new(ChunkQueue::default());
        let writer_queue = Arc::clone(&queue);
        let writer = move || {
            let written = write_chunks(file, &incoming, &writer_queue);
            let _ = report.send(written);
        };
        if let Err(error) = std::thread::Builder::new().name("spill".into()).spawn(writer) {
            // Without a thread nothing would ever be written to it.
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        Ok(Self { path, chunks, result, queue, remaining: max_bytes, dropped: 0, max_bytes })
    }

    /// Queues `bytes`. It blocks if the queue is full, which does not happen to a caller that checks `is_backlogged`.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let take = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(bytes.len());
        self.remaining -= take as u64;
        self.dropped += (bytes.len() - take) as u64;
        if take > 0 {
            self.send(bytes[..take].to_vec());
        }
    }

    fn send(&self, chunk: Vec<u8>) {
        self.queue.queued_chunks.fetch_add(1, Ordering::AcqRel);
        // It fails only once the writer has ended with an error, which `finish` reports.
        if self.chunks.send(chunk).is_err() {
            self.queue.queued_chunks.store(0, Ordering::Release);
        }
    }

    /// Returns true if the writer is behind. The caller should read no more until [`SpillWriter::drained`].
    pub(crate) fn is_backlogged(&self) -> bool {
        self.queue.queued_chunks.load(Ordering::Acquire) >= MAX_QUEUED_CHUNKS / 2
    }

    /// Waits until the writer has caught up or failed.
    pub(crate) fn drained(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let queue = Arc::clone(&self.queue);
        async move {
            loop {
                let notified = queue.drained.notified();
                if queue.queued_chunks.load(Ordering::Acquire) == 0 {
                    return;
                }
                notified.await;
            }
        }
    }

    /// Writes the marker line if bytes are missing, and waits for the writer, up to a limit. Returns the path, and the
    /// reason if the file is not complete.
    pub(crate) fn finish(self) -> (PathBuf, Option<String>) {
        if self.dropped > 0 {
            let marker = format!(
                "\n[... {} more left out: this file is limited to {} ...]\n",
                human_bytes(self.dropped),
                human_bytes(self.max_bytes)
            );
            self.send(marker.into_bytes());
        }
        // The thread ends when the channel does.
        drop(self.chunks);
        let error = match self.result.recv_timeout(FINISH_TIMEOUT) {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("the file is incomplete: {error}")),
            Err(_) => Some("the disk is slow: the file was still being written".to_owned()),
        };
        (self.path, error)
    }
}

/// Writes chunks until there are no more or one fails. It is the body of the thread.
fn write_chunks(mut file: File, incoming: &mpsc::Receiver<Vec<u8>>, queue: &ChunkQueue) -> io::Result<()> {
    let result = loop {
        let Ok(chunk) = incoming.recv() else { break Ok(()) };
        if let Err(error) = file.write_all(&chunk) {
            break Err(error);
        }
        if queue.queued_chunks.fetch_sub(1, Ordering::AcqRel) <= 1 {
            queue.drained.notify_waiters();
        }
    };
    // After an error too, or the reader would wait for ever.
    queue.queued_chunks.store(0, Ordering::Release);
    queue.drained.notify_waiters();
    result
}

/// Creates a file that only this user can read, under a name that nobody can guess and put a link at.
fn private_file(dir: &Path) -> io::Result<(PathBuf, File)> {
    let mut options = OpenOptions::new();
    // `create_new` is O_EXCL: it fails if anything has the name, a dangling symlink included.
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Output may hold what the caller's other users must not read.
        options.mode(0o600).custom_flags(libc::O_NOFOLLOW);
    }
    let path = dir.join(format!("output-{:016x}{:016x}.log", random_number(), random_number()));
    let file = options.open(&path)?;
    Ok((path, file))
}

/// Returns a random number, from the keys that the standard library draws from the operating system for hash maps.
fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    #[test]
    fn a_file_holds_exactly_its_limit_and_a_marker() {
        let dir = dir();
        let mut writer =
            SpillWriter::create(&SpillOptions::new(dir.path()).max_bytes(2_000_000)).expect("creates");
        let chunk: Vec<u8> = (0..=255).cycle().take(65_536).collect();
        for _ in 0..50 {
            writer.write(&chunk);
        }
        let (path, error) = writer.finish();
        assert_eq!(error, None);
        let written = std::fs::read(path).expect("the file is there");
        let expected: Vec<u8> = chunk.iter().copied().cycle().take(2_000_000).collect();
        assert!(written.starts_with(&expected));
        let marker = String::from_utf8_lossy(&written[2_000_000..]);
        assert_eq!(marker, "\n[... 1.2 MB more left out: this file is limited to 2.0 MB ...]\n");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_private_and_its_name_is_new_each_time() {
        use std::os::unix::fs::PermissionsExt;
        let dir = dir();
        let (first, _) = private_file(dir.path()).expect("creates");
        let (second, file) = private_file(dir.path()).expect("creates");
        assert_ne!(first, second);
        let mode = file.metadata().expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(first.file_name().is_some_and(|name| name.len() >= 32), "{first:?}");
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let dir = dir();
        assert!(SpillWriter::create(&SpillOptions::new(dir.path().join("missing"))).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_reported_at_the_end_and_blocks_nobody() {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("Linux has /dev/full");
        let mut writer = SpillWriter::to_file(full, "full".into(), u64::MAX).expect("a thread");
        for _ in 0..100 {
            writer.write(&[b'x'; 65_536]);
        }
        let error = writer.finish().1.expect("the disk is full");
        assert!(error.contains("No space left on device"), "{error}");
    }

    /// A FIFO that nobody reads stands for a disk that hangs.
    #[cfg(target_os = "linux")]
    fn hung_disk(dir: &Path) -> (File, File) {
        let path = dir.join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("a FIFO");
        let both = OpenOptions::new().read(true).write(true).open(&path).expect("opens");
        let writer = OpenOptions::new().write(true).open(&path).expect("opens");
        (both, writer)
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_hung_disk_is_given_up_at_the_end() {
        let dir = dir();
        let (_reader, file) = hung_disk(dir.path());
        let mut writer = SpillWriter::to_file(file, "hung".into(), u64::MAX).expect("a thread");
        writer.write(&[b'x'; 1_000_000]);
        let started = std::time::Instant::now();
        let error = writer.finish().1.expect("the file is not written");
        assert!(error.contains("slow"), "{error}");
        assert!(started.elapsed() < FINISH_TIMEOUT * 8, "{:?}", started.elapsed());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_slow_disk_holds_the_reader_back_until_it_has_caught_up() {
        use std::io::Read;
        let dir = dir();
        let (mut reader, file) = hung_disk(dir.path());
        let mut writer = SpillWriter::to_file(file, "slow".into(), u64::MAX).expect("a thread");
        let mut queued = 0;
        while !writer.is_backlogged() {
            writer.write(&[b'x'; 65_536]);
            queued += 65_536;
            assert!(queued <= 65_536 * MAX_QUEUED_CHUNKS, "it is never backlogged");
        }
        let drain = std::thread::spawn(move || {
            reader.read_exact(&mut vec![0; queued]).expect("all of it comes");
            reader
        });
        tokio::time::timeout(Duration::from_secs(30), writer.drained()).await.expect("it catches up");
        assert!(!writer.is_backlogged());
        assert_eq!(writer.finish().1, None);
        drop(drain.join());
    }
}
