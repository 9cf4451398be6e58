//! The policy in front of a server that is not ours.
//!
//! [`Proxy::run`] stands between a client on two pipes and any other MCP server, started as a child or reached by URL. The
//! client gets the lists that its role sees, and the answers to the calls that its role may make; everything
//! else it asks for is answered here, as the server would answer it if it had nothing else.
//!
//! ```text
//! client ──lines──> message ──> methods ──> judge ──> own writing ──outbox──> server
//! client <──outbox── own writing <── catalogue <── by the id that we gave it <──lines── server
//! ```
//!
//! # What is promised
//!
//! - **Nothing unread passes**, in either direction. A line is parsed strictly ([`json`], [`message`]), judged,
//!   and written again by us; what was judged is what is sent. Members that nobody here knows survive, and so
//!   do numbers of any length. A method that is in no table is not forwarded.
//! - **A tool that the caller may not see is a tool that does not exist**: the same code, the same words, in the
//!   same time, without asking the server. Lists are filtered by what *we* asked, whatever their shape.
//! - **The client does not notice that the server was started again.** The handshake is said again, and the
//!   settings with it. A call that was open is answered at once, saying that it may have run, and never sent
//!   again. While there is no server the last known list is given, and a call waits a bounded time.
//! - **Everything is bounded**: messages (16 MiB, 128 levels, 500,000 values), queues, requests in flight, pages of a
//!   list, the time of a call, the time between two starts.
//! - **It ends with its client**, within a second, and ends all that the server has started.
//!
//! # What it leaves out
//!
//! What a tool does with allowed arguments is the server's affair, and a tool that takes the name of another
//! tool as an argument can call that. Results are passed on as they are. Unix only.

mod catalogue;
#[cfg(feature = "url")]
mod events;
pub mod json;
mod judge;
mod lines;
pub mod message;
mod methods;
mod observe;
mod outbox;
mod outline;
mod pins;
#[cfg(feature = "url")]
mod remote;
mod session;
mod upstream;

pub use judge::{Narrowing, PolicyHandle};
pub use methods::Area;
pub use observe::{Ended, Observed, Observer, Outcome};
pub use pins::PinMode;
#[cfg(feature = "url")]
pub use remote::Remote;
pub use upstream::Child;

use crate::{Caller, Effects, Lexical};
use judge::Judge;
use lines::{Line, Lines};
use outbox::Outbox;
use pins::Pins;
use process_runner::{CancellationToken, Runner};
use session::Session;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that may wait for a client or a server that does not read.
const QUEUE_BYTES: usize = 64 << 20;
/// How long the last answers may take after the client has closed its end.
const LAST_ANSWERS: Duration = Duration::from_millis(300);

/// What bounds a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a request may take. 10 minutes.
    pub call: Duration,
    /// The same for calls of single tools.
    pub tools: BTreeMap<String, Duration>,
    /// How long a request waits for a server that is down. 10 s.
    pub reconnect: Duration,
    /// Requests of the client that may be open at once. 1,024.
    pub in_flight: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(600),
            tools: BTreeMap::new(),
            reconnect: Duration::from_secs(10),
            in_flight: 1024,
        }
    }
}

impl Limits {
    fn of(&self, tool: &str) -> Duration {
        self.tools.get(tool).copied().unwrap_or(self.call)
    }
}

/// One client, one server, and the policy between them.
pub struct Proxy {
    policy: PolicyHandle,
    caller: Caller,
    narrowing: Narrowing,
    effects: Arc<dyn Effects + Send + Sync>,
    limits: Limits,
    pins: Option<(PathBuf, PinMode)>,
    observer: Option<Arc<dyn Observer>>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy")
            .field("caller", &self.caller)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Where the server is.
#[derive(Debug)]
#[non_exhaustive]
pub enum Server {
    /// Started as a child, with this runner, which is shut down at the end.
    Child(Child, Runner),
    /// Reached by URL.
    #[cfg(feature = "url")]
    Remote(Remote),
}

/// Why a session could not begin.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The file of pins cannot be used; says which and why.
    Pins(String),
    /// The system gives no thread or pipe.
    System(io::Error),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pins(problem) => f.write_str(problem),
            Self::System(_) => f.write_str("cannot begin the session"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Pins(_) => None,
            Self::System(source) => Some(source),
        }
    }
}

