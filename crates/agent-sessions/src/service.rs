//! The way to the sessions of a state directory, wherever their supervisor runs.

use crate::change::{SessionChange, SessionObserver};
use crate::client::SupervisorClient;
use crate::error::{Error, ErrorCode};
use crate::follower::SessionFollower;
use crate::options::{OptionsError, SupervisorOptions};
use crate::protocol::{SessionList, SupervisorRequest};
use crate::requester::SessionCaller;
use crate::session_store::SessionStore;
use crate::supervisor::Supervisor;
use error_causes::chain;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Mutex;

/// The time in which the holder of the lock must answer on its socket. It may have just taken the lock, or be ending.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between two attempts.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// Makes the options of a supervisor in this process, once it is needed.
type MakeOptions = dyn Fn() -> Result<SupervisorOptions, OptionsError> + Send + Sync;

/// The sessions of a state directory. Requests go to the supervisor in another process. If there is none, the first
/// request starts a supervisor in this process. Cheap to clone.
#[derive(Clone)]
pub struct SessionService {
    shared: Arc<SessionServiceShared>,
    principal: Option<Arc<str>>,
}

struct SessionServiceShared {
    state: PathBuf,
    make_options: Box<MakeOptions>,
    /// The supervisor in this process.
    local_supervisor: Mutex<Option<Supervisor>>,
    /// Is told of the changes of sessions.
    observer: SessionObserver,
    /// True while a task follows the sessions of a supervisor in another process.
    is_following: AtomicBool,
}

impl std::fmt::Debug for SessionService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionService")
            .field("state", &self.shared.state)
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}

