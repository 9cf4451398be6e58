//! The roots that a client offers. They narrow those of the server and never widen them.
#![allow(
    deprecated,
    reason = "SEP-2577 takes roots out of the protocol one day, and today's clients offer them"
)]

use super::host::Host;
use arc_swap::ArcSwapOption;
use rmcp::RoleServer;
use rmcp::model::{
    InputRequest, InputRequests, InputRequiredResult, InputResponses, ListRootsRequest, ListRootsResult,
};
use rmcp::service::Peer;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The time that a client has to name its roots. A call that waits for them goes on without afterwards.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// The roots of a client that count, at most.
const MAX_ROOTS: usize = 64;

/// The key of the question for roots in an answer of 2026-07-28 that asks it.
const ROOTS_KEY: &str = "roots";

/// Makes the host over what the client's roots and the server's have in common; none if that is all of the server's.
type Narrow = dyn Fn(&[PathBuf]) -> Option<Host> + Send + Sync;

/// The progress of the question for the client's roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientRootsState {
    /// The client has said nothing of roots.
    NotOffered,
    /// It has roots and has not named them yet.
    Awaited,
    /// It has named them, or did not in time.
    Settled,
}

/// The roots of the one client of a connection.
pub(super) struct ClientRoots {
    narrow: Box<Narrow>,
    state: watch::Sender<ClientRootsState>,
    /// The host over fewer roots, once there is one.
    host: ArcSwapOption<Host>,
    offered: Mutex<Vec<PathBuf>>,
}

impl fmt::Debug for ClientRoots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientRoots").field("state", &*self.state.borrow()).finish_non_exhaustive()
    }
}

impl ClientRoots {
    pub(super) fn new(narrow: impl Fn(&[PathBuf]) -> Option<Host> + Send + Sync + 'static) -> Self {
        Self {
            narrow: Box::new(narrow),
            state: watch::Sender::new(ClientRootsState::NotOffered),
            host: ArcSwapOption::empty(),
            offered: Mutex::default(),
        }
    }

    /// Returns the host over fewer roots than the server's, if the client has narrowed them.
    pub(super) fn host(&self) -> Option<Host> {
        self.host.load().as_deref().cloned()
    }

    /// Notes that the client has roots: calls wait until it has named them.
    pub(super) fn expect(&self) {
        self.state.send_replace(ClientRootsState::Awaited);
    }

    /// Waits until the client's roots are known, or it had time enough to name them.
    pub(super) async fn settled(&self) {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| *state != ClientRootsState::Awaited);
        if tokio::time::timeout(ANSWER_LIMIT, settled).await.is_err() {
            tracing::warn!("the client has roots and does not name them; those of the server hold");
            self.state.send_replace(ClientRootsState::Settled);
        }
    }

    /// Asks the client for its roots, and applies them.
    pub(super) async fn ask(self: Arc<Self>, peer: Peer<RoleServer>) {
        if *self.state.borrow() == ClientRootsState::NotOffered {
            return;
        }
        self.expect();
        match tokio::time::timeout(ANSWER_LIMIT, peer.list_roots()).await {
            Ok(Ok(listed)) => self.apply(&listed),
            Ok(Err(error)) => tracing::warn!(%error, "the client did not name its roots"),
            Err(_) => tracing::warn!("the client did not name its roots in time"),
        }
        self.state.send_replace(ClientRootsState::Settled);
    }

    /// Returns the question for roots, as an answer of 2026-07-28 asks it, unless it has been answered. `responses` are
    /// what the client has sent with its call.
    pub(super) fn question(&self, responses: Option<&InputResponses>) -> Option<InputRequiredResult> {
        if *self.state.borrow() == ClientRootsState::Settled {
            return None;
        }
        match responses.and_then(|responses| responses.get(ROOTS_KEY)) {
            None => {
                let requests = InputRequests::from([(
                    ROOTS_KEY.to_owned(),
                    InputRequest::ListRoots(ListRootsRequest::default()),
                )]);
                Some(InputRequiredResult::from_input_requests(requests))
            }
            Some(response) => {
                match serde_json::from_value::<ListRootsResult>(response.clone()) {
                    Ok(listed) => self.apply(&listed),
                    Err(error) => tracing::warn!(%error, "the client's roots cannot be read"),
                }
                self.state.send_replace(ClientRootsState::Settled);
                None
            }
        }
    }

    fn apply(&self, listed: &ListRootsResult) {
        let roots: Vec<PathBuf> =
            listed.roots.iter().take(MAX_ROOTS).filter_map(|root| file_path(&root.uri)).collect();
        {
            let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
            if *offered == roots {
                return;
            }
            offered.clone_from(&roots);
        }
        // A client that names none has none to narrow by.
        let narrowed = if roots.is_empty() { None } else { (self.narrow)(&roots) };
        if let Some(host) = &narrowed {
            tracing::info!(roots = ?host.roots(), "the client's roots narrow those of the server");
        }
        if let Some(former) = self.host.swap(narrowed.map(Arc::new)) {
            // What it ran in the background could not be reached any more.
            former.release_caller("");
        }
    }
}

/// Returns the path of a `file:` URI (RFC 8089) of this machine.
fn file_path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return None;
    }
    let decoded = percent_decode(path)?;
    let path = decoded.as_str();
    // `/C:/project`
    let path = if cfg!(windows) { path.trim_start_matches('/') } else { path };
    Some(PathBuf::from(path))
        .filter(|path| path.is_absolute() && !path.as_os_str().is_empty())
        .map(|path| trimmed(&path))
}

/// Returns a path without the separator at its end.
fn trimmed(path: &Path) -> PathBuf {
    path.components().collect()
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let value = digit(rest.next())? * 16 + digit(rest.next())?;
                bytes.push(u8::try_from(value).ok()?);
            }
            // A query or a fragment is no part of a path.
            b'?' | b'#' => break,
            0 => return None,
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_uri_is_a_path_of_this_machine_or_nothing() {
        for (uri, path) in [
            ("file:///srv/project", Some("/srv/project")),
            ("file:///srv/my%20project/", Some("/srv/my project")),
            ("file://localhost/srv", Some("/srv")),
            ("file:///", Some("/")),
            ("file://other-host/srv", None),
            ("file:///srv%00x", None),
            ("file:///srv%zz", None),
            ("file://srv", None),
            ("https://example.org/", None),
            ("/srv", None),
        ] {
            assert_eq!(file_path(uri).as_deref(), path.map(Path::new), "{uri}");
        }
    }
}
