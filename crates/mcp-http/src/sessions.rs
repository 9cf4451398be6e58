//! Sessions of clients that begin with `initialize`: the owner, the number and the end of each.

use json_rpc::message::Id;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The sessions that are open. rmcp makes their ids, UUIDs of version 4 with 122 random bits; an id is good only together
/// with the principal that began the session.
#[derive(Debug)]
pub(crate) struct ClientSessions {
    pub(crate) manager: Arc<LocalSessionManager>,
    table: Mutex<ClientSessionTable>,
    max: usize,
    idle_timeout: Duration,
}

#[derive(Debug, Default)]
struct ClientSessionTable {
    sessions: HashMap<Arc<str>, ClientSessionEntry>,
    /// Slots of sessions that are about to begin.
    reserved: usize,
}

#[derive(Debug)]
struct ClientSessionEntry {
    principal: Arc<str>,
    last_used: Instant,
    /// Requests and streams that are open.
    open: usize,
    /// The ids of those requests.
    request_ids: HashSet<Id>,
    /// Cancelled when the session ends, or its caller is revoked; parent of what the session runs.
    ended: CancellationToken,
    /// The time at which the end was noticed.
    ended_at: Option<Instant>,
    /// Streams with which the client has come back, and when the last of them ended. A client may come back before the
    /// server notices that it had gone.
    reconnects: usize,
    last_reconnect_ended: Instant,
}

/// A session as the page shows it. The id is left out: together with the token of its caller it would be enough to use
/// the session.
#[derive(Debug)]
pub(crate) struct ClientSessionSummary {
    pub(crate) principal: Arc<str>,
    /// Requests and streams that are open.
    pub(crate) open: usize,
    /// The time since the session was last used.
    pub(crate) idle: Duration,
}

/// A request or stream of a session; dropping it closes the request.
#[derive(Debug)]
pub(crate) struct ClientSessionGuard {
    sessions: Arc<ClientSessions>,
    pub(crate) id: Arc<str>,
    /// Cancelled when the session ends, or its caller is revoked.
    pub(crate) ended: CancellationToken,
}

/// A stream with which a client has come back; dropping it ends the stream.
#[derive(Debug)]
pub(crate) struct ReconnectGuard {
    sessions: Arc<ClientSessions>,
    id: Arc<str>,
}

/// A slot for a session that is about to begin; dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct ClientSessionSlot(Arc<ClientSessions>);

/// The time for which a call goes on whose client is gone and may come back with `Last-Event-ID`.
const RECONNECT_WINDOW: Duration = Duration::from_secs(3);

/// The time that the calls of an ended session have for their last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

impl ClientSessions {
    /// Allows `max` sessions at once. A session that is not used for `idle_timeout` is ended.
    pub(crate) fn new(max: usize, idle_timeout: Duration) -> Arc<Self> {
        let mut manager = LocalSessionManager::default();
        // rmcp counts messages alone, and would end a session while a call runs that sends none.
        manager.session_config.keep_alive = None;
        Arc::new(Self { manager: Arc::new(manager), table: Mutex::default(), max, idle_timeout })
    }

    fn table(&self) -> MutexGuard<'_, ClientSessionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the sessions, those used last first.
    pub(crate) fn list(&self) -> Vec<ClientSessionSummary> {
        let table = self.table();
        let summary = |session: &ClientSessionEntry| ClientSessionSummary {
            principal: Arc::clone(&session.principal),
            open: session.open,
            idle: session.last_used.elapsed(),
        };
        let mut summaries: Vec<ClientSessionSummary> = table.sessions.values().map(summary).collect();
        summaries.sort_by_key(|session| session.idle);
        summaries
    }

    /// Returns the number of sessions.
    pub(crate) fn count(&self) -> usize {
        self.table().sessions.len()
    }

    /// Begins a request of `principal` in the session `id`. Returns `None` where there is no such session and where it is
    /// another's: a caller learns nothing of the sessions of others.
    pub(crate) fn enter(self: &Arc<Self>, id: &str, principal: &str) -> Option<ClientSessionGuard> {
        let mut table = self.table();
        let (id, session) = table.sessions.get_key_value(id)?;
        if &*session.principal != principal {
            return None;
        }
        let (id, ended) = (Arc::clone(id), session.ended.clone());
        let session = table.sessions.get_mut(&id)?;
        session.open += 1;
        session.last_used = Instant::now();
        drop(table);
        Some(ClientSessionGuard { sessions: Arc::clone(self), id, ended })
    }

    /// Reserves a slot for a session of `principal`. A caller that has a quarter of all sessions loses the one that it has
    /// not used for the longest time. Returns `None` where no slot is free.
    pub(crate) async fn reserve(self: &Arc<Self>, principal: &str) -> Option<ClientSessionSlot> {
        // The lock of the table is given back before rmcp is asked to close a session, which has to be awaited.
        let ended = {
            let mut table = self.table();
            let share = self.max.div_ceil(4);
            let of_principal = table.sessions.iter().filter(|(_, session)| &*session.principal == principal);
            let ended = match of_principal.clone().count() >= share {
                false => None,
                true => {
                    let idle = of_principal.filter(|(_, session)| session.open == 0);
                    let oldest =
                        idle.min_by_key(|(_, session)| session.last_used).map(|(id, _)| Arc::clone(id))?;
                    table.sessions.remove(&oldest).map(|session| (oldest, session))
                }
            };
            // A session that is about to begin counts already: rmcp makes it after this lock is released.
            if table.sessions.len() + table.reserved >= self.max {
                return None;
            }
            table.reserved += 1;
            ended
        };
        let slot = ClientSessionSlot(Arc::clone(self));
        if let Some((id, session)) = ended {
            self.close(&id, &session).await;
        }
        Some(slot)
    }

