//! The memory that SQLite maps from a `-shm` file, guarded against the loss of that file.
//!
//! SQLite maps the index of a write-ahead log into memory, and reads it without a system call. A program that shortens the
//! file meanwhile makes the next access raise SIGBUS, which ends the process. The handler of this module puts empty memory
//! in the place of such a mapping and marks its owner as failed; the VFS then fails what that owner still does. Every other
//! SIGBUS goes to the handler that was there before.
//!
//! A mapping is listed as long as it exists, in a table of atomics: a signal handler may take no lock and no memory.
#![allow(unsafe_code, reason = "no safe crate handles a fault of mapped memory")]

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The most mappings at a time. One covers 4096 pages of a log, so this is 16 GB of log for databases of the smallest usual
/// page.
const MAX_MAPPINGS: usize = 1024;

/// A mapping of a `-shm` file.
struct ShmMapping {
    /// The address of the file that mapped it; 0 while the entry is free.
    owner: AtomicUsize,
    /// The first address, or 0 while the entry is being written.
    start: AtomicUsize,
    length: AtomicUsize,
    /// Its file was cut, and the memory is empty memory now.
    is_lost: AtomicBool,
}

static MAPPINGS: [ShmMapping; MAX_MAPPINGS] = [const {
    ShmMapping {
        owner: AtomicUsize::new(0),
        start: AtomicUsize::new(0),
        length: AtomicUsize::new(0),
        is_lost: AtomicBool::new(false),
    }
}; MAX_MAPPINGS];
/// The number of entries that were ever in use: the others are not searched.
static USED: AtomicUsize = AtomicUsize::new(0);
/// The size of a page of memory, and the handler that was there before; absent if the handler could not be set.
static INSTALLED: OnceLock<Option<InstalledHandler>> = OnceLock::new();

struct InstalledHandler {
    page_size: usize,
    previous: libc::sigaction,
}

fn used() -> &'static [ShmMapping] {
    &MAPPINGS[..USED.load(Ordering::SeqCst).min(MAX_MAPPINGS)]
}

/// Sets the handler, once in the life of the process. Returns false if the system refuses it.
pub(super) fn install() -> bool {
    INSTALLED.get_or_init(set_handler).is_some()
}

fn set_handler() -> Option<InstalledHandler> {
    // SAFETY: it only reads a setting.
    let page_size = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    // SAFETY: all zeros is a valid action, and the next lines set what it consists of.
    let (mut action, mut previous) = unsafe { (std::mem::zeroed::<libc::sigaction>(), std::mem::zeroed()) };
    action.sa_sigaction = on_bus_error as extern "C" fn(_, _, _) as usize;
    // On the alternate stack, as the handler of the standard library for this signal.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: both are live and initialised; the handler calls nothing that a handler may not call.
    let result = unsafe { libc::sigaction(libc::SIGBUS, &raw const action, &raw mut previous) };
    (result == 0).then_some(InstalledHandler { page_size, previous })
}

/// Lists the mapping of `length` bytes at `start`, which `owner` uses. Returns false if the table is full.
///
/// Several owners may use one mapping. If it is lost for one of them, it is lost for all.
pub(super) fn register(owner: usize, start: usize, length: usize) -> bool {
    for (index, mapping) in MAPPINGS.iter().enumerate() {
        if mapping.owner.compare_exchange(0, owner, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            USED.fetch_max(index + 1, Ordering::SeqCst);
            mapping.length.store(length, Ordering::SeqCst);
            mapping.is_lost.store(false, Ordering::SeqCst);
            mapping.start.store(start, Ordering::SeqCst);
            // After the handler can see this entry: a loss in between marks either this entry, or one that is found here.
            let was_lost = used().iter().any(|other| {
                other.start.load(Ordering::SeqCst) == start && other.is_lost.load(Ordering::SeqCst)
            });
            mapping.is_lost.fetch_or(was_lost, Ordering::SeqCst);
            return true;
        }
    }
    false
}

/// Takes the mappings of `owner` from the list. Call this before they are unmapped.
pub(super) fn unregister(owner: usize) {
    for mapping in used().iter().filter(|mapping| mapping.owner.load(Ordering::SeqCst) == owner) {
        mapping.start.store(0, Ordering::SeqCst);
        mapping.owner.store(0, Ordering::SeqCst);
    }
}

