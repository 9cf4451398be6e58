//! The way to agents' sessions, and how their supervisor is set up.

use crate::error::Error;
use crate::settings::Settings;
#[cfg(all(feature = "sessions", unix))]
use crate::trusted_text;
#[cfg(all(feature = "sessions", unix))]
use core_tools::sessions::{
    AgentCatalog, SessionService, SupervisorHostKind, SupervisorOptions, SupervisorOptionsLoader,
};
#[cfg(all(feature = "sessions", unix))]
use process_runner::{Runner, guardian::GuardianProgram};
#[cfg(all(feature = "sessions", unix))]
use std::{path::PathBuf, sync::Arc, time::Duration};

/// The service for sessions, in a server that is built with them.
#[cfg(all(feature = "sessions", unix))]
pub type SessionHandle = SessionService;

/// The service for sessions, in a server that is built without them.
#[cfg(not(all(feature = "sessions", unix)))]
pub type SessionHandle = ();

/// Returns the service for the sessions in this user's state directory. If no supervisor runs, this server becomes the
/// supervisor with the first request.
///
/// The sessions of a server for one user end with the server. If the server is killed, the guardian ends the sessions.
#[cfg(all(feature = "sessions", unix))]
pub fn of_one(settings: &Settings) -> SessionHandle {
    let settings_copy = settings.clone();
    session_service(settings, move || options(&settings_copy, SupervisorHostKind::Server))
}

#[cfg(not(all(feature = "sessions", unix)))]
/// Returns nothing, as this server has no sessions.
pub fn of_one(_: &Settings) -> SessionHandle {}

#[cfg(not(all(feature = "sessions", unix)))]
/// Returns nothing, as this server has no sessions.
pub fn of_many(
    _: &Settings,
    _: impl Fn() -> Result<Settings, Error> + Send + Sync + 'static,
) -> SessionHandle {
}

/// Returns the service for the sessions of a server with many callers. The server of many callers is a daemon: sessions
/// end when the server is shut down. The next server adopts sessions that outlive the server otherwise.
/// `reload_settings` reads the settings again.
#[cfg(all(feature = "sessions", unix))]
pub fn of_many(
    settings: &Settings,
    reload_settings: impl Fn() -> Result<Settings, Error> + Send + Sync + 'static,
) -> SessionHandle {
    let options = |settings: &Settings| {
        let mut options = options(settings, SupervisorHostKind::Daemon)?;
        options.shared_server = true;
        Ok::<_, Error>(options)
    };
    let (first, reload_settings) = (settings.clone(), Arc::new(reload_settings));
    session_service(settings, move || {
        let reload_settings = Arc::clone(&reload_settings);
        let mut options_with_loader = options(&first)?;
        options_with_loader.loader =
            Some(SupervisorOptionsLoader::new(move || Ok(options(&reload_settings()?)?)));
        Ok(options_with_loader)
    })
}

#[cfg(all(feature = "sessions", unix))]
fn session_service(
    settings: &Settings,
    options: impl Fn() -> Result<SupervisorOptions, Error> + Send + Sync + 'static,
) -> SessionHandle {
    match state_folder(settings) {
        Ok(state) => SessionService::new(state, move || Ok(options()?)),
        // The other tools need no such folder. A request for sessions is answered with this error.
        Err(missing) => {
            let missing = Arc::new(missing);
            SessionService::new("/nonexistent", move || Err(Arc::clone(&missing).into()))
        }
    }
}

/// Returns the folder of the sessions: the configured one, else `coretools/sessions` in `$XDG_STATE_HOME`, by default
/// `~/.local/state` (XDG Base Directory Specification).
///
/// # Errors
/// Neither the configuration nor the environment names one.
#[cfg(all(feature = "sessions", unix))]
pub fn state_folder(settings: &Settings) -> Result<PathBuf, Error> {
    if let Some(folder) = settings.config.sessions.state_dir.as_ref() {
        return Ok(folder.clone());
    }
    // A relative path is ignored, as the specification demands. Here it would also give each folder that a server is
    // started in a supervisor of its own.
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")));
    Ok(state.ok_or(Error::NoStateFolder)?.join("coretools/sessions"))
}

/// Returns the options of a supervisor in this process.
///
/// # Errors
/// A file that the settings name cannot be used, or this program's own file cannot be found.
#[cfg(all(feature = "sessions", unix))]
pub fn options(settings: &Settings, host: SupervisorHostKind) -> Result<SupervisorOptions, Error> {
    let Settings { config, redactor, secrets, withheld, .. } = settings;
    let sessions = &config.sessions;
    let agents = match sessions.agents.as_ref() {
        None => AgentCatalog::builtin(),
        Some(path) => {
            let text = trusted_text::read(path).map_err(|source| Error::File {
                role: "sessions.agents",
                path: path.clone(),
                source,
            })?;
            AgentCatalog::with_file(&path.display().to_string(), &text)
        }
    };
    let max_sessions = usize::try_from(*sessions.max_sessions).unwrap_or(usize::MAX);
    let max_processes = max_sessions.saturating_add(8);
    let mut runner =
        Runner::builder().secrets(secrets.clone()).withhold(withheld).max_concurrent(max_processes);
    // A daemon has no guardian: its sessions outlive it, and the next daemon adopts them.
    if host == SupervisorHostKind::Server {
        let guardian = GuardianProgram::current_exe().map_err(Error::CurrentExecutable)?;
        runner = runner.guardian(guardian);
    }
    let mut options = SupervisorOptions::new(host)?;
    (options.runner, options.redactor, options.agents) = (runner.build(), redactor.clone(), agents?);
    options.restart.resume_after_limit = *sessions.resume_after_limit;
    options.restart.renew_context = *sessions.renew_context;
    options.restart.restart_after_crash = *sessions.restart_after_crash;
    options.restart.backoff_base = Duration::from_millis(*sessions.backoff_base_ms);
    options.restart.backoff_cap = Duration::from_millis(*sessions.backoff_cap_ms);
    options.restart.max_attempts = u32::try_from(*sessions.max_attempts).unwrap_or(u32::MAX);
    options.command.clone_from(&sessions.command);
    options.watched_folders.clone_from(&sessions.watch);
    options.logs.file_bytes = *sessions.log_bytes;
    options.max_sessions = max_sessions;
    options.max_per_caller = usize::try_from(*sessions.max_per_caller).unwrap_or(usize::MAX);
    options.manual_restart = Duration::from_secs(*sessions.manual_restart_s);
    if let Some(path) = config.policy.marker_key.as_ref() {
        let key = role_policy::source::read_key(path)
            .map_err(|problem| Error::MarkerKey { path: path.clone(), problem })?;
        options.marker_key = Some(key);
    }
    Ok(options)
}
