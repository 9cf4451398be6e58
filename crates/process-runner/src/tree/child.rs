//! Processes that begin in this program's code: one that enters namespaces, and one that becomes a confined program.
//!
//! A thread cannot enter a user namespace, and `posix_spawn(3)` cannot make its child that of another process. So these
//! processes are made by `clone(2)` with the flags of `vfork(2)`.
#![allow(
    unsafe_code,
    reason = "clone(2) with this program's memory; execve, setns, mount_setattr and the loopback"
)]

use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use rustix::fs::stat;
use rustix::process::{Resource, Signal};

use super::resource_control::lower_limit;
use super::sys::{SignalMask, null_terminated};

/// The size of the stack of such a process. Its lowest page is never mapped.
const STACK_BYTES: usize = 256 * 1024;
const GUARD_BYTES: usize = 64 * 1024;

/// The exit code of a process whose work panicked. Such a process looks like one that started a program.
const PANICKED: libc::c_int = 127;

/// A process that [`in_child`] made.
pub(super) struct ChildProcess {
    pub(super) pid: libc::pid_t,
    /// The process, if `CLONE_PIDFD` was among the flags.
    pub(super) handle: Option<OwnedFd>,
}

/// Calls `work` as [`in_child`] does, in a process that begins in the cgroup `group`.
///
/// # Errors
/// As those of [`in_child`]; `Unsupported` where a process cannot begin in a cgroup.
pub(super) fn in_child_of_cgroup<T>(
    group: BorrowedFd<'_>,
    work: impl FnOnce() -> T,
) -> io::Result<(ChildProcess, Option<T>)> {
    make_child(Some(group), libc::SIGCHLD, work)
}

/// Calls `work` in a new process, and returns when that has ended or has started a program in its place.
///
/// The process shares this one's memory, and has descriptors, a working directory and signal actions of its own. The
/// calling thread stands still meanwhile, so `work` may use what the thread may use: it runs in its place, as another
/// process. All signals are blocked. `flags` are those of `clone(2)`; `CLONE_VM` and `CLONE_VFORK` are always set.
///
/// The result is `None` if the process started a program. It is left to the caller to wait for the process.
///
/// # Errors
/// If the process cannot be made.
pub(super) fn in_child<T>(
    flags: libc::c_int,
    work: impl FnOnce() -> T,
) -> io::Result<(ChildProcess, Option<T>)> {
    make_child(None, flags, work)
}

fn make_child<T>(
    group: Option<BorrowedFd<'_>>,
    flags: libc::c_int,
    work: impl FnOnce() -> T,
) -> io::Result<(ChildProcess, Option<T>)> {
    struct ChildCall<W, T> {
        work: Option<W>,
        result: Option<T>,
    }
    extern "C" fn enter<W: FnOnce() -> T, T>(call: *mut libc::c_void) -> libc::c_int {
        // SAFETY: `in_child` passes a pointer to a `ChildCall` of these types, which it does not touch until this
        // process has ended or has given up this memory.
        let call = unsafe { &mut *call.cast::<ChildCall<W, T>>() };
        // A panic must not unwind out of this stack. What it leaves is a missing result.
        call.result = call.work.take().and_then(|work| catch_unwind(AssertUnwindSafe(work)).ok());
        if call.result.is_some() { 0 } else { PANICKED }
    }
    fn entry<W: FnOnce() -> T, T>(_: &ChildCall<W, T>) -> extern "C" fn(*mut libc::c_void) -> libc::c_int {
        enter::<W, T>
    }
    let mut call = ChildCall { work: Some(work), result: None };
    let entry = entry(&call);
    let stack = ChildStack::new()?;
    let mut handle: libc::c_int = -1;
    let mask = BlockedSignals::new();
    // SAFETY: `entry` gets a pointer to `call`, of the type that it expects. Stack and `call` live until this function
    // returns, and `CLONE_VFORK` lets it go on only when the child has ended or has another memory. Of this thread's
    // state the child shares the thread-local variables; the thread stands still, so nothing else uses them. A handler
    // of a signal cannot run in the child: all signals are blocked.
    let pid = unsafe {
        match group {
            Some(group) => clone3::into_cgroup(entry, &stack, (&raw mut call).cast(), group),
            None => match libc::clone(
                entry,
                stack.top(),
                flags | libc::CLONE_VM | libc::CLONE_VFORK,
                (&raw mut call).cast(),
                &raw mut handle,
                ptr::null_mut::<libc::c_void>(),
                ptr::null_mut::<libc::c_void>(),
            ) {
                pid if pid < 0 => Err(io::Error::last_os_error()),
                pid => Ok(pid),
            },
        }
    };
    drop(mask);
    let pid = pid?;
    // SAFETY: the successful call with `CLONE_PIDFD` stored a new descriptor, which nobody else knows.
    let handle =
        (flags & libc::CLONE_PIDFD != 0 && handle >= 0).then(|| unsafe { OwnedFd::from_raw_fd(handle) });
    Ok((ChildProcess { pid, handle }, call.result))
}

