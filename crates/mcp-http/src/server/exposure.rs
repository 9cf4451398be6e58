//! Checks, before the server listens, that the configuration admits only identified callers and keeps secrets out of
//! the roots.

use super::audit_database::{self, UnsetVariableError};
use crate::console_output::name;
use crate::net::address::ListenAddress;
use crate::workspaces::Workspaces;
use server_setup::config::HttpTable;
use server_setup::settings::Settings;
use std::path::{Path, PathBuf};

/// The error of a configuration with which callers could do what they should not.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExposureError {
    #[error(
        "no caller could be identified: make a token (`{} --tokens FILE token new --name NAME --role ROLE`) and name its \
         file with --tokens",
        name()
    )]
    NoCallers,
    #[error("http.metrics_listen: {0} is not on loopback, and callers are not identified there")]
    PublicMetrics(ListenAddress),
    #[error("http.anonymous_role lets in everybody who can connect, and others can through {way}")]
    PublicAnonymous { way: String },
    #[error(
        "{public} can be reached from other machines, and callers could not be identified: give --tokens"
    )]
    PublicWithoutTokens { public: String },
    #[error(
        "{public} can be reached from other machines, and tokens could be read on their way: give --tls-certificate and \
         --tls-key, or the addresses of the proxies in front with --behind-proxy"
    )]
    PublicWithoutTls { public: String },
    #[error(transparent)]
    AuditDatabase(#[from] UnsetVariableError),
    #[error(
        "{key} {} lies in a root, where the programs of callers can reach it; keep it elsewhere, such as in ~/.config/{}",
        .path.display(),
        name()
    )]
    FileInRoot { key: &'static str, path: PathBuf },
    #[error("the policy declares no role `{role}`; it has {declared}")]
    Role { role: String, declared: String },
}

/// Refuses a configuration that lets in callers who are not identified, or sends tokens where others can read them.
pub(crate) fn check_listeners(
    http: &HttpTable,
    addresses: &[ListenAddress],
    metrics: Option<&ListenAddress>,
    has_tls: bool,
    has_jwts: bool,
) -> Result<(), ExposureError> {
    let has_tokens = http.tokens.is_some() || has_jwts;
    if !has_tokens && http.anonymous_role.is_none() && http.peers.is_empty() {
        return Err(ExposureError::NoCallers);
    }
    if let Some(metrics) = metrics.filter(|metrics| !metrics.is_local()) {
        return Err(ExposureError::PublicMetrics(metrics.clone()));
    }
    let public: Vec<String> =
        addresses.iter().filter(|address| !address.is_local()).map(ToString::to_string).collect();
    let proxied = !http.behind_proxy.is_empty();
    if http.anonymous_role.is_some() && (!public.is_empty() || proxied) {
        let way = if proxied { "a proxy".to_owned() } else { public.join(", ") };
        return Err(ExposureError::PublicAnonymous { way });
    }
    if public.is_empty() {
        return Ok(());
    }
    let public = public.join(", ");
    if !has_tokens {
        return Err(ExposureError::PublicWithoutTokens { public });
    }
    if !has_tls && !proxied {
        return Err(ExposureError::PublicWithoutTls { public });
    }
    Ok(())
}

/// Refuses files in a root with which a caller could act as another: it could read or write them.
pub(crate) fn check_secret_files(settings: &Settings, http: &HttpTable) -> Result<(), ExposureError> {
    // The keys may be at a URL, which is no file.
    let keys = http.jwt_keys.as_ref().filter(|place| !place.contains("://")).map(PathBuf::from);
    let database = audit_database::location(http)?;
    let database = database.as_deref().and_then(|place| place.strip_prefix("sqlite:")).map(PathBuf::from);
    let named = [
        ("http.audit_database", database),
        ("http.tokens", http.tokens.value.clone()),
        ("http.token_usage", http.token_usage.value.clone()),
        ("http.tls_key", http.tls_key.value.clone()),
        ("http.jwt_keys", keys),
        ("policy.file", settings.config.policy.file.value.clone()),
        ("policy.audit", settings.config.policy.audit.value.clone()),
    ];
    for (key, path) in named {
        if let Some(path) = path {
            check_outside_roots(settings, key, &path)?;
        }
    }
    Ok(())
}

/// Refuses a file that lies in a root.
pub(crate) fn check_outside_roots(
    settings: &Settings,
    key: &'static str,
    path: &Path,
) -> Result<(), ExposureError> {
    // A file that does not exist yet will be where its folder is.
    let folder = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    let real = path.canonicalize().ok().or_else(folder);
    // Nor may that folder exist: then it will be where the path says.
    let real = real.or_else(|| std::path::absolute(path).ok()).unwrap_or_else(|| path.to_owned());
    let inside = |root: &PathBuf| root.canonicalize().is_ok_and(|root| real.starts_with(root));
    match settings.roots.iter().any(inside) {
        true => Err(ExposureError::FileInRoot { key, path: real }),
        false => Ok(()),
    }
}

/// Refuses a role that is given to callers and that the policy does not declare: they would get the minimal role, and nobody
/// would know why.
pub(super) fn check_roles(workspaces: &Workspaces, http: &HttpTable) -> Result<(), ExposureError> {
    let policy = workspaces.full_host().policy();
    let peers = http.peers.iter().filter_map(|peer| Some(peer.split_once('=')?.1.trim()));
    let rules = http.jwt_roles.iter().filter_map(|rule| Some(rule.rsplit_once(':')?.1));
    let given = peers.chain(rules).chain(http.anonymous_role.as_deref());
    match given.into_iter().find(|role| !policy.declares(role)) {
        None => Ok(()),
        Some(role) => {
            let roles: Vec<&str> = policy.roles().collect();
            Err(ExposureError::Role { role: role.to_owned(), declared: roles.join(", ") })
        }
    }
}
