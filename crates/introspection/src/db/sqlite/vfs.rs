//! A VFS of SQLite that opens paths as they are given.
//!
//! SQLite makes a path absolute before it opens it, by reading links one by one. A path through `/proc/self/fd` would
//! become the path that the handle had a moment ago, which somebody may have replaced since. This VFS is a copy of the
//! system's except for that step: it opens the file, and its `-wal`, `-shm` and `-journal`, by the path given, with
//! `O_NOFOLLOW`.
//!
//! <https://www.sqlite.org/c3ref/vfs.html>, `xFullPathname`.
#![allow(unsafe_code, reason = "sqlx does not wrap SQLite's file systems")]

/// Returns the name of the VFS to open a database with, which is registered. `None` if SQLite has no VFS of its own: then
/// it opens nothing at all.
#[cfg(target_os = "linux")]
pub(super) fn name() -> Option<&'static str> {
    linux::name()
}

/// Returns `None`, for SQLite's default VFS: on this system a path cannot lead through a handle.
#[cfg(not(target_os = "linux"))]
pub(super) fn name() -> Option<&'static str> {
    None
}

#[cfg(target_os = "linux")]
mod linux {
    use libsqlite3_sys as ffi;
    use std::ffi::{CStr, c_char, c_int};
    use std::sync::OnceLock;

    const NAME: &CStr = c"coretools-by-handle";

    pub(super) fn name() -> Option<&'static str> {
        static REGISTERED: OnceLock<bool> = OnceLock::new();
        REGISTERED.get_or_init(register).then_some(NAME.to_str().unwrap_or_default())
    }

    fn register() -> bool {
        // SAFETY: null asks for the default VFS, which lives as long as the process.
        let default = unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) };
        // SAFETY: null, or the default VFS.
        let Some(default) = (unsafe { default.as_ref() }) else { return false };
        let mut vfs = *default;
        vfs.zName = NAME.as_ptr();
        // The registration sets the link to the next VFS; the copy has that of the default.
        vfs.pNext = std::ptr::null_mut();
        vfs.xFullPathname = Some(copy_path);
        // SAFETY: a complete VFS, whose methods are the default's and work on any with its `pAppData`. It is
        // leaked, so it lives as long as SQLite may use it.
        let registered = unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(vfs)), 0) };
        registered == ffi::SQLITE_OK
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
}
