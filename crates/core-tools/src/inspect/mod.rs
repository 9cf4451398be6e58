//! The state of the application, of any language, read from outside: never by running its code, and never stopping it.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! use core_tools::inspect::{InspectState, Inspector};
//! use core_tools::workspace::Workspace;
//! use std::sync::Arc;
//!
//! let workspace = Workspace::new([folder.path()])?;
//! workspace.locate(".app-state.json")?.write(br#"{"cart": {"items": [{"name": "tea", "apiKey": "abc"}]}}"#)?;
//!
//! let inspector = Inspector::new(Arc::new(workspace));
//! let request = InspectState { path: "cart.items[0]".to_owned(), ..InspectState::default() };
//! let answer = inspector.inspect(&request, &Default::default()).await?;
//! assert_eq!(answer.value, serde_json::json!({"name": "tea", "apiKey": "[masked]"}));
//! assert_eq!(answer.source.as_deref(), Some("file: .app-state.json"));
//! # Ok(())
//! # }
//! ```
//!
//! # Where it comes from
//!
//! [`Provider`]s are asked in turn, and the first that has what the path names answers; the answer says which were
//! tried before, and why they did not. [`Inspector::provider`] adds one of your own in front.
//!
//! | provider | what it reads | paths |
//! |---|---|---|
//! | `file` | a JSON file that the application writes: `STATE_PATH`, `.app-state.json` | any |
//! | `http` | a JSON document that it serves: `STATE_URL` | any |
//! | `node` | Node.js and Deno, by the inspector | any, `local:FILE/name` |
//! | `proc` | `/proc` of a process | `process.*` |
//! | `jvm` | a Java virtual machine, by its attach socket | `jvm.*` |
//! | `python` | Python, by py-spy | `python.*` |
//! | `server-env` | the server's own environment, where no process is found | `process.env.NAME` |
//!
//! # Bounds
//!
//! Depth 1 to 10 and 3 by default; 50 members of an object; 5,000 values and about 40 KB; 2,000 characters of a text,
//! 20,000 of one that was asked for itself. What was cut is counted in the answer.
//!
//! # What JSON has no form for
//!
//! Marks: `$ref` (the path where the same object stands), `$cut` (not opened: its class and size), `$more`, `$type`,
//! `$map`, `$set`, `$date`, `$bigint`, `$number` (`NaN`, `-0`, `Infinity`), `$undefined`, `$symbol`, `$function`,
//! `$getter` (not run), `$proxy` (not trapped), `$error`, `$regexp`, `$empty` (holes of an array).
//!
//! # Secrets
//!
//! Texts and numbers under a secret-like name are masked. Who is [`unrestricted`](Inspector::unrestricted) sees one by
//! asking for its exact path.
//!
//! # What may be reached
//!
//! Processes of this process's own effective user, root included. Who is not unrestricted: only those whose working
//! folder or program lies where the workspace may be read. Targets are on this machine; the URL of the settings alone
//! may lead elsewhere. A signal, which a process may need to become inspectable, is sent only where
//! [`allow_signals`](Inspector::allow_signals) says so, for who is unrestricted, and to a process that is proven to be
//! what the signal is for and has a handler for it.

pub(crate) mod cdp;
mod error;
mod facts;
mod file;
pub(crate) mod http;
#[cfg(unix)]
mod java;
mod json;
#[cfg(unix)]
pub(crate) mod jvm;
mod mask;
mod node;
mod path;
pub(crate) mod proc;
mod provider;
mod python;
mod request;
mod server;
pub(crate) mod target;
mod tree;
mod web;

pub use cdp::Error as InspectorError;
pub use error::Error;
pub use http::Error as HttpError;
#[cfg(unix)]
pub use jvm::Error as JvmError;
pub use path::{InvalidPath, StatePath};
pub use provider::{Found, Missing, Passed, Provider, Reading, Request};
pub use request::{Answered, InspectState, Tried};
pub use target::{InvalidTarget, Unreachable};
pub use tree::MOST_DEPTH;

