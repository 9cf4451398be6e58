//! The restrictions that SQLite itself enforces: authorizer, limits, switches, time.
//!
//! <https://www.sqlite.org/c3ref/set_authorizer.html>, <https://www.sqlite.org/security.html>. Nothing here
//! reads SQL.
#![allow(unsafe_code, reason = "sqlx does not wrap SQLite's authorizer, limits and switches")]

use super::super::request::MAX_STATEMENT_BYTES;
use super::super::statement::{first_word, is_ddl};
use super::super::{DbAction, Error};
use libsqlite3_sys as ffi;
use sqlx::sqlite::SqliteConnection;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

/// The operations that the authorizer permits at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum AuthorizerMode {
    /// Everything: a statement of this module.
    Internal,
    /// Reading.
    Query,
    /// Preparing a statement that is not run, on a connection that cannot write.
    Explain,
    /// Reading and changing rows.
    Seed,
}

/// The state that SQLite's callbacks read as long as a connection lives.
#[derive(Debug)]
pub(super) struct ConnectionGuard {
    mode: AtomicU8,
    stopped: AtomicBool,
    first_denial: Mutex<Option<DeniedOperation>>,
    lock_wait: LockWait,
}

/// The wait for a lock of another connection.
#[derive(Debug)]
struct LockWait {
    limit: Duration,
    began: Mutex<Option<Instant>>,
    /// The duration of the last wait, in milliseconds.
    waited_ms: AtomicU64,
}

/// The pause between two attempts to get a lock.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);

impl LockWait {
    /// Waits a moment, and returns true, or returns false if the wait has been long enough. `attempt` counts from 0.
    fn wait(&self, attempt: c_int) -> bool {
        let mut began = self.began.lock().unwrap_or_else(PoisonError::into_inner);
        if attempt == 0 {
            *began = None;
        }
        let waited = began.get_or_insert_with(Instant::now).elapsed();
        let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        self.waited_ms.store(waited_ms, Ordering::SeqCst);
        if waited >= self.limit {
            return false;
        }
        std::thread::sleep(LOCK_RETRY_INTERVAL);
        true
    }
}

/// An operation that the authorizer denied.
#[derive(Debug)]
struct DeniedOperation {
    mode: AuthorizerMode,
    is_ddl: bool,
    /// The operation, in words for an error message.
    operation: String,
}

impl ConnectionGuard {
    /// Permits everything at first. `lock_wait_limit` is how long a statement waits for another connection's lock.
    pub(super) fn new(lock_wait_limit: Duration) -> Self {
        Self {
            mode: AtomicU8::new(AuthorizerMode::Internal as u8),
            stopped: AtomicBool::new(false),
            first_denial: Mutex::default(),
            lock_wait: LockWait {
                limit: lock_wait_limit,
                began: Mutex::default(),
                waited_ms: AtomicU64::new(0),
            },
        }
    }

    /// Converts SQLite's "database is locked" to an error that says how long the lock was waited for.
    pub(super) fn translate_lock(&self, error: Error) -> Error {
        let is_locked = matches!(&error, Error::Engine { code: Some(code), .. }
            if code.parse::<c_int>().is_ok_and(is_lock_code));
        if is_locked {
            return Error::Locked { waited_ms: self.lock_wait.waited_ms.load(Ordering::SeqCst) };
        }
        error
    }

