//! The settings of agent clients in which hooks are installed.

use crate::real_paths::with_real_paths;
use agent_hooks::{HookClient, HookInstallation, HookPlacement};
use std::path::{Path, PathBuf};

/// Returns the file in which a client reads the hooks of its user.
pub fn user_file(client: HookClient) -> Option<PathBuf> {
    Some(user_folder(client)?.join(HookInstallation::path(client, HookPlacement::User)))
}

/// Returns the files beside it in which the client reads settings of its user that could switch hooks off.
pub fn user_settings(client: HookClient) -> impl Iterator<Item = PathBuf> {
    let folder = user_folder(client).into_iter();
    folder.flat_map(move |folder| {
        HookInstallation::user_settings(client).iter().map(move |name| folder.join(name))
    })
}

/// Returns the client's own folder of its user.
fn user_folder(client: HookClient) -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = || folder("HOME").or_else(|| folder("USERPROFILE"));
    Some(match client {
        HookClient::Claude => folder("CLAUDE_CONFIG_DIR").or_else(|| Some(home()?.join(".claude")))?,
        HookClient::Codex => folder("CODEX_HOME").or_else(|| Some(home()?.join(".codex")))?,
        HookClient::Gemini => home()?.join(".gemini"),
        HookClient::Copilot => folder("COPILOT_HOME").or_else(|| Some(home()?.join(".copilot")))?,
        HookClient::Cursor => home()?.join(".cursor"),
        _ => folder("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))?.join("opencode"),
    })
}

/// Returns the file in which Codex reads which executors it has.
pub fn codex_environments_file() -> Option<PathBuf> {
    Some(user_file(HookClient::Codex)?.with_file_name("environments.toml"))
}

/// Returns true if the file at `path` installs the hook of `client`.
pub fn has_hook(client: HookClient, path: &Path) -> bool {
    const MAX_BYTES: u64 = 1 << 20;
    let is_small = path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_BYTES);
    #[allow(clippy::disallowed_methods, reason = "the user's own settings of a client")]
    let text = is_small.then(|| std::fs::read_to_string(path).ok()).flatten();
    let marker = match client {
        HookClient::Opencode => "`hook install opencode`".to_owned(),
        client => format!(" hook {client}"),
    };
    text.is_some_and(|text| text.contains(&marker))
}

/// Returns the settings of clients whose hook is installed, for the user or in one of `roots`. No tool may write them.
pub(crate) fn installed_settings(roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for client in HookClient::ALL {
        let user = user_file(client);
        let of_project = |root: &PathBuf| root.join(HookInstallation::path(client, HookPlacement::Project));
        let is_installed = user.as_deref().is_some_and(|file| has_hook(client, file))
            || roots.iter().any(|root| has_hook(client, &of_project(root)));
        if is_installed {
            files.extend(user);
            files.extend(user_settings(client));
            files.extend(project_settings(client, roots));
        }
    }
    files
}

fn project_settings(client: HookClient, roots: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let files = HookInstallation::project_settings(client);
    roots.iter().flat_map(move |root| files.iter().map(move |file| root.join(file)))
}

/// Returns the settings of every client in the roots, whether or not they exist, and those of the user.
pub(crate) fn all_project_settings(roots: &[PathBuf]) -> Vec<PathBuf> {
    let real: Vec<PathBuf> = roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
    let mut files: Vec<PathBuf> = codex_environments_file().into_iter().collect();
    for client in HookClient::ALL {
        files.extend(user_file(client));
        files.extend(user_settings(client));
        files.extend(project_settings(client, roots));
        files.extend(project_settings(client, &real));
    }
    with_real_paths(files)
}

/// Returns the folders from which clients load what they run, in the roots and of the user, whether or not they exist.
pub(crate) fn loaded_folders(roots: &[PathBuf]) -> Vec<PathBuf> {
    let of_user = HookClient::ALL.into_iter().flat_map(|client| {
        let own = user_folder(client);
        let names = HookInstallation::loaded_user_folders(client);
        own.into_iter().flat_map(move |own| names.iter().map(move |name| own.join(name)))
    });
    let of_roots = roots
        .iter()
        .flat_map(|root| HookInstallation::loaded_folders().iter().map(move |folder| root.join(folder)));
    let mut folders: Vec<PathBuf> = of_roots.chain(of_user).collect();
    // A root without links, for folders that do not exist yet.
    let real = roots.iter().filter_map(|root| root.canonicalize().ok());
    let real =
        real.flat_map(|root| HookInstallation::loaded_folders().iter().map(move |folder| root.join(folder)));
    folders.extend(real.collect::<Vec<_>>());
    with_real_paths(folders)
}

/// Returns the files of the roots that clients load by themselves, beside their settings.
pub(crate) fn loaded_files(roots: &[PathBuf]) -> Vec<PathBuf> {
    let files = roots
        .iter()
        .flat_map(|root| HookInstallation::loaded_files().iter().map(move |file| root.join(file)));
    with_real_paths(files.collect())
}

/// Returns true if the hook of a client is installed, for the user or in one of `roots`.
pub(crate) fn is_hook_installed(roots: &[PathBuf]) -> bool {
    !installed_settings(roots).is_empty()
}
