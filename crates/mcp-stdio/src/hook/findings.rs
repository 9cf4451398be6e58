//! The state of installed hooks, for the doctor.

use agent_hooks::{HookClient, HookInstallation, HookPlacement};
use serde_json::Value;
use server_setup::client_settings::{has_hook, user_file, user_settings};
use std::path::{Path, PathBuf};

/// The state of the hook of one client.
pub(crate) struct HookFinding {
    pub(crate) detail: String,
    /// The setting that switches the hook off, or lets others switch it off, and what to do.
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
        findings.push(HookFinding {
            detail: format!("{}: {}", client.display_name(), file.display()),
            problem: problem(client, file, user.is_some(), roots),
        });
    }
    findings
}

fn problem(
    client: HookClient,
    file: &Path,
    is_of_user: bool,
    roots: &[PathBuf],
) -> Option<(String, &'static str)> {
    let settings = HookInstallation::project_settings(client).iter();
    let of_projects = settings.flat_map(|name| roots.iter().map(move |root| root.join(name)));
    let mut all = of_projects.chain(user_settings(client)).chain([file.to_owned()]);
    if let Some(path) = all.find(|path| switches_hooks_off(path)) {
        return Some((
            format!("{} switches hooks off", path.display()),
            "remove `disableAllHooks`, `hooksConfig.enabled` or `features.hooks` from it",
        ));
    }
    if let Some(program) = missing_program(client, file) {
        return Some((
            format!("{} starts {program}, which is not there", file.display()),
            "run `hook install` again",
        ));
    }
    if !is_as_installed(client, file) {
        return Some((
            format!("{} is not as `hook install` writes it", file.display()),
            "run `hook install` again",
        ));
    }
    if client == HookClient::Codex && !is_trusted_by_codex(file) {
        return Some((
            format!("Codex does not run {} yet, because nobody has trusted it", file.display()),
            "trust the hook in `/hooks` of Codex",
        ));
    }
    if !is_of_user {
        return Some((
            format!("{} is in the project, where commands of the agent can change it", file.display()),
            "install it with --user",
        ));
    }
    None
}

#[allow(clippy::disallowed_methods, reason = "the user's own settings of a client")]
fn text(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn switches_hooks_off(path: &Path) -> bool {
    let Some(text) = text(path) else { return false };
    if path.extension().is_some_and(|extension| extension == "toml") {
        let Ok(settings) = toml::from_str::<toml::Table>(&text) else { return false };
        let features = settings.get("features").and_then(toml::Value::as_table);
        let is_off = |name: &&str| {
            features.and_then(|features| features.get(*name)) == Some(&toml::Value::Boolean(false))
        };
        return ["hooks", "codex_hooks"].iter().any(is_off);
    }
    let Ok(settings) = serde_json::from_str::<Value>(&text) else { return false };
    settings["disableAllHooks"] == true || settings["hooksConfig"]["enabled"] == false
}

/// Returns the index of this project's entry in the list of hooks, and its command line.
fn installed_entry(client: HookClient, path: &Path) -> Option<(usize, String)> {
    let settings: Value = serde_json::from_str(&text(path)?).ok()?;
    let list = settings["hooks"][HookInstallation::event(client)?].as_array()?;
    let marker = format!(" hook {client}");
    list.iter().enumerate().find_map(|(index, entry)| {
        let mut commands = HookInstallation::commands(entry);
        commands.find(|command| command.contains(&marker)).map(|command| (index, command.to_owned()))
    })
}

/// Returns the program of the hook if it is not there.
fn missing_program(client: HookClient, path: &Path) -> Option<String> {
    let program = match HookInstallation::event(client) {
        None => HookInstallation::words_of_plugin(&text(path)?)?.into_iter().next()?,
        Some(_) => {
            let (_, command) = installed_entry(client, path)?;
            match command.strip_prefix('\'') {
                Some(rest) => rest.split_once('\'')?.0.to_owned(),
                None => command.split_once(' ')?.0.to_owned(),
            }
        }
    };
    (program.starts_with('/') && !Path::new(&program).exists()).then_some(program)
}

/// Returns false for a plug-in that somebody has changed. Entries in settings are found by their words.
fn is_as_installed(client: HookClient, path: &Path) -> bool {
    if HookInstallation::event(client).is_some() {
        return true;
    }
    text(path).is_some_and(|text| {
        HookInstallation::words_of_plugin(&text)
            .is_some_and(|words| HookInstallation::new(client, words).plugin() == text)
    })
}

/// Returns true if the user of Codex has trusted the hook in this file once. Codex asks again when the hook has changed, and
/// does not run it until then.
fn is_trusted_by_codex(path: &Path) -> bool {
    let Some((index, _)) = installed_entry(HookClient::Codex, path) else { return false };
    let Some(folder) = path.parent() else { return false };
    let settings =
        text(&folder.join("config.toml")).and_then(|text| toml::from_str::<toml::Table>(&text).ok());
    let Some(settings) = settings else { return false };
    let hooks = settings.get("hooks").and_then(toml::Value::as_table);
    let state = hooks.and_then(|hooks| hooks.get("state")).and_then(toml::Value::as_table);
    let beginning = format!("{}:pre_tool_use:{index}:", path.display());
    state.into_iter().flatten().any(|(key, value)| {
        key.starts_with(&beginning)
            && value.get("trusted_hash").is_some()
            && value.get("enabled") != Some(&toml::Value::Boolean(false))
    })
}
