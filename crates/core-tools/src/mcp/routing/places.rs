//! The arguments of tools that name a machine.

#[cfg(feature = "filesystem")]
use role_policy::PatchedPath;
use role_policy::{Effect, ResolveError};
use serde_json::{Map, Value};

/// The number of ids of background commands that each machine has. The ids of this machine come first, then those of the
/// first machine of the routes, and so on, so that an id alone says where its command runs.
pub const COMMAND_IDS: u32 = 1_000_000;

/// The facts about a tool that its route depends on.
#[derive(Clone, Copy)]
pub(super) struct RoutedTool {
    pub(super) name: &'static str,
    pub(super) toolset: &'static str,
    pub(super) effects: &'static [Effect],
}

/// The way in which an argument names a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is a path, of this machine if it names no other.
    Path,
    /// It is a path that may be relative to another argument: without the name of a machine, it says nothing.
    RelativePath,
    /// It is a name, such as the id of a session or the name of a log: without the name of a machine, it says nothing.
    Name,
}

/// The arguments that are names.
const NAMES: [(&str, &str); 7] = [
    ("send_message", "session_id"),
    ("end_session", "session_id"),
    ("logs", "session"),
    ("inspect_state", "target"),
    ("capture_trace", "target"),
    ("db_bridge", "database"),
    ("get_logs", "source"),
];

/// The arguments that are relative to another one, with their toolsets: to the repository, or to the project.
const RELATIVE: [(&str, &str); 4] =
    [("git", "path"), ("git", "paths"), ("git", "files"), ("tests", "test_path")];

impl RoutedTool {
    /// Returns the way in which the argument `name` names a machine, if it does.
    fn place(&self, name: &str) -> Option<Place> {
        if RELATIVE.contains(&(self.toolset, name)) {
            return Some(Place::RelativePath);
        }
        if self.is_name(name) {
            return Some(Place::Name);
        }
        self.effects.iter().any(|effect| path_argument(effect) == Some(name)).then_some(Place::Path)
    }

    /// Returns true if the argument `name` is a name.
    pub(super) fn is_name(&self, name: &str) -> bool {
        NAMES.contains(&(self.name, name))
    }

    /// Visits everything in `arguments` that may name a machine, but the paths in a patch.
    pub(super) fn visit(
        &self,
        arguments: &mut Map<String, Value>,
        visit: &mut dyn FnMut(Place, &mut String),
    ) {
        for (name, value) in arguments.iter_mut() {
            if let Some(place) = self.place(name) {
                visit_texts(value, &mut |text| visit(place, text));
            }
        }
    }

    /// Returns the argument that is a patch.
    pub(super) fn patch(&self) -> Option<&'static str> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Patches { patch, .. } => Some(*patch),
            _ => None,
        })
    }
}

/// Returns the index of the machine that gives this id to a background command. None: this machine.
pub(super) fn machine_of_id(id: u64) -> Option<usize> {
    usize::try_from(id / u64::from(COMMAND_IDS)).ok()?.checked_sub(1)
}

/// Returns the paths in a patch. None of one that is no patch, which its tool refuses.
#[cfg(feature = "filesystem")]
pub(super) fn patched_paths(patch: &str) -> Vec<String> {
    let paths = crate::filesystem::patched_paths(patch).unwrap_or_default();
    let path = |path| match path {
        PatchedPath::Edited(path)
        | PatchedPath::Created(path)
        | PatchedPath::Removed(path)
        | PatchedPath::Moved(path) => Some(path),
        _ => None,
    };
    paths.into_iter().filter_map(path).collect()
}

#[cfg(not(feature = "filesystem"))]
pub(super) fn patched_paths(_: &str) -> Vec<String> {
    Vec::new()
}

/// Returns a patch with its paths as `rename` writes them.
#[cfg(feature = "filesystem")]
pub(super) fn with_paths(patch: &str, rename: impl FnMut(&str) -> String) -> Result<String, ResolveError> {
    crate::filesystem::with_paths(patch, rename).map_err(ResolveError::other)
}

#[cfg(not(feature = "filesystem"))]
pub(super) fn with_paths(_: &str, _: impl FnMut(&str) -> String) -> Result<String, ResolveError> {
    Err(ResolveError::Patch)
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

/// Visits the texts of an argument: a text, or an array of texts and of objects with the member `path`.
fn visit_texts(value: &mut Value, visit: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(elements) => elements.iter_mut().for_each(|element| visit_texts(element, visit)),
        Value::Object(members) => {
            if let Some(Value::String(path)) = members.get_mut("path") {
                visit(path);
            }
        }
        _ => {}
    }
}
