//! The viewer of a page, who is extracted from a request.

use super::sign_in_refusal;
use crate::app_state::App;
use crate::auth::error::{AuthError, RefusedCaller};
use crate::auth::principal::Principal;
use crate::login_store::BrowserLogin;
use crate::net::address::ConnectionPeer;
use crate::refusal;
use axum::extract::FromRequestParts;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use role_policy::Caller;

/// The viewer of a page. A request without one is answered with the form to sign in.
pub(super) struct PageViewer {
    pub(super) principal: Principal,
    pub(super) caller: Caller,
    /// The viewer sees everybody's calls.
    pub(super) sees_all: bool,
    /// The calls that wait for an approval, for a viewer who may answer.
    pub(super) pending_approvals: usize,
    /// The login of a browser; `None` for a client that sends a token with each request.
    pub(super) login: Option<BrowserLogin>,
}

impl FromRequestParts<App> for PageViewer {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let app = *app;
        let Some(peer) = parts.extensions.get::<ConnectionPeer>().copied() else {
            return Err(crate::response::text(StatusCode::INTERNAL_SERVER_ERROR, "the peer is not known\n"));
        };
        let viewer = match Self::authenticate(app, &parts.headers, peer).await {
            Ok(viewer) => viewer,
            Err(error) => return Err(sign_in_refusal::refuse(app, &error, peer, None)),
        };
        let account = app.admission.account(&viewer.principal.name, &viewer.principal.limits);
        match app.admission.admit(&account) {
            Ok(()) => Ok(viewer),
            Err(rejection) => Err(refusal::over_limit(app, &viewer.principal, None, &rejection)),
        }
    }
}

impl PageViewer {
    /// Returns the viewer by the token of the request, or by the token with which the browser is signed in. A request that
    /// presents nothing has no viewer, whatever role the server gives to local callers elsewhere.
    async fn authenticate(
        app: App,
        headers: &HeaderMap,
        peer: ConnectionPeer,
    ) -> Result<Self, RefusedCaller> {
        let (principal, login) = if headers.contains_key(header::AUTHORIZATION) {
            (app.authenticator.authenticate(headers, peer).await?, None)
        } else {
            let login = app.logins.find(headers).ok_or(AuthError::Missing)?;
            match app.authenticator.authenticate_bearer(&login.bearer, peer).await {
                Ok(principal) => (principal, Some(login)),
                Err(error) => {
                    app.logins.sign_out(headers);
                    return Err(error);
                }
            }
        };
        let caller = app.caller(&principal, None);
        let sees_all = sees_all(app, &principal, &caller);
        let pending_approvals = match sees_all {
            true => app.workspaces.full_host().approvals().queue.pending_count(),
            false => 0,
        };
        Ok(Self { principal, caller, sees_all, pending_approvals, login })
    }

    /// Returns the name of the caller whose calls are shown; `None` for all.
    pub(super) fn shown_principal(&self) -> Option<&str> {
        (!self.sees_all).then_some(&*self.principal.name)
    }

    /// Returns true if the viewer's role may call `tool`.
    pub(super) fn may_call(&self, app: App, tool: &str) -> bool {
        let host = app.workspaces.full_host();
        host.facts()
            .iter()
            .find(|known| known.name == tool)
            .is_some_and(|tool| host.policy().sees(&self.caller, tool))
    }
}

/// Returns true if nothing is kept from `principal`: no root, no tool, no argument, and no role that it may not act as. That
/// includes the tools of other servers, which tell a role that directs others from one that works.
fn sees_all(app: App, principal: &Principal, caller: &Caller) -> bool {
    let host = app.workspaces.full_host();
    let (policy, facts) = (host.policy(), host.facts());
    principal.roots.is_empty()
        && caller.roles().all(|role| {
            policy.excluded_tools(role).is_empty()
                && facts.iter().all(|tool| policy.requirements(role, tool).is_empty())
                && policy.roles().all(|other| policy.may_use(role, other))
        })
}
