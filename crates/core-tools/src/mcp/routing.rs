//! Paths on other machines in the arguments of calls, such as `build-box:/src/lib.rs`: the call is made there.

use super::answer::Answer;
use super::call_context::CallContext;
use super::forwarding::ForwardedCall;
use super::remote_effects::RemoteEffects;
use super::tool::Tool;
use super::tool_error::ToolError;
use super::toolset::Toolset;
use futures_util::future::{BoxFuture, FutureExt};
use role_policy::{Effect, EffectResolver, PatchedPath, ResolveError};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// The number of ids of background commands that each machine has. The ids of this machine come first, then those of the
/// first machine of the routes, and so on, so that an id alone says where its command runs.
pub const COMMAND_IDS: u32 = 1_000_000;

/// The tools that take the id of a background command and no path.
const TAKES_COMMAND_ID: [&str; 3] = ["read_command_output", "write_command_input", "stop_command"];

/// The toolset whose tools work on this machine alone: the supervisor of sessions runs here.
const LOCAL_TOOLSET: &str = "sessions";

type Route = dyn Fn(usize, ForwardedCall) -> BoxFuture<'static, Result<Answer, ToolError>> + Send + Sync;

/// The machines that paths may name, and what makes the calls there. Cheap to clone.
#[derive(Clone)]
pub struct CallRoutes {
    machines: Arc<[RoutedMachine]>,
    route: Arc<Route>,
}

struct RoutedMachine {
    name: String,
    effects: RemoteEffects,
}

/// The reason why a call with a path on another machine is made nowhere.
#[derive(Debug, thiserror::Error)]
enum NotRouted {
    #[error("not run: one call works on one machine, and its paths name {0} and {1}; make a call for each")]
    TwoMachines(String, String),
    #[error(
        "not run: a patch changes files of this machine alone; change the files of {0} with edit_file or write_file"
    )]
    Patch(String),
    #[error("not run: `{tool}` works on this machine alone, and not on {machine}")]
    LocalTool { tool: &'static str, machine: String },
}

impl CallRoutes {
    /// Routes calls whose paths begin with the name of a machine and a colon. `route` makes a call on the machine of this
    /// index, with the paths as they are there.
    pub fn new<R>(
        machines: impl IntoIterator<Item = (String, RemoteEffects)>,
        route: impl Fn(usize, ForwardedCall) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future<Output = Result<Answer, ToolError>> + Send + 'static,
    {
        let machine = |(name, effects)| RoutedMachine { name, effects };
        let machines = machines.into_iter().map(machine).collect();
        Self { machines, route: Arc::new(move |index, call| route(index, call).boxed()) }
    }

    /// Returns the machine that a path names, and the path there. What follows the colon begins with `/` or `~`, so that
    /// the name of another root of this machine is none.
    fn find<'p>(&self, path: &'p str) -> Option<(usize, &'p str)> {
        self.machines.iter().enumerate().find_map(|(index, machine)| {
            let there = path.strip_prefix(machine.name.as_str())?.strip_prefix(':')?;
            let is_absolute = there.starts_with('/') || there == "~" || there.starts_with("~/");
            is_absolute.then_some((index, there))
        })
    }

    /// Returns the machine of a path as messages name it.
    fn place(&self, path: &str) -> String {
        match self.find(path).and_then(|(index, _)| self.machines.get(index)) {
            Some(machine) => format!("`{}`", machine.name),
            None => "this machine".to_owned(),
        }
    }

    /// Returns the machine on which the call of a tool with these arguments is made, and takes its name off their paths.
    /// None: this machine.
    fn machine_of(
        &self,
        tool: &RoutedTool,
        arguments: &mut Map<String, Value>,
    ) -> Result<Option<usize>, NotRouted> {
        if TAKES_COMMAND_ID.contains(&tool.name) {
            return Ok(self.machine_of_command(arguments));
        }
        self.check_patches(tool, arguments)?;
        let is_path = |name: &str| tool.effects.iter().any(|effect| path_argument(effect) == Some(name));
        let named = |arguments: &mut Map<String, Value>, visit: &mut dyn FnMut(&mut String)| {
            for (_, value) in arguments.iter_mut().filter(|(name, _)| is_path(name)) {
                visit_paths(value, visit);
            }
        };
        let mut first: Option<(Option<usize>, String)> = None;
        let mut other = None;
        named(arguments, &mut |path| {
            let machine = self.find(path).map(|(index, _)| index);
            match &first {
                None => first = Some((machine, path.clone())),
                Some((found, _)) if *found == machine => {}
                Some((_, shown)) => other = other.take().or(Some((self.place(shown), self.place(path)))),
            }
        });
        if let Some((one, another)) = other {
            return Err(NotRouted::TwoMachines(one, another));
        }
        let Some((Some(index), shown)) = first else { return Ok(None) };
        if tool.toolset == LOCAL_TOOLSET {
            return Err(NotRouted::LocalTool { tool: tool.name, machine: self.place(&shown) });
        }
        named(arguments, &mut |path| {
            if let Some((_, there)) = self.find(path) {
                *path = there.to_owned();
            }
        });
        Ok(Some(index))
    }

