//! Serving: until the client goes or a signal comes, and then down with everything that was started.

use crate::served_remotes::ServedRemotes;
use crate::transport::StdioTransport;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use server_setup::policy;
use server_setup::setup::LocalServer;
use std::process::ExitCode;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The time that commands have to end by themselves once the server ends.
pub(crate) const COMMAND_GRACE: Duration = Duration::from_millis(250);

/// The time from the signal or the end of input to the end of the process: a client waits for about a second before it
/// kills. What has not ended by then is left to the guardian, which outlives this process. A client that still reads answers
/// gets the rest of them.
pub(crate) const SHUTDOWN_LIMIT: Duration = Duration::from_millis(650);

/// The last part of that time. A client that reads nothing in it reads no more.
const LAST_READ: Duration = Duration::from_millis(300);

/// Serves until the client is gone or a signal comes.
pub(crate) async fn serve(server: LocalServer) -> ExitCode {
    let ending = CancellationToken::new();
    // A task of its own, so that a signal is seen while the connection is still being made.
    let signals = tokio::spawn(cancel_on_signal(ending.clone()));
    let runner = server.runner.clone();
    ServedRemotes::of(&server).start_warm();
    let reloads = server.policy_file.clone().map(|path| {
        let host = server.host.clone();
        let (remotes, changed) = (ServedRemotes::of(&server), path.clone());
        let apply = move |policy| {
            host.replace_policy(policy);
            remotes.policy_has_changed(&changed);
        };
        let policy_check = server.policy_check.clone();
        let check = move |policy: &_| policy_check.check(policy);
        tokio::spawn(policy::watch(path, server.facts.clone(), check, apply))
    });
    // Begins with `ending` and not after the connection: both have the same short time.
    let commands_ended = {
        let ending = ending.clone();
        let sessions = server.sessions.clone();
        let remotes = ServedRemotes::of(&server);
        tokio::spawn(async move {
            ending.cancelled().await;
            // First: what was created is destroyed by commands.
            remotes.end(shutdown_limit(&remotes), COMMAND_GRACE).await;
            #[cfg(all(feature = "sessions", unix))]
            tokio::join!(runner.shutdown(COMMAND_GRACE), sessions.shutdown(COMMAND_GRACE));
            #[cfg(not(all(feature = "sessions", unix)))]
            {
                let () = sessions;
                runner.shutdown(COMMAND_GRACE).await;
            }
        })
    };
    let transport = StdioTransport::new(ending.clone());
    let shutdown_deadline = {
        let (ending, progress) = (ending.clone(), transport.write_progress());
        let remotes = ServedRemotes::of(&server);
        async move {
            ending.cancelled().await;
            // Asked only now: a caller may have chosen remotes meanwhile.
            tokio::time::sleep(shutdown_limit(&remotes).saturating_sub(LAST_READ)).await;
            progress.stalled(LAST_READ).await;
        }
    };
    let connection = async {
        let running = match server.connection().serve_with_ct(transport, ending.clone()).await {
            Ok(running) => running,
            // The client went away, or a signal came, before it was initialized.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
                return ExitCode::SUCCESS;
            }
            Err(error) => {
                tracing::error!(%error, "cannot serve");
                return ExitCode::FAILURE;
            }
        };
        match running.waiting().await {
            Ok(_) => ExitCode::SUCCESS,
            Err(error) => {
                tracing::error!(%error, "the server ended by an error");
                ExitCode::FAILURE
            }
        }
    };
    let served = async {
        let code = connection.await;
        ending.cancel();
        // Without this, the process could be gone before its commands are.
        if let Err(error) = commands_ended.await {
            tracing::error!(%error, "commands may have been left running");
        }
        code
    };
    let code = tokio::select! {
        code = served => code,
        () = shutdown_deadline => {
            tracing::warn!("something did not end in time; leaving it to the guardian");
            ExitCode::SUCCESS
        }
    };
    signals.abort();
    if let Some(reloads) = reloads {
        reloads.abort();
    }
    code
}

/// Returns the time from the signal or the end of input to the end of the process. Destroying what was created for a remote
/// may take longer than ending commands; if the client does not wait, the next server destroys it.
fn shutdown_limit(remotes: &ServedRemotes) -> Duration {
    /// The time that an engine has to destroy a container or to cancel a job.
    const DESTROY_LIMIT: Duration = Duration::from_secs(20);
    if remotes.have_leases() { DESTROY_LIMIT } else { SHUTDOWN_LIMIT }
}

/// Cancels `ending` at the first signal that asks a process to end.
#[cfg(unix)]
pub(crate) async fn cancel_on_signal(ending: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt), Ok(mut hangup)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()), signal(SignalKind::hangup()))
    else {
        tracing::error!("cannot wait for signals; end of input still ends the server");
        return;
    };
    let name = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
        _ = hangup.recv() => "SIGHUP",
    };
    tracing::info!(name, "ending");
    ending.cancel();
}

/// Cancels `ending` at the first signal that asks a process to end.
#[cfg(not(unix))]
pub(crate) async fn cancel_on_signal(ending: CancellationToken) {
    if tokio::signal::ctrl_c().await.is_ok() {
        ending.cancel();
    }
}
