//! The server side of the socket: a supervisor that takes the lock, listens, and serves clients.

use crate::directory::SupervisorStateFolder;
use crate::error::{Error, ErrorCode};
use crate::legacy_protocol::LegacySupervisorCommand;
use crate::lock::{SupervisorLock, SupervisorLockHolder, SupervisorLockOutcome};
use crate::log::SessionLogLevel;
use crate::options::SupervisorOptions;
use crate::protocol::{PROTOCOL_VERSION, SupervisorRequest};
use crate::supervisor::{Supervisor, SupervisorInner};
use crate::wire::{hello, parse_hello, read_line, socket_path, write_json, write_text};
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::BufReader;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

/// The time that a client has for its first line.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// The time that a client may be silent between two requests.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The number of clients that are served at once; further ones wait.
const MAX_CLIENTS: usize = 128;
/// The pause after a connection that could not be accepted: without descriptors the next attempt fails as well.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

impl Supervisor {
    /// Takes the lock of the state directory and supervises there, reachable by a socket in it.
    ///
    /// # Errors
    /// Another process supervises there, the directory cannot be used, or this is not Linux.
    pub async fn host(state: &Path, options: SupervisorOptions) -> Result<Self, Error> {
        let unusable =
            |error| Error::broken(&format!("cannot use the state directory {}", state.display()), &error);
        let folder = SupervisorStateFolder::open(state).map_err(unusable)?;
        let outcome = SupervisorLock::try_acquire(folder, options.host, env!("CARGO_PKG_VERSION"));
        let lock = match outcome.map_err(unusable)? {
            SupervisorLockOutcome::Acquired(lock) => lock,
            SupervisorLockOutcome::Busy(holder) => return Err(already_supervised(holder.as_ref())),
        };
        let supervisor = Self::start(lock, options).await?;
        // After the sessions were recovered: no client sees a supervisor that does not know them yet.
        let listener = bind(state).map_err(|error| Error::broken("cannot listen on the socket", &error))?;
        tokio::spawn(accept_clients(listener, Arc::downgrade(&supervisor.0)));
        Ok(supervisor)
    }

    /// Removes the socket, so that no further client comes.
    pub fn close(&self) {
        // It may be gone already, and the next supervisor replaces one that stays.
        let _ = rustix::fs::unlink(socket_path(self.0.context.lock.folder().path()));
    }
}

fn already_supervised(holder: Option<&SupervisorLockHolder>) -> Error {
    let holder = match holder {
        Some(holder) => format!("process {} ({})", holder.process.pid, holder.host.as_str()),
        None => "another process".to_owned(),
    };
    Error::new(ErrorCode::State, format!("{holder} supervises there already; use that one, or end it first"))
}

/// Binds the socket for this user alone. The caller holds the lock, so whatever socket is there is left over.
fn bind(state: &Path) -> io::Result<UnixListener> {
    use rustix::fs::{AtFlags, CWD, Mode, chmodat};
    let path = socket_path(state);
    match rustix::fs::unlink(&path) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    // Until the mode is set the folder, which is private, keeps others out.
    let listener = UnixListener::bind(&path)?;
    chmodat(CWD, &path, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
    Ok(listener)
}

/// Accepts clients for as long as the supervisor lives.
async fn accept_clients(listener: UnixListener, supervisor: Weak<SupervisorInner>) {
    let permits = Arc::new(Semaphore::new(MAX_CLIENTS));
    loop {
        // Before `accept`, so that clients beyond the limit wait in the socket's backlog and cost nothing here.
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let accepted = listener.accept().await;
        // Only a weak reference is held while waiting, so that a dropped supervisor ends.
        let Some(supervisor) = supervisor.upgrade().map(Supervisor) else { return };
        match accepted {
            Ok((stream, _)) => {
                tokio::spawn(async move {
                    // A client that breaks the connection off does not need the answer.
                    let _ = serve(&supervisor, stream).await;
                    drop(permit);
                });
            }
            Err(error) => {
                supervisor.log(SessionLogLevel::Warn, &format!("cannot accept a client: {error}"));
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

/// Serves one client, line by line.
async fn serve(supervisor: &Supervisor, stream: UnixStream) -> io::Result<()> {
    let peer = stream.peer_cred()?;
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    if peer.uid() != rustix::process::geteuid().as_raw() {
        let refused = Error::new(ErrorCode::Refused, "this supervisor belongs to another user");
        return write_json(&mut writer, &json!({"error": refused})).await;
    }
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
    let first = tokio::time::timeout(HELLO_TIMEOUT, read_line(&mut reader)).await;
    let Some(first) = first.map_err(|_| io::ErrorKind::TimedOut)?? else { return Ok(()) };
    if let Some(command) = LegacySupervisorCommand::parse(&first) {
        let answer = match supervisor.requester(pid, None) {
            Ok(requester) => supervisor.handle_legacy(command, &requester).await,
            Err(error) => format!("ERR: {}", error.message),
        };
        return write_text(&mut writer, &answer).await;
    }
    write_json(&mut writer, &hello()).await?;
    let version = parse_hello(&first);
    if version != Some(PROTOCOL_VERSION) {
        let refused = json!({"error": unknown_version(version)});
        return write_json(&mut writer, &refused).await;
    }
    let mut principal = None;
    // A client that stays silent gives up its permit.
    while let Ok(line) = tokio::time::timeout(IDLE_TIMEOUT, read_line(&mut reader)).await {
        let Some(line) = line? else { break };
        let answer = match serde_json::from_str::<SupervisorRequest>(&line) {
            Ok(SupervisorRequest::For { principal: name }) if principal.is_none() => {
                principal = Some(name);
                Ok(Value::Null)
            }
            // Asked for each request and not for each connection: a session may have ended since, and its rights
            // with it.
            Ok(request) => match supervisor.requester(pid, principal.as_deref()) {
                Ok(requester) => supervisor.answer(request, &requester).await,
                Err(error) => Err(error),
            },
            Err(error) => Err(Error::new(ErrorCode::Invalid, format!("no request: {error}"))),
        };
        let answer = match answer {
            Ok(answer) => json!({"ok": answer}),
            Err(error) => json!({"error": error}),
        };
        write_json(&mut writer, &answer).await?;
    }
    Ok(())
}

fn unknown_version(version: Option<u32>) -> Error {
    let version = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
    let message = format!(
        "this supervisor speaks version {PROTOCOL_VERSION} of the protocol, and not {version}: restart the older of \
         the two"
    );
    Error::new(ErrorCode::Invalid, message)
}
