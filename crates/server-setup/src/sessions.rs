//! The way to agents' sessions, and how their supervisor is set up.

#[cfg(all(feature = "sessions", unix))]
use crate::identity;
use crate::settings::Settings;
#[cfg(all(feature = "sessions", unix))]
use crate::settings::chain;
#[cfg(all(feature = "sessions", unix))]
use core_tools::sessions::{Again, Agents, Options, Owner, Sessions};
#[cfg(all(feature = "sessions", unix))]
use process_runner::{Runner, guardian::Guardian};
#[cfg(all(feature = "sessions", unix))]
use std::{path::PathBuf, sync::Arc, time::Duration};

/// The way to the sessions, where there are any.
#[cfg(all(feature = "sessions", unix))]
pub type SessionHandle = Sessions;

/// The way to the sessions, where there are none.
#[cfg(not(all(feature = "sessions", unix)))]
pub type SessionHandle = ();

/// The sessions of this user's state directory. Where nobody supervises them this server does, once they are asked for.
///
/// For one user its own end with it, by the guardian even if it is killed.
#[cfg(all(feature = "sessions", unix))]
pub fn of_one(settings: &Settings) -> SessionHandle {
    let own = settings.clone();
    supervised(settings, move || options(&own, Owner::Server))
}

#[cfg(not(all(feature = "sessions", unix)))]
/// There are none.
pub fn of_one(_: &Settings) -> SessionHandle {}

#[cfg(not(all(feature = "sessions", unix)))]
/// There are none.
pub fn of_many(
    _: &Settings,
    _: impl Fn() -> Result<Settings, String> + Send + Sync + 'static,
) -> SessionHandle {
}

/// The sessions of a server's many callers. It is as a daemon to them: they end when it is told to end, and what outlives
/// it otherwise is taken up by the next. `again` reads the settings again.
#[cfg(all(feature = "sessions", unix))]
pub fn of_many(
    settings: &Settings,
    again: impl Fn() -> Result<Settings, String> + Send + Sync + 'static,
) -> SessionHandle {
    let options = |settings: &Settings| {
        let mut options = options(settings, Owner::Daemon)?;
        options.strangers = true;
        Ok::<_, String>(options)
    };
    let (first, again) = (settings.clone(), Arc::new(again));
    supervised(settings, move || {
        let again = Arc::clone(&again);
        let mut supervised = options(&first)?;
        supervised.again = Some(Again::new(move || options(&again()?)));
        Ok(supervised)
    })
}

#[cfg(all(feature = "sessions", unix))]
fn supervised(
    settings: &Settings,
    options: impl Fn() -> Result<Options, String> + Send + Sync + 'static,
) -> SessionHandle {
    match state_folder(settings) {
        Ok(state) => Sessions::new(state, options),
        // The other tools need no such folder; who asks for sessions is told.
        Err(missing) => Sessions::new("/nonexistent", move || Err(missing.clone())),
    }
}

/// Where sessions are kept: what the configuration says, else `coretools/sessions` in `$XDG_STATE_HOME`, by default
/// `~/.local/state` (XDG Base Directory Specification).
///
/// # Errors
/// What is wrong, in words.
#[cfg(all(feature = "sessions", unix))]
pub fn state_folder(settings: &Settings) -> Result<PathBuf, String> {
    if let Some(folder) = settings.config.sessions.state_dir.as_ref() {
        return Ok(folder.clone());
    }
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")));
    let missing = "nowhere to keep sessions: set sessions.state_dir, XDG_STATE_HOME or HOME";
    Ok(state.ok_or(missing)?.join("coretools/sessions"))
}

/// How a supervisor of one's own is set up.
///
/// # Errors
/// What is wrong, in words.
#[cfg(all(feature = "sessions", unix))]
pub fn options(settings: &Settings, owner: Owner) -> Result<Options, String> {
    let Settings { config, redactor, secrets, withheld, .. } = settings;
    let sessions = &config.sessions;
    let agents = match sessions.agents.as_ref() {
        None => Agents::builtin(),
        Some(path) => {
            let text = identity::read(path)
                .map_err(|error| format!("cannot use sessions.agents {}: {error}", path.display()))?;
            Agents::with(Some((&path.display().to_string(), &text)))
        }
    };
    let max_sessions = usize::try_from(*sessions.max_sessions).unwrap_or(usize::MAX);
    let places = max_sessions.saturating_add(8);
    let mut runner = Runner::builder().secrets(secrets.clone()).withhold(withheld).max_concurrent(places);
    if owner == Owner::Server {
        let guardian = Guardian::current_exe()
            .map_err(|error| format!("cannot find out which file this program was started from: {error}"))?;
        runner = runner.guardian(guardian);
    }
    let agents = agents.map_err(|error| chain(&error))?;
    let mut options = Options::new(owner, runner.build(), redactor.clone(), agents);
    options.plan.resume_after_limit = *sessions.resume_after_limit;
    options.plan.renew_context = *sessions.renew_context;
    options.plan.restart_after_crash = *sessions.restart_after_crash;
    options.plan.base = Duration::from_millis(*sessions.backoff_base_ms);
    options.plan.cap = Duration::from_millis(*sessions.backoff_cap_ms);
    options.plan.attempts = u32::try_from(*sessions.max_attempts).unwrap_or(u32::MAX);
    options.command.clone_from(&sessions.command);
    options.watched.clone_from(&sessions.watch);
    options.logs.file_bytes = *sessions.log_bytes;
    options.max_sessions = max_sessions;
    options.max_per_caller = usize::try_from(*sessions.max_per_caller).unwrap_or(usize::MAX);
    options.manual_restart = Duration::from_secs(*sessions.manual_restart_s);
    if let Some(path) = config.policy.marker_key.as_ref() {
        let key = role_policy::source::read_key(path)
            .map_err(|error| format!("cannot use policy.marker_key {}: {error}", path.display()))?;
        options.marker_key = Some(key);
    }
    Ok(options)
}
