//! The sessions of agents that were here before this server.

use crate::life::gone;
use crate::route::App;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Takes up the sessions of agents that were left here, and ends those of who may call no more since then.
pub(crate) async fn take_up(app: Arc<App>) {
    let agents = &app.tenants.agents;
    let list = match agents.take_up().await {
        Ok(()) => agents.list(false).await,
        Err(error) => Err(error),
    };
    match list {
        Ok(list) => {
            let owners: BTreeSet<String> =
                list.sessions.into_iter().filter_map(|session| session.principal).collect();
            let stale = owners.into_iter().filter(|owner| !app.identity.may_come(owner));
            gone(&app, stale.map(Arc::from).collect());
        }
        Err(error) => tracing::error!("the sessions of agents are not taken up: {error}"),
    }
}
