//! [`ChosenRemotes`]: the remotes on which a caller works beside the roots, by the paths that it gives: remotes that are
//! roots, and those that it may choose by the tool `use_remote`.

use super::forward::{forward, policy_has_changed};
use super::notices::RemoteNotices;
use crate::error::Error;
use core_tools::mcp::{
    Answer, COMMAND_IDS, CallContext, CallRoutes, ForwardedCall, RemoteEffects, RoutedEffects, Tool,
    ToolError, ToolSelection, Toolset,
};
use error_causes::chain;
use process_runner::Runner;
use remotes::{OpenAnswer, OpenRequest, Remote, RemoteOptions, RemoteSettings, WarmRemotes, caller_slug};
use role_policy::{Call, Caller, EffectResolver, LexicalResolver, Refusal, ToolFacts};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The name of the tool by which a caller chooses a remote.
const TOOL: &str = "use_remote";

/// The toolset of the tool.
const TOOLSET: &str = "remotes";

/// The facts about the tool, as a policy judges it.
pub const USE_REMOTE: ToolFacts<'static> =
    ToolFacts::new(TOOL, TOOLSET).read_only(false).destructive(false).open_world(true);

/// The remotes of all callers together, at most.
const MAX_REMOTES: usize = 4096;

/// The longest text of the far end that the tool repeats.
const MAX_SHOWN_CHARS: usize = 200;

/// The remotes on which callers work beside the roots. Cheap to clone.
#[derive(Clone)]
pub struct ChosenRemotes(Arc<SharedRemotes>);

struct SharedRemotes {
    parts: ChosenParts,
    /// Runs the commands of the kinds. Made when it is first needed.
    runner: OnceLock<Runner>,
    /// Those that are roots first.
    machines: Vec<Machine>,
    /// The number of machines that are roots.
    roots: usize,
    remotes: Mutex<HashMap<RemoteKey, Remote>>,
    notices: RemoteNotices,
    /// The choices that a person has approved.
    approved: Mutex<HashSet<(String, usize)>>,
}

/// Returns the first message to a remote for a caller.
type RequestForCaller = dyn Fn(&RemoteSettings, &Caller) -> Result<OpenRequest, Error> + Send + Sync;

/// The settings of a server, as far as its remotes need them.
pub(crate) struct ChosenParts {
    /// The tools that the server offers.
    pub(crate) selection: ToolSelection,
    /// The remotes that are made ahead.
    pub(crate) warm: WarmRemotes,
    /// Makes the runner of so many remotes.
    pub(crate) runner: Box<dyn Fn(usize) -> Result<Runner, Error> + Send + Sync>,
    /// Returns the first message for a caller.
    pub(crate) request: Box<RequestForCaller>,
    /// Returns the options for a caller of this slug.
    pub(crate) options: Box<dyn Fn(Runner, String) -> RemoteOptions + Send + Sync>,
}

/// One remote.
struct Machine {
    /// The name before the colon in paths.
    name: String,
    settings: RemoteSettings,
}

/// A caller, its roles and the index of the machine. A caller whose roles have changed gets another remote.
#[derive(PartialEq, Eq, Hash)]
struct RemoteKey {
    principal: String,
    roles: Vec<String>,
    machine: usize,
}

/// The reason why a call is not made on a remote.
#[derive(Debug, thiserror::Error)]
enum NotChosen {
    #[error("not run: this role may not use the remote `{0}`: {1}")]
    Refused(String, String),
    #[error("not run: a person must approve the use of the remote `{0}`; call `use_remote` with it first")]
    NotApproved(String),
    #[error("not run: more than {MAX_REMOTES} remotes are in use")]
    TooMany,
    #[error("not run: the remote cannot be set up: {0}")]
    Setup(String),
}

impl From<NotChosen> for ToolError {
    fn from(error: NotChosen) -> Self {
        Self::from_error(&error)
    }
}

impl fmt::Debug for ChosenRemotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.machines.iter().map(|machine| machine.name.as_str()).collect();
        f.debug_tuple("ChosenRemotes").field(&names).finish()
    }
}

