//! The interface of a source of state, and the request that it answers.

use super::Error;
use super::json::{self, OutlineOptions};
use super::mask::is_secret;
use super::named;
use super::path::StatePath;
use super::port::{self, PortProcess};
use super::state_value::{ProviderError, StateValue};
use super::target::{self, InspectTarget, LanguageRuntime, Process};
use serde_json::Value;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use tokio::sync::OnceCell;
use workspace::Workspace;

/// A source of state. Providers are asked in turn, and the first that has a value under the path answers.
///
/// ```
/// use introspection::inspect::{Provider, ProviderFuture, StateRequest};
/// use serde_json::json;
///
/// /// The time since the start of this server.
/// struct Uptime(std::time::Instant);
///
/// impl Provider for Uptime {
///     fn name(&self) -> &'static str {
///         "uptime"
///     }
///     fn read<'a>(&'a self, request: &'a StateRequest<'a>) -> ProviderFuture<'a> {
///         Box::pin(async move { request.json("uptime", &json!({"uptime": {"seconds": self.0.elapsed().as_secs()}})) })
///     }
/// }
/// ```
pub trait Provider: Send + Sync {
    /// The name under which answers say that it was tried.
    fn name(&self) -> &'static str;

    /// Returns the value under the path of `request`, or the reason why this provider has none.
    fn read<'a>(&'a self, request: &'a StateRequest<'a>) -> ProviderFuture<'a>;
}

/// The future of [`Provider::read`].
pub type ProviderFuture<'a> = Pin<Box<dyn Future<Output = Result<StateValue, ProviderError>> + Send + 'a>>;

/// A request to a [`Provider`].
pub struct StateRequest<'a> {
    pub(super) path: &'a StatePath,
    pub(super) depth: u32,
    pub(super) target: Option<&'a InspectTarget>,
    /// The target was named in the settings. It then may be one that the caller may not name.
    pub(super) is_target_configured: bool,
    pub(super) workspace: &'a Arc<Workspace>,
    pub(super) unrestricted: bool,
    pub(super) may_signal: bool,
    pub(super) processes: OnceLock<Vec<Process>>,
    /// The process behind the port of the target, chosen once for all providers.
    pub(super) port_process: OnceCell<Option<PortProcess>>,
}