impl From<io::Error> for Error {
    fn from(source: io::Error) -> Self {
        Self::System(source)
    }
}

impl Proxy {
    /// A proxy for `caller` under `policy`.
    pub fn new(policy: PolicyHandle, caller: Caller) -> Self {
        Self {
            policy,
            caller,
            narrowing: Narrowing::default(),
            effects: Arc::new(Lexical),
            limits: Limits::default(),
            pins: None,
            observer: None,
        }
    }

    /// Finds out where the arguments of calls lead, where the server runs on this machine. By default their
    /// text alone is judged ([`Lexical`]), and no absolute path passes a rule for paths.
    #[must_use]
    pub fn effects(mut self, effects: Arc<dyn Effects + Send + Sync>) -> Self {
        self.effects = effects;
        self
    }

    /// Takes more away than the policy does. Nothing by default.
    #[must_use]
    pub fn narrowing(mut self, narrowing: Narrowing) -> Self {
        self.narrowing = narrowing;
        self
    }

    /// Other limits than the default ones.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Records the definitions of tools in `file`, and compares them with what is there. Not done by default.
    #[must_use]
    pub fn pins(mut self, file: PathBuf, mode: PinMode) -> Self {
        self.pins = Some((file, mode));
        self
    }

    /// Tells `observer` of every call and every refusal of one. Nobody by default.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Serves the client that writes to `input` and reads from `output`, until it closes `input` or `end` is
    /// cancelled. `reload` is asked to resolve whenever another policy was put in force.
    ///
    /// # Errors
    ///
    /// Where the session cannot begin. A server that cannot be started is told to the client instead, and
    /// tried again.
    pub async fn run<R: Future<Output = ()>>(
        self,
        server: Server,
        (input, output): (OwnedFd, OwnedFd),
        end: CancellationToken,
        mut reload: impl FnMut() -> R,
    ) -> Result<(), Error> {
        let pins = match self.pins {
            Some((file, mode)) => Some(Pins::open(&file, mode).map_err(Error::Pins)?),
            None => None,
        };
        let client = Outbox::new(output, QUEUE_BYTES, "to-client")?;
        let judge = Judge::new(self.policy, self.caller, self.narrowing, self.effects);
        #[cfg(feature = "url")]
        let longest =
            self.limits.tools.values().copied().fold(self.limits.call, Duration::max) + LAST_ANSWERS;
        let session = Session::new(judge, self.limits, pins, self.observer, client);
        let reader = session.clone();
        // Not joined: it may sleep in a read that nothing ends.
        std::thread::Builder::new()
            .name("from-client".to_owned())
            .spawn(move || read_client(&reader, Lines::new(input, message::MAX_MESSAGE_BYTES)))?;
        let reloads = async {
            loop {
                reload().await;
                session.policy_has_changed();
            }
        };
        let served = async {
            match &server {
                Server::Child(child, runner) => upstream::supervise(&session, child, runner, &end).await,
                #[cfg(feature = "url")]
                Server::Remote(remote) => remote::supervise(&session, remote, longest, &end).await,
            }
        };
        tokio::select! {
            () = served => {}
            () = reloads => {}
        }
        session.client().flush(Duration::from_millis(100));
        Ok(())
    }
}

/// How often a reader that must not read on looks whether it may.
const LOOK: Duration = Duration::from_millis(100);

fn read_client(session: &Session, mut lines: Lines) {
    loop {
        // What a client asks makes answers, and who does not read them is not asked on.
        while !session.client().wait_for_room(LOOK) {
            if lines.hung_up() {
                return session.client_is_gone();
            }
        }
        match lines.next() {
            Ok(Line::Whole(line)) => session.client_line(line),
            Ok(Line::TooLong(outline)) => session.client_line_too_long(outline),
            Ok(Line::End) => return session.client_is_gone(),
            Err(error) => {
                tracing::warn!(%error, "cannot read from the client");
                return session.client_is_gone();
            }
        }
    }
}
