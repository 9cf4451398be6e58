//! [`TargetResolver`]: finds the process and the profiling endpoints for the name of a target.

use super::capture_run::blocking;
use super::error::Error;
use super::go::PprofEndpoint;
use super::node;
use crate::inspect::proc::ProcessStatus;
use crate::inspect::target::{self, InspectTarget, LanguageRuntime, Process, TargetError, TargetUrl};
use crate::inspect::{named, port};
use std::collections::HashSet;
use std::sync::Arc;
use workspace::Workspace;

/// The name of the target that is this server itself.
const SERVER: &str = "server";

/// The process and the endpoints that a target's name stands for.
#[derive(Clone, Debug, Default)]
pub(super) struct ResolvedTarget {
    pub(super) process: Option<Process>,
    pub(super) inspector: Option<TargetUrl>,
    pub(super) pprof: Option<PprofEndpoint>,
    is_server: bool,
    /// The port that names the target, or 0.
    port: u16,
    /// The choice in words, if several processes serve the port.
    pub(super) note: Option<String>,
}

impl ResolvedTarget {
    /// Returns the runtime's name in answers; `server` for this server.
    pub(super) fn runtime_name(&self) -> &'static str {
        match (&self.process, self.is_server) {
            (_, true) => SERVER,
            (Some(process), _) => process.runtime.name(),
            (None, _) if self.inspector.is_some() => LanguageRuntime::Node.name(),
            (None, _) => LanguageRuntime::Go.name(),
        }
    }

    /// Returns the runtime of the process. `None` for this server and for an invisible process.
    pub(super) fn runtime(&self) -> Option<LanguageRuntime> {
        self.process.as_ref().map(|process| process.runtime).filter(|_| !self.is_server)
    }

    /// Returns the name of the target in messages.
    pub(super) fn display_name(&self) -> String {
        match &self.process {
            Some(_) if self.is_server => "this server".to_owned(),
            Some(process) => process.display_name(),
            None => format!("port {}", self.port),
        }
    }

    /// Returns the key by which captures of the same target exclude each other. Ports map to numbers above every
    /// process id.
    pub(super) fn lock_key(&self) -> u32 {
        self.process.as_ref().map_or(u32::MAX - u32::from(self.port), |process| process.pid)
    }
}

/// Resolves the names of targets.
#[derive(Clone, Debug)]
pub(super) struct TargetResolver {
    /// The workspace, beneath whose roots a target has to run unless `unrestricted`.
    pub(super) workspace: Arc<Workspace>,
    /// The target of requests that name none.
    pub(super) default_target: Option<String>,
    /// True if every process of this user may be a target.
    pub(super) unrestricted: bool,
}

impl TargetResolver {
    /// Resolves `requested`, else the default target, else the one application beneath the roots.
    pub(super) async fn resolve(&self, requested: Option<&str>) -> Result<ResolvedTarget, Error> {
        let named = requested.or(self.default_target.as_deref());
        if named == Some(SERVER) {
            let process = self.process(std::process::id()).await?;
            return Ok(ResolvedTarget {
                process: Some(process),
                is_server: true,
                ..ResolvedTarget::default()
            });
        }
        let mut resolved = match named.map(str::parse::<InspectTarget>).transpose()? {
            None => ResolvedTarget {
                process: Some(self.find_only_application().await?),
                ..ResolvedTarget::default()
            },
            Some(InspectTarget::Pid(pid)) => {
                ResolvedTarget { process: Some(self.process(pid).await?), ..ResolvedTarget::default() }
            }
            Some(InspectTarget::Port(port)) => self.serving(port).await?,
            Some(InspectTarget::Named(name)) => {
                let within = (!self.unrestricted).then(|| self.workspace.clone());
                let process = blocking(move || named::find(&name, within.as_deref())).await??;
                ResolvedTarget { process: Some(process), ..ResolvedTarget::default() }
            }
            Some(InspectTarget::Inspector(url)) => {
                let resolved = self.behind(local_port(&url)?).await?;
                ResolvedTarget { inspector: Some(url), ..resolved }
            }
            Some(InspectTarget::Http(url)) => {
                let resolved = self.behind(local_port(&url)?).await?;
                ResolvedTarget { pprof: PprofEndpoint::at_url(&url).await, ..resolved }
            }
            Some(InspectTarget::File(_)) => {
                let reason = "a file cannot be profiled; give pid:N, port:N, ws://… or http://…".to_owned();
                return Err(Error::Argument { parameter: "target", reason });
            }
        };
        // A stopped process would let each probe wait for its time limit.
        if let Some(process) = &resolved.process
            && process.check_not_stopped().is_ok()
        {
            match process.runtime {
                // An endpoint that the target names is used as it is.
                LanguageRuntime::Node | LanguageRuntime::Deno if resolved.inspector.is_none() => {
                    resolved.inspector = node::inspector(process).await;
                }
                LanguageRuntime::Go if resolved.pprof.is_none() => {
                    resolved.pprof = PprofEndpoint::find(process).await;
                }
                _ => {}
            }
        }
        Ok(resolved)
    }

