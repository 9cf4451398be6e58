//! Errors of the database area.

use super::action::DbAction;

/// A request that a database did not answer. No message shows a URL, a user or a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The statement defines, changes or removes something other than rows.
    #[error("DDL not permitted via db_bridge query/seed actions")]
    Ddl,
    /// The statement is of a kind that the action does not take.
    #[error("not permitted in `{action}`: {reason}")]
    NotPermitted {
        /// The action.
        action: DbAction,
        /// The part that the engine refused, and the alternative.
        reason: String,
    },
    /// The payload holds no statement, or more than one.
    #[error("`payload` has {} statement{}; give exactly one", if *.found == 0 { "no".into() } else { .found.to_string() }, if *.found == 0 { "" } else { "s" })]
    StatementCount {
        /// The number of statements.
        found: usize,
    },
    /// An argument has a value that the schema cannot rule out.
    #[error("`{parameter}`: {reason}")]
    InvalidArgument {
        /// Its name.
        parameter: &'static str,
        /// The fault of the value, and the values that are expected.
        reason: String,
    },
    /// The file is not there, or not beneath a root.
    #[error("database file not found: {path}{hint}")]
    NotFound {
        /// The path in the request or in the settings.
        path: String,
        /// The advice, beginning with a semicolon.
        hint: String,
    },
    /// The file may not be opened.
    #[error("cannot open the database {path}")]
    OpenFile {
        /// Relative to its root.
        path: String,
        /// The reason.
        source: workspace::Error,
    },
    /// The settings name something that cannot be used.
    #[error("the database `{name}` cannot be used: {reason}")]
    InvalidSetting {
        /// Its name in the settings.
        name: String,
        /// The fault, without the URL.
        reason: String,
    },
    /// There is no connection.
    #[error("cannot connect to `{name}`: {reason}")]
    Connect {
        /// Its name in the settings.
        name: String,
        /// The message of the engine or the network.
        reason: String,
    },
    /// The engine refused the statement, or failed in it.
    #[error("{message}{}", .code.as_ref().map(|code| format!(" (code {code})")).unwrap_or_default())]
    Engine {
        /// The engine's message.
        message: String,
        /// The engine's code for it: an SQLSTATE, or SQLite's result code.
        code: Option<String>,
    },
    /// Another connection holds a lock on the SQLite file.
    #[error(
        "the database file is locked: another connection held its lock for all of the {waited_ms} ms that were waited; \
         try again when it has finished"
    )]
    Locked {
        /// The time that was waited for the lock, in milliseconds.
        waited_ms: u64,
    },
    /// The `-shm` file of a SQLite database was cut while a statement read it.
    #[error(
        "another program cut the `-shm` file of the database while it was read, so nothing of the result can be trusted; \
         try again when no program writes that file but SQLite"
    )]
    IndexLost,
    /// The statement ran past its time limit.
    #[error("stopped after {limit_ms} ms, its time limit; {end}narrow it, or give a larger `timeout_ms`")]
    TimedOut {
        /// The limit, in milliseconds.
        limit_ms: u64,
        /// The way in which the server ended it.
        end: StatementOutcome,
    },
    /// The call was cancelled, and the statement stopped in the server.
    #[error("cancelled")]
    Cancelled,
}

/// The way in which a statement ended after its time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatementOutcome {
    /// The engine stopped it.
    Stopped,
    /// It went on after the engine had cancelled it, and ended with its connection.
    ConnectionEnded,
    /// The server did not confirm that it ended.
    Unconfirmed,
}

impl std::fmt::Display for StatementOutcome {
    /// Writes what the caller should know beyond the time limit; nothing for [`Stopped`](Self::Stopped).
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Stopped => "",
            Self::ConnectionEnded => {
                "it went on although it was cancelled, so its connection was ended in the server; "
            }
            Self::Unconfirmed => "the server did not confirm that it ended, so it may still run there; ",
        })
    }
}

