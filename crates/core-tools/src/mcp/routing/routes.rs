//! [`CallRoutes`]: the machines that calls may name, and the choice of the machine of a call.

use super::places::{self, Place, RoutedTool, machine_of_id};
use crate::mcp::answer::Answer;
use crate::mcp::call_context::CallContext;
use crate::mcp::client_notices::ClientNotices;
use crate::mcp::forwarding::ForwardedCall;
use crate::mcp::remote_effects::RemoteEffects;
use crate::mcp::tool_error::ToolError;
use crate::mcp::tool_hooks::ConnectNotices;
use futures_util::future::{BoxFuture, FutureExt};
use role_policy::ResolveError;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// The tools that take the id of a background command and no path.
const TAKES_COMMAND_ID: [&str; 3] = ["read_command_output", "write_command_input", "stop_command"];

/// The beginnings of names that have a meaning of their own, and are no machine there.
const NO_MACHINES: [&str; 10] =
    ["pid", "port", "process", "sqlite", "postgres", "postgresql", "mysql", "mariadb", "http", "https"];

pub(super) type Route =
    dyn Fn(usize, ForwardedCall) -> BoxFuture<'static, Result<Answer, ToolError>> + Send + Sync;
pub(super) type InUse = dyn Fn(&CallContext) -> Vec<usize> + Send + Sync;

/// The machines that paths may name, and what makes the calls there. Cheap to clone.
#[derive(Clone)]
pub struct CallRoutes {
    pub(super) machines: Arc<[RoutedMachine]>,
    pub(super) route: Arc<Route>,
    /// Returns the machines on which something of the caller may run.
    pub(super) in_use: Arc<InUse>,
    pub(super) connect_notices: Option<Arc<ConnectNotices>>,
}

pub(super) struct RoutedMachine {
    name: String,
    pub(super) effects: RemoteEffects,
}

/// The reason why a call with a path on another machine is made nowhere.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotRouted {
    #[error("not run: one call works on one machine, and its paths name {0} and {1}; make a call for each")]
    TwoMachines(String, String),
    #[error("not run: the paths of the patch cannot be told to {machine}: {source}")]
    Patch { machine: String, source: ResolveError },
}

impl CallRoutes {
    /// Routes calls whose paths begin with the name of a machine and a colon. `route` makes a call on the machine of this
    /// index, with the paths as they are there. `in_use` returns the machines on which something of a caller may run: lists
    /// of what runs are asked of those as well.
    pub fn new<R>(
        machines: impl IntoIterator<Item = (String, RemoteEffects)>,
        route: impl Fn(usize, ForwardedCall) -> R + Send + Sync + 'static,
        in_use: impl Fn(&CallContext) -> Vec<usize> + Send + Sync + 'static,
    ) -> Self
    where
        R: Future<Output = Result<Answer, ToolError>> + Send + 'static,
    {
        let machine = |(name, effects)| RoutedMachine { name, effects };
        let machines = machines.into_iter().map(machine).collect();
        let route: Arc<Route> = Arc::new(move |index, call| route(index, call).boxed());
        Self { machines, route, in_use: Arc::new(in_use), connect_notices: None }
    }

    /// Hands `connect` the way to tell clients of changes on the machines.
    #[must_use]
    pub fn sends_notices(mut self, connect: impl Fn(&ClientNotices) + Send + Sync + 'static) -> Self {
        self.connect_notices = Some(Arc::new(connect));
        self
    }

    /// Returns the machine that a path names, and the path there. What follows the colon begins with `/` or `~`, so that
    /// the name of another root of this machine is none.
    pub(super) fn find<'p>(&self, path: &'p str) -> Option<(usize, &'p str)> {
        self.find_name(path, |there| there.starts_with('/') || there == "~" || there.starts_with("~/"))
    }

    /// Returns the machine with the longest name that begins a text with a colon behind it, and the rest, if the rest is
    /// accepted.
    fn find_name<'p>(&self, text: &'p str, accepts: impl Fn(&str) -> bool) -> Option<(usize, &'p str)> {
        let rest = |name: &str| text.strip_prefix(name)?.strip_prefix(':').filter(|rest| accepts(rest));
        let found = self.machines.iter().enumerate().filter_map(|(index, it)| Some((index, rest(&it.name)?)));
        found.min_by_key(|(_, rest)| rest.len())
    }

    /// Returns the machine that an argument names, and the rest of the argument.
    fn find_in<'p>(&self, place: Place, text: &'p str) -> Option<(usize, &'p str)> {
        match place {
            Place::Path | Place::RelativePath => self.find(text),
            Place::Name => {
                self.find_name(text, |_| true).filter(|(index, _)| !NO_MACHINES.contains(&self.name(*index)))
            }
        }
    }

    pub(super) fn name(&self, index: usize) -> &str {
        self.machines.get(index).map_or("", |machine| machine.name.as_str())
    }

    /// Returns a machine as messages name it.
    fn shown(&self, machine: Option<usize>) -> String {
        machine.map_or_else(|| "this machine".to_owned(), |index| format!("`{}`", self.name(index)))
    }

    /// Returns the machine on which the call of a tool with these arguments is made, and takes its name off their paths.
    /// None: this machine.
    pub(super) fn machine_of(
        &self,
        tool: &RoutedTool,
        arguments: &mut Map<String, Value>,
    ) -> Result<Option<usize>, NotRouted> {
        if TAKES_COMMAND_ID.contains(&tool.name) {
            return Ok(self.machine_of_command(arguments));
        }
        let patch = tool.patch().and_then(|name| Some((name, arguments.get(name)?.as_str()?.to_owned())));
        let mut first: Option<Option<usize>> = None;
        let mut other = None;
        let mut name = |place: Place, text: &str| {
            let machine = self.find_in(place, text).map(|(index, _)| index);
            match first {
                // Another argument says where it is.
                _ if machine.is_none() && place != Place::Path => {}
                None => first = Some(machine),
                Some(found) if found == machine => {}
                Some(found) => other = other.or(Some((found, machine))),
            }
        };
        tool.visit(arguments, &mut |place, text| name(place, text));
        for path in patch.iter().flat_map(|(_, patch)| places::patched_paths(patch)) {
            name(Place::Path, &path);
        }
        if let Some((one, another)) = other {
            return Err(NotRouted::TwoMachines(self.shown(one), self.shown(another)));
        }
        let Some(Some(index)) = first else { return Ok(None) };
        if let Some((name, patch)) = patch {
            let there =
                |path: &str| self.find(path).map_or_else(|| path.to_owned(), |(_, there)| there.to_owned());
            let patch = places::with_paths(&patch, there);
            let machine = || self.shown(Some(index));
            let patch = patch.map_err(|source| NotRouted::Patch { machine: machine(), source })?;
            arguments.insert(name.to_owned(), Value::from(patch));
        }
        tool.visit(arguments, &mut |place, text| {
            if let Some((_, there)) = self.find_in(place, text) {
                *text = there.to_owned();
            }
        });
        // The name of the machine alone: what the tool takes by default there.
        arguments.retain(|name, value| !tool.is_name(name) || *value != "");
        Ok(Some(index))
    }

    fn machine_of_command(&self, arguments: &Map<String, Value>) -> Option<usize> {
        let index = machine_of_id(arguments.get("id").and_then(Value::as_u64)?)?;
        (index < self.machines.len()).then_some(index)
    }
}

