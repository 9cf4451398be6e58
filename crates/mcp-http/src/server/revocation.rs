//! Ends the background programs of callers that are no longer admitted.

use crate::app_state::App;
use std::sync::Arc;
use std::time::Duration;

/// Ends the programs of these callers.
pub(crate) fn end_programs_of(app: App, names: Vec<Arc<str>>) {
    for name in names {
        tracing::warn!("{name} may call no more");
        tokio::spawn(async move {
            // A call that was about to start a program has started it by the second time.
            for _ in 0..2 {
                app.workspaces.end_programs(&name);
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            // The end of namespaces waits for the kernel.
            let released = tokio::task::spawn_blocking(move || process_runner::release_owner(&name)).await;
            if let Err(error) = released {
                tracing::error!("the namespaces of a caller were not ended: {error}");
            }
        });
    }
}
