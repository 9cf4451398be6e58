//! The errors of building and restoring a project.

use super::report::BuildGoal;
use crate::ci::ecosystem::Ecosystem;
use crate::ci::error::CommandError;
use crate::ci::project::MAX_MANIFEST_BYTES;
use crate::workspace;

/// An error that kept a build from running, or that lost its run. A build that ran and failed is not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No folder from the path up to the root has a project file.
    #[error("no project found at `{path}`; looked, from there up to the root, for {}", all_project_files())]
    NoProject {
        /// The path at which the search began.
        path: String,
    },
    /// No ecosystem has this name.
    #[error("`ecosystem` is `{name}`: known are {}", names(&Ecosystem::ALL))]
    UnknownEcosystem {
        /// The name that was requested.
        name: String,
    },
    /// No folder from the path up to the root is a project of the requested ecosystem.
    #[error(
        "`ecosystem` is `{}`: there is no such project at `{path}` or above it; found {}",
        ecosystem.name(),
        names(found)
    )]
    NotOfEcosystem {
        /// The ecosystem that was requested.
        ecosystem: Ecosystem,
        /// The path at which the search began.
        path: String,
        /// The ecosystems whose projects are there.
        found: Vec<Ecosystem>,
    },
    /// The ecosystem has no command for this goal in this project.
    #[error(
        "there is nothing to {} in `{folder}`: {} has no command for {} there{}",
        goal.verb(),
        ecosystem.name(),
        goal.tool(),
        scripts_text(scripts)
    )]
    NoCommand {
        /// The goal of the request.
        goal: BuildGoal,
        /// The ecosystem of the project.
        ecosystem: Ecosystem,
        /// The folder of the project.
        folder: String,
        /// The scripts of the project's manifest, none of which is known to build it.
        scripts: Vec<String>,
    },
    /// The manifest is too large to read.
    #[error("`{file}` in `{folder}` is too large to read: over {MAX_MANIFEST_BYTES} bytes")]
    ManifestTooLarge {
        /// The name of the file.
        file: &'static str,
        /// The folder of the project.
        folder: String,
    },
    /// The path cannot be used.
    #[error("cannot use that path")]
    Path(#[from] workspace::Error),
    /// A program of the toolchain is not installed.
    #[error("{error} It is usually installed so: {installation}")]
    ToolchainMissing {
        /// The error of the start, with the places where the program was searched.
        error: Box<CommandError>,
        /// The usual way to install it.
        installation: &'static str,
    },
    /// The project uses TypeScript, and has no compiler of it.
    #[error("there is no `{path}` in `{folder}` or above it. It is usually installed so: {installation}")]
    TypeScriptMissing {
        /// The path of the compiler in a project's folder.
        path: &'static str,
        /// The folder of the project.
        folder: String,
        /// The usual way to install it.
        installation: &'static str,
    },
    /// The program did not start, or its run was lost.
    #[error(transparent)]
    Command(#[from] CommandError),
}

/// Returns the scripts that a caller may run as commands, as the end of a message.
fn scripts_text(scripts: &[String]) -> String {
    const MAX_NAMED: usize = 20;
    let named: Vec<_> =
        scripts.iter().take(MAX_NAMED).map(|name| format!("`{}`", name.escape_debug())).collect();
    let more = if scripts.len() > MAX_NAMED { ", ..." } else { "" };
    match named.is_empty() {
        true => String::new(),
        false => format!("; its scripts are {}{more}", named.join(", ")),
    }
}

fn all_project_files() -> String {
    let files: Vec<_> = Ecosystem::ALL.into_iter().flat_map(Ecosystem::project_files).copied().collect();
    files.join(", ")
}

fn names(ecosystems: &[Ecosystem]) -> String {
    ecosystems.iter().map(|ecosystem| ecosystem.name()).collect::<Vec<_>>().join(", ")
}
