//! The location of the audit's database.

use server_setup::config::HttpTable;

/// The error of a variable that `http.audit_database` names and that is not set. It has the name.
#[derive(Debug, thiserror::Error)]
#[error("http.audit_database: the variable {0} is not set")]
pub(crate) struct UnsetVariableError(String);

/// Returns the location of the audit's database, from the variable that `http.audit_database` may name.
pub(crate) fn location(http: &HttpTable) -> Result<Option<String>, UnsetVariableError> {
    let Some(location) = http.audit_database.as_ref() else { return Ok(None) };
    let Some(name) = location.strip_prefix('$') else { return Ok(Some(location.clone())) };
    let value = std::env::var(name).ok().filter(|value| !value.is_empty());
    value.map(Some).ok_or_else(|| UnsetVariableError(name.to_owned()))
}
