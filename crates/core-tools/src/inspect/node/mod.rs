//! Node.js and Deno by the inspector.
//!
//! Nothing of the application runs and nothing is paused: what is called in its process are built-in functions of the
//! engine (`reader.js`), checked to be that, and `Runtime.getProperties` on what they give. Getters are not run, proxies
//! not trapped. The one exception is the engine's own getter of `process`, which is read with `throwOnSideEffect`.

mod locals;
mod reader;
mod walk;

use super::Error;
use super::cdp::{self, MOST_MESSAGE, Session};
use super::provider::{Found, Passed, Provider, Reading, Request};
use super::target::{self, Process, Runtime, Target, Url};
use reader::Reader;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Connections that are kept.
const MOST_KEPT: usize = 8;
/// How long a process may take to say whether it has an inspector.
const ASKED_FOR: Duration = Duration::from_secs(5);
/// How long the only process that was found is taken for the only one. To look at all of them takes a millisecond.
const IS_RECENT: Duration = Duration::from_secs(2);

/// Reads the state of Node.js and Deno.
#[derive(Debug, Default)]
pub(super) struct Node {
    port: Option<u16>,
    /// By the name of the target, or process.
    kept: Mutex<HashMap<String, Arc<Reader>>>,
    connecting: Mutex<()>,
    /// The process that was the only one to be found, and when.
    recent: Mutex<Option<(Instant, Process)>>,
}

impl Provider for Node {
    fn name(&self) -> &'static str {
        "node"
    }

    fn read<'a>(&'a self, request: &'a Request<'a>) -> Reading<'a> {
        Box::pin(self.find(request))
    }
}

/// Which inspector, and how it came to be one.
struct Place {
    /// What the connection is kept under.
    name: String,
    url: Url,
    process: Option<Process>,
    /// We made it listen.
    opened: bool,
}

impl Node {
    /// With the port of the settings.
    pub(super) fn new(port: Option<u16>) -> Self {
        Self { port, ..Self::default() }
    }

    async fn find(&self, request: &Request<'_>) -> Result<Found, Passed> {
        let name = match (request.target, self.port) {
            (Some(Target::File(_) | Target::Http(_)), _) => {
                return Err(Passed::Nothing("the target is a document".to_owned()));
            }
            (Some(target), _) => target.to_string(),
            (None, Some(port)) => Target::Port(port).to_string(),
            (None, None) => String::new(),
        };
        // A connection that is kept has been judged; for a caller who may reach less it is judged again.
        if request.within().is_none()
            && !name.is_empty()
            && let Some(reader) = self.kept(&name).await
        {
            return self.read_by(&reader, request).await;
        }
        if name.is_empty()
            && let Some(reader) = self.recent(request).await
        {
            return self.read_by(&reader, request).await;
        }
        // Whoever comes meanwhile waits for the same connection.
        let connecting = self.connecting.lock().await;
        if name.is_empty()
            && let Some(reader) = self.recent(request).await
        {
            drop(connecting);
            return self.read_by(&reader, request).await;
        }
        let place = self.place(request, name).await?;
        let reader = match self.kept(&place.name).await {
            Some(reader) => reader,
            None => self.connect(&place).await?,
        };
        drop(connecting);
        let read = self.read_by(&reader, request).await;
        if place.opened {
            self.kept.lock().await.remove(&place.name);
            reader.close_inspector().await;
            return read.map(|mut found| {
                found
                    .notes
                    .push("its inspector was opened by SIGUSR1 for this reading and closed again".to_owned());
                found
            });
        }
        read
    }

    async fn read_by(&self, reader: &Reader, request: &Request<'_>) -> Result<Found, Passed> {
        walk::read(reader, request).await
    }

    /// The connection to the process that was found a moment ago, if it is still there and the caller may look into it.
    async fn recent(&self, request: &Request<'_>) -> Option<Arc<Reader>> {
        let process = match &*self.recent.lock().await {
            Some((found, process)) if found.elapsed() < IS_RECENT => process.clone(),
            _ => return None,
        };
        let is_ours = process.is_there() && process.is_beneath(request.workspace);
        if is_ours { self.kept(&kept_as(&process)).await } else { None }
    }

    async fn kept(&self, name: &str) -> Option<Arc<Reader>> {
        let mut kept = self.kept.lock().await;
        kept.retain(|_, reader| reader.is_open());
        kept.get(name).map(Arc::clone)
    }

