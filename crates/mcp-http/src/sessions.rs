//! Sessions of clients of the `initialize` era: whose each is, how many there are, and when one ends.

use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use role_policy::proxy::message::Id;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The sessions there are. Their ids are 122 random bits (UUID version 4), and good only together with the principal
/// that began them.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) manager: Arc<LocalSessionManager>,
    table: Mutex<Table>,
    most: usize,
    idle: Duration,
}

#[derive(Debug, Default)]
struct Table {
    sessions: HashMap<Arc<str>, Session>,
    /// Those that are about to begin.
    reserved: usize,
}

#[derive(Debug)]
struct Session {
    principal: Arc<str>,
    used: Instant,
    /// Requests and streams that are open.
    open: usize,
    /// The ids of those requests.
    ids: HashSet<Id>,
    /// Parent of all that it runs.
    live: CancellationToken,
    /// When its life was seen to be over.
    over: Option<Instant>,
    /// Streams for which the client came back, and when it last went away from one. It may come back before it is seen
    /// that it had gone.
    returns: usize,
    returned: Instant,
}

/// What is told of a session. Not its id: with the token of its caller it is all that it takes.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) principal: Arc<str>,
    /// Requests and streams that are open.
    pub(crate) open: usize,
    /// Since it was used.
    pub(crate) idle: Duration,
}

/// A request or stream of a session, until it is dropped.
#[derive(Debug)]
pub(crate) struct Visit {
    sessions: Arc<Sessions>,
    pub(crate) id: Arc<str>,
    /// Parent of what the session runs.
    pub(crate) live: CancellationToken,
}

/// A stream for which a client has come back, until it is dropped.
#[derive(Debug)]
pub(crate) struct Return {
    sessions: Arc<Sessions>,
    id: Arc<str>,
}

/// Room for a session that is about to begin.
#[derive(Debug)]
pub(crate) struct Room(Arc<Sessions>);

/// How long a call goes on whose client has gone away and may come back with `Last-Event-ID`.
const COMING_BACK: Duration = Duration::from_secs(3);

/// How long the calls of a session whose life is over have for their last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

