//! What SQLite itself refuses: the authorizer, the limits, the switches, the time.
//!
//! <https://www.sqlite.org/c3ref/set_authorizer.html>, <https://www.sqlite.org/security.html>. Nothing here
//! reads SQL.
#![allow(unsafe_code, reason = "sqlx does not wrap SQLite's authorizer, limits and switches")]

use super::super::request::MOST_STATEMENT_BYTES;
use super::super::statement::{defines, first_word};
use super::super::{Column, Error};
use libsqlite3_sys as ffi;
use sqlx::sqlite::SqliteConnection;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

/// What may be done at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Mode {
    /// Our own statements: anything.
    Internal,
    /// Read.
    Query,
    /// Prepare what is not run, on a connection that could not write.
    Explain,
    /// Change rows.
    Seed,
}

/// What the engine asks while a connection lives.
#[derive(Debug)]
pub(super) struct Guard {
    mode: AtomicU8,
    stopped: AtomicBool,
    refused: Mutex<Option<Refused>>,
}

/// What was refused first.
#[derive(Debug)]
struct Refused {
    mode: Mode,
    defines: bool,
    what: String,
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            mode: AtomicU8::new(Mode::Internal as u8),
            stopped: AtomicBool::new(false),
            refused: Mutex::default(),
        }
    }
}

impl Guard {
    /// From now on this may be done.
    pub(super) fn enter(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::SeqCst);
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Ends the statement that runs, and all that follow.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    fn mode(&self) -> Mode {
        match self.mode.load(Ordering::SeqCst) {
            0 => Mode::Internal,
            2 => Mode::Explain,
            3 => Mode::Seed,
            _ => Mode::Query,
        }
    }

    /// Why `statement` was refused, if the guard did that.
    pub(super) fn refusal(&self, statement: &str) -> Option<Error> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let Refused { mode, defines: by_kind, what } = refused.as_ref()?;
        if *by_kind || defines(statement) {
            return Some(Error::Ddl);
        }
        let action = match mode {
            Mode::Seed => "seed",
            Mode::Explain => "explain",
            Mode::Query | Mode::Internal => "query",
        };
        Some(Error::NotPermitted { action, reason: what.clone() })
    }

    /// Why `statement` failed: the guard refused it, or the engine says.
    pub(super) fn words(&self, error: Error, statement: &str) -> Error {
        self.refusal(statement).unwrap_or_else(|| if defines(statement) { Error::Ddl } else { error })
    }

    /// Whether the engine may do this. The words of a refusal are kept.
    fn permits(&self, code: c_int, first: &str, second: &str) -> bool {
        let mode = self.mode();
        if mode == Mode::Internal {
            return true;
        }
        let own = |table: &str| table.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("sqlite_"));
        let (permitted, defines, what) = match code {
            ffi::SQLITE_READ | ffi::SQLITE_SELECT | ffi::SQLITE_RECURSIVE => (true, false, ""),
            ffi::SQLITE_FUNCTION => {
                (!FUNCTIONS.iter().any(|f| second.eq_ignore_ascii_case(f)), false, "this function")
            }
            ffi::SQLITE_PRAGMA => (pragma(first, second), false, "this pragma, or setting it"),
            // A table is defined and dropped by changes of these.
            ffi::SQLITE_INSERT | ffi::SQLITE_UPDATE | ffi::SQLITE_DELETE if own(first) => {
                (false, !first.eq_ignore_ascii_case("sqlite_sequence"), "changing SQLite's own tables")
            }
            ffi::SQLITE_INSERT | ffi::SQLITE_UPDATE | ffi::SQLITE_DELETE => {
                (mode != Mode::Query, false, "changing rows; see `seed`")
            }
            ffi::SQLITE_ATTACH | ffi::SQLITE_DETACH => (false, false, "another database file"),
            ffi::SQLITE_TRANSACTION | ffi::SQLITE_SAVEPOINT => {
                (false, false, "a transaction; each call is one")
            }
            _ => (false, true, "DDL"),
        };
        if !permitted {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            refused.get_or_insert(Refused { mode, defines, what: what.to_owned() });
        }
        permitted
    }
}

/// Functions that reach beyond the database. Of these SQLite has none unless somebody adds them.
const FUNCTIONS: [&str; 6] =
    ["load_extension", "readfile", "writefile", "edit", "fts3_tokenizer", "sqlite_dbpage"];

