//! [`Inspector`]: the providers, asked in turn.

use super::Error;
use super::advice::advice;
use super::path::StatePath;
use super::provider::{Provider, StateRequest};
use super::providers::expvar::ExpvarProvider;
use super::providers::file::FileProvider;
use super::providers::http::HttpProvider;
#[cfg(unix)]
use super::providers::jvm::JvmProvider;
use super::providers::node::NodeProvider;
use super::providers::proc::ProcProvider;
use super::providers::python::PythonProvider;
use super::providers::server_env::ServerEnvProvider;
use super::request::InspectState;
use super::response::{StateProviderAttempt, StateResponse};
use super::state_value::ProviderError;
use super::target::{InspectTarget, InvalidTarget, TargetUrl};
use super::tree::{DEFAULT_DEPTH, MAX_DEPTH};
use process_runner::Runner;
use std::ffi::OsString;
use std::sync::{Arc, OnceLock};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use workspace::Workspace;

/// A value of `STATE_URL` that cannot be used. The message does not show it, since it may hold a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidStateUrl {
    /// It has another scheme than `http`.
    #[error("STATE_URL must begin with http:// (https is not supported)")]
    Scheme,
    /// It cannot be parsed.
    #[error("STATE_URL is no URL")]
    Syntax,
}

/// Reads the state of the application. Cheap to clone; clones share the connections that are kept.
#[derive(Clone)]
pub struct Inspector {
    workspace: Arc<Workspace>,
    target: Option<String>,
    unrestricted: bool,
    allow_signals: bool,
    settings: Arc<ProviderSettings>,
    providers: Arc<[Arc<dyn Provider>]>,
}