    async fn connect(&self, place: &Place) -> Result<Arc<Reader>, Error> {
        let session = Session::connect(&place.url, MOST_MESSAGE).await?;
        let reader = Arc::new(Reader::new(session, place.process.as_ref()).await?);
        let mut kept = self.kept.lock().await;
        if kept.len() >= MOST_KEPT {
            // Any will do: it costs a few milliseconds to make again.
            let first = kept.keys().next().cloned().unwrap_or_default();
            kept.remove(&first);
        }
        kept.insert(place.name.clone(), Arc::clone(&reader));
        Ok(reader)
    }

    async fn place(&self, request: &Request<'_>, name: String) -> Result<Place, Passed> {
        let at_port = async |port: u16, within| {
            let process = target::behind(port, within).map_err(Error::from)?;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            Ok::<_, Passed>(Place { name: name.clone(), url: first(address).await?, process, opened: false })
        };
        match (request.target, self.port) {
            (Some(Target::Port(port)), _) => at_port(*port, request.within()).await,
            (Some(Target::Inspector(url)), _) => {
                let Some(address) = url.loopback().first().copied() else {
                    return Err(Error::from(super::Unreachable::NotLocal(url.to_string())).into());
                };
                let process = target::behind(url.port(), request.within()).map_err(Error::from)?;
                let url = if url.path() == "/" { first(address).await? } else { url.clone() };
                Ok(Place { name, url, process, opened: false })
            }
            (None, Some(port)) => at_port(port, None).await,
            _ => self.of_process(request).await,
        }
    }

    /// The inspector of the process that is meant.
    async fn of_process(&self, request: &Request<'_>) -> Result<Place, Passed> {
        const RUNTIMES: [Runtime; 2] = [Runtime::Node, Runtime::Deno];
        let candidates = match request.target {
            Some(_) => vec![request.process(&RUNTIMES)?],
            None => request
                .processes()
                .iter()
                .filter(|process| RUNTIMES.contains(&process.runtime))
                .cloned()
                .collect(),
        };
        let mut places = Vec::new();
        for process in &candidates {
            if let Some(url) = inspector(process).await {
                places.push((process, url));
            }
        }
        let place = |process: &Process, url: Url, opened: bool| Place {
            name: kept_as(process),
            url,
            process: Some(process.clone()),
            opened,
        };
        match (places.as_slice(), candidates.as_slice()) {
            ([(process, url)], _) => {
                if request.target.is_none() {
                    *self.recent.lock().await = Some((Instant::now(), (*process).clone()));
                }
                Ok(place(process, url.clone(), false))
            }
            ([], []) => Err(Passed::Nothing("none runs under the roots".to_owned())),
            ([], [process]) if request.may_signal && process.runtime == Runtime::Node => {
                Ok(place(process, open(process).await?, true))
            }
            ([], all) => Err(Passed::Nothing(format!(
                "no inspector listens in {}; start it with --inspect=127.0.0.1:0",
                shown(all.iter())
            ))),
            (several, _) => Err(Error::Several(shown(several.iter().map(|(process, _)| *process))).into()),
        }
    }
}

/// What the connection to a process is kept under.
fn kept_as(process: &Process) -> String {
    Target::Pid(process.pid).to_string()
}

fn shown<'a>(processes: impl Iterator<Item = &'a Process>) -> String {
    processes.take(10).map(Process::shown).collect::<Vec<_>>().join(", ")
}

/// The first that is listed at an address.
async fn first(address: SocketAddr) -> Result<Url, Error> {
    let listed = cdp::list(address).await?;
    let url = listed.iter().find_map(|listed| listed.socket(address));
    url.ok_or_else(|| cdp::Error::NotInspector("it lists nothing to connect to".to_owned()).into())
}

/// The inspector of a process.
async fn inspector(process: &Process) -> Option<Url> {
    let asked = tokio::time::timeout(ASKED_FOR, first(process.inspector_port()?)).await;
    asked.ok()?.ok()
}

/// Makes a process that is proven to be Node.js open its inspector, on port 9229.
#[cfg(target_os = "linux")]
async fn open(process: &Process) -> Result<Url, Error> {
    /// How long it may take.
    const OPENS_WITHIN: Duration = Duration::from_secs(5);
    process
        .signal(rustix::process::Signal::USR1, Process::is_proven_node)
        .map_err(|why| Error::Signal { process: process.shown(), why })?;
    let opened = tokio::time::timeout(OPENS_WITHIN, async {
        loop {
            if let Some(url) = inspector(process).await {
                return url;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    opened.await.map_err(|_| Error::Signal {
        process: process.shown(),
        why: "it took the signal and opened no inspector; port 9229 may be taken".to_owned(),
    })
}

#[cfg(not(target_os = "linux"))]
async fn open(process: &Process) -> Result<Url, Error> {
    Err(Error::Signal { process: process.shown(), why: "only on Linux".to_owned() })
}
