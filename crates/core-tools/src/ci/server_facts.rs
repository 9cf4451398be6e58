//! The facts about a server that only its program knows.

use std::ffi::OsString;
use std::time::Instant;

/// The facts about a server that only its program knows: libraries read no environment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerFacts {
    /// The server's name.
    pub name: String,
    /// The server's version.
    pub version: String,
    /// The moment when the server started.
    pub started: Instant,
    /// The folders where programs are searched: the value of `PATH`.
    pub path: Option<OsString>,
    /// A restriction of the whole server that its callers should know.
    pub notice: Option<String>,
}

impl ServerFacts {
    /// Creates the facts of a server that starts now and finds no programs.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), started: Instant::now(), path: None, notice: None }
    }

    /// Sets the value of `PATH`, in which toolchains are searched. Without it, none is found.
    #[must_use]
    pub fn path(mut self, path: Option<OsString>) -> Self {
        self.path = path;
        self
    }

    /// Sets a restriction of the whole server that its callers should know. None by default.
    #[must_use]
    pub fn notice(mut self, notice: Option<String>) -> Self {
        self.notice = notice;
        self
    }
}
