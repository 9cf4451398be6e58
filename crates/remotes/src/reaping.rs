//! The background task that destroys what killed servers have left behind.

use crate::lease::LeaseRegistry;
use crate::settings::RemoteSettings;
use error_causes::chain;
use process_runner::{CancellationToken, Runner};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time until a folder of leases is looked at again, by the next remote that is connected.
const PAUSE: Duration = Duration::from_secs(60);

/// The time between two looks for what was being created when its server was killed.
const UNSETTLED_PAUSE: Duration = Duration::from_secs(20);

/// The looks of one task.
const MAX_LOOKS: u32 = 20;

/// The time of one look. An engine may hang.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// The tasks of this process, one for each registry of leases: with one for each remote, every caller would start the commands
/// of all engines.
static STARTED: Mutex<Vec<StartedReaping>> = Mutex::new(Vec::new());

struct StartedReaping {
    registry: PathBuf,
    at: Instant,
    /// Cancelled when everything was looked at once.
    first_look: CancellationToken,
}

/// Starts the task, unless this process has looked at the registry a moment ago. No call waits for the task.
pub(crate) fn start(leases: &LeaseRegistry, configured: &[RemoteSettings], runner: &Runner) {
    let first_look = {
        let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
        let is_this = |reaping: &StartedReaping| reaping.registry == leases.key();
        let goes_on = leases.look_again().is_some();
        let is_recent = |reaping: &StartedReaping| {
            is_this(reaping)
                && (goes_on || !reaping.first_look.is_cancelled() || reaping.at.elapsed() < PAUSE)
        };
        if started.iter().any(is_recent) {
            return;
        }
        started.retain(|reaping| !is_this(reaping));
        let first_look = CancellationToken::new();
        let registry = leases.key().to_owned();
        started.push(StartedReaping { registry, at: Instant::now(), first_look: first_look.clone() });
        first_look
    };
    let (leases, configured, runner) = (leases.clone(), configured.to_vec(), runner.clone());
    tokio::spawn(async move {
        // Cancelled also if the runtime drops the task.
        let looked = first_look.drop_guard();
        let is_unsettled = reap(&leases, &configured, &runner).await;
        drop(looked);
        if let Some(pause) = leases.look_again() {
            // Servers on other machines may be killed at any time, and this one may not be called for long.
            loop {
                tokio::time::sleep(pause).await;
                reap(&leases, &configured, &runner).await;
            }
        }
        if !is_unsettled {
            return;
        }
        for _ in 1..MAX_LOOKS {
            tokio::time::sleep(UNSETTLED_PAUSE).await;
            if !reap(&leases, &configured, &runner).await {
                return;
            }
        }
    });
}

/// Waits until the task of the registry has looked at everything once.
pub(crate) async fn finished(leases: &LeaseRegistry) {
    let first_look = {
        let started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
        let found = started.iter().find(|reaping| reaping.registry == leases.key());
        found.map(|reaping| reaping.first_look.clone())
    };
    if let Some(first_look) = first_look {
        first_look.cancelled().await;
    }
}

/// Destroys what has no server any more. Returns true if something was being created, and must be looked for again.
async fn reap(leases: &LeaseRegistry, configured: &[RemoteSettings], runner: &Runner) -> bool {
    let reaped = match tokio::time::timeout(TIME_LIMIT, leases.reap(configured, runner)).await {
        Ok(Ok(reaped)) => reaped,
        Ok(Err(error)) => {
            tracing::error!("the leases cannot be read: {}", chain(&error));
            return false;
        }
        Err(_) => {
            tracing::error!("what killed servers have left behind could not be destroyed in time");
            return false;
        }
    };
    for id in reaped.destroyed {
        tracing::warn!("destroyed {id}, whose server was killed");
    }
    for id in &reaped.unsettled {
        tracing::warn!("{id} was being created when its server was killed, and is looked for again");
    }
    for (id, reason) in reaped.failed {
        tracing::error!("{id}, whose server was killed, could not be destroyed: {reason}");
    }
    !reaped.unsettled.is_empty()
}
