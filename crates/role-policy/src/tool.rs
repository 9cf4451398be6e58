//! The facts of a tool, and one call of it.

use serde_json::{Map, Value};

/// The toolset of tools of other servers.
const EXTERNAL: &str = "external";

/// The facts of a tool, by which a policy judges its calls. Whoever registers a tool is responsible for its facts. The
/// statements of another server about its own tools are not facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolFacts<'a> {
    /// The canonical name. Aliases are resolved before a policy is asked.
    pub name: &'a str,
    /// The toolset it belongs to.
    pub toolset: &'a str,
    /// True if it changes nothing.
    pub read_only: bool,
    /// True if it may overwrite or remove what was there.
    pub destructive: bool,
    /// True if it reaches beyond this machine, or runs programs that may.
    pub open_world: bool,
    /// The reach of its arguments. An argument that is not named here reaches nothing.
    pub effects: &'a [Effect],
    /// The arguments that the tool of another server declares, if they are known. A rule with conditions on arguments
    /// then refuses every other one, unless it takes additional ones.
    pub declared_arguments: Option<&'a [&'a str]>,
}

impl<'a> ToolFacts<'a> {
    /// Creates the facts of a tool that may overwrite, remove and reach beyond this machine, with arguments that reach
    /// nothing. The setters say what is known to be otherwise.
    ///
    /// ```
    /// use role_policy::{Effect, ToolFacts};
    ///
    /// const READ_FILE: ToolFacts<'static> =
    ///     ToolFacts::new("read_file", "filesystem").read_only(true).open_world(false).effects(&[Effect::Reads("path")]);
    /// assert!(!READ_FILE.destructive);
    /// ```
    pub const fn new(name: &'a str, toolset: &'a str) -> Self {
        Self {
            name,
            toolset,
            read_only: false,
            destructive: true,
            open_world: true,
            effects: &[],
            declared_arguments: None,
        }
    }

    /// Returns the facts of a tool of another server, in the toolset `external`: nothing it says of itself is believed.
    pub const fn external(name: &'a str) -> Self {
        // The most cautious annotations: a denial by kind always takes it in, and `allow = ["annotation:read-only"]`
        // never does.
        Self::new(name, EXTERNAL)
    }

    /// Sets whether the tool changes nothing. A tool that changes nothing is not destructive either.
    #[must_use]
    pub const fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self.destructive = self.destructive && !read_only;
        self
    }

    /// Sets if the tool may overwrite or remove what was there.
    #[must_use]
    pub const fn destructive(mut self, destructive: bool) -> Self {
        self.destructive = destructive;
        self
    }

    /// Sets if the tool reaches beyond this machine, or runs programs that may.
    #[must_use]
    pub const fn open_world(mut self, open_world: bool) -> Self {
        self.open_world = open_world;
        self
    }

    /// Sets the reach of its arguments.
    #[must_use]
    pub const fn effects(mut self, effects: &'a [Effect]) -> Self {
        self.effects = effects;
        self
    }

    /// Sets the arguments that the tool of another server declares.
    #[must_use]
    pub const fn declared_arguments(mut self, names: &'a [&'a str]) -> Self {
        self.declared_arguments = Some(names);
        self
    }

    /// Returns true if nobody vouches for the tool, so that the reach of its arguments is not known.
    pub(crate) fn is_external(&self) -> bool {
        self.toolset == EXTERNAL
    }
}

/// The facts of a tool, kept by a policy.
#[derive(Debug)]
pub(crate) struct OwnedToolFacts {
    pub(crate) name: String,
    toolset: String,
    read_only: bool,
    destructive: bool,
    open_world: bool,
    effects: Vec<Effect>,
}

impl OwnedToolFacts {
    pub(crate) fn facts(&self) -> ToolFacts<'_> {
        let Self { name, toolset, read_only, destructive, open_world, effects } = self;
        ToolFacts {
            name,
            toolset,
            read_only: *read_only,
            destructive: *destructive,
            open_world: *open_world,
            effects,
            // A policy is loaded before the other server has said what its tools declare.
            declared_arguments: None,
        }
    }
}

impl From<&ToolFacts<'_>> for OwnedToolFacts {
    fn from(facts: &ToolFacts<'_>) -> Self {
        Self {
            name: facts.name.to_owned(),
            toolset: facts.toolset.to_owned(),
            read_only: facts.read_only,
            destructive: facts.destructive,
            open_world: facts.open_world,
            effects: facts.effects.to_vec(),
        }
    }
}

/// The reach of one argument of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// The argument is a path, or an array of paths, that is read; of a folder, whatever in it may be read. Left
    /// out, it is the primary root. An element of the array may be an object with the path as its member `path`.
    Reads(&'static str),
    /// The argument is a path, or an array of paths, that is written, as in [`Reads`](Self::Reads). Left out, it is the
    /// primary root.
    Writes(&'static str),
    /// The argument is a patch: a text with the paths of the files that it changes, which
    /// [`EffectResolver::patched_paths`](crate::EffectResolver::patched_paths) finds. Each is judged twice: by the rules
    /// of the tool itself, and as a call of the tool that does the same to one file.
    Patches {
        /// The argument that holds the patch.
        patch: &'static str,
        /// The tools that do one part of a patch each.
        parts: PatchParts,
    },
    /// The argument is a path whose name is made, replaced or removed: what a link leads to stays, the link
    /// itself is what changes.
    Replaces(&'static str),
    /// The argument is a path that goes elsewhere with all that it holds, which can then be read there. Of a
    /// link the link itself.
    Moves(&'static str),
    /// The argument is a command: an array of program and arguments, or one line.
    Runs {
        /// The argument that holds the command.
        command: &'static str,
        /// The argument that holds environment variables, by name. Empty if there is none.
        environment: &'static str,
    },
    /// The argument, if it is true, has the command of [`Runs`](Self::Runs) run as one line of a shell. The program
    /// that is judged is then the shell: see [`EffectResolver::shell_words`](crate::EffectResolver::shell_words).
    Shell(&'static str),
    /// The argument says what is done with a database: `query`, `schema` and `explain` read, all else writes.
    Sql(&'static str),
    /// The argument names a role to act as, or to start another agent as.
    Role(&'static str),
}

/// The tools that each do one part of what a patch does. A part of a patch is allowed only where a call of that tool is,
/// so that a policy which limits these tools limits patches too. A tool that the policy was not loaded for judges
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchParts {
    /// The tool that changes a part of a file.
    pub edit: &'static str,
    /// The tool that creates a file or replaces it whole.
    pub create: &'static str,
    /// The tool that removes a file.
    pub remove: &'static str,
    /// The tool that moves a file.
    pub rename: &'static str,
}

/// One call, as it is judged and as it is run: the canonical tool name and the normalised arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    tool: String,
    arguments: Map<String, Value>,
}

impl Call {
    /// Creates a call of `tool` with `arguments`. Both must be in their canonical form already: what is judged
    /// here is what runs.
    pub fn new(tool: impl Into<String>, arguments: Map<String, Value>) -> Self {
        Self { tool: tool.into(), arguments }
    }

    /// Returns the canonical name of the tool.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns the normalised arguments.
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }

    pub(crate) fn into_arguments(self) -> Map<String, Value> {
        self.arguments
    }
}