    fn machine_of_command(&self, arguments: &Map<String, Value>) -> Option<usize> {
        let id = arguments.get("id").and_then(Value::as_u64)?;
        let index = usize::try_from(id / u64::from(COMMAND_IDS)).ok()?.checked_sub(1)?;
        (index < self.machines.len()).then_some(index)
    }

    /// Refuses a patch with a path on another machine: the paths are a part of its text.
    fn check_patches(&self, tool: &RoutedTool, arguments: &Map<String, Value>) -> Result<(), NotRouted> {
        for effect in tool.effects {
            let Effect::Patches { patch, .. } = effect else { continue };
            let text = arguments.get(*patch).and_then(Value::as_str).unwrap_or_default();
            // One that is no patch is refused by its tool.
            for path in patched_paths(text).unwrap_or_default() {
                let (PatchedPath::Edited(path)
                | PatchedPath::Created(path)
                | PatchedPath::Removed(path)
                | PatchedPath::Moved(path)) = path
                else {
                    continue;
                };
                if self.find(&path).is_some() {
                    return Err(NotRouted::Patch(self.place(&path)));
                }
            }
        }
        Ok(())
    }

    /// Returns `effects`, which judges paths on this machine, with the paths on the others.
    pub fn effects(&self, effects: Arc<dyn EffectResolver + Send + Sync>) -> RoutedEffects {
        RoutedEffects { routes: self.clone(), here: effects }
    }
}

impl fmt::Debug for CallRoutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.machines.iter().map(|machine| machine.name.as_str()).collect();
        f.debug_tuple("CallRoutes").field(&names).finish()
    }
}

/// The facts about a tool that its route depends on.
#[derive(Clone, Copy)]
struct RoutedTool {
    name: &'static str,
    toolset: &'static str,
    effects: &'static [Effect],
}

#[cfg(feature = "filesystem")]
fn patched_paths(patch: &str) -> Option<Vec<PatchedPath>> {
    crate::filesystem::patched_paths(patch).ok()
}

#[cfg(not(feature = "filesystem"))]
fn patched_paths(_: &str) -> Option<Vec<PatchedPath>> {
    None
}

/// Returns the argument that is a path, if the effect is that of one.
fn path_argument(effect: &Effect) -> Option<&'static str> {
    match effect {
        Effect::Reads(name) | Effect::Writes(name) | Effect::Replaces(name) | Effect::Moves(name) => {
            Some(name)
        }
        _ => None,
    }
}

/// Visits the paths of an argument: a text, or an array of texts and of objects with the member `path`.
fn visit_paths(value: &mut Value, visit: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(path) => visit(path),
        Value::Array(elements) => elements.iter_mut().for_each(|element| visit_paths(element, visit)),
        Value::Object(members) => {
            if let Some(Value::String(path)) = members.get_mut("path") {
                visit(path);
            }
        }
        _ => {}
    }
}

impl Toolset {
    /// Returns the same tools, whose calls `routes` makes on another machine if their paths are there. The tools about tools
    /// work here: what they find and call is routed on its own.
    #[must_use]
    pub fn routed(mut self, routes: &CallRoutes) -> Self {
        let toolset = self.name;
        let route = |tool: Tool| {
            if tool.wants_directory() || tool.wants_to_call_tools() {
                return tool;
            }
            let (routes, facts) = (routes.clone(), tool.facts(toolset));
            let routed = RoutedTool { name: facts.name, toolset, effects: facts.effects };
            tool.with_detour(move |arguments: &mut Map<String, Value>, context: &CallContext| {
                match routes.machine_of(&routed, arguments) {
                    Ok(None) => None,
                    Ok(Some(machine)) => {
                        let (arguments, context) = (std::mem::take(arguments), context.clone());
                        let call = ForwardedCall { tool: routed.name, arguments, context };
                        Some((routes.route)(machine, call))
                    }
                    Err(not_routed) => {
                        Some(std::future::ready(Err(ToolError::from_error(&not_routed))).boxed())
                    }
                }
            })
        };
        self.tools = self.tools.into_iter().map(route).collect();
        self
    }
}

/// Judges paths on this machine by what they reach, and paths on the machines of [`CallRoutes`] by their text, relative to
/// the primary root there. The server there judges again, by what it finds.
pub struct RoutedEffects {
    routes: CallRoutes,
    here: Arc<dyn EffectResolver + Send + Sync>,
}

impl fmt::Debug for RoutedEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoutedEffects").field("routes", &self.routes).finish_non_exhaustive()
    }
}

impl RoutedEffects {
    fn there(&self, path: &str) -> Option<Result<String, ResolveError>> {
        let (index, there) = self.routes.find(path)?;
        self.routes.machines.get(index).map(|machine| machine.effects.resolve_path(there))
    }
}

