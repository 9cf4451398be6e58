//! Where state comes from.

use super::Error;
use super::json;
use super::mask::is_secret;
use super::path::StatePath;
use super::target::{Process, Runtime, Target, beneath};
use super::tree::{Cuts, Tree};
use crate::workspace::Workspace;
use serde::Serialize;
use serde_json::Value;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

/// A source of state. They are asked in turn, and the first that has what the path names answers.
///
/// ```
/// use core_tools::inspect::{Provider, Reading, Request};
/// use serde_json::json;
///
/// /// How long we have been up.
/// struct Uptime(std::time::Instant);
///
/// impl Provider for Uptime {
///     fn name(&self) -> &'static str {
///         "uptime"
///     }
///     fn read<'a>(&'a self, request: &'a Request<'a>) -> Reading<'a> {
///         Box::pin(async move { request.json("uptime", &json!({"uptime": {"seconds": self.0.elapsed().as_secs()}})) })
///     }
/// }
/// ```
pub trait Provider: Send + Sync {
    /// The name under which answers say that it was tried.
    fn name(&self) -> &'static str;

    /// What the path of `request` names, or why it has nothing there.
    fn read<'a>(&'a self, request: &'a Request<'a>) -> Reading<'a>;
}

/// What a [`Provider`] finds.
pub type Reading<'a> = Pin<Box<dyn Future<Output = Result<Found, Passed>> + Send + 'a>>;

/// A value, within its bounds.
#[derive(Debug)]
pub struct Found {
    pub(super) source: String,
    pub(super) value: Value,
    pub(super) cuts: Cuts,
    pub(super) masked: u64,
    pub(super) notes: Vec<String>,
}

impl Found {
    pub(super) fn of(source: String, mut tree: Tree, place: usize) -> Self {
        let value = tree.value(place);
        Self { source, value, cuts: tree.cuts, masked: tree.masked, notes: Vec::new() }
    }
}

/// Why a [`Provider`] has no value.
#[derive(Debug)]
#[non_exhaustive]
pub enum Passed {
    /// There is nothing for it to look into. Why, in words.
    Nothing(String),
    /// It looked, and the path leads nowhere.
    Missing(Box<Missing>),
    /// It should have looked and could not.
    Failed(Error),
}

impl From<Error> for Passed {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// How far a path led.
#[derive(Clone, Debug, Serialize)]
pub struct Missing {
    /// Where it was looked for.
    pub source: String,
    /// The part of the path that is there.
    pub resolved: String,
    /// The name that is not.
    pub failed_at: String,
    /// The first 50 names that are in its place.
    pub keys: Vec<String>,
    /// What else is to be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What is asked of a [`Provider`].
pub struct Request<'a> {
    pub(super) path: &'a StatePath,
    pub(super) depth: u32,
    pub(super) target: Option<&'a Target>,
    /// The target was named in the settings.
    pub(super) is_operators: bool,
    pub(super) workspace: &'a Arc<Workspace>,
    pub(super) unrestricted: bool,
    pub(super) may_signal: bool,
    pub(super) found: OnceLock<Vec<Process>>,
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("path", self.path)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl Request<'_> {
    /// What is asked for.
    pub fn path(&self) -> &StatePath {
        self.path
    }

    /// How deep: 1 to 10.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether a target was named, which a provider of its own state has nothing to say of.
    pub fn has_target(&self) -> bool {
        self.target.is_some()
    }

    /// What the path names in a document, within the bounds of an answer and with secrets masked.
    ///
    /// # Errors
    /// It names nothing there.
    pub fn json(&self, source: impl Into<String>, document: &Value) -> Result<Found, Passed> {
        json::find(self, source.into(), document, 0)
    }

    /// Whether values are masked whatever they are called: the path leads through a name of secrets, and the caller
    /// may not see them.
    pub(super) fn is_beneath_secret(&self) -> bool {
        !self.unrestricted && self.path.segments.iter().any(|name| is_secret(name))
    }

    /// The processes under the roots, looked for once.
    pub(super) fn processes(&self) -> &[Process] {
        self.found.get_or_init(|| beneath(self.workspace))
    }

    /// The workspace that a process must lie in, if it must.
    pub(super) fn within(&self) -> Option<&Workspace> {
        (!self.unrestricted && !self.is_operators).then_some(self.workspace.as_ref())
    }

    /// The process that is meant: that of the target, or the only one under the roots that runs one of `runtimes`.
    pub(super) fn process(&self, runtimes: &[Runtime]) -> Result<Process, Passed> {
        let nothing = |why: String| Err(Passed::Nothing(why));
        let of_target = match self.target {
            Some(Target::Pid(pid)) => Some(Process::find(*pid).map_err(Error::from)?),
            Some(Target::Port(port)) => super::target::behind(*port, self.within()).map_err(Error::from)?,
            Some(_) => return nothing("the target is no process".to_owned()),
            None => None,
        };
        if let Some(process) = of_target {
            let pid = process.pid;
            let process = process.within(self.within(), || format!("process {pid}")).map_err(Error::from)?;
            return if runtimes.contains(&process.runtime) {
                Ok(process)
            } else {
                nothing(format!("{} is none", process.shown()))
            };
        }
        if self.target.is_some() {
            return nothing("the process behind the port is not known".to_owned());
        }
        let mut fitting = self.processes().iter().filter(|process| runtimes.contains(&process.runtime));
        match (fitting.next(), fitting.next()) {
            (None, _) => nothing("none runs under the roots".to_owned()),
            (Some(process), None) => Ok(process.clone()),
            (Some(first), Some(second)) => {
                let all: Vec<String> =
                    [first, second].into_iter().chain(fitting).take(10).map(Process::shown).collect();
                nothing(format!(
                    "several run under the roots, name one as target \"pid:N\": {}",
                    all.join(", ")
                ))
            }
        }
    }
}
