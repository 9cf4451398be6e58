//! Reading files again that have changed: tokens, certificates, the keys of JWTs and the policy.

use super::revocation::end_programs_of;
use super::service_manager::ServiceManager;
use crate::app_state::App;
use crate::auth::jwt::JwtVerifier;
use crate::auth::tokens::ActiveTokens;
use crate::auth::tracked_tokens::TrackedTokens;
use crate::console_output::name;
use crate::limits::caller_limits::CallerLimits;
use crate::net::tls::ReloadableTls;
use crate::operator_actions;
use error_causes::chain;
use server_setup::config::HttpTable;
use server_setup::file_stamp::{FileStamp, file_stamp};
use server_setup::policy;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;

/// The time within which a change of a file is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The time after which keys that are at a URL are fetched again.
const KEYS_INTERVAL: Duration = Duration::from_secs(600);

/// The files that are read again when they change.
pub(super) struct WatchedFiles {
    pub(super) stamps: FileStamps,
    pub(super) tokens: Option<TrackedTokens>,
    /// The limits of tokens that have none of their own.
    pub(super) limits: CallerLimits,
    pub(super) tls: Option<Arc<ReloadableTls>>,
    pub(super) jwts: Option<Arc<JwtVerifier>>,
}

/// The state of the files at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileStamps {
    tokens: Option<FileStamp>,
    certificate: Option<FileStamp>,
    key: Option<FileStamp>,
    jwt_keys: Option<FileStamp>,
}

impl FileStamps {
    /// Looks at the files that `http` names. The server does so before it reads them, so that a change while it starts is
    /// noticed.
    pub(super) fn of_config(http: &HttpTable) -> Self {
        let stamp = |path: Option<&Path>| path.and_then(file_stamp);
        Self {
            tokens: stamp(http.tokens.value.as_deref()),
            certificate: stamp(http.tls_certificate.value.as_deref()),
            key: stamp(http.tls_key.value.as_deref()),
            jwt_keys: stamp(http.jwt_keys.value.as_deref().map(Path::new)),
        }
    }
}

impl WatchedFiles {
    fn stamps_now(&self) -> FileStamps {
        let stamp = |path: Option<&PathBuf>| path.and_then(|path| file_stamp(path));
        let tls = self.tls.as_ref();
        FileStamps {
            tokens: self.tokens.as_ref().and_then(|tokens| file_stamp(tokens.path())),
            certificate: stamp(tls.map(|tls| &tls.certificate)),
            key: stamp(tls.map(|tls| &tls.key)),
            jwt_keys: stamp(self.jwts.as_ref().and_then(|jwts| jwts.key_file())),
        }
    }
}

/// Reads files again when they change or when `reload` asks for it, and ends what may not go on.
pub(super) async fn watch_files(
    app: App,
    mut files: WatchedFiles,
    reload: Arc<Notify>,
    manager: ServiceManager,
) {
    let mut polls = tokio::time::interval(POLL_INTERVAL);
    // After a pause, one look finds everything that has changed; there is nothing to catch up with.
    polls.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut key_fetches = tokio::time::interval(KEYS_INTERVAL);
    let mut warned = HashSet::new();
    loop {
        let reload_all = tokio::select! {
            _ = polls.tick() => false,
            () = reload.notified() => true,
            _ = key_fetches.tick() => {
                if let Some(jwts) = files.jwts.clone().filter(|jwts| jwts.key_file().is_none()) {
                    // The fetch blocks, and an issuer that does not answer must not delay the other files.
                    tokio::task::spawn_blocking(move || log_reload("keys", jwts.reload()));
                }
                false
            }
        };
        if reload_all {
            manager.reloading();
            #[cfg(feature = "sessions")]
            if let Err(error) = app.workspaces.agents.reload().await {
                tracing::error!("agents' sessions: {error}");
            }
        }
        // The stamps are taken before the files are read: a change in between is found by the next poll.
        let (before, now) = (std::mem::take(&mut files.stamps), files.stamps_now());
        if (reload_all || before.tokens != now.tokens)
            && let Some(tokens) = &mut files.tokens
        {
            reload_tokens(app, tokens, &files.limits);
        }
        if (reload_all || before.certificate != now.certificate || before.key != now.key)
            && let Some(tls) = &files.tls
        {
            log_reload("certificate", tls.reload());
        }
        if (reload_all || before.jwt_keys != now.jwt_keys)
            && let Some(jwts) = files.jwts.clone().filter(|jwts| jwts.key_file().is_some())
        {
            tokio::task::spawn_blocking(move || log_reload("keys", jwts.reload()));
        }
        files.stamps = now;
        // Tokens expire without a change of their file.
        let tokens = app.authenticator.tokens();
        end_programs_of(app, tokens.revoke_missing(&tokens));
        warn_of_ends(&tokens, &mut warned);
        write_token_usage(app, &tokens, false);
        app.sessions.sweep().await;
        if reload_all {
            manager.ready();
        }
    }
}