    /// Permits the operations of `mode` from now on, and forgets earlier denials.
    pub(super) fn enter(&self, mode: AuthorizerMode) {
        self.mode.store(mode as u8, Ordering::SeqCst);
        *self.first_denial.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Ends the running statement and every later one.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    fn mode(&self) -> AuthorizerMode {
        match self.mode.load(Ordering::SeqCst) {
            0 => AuthorizerMode::Internal,
            2 => AuthorizerMode::Explain,
            3 => AuthorizerMode::Seed,
            // 1, and anything unknown, is the mode with the fewest rights.
            _ => AuthorizerMode::Query,
        }
    }

    /// Returns the error for `statement` if the authorizer denied it.
    pub(super) fn denial(&self, statement: &str) -> Option<Error> {
        let denial = self.first_denial.lock().unwrap_or_else(PoisonError::into_inner);
        let DeniedOperation { mode, is_ddl: denied_as_ddl, operation } = denial.as_ref()?;
        if *denied_as_ddl || is_ddl(statement) {
            return Some(Error::Ddl);
        }
        let action = match mode {
            AuthorizerMode::Seed => DbAction::Seed,
            AuthorizerMode::Explain => DbAction::Explain,
            AuthorizerMode::Query | AuthorizerMode::Internal => DbAction::Query,
        };
        Some(Error::NotPermitted { action, reason: operation.clone() })
    }

    /// Converts the error of a statement: a denial by the authorizer says more than the engine's "not authorized".
    pub(super) fn translate(&self, error: Error, statement: &str) -> Error {
        self.denial(statement).unwrap_or_else(|| if is_ddl(statement) { Error::Ddl } else { error })
    }

    /// Decides whether SQLite may carry out an operation, and remembers the first that it may not.
    ///
    /// `code`, `first` and `second` are those of the authorizer. Codes that are not listed are denied.
    fn permits(&self, code: c_int, first: &str, second: &str) -> bool {
        let mode = self.mode();
        if mode == AuthorizerMode::Internal {
            return true;
        }
        // SQLite reserves this prefix for its own tables and compares names without case.
        let is_internal =
            |table: &str| table.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("sqlite_"));
        let (permitted, is_ddl, operation) = match code {
            ffi::SQLITE_READ | ffi::SQLITE_SELECT | ffi::SQLITE_RECURSIVE => (true, false, ""),
            ffi::SQLITE_FUNCTION => (
                !DENIED_FUNCTIONS.iter().any(|name| second.eq_ignore_ascii_case(name)),
                false,
                "this function",
            ),
            ffi::SQLITE_PRAGMA => (is_pragma_permitted(first, second), false, "this pragma, or setting it"),
            // DDL is carried out as changes of these tables. `sqlite_sequence` is the one whose rows may also be changed
            // by hand.
            ffi::SQLITE_INSERT | ffi::SQLITE_UPDATE | ffi::SQLITE_DELETE if is_internal(first) => {
                (false, !first.eq_ignore_ascii_case("sqlite_sequence"), "changing SQLite's own tables")
            }
            ffi::SQLITE_INSERT | ffi::SQLITE_UPDATE | ffi::SQLITE_DELETE => {
                (mode != AuthorizerMode::Query, false, "changing rows; see `seed`")
            }
            ffi::SQLITE_ATTACH | ffi::SQLITE_DETACH => (false, false, "another database file"),
            ffi::SQLITE_TRANSACTION | ffi::SQLITE_SAVEPOINT => {
                (false, false, "a transaction; each call is one")
            }
            _ => (false, true, "DDL"),
        };
        if !permitted {
            let mut denial = self.first_denial.lock().unwrap_or_else(PoisonError::into_inner);
            denial.get_or_insert(DeniedOperation { mode, is_ddl, operation: operation.to_owned() });
        }
        permitted
    }
}

/// Tells whether a result code, or an extended one, means that another connection holds a lock.
pub(super) fn is_lock_code(code: c_int) -> bool {
    // The low byte of an extended code is the code itself.
    matches!(code & 0xff, ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED)
}

/// Functions that reach beyond the database. SQLite has them only where it was built with them.
const DENIED_FUNCTIONS: [&str; 6] =
    ["load_extension", "readfile", "writefile", "edit", "fts3_tokenizer", "sqlite_dbpage"];

/// Pragmas that only read, with or without an argument.
const READING_PRAGMAS: [&str; 13] = [
    "collation_list",
    "compile_options",
    "foreign_key_check",
    "foreign_key_list",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
];
/// Pragmas that read a setting without an argument, and change it with one.
const SETTING_PRAGMAS: [&str; 15] = [
    "application_id",
    "auto_vacuum",
    "cache_size",
    "data_version",
    "encoding",
    "foreign_keys",
    "freelist_count",
    "journal_mode",
    "page_count",
    "page_size",
    "query_only",
    "recursive_triggers",
    "schema_version",
    "synchronous",
    "user_version",
];

fn is_pragma_permitted(name: &str, argument: &str) -> bool {
    let is = |known: &[&str]| known.iter().any(|known| name.eq_ignore_ascii_case(known));
    is(&READING_PRAGMAS) || (argument.is_empty() && is(&SETTING_PRAGMAS))
}

/// The error for a statement that the authorizer permits and that is no query.
pub(super) fn not_a_query(statement: &str) -> Error {
    if is_ddl(statement) {
        return Error::Ddl;
    }
    let reason = format!("`{}` reads no rows", first_word(statement));
    Error::NotPermitted { action: DbAction::Query, reason }
}

/// The error for a statement that the authorizer permits and that is no seed.
pub(super) fn not_a_seed(statement: &str) -> Error {
    if is_ddl(statement) {
        return Error::Ddl;
    }
    let reason = format!("`{}` changes no rows; see `query`", first_word(statement));
    Error::NotPermitted { action: DbAction::Seed, reason }
}

/// The longest text or blob, in bytes, in a row and within a statement.
const MAX_VALUE_BYTES: c_int = 16 << 20;
/// The memory limit of all SQLite databases of the process together, in bytes.
const MAX_MEMORY_BYTES: i64 = 256 << 20;
/// The number of instructions that SQLite's virtual machine runs between two calls of the progress handler, which takes
/// tens of microseconds.
const PROGRESS_STEPS: c_int = 1000;

