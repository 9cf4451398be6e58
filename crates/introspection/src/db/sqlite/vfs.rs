//! The VFS by which SQLite opens files: a copy of the system's that opens less.
//!
//! - **Paths are opened as they are given.** SQLite makes a path absolute before it opens it, by reading links one by one. A
//!   path through `/proc/self/fd` would become the path that the handle had a moment ago, which somebody may have replaced
//!   since. On Linux this VFS opens the file, and its `-wal`, `-shm` and `-journal`, by the path given, with `O_NOFOLLOW`.
//! - **No journal leads to another file.** The rollback journal of a transaction over several files names a super-journal, by
//!   an absolute path, which SQLite would read and delete when it rolls back. Whoever can write a journal beside a database
//!   could so have any file of this process deleted. No call here changes several files, so that none is ever needed.
//! - **A `-shm` file that is cut is an error.** SQLite maps that file into memory. The mappings are listed for the handler of
//!   `mapping`, and a connection that has lost one gets no lock and writes nothing more. (On Windows a mapped file cannot be
//!   cut.)
//!
//! <https://www.sqlite.org/c3ref/vfs.html>, <https://www.sqlite.org/fileformat2.html#the_rollback_journal>
#![allow(unsafe_code, reason = "sqlx does not wrap SQLite's file systems")]

#[cfg(unix)]
use super::mapping;
use libsqlite3_sys as ffi;
#[cfg(unix)]
use sqlx::sqlite::SqliteConnection;
#[cfg(unix)]
use std::ffi::c_void;
use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;
#[cfg(unix)]
use std::sync::{Mutex, PoisonError};

const NAME: &CStr = c"coretools-by-handle";

/// The system's VFS, whose methods do the work.
static DEFAULT: OnceLock<Option<DefaultMethods>> = OnceLock::new();

/// The methods of the system's VFS that are called behind a check.
#[derive(Clone, Copy)]
struct DefaultMethods {
    open: OpenMethod,
    access: AccessMethod,
}

type OpenMethod = unsafe extern "C" fn(
    *mut ffi::sqlite3_vfs,
    ffi::sqlite3_filename,
    *mut ffi::sqlite3_file,
    c_int,
    *mut c_int,
) -> c_int;
type AccessMethod = unsafe extern "C" fn(*mut ffi::sqlite3_vfs, *const c_char, c_int, *mut c_int) -> c_int;

/// Returns the name of the VFS to open a database with, which is registered. `None` if SQLite has no VFS of its own: then
/// it opens nothing at all.
pub(super) fn name() -> Option<&'static str> {
    DEFAULT.get_or_init(register).is_some().then_some(NAME.to_str().unwrap_or_default())
}

fn register() -> Option<DefaultMethods> {
    // SAFETY: null asks for the default VFS, which lives as long as the process.
    let default = unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) };
    // SAFETY: null, or the default VFS.
    let mut vfs = *unsafe { default.as_ref() }?;
    let methods = DefaultMethods { open: vfs.xOpen?, access: vfs.xAccess? };
    vfs.zName = NAME.as_ptr();
    // The registration sets the link to the next VFS; the copy has that of the default.
    vfs.pNext = std::ptr::null_mut();
    vfs.xOpen = Some(open_own);
    #[cfg(unix)]
    if !mapping::install() {
        return None;
    }
    if cfg!(target_os = "linux") {
        vfs.xFullPathname = Some(copy_path);
        vfs.xAccess = Some(access_own);
    }
    // SAFETY: a complete VFS, whose methods are the default's and work on any with its `pAppData`. It is leaked, so it
    // lives as long as SQLite may use it.
    let registered = unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(vfs)), 0) };
    (registered == ffi::SQLITE_OK).then_some(methods)
}

/// Returns the system's methods, which are there before a database is opened.
fn default_methods() -> Option<DefaultMethods> {
    *DEFAULT.get()?
}

/// `xOpen`: opens every file but a super-journal.
unsafe extern "C" fn open_own(
    vfs: *mut ffi::sqlite3_vfs,
    path: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    match default_methods().filter(|_| flags & ffi::SQLITE_OPEN_SUPER_JOURNAL == 0) {
        Some(methods) => {
            // SAFETY: the arguments are those of SQLite.
            let code = unsafe { (methods.open)(vfs, path, file, flags, out_flags) };
            #[cfg(unix)]
            if code == ffi::SQLITE_OK && flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
                // SAFETY: a file that was opened has methods, or null.
                unsafe { (*file).pMethods = guarded_methods((*file).pMethods) };
            }
            code
        }
        None => {
            // SAFETY: SQLite gives a file to fill in. One without methods is not closed.
            unsafe { (*file).pMethods = std::ptr::null() };
            ffi::SQLITE_CANTOPEN
        }
    }
}

