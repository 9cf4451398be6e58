//! [`Program`]: the name, roles and tools that one server has of its own.

use core_tools::ci::Commands;
use core_tools::mcp::Toolset;
use core_tools::redact::Redactor;
use core_tools::workspace::Workspace;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A server: its name, and what it has of its own. `mcp-stdio` is one without anything.
///
/// ```
/// use core_tools::mcp::{Answer, CallContext, Tool, Toolset};
/// use server_setup::{Program, Resources};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Nothing {}
///
/// fn toolset(_: &Resources) -> Toolset {
///     let hello = Tool::new("hello", "Hello", "Says hello.", |_: Nothing, _: CallContext| async {
///         Ok(Answer::text("hello"))
///     });
///     Toolset::new("project", [hello])
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
    pub(crate) own_toolset: Option<fn(&Resources) -> Toolset>,
    roles: Option<&'static str>,
    sources: Option<&'static str>,
}

/// The parts that tools are made of: the way to files, and the way to programs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resources {
    /// The folders that tools may use. [`CallContext::within`](core_tools::mcp::CallContext::within) gives a tool what
    /// of them its call may reach.
    pub workspace: Arc<Workspace>,
    /// Runs programs: bounded, confined, and ended with everything they started.
    pub commands: Commands,
    /// Masks secrets. Answers are masked anyway; this is for what a tool writes elsewhere.
    pub redactor: Redactor,
}

impl Program {
    /// Creates a server with the toolsets that it is linked with and the built-in roles.
    pub const fn new(name: &'static str, version: &'static str) -> Self {
        Self { name, version, own_toolset: None, roles: None, sources: None }
    }

    /// Adds tools of the server's own. A tool with the name of a library tool replaces it ([`Toolset::overlay`]).
    #[must_use]
    pub const fn toolset(mut self, toolset: fn(&Resources) -> Toolset) -> Self {
        self.own_toolset = Some(toolset);
        self
    }

    /// Replaces the built-in roles, which hold if no file is named with `--policy`.
    #[must_use]
    pub const fn roles(mut self, roles: &'static str) -> Self {
        self.roles = Some(roles);
        self
    }

    /// Names the folder of the server's sources, `env!("CARGO_MANIFEST_DIR")`, inside the project that it serves.
    /// Started in that folder, the server serves the folder above it. Started anywhere else, it serves that folder, as
    /// every server does.
    #[must_use]
    pub const fn inside_project(mut self, sources: &'static str) -> Self {
        self.sources = Some(sources);
        self
    }

    /// Returns the built-in policy: its name in errors, and its text.
    pub fn policy(&self) -> (&'static str, &'static str) {
        match self.roles {
            Some(roles) => ("the roles of this server", roles),
            None => ("built-in", role_policy::BUILTIN),
        }
    }

    /// Returns true if the program brings roles of its own.
    pub(crate) fn has_own_roles(&self) -> bool {
        self.roles.is_some()
    }

    /// Returns the folder of files about the server itself: that of its sources if it exists, else `root`.
    pub fn home(&self, root: PathBuf) -> PathBuf {
        self.sources.map(PathBuf::from).filter(|sources| sources.is_dir()).unwrap_or(root)
    }

    /// Returns the folder that is served if it is started in `folder` and no root is named.
    pub(crate) fn default_root(&self, folder: PathBuf) -> PathBuf {
        // Compared without links, since either path may lead through one.
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
