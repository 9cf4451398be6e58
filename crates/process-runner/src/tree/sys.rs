//! The system calls for which `rustix` and tokio have no safe form. All `unsafe` code of the crate is here.
//!
//! Miri cannot run any of it, so tests check the facts it relies on: `tests/scenarios/inheriting.rs` (what a
//! child gets) and `truth.rs` (exits, signals, usage).
#![allow(unsafe_code, reason = "the one module that may: posix_spawn, waitid with usage, pidfd registration")]

use std::borrow::Cow;
use std::ffi::{CStr, CString};
#[cfg(target_os = "linux")]
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
#[cfg(target_os = "linux")]
use std::{os::fd::OwnedFd, sync::Arc};

#[cfg(target_os = "linux")]
use tokio::io::{Interest, unix::AsyncFd};

use super::descriptors::open_above_stdio;

/// The folder in which the child runs.
#[derive(Clone, Copy)]
pub(super) enum ChildFolder<'a> {
    Path(&'a CStr),
    Handle(BorrowedFd<'a>),
}

/// The parameters of [`spawn`]. The three descriptors must be above 2, or one `dup2` would overwrite the next.
pub(super) struct SpawnRequest<'a> {
    pub(super) program: &'a CStr,
    pub(super) arguments: &'a [CString],
    pub(super) environment: &'a [Cow<'a, CStr>],
    pub(super) directory: ChildFolder<'a>,
    pub(super) stdio: [BorrowedFd<'a>; 3],
    /// A terminal to open as descriptor 0, so that it becomes the new session's controlling terminal.
    pub(super) terminal: Option<&'a CStr>,
    pub(super) placement: SpawnPlacement<'a>,
}

/// The place of a new process beside this one.
pub(super) enum SpawnPlacement<'a> {
    /// It leads a session of its own, has only the three descriptors, default signal actions and no blocked signals.
    OwnSession,
    /// It stands beside this process, as a shell starts programs: in the same session and process group, with the same
    /// descriptors and ignored signals, and with this mask. The three descriptors of the request are not used.
    #[cfg(target_os = "linux")]
    Foreground(&'a SignalMask),
    #[cfg(not(target_os = "linux"))]
    #[allow(dead_code, reason = "the lifetime is used on Linux")]
    Nowhere(std::convert::Infallible, std::marker::PhantomData<&'a ()>),
}

/// The end of a process as `waitid(2)` and `wait4(2)` report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitStatus {
    Exited(u32),
    Signaled { signal: i32, core: bool },
}

/// The effect of a wait on a child that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitEffect {
    /// Its status is taken, which frees its pid.
    Reap,
    /// It stays a zombie.
    Keep,
}

/// CPU time and peak memory of a reaped process and of the children it waited for (`getrusage(2)`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RawUsage {
    pub(super) user: Duration,
    pub(super) system: Duration,
    pub(super) max_rss: u64,
}

type AddDirectory =
    unsafe extern "C" fn(*mut libc::posix_spawn_file_actions_t, *const libc::c_char) -> libc::c_int;
type AddDescriptor = unsafe extern "C" fn(*mut libc::posix_spawn_file_actions_t, libc::c_int) -> libc::c_int;

/// Starts a process with `posix_spawn(3)`: a vfork-like clone whose cost does not grow with our memory.
///
/// The child leads a new session, has every signal at its default action and none blocked, and has
/// only descriptors 0, 1 and 2. Errors are those of the call: a failed `chdir` and a failed `execve`
/// look alike, and `resolve` tells them apart.
pub(super) fn spawn(request: &SpawnRequest<'_>) -> io::Result<libc::pid_t> {
    let mut actions = SpawnFileActions::new()?;
    actions.change_directory(request.directory)?;
    let attributes = match &request.placement {
        #[cfg(target_os = "linux")]
        SpawnPlacement::Foreground(mask) => SpawnAttributes::in_foreground(mask)?,
        _ => {
            for (descriptor, target) in request.stdio.iter().zip(0..) {
                actions.duplicate(*descriptor, target)?;
            }
            if let Some(terminal) = request.terminal {
                actions.open(terminal, 0)?;
            }
            actions.close_everything_else()?;
            SpawnAttributes::new()?
        }
    };
    let arguments = null_terminated(request.arguments.iter().map(AsRef::as_ref));
    let environment = null_terminated(request.environment.iter().map(AsRef::as_ref));
    let mut pid: libc::pid_t = 0;
    // SAFETY: every pointer is to a live value of the right type: `program` is NUL-terminated, both
    // vectors end in a null pointer and their strings outlive the call, `actions` and `attributes`
    // are initialised. The call does not keep any of them. (`*mut` is the C signature's habit; the
    // strings are not written to: POSIX, posix_spawn, "argv" and "envp".)
    check(unsafe {
        libc::posix_spawn(
            &raw mut pid,
            request.program.as_ptr(),
            &raw const actions.0,
            &raw const attributes.0,
            arguments.as_ptr(),
            environment.as_ptr(),
        )
    })?;
    Ok(pid)
}

