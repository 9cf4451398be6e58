//! The actions of a viewer of the page on calls and tokens, and their records in the audit.

use crate::app_state::App;
use crate::auth::token_file::{self, TokenFileError};
use crate::recent_calls::ActiveCall;
use crate::server::revocation::end_programs_of;
use core_tools::mcp::{CallDecision, CallRecord, Outcome};
use error_causes::chain;
use role_policy::Caller;
use std::sync::Arc;
use std::time::SystemTime;

/// The result of revoking a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revocation {
    /// The token is revoked, here and in the file.
    Revoked,
    /// The token is revoked at this process, and the file could not be changed: it comes back with the next start.
    UntilRestart,
    /// There is no such token.
    NoToken,
}

/// The error of a change of the file of tokens.
#[derive(Debug, thiserror::Error)]
enum RevokeError {
    #[error("the server has no file of tokens")]
    NoFile,
    #[error("the file has no such token")]
    NoToken,
    #[error(transparent)]
    File(#[from] TokenFileError),
    #[error("the change was interrupted")]
    Interrupted,
}

/// Ends a call, for `by`.
pub(crate) fn stop_call(app: App, by: &Caller, call: &ActiveCall) {
    call.stop();
    let what = format!("page: stopped `{}` of {}: {}", call.tool, call.principal, call.detail());
    tracing::warn!(
        "{} stops the call `{}` of {}",
        by.principal().unwrap_or_default(),
        call.tool,
        call.principal
    );
    record(app, by, "page:stop_call", &what, Outcome::Ok);
}

/// Revokes the token `name`, for `by`. It is refused from this moment on, whether or not its file can be changed.
pub(crate) async fn revoke_token(app: App, by: &Caller, name: &str) -> Revocation {
    let Some((before, after)) = app.authenticator.revoke_token(name) else { return Revocation::NoToken };
    // The token ends in this process first, so that a file which cannot be changed delays nothing.
    end_programs_of(app, before.revoke_missing(&after));
    tracing::warn!("{} revokes the token {name} on the page", by.principal().unwrap_or_default());
    let changed = remove_from_file(app, name.to_owned()).await;
    let (result, what) = match changed {
        Ok(()) => (Revocation::Revoked, format!("page: revoked the token {name}")),
        Err(error) => {
            let why = chain(&error);
            tracing::error!(
                "the token {name} is revoked at this process until it ends; its file could not be changed: {why}"
            );
            (Revocation::UntilRestart, format!("page: revoked the token {name} until the restart: {why}"))
        }
    };
    record(app, by, "page:revoke_token", &what, Outcome::Ok);
    result
}

/// Records that the tokens `names` were revoked in their file: by the command, or by hand.
pub(crate) fn note_revoked_in_file(app: App, names: &[Arc<str>]) {
    // The file does not say who changed it. No token and no other caller has this name.
    let by = Caller::new("none").with_principal("operator:token-file");
    for name in names {
        let what = format!("file: the token {name} was revoked in the token file");
        record(app, &by, "file:revoke_token", &what, Outcome::Ok);
    }
}

async fn remove_from_file(app: App, name: String) -> Result<(), RevokeError> {
    let path = app.token_file.clone().ok_or(RevokeError::NoFile)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let change = tokio::task::spawn_blocking(move || {
        token_file::change(&path, |file| match file.revoke(&name, now) {
            true => Ok(()),
            false => Err(RevokeError::NoToken),
        })
    });
    change.await.unwrap_or(Err(RevokeError::Interrupted))
}

/// Records an action in the audit. No tool has a colon in its name.
fn record(app: App, by: &Caller, action: &str, what: &str, outcome: Outcome) {
    let what = app.workspaces.full_host().redactor().redact(what);
    let record = CallRecord::new(by, action, CallDecision::Allowed, outcome).rule(&what);
    if let Some(audit) = app.workspaces.full_host().audit() {
        audit.end(&record);
    }
    if let Some(store) = &app.audit_store {
        store.record(&record);
    }
}