/// `xAccess`: looks at nothing but the files of a database. The path of a super-journal fails here, before anything is
/// rolled back.
unsafe extern "C" fn access_own(
    vfs: *mut ffi::sqlite3_vfs,
    path: *const c_char,
    flags: c_int,
    result: *mut c_int,
) -> c_int {
    // SAFETY: SQLite gives a string that ends in NUL.
    let is_own = is_database_file(unsafe { CStr::from_ptr(path) }.to_bytes());
    match default_methods().filter(|_| is_own) {
        // SAFETY: the arguments are those of SQLite.
        Some(methods) => unsafe { (methods.access)(vfs, path, flags, result) },
        None => ffi::SQLITE_CANTOPEN,
    }
}

/// Returns true for the path of a file in a folder that is held open: `/proc/self/fd/7/app.db`.
fn is_database_file(path: &[u8]) -> bool {
    let parts = path.strip_prefix(b"/proc/self/fd/").map(|rest| rest.split(|byte| *byte == b'/'));
    match parts.map(Iterator::collect::<Vec<_>>).as_deref() {
        Some([handle, name]) => handle.iter().all(u8::is_ascii_digit) && !matches!(*name, b"" | b"." | b".."),
        _ => false,
    }
}

/// `xFullPathname`: copies `path` to `out`, which has `size` bytes, as it is.
unsafe extern "C" fn copy_path(
    _: *mut ffi::sqlite3_vfs,
    path: *const c_char,
    size: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite gives a string that ends in NUL.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes_with_nul();
    if usize::try_from(size).map_or(true, |size| path.len() > size) {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: `out` has room for `size` bytes, which are no fewer, and is SQLite's own buffer.
    unsafe { std::ptr::copy_nonoverlapping(path.as_ptr().cast(), out, path.len()) };
    ffi::SQLITE_OK
}

/// The methods of a database file, and the system's methods that they call.
#[cfg(unix)]
#[repr(C)]
struct GuardedMethods {
    /// The first member, so that a pointer to it is one to the whole.
    methods: ffi::sqlite3_io_methods,
    system: ffi::sqlite3_io_methods,
}

/// Returns methods that guard what the file maps, for a file that has those at `system`; `system` itself if they map nothing.
#[cfg(unix)]
fn guarded_methods(system: *const ffi::sqlite3_io_methods) -> *const ffi::sqlite3_io_methods {
    /// The system has one set of methods for each kind of lock, so these are a few. Each address is that of methods that live
    /// as long as the process.
    static KNOWN: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());
    // SAFETY: null, or methods of the system.
    let Some(original) = (unsafe { system.as_ref() }) else { return system };
    // Version 1 has no shared memory.
    if original.iVersion < 2 || original.xShmMap.is_none() {
        return system;
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, guarded)) = known.iter().find(|(address, _)| *address == system as usize) {
        return *guarded as *const ffi::sqlite3_io_methods;
    }
    let mut methods = *original;
    methods.xShmMap = Some(map_shared);
    methods.xShmLock = Some(lock_shared);
    methods.xShmUnmap = Some(unmap_shared);
    methods.xClose = Some(close);
    methods.xLock = Some(lock);
    methods.xWrite = Some(write);
    methods.xFileControl = Some(file_control);
    let guarded: *const GuardedMethods = Box::leak(Box::new(GuardedMethods { methods, system: *original }));
    known.push((system as usize, guarded as usize));
    guarded.cast()
}

/// Returns the system's methods of a file that has those of [`guarded_methods`].
///
/// # Safety
/// `file` is such a file, and open.
#[cfg(unix)]
unsafe fn system_methods(file: *mut ffi::sqlite3_file) -> &'static ffi::sqlite3_io_methods {
    // SAFETY: only those methods call this, so they are what the file has; they are leaked.
    unsafe { &(*(*file).pMethods.cast::<GuardedMethods>()).system }
}

/// `xShmMap`: maps a part of the `-shm` file, and lists the mapping.
#[cfg(unix)]
unsafe extern "C" fn map_shared(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    if mapping::is_lost(file as usize) {
        return ffi::SQLITE_IOERR_SHMMAP;
    }
    // SAFETY: an open file of ours, and the arguments of SQLite.
    let (code, start) = unsafe {
        let Some(method) = system_methods(file).xShmMap else { return ffi::SQLITE_IOERR_SHMMAP };
        let code = method(file, region, size, extend, out);
        (code, *out as usize)
    };
    // SQLITE_READONLY comes with a mapping too.
    let length = usize::try_from(size).unwrap_or_default();
    if start != 0 && !mapping::register(file as usize, start, length) {
        // SAFETY: SQLite's own variable.
        unsafe { *out = std::ptr::null_mut() };
        return ffi::SQLITE_IOERR_SHMMAP;
    }
    code
}

