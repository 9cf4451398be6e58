//! `mcp-http init`: everything that a first server needs, in one folder.

mod error;
mod owner;
mod paths;
mod texts;

pub(crate) use error::InitError;

use super::token;
use crate::cli::InitArgs;
use crate::console_output::{print, say};
use crate::net::address::ListenAddress;
use crate::server::exposure;
use owner::FileOwner;
use paths::InitPaths;
use server_setup::protected_files::lock_path;
use server_setup::settings::Settings;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes a configuration, a policy, the tokens with a first one, and the unit. Prints the token to standard output, and what
/// to do with all this to standard error.
pub(crate) fn run(settings: &Settings, arguments: &InitArgs) -> Result<ExitCode, InitError> {
    let folder = std::path::absolute(&arguments.folder)
        .map_err(|source| InitError::Folder { path: arguments.folder.clone(), source })?;
    let paths = InitPaths::new(&folder);
    check(settings, arguments, &folder, &paths)?;
    let owner = FileOwner::named(arguments.user.as_deref())?;
    let program = std::env::current_exe().map_err(InitError::Program)?;
    make_folder(&folder, &owner)?;
    if !paths.unit_makes_logs {
        make_folder(&paths.logs, &owner)?;
    }
    let mut files = InitFiles::default();
    files.write(&paths.config, &texts::configuration(settings, arguments, &paths), &owner)?;
    files.write(&paths.policy, role_policy::BUILTIN, &owner)?;
    // The lock beside it, too: whoever makes the next token opens it.
    let tokens = [paths.tokens.clone(), lock_path(&paths.tokens)];
    files.0.extend(tokens.iter().cloned());
    let secret = token::create_first(&paths.tokens, &arguments.name, &arguments.role)?;
    for path in &tokens {
        owner.give(path)?;
    }
    files.write(&paths.unit, &texts::unit(settings, &paths, &program, &owner), &owner)?;
    files.0.clear();
    say(&texts::next_steps(arguments, &paths, &owner, &program));
    Ok(print(&secret)?)
}

/// Refuses before anything is written: half of a configuration would be in the way of the next attempt.
fn check(
    settings: &Settings,
    arguments: &InitArgs,
    folder: &Path,
    paths: &InitPaths,
) -> Result<(), InitError> {
    for path in [&paths.config, &paths.policy, &paths.tokens, &paths.unit] {
        if path.symlink_metadata().is_ok() {
            return Err(InitError::Exists(path.clone()));
        }
    }
    for root in &settings.roots {
        if !root.is_dir() {
            return Err(InitError::Root(root.clone()));
        }
    }
    exposure::check_outside_roots(settings, "--folder", folder)?;
    let address = ListenAddress::parse(&arguments.listen)?;
    if !address.is_local() {
        return Err(InitError::PublicAddress(arguments.listen.clone()));
    }
    token::check_new(settings, &arguments.name, &arguments.role)?;
    Ok(())
}

fn make_folder(path: &Path, owner: &FileOwner) -> Result<(), InitError> {
    if path.is_dir() {
        return Ok(());
    }
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| InitError::Folder { path: path.to_owned(), source })?;
    owner.give(path)
}

/// The files that were written. Dropping it removes them: half of a set-up would be in the way of the next attempt.
#[derive(Default)]
struct InitFiles(Vec<PathBuf>);

impl InitFiles {
    /// Writes a file that only its owner can read. One that is there is an error.
    #[allow(clippy::disallowed_methods, reason = "the operator names the folder, and no client reaches it")]
    fn write(&mut self, path: &Path, text: &str, owner: &FileOwner) -> Result<(), InitError> {
        let failed = |source| InitError::Write { path: path.to_owned(), source };
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        // Only now: one that was there is somebody else's.
        self.0.push(path.to_owned());
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        owner.give(path)
    }
}

impl Drop for InitFiles {
    #[allow(clippy::disallowed_methods, reason = "files that it has made itself")]
    fn drop(&mut self) {
        for path in &self.0 {
            // The reason why the set-up failed is what the operator needs to know.
            let _ = std::fs::remove_file(path);
        }
    }
}