impl ChosenRemotes {
    /// Returns the remotes `roots`, which are roots of the server, and those of the configuration that callers may choose.
    /// None if there are none.
    pub(crate) fn new(
        roots: Vec<RemoteSettings>,
        configured: &[RemoteSettings],
        parts: ChosenParts,
    ) -> Option<Self> {
        let machine = |(name, settings)| Machine { name, settings };
        let mut machines: Vec<Machine> =
            roots.into_iter().map(|remote| machine((remote.path_name(), remote))).collect();
        let count = machines.len();
        for remote in configured.iter().filter(|remote| remote.is_choosable) {
            // One that is a root already needs no choice.
            if !machines.iter().any(|machine| machine.name == remote.name) {
                machines.push(machine((remote.name.clone(), remote.clone())));
            }
        }
        if machines.is_empty() {
            return None;
        }
        Some(Self(Arc::new(SharedRemotes {
            parts,
            runner: OnceLock::new(),
            machines,
            roots: count,
            remotes: Mutex::default(),
            notices: RemoteNotices::default(),
            approved: Mutex::default(),
        })))
    }

    /// Returns the roots on remotes, as paths name them: `build-box:/src`.
    pub fn roots(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.0.machines.iter().take(self.0.roots).map(|machine| PathBuf::from(machine.prefix()))
    }

    /// Returns the machines that paths may name: those that are roots, and the others if the tool is offered.
    fn routes(&self, offers_tool: bool) -> CallRoutes {
        let SharedRemotes { machines, roots, .. } = &*self.0;
        let count = if offers_tool { machines.len() } else { *roots };
        let named = machines.iter().take(count).map(|machine| {
            (machine.name.clone(), RemoteEffects::new(machine.settings.roots.iter().cloned()))
        });
        let (shared, using) = (Arc::clone(&self.0), Arc::clone(&self.0));
        let route = move |machine, call| {
            let shared = Arc::clone(&shared);
            async move { shared.call(machine, call).await }
        };
        let connected = self.0.notices.clone();
        CallRoutes::new(named, route, move |context| using.in_use(count, &context.caller))
            .sends_notices(move |notices| connected.connect(notices))
    }

    /// Adds the tool, if there is something to choose, and makes the calls of all tools whose paths are on a remote there.
    pub(crate) fn add_to(&self, mut toolsets: Vec<Toolset>) -> Vec<Toolset> {
        if self.0.machines.len() > self.0.roots {
            // Before the tools about tools, which are the last.
            let at = toolsets.len().saturating_sub(1);
            toolsets.insert(at, self.toolset());
        }
        let offers_tool = self.0.parts.selection.offers(&toolsets, TOOL);
        let routes = self.routes(offers_tool);
        toolsets.into_iter().map(|toolset| toolset.routed(&routes)).collect()
    }

    /// Returns what judges paths: `here` those on this machine.
    pub(crate) fn effects(&self, here: Arc<dyn EffectResolver + Send + Sync>) -> RoutedEffects {
        // A path on a machine that the tools do not reach is judged as one there, and then is none here.
        self.routes(true).effects(here)
    }

    fn toolset(&self) -> Toolset {
        let names: Vec<&str> =
            self.0.machines.iter().skip(self.0.roots).map(|machine| machine.name.as_str()).collect();
        let schema = json!({
            "type": "object",
            "properties": {
                "remote": {"type": "string", "enum": names, "description": "The name of the remote."},
            },
            "required": ["remote"],
            "additionalProperties": false,
        });
        let shared = Arc::clone(&self.0);
        let run = move |arguments: Map<String, Value>, context: CallContext| {
            let shared = Arc::clone(&shared);
            async move { shared.choose(&arguments, &context).await }
        };
        let tool = Tool::with_schema(
            TOOL,
            "Use another machine",
            "Connects to another machine or container, starting it if need be, and returns the prefix that paths \
             there have, such as `build-box:/src`. A call of any tool whose path, `working_directory` or \
             `repository_path` begins with the prefix then works there: files, git, tests, commands and background \
             commands.",
            schema,
            run,
        );
        Toolset::new(TOOLSET, [tool.adds().idempotent().open_world()])
    }

    /// Makes the remotes ahead from now on, as many as each says. To be called in a runtime.
    ///
    /// # Errors
    /// This program's own file cannot be found.
    pub fn start_warm(&self) -> Result<(), Error> {
        let machines = self.0.machines.iter().filter(|machine| machine.settings.warm > 0);
        for Machine { settings, .. } in machines {
            let options = (self.0.parts.options)(self.0.runner()?, String::new());
            self.0.parts.warm.start(settings, &options);
        }
        Ok(())
    }

