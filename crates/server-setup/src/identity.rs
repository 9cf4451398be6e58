//! The caller: the sources of its role, and the marker among them.

use std::path::PathBuf;

use role_policy::Policy;
use role_policy::source::{
    MarkerError, NamedRole, ResolvedCaller, RoleEvidence, RoleMarker, RoleSources, resolve,
};

use crate::settings::Settings;
use error_causes::chain;

/// Returns the caller, from everything that names its role. Each source and its role is logged.
pub fn caller(settings: &Settings, policy: &Policy) -> ResolvedCaller {
    let mut sources = RoleSources::default();
    let named = settings.config.roles.iter();
    sources.named =
        named.map(|role| NamedRole { source: role.source.to_string(), role: role.value.clone() }).collect();
    sources.command.clone_from(&settings.agent_command);
    sources.marker = marker(settings).transpose();
    match &settings.session {
        None => {}
        Some(Ok(identity)) => sources.named.extend(
            identity
                .roles
                .iter()
                .map(|role| NamedRole { source: "the session's credential".to_owned(), role: role.clone() }),
        ),
        // As with a marker: a caller with an invalid credential gets the least, not what it would have without one.
        Some(Err(reason)) => {
            tracing::warn!("the session's credential is not good: {}", chain(reason));
            let role = policy.minimal_role().to_owned();
            sources
                .named
                .push(NamedRole { source: "the session's credential, which is not good".to_owned(), role });
        }
    }
    let mut resolved = resolve(policy, &sources);
    if let Some(Ok(identity)) = &settings.session {
        resolved.caller = resolved.caller.with_session(identity.session_id.clone());
    }
    for RoleEvidence { source, role, distrust, .. } in &resolved.evidence {
        match distrust {
            Some(reason) => {
                tracing::warn!("the role from {source} is not used, and {role} instead: {reason}");
            }
            None => tracing::info!("role {role}, from {source}"),
        }
    }
    resolved
}

/// Reads the marker in the temporary folder that the session was given.
#[cfg(unix)]
fn marker(settings: &Settings) -> Result<Option<RoleMarker>, MarkerError> {
    use role_policy::source::{find_marker, read_key};
    // The key first: if it cannot be read, a marker that is not signed must not count either.
    let key = match settings.config.policy.marker_key.as_ref() {
        Some(path) => Some(read_key(path)?),
        None => None,
    };
    // Only a folder that is surely not there holds no marker. One that cannot be looked into may.
    let may_exist = |folder: &&PathBuf| !folder.is_absolute() || folder.try_exists().unwrap_or(true);
    let is_shared_memory =
        |folder: &PathBuf| folder.canonicalize().is_ok_and(|folder| folder.starts_with("/dev/shm"));
    if settings.temporary_folder.as_ref().is_some_and(is_shared_memory) {
        let reason = "its folder lies in /dev/shm, where every program may write".to_owned();
        return Err(MarkerError::Untrusted(reason));
    }
    match settings.temporary_folder.as_ref().filter(may_exist) {
        Some(folder) => find_marker(folder, key.as_deref(), std::time::SystemTime::now()),
        // Where there is no folder of the session's own, /tmp is everybody's, and no marker in it counts.
        _ if key.is_some() => Err(MarkerError::Missing),
        _ => Ok(None),
    }
}

#[cfg(not(unix))]
fn marker(settings: &Settings) -> Result<Option<RoleMarker>, MarkerError> {
    match settings.config.policy.marker_key.as_ref() {
        Some(_) => Err(MarkerError::Missing),
        None => Ok(None),
    }
}