use crate::workspace::Workspace;
use process_runner::Runner;
use std::ffi::OsString;
use std::sync::{Arc, OnceLock};
use target::{Target, Url};
use tokio_util::sync::CancellationToken;
use tree::DEFAULT_DEPTH;

/// Reads the state of the application. Cheap to clone; clones share the connections that are kept.
#[derive(Clone)]
pub struct Inspector {
    workspace: Arc<Workspace>,
    target: Option<String>,
    unrestricted: bool,
    allow_signals: bool,
    settings: Arc<Settings>,
    providers: Arc<[Arc<dyn Provider>]>,
}

/// What the providers are made of.
#[derive(Clone, Default)]
struct Settings {
    state_path: Option<String>,
    state_url: Option<Url>,
    port: Option<u16>,
    environment: Arc<[(String, String)]>,
    runner: Option<Runner>,
    search_path: Option<OsString>,
    own: Vec<Arc<dyn Provider>>,
}

impl std::fmt::Debug for Inspector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inspector").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

impl Inspector {
    /// Looks into processes under the roots of `workspace`, and at `.app-state.json` in the first.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self {
            workspace,
            target: None,
            unrestricted: false,
            allow_signals: false,
            settings: Arc::default(),
            providers: Arc::new([]),
        }
        .rebuilt(|_| {})
    }

    /// The JSON file that the application writes its state to, beneath a root: the value of `STATE_PATH`.
    /// `.app-state.json` by default.
    #[must_use]
    pub fn state_path(self, path: Option<String>) -> Self {
        self.rebuilt(|settings| settings.state_path = path.filter(|path| !path.is_empty()))
    }

    /// Where the application serves its state as JSON: the value of `STATE_URL`. None by default. It may lead to
    /// another machine, by plain HTTP.
    ///
    /// # Errors
    /// It is no `http://` URL.
    pub fn state_url(self, url: Option<&str>) -> Result<Self, String> {
        let url = match url.filter(|url| !url.is_empty()) {
            None => None,
            // It may hold a secret.
            Some(text) if !text.starts_with("http://") => {
                return Err("STATE_URL must begin with http:// (https is not spoken)".to_owned());
            }
            Some(text) => Some(Url::parse(text).ok_or("STATE_URL is no URL")?),
        };
        Ok(self.rebuilt(|settings| settings.state_url = url))
    }

    /// The port of this machine at which the inspector listens: the value of `NODE_INSPECT_PORT`. By default it is
    /// looked for among the processes under the roots.
    #[must_use]
    pub fn inspect_port(self, port: Option<u16>) -> Self {
        self.rebuilt(|settings| settings.port = port)
    }

    /// What is looked into where a request names no target. None by default.
    ///
    /// # Errors
    /// It names nothing that can be looked into.
    pub fn target(mut self, target: Option<String>) -> Result<Self, InvalidTarget> {
        self.target = target.filter(|target| !target.is_empty());
        self.target.as_deref().map(str::parse::<Target>).transpose()?;
        Ok(self)
    }

    /// The variables that `process.env.NAME` is answered from where there is no process. None by default.
    #[must_use]
    pub fn environment(self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let variables = variables.into_iter().collect();
        self.rebuilt(|settings| settings.environment = variables)
    }

    /// What runs py-spy, and where it is looked for: the value of `PATH`. Without, Python is not looked into.
    #[must_use]
    pub fn programs(self, runner: Runner, search_path: Option<OsString>) -> Self {
        self.rebuilt(|settings| (settings.runner, settings.search_path) = (Some(runner), search_path))
    }

    /// Asks `provider` before those that are built in.
    #[must_use]
    pub fn provider(self, provider: Arc<dyn Provider>) -> Self {
        self.rebuilt(|settings| settings.own.push(provider))
    }

    /// Whether a process may be sent the signal that makes it inspectable: `SIGUSR1` to Node.js, `SIGQUIT` to a Java
    /// virtual machine. False by default.
    #[must_use]
    pub fn allow_signals(mut self, allow: bool) -> Self {
        self.allow_signals = allow;
        self
    }

    /// Whether whoever asks may do everything that there is: see secrets by their exact path, name any process of our
    /// user, have signals sent. False by default.
    #[must_use]
    pub fn unrestricted(mut self, unrestricted: bool) -> Self {
        self.unrestricted = unrestricted;
        self
    }

    /// The same, as far as `workspace` reaches.
    #[must_use]
    pub fn within(&self, workspace: Arc<Workspace>) -> Self {
        Self { workspace, ..self.clone() }
    }

    /// The same with other settings. Connections that were kept are not taken over.
    fn rebuilt(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        let settings = Arc::make_mut(&mut self.settings);
        change(settings);
        let mut providers = settings.own.clone();
        providers.push(Arc::new(file::File { path: settings.state_path.clone() }));
        providers.push(Arc::new(web::Web { url: settings.state_url.clone() }));
        providers.push(Arc::new(node::Node::new(settings.port)));
        providers.push(Arc::new(facts::Facts));
        #[cfg(unix)]
        providers.push(Arc::new(java::Java));
        if let Some(runner) = &settings.runner {
            let (runner, path) = (runner.clone(), settings.search_path.clone());
            providers.push(Arc::new(python::Python { runner, path }));
        }
        providers.push(Arc::new(server::ServerEnvironment(Arc::clone(&settings.environment))));
        self.providers = providers.into();
        self
    }

    /// What the path of `request` names. That it names nothing, and that there is nothing to look into, is an answer
    /// without a value.
    ///
    /// # Errors
    /// An argument is none, or the work was cancelled.
    pub async fn inspect(
        &self,
        request: &InspectState,
        cancel: &CancellationToken,
    ) -> Result<Answered, Error> {
        tokio::select! {
            answered = self.ask(request) => answered,
            () = cancel.cancelled() => Err(Error::Cancelled),
        }
    }

    async fn ask(&self, request: &InspectState) -> Result<Answered, Error> {
        let path = StatePath::parse(&request.path)?;
        let depth = request.depth.unwrap_or(DEFAULT_DEPTH);
        if !(1..=MOST_DEPTH).contains(&depth) {
            return Err(Error::Depth(depth));
        }
        let named = request.target.as_ref().or(self.target.as_ref());
        let target = named.map(|target| target.parse::<Target>()).transpose()?;
        let asked = Request {
            path: &path,
            depth,
            target: target.as_ref(),
            is_operators: request.target.is_none() && target.is_some(),
            workspace: &self.workspace,
            unrestricted: self.unrestricted,
            may_signal: self.allow_signals && self.unrestricted,
            found: OnceLock::new(),
        };
        let (mut tried, mut missing, mut failed) = (Vec::new(), None, None);
        for provider in self.providers.iter() {
            let why = match provider.read(&asked).await {
                Ok(found) => return Ok(Answered::found(found, tried, self.unrestricted)),
                Err(Passed::Nothing(why)) => why,
                Err(Passed::Missing(found)) => {
                    let why = format!("it has no {}", found.failed_at);
                    missing.get_or_insert(*found);
                    why
                }
                Err(Passed::Failed(error)) => {
                    let why = chain(&error);
                    failed.get_or_insert_with(|| why.clone());
                    why
                }
            };
            tried.push(Tried { provider: provider.name(), why });
        }
        Ok(match (missing, failed) {
            (Some(missing), _) => Answered::missing(missing, tried),
            (None, Some(failed)) => Answered::failed(failed, tried),
            (None, None) => Answered::nothing(tried),
        })
    }
}

/// An error and everything that led to it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