/// `clone3(2)`, for which libc has no function. It alone starts a process in another cgroup; to move one later takes
/// milliseconds, because the kernel then waits until no process is being forked.
mod clone3 {
    use super::{AsRawFd, BorrowedFd, ChildStack, GUARD_BYTES, STACK_BYTES, io};

    /// `struct clone_args` of `<linux/sched.h>`, in its second version.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[repr(C)]
    #[derive(Default)]
    struct CloneArguments {
        flags: u64,
        pidfd: u64,
        child_tid: u64,
        parent_tid: u64,
        exit_signal: u64,
        stack: u64,
        stack_size: u64,
        tls: u64,
        set_tid: u64,
        set_tid_size: u64,
        cgroup: u64,
    }

    /// The same number on every architecture.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    const SYS_CLONE3: u64 = 435;
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

    /// Calls `entry` with `call` in a new process that shares the memory and begins in the cgroup. It returns when that
    /// process has ended or has another memory.
    ///
    /// # Safety
    /// As for `clone(2)` with `CLONE_VM` and `CLONE_VFORK`: `entry` takes `call`, and both outlive the call, as the stack
    /// does.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(super) unsafe fn into_cgroup(
        entry: extern "C" fn(*mut libc::c_void) -> libc::c_int,
        stack: &ChildStack,
        call: *mut libc::c_void,
        group: BorrowedFd<'_>,
    ) -> io::Result<libc::pid_t> {
        let arguments = CloneArguments {
            flags: CLONE_INTO_CGROUP | u64::from((libc::CLONE_VM | libc::CLONE_VFORK).cast_unsigned()),
            exit_signal: u64::from(libc::SIGCHLD.cast_unsigned()),
            stack: (stack.0 as u64).wrapping_add(GUARD_BYTES as u64),
            stack_size: STACK_BYTES as u64,
            cgroup: u64::from(group.as_raw_fd().cast_unsigned()),
            ..CloneArguments::default()
        };
        let result: i64;
        // SAFETY: the kernel reads `arguments` and nothing else. The new process is on its own stack, whose end is aligned
        // as a call demands; it calls `entry`, and ends with what that returns. This thread stands still until then, and
        // the kernel gives back its registers but for those that are named here.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!(
                "syscall",
                "test rax, rax",
                "jnz 2f",
                "xor ebp, ebp",
                "mov rdi, r12",
                "call r13",
                "mov edi, eax",
                "mov eax, {exit}",
                "syscall",
                "ud2",
                "2:",
                exit = const libc::SYS_exit,
                inlateout("rax") SYS_CLONE3 => result,
                in("rdi") &raw const arguments,
                in("rsi") size_of::<CloneArguments>(),
                in("r12") call,
                in("r13") entry,
                lateout("rcx") _,
                lateout("r11") _,
            );
        }
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            std::arch::asm!(
                "svc #0",
                "cbnz x0, 2f",
                "mov x29, xzr",
                "mov x0, x20",
                "blr x21",
                "mov x8, {exit}",
                "svc #0",
                "brk #1",
                "2:",
                exit = const libc::SYS_exit,
                in("x8") SYS_CLONE3,
                inlateout("x0") &raw const arguments => result,
                in("x1") size_of::<CloneArguments>(),
                in("x20") call,
                in("x21") entry,
            );
        }
        match libc::c_int::try_from(result) {
            Ok(pid) if pid > 0 => Ok(pid),
            Ok(error) => Err(io::Error::from_raw_os_error(-error)),
            Err(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Fails: this architecture has no start of a process that was written for it.
    ///
    /// # Safety
    /// It does nothing.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(super) unsafe fn into_cgroup(
        _: extern "C" fn(*mut libc::c_void) -> libc::c_int,
        _: &ChildStack,
        _: *mut libc::c_void,
        _: BorrowedFd<'_>,
    ) -> io::Result<libc::pid_t> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl ChildProcess {
    /// Waits until the process has ended. It may have been waited for by other code.
    pub(super) fn reap(&self) {
        let mut status = 0;
        loop {
            // SAFETY: a pointer to a live value.
            let result = unsafe { libc::waitpid(self.pid, &raw mut status, libc::__WALL) };
            if result >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return;
            }
        }
    }
}

/// Memory for the stack of a process, with a part below it that nothing may use.
struct ChildStack(*mut libc::c_void);