impl EffectResolver for RoutedEffects {
    fn resolve_path(&self, path: &str) -> Result<String, ResolveError> {
        self.there(path).unwrap_or_else(|| self.here.resolve_path(path))
    }

    fn resolve_name(&self, path: &str) -> Result<String, ResolveError> {
        self.there(path).unwrap_or_else(|| self.here.resolve_name(path))
    }

    fn resolve_program(&self, word: &str) -> Result<String, ResolveError> {
        self.here.resolve_program(word)
    }

    fn split_command(&self, line: &str) -> Result<Vec<String>, ResolveError> {
        self.here.split_command(line)
    }

    fn patched_paths(&self, patch: &str) -> Result<Vec<PatchedPath>, ResolveError> {
        self.here.patched_paths(patch)
    }

    fn vector_words(&self, words: Vec<String>) -> Result<Vec<String>, ResolveError> {
        self.here.vector_words(words)
    }

    fn shell_words(&self, line: &str) -> Result<Vec<String>, ResolveError> {
        self.here.shell_words(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use role_policy::LexicalResolver;
    use serde_json::json;

    fn routes() -> CallRoutes {
        let machines =
            ["box", "ssh:box"].map(|name| (name.to_owned(), RemoteEffects::new(["/src".to_owned()])));
        CallRoutes::new(machines, |machine, call: ForwardedCall| async move {
            Ok(Answer::text(format!("{machine} {} {}", call.tool, Value::Object(call.arguments))))
        })
    }

    const TWO_PATHS: &[Effect] = &[Effect::Moves("source"), Effect::Replaces("destination")];
    const PATHS: &[Effect] = &[Effect::Reads("paths")];

    #[allow(
        clippy::needless_pass_by_value,
        reason = "calls read better with a `json!` than with a reference to one"
    )]
    fn routed(effects: &'static [Effect], arguments: Value) -> Result<(Option<usize>, Value), String> {
        let tool = RoutedTool { name: "tool", toolset: "filesystem", effects };
        let mut arguments = arguments.as_object().cloned().unwrap();
        let machine = routes().machine_of(&tool, &mut arguments).map_err(|error| error.to_string())?;
        Ok((machine, Value::Object(arguments)))
    }

    #[test]
    fn the_paths_of_a_call_say_where_it_is_made() {
        for (given, machine, there) in [
            (
                json!({"paths": ["a", "box:b", "./box:/c"]}),
                None,
                json!({"paths": ["a", "box:b", "./box:/c"]}),
            ),
            (json!({"paths": "box:/src/a"}), Some(0), json!({"paths": "/src/a"})),
            (
                json!({"paths": ["box:/a", {"path": "box:~/b", "head": 1}], "other": "box:/c"}),
                Some(0),
                json!({"paths": ["/a", {"path": "~/b", "head": 1}], "other": "box:/c"}),
            ),
            (json!({"paths": ["ssh:box:/a"]}), Some(1), json!({"paths": ["/a"]})),
            (json!({}), None, json!({})),
        ] {
            assert_eq!(routed(PATHS, given.clone()), Ok((machine, there)), "{given}");
        }
    }

    #[test]
    fn a_call_with_paths_on_two_machines_is_made_on_none() {
        let error = routed(TWO_PATHS, json!({"source": "box:/a", "destination": "b"})).unwrap_err();
        assert!(error.contains("`box` and this machine"), "{error}");
        let error = routed(PATHS, json!({"paths": ["box:/a", "ssh:box:/a"]})).unwrap_err();
        assert!(error.contains("`box` and `ssh:box`"), "{error}");
    }

    #[test]
    fn the_id_of_a_command_says_where_it_runs() {
        let tool = RoutedTool { name: "stop_command", toolset: "ci", effects: &[] };
        let machine = |id: u64| {
            let mut arguments = json!({"id": id}).as_object().cloned().unwrap();
            routes().machine_of(&tool, &mut arguments).unwrap()
        };
        let ids = u64::from(COMMAND_IDS);
        assert_eq!(
            [1, ids - 1, ids + 1, 2 * ids + 7, 3 * ids + 1].map(machine),
            [None, None, Some(0), Some(1), None]
        );
    }

    #[test]
    fn a_path_is_judged_where_it_is() {
        let effects = routes().effects(Arc::new(LexicalResolver));
        let resolved = |path: &str| effects.resolve_path(path).ok();
        assert_eq!(resolved("src/a").as_deref(), Some("src/a"));
        assert_eq!(resolved("box:/src/a").as_deref(), Some("a"));
        assert_eq!(resolved("box:/src").as_deref(), Some("."));
        for outside in ["box:/etc/passwd", "box:/src/../etc", "ssh:box:/a", "box:~/a"] {
            assert_eq!(resolved(outside), None, "{outside}");
        }
    }
}
