//! Node.js and Deno, over the inspector.
//!
//! No code of the application runs and nothing is paused: the functions that are called in its process are built-in
//! functions of the engine (`reader.js`), checked to be unmodified, and their results are read with
//! `Runtime.getProperties`. Getters are not run and proxies not trapped. The one exception is the engine's own getter of
//! `process`, which is read with `throwOnSideEffect`.

mod locals;
mod reader;
mod walk;

use crate::inspect::Error;
use crate::inspect::cdp::{self, CdpSession, MAX_MESSAGE_BYTES};
use crate::inspect::provider::{Provider, ProviderFuture, StateRequest};
use crate::inspect::state_value::{ProviderError, StateValue};
use crate::inspect::target::{self, InspectTarget, LanguageRuntime, Process, SignalError, TargetUrl};
use reader::RemoteReader;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The most connections that are kept.
const MAX_CONNECTIONS: usize = 8;
/// The time that a process has to list its inspector targets.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// The time for which a process that was found to be the only one is used without a new search, which takes a
/// millisecond.
const SEARCH_CACHE_TTL: Duration = Duration::from_secs(2);

/// The runtimes that have an inspector.
const RUNTIMES: [LanguageRuntime; 2] = [LanguageRuntime::Node, LanguageRuntime::Deno];

/// Reads the state of Node.js and Deno.
#[derive(Debug, Default)]
pub(in crate::inspect) struct NodeProvider {
    port: Option<u16>,
    /// The open connections, by the name of the target or process.
    connections: Mutex<HashMap<String, Arc<RemoteReader>>>,
    /// Held while a connection is made, so that concurrent requests share it.
    connecting: Mutex<()>,
    /// The process that the last search found to be the only one, and the time of the search.
    last_found: Mutex<Option<(Instant, Process)>>,
}

impl Provider for NodeProvider {
    fn name(&self) -> &'static str {
        "node"
    }

    fn read<'a>(&'a self, request: &'a StateRequest<'a>) -> ProviderFuture<'a> {
        Box::pin(self.find(request))
    }
}

/// An inspector to connect to.
struct InspectorEndpoint {
    /// The key of the connection in [`NodeProvider::connections`].
    name: String,
    url: TargetUrl,
    process: Option<Process>,
    /// We made the process open it, and close it after the reading.
    was_opened_by_us: bool,
}

impl NodeProvider {
    /// A provider that connects to `port` if the request names no target.
    pub(in crate::inspect) fn new(port: Option<u16>) -> Self {
        Self { port, ..Self::default() }
    }

    async fn find(&self, request: &StateRequest<'_>) -> Result<StateValue, ProviderError> {
        let name = match (request.target, self.port) {
            (Some(InspectTarget::File(_) | InspectTarget::Http(_)), _) => {
                return Err(ProviderError::NotAsked("the target is a document"));
            }
            (Some(target), _) => target.to_string(),
            (None, Some(port)) => InspectTarget::Port(port).to_string(),
            (None, None) => String::new(),
        };
        // Access was checked when the connection was made. A restricted caller is checked again, below.
        // Behind a port or a name may be another process by now; its own connection is kept under its id.
        let is_fixed = !matches!(request.target, Some(InspectTarget::Named(_)));
        if request.required_workspace().is_none()
            && !name.is_empty()
            && is_fixed
            && let Some(reader) = self.connection(&name).await
        {
            return read(&reader, request).await;
        }
        if name.is_empty()
            && let Some(reader) = self.recent_connection(request).await
        {
            return read(&reader, request).await;
        }
        // Requests that arrive meanwhile wait here, and then find the connection in the second look.
        let connecting = self.connecting.lock().await;
        if name.is_empty()
            && let Some(reader) = self.recent_connection(request).await
        {
            drop(connecting);
            return read(&reader, request).await;
        }
        let endpoint = self.endpoint(request, name).await?;
        let reader = match self.connection(&endpoint.name).await {
            Some(reader) => reader,
            None => self.connect(&endpoint).await?,
        };
        drop(connecting);
        let result = read(&reader, request).await;
        if endpoint.was_opened_by_us {
            // Removed first: a request that came now would use a connection that is about to end.
            self.connections.lock().await.remove(&endpoint.name);
            reader.close_inspector().await;
            return result.map(|mut value| {
                value
                    .notes
                    .push("its inspector was opened by SIGUSR1 for this reading and closed again".to_owned());
                value
            });
        }
        result
    }

