//! Why a database did not answer.

use crate::workspace;

/// Why a database did not answer. No message shows a URL, a user or a password.
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
        action: &'static str,
        /// What the engine refused, and what there is instead.
        reason: String,
    },
    /// Not one statement.
    #[error("`payload` has {} statement{}; give exactly one", if *.found == 0 { "no".into() } else { .found.to_string() }, if *.found == 0 { "" } else { "s" })]
    Statements {
        /// How many there are.
        found: usize,
    },
    /// An argument that the schema cannot judge.
    #[error("`{parameter}`: {reason}")]
    Argument {
        /// Its name.
        parameter: &'static str,
        /// What is wrong, and what is expected.
        reason: String,
    },
    /// The file is not there, or not beneath a root.
    #[error("database file not found: {path}{hint}")]
    NotFound {
        /// As it was asked for, or as the settings name it.
        path: String,
        /// What to do.
        hint: String,
    },
    /// The file may not be opened.
    #[error("cannot open the database {path}")]
    File {
        /// Relative to its root.
        path: String,
        /// What is wrong with it.
        source: workspace::Error,
    },
    /// The settings name something that cannot be used.
    #[error("the database `{name}` cannot be used: {reason}")]
    Setting {
        /// Its name in the settings.
        name: String,
        /// What is wrong, without the URL.
        reason: String,
    },
    /// No connection.
    #[error("cannot connect to `{name}`: {reason}")]
    Connect {
        /// Its name in the settings.
        name: String,
        /// What the engine or the network said.
        reason: String,
    },
    /// What the engine said of the statement.
    #[error("{message}")]
    Engine {
        /// In the engine's words.
        message: String,
    },
    /// The statement ran past its time limit and was stopped in the server.
    #[error("stopped after {limit_ms} ms, its time limit; narrow it, or give a larger `timeout_ms`")]
    TimedOut {
        /// The limit.
        limit_ms: u64,
    },
    /// The call was cancelled, and the statement stopped in the server.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    pub(super) fn argument(parameter: &'static str, reason: impl Into<String>) -> Self {
        Self::Argument { parameter, reason: reason.into() }
    }

    /// Other than one value for each parameter of the statement.
    pub(super) fn values(expected: usize, given: usize) -> Self {
        Self::argument(
            "params",
            format!("one value for each parameter of the statement: {expected} expected, {given} given"),
        )
    }

    /// The URL of the database `name`: the reader's own words may show it.
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    pub(super) fn unreadable_url(name: &str) -> Self {
        Self::Setting {
            name: name.to_owned(),
            reason: "its URL cannot be read: scheme, user, password, host and database, escaped with %"
                .to_owned(),
        }
    }

    /// Why there is no connection to `name`. A code that `denies` refuses the user, whom the server's words name.
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    pub(super) fn refused(name: &str, error: sqlx::Error, denies: impl Fn(&str) -> bool) -> Self {
        Self::Connect {
            name: name.to_owned(),
            reason: match &error {
                sqlx::Error::Database(said) if said.code().is_some_and(|code| denies(&code)) => {
                    "the server refused the user or the password".to_owned()
                }
                sqlx::Error::Io(error) => certificate(error)
                    .map_or_else(|| error.kind().to_string(), |why| format!("no TLS with the server: {why}")),
                _ => Self::from(error).to_string(),
            },
        }
    }
}

/// What is wrong with a server's certificate, where that is what failed: without the names in it, which tell the place.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn certificate(error: &std::io::Error) -> Option<&'static str> {
    let said = error.get_ref()?.to_string();
    if !said.contains("certificate") {
        return None;
    }
    let has = |word: &str| said.to_ascii_lowercase().contains(word);
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

/// In the engine's words, without what names the place: of sqlx's own words, the kind only.
impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let message = match &error {
            sqlx::Error::Database(said) => match said.code() {
                Some(code) => format!("{} (code {code})", said.message()),
                None => said.message().to_owned(),
            },
            sqlx::Error::Io(error) => format!("the connection failed: {}", error.kind()),
            sqlx::Error::WorkerCrashed => "the database ran out of memory; ask for less at once".to_owned(),
            sqlx::Error::Encode(error) | sqlx::Error::Decode(error) => error.to_string(),
            sqlx::Error::Protocol(said) => said.clone(),
            sqlx::Error::Tls(error) => format!("no TLS with the server: {error}"),
            _ => "the database did not answer".to_owned(),
        };
        Self::Engine { message }
    }
}
