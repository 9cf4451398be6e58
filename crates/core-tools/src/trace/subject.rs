//! From the name of a target to what is looked into.

use super::go::Endpoint;
use super::run::blocking;
use super::{Error, Traces, node};
use crate::inspect::proc::Status;
use crate::inspect::target::{self, Process, Runtime, Target, Unreachable, Url};
use crate::workspace::Workspace;
use std::collections::HashSet;

/// What stands for this server among the targets.
const SERVER: &str = "server";

/// What a profile is of.
#[derive(Clone, Debug, Default)]
pub(super) struct Subject {
    pub(super) process: Option<Process>,
    pub(super) inspector: Option<Url>,
    pub(super) pprof: Option<Endpoint>,
    is_server: bool,
    port: u16,
}

impl Subject {
    /// As answers name it.
    pub(super) fn runtime(&self) -> &'static str {
        match (&self.process, self.is_server) {
            (_, true) => SERVER,
            (Some(process), _) => process.runtime.name(),
            (None, _) if self.inspector.is_some() => Runtime::Node.name(),
            (None, _) => Runtime::Go.name(),
        }
    }

    /// What runs in it; nothing for this server.
    pub(super) fn runtime_of(&self) -> Option<Runtime> {
        self.process.as_ref().map(|process| process.runtime).filter(|_| !self.is_server)
    }

    /// For people.
    pub(super) fn shown(&self) -> String {
        match &self.process {
            Some(_) if self.is_server => "this server".to_owned(),
            Some(process) => process.shown(),
            None => format!("port {}", self.port),
        }
    }

    /// What is captured once at a time: ports are above every process id.
    pub(super) fn key(&self) -> u32 {
        self.process.as_ref().map_or(u32::MAX - u32::from(self.port), |process| process.pid)
    }
}

impl Traces {
    /// What `asked` names, or the settings, or the one application that there is.
    pub(super) async fn subject(&self, asked: Option<&str>) -> Result<Subject, Error> {
        let named = asked.or(self.target.as_deref());
        if named == Some(SERVER) {
            let process = self.process(std::process::id()).await?;
            return Ok(Subject { process: Some(process), is_server: true, ..Subject::default() });
        }
        let mut subject = match named.map(str::parse::<Target>).transpose()? {
            None => Subject { process: Some(self.only_one().await?), ..Subject::default() },
            Some(Target::Pid(pid)) => {
                Subject { process: Some(self.process(pid).await?), ..Subject::default() }
            }
            Some(Target::Port(port)) => self.behind(port).await?,
            Some(Target::Inspector(url)) => {
                let subject = self.behind(local(&url)?).await?;
                Subject { inspector: Some(url), ..subject }
            }
            Some(Target::Http(url)) => {
                let subject = self.behind(local(&url)?).await?;
                Subject { pprof: Endpoint::at(&url).await, ..subject }
            }
            Some(Target::File(_)) => {
                let reason = "a file cannot be profiled; give pid:N, port:N, ws://… or http://…".to_owned();
                return Err(Error::Argument { parameter: "target", reason });
            }
        };
        if let Some(process) = &subject.process {
            match process.runtime {
                Runtime::Node | Runtime::Deno if subject.inspector.is_none() => {
                    subject.inspector = node::inspector(process).await;
                }
                Runtime::Go if subject.pprof.is_none() => subject.pprof = Endpoint::of(process).await,
                _ => {}
            }
        }
        Ok(subject)
    }

    async fn process(&self, pid: u32) -> Result<Process, Error> {
        let beneath = (!self.unrestricted).then(|| self.programs.workspace.clone());
        blocking(move || Ok(Process::find(pid)?.within(beneath.as_deref(), || format!("process {pid}"))?))
            .await?
    }

    async fn behind(&self, port: u16) -> Result<Subject, Error> {
        let beneath = (!self.unrestricted).then(|| self.programs.workspace.clone());
        let process = blocking(move || target::behind(port, beneath.as_deref())).await??;
        Ok(Subject { process, port, ..Subject::default() })
    }

    /// The one application beneath the roots.
    async fn only_one(&self) -> Result<Process, Error> {
        let workspace = self.programs.workspace.clone();
        blocking(move || only_one(&workspace)).await?
    }
}

fn local(url: &Url) -> Result<u16, Error> {
    if url.loopback().is_empty() {
        return Err(Unreachable::NotLocal(url.host().to_owned()).into());
    }
    Ok(url.port())
}

fn only_one(workspace: &Workspace) -> Result<Process, Error> {
    let above = ancestors();
    let mut found: Vec<Process> = target::beneath(workspace);
    // Who started this server, such as the agent itself, is not what it looks into.
    found.retain(|process| !above.contains(&process.pid));
    let listed: Vec<String> = found.iter().take(10).map(Process::shown).collect();
    // An application listens, or runs in a runtime that is known.
    let known = |process: &Process| process.runtime != Runtime::Native;
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
                let names: Vec<String> = several.iter().take(10).map(|process| process.shown()).collect();
                return Err(Error::NoTarget {
                    what: format!("several processes run beneath the roots: {}", names.join(", ")),
                });
            }
        }
    }
    let what = match listed.is_empty() {
        true => "no process runs beneath the roots".to_owned(),
        false => format!("none of these is an application: {}", listed.join(", ")),
    };
    Err(Error::NoTarget { what })
}

/// This process and those above it.
fn ancestors() -> HashSet<u32> {
    let mut above = HashSet::new();
    let mut next = Some(std::process::id());
    while let Some(pid) = next.filter(|pid| above.insert(*pid)) {
        next = Status::of(pid).ok().and_then(|status| status.field("PPid")?.parse().ok());
    }
    above
}