    /// Returns the connection to the process that was found a moment ago, if it still runs and the caller may look into it.
    async fn recent_connection(&self, request: &StateRequest<'_>) -> Option<Arc<RemoteReader>> {
        let process = match &*self.last_found.lock().await {
            Some((found_at, process)) if found_at.elapsed() < SEARCH_CACHE_TTL => process.clone(),
            _ => return None,
        };
        let is_usable = process.is_running() && process.is_beneath(request.workspace);
        if is_usable { self.connection(&connection_name(&process)).await } else { None }
    }

    /// Returns the open connection of this name.
    async fn connection(&self, name: &str) -> Option<Arc<RemoteReader>> {
        let mut connections = self.connections.lock().await;
        connections.retain(|_, reader| reader.is_open());
        connections.get(name).map(Arc::clone)
    }

    /// Connects to `endpoint`, and keeps the connection.
    async fn connect(&self, endpoint: &InspectorEndpoint) -> Result<Arc<RemoteReader>, Error> {
        let session = CdpSession::connect(&endpoint.url, MAX_MESSAGE_BYTES).await?;
        let reader = Arc::new(RemoteReader::new(session, endpoint.process.as_ref()).await?);
        let mut connections = self.connections.lock().await;
        if connections.len() >= MAX_CONNECTIONS {
            // Any of them: a connection costs a few milliseconds to make again.
            let first = connections.keys().next().cloned().unwrap_or_default();
            connections.remove(&first);
        }
        connections.insert(endpoint.name.clone(), Arc::clone(&reader));
        Ok(reader)
    }

    /// Finds the inspector of the target, or of the only process under the roots that has one.
    async fn endpoint(
        &self,
        request: &StateRequest<'_>,
        name: String,
    ) -> Result<InspectorEndpoint, ProviderError> {
        let endpoint_at = async |port: u16, within| {
            let process = target::behind(port, within).map_err(Error::from)?;
            if let Some(process) = &process {
                process.check_not_stopped().map_err(Error::from)?;
            }
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let url = first_target(address).await?;
            Ok::<_, ProviderError>(InspectorEndpoint {
                name: name.clone(),
                url,
                process,
                was_opened_by_us: false,
            })
        };
        match (request.target, self.port) {
            (Some(InspectTarget::Port(port)), _) => {
                let process = request.process_behind(*port).await?;
                let Some(process) = process else {
                    return endpoint_at(*port, request.required_workspace()).await;
                };
                let is_runtime = RUNTIMES.contains(&process.runtime);
                if !is_runtime && process.runtime != LanguageRuntime::Native {
                    return Err(ProviderError::NotAsked("the port is that of another runtime"));
                }
                // The search for an inspector is a request, which any other program would take for one of its own.
                if !is_runtime && !process.names_inspector() {
                    return Err(ProviderError::NotApplicable(format!(
                        "{} is not asked for an inspector, as its command line names none; if it passes connections on to \
                         one, name that as ws://127.0.0.1:{port}",
                        process.display_name()
                    )));
                }
                let inspector = process.inspector_port().map(|address| address.port());
                if !is_runtime || inspector == Some(*port) {
                    return endpoint_at(*port, request.required_workspace()).await;
                }
                if inspector.is_some() {
                    // The port is that of the application, and not that of its inspector.
                    return self.endpoint_of_process(request).await;
                }
                // Its code may have opened an inspector (`inspector.open`), at the port that the caller names.
                match endpoint_at(*port, request.required_workspace()).await {
                    Err(ProviderError::Failed(Error::Inspector(_))) => {
                        self.endpoint_of_process(request).await
                    }
                    found => found,
                }
            }
            (Some(InspectTarget::Inspector(url)), _) => {
                let Some(address) = url.loopback().first().copied() else {
                    return Err(Error::from(target::TargetError::NotLocal(url.to_string())).into());
                };
                let process =
                    target::behind(url.port(), request.required_workspace()).map_err(Error::from)?;
                if let Some(process) = &process {
                    process.check_not_stopped().map_err(Error::from)?;
                }
                let url = if url.path() == "/" { first_target(address).await? } else { url.clone() };
                Ok(InspectorEndpoint { name, url, process, was_opened_by_us: false })
            }
            (None, Some(port)) => endpoint_at(port, None).await,
            _ => self.endpoint_of_process(request).await,
        }
    }

