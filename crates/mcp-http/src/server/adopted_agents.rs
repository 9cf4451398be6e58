//! The sessions of agents that an earlier server has left.

use super::revocation::end_programs_of;
use crate::app_state::App;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Takes over the sessions of agents that were left here, and ends those of callers who may call no more.
pub(super) async fn adopt(app: App) {
    let agents = &app.workspaces.agents;
    let list = match agents.recover().await {
        Ok(()) => agents.list(false).await,
        Err(error) => Err(error),
    };
    match list {
        Ok(list) => {
            let owners: BTreeSet<String> =
                list.sessions.into_iter().filter_map(|session| session.principal).collect();
            let revoked = owners.into_iter().filter(|owner| !app.authenticator.is_admitted(owner));
            end_programs_of(app, revoked.map(Arc::from).collect());
        }
        Err(error) => tracing::error!("the sessions of agents are not taken over: {error}"),
    }
}