pub(super) fn null_terminated<'a>(strings: impl Iterator<Item = &'a CStr>) -> Vec<*mut libc::c_char> {
    strings.map(|string| string.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect()
}

struct SpawnFileActions(libc::posix_spawn_file_actions_t);

impl SpawnFileActions {
    fn new() -> io::Result<Self> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: the call initialises what it is given, or fails.
        check(unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) })?;
        // SAFETY: initialised by the successful call above.
        Ok(Self(unsafe { actions.assume_init() }))
    }

    fn change_directory(&mut self, directory: ChildFolder<'_>) -> io::Result<()> {
        match directory {
            ChildFolder::Path(path) => self.change_to_path(path),
            ChildFolder::Handle(handle) => {
                if let Some(add) = *ADD_FCHDIR {
                    // SAFETY: initialised actions; the number is only recorded.
                    return check(unsafe { add(&raw mut self.0, handle.as_raw_fd()) });
                }
                // The child shares our descriptor table until its exec, so the number means the same there.
                let path = CString::new(format!("/proc/self/fd/{}", handle.as_raw_fd()))?;
                self.change_to_path(&path)
            }
        }
    }

    fn change_to_path(&mut self, path: &CStr) -> io::Result<()> {
        let add = ADD_CHDIR.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::Unsupported,
                "this libc cannot start a process in a folder (glibc < 2.29)",
            )
        })?;
        // SAFETY: initialised actions and a NUL-terminated path, which the call copies.
        check(unsafe { add(&raw mut self.0, path.as_ptr()) })
    }

    fn duplicate(&mut self, descriptor: BorrowedFd<'_>, target: libc::c_int) -> io::Result<()> {
        // SAFETY: initialised actions; the numbers are only recorded.
        check(unsafe {
            libc::posix_spawn_file_actions_adddup2(&raw mut self.0, descriptor.as_raw_fd(), target)
        })
    }

    /// Opens a file for reading and writing.
    // The child leads its session by then: glibc and musl call `setsid(2)` before they do the file actions.
    fn open(&mut self, path: &CStr, target: libc::c_int) -> io::Result<()> {
        // SAFETY: initialised actions and a NUL-terminated path, which the call copies.
        check(unsafe {
            libc::posix_spawn_file_actions_addopen(&raw mut self.0, target, path.as_ptr(), libc::O_RDWR, 0)
        })
    }

    /// Closes all descriptors but 0, 1 and 2 in the child, also those that other code opened without `O_CLOEXEC`.
    fn close_everything_else(&mut self) -> io::Result<()> {
        if cfg!(target_vendor = "apple") {
            return Ok(()); // `POSIX_SPAWN_CLOEXEC_DEFAULT` does it.
        }
        if let Some(add) = *ADD_CLOSEFROM {
            // SAFETY: initialised actions; the number is only recorded.
            return check(unsafe { add(&raw mut self.0, 3) });
        }
        // An older libc closes the descriptors that are open now. One that another thread opens from here on without
        // `O_CLOEXEC` is missed. Closing one that is gone by then is no error.
        for descriptor in open_above_stdio() {
            // SAFETY: initialised actions; the number is only recorded.
            check(unsafe { libc::posix_spawn_file_actions_addclose(&raw mut self.0, descriptor) })?;
        }
        Ok(())
    }
}

impl Drop for SpawnFileActions {
    fn drop(&mut self) {
        // SAFETY: initialised by `new`, destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
    }
}