/// The settings that the providers are built from.
#[derive(Clone, Default)]
struct ProviderSettings {
    state_path: Option<String>,
    state_url: Option<TargetUrl>,
    port: Option<u16>,
    environment: Arc<[(String, String)]>,
    runner: Option<Runner>,
    search_path: Option<OsString>,
    custom: Vec<Arc<dyn Provider>>,
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
        .rebuild(|_| {})
    }

    /// The JSON file that the application writes its state to, beneath a root: the value of `STATE_PATH`.
    /// `.app-state.json` by default.
    #[must_use]
    pub fn state_path(self, path: Option<String>) -> Self {
        self.rebuild(|settings| settings.state_path = path.filter(|path| !path.is_empty()))
    }

    /// The URL at which the application serves its state as JSON: the value of `STATE_URL`. None by default. The URL
    /// may lead to another machine, by plain HTTP.
    ///
    /// # Errors
    /// `url` is no `http://` URL.
    pub fn state_url(self, url: Option<&str>) -> Result<Self, InvalidStateUrl> {
        let url = match url.filter(|url| !url.is_empty()) {
            None => None,
            Some(text) if !text.starts_with("http://") => return Err(InvalidStateUrl::Scheme),
            Some(text) => Some(TargetUrl::parse(text).ok_or(InvalidStateUrl::Syntax)?),
        };
        Ok(self.rebuild(|settings| settings.state_url = url))
    }

    /// The port of this machine at which the inspector listens: the value of `NODE_INSPECT_PORT`. By default the inspector
    /// is looked for among the processes under the roots.
    #[must_use]
    pub fn inspect_port(self, port: Option<u16>) -> Self {
        self.rebuild(|settings| settings.port = port)
    }

    /// The target of requests that name none. None by default.
    ///
    /// # Errors
    /// The text names no target.
    pub fn target(mut self, target: Option<String>) -> Result<Self, InvalidTarget> {
        self.target = target.filter(|target| !target.is_empty());
        self.target.as_deref().map(str::parse::<InspectTarget>).transpose()?;
        Ok(self)
    }

    /// The variables from which `process.env.NAME` is answered if there is no process. None by default.
    #[must_use]
    pub fn environment(self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let variables = variables.into_iter().collect();
        self.rebuild(|settings| settings.environment = variables)
    }

    /// The runner of py-spy, and the folders in which it is looked for: the value of `PATH`. None by default; then Python is
    /// not looked into.
    #[must_use]
    pub fn programs(self, runner: Runner, search_path: Option<OsString>) -> Self {
        self.rebuild(|settings| (settings.runner, settings.search_path) = (Some(runner), search_path))
    }

    /// Asks `provider` before the built-in providers.
    #[must_use]
    pub fn provider(self, provider: Arc<dyn Provider>) -> Self {
        self.rebuild(|settings| settings.custom.push(provider))
    }

    /// Allows the signal that makes a process inspectable: `SIGUSR1` to Node.js, `SIGQUIT` to a Java virtual machine. Not
    /// allowed by default.
    #[must_use]
    pub fn allow_signals(mut self, allow: bool) -> Self {
        self.allow_signals = allow;
        self
    }

    /// Lifts the restrictions of the caller: an unrestricted caller may see secrets by their exact path, name any process of
    /// our user, and have signals sent. Restricted by default.
    #[must_use]
    pub fn unrestricted(mut self, unrestricted: bool) -> Self {
        self.unrestricted = unrestricted;
        self
    }

    /// A copy for a caller with another workspace. The copy shares the kept connections.
    #[must_use]
    pub fn within(&self, workspace: Arc<Workspace>) -> Self {
        Self { workspace, ..self.clone() }
    }

    /// Changes the settings and builds the providers from them. Kept connections are dropped.
    fn rebuild(mut self, change: impl FnOnce(&mut ProviderSettings)) -> Self {
        let settings = Arc::make_mut(&mut self.settings);
        change(settings);
        // Providers are asked in this order: what the application publishes by itself comes before what is read out of
        // its process. The environment of the server comes last, since it is no state of the application.
        let mut providers = settings.custom.clone();
        providers.push(Arc::new(FileProvider { path: settings.state_path.clone() }));
        providers.push(Arc::new(HttpProvider { url: settings.state_url.clone() }));
        providers.push(Arc::new(NodeProvider::new(settings.port)));
        providers.push(Arc::new(ProcProvider));
        #[cfg(unix)]
        providers.push(Arc::new(JvmProvider));
        if let Some(runner) = &settings.runner {
            let (runner, search_path) = (runner.clone(), settings.search_path.clone());
            providers.push(Arc::new(PythonProvider { runner, search_path }));
        }
        providers.push(Arc::new(ExpvarProvider));
        providers.push(Arc::new(ServerEnvProvider(Arc::clone(&settings.environment))));
        self.providers = providers.into();
        self
    }

    /// Returns the value under the path of `request`. A path that leads nowhere, and a lack of anything to look into, is an
    /// answer without a value.
    ///
    /// # Errors
    /// An argument is invalid, or the work was cancelled.
    pub async fn inspect(
        &self,
        request: &InspectState,
        cancel: &CancellationToken,
    ) -> Result<StateResponse, Error> {
        tokio::select! {
            response = self.ask_providers(request) => response,
            () = cancel.cancelled() => Err(Error::Cancelled),
        }
    }

    /// Asks the providers in turn, until one has a value.
    async fn ask_providers(&self, request: &InspectState) -> Result<StateResponse, Error> {
        let path = StatePath::parse(&request.path)?;
        let depth = request.depth.unwrap_or(DEFAULT_DEPTH);
        if !(1..=MAX_DEPTH).contains(&depth) {
            return Err(Error::Depth(depth));
        }
        let named = request.target.as_ref().or(self.target.as_ref());
        let target = named.map(|target| target.parse::<InspectTarget>()).transpose()?;
        let state_request = StateRequest {
            path: &path,
            depth,
            target: target.as_ref(),
            is_target_configured: request.target.is_none() && target.is_some(),
            workspace: &self.workspace,
            unrestricted: self.unrestricted,
            may_signal: self.allow_signals && self.unrestricted,
            processes: OnceLock::new(),
            port_process: OnceCell::new(),
        };
        // The first provider of each kind decides the error: it is the nearest to what was asked for.
        let (mut tried, mut failures, mut not_found, mut failed) = (Vec::new(), Vec::new(), None, None);
        for provider in self.providers.iter() {
            let why = match provider.read(&state_request).await {
                Err(ProviderError::NotAsked(_)) => continue,
                Ok(mut value) => {
                    value.notes.extend(state_request.port_note());
                    value.notes.extend(state_request.other_processes_note());
                    return Ok(StateResponse::found(value, failures, self.unrestricted));
                }
                Err(ProviderError::NotApplicable(reason)) => reason,
                Err(ProviderError::PathNotFound(missing)) => {
                    let reason = format!("it has no {}", missing.failed_at);
                    not_found.get_or_insert(*missing);
                    reason
                }
                Err(ProviderError::Failed(error)) => {
                    let message = error_causes::chain(&error);
                    failed.get_or_insert_with(|| message.clone());
                    failures.push(StateProviderAttempt { provider: provider.name(), why: message.clone() });
                    message
                }
            };
            tried.push(StateProviderAttempt { provider: provider.name(), why });
        }
        let mut response = match (not_found, failed) {
            // A path that led some way says more than a failure elsewhere.
            (Some(not_found), _) => StateResponse::not_found(not_found, &path),
            (None, Some(failed)) => {
                tried.retain(|attempt: &StateProviderAttempt| attempt.why != failed);
                let mut response = StateResponse::failed(failed, tried);
                // An error of the port alone does not say who listens there.
                if matches!(target, Some(InspectTarget::Port(_)))
                    && let Some(process) = state_request.any_process().await
                    // The error of a stopped one says what to do.
                    && process.check_not_stopped().is_ok()
                {
                    response.notes.push(advice(Some(&process), target.as_ref()));
                }
                response
            }
            (None, None) => {
                let advice = advice(state_request.any_process().await.as_ref(), target.as_ref());
                StateResponse::nothing_to_inspect(tried, advice)
            }
        };
        response.notes.extend(state_request.port_note());
        Ok(response)
    }
}
