//! A file system that hangs on purpose: one folder with one file, whose reads wait to be released.
//!
//! It implements the kernel's protocol itself (`fuse(4)`, `include/uapi/linux/fuse.h`, version 7.31), on a thread
//! of this process. A process that waits for an answer that has reached user space cannot be killed, which is
//! the `D` state. Everything is undone by the end of the process, however it ends: the mount is in a
//! namespace of its own ([`in_own_namespace`]), and the kernel ends all waiting when the last descriptor of
//! `/dev/fuse` is closed.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::harness::ScenarioCase;

/// The result of entering a mount namespace.
pub(crate) enum MountNamespace {
    /// This process has its own mounts, and the scenario goes on.
    Entered,
    /// The scenario has been run in another process.
    RanElsewhere,
    /// There is none: it needs root and `/dev/fuse`.
    Unavailable,
}

/// Runs the scenario in a process whose mounts nobody else sees, and which end with it.
pub(crate) fn in_own_namespace(case: &ScenarioCase) -> MountNamespace {
    let needs = "no right to mount /dev/fuse; run as root (CAP_SYS_ADMIN)";
    let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    if !rustix::process::geteuid().is_root() || device.is_err() {
        skipped_tests::require(None::<()>, needs);
        return MountNamespace::Unavailable;
    }
    drop(device);
    if case.elsewhere(&["unshare", "--mount", "--"]) {
        MountNamespace::RanElsewhere
    } else {
        MountNamespace::Entered
    }
}

/// The mounted file system. Dropping it answers all reads and unmounts it.
pub(crate) struct HangingFs {
    folder: PathBuf,
    shared: Arc<FuseState>,
    stop: Option<std::io::PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

struct FuseState {
    device: File,
    content: Vec<u8>,
    /// The reads that wait: the kernel's number for each, and the offset.
    waiting: Mutex<Vec<(u64, u64)>>,
    seen: AtomicUsize,
    released: AtomicBool,
}

impl HangingFs {
    /// Mounts it on a new folder of the scenario. `content` is that of its file, which is executable.
    pub(crate) fn mount(case: &ScenarioCase, content: &str) -> Self {
        let folder = case.dir().join("hanging");
        std::fs::create_dir(&folder).expect("a new folder");
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse").expect("it opened before");
        let number = std::os::fd::AsRawFd::as_raw_fd(&device);
        let options = format!("fd={number},rootmode=40000,user_id=0,group_id=0");
        let options = std::ffi::CString::new(options).expect("no NUL");
        mount("hanging", &folder, "fuse", MountFlags::NOSUID | MountFlags::NODEV, options.as_c_str())
            .expect("this test needs root (CAP_SYS_ADMIN) to mount a file system");
        let shared = Arc::new(FuseState {
            device,
            content: content.as_bytes().to_vec(),
            waiting: Mutex::default(),
            seen: AtomicUsize::new(0),
            released: AtomicBool::new(false),
        });
        let (stopped, stop) = std::io::pipe().expect("a pipe");
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.serve(&stopped)
        });
        Self { folder, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns the path of the file whose reads hang.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.join(FILE_NAME)
    }

    /// Returns how many reads have arrived so far, hanging or answered.
    pub(crate) fn reads(&self) -> usize {
        self.shared.seen.load(Ordering::Acquire)
    }

    /// Answers the reads that wait, and every later one at once.
    pub(crate) fn release(&self) {
        self.shared.release();
    }
}

