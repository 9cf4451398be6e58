//! Ends the background programs of callers that are no longer admitted.

use crate::app_state::App;
use std::sync::Arc;
use std::time::Duration;

/// Ends the programs of these callers.
pub(crate) fn end_programs_of(app: App, names: Vec<Arc<str>>) {
    for name in names {
        tracing::warn!("{name} may call no more");
        tokio::spawn(async move {
            let end = || app.workspaces.end_programs(&name);
            let is_admitted = || app.authenticator.tokens().has_name(&name);
            if !end_until_admitted(end, is_admitted).await {
                return;
            }
            // The end of namespaces waits for the kernel.
            let released = tokio::task::spawn_blocking(move || process_runner::release_owner(&name)).await;
            if let Err(error) = released {
                tracing::error!("the namespaces of a caller were not ended: {error}");
            }
        });
    }
}

/// Ends programs by `end`, now and a second later. Returns false as soon as the caller is admitted again: what runs then is the
/// work of a new token of the same name.
async fn end_until_admitted(end: impl Fn(), is_admitted: impl Fn() -> bool) -> bool {
    end();
    // A call that was about to start a program has started it by the second time.
    tokio::time::sleep(Duration::from_secs(1)).await;
    if is_admitted() {
        return false;
    }
    end();
    tokio::time::sleep(Duration::from_secs(1)).await;
    !is_admitted()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn a_new_token_of_the_same_name_keeps_its_programs_and_its_namespaces() {
        for (back_after_millis, ended, is_released) in [(500, 1, false), (1500, 2, false), (5000, 2, true)] {
            let (began, count) = (Instant::now(), Cell::new(0));
            let is_admitted = || began.elapsed() >= Duration::from_millis(back_after_millis);
            let released = end_until_admitted(|| count.set(count.get() + 1), is_admitted).await;
            assert_eq!((count.get(), released), (ended, is_released), "{back_after_millis}");
        }
    }
}