struct SpawnAttributes(libc::posix_spawnattr_t);

impl SpawnAttributes {
    fn new() -> io::Result<Self> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the call initialises what it is given, or fails.
        check(unsafe { libc::posix_spawnattr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: initialised by the successful call above.
        let mut attributes = Self(unsafe { attributes.assume_init() });
        let mut all = MaybeUninit::uninit();
        let mut none = MaybeUninit::uninit();
        // SAFETY: both calls initialise the set that they are given and cannot fail on a valid pointer.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::sigemptyset(none.as_mut_ptr());
        }
        // The constants are `c_int` on some systems and `c_short` on others; all are below 0x8000.
        #[allow(clippy::unnecessary_cast, clippy::cast_possible_truncation, reason = "differs by platform")]
        #[cfg(target_vendor = "apple")]
        let flags = (libc::POSIX_SPAWN_SETSIGDEF
            | libc::POSIX_SPAWN_SETSIGMASK
            | libc::POSIX_SPAWN_CLOEXEC_DEFAULT
            | POSIX_SPAWN_SETSID_APPLE) as libc::c_short;
        #[allow(clippy::unnecessary_cast, clippy::cast_possible_truncation, reason = "differs by platform")]
        #[cfg(not(target_vendor = "apple"))]
        let flags = libc::POSIX_SPAWN_SETSIGDEF as libc::c_short
            | libc::POSIX_SPAWN_SETSIGMASK as libc::c_short
            | libc::POSIX_SPAWN_SETSID as libc::c_short;
        // SAFETY: initialised attributes and sets; each call copies what it is given.
        unsafe {
            check(libc::posix_spawnattr_setsigdefault(&raw mut attributes.0, all.as_ptr()))?;
            check(libc::posix_spawnattr_setsigmask(&raw mut attributes.0, none.as_ptr()))?;
            check(libc::posix_spawnattr_setflags(&raw mut attributes.0, flags))?;
        }
        Ok(attributes)
    }
}

#[cfg(target_os = "linux")]
impl SpawnAttributes {
    fn in_foreground(mask: &SignalMask) -> io::Result<Self> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the call initialises what it is given, or fails.
        check(unsafe { libc::posix_spawnattr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: initialised by the successful call above.
        let mut attributes = Self(unsafe { attributes.assume_init() });
        let mut default = MaybeUninit::uninit();
        #[allow(clippy::cast_possible_truncation, reason = "both are below 0x8000")]
        let flags = (libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETSIGMASK) as libc::c_short;
        // SAFETY: the set is initialised by the first call; each call copies what it is given.
        unsafe {
            libc::sigemptyset(default.as_mut_ptr());
            // The standard library of Rust ignores it before `main`; the program must not inherit that.
            libc::sigaddset(default.as_mut_ptr(), libc::SIGPIPE);
            check(libc::posix_spawnattr_setsigdefault(&raw mut attributes.0, default.as_ptr()))?;
            check(libc::posix_spawnattr_setsigmask(&raw mut attributes.0, &raw const mask.0))?;
            check(libc::posix_spawnattr_setflags(&raw mut attributes.0, flags))?;
        }
        Ok(attributes)
    }
}

/// A set of blocked signals.
#[cfg(target_os = "linux")]
pub(super) struct SignalMask(pub(super) libc::sigset_t);

#[cfg(target_os = "linux")]
impl fmt::Debug for SignalMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignalMask")
    }
}

/// A signal that has come.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReceivedSignal {
    pub(super) number: i32,
    /// The process that sent it, or `None` for the kernel: a key of the terminal, a hangup.
    pub(super) sender: Option<libc::pid_t>,
}

/// Blocks `signals` in this thread and returns a descriptor that is readable while one is pending, with the mask that was
/// in force before. Threads that start later inherit the new mask.
#[cfg(target_os = "linux")]
pub(super) fn receive_signals(signals: &[i32]) -> io::Result<(OwnedFd, SignalMask)> {
    use std::os::fd::FromRawFd;
    let mut set = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: the first call initialises the set, and the others take valid pointers. An error of `sigaddset` is a number
    // that is no signal, and such a one is not added.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        // An inherited `SIG_IGN` would have children vanish unreaped.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        check(libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr()))?;
    }
    // SAFETY: an initialised set; the descriptor is new, and nobody else knows it.
    let descriptor = unsafe { libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above, and `before` was initialised by the successful call.
    Ok(unsafe { (OwnedFd::from_raw_fd(descriptor), SignalMask(before.assume_init())) })
}