impl std::fmt::Debug for StateRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateRequest")
            .field("path", self.path)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl StateRequest<'_> {
    /// The path of the value.
    pub fn path(&self) -> &StatePath {
        self.path
    }

    /// The depth to which objects are opened: 1 to 10.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns true if a target was named. A provider that reads no process, URL or file has no answer then.
    pub fn has_target(&self) -> bool {
        self.target.is_some()
    }

    /// Returns the value under the path in `document`, within the bounds of an answer and with secrets masked.
    ///
    /// # Errors
    /// The path leads nowhere in the document.
    pub fn json(&self, source: impl Into<String>, document: &Value) -> Result<StateValue, ProviderError> {
        let options = OutlineOptions { max_depth: self.depth, is_beneath_secret: self.is_beneath_secret() };
        json::find(self.path, source.into(), document, &options)
    }

    /// Returns true if all values are masked, because the path leads through a secret-like name and the caller may not
    /// see secrets.
    pub(super) fn is_beneath_secret(&self) -> bool {
        !self.unrestricted && self.path.segments.iter().any(|name| is_secret(name))
    }

    /// Returns the processes under the roots. They are looked for once, and only if a provider needs them.
    pub(super) fn processes(&self) -> &[Process] {
        self.processes.get_or_init(|| target::beneath(self.workspace))
    }

    /// Returns the workspace that a process must lie in. `None` if the caller may name any, or the settings name it.
    pub(super) fn required_workspace(&self) -> Option<&Workspace> {
        (!self.unrestricted && !self.is_target_configured).then_some(self.workspace.as_ref())
    }

    /// Returns the process behind the port of the target; `None` if it cannot be determined.
    pub(super) async fn process_behind(&self, port: u16) -> Result<Option<Process>, Error> {
        let within = self.required_workspace().map(|_| Arc::clone(self.workspace));
        let chosen = self.port_process.get_or_try_init(|| port::choose(port, within)).await?;
        Ok(chosen.as_ref().map(|chosen| chosen.process.clone()))
    }

    /// Returns the process that the request is about, whatever its runtime: that of the target, else the only one under the
    /// roots. `None` if there is none, or it may not be looked into.
    pub(super) async fn any_process(&self) -> Option<Process> {
        let process = match self.target {
            Some(InspectTarget::Pid(pid)) => Process::find(*pid).ok()?,
            Some(InspectTarget::Port(port)) => self.process_behind(*port).await.ok()??,
            Some(InspectTarget::Named(name)) => named::find(name, self.required_workspace()).ok()?,
            Some(_) => return None,
            None => match self.processes() {
                [only] => only.clone(),
                _ => return None,
            },
        };
        process.within(self.required_workspace(), String::new).ok()
    }

    /// Returns the choice in words, if several processes serve the port of the target.
    pub(super) fn port_note(&self) -> Option<String> {
        self.port_process.get()?.as_ref()?.note.clone()
    }

    /// Returns the names of the applications under the roots, if no target was named and there are several of which one was
    /// chosen.
    pub(super) fn other_processes_note(&self) -> Option<String> {
        let chosen_of = self.processes.get().filter(|_| self.target.is_none())?;
        let is_application = |process: &&Process| process.runtime != LanguageRuntime::Native;
        let names: Vec<String> = chosen_of.iter().filter(is_application).map(Process::display_name).collect();
        (names.len() > 1).then(|| {
            let listed: Vec<&str> = names.iter().take(10).map(String::as_str).collect();
            format!(
                "{} applications run under the roots, and `source` names the one that was read: {}; name another as target \
                 \"pid:N\"",
                names.len(),
                listed.join(", ")
            )
        })
    }

    /// Returns the process of the target, or the only one under the roots that runs one of `runtimes`.
    pub(super) async fn process(&self, runtimes: &[LanguageRuntime]) -> Result<Process, ProviderError> {
        let not_applicable = |reason: String| Err(ProviderError::NotApplicable(reason));
        let of_target = match self.target {
            Some(InspectTarget::Pid(pid)) => Some(Process::find(*pid).map_err(Error::from)?),
            Some(InspectTarget::Port(port)) => self.process_behind(*port).await?,
            Some(InspectTarget::Named(name)) => {
                Some(named::find(name, self.required_workspace()).map_err(Error::from)?)
            }
            Some(_) => return Err(ProviderError::NotAsked("the target is no process")),
            None => None,
        };
        if let Some(process) = of_target {
            let pid = process.pid;
            let process = process
                .within(self.required_workspace(), || format!("process {pid}"))
                .map_err(Error::from)?;
            return if runtimes.contains(&process.runtime) {
                Ok(process)
            } else {
                Err(ProviderError::NotAsked("the target is a process of another runtime"))
            };
        }
        // Only a port comes this far: its listener may be held by a process whose descriptors this server may not read.
        if self.target.is_some() {
            return not_applicable("the process behind the port is not known".to_owned());
        }
        let mut matching = self.processes().iter().filter(|process| runtimes.contains(&process.runtime));
        match (matching.next(), matching.next()) {
            // The next provider may know the value, so that nothing found is not yet a failure.
            (None, _) => Err(ProviderError::NotAsked("none runs under the roots")),
            (Some(process), None) => Ok(process.clone()),
            (Some(first), Some(second)) => {
                let names: Vec<String> =
                    [first, second].into_iter().chain(matching).take(10).map(Process::display_name).collect();
                not_applicable(format!(
                    "several run under the roots, name one as target \"pid:N\": {}",
                    names.join(", ")
                ))
            }
        }
    }
}