impl SessionService {
    /// Creates the service for the state directory `state`. `make_options` is called if this process has to supervise.
    pub fn new(
        state: impl Into<PathBuf>,
        make_options: impl Fn() -> Result<SupervisorOptions, OptionsError> + Send + Sync + 'static,
    ) -> Self {
        let shared = SessionServiceShared {
            state: state.into(),
            make_options: Box::new(make_options),
            local_supervisor: Mutex::default(),
            observer: SessionObserver::default(),
            is_following: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared), principal: None }
    }

    /// Returns the service for one caller of a shared server, who sees only its own sessions. Without a name, returns
    /// the service for all sessions.
    #[must_use]
    pub fn for_principal(&self, principal: Option<&str>) -> Self {
        Self { shared: Arc::clone(&self.shared), principal: principal.map(Arc::from) }
    }

    /// Calls `on_change` at each change of a session. The changes of the sessions of another process are noticed from the first
    /// request on. `on_change` must not block. Only the first function that is given is called.
    pub fn on_change(&self, on_change: impl Fn(&SessionChange) + Send + Sync + 'static) {
        self.shared.observer.set(on_change);
    }

    /// Makes a request. If there is no supervisor, this process supervises from now on.
    ///
    /// # Errors
    /// The error that the supervisor answers with, or why it could not be started.
    pub async fn ask(&self, request: SupervisorRequest) -> Result<Value, Error> {
        let deadline = tokio::time::Instant::now() + TAKEOVER_TIMEOUT;
        loop {
            match self.ask_if_running(request.clone()).await {
                Err(error) if error.code == ErrorCode::NotRunning => {}
                answered => return answered,
            }
            let mut local_supervisor = self.shared.local_supervisor.lock().await;
            // Another task has started one meanwhile.
            if local_supervisor.is_some() {
                continue;
            }
            // The lock is held over the start, so that two requests do not start two supervisors.
            let mut options = (self.shared.make_options)()
                .map_err(|error| Error::new(ErrorCode::Broken, chain(&*error)))?;
            options.observer = self.shared.observer.clone();
            match Supervisor::host(&self.shared.state, options).await {
                Ok(supervisor) => *local_supervisor = Some(supervisor),
                // The lock is taken and nobody answers yet, or no more.
                Err(error) if error.code == ErrorCode::State && tokio::time::Instant::now() < deadline => {
                    drop(local_supervisor);
                    tokio::time::sleep(RETRY_DELAY).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes a request if there is a supervisor.
    ///
    /// # Errors
    /// The error that the supervisor answers with; [`ErrorCode::NotRunning`] if there is none.
    pub async fn ask_if_running(&self, request: SupervisorRequest) -> Result<Value, Error> {
        let principal = self.principal.as_deref();
        // A clone, so that the lock is not held while the request is answered, which may take minutes.
        let local_supervisor = self.shared.local_supervisor.lock().await.clone();
        match local_supervisor {
            Some(supervisor) => supervisor.answer(request, &SessionCaller::for_principal(principal)).await,
            None => {
                // Before the request, which may change something.
                self.follow().await;
                SupervisorClient::new(&self.shared.state).for_principal(principal).ask(&request).await
            }
        }
    }

    /// Follows the sessions of a supervisor in another process, if somebody is to be told of their changes.
    async fn follow(&self) {
        let shared = &self.shared;
        if !shared.observer.is_set() || shared.is_following.swap(true, Ordering::Relaxed) {
            return;
        }
        match SessionFollower::begin(&shared.state).await {
            Ok(follower) => {
                tokio::spawn(tell_changes(follower, Arc::downgrade(shared)));
            }
            // The request that comes next meets the same error, and tells its caller. A later one tries again.
            Err(_) => shared.is_following.store(false, Ordering::Relaxed),
        }
    }

    /// Lists the sessions that are not over, or all. The list is empty if there is no supervisor.
    ///
    /// # Errors
    /// The error that the supervisor answers with.
    pub async fn list(&self, all: bool) -> Result<SessionList, Error> {
        match self.ask_if_running(SupervisorRequest::List { all }).await {
            Ok(list) => serde_json::from_value(list)
                .map_err(|error| Error::broken("the supervisor's list cannot be read", &error)),
            Err(error) if error.code == ErrorCode::NotRunning => Ok(SessionList::default()),
            Err(error) => Err(error),
        }
    }

    /// Has the supervisor in this process, if there is one, read its options again: see [`Supervisor::reload`].
    ///
    /// # Errors
    /// The options cannot be used. The earlier options stay.
    pub async fn reload(&self) -> Result<(), Error> {
        match &*self.shared.local_supervisor.lock().await {
            Some(supervisor) => supervisor.reload(),
            None => Ok(()),
        }
    }

    /// Starts a supervisor if there is none and an earlier one has left sessions.
    ///
    /// # Errors
    /// The supervisor cannot be started.
    pub async fn recover(&self) -> Result<(), Error> {
        match SessionStore::exists_in(&self.shared.state) {
            true => self.ask(SupervisorRequest::Status {}).await.map(|_| ()),
            false => Ok(()),
        }
    }

    /// Ends all sessions, if there is a supervisor.
    pub async fn end_all(&self, grace: Duration) {
        let Ok(list) = self.list(false).await else { return };
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        // At once, as each may use up its grace time.
        let mut ends = tokio::task::JoinSet::new();
        for session in list.sessions {
            let (service, session_id) = (self.clone(), session.session_id);
            ends.spawn(async move {
                // A session that is gone meanwhile needs no end.
                let _ = service.ask_if_running(SupervisorRequest::End { session_id, grace_ms }).await;
            });
        }
        ends.join_all().await;
    }

    /// Tells whether the supervisor runs in this process.
    pub async fn is_own(&self) -> bool {
        self.shared.local_supervisor.lock().await.is_some()
    }

    /// Ends the supervisor in this process and its sessions. The sessions of another process go on.
    pub async fn shutdown(&self, grace: Duration) {
        if let Some(supervisor) = self.shared.local_supervisor.lock().await.take() {
            supervisor.close();
            supervisor.shutdown(grace).await;
        }
    }

    /// Returns the state directory.
    pub fn state(&self) -> &Path {
        &self.shared.state
    }
}

/// Tells the observer of the changes in another process until the supervisor there ends, or the service does.
async fn tell_changes(mut follower: SessionFollower, shared: Weak<SessionServiceShared>) {
    loop {
        let changes = follower.next().await;
        // Not held while it waits, or it would keep the service alive.
        let Some(shared) = shared.upgrade() else { return };
        match changes {
            Ok(changes) => changes.iter().for_each(|change| shared.observer.changed(change)),
            // The next request begins anew, with the supervisor that there is then.
            Err(_) => {
                shared.is_following.store(false, Ordering::Relaxed);
                return;
            }
        }
    }
}