/// Takes the next pending signal from the descriptor of [`receive_signals`].
#[cfg(target_os = "linux")]
pub(super) fn next_signal(descriptor: BorrowedFd<'_>) -> Option<ReceivedSignal> {
    let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
    let size = size_of::<libc::signalfd_siginfo>();
    // SAFETY: the buffer is as large as the call is told, and is used only if the call has filled all of it.
    let read = unsafe { libc::read(descriptor.as_raw_fd(), info.as_mut_ptr().cast(), size) };
    if usize::try_from(read) != Ok(size) {
        return None;
    }
    // SAFETY: filled by the successful call; every value of its fields is valid.
    let info = unsafe { info.assume_init() };
    let sender = (info.ssi_code <= 0).then_some(info.ssi_pid.cast_signed());
    Some(ReceivedSignal { number: info.ssi_signo.cast_signed(), sender })
}

/// Puts `/dev/null` in the place of the standard streams of this process.
#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods, reason = "a device, which is no file of anybody's")]
pub(crate) fn release_standard_streams() -> io::Result<()> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    for stream in 0..3 {
        // SAFETY: an open descriptor, and a number whose descriptor nothing in this process owns.
        if unsafe { libc::dup2(null.as_raw_fd(), stream) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Ends this process by `signal`, with its default action and without a core dump.
#[cfg(target_os = "linux")]
pub(crate) fn die_by(signal: i32) {
    let limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let mut set = MaybeUninit::uninit();
    // SAFETY: valid pointers to initialised values; the default action runs no code of ours.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const limit);
        libc::signal(signal, libc::SIG_DFL);
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut());
    }
}

/// `<spawn.h>` of macOS 10.15 and later; the `libc` crate does not name it.
#[cfg(target_vendor = "apple")]
const POSIX_SPAWN_SETSID_APPLE: libc::c_int = 0x0400;

impl Drop for SpawnAttributes {
    fn drop(&mut self) {
        // SAFETY: initialised by `new`, destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
    }
}

// Functions of newer libcs are looked up at run time, once, so that one binary runs on older ones too.

static ADD_CHDIR: LazyLock<Option<AddDirectory>> = LazyLock::new(|| {
    // SAFETY: the symbol of that name has this signature in glibc (2.29), musl (1.1.24) and macOS (10.15).
    symbol(c"posix_spawn_file_actions_addchdir_np").map(|add| unsafe { std::mem::transmute(add) })
});

static ADD_FCHDIR: LazyLock<Option<AddDescriptor>> = LazyLock::new(|| {
    // SAFETY: as above.
    symbol(c"posix_spawn_file_actions_addfchdir_np").map(|add| unsafe { std::mem::transmute(add) })
});

static ADD_CLOSEFROM: LazyLock<Option<AddDescriptor>> = LazyLock::new(|| {
    // SAFETY: the symbol of that name has this signature (glibc 2.34).
    symbol(c"posix_spawn_file_actions_addclosefrom_np").map(|add| unsafe { std::mem::transmute(add) })
});

