//! The rules that give a role or a remote to the claims of a JWT.

use serde_json::{Map, Value};

/// A rule `CLAIM=VALUE:ROLE`. In place of the role it may name a remote.
#[derive(Clone, Debug)]
pub(super) struct RoleRule {
    pub(super) claim: String,
    value: String,
    pub(super) role: String,
}

/// The error of a text that is no such rule. It has the text.
#[derive(Debug, thiserror::Error)]
#[error(
    "http.jwt_roles, http.jwt_remotes: `{0}` is not a rule; expected CLAIM=VALUE:ROLE or CLAIM=VALUE:REMOTE"
)]
pub(crate) struct RoleRuleError(String);

impl RoleRule {
    /// Parses `CLAIM=VALUE:ROLE`.
    pub(super) fn parse(text: &str) -> Result<Self, RoleRuleError> {
        let wrong = || RoleRuleError(text.to_owned());
        let (claim, rest) = text.split_once('=').ok_or_else(wrong)?;
        // From the right, because a value may contain colons, as a URL does.
        let (value, role) = rest.rsplit_once(':').ok_or_else(wrong)?;
        if claim.is_empty() || value.is_empty() || role.is_empty() {
            return Err(wrong());
        }
        Ok(Self { claim: claim.to_owned(), value: value.to_owned(), role: role.to_owned() })
    }

    /// Returns true if the claim has the value. A claim in an object is named by its path: `realm_access.roles`.
    pub(super) fn matches(&self, claims: &Map<String, Value>) -> bool {
        // A claim whose own name has dots, as in `https://example.org/roles`, takes precedence over a path.
        if let Some(claim) = claims.get(&self.claim) {
            let has_value = if matches!(&*self.claim, "scope" | "scp") { has_scope } else { is_or_contains };
            return has_value(claim, &self.value);
        }
        let mut path = self.claim.split('.');
        let first = path.next().and_then(|name| claims.get(name));
        let claim = path.fold(first, |claim, name| claim?.get(name));
        self.claim.contains('.') && claim.is_some_and(|claim| is_or_contains(claim, &self.value))
    }
}

/// Returns true if a claim is `wanted`, or a list that contains it.
pub(super) fn is_or_contains(claim: &Value, wanted: &str) -> bool {
    match claim {
        Value::String(text) => text == wanted,
        Value::Array(list) => list.iter().any(|value| value.as_str() == Some(wanted)),
        _ => false,
    }
}

/// Returns true if a claim grants the scope `wanted`. Scopes may be words of one text too (RFC 8693 §4.2). No other claim
/// is read so: a name that somebody chose may have any words.
pub(super) fn has_scope(claim: &Value, wanted: &str) -> bool {
    is_or_contains(claim, wanted)
        || claim.as_str().is_some_and(|text| text.split(' ').any(|word| word == wanted))
}
