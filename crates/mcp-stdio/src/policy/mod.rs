//! The subcommand `policy`: queries and tests a policy before a server uses it.

mod compare;
mod query;
#[cfg(all(feature = "wrap", unix))]
mod server_tools;

#[cfg(all(feature = "wrap", unix))]
pub(crate) use server_tools::ServerArguments;

use crate::cli::PolicyCommand;
use crate::error::Error;
use crate::output::print;
use compare::{MatrixFormat, diff, matrix};
use core_tools::ci::{ConfinementPolicy, EnvironmentPolicy};
use core_tools::mcp::{Toolset, WorkspaceEffects};
use error_causes::chain;
use query::{PolicyQuery, caller, check, explain};
use role_policy::LoadedPolicy;
use server_setup::settings::Settings;
use server_setup::{policy, resources, sessions, toolsets};
use std::process::ExitCode;
use std::sync::Arc;

/// Runs `mcp-stdio policy COMMAND`.
pub(crate) fn run(
    settings: &Settings,
    role: Option<&str>,
    command: PolicyCommand,
) -> Result<ExitCode, Error> {
    let workspace = Arc::new(resources::workspace(settings)?);
    let facts = resources::server_facts(settings.program);
    let effects = WorkspaceEffects::new(Arc::clone(&workspace), facts.path.clone());
    let toolsets = toolsets::all(
        settings,
        &workspace,
        &resources::runner(settings)?,
        // The toolsets are built for the facts about their tools; no tool is called.
        ConfinementPolicy::off("nothing is run"),
        EnvironmentPolicy::default(),
        toolsets::ServedCallers::One(&sessions::of_one(settings)),
    )?;
    let tools = toolsets::facts_of(&toolsets);
    match command {
        PolicyCommand::Init => Ok(print(settings.program.policy().1.trim_end())),
        PolicyCommand::Lint { strict } => Ok(lint(policy::configured(settings, &tools), strict)),
        PolicyCommand::Test => {
            let LoadedPolicy { examples, .. } = policy::configured(settings, &tools)?;
            Ok(print(&format!("{examples} examples hold")))
        }
        #[cfg(all(feature = "wrap", unix))]
        PolicyCommand::Check { tool, args, json, server } if server.is_given() => {
            let policy = policy::configured(settings, &tools)?.policy;
            let caller = caller(settings, &policy, role)?;
            server.query(policy, caller, &tool, &args, |query| {
                Ok(check(query, &crate::wrap::effects(workspace)?, json))
            })
        }
        #[cfg(all(feature = "wrap", unix))]
        PolicyCommand::Explain { tool, args, server } if server.is_given() => {
            let policy = policy::configured(settings, &tools)?.policy;
            let caller = caller(settings, &policy, role)?;
            server.query(policy, caller, &tool, &args, |query| {
                Ok(explain(query, &crate::wrap::effects(workspace)?))
            })
        }
        PolicyCommand::Check { tool, args, json, .. } => {
            let policy = policy::configured(settings, &tools)?.policy;
            let caller = caller(settings, &policy, role)?;
            Ok(check(PolicyQuery::new(policy, caller, &toolsets, &tool, &args)?, &effects, json))
        }
        PolicyCommand::Explain { tool, args, .. } => {
            let policy = policy::configured(settings, &tools)?.policy;
            let caller = caller(settings, &policy, role)?;
            Ok(explain(PolicyQuery::new(policy, caller, &toolsets, &tool, &args)?, &effects))
        }
        PolicyCommand::Matrix { markdown, json } => {
            let policy = policy::configured(settings, &tools)?.policy;
            let format = match (markdown, json) {
                (true, _) => MatrixFormat::Markdown,
                (_, true) => MatrixFormat::Json,
                _ => MatrixFormat::Text,
            };
            let used = toolsets.iter().flat_map(Toolset::used_tools).collect();
            Ok(print(&matrix(&policy, &tools, &used, format)))
        }
        PolicyCommand::Diff { old, new } => {
            let (old, new) = (policy::load(&old, &tools)?.policy, policy::load(&new, &tools)?.policy);
            Ok(print(&diff(&old, &new, &tools)))
        }
        PolicyCommand::Marker { session, key, ttl, folder } => marker(
            role.ok_or_else(|| Error::Argument("--role must name the role of the agent".to_owned()))?,
            session.as_deref(),
            key.as_deref(),
            ttl,
            &folder,
        ),
    }
}

/// Prints the problems of the policy.
fn lint(loaded: Result<LoadedPolicy, server_setup::Error>, strict: bool) -> ExitCode {
    match loaded {
        Err(error) => {
            // On standard output, like the warnings: the problems are the result of this command.
            print(&chain(&error));
            ExitCode::FAILURE
        }
        Ok(loaded) => {
            let lines: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
            let text = match lines.len() {
                0 => "no problems found".to_owned(),
                _ => lines.join("\n"),
            };
            let printed = print(&text);
            if strict && !lines.is_empty() { ExitCode::FAILURE } else { printed }
        }
    }
}

/// Writes the marker of a session, signed if there is a key.
#[cfg(unix)]
fn marker(
    role: &str,
    session: Option<&str>,
    key: Option<&std::path::Path>,
    ttl: u64,
    folder: &std::path::Path,
) -> Result<ExitCode, Error> {
    use role_policy::source::{read_key, write_marker};
    let key = key.map(read_key).transpose().map_err(|error| Error::Argument(format!("--key: {error}")))?;
    let signature = key.as_deref().map(|key| (key, std::time::Duration::from_secs(ttl)));
    let folder =
        std::path::absolute(folder).map_err(Error::system(format!("cannot use {}", folder.display())))?;
    let path = write_marker(&folder, role, session, signature)
        .map_err(|error| Error::Failed(format!("no marker was written: {error}")))?;
    Ok(print(&path.display().to_string()))
}

#[cfg(not(unix))]
fn marker(
    _: &str,
    _: Option<&str>,
    _: Option<&std::path::Path>,
    _: u64,
    _: &std::path::Path,
) -> Result<ExitCode, Error> {
    Err(Error::Failed("markers need a Unix system, where a file can belong to its owner alone".to_owned()))
}
