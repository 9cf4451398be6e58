//! The entry in Codex's `environments.toml`: written, removed and looked at.
#![allow(clippy::disallowed_methods, reason = "the file is the user's, who runs the command")]

use super::environments_toml::{
    EnvironmentsError, installed_program, is_only_executor, others, with_entry, without_entry,
};
use crate::cli::GlobalOptions;
use crate::error::Error;
use crate::output::print;
use crate::print_config::launch;
use crate::print_config::write::{ConfigWriteOutcome, merge_into};
use server_setup::client_settings::codex_environments_file;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn file() -> Result<PathBuf, Error> {
    codex_environments_file().ok_or_else(|| Error::Argument("there is no HOME, and no CODEX_HOME".to_owned()))
}

fn unchanged(path: &Path) -> impl FnOnce(EnvironmentsError) -> Error + '_ {
    move |error| Error::Argument(format!("{} was not changed: {error}", path.display()))
}

/// Writes the entry.
pub(super) fn install(options: &GlobalOptions, exec_timeout: Option<u64>) -> Result<ExitCode, Error> {
    let executable = std::env::current_exe()
        .map_err(Error::system("cannot find out which file this program was started from"))?;
    let mut words = launch::program(&executable)?;
    words.extend(launch::arguments(options)?);
    words.push("codex-environment".to_owned());
    if let Some(seconds) = exec_timeout {
        words.extend(["--exec-timeout".to_owned(), seconds.to_string()]);
    }
    let path = file()?;
    let written = merge_into(&path, |text| with_entry(text, &words).map_err(unchanged(&path)))?;
    let shown = path.display();
    const EFFECT: &str =
        "from its next session on, Codex runs commands and reaches files through this program alone";
    let result = match written {
        ConfigWriteOutcome::Unchanged => format!("{shown} has the entry already; nothing was changed"),
        ConfigWriteOutcome::Created => format!("wrote {shown}: {EFFECT}"),
        ConfigWriteOutcome::Changed { copy } => {
            format!("changed {shown}: {EFFECT}; as it was before: {}", copy.display())
        }
    };
    Ok(print(&format!("{result}\n`doctor` checks it, and the version of Codex")))
}

/// Removes the entry.
pub(super) fn remove() -> Result<ExitCode, Error> {
    let path = file()?;
    let shown = path.display();
    if installed_program(&read(&path)).is_none() {
        return Ok(print(&format!("{shown} has no such entry; nothing was changed")));
    }
    let written = merge_into(&path, |text| without_entry(text).map_err(unchanged(&path)))?;
    let copy = match written {
        ConfigWriteOutcome::Changed { copy } => format!("; as it was before: {}", copy.display()),
        _ => String::new(),
    };
    if read(&path).trim().is_empty() {
        std::fs::remove_file(&path).map_err(Error::system(format!("cannot remove {shown}")))?;
        return Ok(print(&format!("removed {shown}: Codex uses its own executor again{copy}")));
    }
    Ok(print(&format!("changed {shown}: the entry is removed{copy}")))
}

fn read(path: &Path) -> String {
    const MAX_BYTES: u64 = 1 << 20;
    let is_small = path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_BYTES);
    is_small.then(|| std::fs::read_to_string(path).ok()).flatten().unwrap_or_default()
}

/// The entry in Codex's settings, for the doctor.
#[derive(Debug)]
pub(crate) struct CodexEnvironmentState {
    /// The file.
    pub(crate) path: PathBuf,
    /// The reason why the entry is not the only way, and the remedy.
    pub(crate) problem: Option<(String, &'static str)>,
}

/// Returns the state of the entry, or `None` if there is none.
pub(crate) fn state() -> Option<CodexEnvironmentState> {
    let path = codex_environments_file()?;
    let text = read(&path);
    let program = installed_program(&text)?;
    let others = others(&text);
    let problem = if program.starts_with('/') && !Path::new(&program).exists() {
        Some((format!("it starts {program}, which is not there"), "run `codex-environment install` again"))
    } else if !is_only_executor(&text) {
        Some((
            "Codex may use its own executor, which nothing here judges".to_owned(),
            "run `codex-environment install` again, which sets `default` and `include_local`",
        ))
    } else if !others.is_empty() {
        Some((
            format!("Codex may also use the executors {}, which nothing here judges", others.join(", ")),
            "remove them from the file if the agent must not use them",
        ))
    } else {
        None
    };
    Some(CodexEnvironmentState { path, problem })
}
