//! `hook install` and `hook remove`: the entry in a client's own settings.

use super::arguments::{AnswerArguments, PlacementArguments};
use crate::cli::GlobalOptions;
use crate::error::Error;
use crate::output::print;
use crate::print_config::launch;
use crate::print_config::merge::json::with_member;
use crate::print_config::write::{Written, merge_into};
use agent_hooks::{HookClient, HookInstallation, HookPlacement};
use serde_json::Value;
use server_setup::client_settings::{has_hook, user_file, user_settings};
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
        Written::Unchanged => format!("{shown} has the hook already; nothing was changed"),
        Written::Created => format!("wrote {shown}: {name} asks this program before it runs a tool"),
        Written::Changed { copy } => {
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
        Written::Changed { copy } => format!("; as it was before: {}", copy.display()),
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

/// The state of the hook of one client, for the doctor.
pub(crate) struct HookFinding {
    pub(crate) detail: String,
    /// The setting that switches the hook off, or lets others switch it off.
    pub(crate) problem: Option<(String, &'static str)>,
}

/// Returns the state of each installed hook. A client without one has none.
pub(crate) fn findings(roots: &[PathBuf]) -> Vec<HookFinding> {
    let mut findings = Vec::new();
    for client in HookClient::ALL {
        let user = user_file(client).filter(|file| has_hook(client, file));
        let of_project = |root: &PathBuf| root.join(HookInstallation::path(client, HookPlacement::Project));
        let project = roots.iter().map(of_project).find(|file| has_hook(client, file));
        let Some(file) = user.as_ref().or(project.as_ref()) else { continue };
        let settings = HookInstallation::project_settings(client).iter();
        let of_projects = settings.flat_map(|name| roots.iter().map(move |root| root.join(name)));
        let all = of_projects.chain(user_settings(client)).chain([file.clone()]);
        let switched_off =
            all.filter(|path| switches_hooks_off(path)).map(|path| path.display().to_string()).next();
        let problem = if let Some(path) = switched_off {
            Some((
                format!("{path} switches hooks off"),
                "remove `disableAllHooks`, or `hooksConfig.enabled`, from it",
            ))
        } else if let Some(program) = missing_program(client, file) {
            Some((
                format!("{} starts {program}, which is not there", file.display()),
                "run `hook install` again",
            ))
        } else if user.is_none() {
            Some((
                format!("{} is in the project, where commands of the agent can change it", file.display()),
                "install it with --user",
            ))
        } else {
            None
        };
        findings
            .push(HookFinding { detail: format!("{}: {}", client.display_name(), file.display()), problem });
    }
    findings
}

#[allow(clippy::disallowed_methods, reason = "the user's own settings of a client")]
fn switches_hooks_off(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let Ok(settings) = serde_json::from_str::<Value>(&text) else { return false };
    settings["disableAllHooks"] == true || settings["hooksConfig"]["enabled"] == false
}

/// Returns the program of the hook if it is not there.
#[allow(clippy::disallowed_methods, reason = "the user's own settings of a client")]
fn missing_program(client: HookClient, path: &Path) -> Option<String> {
    let settings: Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
    let list = settings["hooks"][HookInstallation::event(client)?].as_array()?;
    let marker = format!(" hook {client}");
    let mut commands = list.iter().flat_map(HookInstallation::commands);
    let command = commands.find(|command| command.contains(&marker))?;
    let program = match command.strip_prefix('\'') {
        Some(rest) => rest.split_once('\'')?.0,
        None => command.split_once(' ')?.0,
    };
    (program.starts_with('/') && !Path::new(program).exists()).then(|| program.to_owned())
}