    /// Finds the inspector of a process.
    async fn endpoint_of_process(
        &self,
        request: &StateRequest<'_>,
    ) -> Result<InspectorEndpoint, ProviderError> {
        let candidates = match request.target {
            Some(_) => vec![request.process(&RUNTIMES).await?],
            None => request
                .processes()
                .iter()
                .filter(|process| RUNTIMES.contains(&process.runtime))
                .cloned()
                .collect(),
        };
        let mut inspectors = Vec::new();
        let mut stopped = None;
        for process in &candidates {
            if let Err(error) = process.check_not_stopped() {
                stopped.get_or_insert(error);
                continue;
            }
            if let Some(url) = find_inspector(process).await {
                inspectors.push((process, url));
            }
        }
        let endpoint = |process: &Process, url: TargetUrl, was_opened_by_us: bool| InspectorEndpoint {
            name: connection_name(process),
            url,
            process: Some(process.clone()),
            was_opened_by_us,
        };
        if let (true, Some(stopped)) = (inspectors.is_empty(), stopped) {
            return Err(Error::from(stopped).into());
        }
        match (inspectors.as_slice(), candidates.as_slice()) {
            ([(process, url)], _) => {
                // The answer names the others where there are several.
                if request.target.is_none() && request.processes().len() == 1 {
                    *self.last_found.lock().await = Some((Instant::now(), (*process).clone()));
                }
                Ok(endpoint(process, url.clone(), false))
            }
            ([], []) => Err(ProviderError::NotAsked("none runs under the roots")),
            ([], [process]) if request.may_signal && process.runtime == LanguageRuntime::Node => {
                Ok(endpoint(process, open_inspector(process).await?, true))
            }
            ([], all) => Err(ProviderError::NotApplicable(format!(
                "no inspector listens in {}; start it with --inspect=127.0.0.1:0",
                display_list(all.iter())
            ))),
            (several, _) => {
                Err(Error::AmbiguousProcess(display_list(several.iter().map(|(process, _)| *process))).into())
            }
        }
    }
}

/// Reads the value of `request`, unless the process is stopped or stops meanwhile.
async fn read(reader: &RemoteReader, request: &StateRequest<'_>) -> Result<StateValue, ProviderError> {
    reader.check_not_stopped().map_err(Error::from)?;
    let result = walk::read(reader, request).await;
    if let Err(ProviderError::Failed(_)) = result {
        reader.check_not_stopped().map_err(Error::from)?;
    }
    result
}

/// Returns the key of the connection to a process.
fn connection_name(process: &Process) -> String {
    InspectTarget::Pid(process.pid).to_string()
}

/// Returns the names of the first ten processes, for a message.
fn display_list<'a>(processes: impl Iterator<Item = &'a Process>) -> String {
    processes.take(10).map(Process::display_name).collect::<Vec<_>>().join(", ")
}

/// Returns the URL of the first inspector target at an address: the main thread of the process.
async fn first_target(address: SocketAddr) -> Result<TargetUrl, Error> {
    let targets = cdp::list(address).await?;
    let url = targets.iter().find_map(|target| target.socket(address));
    url.ok_or_else(|| cdp::CdpError::NotInspector("it lists nothing to connect to".to_owned()).into())
}

/// Returns the URL of the inspector of a process, if it has one that answers.
async fn find_inspector(process: &Process) -> Option<TargetUrl> {
    let url = tokio::time::timeout(LIST_TIMEOUT, first_target(process.inspector_port()?)).await;
    url.ok()?.ok()
}

/// Makes a process that is proven to be Node.js open its inspector, on port 9229.
#[cfg(target_os = "linux")]
async fn open_inspector(process: &Process) -> Result<TargetUrl, Error> {
    const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
    process
        .signal(rustix::process::Signal::USR1, Process::is_proven_node)
        .map_err(|reason| Error::OpenInspector { process: process.display_name(), reason })?;
    let opened = tokio::time::timeout(OPEN_TIMEOUT, async {
        loop {
            if let Some(url) = find_inspector(process).await {
                return url;
            }
            // Node.js opens it on a thread of its own, a moment after the signal.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    opened.await.map_err(|_| Error::OpenInspector {
        process: process.display_name(),
        reason: SignalError::NoInspector,
    })
}

/// Fails: the proof that a process is Node.js needs `/proc`.
#[cfg(not(target_os = "linux"))]
async fn open_inspector(process: &Process) -> Result<TargetUrl, Error> {
    Err(Error::OpenInspector { process: process.display_name(), reason: SignalError::Unsupported })
}