/// Returns true if a mapping of `owner` was lost.
pub(super) fn is_lost(owner: usize) -> bool {
    used().iter().any(|mapping| {
        mapping.owner.load(Ordering::SeqCst) == owner && mapping.is_lost.load(Ordering::SeqCst)
    })
}

/// The handler of SIGBUS.
extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: with SA_SIGINFO the system gives the description of the signal, which for SIGBUS has an address. A SIGBUS that
    // another process sends has none that is a mapping: it is 0 or an id.
    let address = unsafe { (*info).si_addr() } as usize;
    // Absent for the moment in which `sigaction` returns on another thread: no mapping is listed then.
    let installed = INSTALLED.get().and_then(Option::as_ref);
    // SAFETY: as above.
    let is_sent = unsafe { (*info).si_code } <= 0;
    if !is_sent
        && let Some(installed) = installed
        && replace_mapping(address, installed.page_size)
    {
        return;
    }
    pass_on(installed, signal, info, context);
}

/// Puts empty memory in the place of the mapping that has `address`. Returns false if there is none.
fn replace_mapping(address: usize, page_size: usize) -> bool {
    let mut is_replaced = false;
    for mapping in used() {
        let start = mapping.start.load(Ordering::SeqCst);
        let end = start.saturating_add(mapping.length.load(Ordering::SeqCst));
        if start == 0 || !(start..end).contains(&address) {
            continue;
        }
        mapping.is_lost.store(true, Ordering::SeqCst);
        if is_replaced {
            continue;
        }
        let first_page = start - start % page_size;
        // SAFETY: the range is that of a mapping that exists: the thread that raised the signal uses it, and a mapping is
        // unmapped only when no file uses it any more. `mmap` is a bare system call.
        let memory = unsafe {
            libc::mmap(
                first_page as *mut c_void,
                end - first_page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_ANON,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return false;
        }
        is_replaced = true;
    }
    is_replaced
}

/// Has the previous handler deal with a signal. The default is set again where there was none: the access is then repeated
/// and ends the process.
fn pass_on(
    installed: Option<&InstalledHandler>,
    signal: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    let previous = installed.map(|installed| &installed.previous);
    let handler = previous.map_or(libc::SIG_DFL, |action| action.sa_sigaction);
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // SAFETY: all zeros is the default action with no flags.
        unsafe {
            let action = std::mem::zeroed::<libc::sigaction>();
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
        return;
    }
    if previous.is_some_and(|action| action.sa_flags & libc::SA_SIGINFO != 0) {
        // SAFETY: an action with this flag has a handler of this type.
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
            unsafe { std::mem::transmute(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: an action without the flag has a handler of this type.
        let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
        handler(signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    /// Maps two pages of an own file.
    fn map(file: &std::fs::File) -> usize {
        // SAFETY: a new mapping, at an address of the system's choice.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                8192,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(memory, libc::MAP_FAILED);
        memory as usize
    }

    #[test]
    fn a_mapping_whose_file_is_cut_reads_as_zeros_and_is_lost_for_all_its_owners() {
        assert!(install());
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let start = map(&file);
        assert!(register(1, start, 8192) && register(2, start, 8192) && register(3, start + (1 << 30), 8192));
        let cell = (start + 100) as *mut u8;
        // SAFETY: inside the mapping.
        unsafe { cell.write_volatile(7) };
        assert!(!is_lost(1));
        file.set_len(0).unwrap();
        // SAFETY: inside the mapping; what it reads is the subject of the test.
        assert_eq!(unsafe { cell.read_volatile() }, 0);
        assert!(is_lost(1) && is_lost(2) && !is_lost(3));
        assert!(register(4, start, 8192) && is_lost(4));
        for owner in 1..=4 {
            unregister(owner);
            assert!(!is_lost(owner));
        }
        // SAFETY: the mapping of this test, which nothing uses any more.
        assert_eq!(unsafe { libc::munmap(start as *mut c_void, 8192) }, 0);
    }
}