/// Pragmas that tell something of a table or index.
const TELLING: [&str; 12] = [
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
];
/// Pragmas that tell a setting, and with an argument change it.
const SETTINGS: [&str; 15] = [
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

fn pragma(name: &str, argument: &str) -> bool {
    let is = |known: &[&str]| known.iter().any(|known| name.eq_ignore_ascii_case(known));
    is(&TELLING) || name.eq_ignore_ascii_case("table_xinfo") || (argument.is_empty() && is(&SETTINGS))
}

/// Why a statement that was not refused is no query.
pub(super) fn not_a_query(statement: &str) -> Error {
    if defines(statement) {
        return Error::Ddl;
    }
    let reason = format!("`{}` reads no rows", first_word(statement));
    Error::NotPermitted { action: "query", reason }
}

/// Why a statement that was not refused is no seed.
pub(super) fn not_a_seed(statement: &str) -> Error {
    if defines(statement) {
        return Error::Ddl;
    }
    let reason = format!("`{}` changes no rows; see `query`", first_word(statement));
    Error::NotPermitted { action: "seed", reason }
}

/// The longest text or blob, also within a statement.
const MOST_BYTES: c_int = 16 << 20;
/// The most memory of all SQLite databases in the process.
const MOST_MEMORY: i64 = 256 << 20;
/// How many steps of its machine SQLite takes between two looks at the time.
const STEPS: c_int = 1000;

/// Sets up everything that holds from now on.
pub(super) async fn fence(connection: &mut SqliteConnection, guard: &Arc<Guard>) -> Result<(), Error> {
    static MEMORY: Once = Once::new();
    // SAFETY: it may be called at any time.
    MEMORY.call_once(|| unsafe {
        ffi::sqlite3_hard_heap_limit64(MOST_MEMORY);
    });
    let mut locked = connection.lock_handle().await?;
    let stopped = Arc::clone(guard);
    locked.set_progress_handler(STEPS, move || !stopped.stopped.load(Ordering::Relaxed));
    let database = locked.as_raw_handle().as_ptr();
    let switches = [
        (ffi::SQLITE_DBCONFIG_DEFENSIVE, 1),
        (ffi::SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
        (ffi::SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
        (ffi::SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0),
        (ffi::SQLITE_DBCONFIG_DQS_DML, 0),
        (ffi::SQLITE_DBCONFIG_DQS_DDL, 0),
    ];
    let limits = [
        (ffi::SQLITE_LIMIT_LENGTH, MOST_BYTES),
        (ffi::SQLITE_LIMIT_SQL_LENGTH, c_int::try_from(MOST_STATEMENT_BYTES + 64).unwrap_or(c_int::MAX)),
        (ffi::SQLITE_LIMIT_ATTACHED, 0),
        (ffi::SQLITE_LIMIT_TRIGGER_DEPTH, 20),
        (ffi::SQLITE_LIMIT_WORKER_THREADS, 0),
    ];
    let mut done = true;
    for (switch, value) in switches {
        // SAFETY: the handle is open and nobody else uses it while it is locked; these switches take an int and a
        // pointer to one, which may be null.
        done &= unsafe {
            ffi::sqlite3_db_config(database, switch, value as c_int, std::ptr::null_mut::<c_int>())
        } == ffi::SQLITE_OK;
    }
    for (limit, value) in limits {
        // SAFETY: as above.
        done &= unsafe { ffi::sqlite3_limit(database, limit, value) } >= 0;
    }
    // SQLite asks on a thread of its own, to the last moment: it keeps the guard until the connection is closed.
    let kept = Arc::into_raw(Arc::clone(guard)).cast_mut().cast::<c_void>();
    // SAFETY: the pointer is one count of an `Arc<Guard>`, which `let_go` takes back when SQLite is done with it,
    // also where this fails.
    done &= unsafe { ffi::sqlite3_set_clientdata(database, c"coretools-guard".as_ptr(), kept, Some(let_go)) }
        == ffi::SQLITE_OK;
    if done {
        // SAFETY: the guard lives as long as the connection, and is only read by reference.
        done &= unsafe { ffi::sqlite3_set_authorizer(database, Some(ask), kept) } == ffi::SQLITE_OK;
    }
    if done {
        Ok(())
    } else {
        Err(Error::Engine {
            message: "SQLite of this system cannot be held to reading, so nothing is run".to_owned(),
        })
    }
}

unsafe extern "C" fn let_go(guard: *mut c_void) {
    // SAFETY: what `fence` gave, once.
    drop(unsafe { Arc::from_raw(guard.cast_const().cast::<Guard>()) });
}

unsafe extern "C" fn ask(
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
    // SAFETY: the pointer that `fence` gave, whose count is SQLite's until the connection is closed.
    let guard = unsafe { &*guard.cast_const().cast::<Guard>() };
    if guard.permits(code, &text(first), &text(second)) { ffi::SQLITE_OK } else { ffi::SQLITE_DENY }
}

/// What SQLite knows of a text before it runs.
pub(super) struct Prepared {
    /// How many statements there are.
    pub(super) statements: usize,
    /// The columns of the last.
    pub(super) columns: Vec<Column>,
    /// How many parameters it has.
    pub(super) parameters: usize,
    /// It does not change the database directly. True of `ATTACH` and `BEGIN` as well: no gate.
    pub(super) reads_only: bool,
    /// It tells the plan of a statement, which it does not run.
    pub(super) explains: bool,
}

/// Has SQLite prepare every statement of `text`, and runs none.
pub(super) async fn prepare(connection: &mut SqliteConnection, text: &str) -> Result<Prepared, Error> {
    let mut locked = connection.lock_handle().await?;
    let database = locked.as_raw_handle().as_ptr();
    let mut prepared =
        Prepared { statements: 0, columns: Vec::new(), parameters: 0, reads_only: true, explains: true };
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let mut statement = std::ptr::null_mut();
        let mut tail = std::ptr::null();
        let length = c_int::try_from(rest.len()).unwrap_or(c_int::MAX);
        // SAFETY: the handle is locked; the text has `length` bytes.
        let code = unsafe {
            ffi::sqlite3_prepare_v2(database, rest.as_ptr().cast(), length, &raw mut statement, &raw mut tail)
        };
        if code != ffi::SQLITE_OK {
            // SAFETY: the message lives until the next call on the handle.
            let message =
                unsafe { CStr::from_ptr(ffi::sqlite3_errmsg(database)) }.to_string_lossy().into_owned();
            return Err(Error::Engine { message });
        }
        let used = (tail as usize).saturating_sub(rest.as_ptr() as usize).min(rest.len());
        rest = if used == 0 { &[] } else { &rest[used..] };
        if statement.is_null() {
            // White space, or a comment.
            continue;
        }
        prepared.statements += 1;
        // SAFETY: a statement that was prepared above, let go of below; its texts live as long.
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
                    (name, text(ffi::sqlite3_column_decltype(statement, index))).into()
                })
                .collect();
            ffi::sqlite3_finalize(statement);
        }
    }
    Ok(prepared)
}