    /// Finds the process `pid`, if it may be a target.
    async fn process(&self, pid: u32) -> Result<Process, Error> {
        let within = (!self.unrestricted).then(|| self.workspace.clone());
        blocking(move || Ok(Process::find(pid)?.within(within.as_deref(), || format!("process {pid}"))?))
            .await?
    }

    /// Chooses the process that serves `port`, the busiest of several; it may be invisible.
    async fn serving(&self, port: u16) -> Result<ResolvedTarget, Error> {
        let within = (!self.unrestricted).then(|| self.workspace.clone());
        let (process, note) = match port::choose(port, within).await? {
            Some(chosen) => (Some(chosen.process), chosen.note),
            None => (None, None),
        };
        Ok(ResolvedTarget { process, port, note, ..ResolvedTarget::default() })
    }

    /// Finds the process that listens at `port`; it may be invisible.
    async fn behind(&self, port: u16) -> Result<ResolvedTarget, Error> {
        let within = (!self.unrestricted).then(|| self.workspace.clone());
        let process = blocking(move || target::behind(port, within.as_deref())).await??;
        Ok(ResolvedTarget { process, port, ..ResolvedTarget::default() })
    }

    /// Finds the one application beneath the roots.
    async fn find_only_application(&self) -> Result<Process, Error> {
        let workspace = self.workspace.clone();
        blocking(move || find_only_application(&workspace)).await?
    }
}

/// Returns the port of `url`, if it leads to this machine.
fn local_port(url: &TargetUrl) -> Result<u16, Error> {
    if url.loopback().is_empty() {
        return Err(TargetError::NotLocal(url.host().to_owned()).into());
    }
    Ok(url.port())
}

/// Finds the one process beneath the roots that is most likely the application.
fn find_only_application(workspace: &Workspace) -> Result<Process, Error> {
    let ancestors_of_this = ancestors();
    let mut found: Vec<Process> = target::beneath(workspace);
    // The processes that started this server, such as the agent itself, are not the application.
    found.retain(|process| !ancestors_of_this.contains(&process.pid));
    let names_of_all: Vec<String> = found.iter().take(10).map(Process::display_name).collect();
    // An application most likely listens on a port and has a known runtime: each step accepts weaker signs.
    let known = |process: &Process| process.runtime != LanguageRuntime::Native;
    for likely in [
        found
            .iter()
            .filter(|process| known(process) && !process.local_ports().is_empty())
            .collect::<Vec<_>>(),
        found.iter().filter(|process| !process.local_ports().is_empty()).collect(),
        found.iter().filter(|process| known(process)).collect(),
        found.iter().collect(),
    ] {
        match likely.as_slice() {
            [] => {}
            [one] => return Ok((*one).clone()),
            several => {
                let names: Vec<String> =
                    several.iter().take(10).map(|process| process.display_name()).collect();
                return Err(Error::NoTarget {
                    what: format!("several processes run beneath the roots: {}", names.join(", ")),
                });
            }
        }
    }
    let what = match names_of_all.is_empty() {
        true => "no process runs beneath the roots".to_owned(),
        false => format!("none of these is an application: {}", names_of_all.join(", ")),
    };
    Err(Error::NoTarget { what })
}

/// Returns the ids of this process and its ancestors.
fn ancestors() -> HashSet<u32> {
    let mut ancestors = HashSet::new();
    let mut next = Some(std::process::id());
    // `insert` returns false for an id that was seen, which ends the loop should the list change meanwhile.
    while let Some(pid) = next.filter(|pid| ancestors.insert(*pid)) {
        next = ProcessStatus::of(pid).ok().and_then(|status| status.field("PPid")?.parse().ok());
    }
    ancestors
}