/// Returns a function of the running libc by its name.
fn symbol(name: &CStr) -> Option<*mut libc::c_void> {
    // A static musl binary has no dynamic symbols, but it always has these two functions.
    #[cfg(target_env = "musl")]
    {
        if name == c"posix_spawn_file_actions_addchdir_np" {
            return Some(libc::posix_spawn_file_actions_addchdir_np as *mut libc::c_void);
        }
        if name == c"posix_spawn_file_actions_addfchdir_np" {
            return Some(libc::posix_spawn_file_actions_addfchdir_np as *mut libc::c_void);
        }
    }
    // SAFETY: a NUL-terminated name and the handle for the whole program.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// Turns a return code into a result. `posix_spawn` and its family return the error instead of setting `errno`.
fn check(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

/// Returns the status of a child that has ended, or `None` while it runs.
///
/// # Errors
/// `ECHILD` if someone else took it (a `SIGCHLD` set to ignore, another part's `waitpid(-1)`).
#[cfg(target_os = "linux")]
pub(super) fn wait(
    pid: libc::pid_t,
    pidfd: Option<BorrowedFd<'_>>,
    effect: WaitEffect,
) -> io::Result<Option<(WaitStatus, RawUsage)>> {
    let (kind, id) = match pidfd {
        Some(fd) => (libc::P_PIDFD, fd.as_raw_fd()),
        None => (libc::P_PID, pid),
    };
    let keep = if effect == WaitEffect::Keep { libc::WNOWAIT } else { 0 };
    // SAFETY: both are plain data for which all zeroes is a value.
    let (mut info, mut usage): (libc::siginfo_t, libc::rusage) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    loop {
        // The system call and not the libc function, which lacks the fifth argument (waitid(2), "C library/kernel
        // differences").
        // SAFETY: both pointers are to live values of the kernel's types; the call keeps neither.
        let result = unsafe {
            libc::syscall(
                libc::SYS_waitid,
                kind,
                id,
                &raw mut info,
                libc::WEXITED | libc::WNOHANG | keep,
                &raw mut usage,
            )
        };
        if result == 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: a successful waitid fills these fields, or leaves the zeroes if no child has ended.
    let (ended_pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    if ended_pid == 0 {
        return Ok(None);
    }
    let ended = match info.si_code {
        libc::CLD_EXITED => WaitStatus::Exited(status.cast_unsigned()),
        code => WaitStatus::Signaled { signal: status, core: code == libc::CLD_DUMPED },
    };
    Ok(Some((ended, usage_of(&usage))))
}

/// The same by `wait4(2)`, which does not report stopped children unless it is asked to.
#[cfg(not(target_os = "linux"))]
pub(super) fn wait(
    pid: libc::pid_t,
    _pidfd: Option<BorrowedFd<'_>>,
    effect: WaitEffect,
) -> io::Result<Option<(WaitStatus, RawUsage)>> {
    if effect == WaitEffect::Keep {
        // `wait4` cannot, and no run keeps its leader where orphans are not adopted.
        return Err(io::ErrorKind::Unsupported.into());
    }
    // SAFETY: plain data for which all zeroes is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    loop {
        // SAFETY: both pointers are to live values of the right types; the call keeps neither.
        let result = unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) };
        if result == 0 {
            return Ok(None);
        }
        if result > 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let ended = if libc::WIFEXITED(status) {
        WaitStatus::Exited(libc::WEXITSTATUS(status).cast_unsigned())
    } else {
        WaitStatus::Signaled { signal: libc::WTERMSIG(status), core: libc::WCOREDUMP(status) }
    };
    Ok(Some((ended, usage_of(&usage))))
}

fn usage_of(usage: &libc::rusage) -> RawUsage {
    let duration = |time: libc::timeval| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let micros = u64::try_from(time.tv_usec).unwrap_or(0);
        Duration::from_secs(seconds) + Duration::from_micros(micros)
    };
    let max_rss = u64::try_from(usage.ru_maxrss).unwrap_or(0);
    RawUsage {
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        // Bytes on macOS, KiB elsewhere.
        max_rss: if cfg!(target_vendor = "apple") { max_rss } else { max_rss.saturating_mul(1024) },
    }
}

/// Returns true if `max_rss`, in bytes, is more than this process ever used.
///
/// The kernel carries the parent's peak over `fork` and `exec`, so a smaller figure is only our own.
pub(super) fn exceeds_own_max_rss(max_rss: u64) -> bool {
    // Our peak when it was last read. It only grows, so a figure below it needs no system call.
    static LAST_PEAK: AtomicU64 = AtomicU64::new(0);
    if max_rss <= LAST_PEAK.load(Ordering::Relaxed) {
        return false;
    }
    let own = own_max_rss();
    LAST_PEAK.fetch_max(own, Ordering::Relaxed);
    max_rss > own
}

/// Returns the largest resident size that this process has had, in bytes.
fn own_max_rss() -> u64 {
    // SAFETY: plain data for which all zeroes is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a pointer to a live value of the right type.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    usage_of(&usage).max_rss
}

/// Registers a descriptor with the current runtime, to wait until it is readable.
#[cfg(target_os = "linux")]
pub(super) fn watch_readable(fd: Arc<OwnedFd>) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    // SAFETY: the `OwnedFd` is open, always gives the same number, and the `AsyncFd` keeps it alive until it
    // deregisters.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(io::Error::from)
}

