//! `hook install` and `hook remove`: the entry in a client's own settings.

use super::arguments::{AnswerArguments, PlacementArguments};
use crate::cli::GlobalOptions;
use crate::error::Error;
use crate::output::print;
use crate::print_config::launch;
use crate::print_config::merge::json::with_member;
use crate::print_config::write::{ConfigWriteOutcome, merge_into};
use agent_hooks::{HookClient, HookInstallation, HookPlacement};
use server_setup::client_settings::{has_hook, user_file};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Installs the hook.
pub(super) fn install(
    options: &GlobalOptions,
    client: HookClient,
    placement: PlacementArguments,
    answer: &AnswerArguments,
) -> Result<ExitCode, Error> {
    let executable = std::env::current_exe()
        .map_err(Error::system("cannot find out which file this program was started from"))?;
    let mut words = launch::program(&executable)?;
    words.extend(launch::arguments(options)?);
    words.extend(["hook".to_owned(), client.as_str().to_owned()]);
    if answer.approve {
        words.push("--approve".to_owned());
    }
    if answer.no_exec {
        words.push("--no-exec".to_owned());
    }
    if let Some(seconds) = answer.exec_timeout {
        words.extend(["--exec-timeout".to_owned(), seconds.to_string()]);
    }
    let installation = HookInstallation::new(client, words);
    let path = file(client, placement)?;
    let written = merge_into(&path, |text| match HookInstallation::event(client) {
        None => Ok(installation.plugin()),
        Some(event) => with_member(text, &["hooks"], event, |old| installation.added(old))
            .and_then(|text| match HookInstallation::file_version(client) {
                Some(version) => {
                    with_member(&text, &[], "version", |old| old.cloned().unwrap_or_else(|| version.into()))
                }
                None => Ok(text),
            })
            .map_err(unchanged(&path)),
    })?;
    let shown = path.display();
    let name = client.display_name();
    let result = match written {
        ConfigWriteOutcome::Unchanged => format!("{shown} has the hook already; nothing was changed"),
        ConfigWriteOutcome::Created => {
            format!("wrote {shown}: {name} asks this program before it runs a tool")
        }
        ConfigWriteOutcome::Changed { copy } => {
            format!(
                "changed {shown}: {name} asks this program before it runs a tool; as it was before: {}",
                copy.display()
            )
        }
    };
    Ok(print(&format!("{result}\n{}", check(client))))
}

/// Removes the hook.
pub(super) fn remove(client: HookClient, placement: PlacementArguments) -> Result<ExitCode, Error> {
    let path = file(client, placement)?;
    let shown = path.display();
    if !has_hook(client, &path) {
        return Ok(print(&format!("{shown} has no such hook; nothing was changed")));
    }
    let Some(event) = HookInstallation::event(client) else {
        #[allow(clippy::disallowed_methods, reason = "the file that `hook install` wrote")]
        std::fs::remove_file(&path).map_err(Error::system(format!("cannot remove {shown}")))?;
        return Ok(print(&format!("removed {shown}")));
    };
    let written = merge_into(&path, |text| {
        with_member(text, &["hooks"], event, |old| HookInstallation::removed(client, old))
            .map_err(unchanged(&path))
    })?;
    let copy = match written {
        ConfigWriteOutcome::Changed { copy } => format!("; as it was before: {}", copy.display()),
        _ => String::new(),
    };
    Ok(print(&format!("changed {shown}: the hook is removed{copy}")))
}

fn unchanged(path: &Path) -> impl FnOnce(crate::print_config::merge::MergeError) -> Error + '_ {
    move |error| Error::Argument(format!("{} was not changed: {error}", path.display()))
}

fn file(client: HookClient, placement: PlacementArguments) -> Result<PathBuf, Error> {
    if placement.project {
        return Ok(PathBuf::from(HookInstallation::path(client, HookPlacement::Project)));
    }
    user_file(client).ok_or_else(|| Error::Argument("there is no HOME; use --project".to_owned()))
}

/// Returns how to see that the client uses the hook.
fn check(client: HookClient) -> &'static str {
    match client {
        HookClient::Claude => "`/hooks` in a new session shows it; `doctor` checks it",
        HookClient::Codex => {
            "Codex asks whether to trust the hook: agree in `/hooks`, or it does not run; `doctor` checks the file"
        }
        HookClient::Gemini => "`/hooks panel` in a new session shows it; `doctor` checks it",
        HookClient::Copilot => "`/env` in a new session shows it; `doctor` checks it",
        HookClient::Cursor => "Cursor's settings show it under Hooks; `doctor` checks the file",
        _ => "it is loaded by the next session; `doctor` checks it",
    }
}