impl Sessions {
    /// At most `most`, each for as long as it is not idle for `idle`.
    pub(crate) fn new(most: usize, idle: Duration) -> Arc<Self> {
        let mut manager = LocalSessionManager::default();
        // It counts messages alone, and would end a session under a call that runs in silence.
        manager.session_config.keep_alive = None;
        Arc::new(Self { manager: Arc::new(manager), table: Mutex::default(), most, idle })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All there are, those used last first.
    pub(crate) fn list(&self) -> Vec<Listed> {
        let table = self.table();
        let listed = |session: &Session| Listed {
            principal: Arc::clone(&session.principal),
            open: session.open,
            idle: session.used.elapsed(),
        };
        let mut all: Vec<Listed> = table.sessions.values().map(listed).collect();
        all.sort_by_key(|listed| listed.idle);
        all
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.table().sessions.len()
    }

    /// Begins a request of `principal` in the session `id`. None where there is none such, or it is another's: the
    /// same to whoever asks.
    pub(crate) fn visit(self: &Arc<Self>, id: &str, principal: &str) -> Option<Visit> {
        let mut table = self.table();
        let (id, session) = table.sessions.get_key_value(id)?;
        if &*session.principal != principal {
            return None;
        }
        let (id, live) = (Arc::clone(id), session.live.clone());
        let session = table.sessions.get_mut(&id)?;
        session.open += 1;
        session.used = Instant::now();
        drop(table);
        Some(Visit { sessions: Arc::clone(self), id, live })
    }

    /// Makes room for a session of `principal`, whose oldest idle one ends for it where it has its share.
    pub(crate) async fn room(self: &Arc<Self>, principal: &str) -> Option<Room> {
        let ended = {
            let mut table = self.table();
            let share = self.most.div_ceil(4);
            let own = table.sessions.iter().filter(|(_, session)| &*session.principal == principal);
            let ended = match own.clone().count() >= share {
                false => None,
                true => {
                    let idle = own.filter(|(_, session)| session.open == 0);
                    let oldest =
                        idle.min_by_key(|(_, session)| session.used).map(|(id, _)| Arc::clone(id))?;
                    table.sessions.remove(&oldest).map(|session| (oldest, session))
                }
            };
            if table.sessions.len() + table.reserved >= self.most {
                return None;
            }
            table.reserved += 1;
            ended
        };
        let room = Room(Arc::clone(self));
        if let Some((id, session)) = ended {
            self.finish(&id, &session).await;
        }
        Some(room)
    }

    /// A session has begun, in the room that was made for it.
    pub(crate) fn begin(&self, _room: &Room, id: &str, principal: &Arc<str>, live: &CancellationToken) {
        let session = Session {
            principal: Arc::clone(principal),
            used: Instant::now(),
            open: 0,
            live: live.child_token(),
            over: None,
            returns: 0,
            returned: Instant::now(),
            ids: HashSet::new(),
        };
        self.table().sessions.insert(id.into(), session);
    }

    /// Ends a session.
    pub(crate) async fn end(&self, id: &str) {
        let session = self.table().sessions.remove(id);
        if let Some(session) = session {
            self.finish(id, &session).await;
        }
    }

    async fn finish(&self, id: &str, session: &Session) {
        session.live.cancel();
        if let Err(error) = self.manager.close_session(&id.into()).await {
            tracing::debug!(%error, "a session was gone already");
        }
    }

    /// Ends those that are idle, whose life is over, or that ended by themselves.
    pub(crate) async fn sweep(&self) {
        let there: Vec<Arc<str>> = self.manager.sessions.read().await.keys().cloned().collect();
        let ended: Vec<Arc<str>> = {
            let mut table = self.table();
            for session in table.sessions.values_mut().filter(|session| session.live.is_cancelled()) {
                session.over.get_or_insert_with(Instant::now);
            }
            let over = table.sessions.iter().filter(|(id, session)| {
                let idle = session.open == 0 && session.used.elapsed() >= self.idle;
                // One that began since was not there when it was asked.
                let gone = session.used.elapsed() > Duration::from_secs(5) && !there.contains(id);
                idle || gone || session.over.is_some_and(|over| over.elapsed() >= LAST_ANSWERS)
            });
            over.map(|(id, _)| Arc::clone(id)).collect()
        };
        for id in ended {
            self.end(&id).await;
        }
    }
}

impl Visit {
    /// The client of a call has gone away. It may come back for the answer, for a moment, and from then on the call ends
    /// with the stream for which it came.
    pub(crate) fn abandon(&self, call: CancellationToken) {
        let (sessions, id) = (Arc::clone(&self.sessions), Arc::clone(&self.id));
        let gone = Instant::now();
        tokio::spawn(async move {
            loop {
                let since = match sessions.table().sessions.get(&id) {
                    None => break,
                    Some(session) if session.returns > 0 => Instant::now(),
                    Some(session) => session.returned.max(gone),
                };
                let left = COMING_BACK.saturating_sub(since.elapsed());
                if left.is_zero() {
                    break;
                }
                tokio::time::sleep(left).await;
            }
            call.cancel();
        });
    }

    /// Takes `id` for a request. None where one that is open has it: an answer could be either's, and with rmcp it is
    /// nobody's.
    pub(crate) fn claim(&self, id: &Id) -> Option<Claim> {
        let mut table = self.sessions.table();
        if !table.sessions.get_mut(&self.id)?.ids.insert(id.clone()) {
            return None;
        }
        let (sessions, session) = (Arc::clone(&self.sessions), Arc::clone(&self.id));
        Some(Claim { sessions, session, id: id.clone() })
    }

    /// The client has come back with a stream: what it had left is its again, until that is dropped.
    pub(crate) fn come_back(&self) -> Return {
        if let Some(session) = self.sessions.table().sessions.get_mut(&self.id) {
            session.returns += 1;
        }
        Return { sessions: Arc::clone(&self.sessions), id: Arc::clone(&self.id) }
    }
}

/// The id of a request that is open, until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    sessions: Arc<Sessions>,
    session: Arc<str>,
    id: Id,
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.table().sessions.get_mut(&self.session) {
            session.ids.remove(&self.id);
        }
    }
}

impl Drop for Return {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.table().sessions.get_mut(&self.id) {
            session.returns = session.returns.saturating_sub(1);
            session.returned = Instant::now();
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.table().sessions.get_mut(&self.id) {
            session.open = session.open.saturating_sub(1);
            session.used = Instant::now();
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.0.table().reserved -= 1;
    }
}
