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
        Self::to_file(file, path, spill.max_bytes)
    }

    fn to_file(file: File, path: PathBuf, max_bytes: u64) -> io::Result<Self> {
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
        Ok(Self { path, chunks, result, queue, room: max_bytes, dropped: 0, max_bytes })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn dir() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    #[test]
    fn a_file_holds_exactly_its_limit_and_a_marker() {
        let dir = dir();
        let mut writer = SpillWriter::create(&Spill::new(dir.path()).max_bytes(2_000_000)).expect("creates");
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
        assert!(SpillWriter::create(&Spill::new(dir.path().join("missing"))).is_err());
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
        assert!(started.elapsed() < PATIENCE * 8, "{:?}", started.elapsed());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_slow_disk_holds_the_reader_back_until_it_has_caught_up() {
        use std::io::Read;
        let dir = dir();
        let (mut reader, file) = hung_disk(dir.path());
        let mut writer = SpillWriter::to_file(file, "slow".into(), u64::MAX).expect("a thread");
        let mut queued = 0;
        while !writer.backlogged() {
            writer.write(&[b'x'; 65_536]);
            queued += 65_536;
            assert!(queued <= 65_536 * QUEUE, "it never says so");
        }
        let drain = std::thread::spawn(move || {
            reader.read_exact(&mut vec![0; queued]).expect("all of it comes");
            reader
        });
        tokio::time::timeout(Duration::from_secs(30), writer.drained()).await.expect("it catches up");
        assert!(!writer.backlogged());
        assert_eq!(writer.finish().1, None);
        drop(drain.join());
    }
}