impl Error {
    /// An argument that is not allowed.
    pub(super) fn argument(parameter: &'static str, reason: impl Into<String>) -> Self {
        Self::InvalidArgument { parameter, reason: reason.into() }
    }

    /// A number of values other than the number of parameters in the statement.
    pub(super) fn parameter_count(expected: usize, given: usize) -> Self {
        Self::argument(
            "params",
            format!("one value for each parameter of the statement: {expected} expected, {given} given"),
        )
    }

    /// An error of the engine without a code.
    pub(super) fn engine_message(message: impl Into<String>) -> Self {
        Self::Engine { message: message.into(), code: None }
    }

    /// Converts an error of sqlx: the engine's words as they are, and only the kind of everything else, since sqlx's own
    /// messages may show host, user and path.
    ///
    /// It is a function and no `From`: sqlx is no part of the public interface.
    pub(super) fn engine(error: sqlx::Error) -> Self {
        Self::engine_message(match error {
            sqlx::Error::Database(error) => {
                return Self::Engine {
                    message: error.message().to_owned(),
                    code: error.code().map(std::borrow::Cow::into_owned),
                };
            }
            sqlx::Error::Io(error) => format!("the connection failed: {}", error.kind()),
            sqlx::Error::WorkerCrashed => "the database ran out of memory; ask for less at once".to_owned(),
            sqlx::Error::Encode(error) | sqlx::Error::Decode(error) => error.to_string(),
            sqlx::Error::Protocol(message) => message,
            sqlx::Error::Tls(error) => format!("no TLS with the server: {error}"),
            // The type of a column or parameter is of a kind that sqlx does not know.
            sqlx::Error::ColumnDecode { source, .. } => format!(
                "a type of the statement cannot be read here, such as a multirange ({source}); write `::text` behind \
                 each column or parameter of that type"
            ),
            // The other messages of sqlx may show the URL with its password.
            _ => "the database did not answer".to_owned(),
        })
    }

    /// A URL that cannot be parsed. The parser's message is left out: it may show the URL.
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    pub(super) fn unreadable_url(name: &str) -> Self {
        Self::InvalidSetting {
            name: name.to_owned(),
            reason: "its URL cannot be read: scheme, user, password, host and database, escaped with %"
                .to_owned(),
        }
    }

    /// A failed connection to `name`. For a code of which `is_access_denied` is true the server's message is left out:
    /// it names the user.
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    pub(super) fn connect(name: &str, error: sqlx::Error, is_access_denied: impl Fn(&str) -> bool) -> Self {
        Self::Connect {
            name: name.to_owned(),
            reason: match error {
                sqlx::Error::Database(error) if error.code().is_some_and(|code| is_access_denied(&code)) => {
                    "the server refused the user or the password".to_owned()
                }
                sqlx::Error::Io(error) => certificate_fault(&error).map_or_else(
                    || error.kind().to_string(),
                    |fault| format!("no TLS with the server: {fault}"),
                ),
                error => Self::engine(error).to_string(),
            },
        }
    }
}

/// Returns the fault of the server's certificate if that is why the connection failed.
///
/// The message of rustls is the only thing that tells the causes apart behind `std::io::Error`, and it is not passed on:
/// it shows the names in the certificate.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn certificate_fault(error: &std::io::Error) -> Option<&'static str> {
    let message = error.get_ref()?.to_string();
    if !message.contains("certificate") {
        return None;
    }
    // The words changed between versions of rustls, so that both spellings are looked for.
    let has = |word: &str| message.to_ascii_lowercase().contains(word);
    Some(match () {
        () if has("unknownissuer") => {
            "no authority that is known here has signed its certificate; the URL may name a file of others \
             (sslrootcert, ssl-ca)"
        }
        () if has("not valid for name") || has("notvalidforname") => {
            "its certificate is for another name than that of the URL"
        }
        () if has("expired") => "its certificate has expired",
        () => "its certificate is not accepted",
    })
}
