//! The files that tools may not write, and those that only the server may read.

use std::path::{Path, PathBuf};

use core_tools::workspace::Workspace;
use role_policy::source::MARKER_NAMES;

use crate::client_settings;
use crate::config::Setting;
use crate::error::Error;
use crate::real_paths::with_real_paths;
use crate::settings::Settings;

/// Refuses a key that lies in a root: a tool could read it there, and its caller sign any role.
///
/// # Errors
/// It does.
pub fn check_marker_key(settings: &Settings, workspace: &Workspace) -> Result<(), Error> {
    let Some(key) = settings.config.policy.marker_key.as_ref() else { return Ok(()) };
    // A key that does not exist signs nothing, and the caller is in the minimal role.
    let Ok(real) = key.canonicalize() else { return Ok(()) };
    if workspace.roots().any(|root| real.starts_with(root)) {
        return Err(Error::MarkerKeyInRoot { path: key.clone() });
    }
    // The folders that a confined program may read beside its roots.
    const READABLE: [&str; 8] = ["/usr", "/bin", "/lib", "/lib64", "/etc", "/opt", "/nix", "/dev"];
    if READABLE.iter().any(|folder| real.starts_with(folder)) {
        return Err(Error::MarkerKeyReadable { path: key.clone() });
    }
    Ok(())
}

/// Returns the files that decide what tools may do, which no tool may write.
pub fn protected(settings: &Settings) -> Vec<PathBuf> {
    let policy = &settings.config.policy;
    let http = &settings.config.http;
    let named = [
        &policy.file,
        &policy.marker_key,
        &policy.audit,
        &http.tokens,
        &http.token_usage,
        &http.tls_certificate,
        &http.tls_key,
    ]
    .into_iter()
    .filter_map(|file: &Setting<_>| file.value.clone());
    let mut files: Vec<PathBuf> = settings.config.file.iter().cloned().chain(named).collect();
    if let Some(audit) = policy.audit.as_ref() {
        // Rotated audits too, or a tool could rewrite what was recorded.
        files.extend(rotated_audits(audit));
    }
    if let Some(folder) = settings.temporary_folder.as_ref().filter(|folder| folder.is_absolute()) {
        // The markers name the role: a tool that could write one would choose the role of the next server.
        files.extend(MARKER_NAMES.iter().map(|name| folder.join(name)));
        files.push(folder.join(role_policy::source::SESSION_MARKER_NAME));
    }
    files.extend(client_settings::installed_settings(&settings.roots));
    with_real_paths(files)
}

fn rotated_audits(audit: &Path) -> impl Iterator<Item = PathBuf> {
    (1..=core_tools::mcp::Audit::ROTATED_FILES).map(|number| with_suffix(audit, &format!(".{number}")))
}

/// Returns the path of the file on which the lock of the file at `path` is.
pub fn lock_path(path: &Path) -> PathBuf {
    with_suffix(path, ".lock")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns the files that the server alone reads. The policy and the marker key are not among them, because the servers
/// of agents in sessions read them too.
///
/// A program that can open a file can also lock that file (flock(2)), which would stop the audit and each change of a token.
/// Therefore the files for locks are among them as well.
pub(crate) fn server_only(settings: &Settings) -> Vec<PathBuf> {
    let http = &settings.config.http;
    // A database's address has its password in it, unless it is a variable's.
    let has_password = http.audit_database.as_deref().is_some_and(|place| !place.starts_with('$'));
    let config = settings.config.file.clone().filter(|_| has_password);
    let mut files: Vec<PathBuf> = config.into_iter().chain(http.tls_key.value.clone()).collect();
    for replaced in [&http.tokens.value, &http.token_usage.value].into_iter().flatten() {
        files.extend([replaced.clone(), lock_path(replaced)]);
    }
    if let Some(audit) = settings.config.policy.audit.as_ref() {
        files.push(audit.clone());
        files.extend(rotated_audits(audit));
    }
    files
}
