//! This build puts no audit into a database.

use core_tools::mcp::Record;

/// Of which there is none.
#[derive(Clone, Debug)]
pub(crate) enum Archive {}

/// Of which there is none.
#[derive(Debug)]
pub(crate) enum Writer {}

impl Archive {
    #[allow(clippy::unused_async, reason = "where there is one it waits")]
    pub(crate) async fn open(_place: &str) -> Result<(Self, Writer), String> {
        Err("http.audit_database: this build has no databases (feature `audit-database`)".to_owned())
    }

    pub(crate) fn record(&self, _record: &Record<'_>) {
        match *self {}
    }

    pub(crate) fn counts(&self) -> (u64, u64) {
        match *self {}
    }
}

impl Writer {
    #[allow(clippy::unused_async, reason = "where there is one it waits")]
    pub(crate) async fn close(self) {
        match self {}
    }
}