    /// Adds the session `id`, which has begun in the slot that was reserved for it. It ends when `revoked` is cancelled.
    pub(crate) fn start(
        &self,
        _slot: &ClientSessionSlot,
        id: &str,
        principal: &Arc<str>,
        revoked: &CancellationToken,
    ) {
        let session = ClientSessionEntry {
            principal: Arc::clone(principal),
            last_used: Instant::now(),
            open: 0,
            ended: revoked.child_token(),
            ended_at: None,
            reconnects: 0,
            last_reconnect_ended: Instant::now(),
            request_ids: HashSet::new(),
        };
        self.table().sessions.insert(id.into(), session);
    }

    /// Ends the session `id`, and what it runs.
    pub(crate) async fn end(&self, id: &str) {
        let session = self.table().sessions.remove(id);
        if let Some(session) = session {
            self.close(id, &session).await;
        }
    }

    async fn close(&self, id: &str, session: &ClientSessionEntry) {
        session.ended.cancel();
        if let Err(error) = self.manager.close_session(&id.into()).await {
            tracing::debug!(%error, "rmcp had ended the session already");
        }
    }

    /// Ends the sessions that are idle, whose caller was revoked, or that rmcp has ended.
    pub(crate) async fn sweep(&self) {
        let known_to_rmcp: Vec<Arc<str>> = self.manager.sessions.read().await.keys().cloned().collect();
        let expired: Vec<Arc<str>> = {
            let mut table = self.table();
            for session in table.sessions.values_mut().filter(|session| session.ended.is_cancelled()) {
                session.ended_at.get_or_insert_with(Instant::now);
            }
            let expired = table.sessions.iter().filter(|(id, session)| {
                let is_idle = session.open == 0 && session.last_used.elapsed() >= self.idle_timeout;
                // A session that began a moment ago was not there yet when rmcp was asked.
                let is_gone =
                    session.last_used.elapsed() > Duration::from_secs(5) && !known_to_rmcp.contains(id);
                is_idle || is_gone || session.ended_at.is_some_and(|at| at.elapsed() >= LAST_ANSWERS)
            });
            expired.map(|(id, _)| Arc::clone(id)).collect()
        };
        for id in expired {
            self.end(&id).await;
        }
    }
}

impl ClientSessionGuard {
    /// Cancels a call whose client has gone away, unless the client comes back for the answer within
    /// [`RECONNECT_WINDOW`]. The call then ends with the stream with which the client came back.
    pub(crate) fn abandon(&self, call: CancellationToken) {
        let (sessions, id) = (Arc::clone(&self.sessions), Arc::clone(&self.id));
        let gone_at = Instant::now();
        tokio::spawn(async move {
            loop {
                let since = match sessions.table().sessions.get(&id) {
                    None => break,
                    Some(session) if session.reconnects > 0 => Instant::now(),
                    Some(session) => session.last_reconnect_ended.max(gone_at),
                };
                // A client that comes back meanwhile begins a new window when its stream ends.
                let remaining = RECONNECT_WINDOW.saturating_sub(since.elapsed());
                if remaining.is_zero() {
                    break;
                }
                tokio::time::sleep(remaining).await;
            }
            call.cancel();
        });
    }

    /// Claims `id` for a request. Returns `None` where an open request has it: the answer could be that of either, and
    /// rmcp would send it to neither.
    pub(crate) fn claim_request_id(&self, id: &Id) -> Option<RequestIdGuard> {
        let mut table = self.sessions.table();
        if !table.sessions.get_mut(&self.id)?.request_ids.insert(id.clone()) {
            return None;
        }
        let (sessions, session) = (Arc::clone(&self.sessions), Arc::clone(&self.id));
        Some(RequestIdGuard { sessions, session, id: id.clone() })
    }

    /// Notes that the client has come back with a stream. Until that ends, no call of the session is cancelled because its
    /// client has gone.
    pub(crate) fn reconnect(&self) -> ReconnectGuard {
        if let Some(session) = self.sessions.table().sessions.get_mut(&self.id) {
            session.reconnects += 1;
        }
        ReconnectGuard { sessions: Arc::clone(&self.sessions), id: Arc::clone(&self.id) }
    }
}

/// The id of an open request; dropping it lets another request use the id.
#[derive(Debug)]
pub(crate) struct RequestIdGuard {
    sessions: Arc<ClientSessions>,
    session: Arc<str>,
    id: Id,
}

impl Drop for RequestIdGuard {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.table().sessions.get_mut(&self.session) {
            session.request_ids.remove(&self.id);
        }
    }
}

impl Drop for ReconnectGuard {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.table().sessions.get_mut(&self.id) {
            session.reconnects = session.reconnects.saturating_sub(1);
            session.last_reconnect_ended = Instant::now();
        }
    }
}

impl Drop for ClientSessionGuard {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.table().sessions.get_mut(&self.id) {
            session.open = session.open.saturating_sub(1);
            session.last_used = Instant::now();
        }
    }
}

impl Drop for ClientSessionSlot {
    fn drop(&mut self) {
        self.0.table().reserved -= 1;
    }
}