    /// Tells all remotes of a policy that was read again.
    pub fn policy_has_changed(&self, path: &Path) {
        for remote in self.0.remotes().values() {
            policy_has_changed(remote, path);
        }
    }

    /// Returns true if the end of a remote destroys what was created for it.
    pub fn has_lease(&self) -> bool {
        self.0.remotes().values().any(|remote| remote.settings().kind.has_lease())
    }

    /// Ends the remotes of `principal`, and destroys what was created for them. The calls that it makes afterwards get
    /// others.
    pub fn release(&self, principal: &str, limit: Duration) {
        let ended: Vec<Remote> = self
            .0
            .remotes()
            .extract_if(|key, _| key.principal == principal)
            .map(|(_, remote)| remote)
            .collect();
        self.0.approved().retain(|(approved, _)| approved != principal);
        for remote in ended {
            tokio::spawn(async move { remote.end(limit).await });
        }
    }

    /// Ends all remotes, and destroys what was created for them.
    pub async fn end(&self, limit: Duration, grace: Duration) {
        let ended: Vec<Remote> = self.0.remotes().drain().map(|(_, remote)| remote).collect();
        let ending: Vec<_> =
            ended.into_iter().map(|remote| tokio::spawn(async move { remote.end(limit).await })).collect();
        for task in ending {
            if let Err(error) = task.await {
                tracing::error!(%error, "a remote may not have ended");
            }
        }
        // Those that were made ahead are destroyed by the runner as well.
        self.0.parts.warm.end(limit).await;
        if let Some(runner) = self.0.runner.get() {
            runner.shutdown(grace).await;
        }
    }
}

impl Machine {
    /// Returns the beginning of paths there: `build-box:/src`.
    fn prefix(&self) -> String {
        let root = self.settings.roots.first().map_or("/", String::as_str);
        format!("{}:{}", self.name, root.trim_end_matches('/'))
    }
}

impl SharedRemotes {
    fn remotes(&self) -> MutexGuard<'_, HashMap<RemoteKey, Remote>> {
        self.remotes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn approved(&self) -> MutexGuard<'_, HashSet<(String, usize)>> {
        self.approved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call there, if its caller may.
    async fn call(&self, machine: usize, call: ForwardedCall) -> Result<Answer, ToolError> {
        if machine >= self.roots {
            self.check(machine, &call.context)?;
        }
        let remote = self.remote_of(&call.context.caller, machine)?;
        let name = self.machines.get(machine).map(|machine| machine.name.as_str());
        forward(remote, call, &self.notices, name).await
    }

    /// Returns those of the first `count` machines on which something of the caller may run. None is connected for this.
    fn in_use(&self, count: usize, caller: &Caller) -> Vec<usize> {
        let (principal, roles) = (principal(caller), roles(caller));
        let remotes = self.remotes();
        let of_caller = remotes
            .iter()
            .filter(|(key, remote)| key.principal == principal && key.roles == roles && remote.keeps_state());
        let mut machines: Vec<usize> =
            of_caller.map(|(key, _)| key.machine).filter(|machine| *machine < count).collect();
        machines.sort_unstable();
        machines
    }

    /// Refuses a caller whose policy does not let it choose the machine now. The policy is asked for each call, so that a
    /// prefix holds without a session, and no longer than the role may use it.
    fn check(&self, machine: usize, context: &CallContext) -> Result<(), NotChosen> {
        let name = self.machines.get(machine).map(|machine| machine.name.clone()).unwrap_or_default();
        let refused = |reason: &dyn fmt::Display| NotChosen::Refused(name.clone(), reason.to_string());
        let policy = context.policy.as_ref().ok_or_else(|| refused(&"no policy allows it"))?;
        let arguments = Map::from_iter([("remote".to_owned(), Value::from(name.clone()))]);
        match policy.authorize(&context.caller, &USE_REMOTE, Call::new(TOOL, arguments), &LexicalResolver) {
            Ok(_) => Ok(()),
            Err(Refusal::Approval(_)) => {
                let principal = principal(&context.caller);
                match self.approved().contains(&(principal, machine)) {
                    true => Ok(()),
                    false => Err(NotChosen::NotApproved(name)),
                }
            }
            Err(refusal) => Err(refused(&refusal)),
        }
    }

