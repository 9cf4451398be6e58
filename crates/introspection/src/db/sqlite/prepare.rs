//! The preparation of a statement, without running it: how many there are, their columns and parameters.
#![allow(unsafe_code, reason = "sqlx prepares only what it runs")]

use super::super::{Error, ResultColumn};
use super::guard::is_lock_code;
use libsqlite3_sys as ffi;
use sqlx::sqlite::{LockedSqliteHandle, SqliteConnection};
use std::ffi::{CStr, c_char, c_int};
use tokio::runtime::Handle;

/// SQLite's description of a text before it runs.
pub(super) struct PreparedText {
    /// The number of statements.
    pub(super) statements: usize,
    /// The columns of the last statement.
    pub(super) columns: Vec<ResultColumn>,
    /// The number of its parameters.
    pub(super) parameters: usize,
    /// No statement changes the database directly. That is true of `ATTACH` and `BEGIN` too, so it is no protection: the
    /// authorizer is.
    pub(super) reads_only: bool,
    /// Every statement is an `EXPLAIN`.
    pub(super) explains: bool,
}

/// Has SQLite prepare every statement of `text`, one after the other, and runs none. Returns the connection in any case but
/// one: that the thread has panicked.
///
/// A thread of its own does it: to prepare, SQLite waits for locks, reads the schema, and expands views in views, which may
/// take any time.
pub(super) async fn prepare(
    mut connection: SqliteConnection,
    text: String,
) -> (Option<SqliteConnection>, Result<PreparedText, Error>) {
    let runtime = Handle::current();
    let prepared = tokio::task::spawn_blocking(move || {
        // The lock is there at once: nothing runs on the connection.
        let prepared = runtime
            .block_on(connection.lock_handle())
            .map_err(Error::engine)
            .and_then(|mut locked| prepare_all(&mut locked, &text));
        (connection, prepared)
    });
    match prepared.await {
        Ok((connection, prepared)) => (Some(connection), prepared),
        Err(error) => (None, Err(Error::engine_message(error.to_string()))),
    }
}

fn prepare_all(locked: &mut LockedSqliteHandle<'_>, text: &str) -> Result<PreparedText, Error> {
    let database = locked.as_raw_handle().as_ptr();
    let mut prepared =
        PreparedText { statements: 0, columns: Vec::new(), parameters: 0, reads_only: true, explains: true };
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let mut statement = std::ptr::null_mut();
        let mut tail = std::ptr::null();
        // The length is given, so the text need not end in NUL.
        let length = c_int::try_from(rest.len()).unwrap_or(c_int::MAX);
        // SAFETY: the handle is locked; the text has `length` bytes.
        let code = unsafe {
            ffi::sqlite3_prepare_v2(database, rest.as_ptr().cast(), length, &raw mut statement, &raw mut tail)
        };
        if code != ffi::SQLITE_OK {
            // SAFETY: the message lives until the next call on the handle.
            let message =
                unsafe { CStr::from_ptr(ffi::sqlite3_errmsg(database)) }.to_string_lossy().into_owned();
            // The code says nothing beyond the message, but for a lock, which the caller looks for.
            let code = is_lock_code(code).then(|| code.to_string());
            return Err(Error::Engine { message, code });
        }
        let used = (tail as usize).saturating_sub(rest.as_ptr() as usize).min(rest.len());
        // A tail that does not advance would loop for ever.
        rest = if used == 0 { &[] } else { &rest[used..] };
        if statement.is_null() {
            // White space, or a comment.
            continue;
        }
        prepared.statements += 1;
        // SAFETY: the statement was prepared above and is finalized below; its texts live as long as it.
        unsafe {
            prepared.reads_only &= ffi::sqlite3_stmt_readonly(statement) != 0;
            prepared.explains &= ffi::sqlite3_stmt_isexplain(statement) != 0;
            prepared.parameters =
                usize::try_from(ffi::sqlite3_bind_parameter_count(statement)).unwrap_or_default();
            prepared.columns = (0..ffi::sqlite3_column_count(statement))
                .map(|index| {
                    let text = |text: *const c_char| {
                        if text.is_null() {
                            String::new()
                        } else {
                            CStr::from_ptr(text).to_string_lossy().into_owned()
                        }
                    };
                    let name = text(ffi::sqlite3_column_name(statement, index));
                    ResultColumn { name, kind: text(ffi::sqlite3_column_decltype(statement, index)) }
                })
                .collect();
            ffi::sqlite3_finalize(statement);
        }
    }
    Ok(prepared)
}
