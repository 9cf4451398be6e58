//! Serving, from the first connection to the end.

#[cfg(feature = "sessions")]
use super::adopted_agents;
use super::reload::{watch_files, watch_policy, write_token_usage};
use super::service_manager::ServiceManager;
use super::startup::{BoundServer, SettingsReader};
use super::{audit_database, exposure};
use crate::activity::sample_continuously;
use crate::audit_store::{AuditStore, AuditWriter};
use crate::error::Error;
use crate::lease_store;
use crate::telemetry::RequestTracer;
use server_setup::settings::Settings;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

/// The time that programs have to end by themselves when the server has to.
const PROGRAMS_GRACE: Duration = Duration::from_millis(250);
/// The time that agents have to end by themselves.
#[cfg(feature = "sessions")]
const AGENTS_GRACE: Duration = Duration::from_secs(5);
/// The time that the last answers have to be sent: a call that is cancelled says what it had done. On an idle machine they are
/// sent at once.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// The time that the last calls have to be recorded once their programs are gone.
const LAST_RECORDS: Duration = Duration::from_secs(1);

/// Serves until a signal comes.
///
/// # Errors
/// The server could not start.
pub(crate) async fn serve(
    settings: Settings,
    reread: SettingsReader,
    tracer: Option<RequestTracer>,
) -> Result<ExitCode, Error> {
    exposure::check_secret_files(&settings, &settings.config.http)?;
    let location = audit_database::location(&settings.config.http)?;
    lease_store::open(&settings, location.as_deref()).await?;
    let (audit_store, writer) = match location {
        None => (None, None),
        Some(location) => {
            let (store, writer) = AuditStore::open(&location).await?;
            (Some(store), Some(writer))
        }
    };
    let served = match BoundServer::new(settings, reread, audit_store.clone(), tracer) {
        Ok(server) => run(server).await,
        Err(error) => Err(error),
    };
    // Last, because the calls that end during the shutdown are rows as well.
    if let Some(store) = audit_store {
        store.end();
    }
    if let Some(writer) = writer {
        AuditWriter::close(writer).await;
    }
    served
}

/// Listens, and shuts down after a signal.
async fn run(server: BoundServer) -> Result<ExitCode, Error> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::Signals)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(Error::Signals)?;
    let app = server.app;
    let connections = TaskTracker::new();
    let listening = TaskTracker::new();
    for (listener, router) in server.listeners {
        let serving = listener.serve(app, router, server.connection_settings.clone(), connections.clone());
        listening.spawn(serving);
    }
    let reload = Arc::new(Notify::new());
    let manager = ServiceManager::from_environment();
    let files = tokio::spawn(watch_files(app, server.files, Arc::clone(&reload), manager.clone()));
    let sampler = tokio::spawn(sample_continuously(app));
    let policy = server.policy.map(|path| tokio::spawn(watch_policy(app, path)));
    #[cfg(feature = "sessions")]
    let agents = app.workspaces.agents.clone();
    #[cfg(feature = "sessions")]
    tokio::spawn(adopted_agents::adopt(app));
    #[cfg(feature = "remotes")]
    app.workspaces.start_warm_remotes();
    // The sockets are bound and the tasks that accept run, so a client may connect from here on.
    manager.ready();
    let name = loop {
        tokio::select! {
            _ = terminate.recv() => break "SIGTERM",
            _ = interrupt.recv() => break "SIGINT",
            _ = hangup.recv() => reload.notify_one(),
        }
    };
    tracing::info!(name, "shutting down");
    manager.stopping();
    app.ready.store(false, Ordering::Relaxed);
    // No new connections; streams end; calls that run have some time to end by themselves.
    app.shutting_down.cancel();
    listening.close();
    connections.close();
    listening.wait().await;
    tokio::select! {
        () = connections.wait() => {}
        () = tokio::time::sleep(server.drain_timeout) => {}
        // A second signal means now.
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    // Cancels every call that is left; each still answers with what it had done.
    app.authenticator.revoke_all();
    tokio::select! {
        () = connections.wait() => {}
        () = tokio::time::sleep(LAST_ANSWERS) => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    server.cut_off.cancel();
    // After the answers were cut off, so that no call can start another program.
    #[cfg(feature = "remotes")]
    app.workspaces.end_remotes(PROGRAMS_GRACE).await;
    app.workspaces.runner.shutdown(PROGRAMS_GRACE).await;
    #[cfg(feature = "sessions")]
    agents.shutdown(AGENTS_GRACE).await;
    // A call may outlive its connection. What it did is recorded before the records are closed.
    let _ = tokio::time::timeout(LAST_RECORDS, app.admission.drained()).await;
    files.abort();
    sampler.abort();
    write_token_usage(app, &app.authenticator.tokens(), true);
    if let Some(policy) = policy {
        policy.abort();
    }
    Ok(ExitCode::SUCCESS)
}