    /// Answers a call of the tool, which the policy has allowed.
    async fn choose(
        &self,
        arguments: &Map<String, Value>,
        context: &CallContext,
    ) -> Result<Answer, ToolError> {
        let name = arguments.get("remote").and_then(Value::as_str).unwrap_or_default();
        let index = self.machines.iter().position(|machine| machine.name == name);
        let found = index.and_then(|index| Some((index, self.machines.get(index)?)));
        // The schema lists the names.
        let Some((index, machine)) = found else {
            return Err(ToolError::new("there is no such remote"));
        };
        let remote = self.remote_of(&context.caller, index)?;
        context.progress.relay(&format!("connecting to {name}"));
        let connected = tokio::select! {
            connected = remote.connect() => connected,
            () = context.cancel.cancelled() => return Err(ToolError::new("cancelled")),
        };
        let answer =
            connected.map_err(|error| ToolError::new(format!("remote {name}: {}", chain(&error))))?;
        self.approved().insert((principal(&context.caller), index));
        Ok(Answer::text(describe(&machine.prefix(), &answer)))
    }

    /// Returns the remote of a caller, which is connected with its first call.
    fn remote_of(&self, caller: &Caller, machine: usize) -> Result<Remote, NotChosen> {
        let setup = |error: &Error| NotChosen::Setup(chain(error));
        let key = RemoteKey { principal: principal(caller), roles: roles(caller), machine };
        // Under the lock: of two remotes for one caller one would be lost, with what was created for it.
        let mut remotes = self.remotes();
        if let Some(remote) = remotes.get(&key) {
            return Ok(remote.clone());
        }
        if remotes.len() >= MAX_REMOTES {
            remotes.retain(|_, remote| remote.is_in_use());
        }
        let Some(Machine { settings, .. }) =
            self.machines.get(machine).filter(|_| remotes.len() < MAX_REMOTES)
        else {
            return Err(NotChosen::TooMany);
        };
        let mut request = (self.parts.request)(settings, caller).map_err(|error| setup(&error))?;
        // The ids of the machine before end where those of this one begin.
        let before = u32::try_from(machine).unwrap_or(u32::MAX).saturating_add(1);
        request.first_command_id = before.saturating_mul(COMMAND_IDS).saturating_add(1);
        let runner = self.runner().map_err(|error| setup(&error))?;
        let slug = caller.principal().map_or_else(|| "local".to_owned(), caller_slug);
        let options = (self.parts.options)(runner, slug);
        let remote = Remote::new(settings.clone(), request, options, self.parts.warm.clone());
        remotes.insert(key, remote.clone());
        Ok(remote)
    }

    fn runner(&self) -> Result<Runner, Error> {
        if let Some(runner) = self.runner.get() {
            return Ok(runner.clone());
        }
        let made = (self.parts.runner)(MAX_REMOTES)?;
        Ok(self.runner.get_or_init(|| made).clone())
    }
}

/// Returns the name of the caller. A local server has one, without a name.
fn principal(caller: &Caller) -> String {
    caller.principal().unwrap_or_default().to_owned()
}

fn roles(caller: &Caller) -> Vec<String> {
    caller.roles().map(str::to_owned).collect()
}

/// Describes the machine, in the words of its far end, which are bounded.
fn describe(prefix: &str, answer: &OpenAnswer) -> String {
    let shown =
        |text: &str| -> String { text.chars().filter(|c| !c.is_control()).take(MAX_SHOWN_CHARS).collect() };
    let mut text = format!("prefix: {prefix}\n");
    let _ = writeln!(text, "system: {} {}", shown(&answer.system), shown(&answer.architecture));
    if !answer.missing.is_empty() {
        let _ = writeln!(text, "missing there: {}", shown(&answer.missing.join(", ")));
    }
    let _ = writeln!(text, "confinement of commands: {}", shown(&answer.confinement));
    let _ = write!(
        text,
        "Begin paths with the prefix: {{\"path\": \"{prefix}/README.md\"}}, {{\"working_directory\": \"{prefix}\"}}. \
         Relative paths in the answers of such calls begin at the prefix."
    );
    text
}