/// Puts all restrictions on a connection. They hold until it is closed.
///
/// # Errors
/// This SQLite lacks one of them: then nothing may run on the connection.
pub(super) async fn restrict(
    connection: &mut SqliteConnection,
    guard: &Arc<ConnectionGuard>,
) -> Result<(), Error> {
    static MEMORY: Once = Once::new();
    // SAFETY: it may be called at any time.
    // The limit is one of the process, not of the connection.
    MEMORY.call_once(|| unsafe {
        ffi::sqlite3_hard_heap_limit64(MAX_MEMORY_BYTES);
    });
    let mut locked = connection.lock_handle().await.map_err(Error::engine)?;
    let handler_guard = Arc::clone(guard);
    // Relaxed: the flag orders nothing else, and a statement that ends a few instructions later does no harm.
    locked.set_progress_handler(PROGRESS_STEPS, move || !handler_guard.stopped.load(Ordering::Relaxed));
    let database = locked.as_raw_handle().as_ptr();
    // <https://www.sqlite.org/c3ref/c_dbconfig_defensive.html>. The schema of a file that somebody else made is not
    // trusted, and a text in double quotes is a name and never a string.
    let switches = [
        (ffi::SQLITE_DBCONFIG_DEFENSIVE, 1),
        (ffi::SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
        (ffi::SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
        (ffi::SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0),
        (ffi::SQLITE_DBCONFIG_DQS_DML, 0),
        (ffi::SQLITE_DBCONFIG_DQS_DDL, 0),
    ];
    let limits = [
        (ffi::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES),
        // Room for `EXPLAIN QUERY PLAN ` before the longest statement.
        (ffi::SQLITE_LIMIT_SQL_LENGTH, c_int::try_from(MAX_STATEMENT_BYTES + 64).unwrap_or(c_int::MAX)),
        (ffi::SQLITE_LIMIT_ATTACHED, 0),
        (ffi::SQLITE_LIMIT_TRIGGER_DEPTH, 20),
        (ffi::SQLITE_LIMIT_WORKER_THREADS, 0),
    ];
    let mut is_complete = true;
    for (switch, value) in switches {
        // SAFETY: the handle is open and nobody else uses it while it is locked; these switches take an int and a
        // pointer to one, which may be null.
        is_complete &= unsafe {
            ffi::sqlite3_db_config(database, switch, value as c_int, std::ptr::null_mut::<c_int>())
        } == ffi::SQLITE_OK;
    }
    for (limit, value) in limits {
        // SAFETY: as above.
        is_complete &= unsafe { ffi::sqlite3_limit(database, limit, value) } >= 0;
    }
    // sqlx runs SQLite on a thread of its own, which calls the authorizer until the connection is closed. So SQLite owns a
    // count of the guard, and gives it back at that moment.
    let guard_pointer = Arc::into_raw(Arc::clone(guard)).cast_mut().cast::<c_void>();
    // SAFETY: the pointer is one count of an `Arc<ConnectionGuard>`, which `release_guard` takes back when SQLite is done with it,
    // also where this fails.
    is_complete &= unsafe {
        ffi::sqlite3_set_clientdata(database, c"coretools-guard".as_ptr(), guard_pointer, Some(release_guard))
    } == ffi::SQLITE_OK;
    if is_complete {
        // SAFETY: the guard lives as long as the connection, and is only read by reference.
        is_complete &= unsafe { ffi::sqlite3_set_authorizer(database, Some(authorize), guard_pointer) }
            == ffi::SQLITE_OK;
        // SAFETY: as above. It replaces the time limit that sqlx set, which can neither be stopped nor asked how long it
        // waited.
        is_complete &= unsafe { ffi::sqlite3_busy_handler(database, Some(wait_for_lock), guard_pointer) }
            == ffi::SQLITE_OK;
    }
    if is_complete {
        Ok(())
    } else {
        Err(Error::engine_message("this SQLite cannot be restricted to reading, so nothing is run"))
    }
}

/// Takes back the count of the guard that SQLite owns.
unsafe extern "C" fn release_guard(guard: *mut c_void) {
    // SAFETY: the pointer that `restrict` gave; SQLite calls this once.
    drop(unsafe { Arc::from_raw(guard.cast_const().cast::<ConnectionGuard>()) });
}

/// The busy handler: <https://www.sqlite.org/c3ref/busy_handler.html>. It runs on the connection's own thread.
unsafe extern "C" fn wait_for_lock(guard: *mut c_void, attempt: c_int) -> c_int {
    // SAFETY: the pointer that `restrict` gave, whose count is SQLite's until the connection is closed.
    let guard = unsafe { &*guard.cast_const().cast::<ConnectionGuard>() };
    // The wait is noted first: an error may have to tell it.
    let may_retry = guard.lock_wait.wait(attempt) && !guard.stopped.load(Ordering::SeqCst);
    c_int::from(may_retry)
}

/// The authorizer: <https://www.sqlite.org/c3ref/set_authorizer.html>.
unsafe extern "C" fn authorize(
    guard: *mut c_void,
    code: c_int,
    first: *const c_char,
    second: *const c_char,
    _database: *const c_char,
    _trigger: *const c_char,
) -> c_int {
    // SAFETY: SQLite gives null, or a string that ends in NUL and lives during the call.
    let text = |text: *const c_char| {
        if text.is_null() { "".into() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy() }
    };
    // SAFETY: the pointer that `restrict` gave, whose count is SQLite's until the connection is closed.
    let guard = unsafe { &*guard.cast_const().cast::<ConnectionGuard>() };
    // DENY makes the preparation fail; IGNORE would return NULL for the value and hide the denial.
    if guard.permits(code, &text(first), &text(second)) { ffi::SQLITE_OK } else { ffi::SQLITE_DENY }
}