/// Writes the last uses of tokens, if there is a file for them. Calls go on where that fails.
pub(super) fn write_token_usage(app: App, tokens: &ActiveTokens, is_last: bool) {
    let Some(writer) = &app.token_usage else { return };
    let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_last && writer.has_just_written() {
        return;
    }
    if let Err(error) = writer.write(tokens.uses(), &tokens.names()) {
        tracing::error!("{}", chain(&error));
    }
}

/// Says once of each token that ends soon that it does.
fn warn_of_ends(tokens: &ActiveTokens, warned: &mut HashSet<(Arc<str>, SystemTime)>) {
    let now = SystemTime::now();
    for token in tokens.valid() {
        if let Some(left) = token.ends_soon(now)
            && let Some(end) = token.expires_at
            && warned.insert((Arc::clone(&token.name), end))
        {
            let hours = left.as_secs().div_ceil(3600);
            tracing::warn!(
                "the token {0} ends within {hours} h; `{1} token rotate {0}` gives it a new secret",
                token.name,
                name()
            );
        }
    }
}

fn reload_tokens(app: App, file: &mut TrackedTokens, limits: &CallerLimits) {
    let before = app.authenticator.tokens();
    match file.load(limits, &before) {
        Ok(tokens) => {
            let tokens = Arc::new(tokens);
            app.authenticator.replace_tokens(Arc::clone(&tokens));
            // A token that was rotated or has ended is not revoked.
            let mut revoked = before.names_missing_in(&tokens);
            revoked.retain(|name| before.has_name(name));
            end_programs_of(app, before.revoke_missing(&tokens));
            operator_actions::note_revoked_in_file(app, &revoked);
            app.workspaces.retain(&tokens.roots().cloned().collect::<Vec<_>>());
            tracing::warn!("the tokens {} were read again", file.path().display());
        }
        Err(error) => {
            tracing::error!("the changed tokens are not used, and those before stay: {}", chain(&error));
        }
    }
}

fn log_reload(what: &str, reloaded: Result<(), impl std::error::Error>) {
    match reloaded {
        Ok(()) => tracing::info!("the {what} was read again"),
        Err(error) => {
            tracing::error!("the changed {what} is not used, and the one before stays: {}", chain(&error));
        }
    }
}

/// Replaces the policy when its file changes.
pub(super) async fn watch_policy(app: App, path: PathBuf) {
    let host = app.workspaces.full_host().clone();
    let facts = app.workspaces.facts.clone();
    let check = |policy: &role_policy::Policy| app.workspaces.check_policy(policy);
    #[cfg(feature = "remotes")]
    let file = path.clone();
    let apply = move |policy| {
        host.replace_policy(policy);
        #[cfg(feature = "remotes")]
        app.workspaces.policy_has_changed(&file);
    };
    policy::watch(path, facts, check, apply).await;
}