/// Makes this process ignore the signals that ask a process to end, and `SIGPIPE`.
pub(crate) fn ignore_termination_signals() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
        // SAFETY: `SIG_IGN` installs no handler, so no code of ours runs in signal context.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// `struct landlock_ruleset_attr` of `<linux/landlock.h>`. A kernel that knows fewer fields accepts it while the
/// others are zero.
#[cfg(target_os = "linux")]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RulesetAttributes {
    /// File rights that are refused unless a rule grants them (`LANDLOCK_ACCESS_FS_*`).
    pub(super) files: u64,
    /// TCP rights that are refused unless a rule grants them (`LANDLOCK_ACCESS_NET_*`).
    pub(super) tcp: u64,
    /// Interactions that do not reach beyond the domain (`LANDLOCK_SCOPE_*`).
    pub(super) scoped: u64,
}

/// `struct landlock_path_beneath_attr`, which is packed.
#[cfg(target_os = "linux")]
#[repr(C, packed)]
struct PathBeneath {
    rights: u64,
    parent: libc::c_int,
}

/// Returns the version of the kernel's Landlock ABI (`landlock_create_ruleset(2)`).
///
/// # Errors
/// `ENOSYS` if the kernel was built without Landlock, `EOPNOTSUPP` if it was booted without.
#[cfg(target_os = "linux")]
pub(super) fn landlock_abi() -> io::Result<u32> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the kernel takes no pointer and a size of 0.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<RulesetAttributes>(), 0_usize, VERSION)
    };
    u32::try_from(version).map_err(|_| io::Error::last_os_error())
}

/// Moves the calling thread into a new network namespace (`unshare(2)`).
#[cfg(target_os = "linux")]
pub(super) fn unshare_network() -> io::Result<()> {
    // SAFETY: the condition of the call is about descriptor tables (`CLONE_FILES`), which this flag leaves alone.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }.map_err(io::Error::from)
}

/// Creates a ruleset without rules.
#[cfg(target_os = "linux")]
pub(super) fn landlock_ruleset(attributes: &RulesetAttributes) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: a pointer to a live value of the kernel's layout, and its size.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::from_ref(attributes),
            size_of::<RulesetAttributes>(),
            0_u32,
        )
    };
    let descriptor = libc::c_int::try_from(descriptor).map_err(io::Error::other)?;
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the successful call gave a descriptor (close-on-exec) that nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Grants `rights` to the file or folder `object`, and to everything beneath a folder.
#[cfg(target_os = "linux")]
pub(super) fn landlock_allow(ruleset: BorrowedFd<'_>, object: BorrowedFd<'_>, rights: u64) -> io::Result<()> {
    const RULE_PATH_BENEATH: libc::c_int = 1;
    let rule = PathBeneath { rights, parent: object.as_raw_fd() };
    // SAFETY: a pointer to a live value of the kernel's layout, which is copied; both descriptors are open.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            RULE_PATH_BENEATH,
            &raw const rule,
            0_u32,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Confines the calling thread, and everything it starts from now on, by the ruleset. It cannot be undone.
#[cfg(target_os = "linux")]
pub(super) fn landlock_restrict_thread(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: an open descriptor and no flags; the call changes the credentials of this thread only.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0_u32) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Installs a seccomp filter for the calling thread and everything it starts from now on. It cannot be undone.
///
/// # Errors
/// `EINVAL` for more than 65,535 instructions or a program that the kernel does not accept; `EACCES` without
/// `no_new_privs`.
#[cfg(target_os = "linux")]
pub(super) fn install_seccomp_filter(program: &[libc::sock_filter]) -> io::Result<()> {
    const SET_MODE_FILTER: libc::c_uint = 1;
    let length = u16::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: a pointer to a live value of the kernel's layout, whose own pointer and length are those of a live slice.
    // The kernel copies both and writes to neither.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, 0_u32, &raw const program) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
