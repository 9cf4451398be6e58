//! The VFS by which SQLite opens files: a copy of the system's that opens less.
//!
//! - **Paths are opened as they are given.** SQLite makes a path absolute before it opens it, by reading links one by one. A
//!   path through `/proc/self/fd` would become the path that the handle had a moment ago, which somebody may have replaced
//!   since. On Linux this VFS opens the file, and its `-wal`, `-shm` and `-journal`, by the path given, with `O_NOFOLLOW`.
//! - **No journal leads to another file.** The rollback journal of a transaction over several files names a super-journal, by
//!   an absolute path, which SQLite would read and delete when it rolls back. Whoever can write a journal beside a database
//!   could so have any file of this process deleted. No call here changes several files, so that none is ever needed.
//!
//! <https://www.sqlite.org/c3ref/vfs.html>, <https://www.sqlite.org/fileformat2.html#the_rollback_journal>
#![allow(unsafe_code, reason = "sqlx does not wrap SQLite's file systems")]

use libsqlite3_sys as ffi;
use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

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
        // SAFETY: the arguments are those of SQLite.
        Some(methods) => unsafe { (methods.open)(vfs, path, file, flags, out_flags) },
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
