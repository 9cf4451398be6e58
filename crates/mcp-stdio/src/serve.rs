//! The server's life: up, until the client or a signal ends it, and down with everything it started.

use crate::identity;
use crate::setup::Server;
use crate::transport::Stdio;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use std::process::ExitCode;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What commands get to end by themselves once the server has to.
const GRACE: Duration = Duration::from_millis(250);

/// From the moment the server has to end to the moment it has. What cannot be ended by then is ended by the
/// guardian, which outlives this process.
const LAST: Duration = Duration::from_millis(650);

/// Serves until the client is gone or a signal comes.
pub(crate) async fn serve(server: Server) -> ExitCode {
    let ending = CancellationToken::new();
    let signals = tokio::spawn(signals(ending.clone()));
    let runner = server.runner.clone();
    let reloads = server.policy_file.clone().map(|path| {
        let host = server.host.clone();
        let apply = move |policy| host.replace_policy(policy);
        let (workspace, effects) = server.checked.clone();
        let caller = server.caller.clone();
        let check = move |policy: &_| identity::check_places(policy, &caller, &workspace, &effects);
        tokio::spawn(identity::watch(path, server.facts.clone(), check, apply))
    });
    let commands_end = {
        let ending = ending.clone();
        let sessions = server.sessions.clone();
        tokio::spawn(async move {
            ending.cancelled().await;
            #[cfg(all(feature = "sessions", unix))]
            tokio::join!(runner.shutdown(GRACE), sessions.shutdown(GRACE));
            #[cfg(not(all(feature = "sessions", unix)))]
            {
                let () = sessions;
                runner.shutdown(GRACE).await;
            }
        })
    };
    let last_moment = {
        let ending = ending.clone();
        async move {
            ending.cancelled().await;
            tokio::time::sleep(LAST).await;
        }
    };
    let connection = async {
        let running =
            match server.connection().serve_with_ct(Stdio::new(ending.clone()), ending.clone()).await {
                Ok(running) => running,
                // The client went away, or a signal came, before it had said what it wants.
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
                tracing::error!(%error, "the server broke");
                ExitCode::FAILURE
            }
        }
    };
    let down = async {
        let code = connection.await;
        ending.cancel();
        if let Err(error) = commands_end.await {
            tracing::error!(%error, "commands may have been left running");
        }
        code
    };
    let code = tokio::select! {
        code = down => code,
        () = last_moment => {
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

/// Waits for the first signal that asks the server to end.
#[cfg(unix)]
pub(crate) async fn signals(ending: CancellationToken) {
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

#[cfg(not(unix))]
pub(crate) async fn signals(ending: CancellationToken) {
    if tokio::signal::ctrl_c().await.is_ok() {
        ending.cancel();
    }
}