impl Drop for HangingFs {
    fn drop(&mut self) {
        self.release();
        // Lazily, as a process may still have the file open.
        let _ = unmount(&self.folder, UnmountFlags::DETACH);
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

const FILE_NAME: &str = "hangs";
const ROOT: u64 = 1;
const FILE: u64 = 2;

impl FuseState {
    fn serve(&self, stopped: &std::io::PipeReader) {
        // The kernel wants room for its largest request.
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let mut ready = [
                PollFd::new(&self.device, PollFlags::IN),
                PollFd::from_borrowed_fd(stopped.as_fd(), PollFlags::IN),
            ];
            if poll(&mut ready, None).is_err() {
                continue; // interrupted
            }
            if !ready[1].revents().is_empty() {
                return;
            }
            match (&self.device).read(&mut buffer) {
                Ok(length) => self.answer(&buffer[..length]),
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return, // unmounted
                Err(_) => {} // the request was withdrawn while it was read
            }
        }
    }

    fn answer(&self, request: &[u8]) {
        let number = |at: usize, length: usize| {
            let mut bytes = [0; 8];
            bytes[..length].copy_from_slice(&request[at..at + length]);
            u64::from_le_bytes(bytes)
        };
        // struct fuse_in_header: len, opcode, unique, nodeid, uid, gid, pid, extensions.
        let (operation, id, node) = (number(4, 4), number(8, 8), number(16, 8));
        let body = &request[40..];
        match operation {
            LOOKUP if node == ROOT && body == format!("{FILE_NAME}\0").as_bytes() => {
                let mut entry = FuseReply::default();
                // struct fuse_entry_out: node, generation, how long both parts hold (s, s, ns, ns).
                entry.u64(FILE).u64(0).u64(1).u64(1).u32(0).u32(0).attributes(FILE, self.content.len());
                self.reply(id, Ok(&entry.0));
            }
            LOOKUP => self.reply(id, Err(libc::ENOENT)),
            GETATTR => {
                let mut attributes = FuseReply::default();
                attributes.u64(1).u32(0).u32(0).attributes(node, self.content.len());
                self.reply(id, Ok(&attributes.0));
            }
            OPEN | OPENDIR => {
                // Past the page cache: what waits for a page there can be killed.
                let mut opened = FuseReply::default();
                opened.u64(0).u32(FOPEN_DIRECT_IO).u32(0);
                self.reply(id, Ok(&opened.0));
            }
            READ => {
                // struct fuse_read_in: handle, offset, size.
                self.waiting.lock().expect("no panic").push((id, number(48, 8)));
                self.seen.fetch_add(1, Ordering::AcqRel);
                if self.released.load(Ordering::Acquire) {
                    self.release();
                }
            }
            INIT => {
                let mut agreed = FuseReply::default();
                // struct fuse_init_out: version, read-ahead, flags, background limits, largest write, and
                // what was added later.
                agreed.u32(7).u32(31).u32(0).u32(0).u32(0).u32(4096).u32(1);
                agreed.0.resize(64, 0);
                self.reply(id, Ok(&agreed.0));
            }
            ACCESS | FLUSH | RELEASE | RELEASEDIR | DESTROY => self.reply(id, Ok(&[])),
            // No answer is expected; a withdrawn request is answered when it is released.
            FORGET | BATCH_FORGET | INTERRUPT => {}
            _ => self.reply(id, Err(libc::ENOSYS)),
        }
    }

    fn release(&self) {
        self.released.store(true, Ordering::Release);
        for (id, offset) in self.waiting.lock().expect("no panic").drain(..) {
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.content.len());
            self.reply(id, Ok(&self.content[from..]));
        }
    }

    fn reply(&self, id: u64, answer: Result<&[u8], i32>) {
        let body = answer.unwrap_or_default();
        let mut message = FuseReply::default();
        // struct fuse_out_header: len, error, unique.
        let length = u32::try_from(16 + body.len()).expect("answers are small");
        message.u32(length).u32(answer.err().map_or(0, |error| (-error).cast_unsigned())).u64(id);
        message.0.extend_from_slice(body);
        // It fails if the request was withdrawn.
        let _ = (&self.device).write(&message.0);
    }
}

/// The bytes of an answer, field after field.
#[derive(Default)]
struct FuseReply(Vec<u8>);

impl FuseReply {
    fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Adds a `struct fuse_attr`.
    fn attributes(&mut self, node: u64, size: usize) -> &mut Self {
        let (mode, size) = if node == ROOT { (0o040_755, 0) } else { (0o100_755, size as u64) };
        self.u64(node).u64(size).u64(1); // number, size, blocks
        self.u64(0).u64(0).u64(0).u32(0).u32(0).u32(0); // three times
        self.u32(mode).u32(1).u32(0).u32(0).u32(0).u32(4096).u32(0) // links, user, group, device, block, flags
    }
}

const LOOKUP: u64 = 1;
const FORGET: u64 = 2;
const GETATTR: u64 = 3;
const OPEN: u64 = 14;
const READ: u64 = 15;
const RELEASE: u64 = 18;
const FLUSH: u64 = 25;
const INIT: u64 = 26;
const OPENDIR: u64 = 27;
const RELEASEDIR: u64 = 29;
const ACCESS: u64 = 34;
const INTERRUPT: u64 = 36;
const DESTROY: u64 = 38;
const BATCH_FORGET: u64 = 42;
const FOPEN_DIRECT_IO: u32 = 1;