/// `xShmLock`: fails for a file that has lost a mapping. A lock can always be released.
#[cfg(unix)]
unsafe extern "C" fn lock_shared(
    file: *mut ffi::sqlite3_file,
    offset: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    if flags & ffi::SQLITE_SHM_LOCK != 0 && mapping::is_lost(file as usize) {
        return ffi::SQLITE_IOERR_SHMLOCK;
    }
    // SAFETY: an open file of ours, and the arguments of SQLite.
    unsafe {
        system_methods(file)
            .xShmLock
            .map_or(ffi::SQLITE_IOERR_SHMLOCK, |method| method(file, offset, count, flags))
    }
}

/// `xShmUnmap`: takes the mappings from the list, and unmaps them.
#[cfg(unix)]
unsafe extern "C" fn unmap_shared(file: *mut ffi::sqlite3_file, delete: c_int) -> c_int {
    mapping::unregister(file as usize);
    // SAFETY: an open file of ours, and the argument of SQLite.
    unsafe { system_methods(file).xShmUnmap.map_or(ffi::SQLITE_OK, |method| method(file, delete)) }
}

/// `xClose`: closes the file, whose mappings end with it.
#[cfg(unix)]
unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    mapping::unregister(file as usize);
    // SAFETY: an open file of ours.
    unsafe { system_methods(file).xClose.map_or(ffi::SQLITE_OK, |method| method(file)) }
}

/// `xLock`: gives no lock to a file that has lost a mapping, so that it copies nothing from the log when it is closed.
#[cfg(unix)]
unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    if mapping::is_lost(file as usize) {
        return ffi::SQLITE_IOERR_LOCK;
    }
    // SAFETY: an open file of ours, and the argument of SQLite.
    unsafe { system_methods(file).xLock.map_or(ffi::SQLITE_IOERR_LOCK, |method| method(file, level)) }
}

/// `xWrite`: writes nothing to a database whose log can no longer be found by its index.
#[cfg(unix)]
unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    count: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    if mapping::is_lost(file as usize) {
        return ffi::SQLITE_IOERR_WRITE;
    }
    // SAFETY: an open file of ours, and the arguments of SQLite.
    unsafe {
        system_methods(file)
            .xWrite
            .map_or(ffi::SQLITE_IOERR_WRITE, |method| method(file, from, count, offset))
    }
}

/// Asks a file whether it has lost a mapping; the argument is a `c_int`. SQLite leaves numbers from 100 on to others.
#[cfg(unix)]
const HAS_LOST_MAPPING: c_int = 0x6374_0001;

/// `xFileControl`: answers [`HAS_LOST_MAPPING`].
#[cfg(unix)]
unsafe extern "C" fn file_control(
    file: *mut ffi::sqlite3_file,
    operation: c_int,
    argument: *mut c_void,
) -> c_int {
    if operation == HAS_LOST_MAPPING {
        // SAFETY: only `has_lost_mapping` asks, with a `c_int`.
        unsafe { *argument.cast::<c_int>() = c_int::from(mapping::is_lost(file as usize)) };
        return ffi::SQLITE_OK;
    }
    // SAFETY: an open file of ours, and the arguments of SQLite.
    unsafe {
        system_methods(file)
            .xFileControl
            .map_or(ffi::SQLITE_NOTFOUND, |method| method(file, operation, argument))
    }
}

/// Returns true if the connection has lost a mapping of its `-shm` file: then its rows may be wrong.
#[cfg(unix)]
pub(super) async fn has_lost_mapping(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let mut locked = connection.lock_handle().await?;
    let mut is_lost: c_int = 0;
    // SAFETY: the handle is locked; null is the main database; the argument is what the operation takes.
    let code = unsafe {
        ffi::sqlite3_file_control(
            locked.as_raw_handle().as_ptr(),
            std::ptr::null(),
            HAS_LOST_MAPPING,
            (&raw mut is_lost).cast(),
        )
    };
    // A file whose methods are the system's maps nothing.
    Ok(code == ffi::SQLITE_OK && is_lost != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_in_a_folder_that_is_held_open_is_looked_at() {
        for own in ["/proc/self/fd/7/app.db", "/proc/self/fd/12/app.db-journal"] {
            assert!(is_database_file(own.as_bytes()), "{own}");
        }
        for other in [
            "",
            "/etc/passwd",
            "app.db",
            "/proc/self/fd/7",
            "/proc/self/fd/7/",
            "/proc/self/fd/7/../x",
            "/proc/self/fd/7/..",
            "/proc/self/fd/x/y",
        ] {
            assert!(!is_database_file(other.as_bytes()), "{other}");
        }
    }
}