impl fmt::Debug for CallRoutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.machines.iter().map(|machine| machine.name.as_str()).collect();
        f.debug_tuple("CallRoutes").field(&names).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::routing::COMMAND_IDS;
    use role_policy::{Effect, EffectResolver as _, LexicalResolver};
    use serde_json::json;

    fn routes() -> CallRoutes {
        let machines =
            ["box", "ssh:box"].map(|name| (name.to_owned(), RemoteEffects::new(["/src".to_owned()])));
        let route = |machine, call: ForwardedCall| async move {
            Ok(Answer::text(format!("{machine} {} {}", call.tool, Value::Object(call.arguments))))
        };
        CallRoutes::new(machines, route, |_| Vec::new())
    }

    #[test]
    fn the_longest_name_that_fits_is_that_of_the_machine() {
        let machines = ["a", "a:b", "mariadb"].map(|name| (name.to_owned(), RemoteEffects::new(Vec::new())));
        let route = |_, _: ForwardedCall| async { Ok(Answer::text(String::new())) };
        let routes = CallRoutes::new(machines, route, |_| Vec::new());
        for (path, found) in [
            ("a:b:/x", Some((1, "/x"))),
            ("a:/b:/x", Some((0, "/b:/x"))),
            ("a:~/x", Some((0, "~/x"))),
            ("a:b:x", None),
            ("a:b/x", None),
        ] {
            assert_eq!(routes.find(path), found, "{path}");
        }
        for (text, found) in [
            ("a:b:id", Some((1, "id"))),
            ("a:id", Some((0, "id"))),
            ("a:b", Some((0, "b"))),
            ("mariadb://host/shop", None),
        ] {
            assert_eq!(routes.find_in(Place::Name, text), found, "{text}");
        }
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
    fn names_and_relative_paths_say_where_a_call_is_made_if_they_name_a_machine() {
        let routed = |name: &'static str, toolset: &'static str, effects: &'static [Effect], given: Value| {
            let mut arguments = given.as_object().cloned().unwrap();
            let machine = routes().machine_of(&RoutedTool { name, toolset, effects }, &mut arguments);
            (machine.map_err(|error| error.to_string()), Value::Object(arguments))
        };
        const REPOSITORY: &[Effect] = &[Effect::Reads("repository_path")];
        for (name, toolset, effects, given, machine, there) in [
            (
                "end_session",
                "sessions",
                &[] as &[Effect],
                json!({"session_id": "ssh:box:a-b"}),
                Some(1),
                json!({"session_id": "a-b"}),
            ),
            (
                "end_session",
                "sessions",
                &[],
                json!({"session_id": "a-b"}),
                None,
                json!({"session_id": "a-b"}),
            ),
            (
                "get_logs",
                "introspection",
                &[],
                json!({"source": "box:logs/*.log"}),
                Some(0),
                json!({"source": "logs/*.log"}),
            ),
            (
                "get_logs",
                "introspection",
                &[],
                json!({"source": "box:", "limit": 1}),
                Some(0),
                json!({"limit": 1}),
            ),
            (
                "capture_trace",
                "introspection",
                &[],
                json!({"target": "port:80"}),
                None,
                json!({"target": "port:80"}),
            ),
            (
                "git_blame",
                "git",
                REPOSITORY,
                json!({"path": "box:/src/a"}),
                Some(0),
                json!({"path": "/src/a"}),
            ),
            (
                "git_log",
                "git",
                REPOSITORY,
                json!({"repository_path": "box:/src", "paths": ["a", "box:/src/b"]}),
                Some(0),
                json!({"repository_path": "/src", "paths": ["a", "/src/b"]}),
            ),
            ("git_log", "git", REPOSITORY, json!({"paths": ["a:/b"]}), None, json!({"paths": ["a:/b"]})),
        ] {
            assert_eq!(routed(name, toolset, effects, given.clone()), (Ok(machine), there), "{name} {given}");
        }
        let two = json!({"repository_path": ".", "paths": ["box:/src/b"]});
        assert!(routed("git_log", "git", REPOSITORY, two).0.is_err());
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
