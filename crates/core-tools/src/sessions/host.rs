//! The socket beside the lock, and the two ways to a supervisor: through it, or in the same process.

use super::access::Asker;
use super::directory::StateFolder;
use super::error::{Code, Error};
use super::lock::{Attempt, Holder, StateLock};
use super::log::LogLevel;
use super::options::Options;
use super::protocol::{Request, SessionList, VERSION};
use super::store::Store;
use super::supervisor::Supervisor;
use super::words::Word;
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, Semaphore};

/// The name of the socket in the state directory.
const SOCKET: &str = "socket";
/// A line of the protocol has so many bytes at most. Answers with logs are the longest.
const LONGEST_LINE: u64 = 8 << 20;
/// How long a client may take to say who it is and what it wants.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a supervisor may take to say who it is.
const HELLO: Duration = Duration::from_secs(5);
/// How long a client may be silent between two requests.
const IDLE: Duration = Duration::from_secs(60);
/// Clients at once; further ones wait.
const CLIENTS: usize = 128;

impl Supervisor {
    /// Takes the lock of the state directory and supervises there, reachable by its socket.
    ///
    /// # Errors
    /// Somebody else supervises there, the directory cannot be used, or this is not Linux.
    pub async fn host(state: &Path, options: Options) -> Result<Self, Error> {
        let broken =
            |error| Error::broken(&format!("cannot use the state directory {}", state.display()), &error);
        let folder = StateFolder::open(state).map_err(broken)?;
        let lock = match StateLock::take(folder, options.owner, env!("CARGO_PKG_VERSION")).map_err(broken)? {
            Attempt::Held(lock) => lock,
            Attempt::Taken(holder) => return Err(taken(holder.as_ref())),
        };
        let supervisor = Self::start(lock, options).await?;
        let listener = listen(state).map_err(|error| Error::broken("cannot listen on the socket", &error))?;
        let weak = Arc::downgrade(&supervisor.0);
        tokio::spawn(async move {
            let places = Arc::new(Semaphore::new(CLIENTS));
            loop {
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                let accepted = listener.accept().await;
                let Some(inner) = weak.upgrade() else { return };
                let supervisor = Self(inner);
                match accepted {
                    Ok((stream, _)) => {
                        tokio::spawn(async move {
                            // What a client breaks off it does not want to know.
                            let _ = serve(&supervisor, stream).await;
                            drop(place);
                        });
                    }
                    Err(error) => {
                        supervisor.say(LogLevel::Warn, &format!("cannot take a client: {error}"));
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            }
        });
        Ok(supervisor)
    }

    /// Removes the socket: nobody is to come any more.
    pub fn close(&self) {
        let _ = rustix::fs::unlink(self.0.lock.folder().path().join(SOCKET));
    }
}

fn taken(holder: Option<&Holder>) -> Error {
    let who = match holder {
        Some(holder) => format!("process {} ({})", holder.process.pid, holder.owner.as_str()),
        None => "another process".to_owned(),
    };
    Error::new(Code::State, format!("{who} supervises there already; use that one, or end it first"))
}

/// Binds the socket for this user alone. Only the holder of the lock comes here, so what is there is left over.
fn listen(state: &Path) -> io::Result<UnixListener> {
    use rustix::fs::{AtFlags, CWD, Mode, chmodat};
    let path = state.join(SOCKET);
    match rustix::fs::unlink(&path) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    // Until its mode is set the folder keeps others out.
    let listener = UnixListener::bind(&path)?;
    chmodat(CWD, &path, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
    Ok(listener)
}

/// The first line of either side.
fn hello() -> Value {
    json!({"coretools_sessions": VERSION})
}

/// Answers one client, line by line.
async fn serve(supervisor: &Supervisor, stream: UnixStream) -> io::Result<()> {
    let peer = stream.peer_cred()?;
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    if peer.uid() != rustix::process::geteuid().as_raw() {
        let refused = Error::new(Code::Refused, "this supervisor belongs to another user");
        return write(&mut writer, &json!({"error": refused})).await;
    }
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
    let first =
        tokio::time::timeout(PATIENCE, read(&mut reader)).await.map_err(|_| io::ErrorKind::TimedOut)??;
    let Some(first) = first else { return Ok(()) };
    if let Some(word) = Word::of(&first) {
        let answer = match supervisor.asker(pid, None) {
            Ok(asker) => supervisor.obey(word, &asker).await,
            Err(error) => format!("ERR: {}", error.message),
        };
        writer.write_all(format!("{answer}\n").as_bytes()).await?;
        return writer.flush().await;
    }
    write(&mut writer, &hello()).await?;
    match version(&first) {
        Some(VERSION) => {}
        other => {
            let other = other.map_or_else(|| "none".to_owned(), |version| version.to_string());
            let message = format!(
                "this supervisor speaks version {VERSION} of the protocol, and not {other}: restart the older of the two"
            );
            return write(&mut writer, &json!({"error": Error::new(Code::Invalid, message)})).await;
        }
    }
    let mut principal = None;
    // One that says nothing more takes nobody's place.
    while let Ok(line) = tokio::time::timeout(IDLE, read(&mut reader)).await {
        let Some(line) = line? else { break };
        let answer = match serde_json::from_str::<Request>(&line) {
            Ok(Request::For { principal: name }) if principal.is_none() => {
                principal = Some(name);
                Ok(Value::Null)
            }
            Ok(request) => match supervisor.asker(pid, principal.as_deref()) {
                Ok(asker) => supervisor.answer(request, &asker).await,
                Err(error) => Err(error),
            },
            Err(error) => Err(Error::new(Code::Invalid, format!("no request: {error}"))),
        };
        let answer = match answer {
            Ok(answer) => json!({"ok": answer}),
            Err(error) => json!({"error": error}),
        };
        write(&mut writer, &answer).await?;
    }
    Ok(())
}

fn version(line: &str) -> Option<u32> {
    let hello: Value = serde_json::from_str(line).ok()?;
    u32::try_from(hello.get("coretools_sessions")?.as_u64()?).ok()
}

/// A line, without its end. None at the end.
async fn read(reader: &mut (impl tokio::io::AsyncBufRead + Unpin)) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let mut limited = reader.take(LONGEST_LINE);
    limited.read_until(b'\n', &mut bytes).await?;
    match bytes.pop() {
        None => Ok(None),
        Some(b'\n') => String::from_utf8(bytes).map(Some).map_err(|_| io::ErrorKind::InvalidData.into()),
        Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

async fn write(writer: &mut (impl AsyncWrite + Unpin), value: &Value) -> io::Result<()> {
    let mut line = value.to_string();
    line.push('\n');
    writer.write_all(line.as_bytes()).await?;
    writer.flush().await
}

/// A client of a supervisor in another process.
#[derive(Clone, Debug)]
pub struct Client {
    state: PathBuf,
    principal: Option<Arc<str>>,
}

impl Client {
    /// A client of whoever supervises in this state directory.
    pub fn new(state: impl Into<PathBuf>) -> Self {
        Self { state: state.into(), principal: None }
    }

    /// The same for a caller of a server for many, to whom its own sessions are all that there are.
    #[must_use]
    pub fn of(mut self, principal: Option<&str>) -> Self {
        self.principal = principal.map(Arc::from);
        self
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// What the supervisor answers; [`Code::NotRunning`] where there is none.
    pub async fn ask(&self, request: &Request) -> Result<Value, Error> {
        let not_running = |error: &io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Error::new(
                Code::NotRunning,
                format!(
                    "no supervisor runs for {}; `mcp-stdio session daemon` starts one",
                    self.state.display()
                ),
            ),
            _ => Error::broken("cannot reach the supervisor", error),
        };
        let stream =
            UnixStream::connect(self.state.join(SOCKET)).await.map_err(|error| not_running(&error))?;
        let peer = stream.peer_cred().map_err(|error| not_running(&error))?;
        if peer.uid() != rustix::process::geteuid().as_raw() {
            return Err(Error::new(Code::Refused, "the supervisor's socket belongs to another user"));
        }
        let broken =
            |error: io::Error| Error::broken("the supervisor went away before it had answered", &error);
        let (reader, mut writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        let gone = || broken(io::ErrorKind::UnexpectedEof.into());
        let late = |_| Error::new(Code::Broken, "the supervisor does not answer; it may be busy: try again");
        write(&mut writer, &hello()).await.map_err(broken)?;
        let first = tokio::time::timeout(HELLO, read(&mut reader)).await.map_err(late)?;
        let first = first.map_err(broken)?.ok_or_else(gone)?;
        match version(&first) {
            Some(VERSION) => {}
            Some(other) => {
                return Err(Error::new(
                    Code::Broken,
                    format!(
                        "the supervisor speaks version {other} of the protocol, and this program {VERSION}: restart the older of the two"
                    ),
                ));
            }
            None => return Err(answered(&first).err().unwrap_or_else(gone)),
        }
        if let Some(principal) = &self.principal {
            let said = Request::For { principal: principal.to_string() };
            let said = serde_json::to_value(said).map_err(|error| Error::broken("cannot ask", &error))?;
            write(&mut writer, &said).await.map_err(broken)?;
            let line = tokio::time::timeout(HELLO, read(&mut reader)).await.map_err(late)?;
            answered(&line.map_err(broken)?.ok_or_else(gone)?)?;
        }
        let request = serde_json::to_value(request).map_err(|error| Error::broken("cannot ask", &error))?;
        write(&mut writer, &request).await.map_err(broken)?;
        let line = read(&mut reader).await.map_err(broken)?.ok_or_else(gone)?;
        answered(&line)
    }
}

fn answered(line: &str) -> Result<Value, Error> {
    let mut answer: Value = serde_json::from_str(line)
        .map_err(|error| Error::broken("the supervisor's answer is no JSON", &error))?;
    match answer.get_mut("error").map(Value::take) {
        None => Ok(answer.get_mut("ok").map(Value::take).unwrap_or_default()),
        Some(error) => {
            Err(serde_json::from_value(error)
                .map_err(|error| Error::broken("the supervisor's error", &error))?)
        }
    }
}

/// Makes the options of a supervisor, should one be needed.
type MakeOptions = dyn Fn() -> Result<Options, String> + Send + Sync;

/// The sessions of a state directory, whoever supervises them: the one in another process where there is one, else one
/// in this process, made when it is first needed. Cheap to clone.
#[derive(Clone)]
pub struct Sessions {
    shared: Arc<Shared>,
    principal: Option<Arc<str>>,
}

struct Shared {
    state: PathBuf,
    options: Box<MakeOptions>,
    own: Mutex<Option<Supervisor>>,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions")
            .field("state", &self.shared.state)
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}

impl Sessions {
    /// Those of `state`. `options` are for a supervisor of one's own.
    pub fn new(
        state: impl Into<PathBuf>,
        options: impl Fn() -> Result<Options, String> + Send + Sync + 'static,
    ) -> Self {
        let shared = Shared { state: state.into(), options: Box::new(options), own: Mutex::default() };
        Self { shared: Arc::new(shared), principal: None }
    }

    /// Those of them that belong to a caller of a server for many. Where it has no name: all.
    #[must_use]
    pub fn of(&self, principal: Option<&str>) -> Self {
        Self { shared: Arc::clone(&self.shared), principal: principal.map(Arc::from) }
    }

    /// Asks whoever supervises. Where nobody does, this process does from now on.
    ///
    /// # Errors
    /// What it answers.
    pub async fn ask(&self, request: Request) -> Result<Value, Error> {
        /// Who has the lock and not yet the socket, or the socket no more, is asked again for so long.
        const PATIENCE: Duration = Duration::from_secs(5);
        const PAUSE: Duration = Duration::from_millis(20);
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            match self.ask_if_there(request.clone()).await {
                Err(error) if error.code == Code::NotRunning => {}
                answered => return answered,
            }
            let mut own = self.shared.own.lock().await;
            if own.is_some() {
                continue;
            }
            let options = (self.shared.options)().map_err(|why| Error::new(Code::Broken, why))?;
            match Supervisor::host(&self.shared.state, options).await {
                Ok(supervisor) => *own = Some(supervisor),
                Err(error) if error.code == Code::State && tokio::time::Instant::now() < until => {
                    drop(own);
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Asks whoever supervises, if anybody does.
    ///
    /// # Errors
    /// What it answers; [`Code::NotRunning`] where nobody does.
    pub async fn ask_if_there(&self, request: Request) -> Result<Value, Error> {
        let own = self.shared.own.lock().await.clone();
        match own {
            Some(supervisor) => supervisor.answer(request, &Asker::of(self.principal.as_deref())).await,
            None => Client::new(&self.shared.state).of(self.principal.as_deref()).ask(&request).await,
        }
    }

    /// Those there are: those that are not over, or all. None, where nobody supervises.
    ///
    /// # Errors
    /// What whoever supervises answers.
    pub async fn list(&self, all: bool) -> Result<SessionList, Error> {
        match self.ask_if_there(Request::List { all }).await {
            Ok(list) => serde_json::from_value(list)
                .map_err(|error| Error::broken("the supervisor's list cannot be read", &error)),
            Err(error) if error.code == Code::NotRunning => Ok(SessionList { sessions: Vec::new() }),
            Err(error) => Err(error),
        }
    }

    /// Has the settings of a supervisor in this process read again, if there is one: [`Supervisor::reload`].
    ///
    /// # Errors
    /// They cannot be used; those before stay.
    pub async fn reload(&self) -> Result<(), Error> {
        match &*self.shared.own.lock().await {
            Some(supervisor) => supervisor.reload(),
            None => Ok(()),
        }
    }

    /// Takes up what was left here: goes on with the sessions that there are, where there are any and nobody supervises.
    ///
    /// # Errors
    /// It cannot.
    pub async fn take_up(&self) -> Result<(), Error> {
        match Store::is_at(&self.shared.state) {
            true => self.ask(Request::Status {}).await.map(|_| ()),
            false => Ok(()),
        }
    }

    /// Ends all of them, where somebody supervises.
    pub async fn end_all(&self, grace: Duration) {
        let Ok(list) = self.list(false).await else { return };
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let mut ends = tokio::task::JoinSet::new();
        for session in list.sessions {
            let (sessions, session_id) = (self.clone(), session.session_id);
            ends.spawn(async move {
                // One that is over meanwhile needs no end.
                let _ = sessions.ask_if_there(Request::End { session_id, grace_ms }).await;
            });
        }
        ends.join_all().await;
    }

    /// Whether the sessions end with this process.
    pub async fn are_own(&self) -> bool {
        self.shared.own.lock().await.is_some()
    }

    /// Ends the sessions that are this process's own. Others go on.
    pub async fn shutdown(&self, grace: Duration) {
        if let Some(supervisor) = self.shared.own.lock().await.take() {
            supervisor.close();
            supervisor.shutdown(grace).await;
        }
    }

    /// The state directory.
    pub fn state(&self) -> &Path {
        &self.shared.state
    }
}
