//! What one server has of its own: a name, roles, tools, a place.

use core_tools::ci::Commands;
use core_tools::mcp::Toolset;
use core_tools::redact::Redactor;
use core_tools::workspace::Workspace;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A server: its name, and what it has of its own. `mcp-stdio` is one without anything.
///
/// ```
/// use core_tools::mcp::{Answer, Context, Tool, Toolset};
/// use server_setup::{Program, Resources};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Nothing {}
///
/// fn toolset(_: &Resources) -> Toolset {
///     let hello = Tool::new("hello", "Hello", "Says hello.", |_: Nothing, _: Context| async {
///         Ok(Answer::text("hello"))
///     });
///     Toolset { name: "project", tools: vec![hello] }
/// }
///
/// // Its `main` is `mcp_stdio::main(PROGRAM)`.
/// const PROGRAM: Program = Program::new("demo", "0.1.0").toolset(toolset);
/// # assert_eq!(PROGRAM.name, "demo");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The binary's name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    pub(crate) own: Option<fn(&Resources) -> Toolset>,
    roles: Option<&'static str>,
    sources: Option<&'static str>,
}

/// What tools are made of: the way to files, and the way to programs.
#[derive(Clone, Debug)]
pub struct Resources {
    /// The folders that tools may use. [`Context::within`](core_tools::mcp::Context::within) gives a tool what of them
    /// its call may reach.
    pub workspace: Arc<Workspace>,
    /// Runs programs: bounded, confined, and ended with everything they started.
    pub commands: Commands,
    /// Masks secrets. Answers are masked anyway; this is for what a tool writes elsewhere.
    pub redactor: Redactor,
}

impl Program {
    /// A server with the toolsets that it is linked with and the built-in roles.
    pub const fn new(name: &'static str, version: &'static str) -> Self {
        Self { name, version, own: None, roles: None, sources: None }
    }

    /// It has tools of its own. One with the name of a tool of the library stands in its place
    /// ([`Toolset::over`]).
    #[must_use]
    pub const fn toolset(mut self, own: fn(&Resources) -> Toolset) -> Self {
        self.own = Some(own);
        self
    }

    /// Its roles, in place of the built-in ones, where no file is named with `--policy`.
    #[must_use]
    pub const fn roles(mut self, roles: &'static str) -> Self {
        self.roles = Some(roles);
        self
    }

    /// Its sources are a folder of the project that it serves, `env!("CARGO_MANIFEST_DIR")`: started there, it serves
    /// the folder above. Started anywhere else, it serves that, as every server does.
    #[must_use]
    pub const fn inside_project(mut self, sources: &'static str) -> Self {
        self.sources = Some(sources);
        self
    }

    /// The policy that is built in: what errors call it, and its text.
    pub fn policy(&self) -> (&'static str, &'static str) {
        match self.roles {
            Some(roles) => ("the roles of this server", roles),
            None => ("built-in", role_policy::BUILTIN),
        }
    }

    /// Whether its roles were written for it.
    pub(crate) fn has_own_roles(&self) -> bool {
        self.roles.is_some()
    }

    /// Where files about the server itself belong: with its sources, where those are another's folder than `root`.
    pub fn home(&self, root: PathBuf) -> PathBuf {
        self.sources.map(PathBuf::from).filter(|sources| sources.is_dir()).unwrap_or(root)
    }

    /// What is served where it is started in `folder` and nothing else is said.
    pub(crate) fn serves(&self, folder: PathBuf) -> PathBuf {
        let real = |path: &Path| path.canonicalize().ok();
        let sources = self.sources.and_then(|sources| real(Path::new(sources)));
        match sources {
            Some(sources) if real(&folder).as_deref() == Some(&sources) => {
                sources.parent().map_or(folder, Path::to_owned)
            }
            _ => folder,
        }
    }
}
