//! The subcommand `remotes`: the kinds, the remotes of the configuration, and what was created for them.
#![allow(clippy::doc_markdown, reason = "the comments are what --help prints")]

use crate::error::Error;
use crate::output::{name, print, print_error};
use clap::Subcommand;
use error_causes::chain;
use remotes::{FoundLease, LeaseRegistry, RemoteKind, RemoteSettings};
use server_setup::remote::lease_folder;
use server_setup::resources;
use server_setup::settings::Settings;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

pub(crate) const EXAMPLES: &str = "\
Examples:
  mcp-stdio remotes                                       list the kinds, and what was created
  mcp-stdio --remote ssh:build-box:/src call git_status   make one call there
  mcp-stdio --remote podman:dev:/src                      serve a folder of a container
  mcp-stdio remotes reap                                  destroy what killed servers have left";

/// The time that commands have to end.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// The subcommands of `remotes`.
#[derive(Debug, Subcommand)]
pub(crate) enum RemotesCommand {
    /// List the kinds, the remotes of the configuration, and what was created for them
    List,
    /// Destroy what was created for servers that were killed
    Reap,
}

/// Runs `mcp-stdio remotes COMMAND`; without a command it lists.
pub(crate) async fn run(settings: &Settings, command: Option<RemotesCommand>) -> Result<ExitCode, Error> {
    match command.unwrap_or(RemotesCommand::List) {
        RemotesCommand::List => list(&settings.config.remotes).await,
        RemotesCommand::Reap => reap(settings).await,
    }
}

fn failed(error: &remotes::Error) -> Error {
    Error::Failed(chain(error))
}

async fn list(configured: &[RemoteSettings]) -> Result<ExitCode, Error> {
    let mut text = String::from("Kinds, as in --remote KIND:TARGET[:ROOT]:\n");
    for kind in RemoteKind::preset_names().filter_map(RemoteKind::preset) {
        let kind = kind.map_err(|error| Error::Failed(error.to_string()))?;
        let _ = writeln!(text, "\n  {}  {}", kind.name, kind.description);
        if let Some(target) = &kind.target {
            let _ = writeln!(text, "    target: {target}");
        }
        for (name, option) in &kind.options {
            let _ = write!(text, "    --remote-option {name}=…  {}", option.description);
            let _ = match &option.default {
                Some(default) => writeln!(text, "; {default} by default"),
                None => writeln!(text),
            };
        }
    }
    if !configured.is_empty() {
        text.push_str("\nRemotes of the configuration, as in --remote NAME:\n");
        for remote in configured {
            let kind = if remote.kind.name.is_empty() { "a kind of its own" } else { &remote.kind.name };
            let _ =
                writeln!(text, "  {}  {kind} {}", remote.name, remote.target.as_deref().unwrap_or_default());
        }
    }
    let leases = match lease_folder() {
        Some(folder) => LeaseRegistry::from(folder).leases().await.map_err(|error| failed(&error))?,
        None => Vec::new(),
    };
    if !leases.is_empty() {
        text.push_str("\nCreated, and not destroyed yet:\n");
        for FoundLease { record, is_owned, .. } in leases {
            let age = SystemTime::now().duration_since(record.created_at).unwrap_or_default().as_secs();
            let state = if is_owned { "in use" } else { "its server was killed; `remotes reap` destroys it" };
            let _ = writeln!(
                text,
                "  {}  {} for {}, {age} s ago: {state}",
                record.id, record.remote, record.caller
            );
        }
    }
    Ok(print(text.trim_end()))
}

async fn reap(settings: &Settings) -> Result<ExitCode, Error> {
    let folder = lease_folder().ok_or_else(|| failed(&remotes::Error::NoLeaseFolder))?;
    let runner = resources::runner(settings)?;
    let reaped = LeaseRegistry::from(folder).reap(&settings.config.remotes, &runner).await;
    runner.shutdown(SHUTDOWN_GRACE).await;
    let reaped = reaped.map_err(|error| failed(&error))?;
    for (id, reason) in &reaped.failed {
        print_error(&format!("{}: {id} could not be destroyed: {reason}", name()));
    }
    for id in &reaped.unsettled {
        print_error(&format!(
            "{}: {id} was being created when its server was killed, and is not there; reap again when the engine must be done",
            name()
        ));
    }
    let destroyed: Vec<&str> = reaped.destroyed.iter().map(String::as_str).collect();
    let printed = match destroyed.is_empty() {
        true => print("nothing was destroyed"),
        false => print(&format!("destroyed {}", destroyed.join(", "))),
    };
    Ok(if reaped.failed.is_empty() { printed } else { ExitCode::FAILURE })
}