impl ChildStack {
    fn new() -> io::Result<Self> {
        let (read_write, private) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                STACK_BYTES + GUARD_BYTES,
                read_write,
                private | libc::MAP_STACK | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let stack = Self(base);
        // SAFETY: the lowest part of the mapping above.
        match unsafe { libc::mprotect(base, GUARD_BYTES, libc::PROT_NONE) } {
            0 => Ok(stack),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the end of the memory. It is aligned to a page.
    fn top(&self) -> *mut libc::c_void {
        // SAFETY: one past the end of the mapping.
        unsafe { self.0.byte_add(STACK_BYTES + GUARD_BYTES) }
    }
}

impl Drop for ChildStack {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made, which nothing uses any more.
        unsafe { libc::munmap(self.0, STACK_BYTES + GUARD_BYTES) };
    }
}

/// Keeps all signals from the calling thread until it is dropped.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn new() -> Self {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: the first call initialises its set, the second one the other; neither fails on valid pointers.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            Self(before.assume_init())
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: a set that the kernel gave.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

/// A program in the form in which a new process becomes it. All of it is prepared before, since that process may not
/// allocate what would never be freed.
pub(super) struct ProgramImage<'a> {
    program: &'a CStr,
    arguments: Vec<*mut libc::c_char>,
    environment: Vec<*mut libc::c_char>,
    folder: BorrowedFd<'a>,
    stdio: [BorrowedFd<'a>; 3],
    terminal: Option<&'a CStr>,
    limits: Vec<(Resource, u64)>,
    /// How many steps lower the priority is on the processors (nice(2)).
    nice: libc::c_int,
    /// The signals to block in a program that stands in the foreground of this process.
    foreground: Option<&'a SignalMask>,
}

impl<'a> ProgramImage<'a> {
    pub(super) fn new(
        program: &'a CStr,
        arguments: &'a [CString],
        environment: &'a [Cow<'a, CStr>],
        folder: BorrowedFd<'a>,
        stdio: [BorrowedFd<'a>; 3],
        terminal: Option<&'a CStr>,
    ) -> Self {
        let arguments = null_terminated(arguments.iter().map(AsRef::as_ref));
        let environment = null_terminated(environment.iter().map(AsRef::as_ref));
        Self {
            program,
            arguments,
            environment,
            folder,
            stdio,
            terminal,
            limits: Vec::new(),
            nice: 0,
            foreground: None,
        }
    }

    /// Sets limits of the program's process (`setrlimit(2)`).
    pub(super) fn limits(mut self, limits: Vec<(Resource, u64)>) -> Self {
        self.limits = limits;
        self
    }

    /// Lowers the priority of the program's process on the processors.
    pub(super) fn nice(mut self, steps: libc::c_int) -> Self {
        self.nice = steps;
        self
    }

    /// Has the program stand beside this process, as [`super::sys::SpawnPlacement::Foreground`] says. Without a mask it has a
    /// session of its own.
    pub(super) fn foreground(mut self, mask: Option<&'a SignalMask>) -> Self {
        self.foreground = mask;
        self
    }

    /// Starts the program as a child of this process's parent, and returns it with the reason why it did not become
    /// the program, if it did not. In both cases it is the parent's to wait for.
    ///
    /// The program leads a new session, has every signal at its default action and none blocked, and has only
    /// descriptors 0, 1 and 2, unless it stands in the [foreground](Self::foreground): as after `posix_spawn(3)` in
    /// [`super::sys::spawn`].
    ///
    /// # Errors
    /// If no process can be made.
    pub(super) fn start_as_sibling(&self) -> io::Result<(ChildProcess, Option<io::Error>)> {
        in_child(libc::CLONE_PARENT, || self.become_program())
    }

    /// Replaces the calling process by the program. It returns only if that fails.
    fn become_program(&self) -> io::Error {
        let steps = || -> io::Result<()> {
            // SAFETY: no pointers; an open descriptor.
            step(unsafe { libc::fchdir(self.folder.as_raw_fd()) })?;
            match self.foreground {
                // The standard library of Rust ignores it before `main`; the program must not inherit that.
                // SAFETY: the default action runs no code.
                Some(_) => _ = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) },
                None => self.enter_session()?,
            }
            if self.nice > 0 {
                // SAFETY: no pointers. The result is the new value, which may be -1, and lowering it cannot fail.
                unsafe { libc::nice(self.nice) };
            }
            // Last of all, since the memory of this process is that of another until it becomes the program.
            for (resource, value) in &self.limits {
                lower_limit(*resource, *value)?;
            }
            // SAFETY: a set that is initialised; the program is NUL-terminated, and both vectors end in a null pointer.
            unsafe {
                let mut none = MaybeUninit::uninit();
                libc::sigemptyset(none.as_mut_ptr());
                let mask = self.foreground.map_or(none.as_ptr(), |mask| &raw const mask.0);
                step(libc::sigprocmask(libc::SIG_SETMASK, mask, ptr::null_mut()))?;
                step(libc::execve(
                    self.program.as_ptr(),
                    self.arguments.as_ptr().cast(),
                    self.environment.as_ptr().cast(),
                ))?;
            }
            Ok(())
        };
        steps().err().unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENOEXEC))
    }

    /// Gives the calling process a session, the streams of the program, and nothing else of this process.
    fn enter_session(&self) -> io::Result<()> {
        default_signals();
        // SAFETY: no pointers. The descriptors are open, and above 2, so that none is overwritten before its turn.
        unsafe {
            step(libc::setsid())?;
            for (descriptor, target) in self.stdio.iter().zip(0..) {
                step(libc::dup2(descriptor.as_raw_fd(), target))?;
            }
        }
        if let Some(terminal) = self.terminal {
            // SAFETY: a NUL-terminated path. The process leads its session, so the terminal becomes its own.
            let terminal = step(unsafe { libc::open(terminal.as_ptr(), libc::O_RDWR) })?;
            // SAFETY: no pointers; an open descriptor.
            step(unsafe { libc::dup2(terminal, 0) })?;
        }
        close_from(3)
    }
}

/// Returns the result of a system call, or its error.
fn step(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Calls `work` with all signals blocked in this thread. The threads that it starts keep them blocked, so that every signal of
/// the process is left to the others.
pub(crate) fn with_signals_blocked<T>(work: impl FnOnce() -> T) -> T {
    let _blocked = BlockedSignals::new();
    work()
}

/// Sets every signal of the calling process to its default action.
fn default_signals() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: the default action runs no code. A signal that has no other action is an error that says nothing.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

fn close_from(first: libc::c_uint) -> io::Result<()> {
    // SAFETY: no pointers; the descriptors are those of the calling process, which uses none of them any more.
    match unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0_u32) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Replaces the calling process by `program`, a static program in memory, in a session of its own and without any
/// signal. It gets `input` as its only descriptor. It returns only if that fails.
pub(super) fn become_init(program: &OwnedFd, input: &OwnedFd) -> io::Error {
    let arguments = [c"process-runner-init".as_ptr(), ptr::null()];
    let environment = [ptr::null::<libc::c_char>()];
    // SAFETY: the descriptors are open and the arrays end in a null pointer. An ignored signal runs no code; `SIGCHLD`
    // is ignored so that the kernel collects the children of the new program.
    unsafe {
        libc::setsid();
        default_signals();
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        // Two free numbers first, because one could be the target of the other.
        let input = libc::fcntl(input.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3);
        let program = libc::fcntl(program.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3);
        if input < 0 || program < 0 || libc::dup2(input, 0) < 0 || libc::dup3(program, 1, libc::O_CLOEXEC) < 0
        {
            return io::Error::last_os_error();
        }
        if let Err(error) = close_from(2) {
            return error;
        }
        libc::syscall(
            libc::SYS_execveat,
            1,
            c"".as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
    }
    io::Error::last_os_error()
}

/// Sends `signal` to every process in the PID namespace of the calling process but itself and the first one (kill(2)). No
/// process that is forked meanwhile is missed: the kernel does not let a process fork that has a signal to act on.
///
/// `namespace` is the inode of that namespace. It is compared first, because in another one everything would be signalled
/// that this user may signal.
pub(super) fn signal_namespace(signal: Signal, namespace: u64) -> io::Result<()> {
    if stat("/proc/self/ns/pid")?.st_ino != namespace {
        return Err(io::Error::other("the process is not in the namespace"));
    }
    // SAFETY: no pointers.
    match unsafe { libc::kill(-1, signal.as_raw()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets attributes (`MOUNT_ATTR_*`) of a mount, and with `recursive` of all mounts beneath it.
pub(super) fn set_mount_attributes(
    mount: BorrowedFd<'_>,
    attributes: u64,
    recursive: bool,
) -> io::Result<()> {
    /// `struct mount_attr` of `<linux/mount.h>`.
    #[repr(C)]
    struct MountAttributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    /// The same number on every architecture.
    const MOUNT_SETATTR: libc::c_long = 442;
    const AT_RECURSIVE: libc::c_int = 0x8000;
    let value = MountAttributes { set: attributes, clear: 0, propagation: 0, user_namespace: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { AT_RECURSIVE } else { 0 };
    // SAFETY: an open descriptor, an empty NUL-terminated path, and a live value of the kernel's layout with its size.
    let result = unsafe {
        libc::syscall(
            MOUNT_SETATTR,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const value,
            size_of::<MountAttributes>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Switches the loopback interface of the calling process's network namespace on.
pub(super) fn enable_loopback(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: plain data for which all zeroes is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (target, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *target = byte.cast_signed() as libc::c_char;
    }
    // Both flags are small: `IFF_UP` and `IFF_RUNNING`.
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(1);
    // SAFETY: an open socket and a live value of the type that the request takes.
    match unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
