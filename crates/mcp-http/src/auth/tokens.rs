//! The tokens that are in use.

use super::bearer::{TokenHash, TokenId, token_id};
use super::token_file::{TokenFile, TokenFileError, TokenProblem};
use crate::limits::caller_limits::CallerLimits;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// A token that its bearer may use.
#[derive(Clone, Debug)]
pub(crate) struct ActiveToken {
    pub(crate) name: Arc<str>,
    pub(crate) role: String,
    pub(crate) roots: Arc<[PathBuf]>,
    /// The limits of the token, and those of the server where it has none.
    pub(crate) limits: CallerLimits,
    /// Cancelled once the token was revoked or has expired.
    pub(crate) revoked: CancellationToken,
    hash: TokenHash,
    expires_at: Option<SystemTime>,
}

/// The tokens that are in use, by their ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActiveTokens(HashMap<TokenId, ActiveToken>);

impl ActiveTokens {
    /// Returns the valid tokens in `file`, which was read from `path`. A token that is in `before` too is not revoked by
    /// that.
    ///
    /// # Errors
    /// A hash is not one.
    pub(crate) fn from_file(
        path: &Path,
        file: TokenFile,
        defaults: &CallerLimits,
        before: &Self,
    ) -> Result<Self, TokenFileError> {
        let mut tokens = HashMap::new();
        for entry in file.tokens {
            let id = TokenId(entry.id);
            let hash = TokenHash::parse(&entry.hash).ok_or_else(|| TokenFileError::Content {
                path: path.to_owned(),
                source: TokenProblem::Hash(entry.name.clone()),
            })?;
            // The cancellation token outlives a reload, so that calls which began before it can still be revoked. A new
            // hash under an old id is another token.
            let revoked =
                before.0.get(&id).filter(|old| old.hash.matches(&hash)).map(|old| old.revoked.clone());
            let token = ActiveToken {
                name: entry.name.into(),
                role: entry.role,
                roots: entry.roots.into(),
                limits: CallerLimits {
                    calls_per_second: entry.calls_per_second.unwrap_or(defaults.calls_per_second),
                    calls_in_flight: entry.calls_in_flight.unwrap_or(defaults.calls_in_flight),
                    processes: entry.processes.unwrap_or(defaults.processes),
                    bytes_per_minute: entry.bytes_per_minute.unwrap_or(defaults.bytes_per_minute),
                    ..defaults.clone()
                },
                revoked: revoked.unwrap_or_default(),
                hash,
                expires_at: entry
                    .expires
                    .map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
            };
            if token.is_valid(SystemTime::now()) {
                tokens.insert(id, token);
            }
        }
        Ok(Self(tokens))
    }

    /// Returns the tokens of `self` that `file` has as well, exactly as they are: what others may have written can only
    /// take tokens away.
    pub(crate) fn retained(&self, file: &Self) -> Self {
        let stays =
            |(id, token): &(&TokenId, &ActiveToken)| file.0.get(*id).is_some_and(|other| token.equals(other));
        let stay = self.0.iter().filter(stays).map(|(id, token)| (id.clone(), token.clone()));
        Self(stay.collect())
    }

    /// Adds the tokens of `other` that are not in `known` exactly as they are.
    pub(crate) fn add_unknown(&mut self, other: &Self, known: &Self) {
        let is_known =
            |id: &TokenId, token: &ActiveToken| known.0.get(id).is_some_and(|old| old.equals(token));
        let unknown = other.0.iter().filter(|(id, token)| !is_known(id, token));
        self.0.extend(unknown.map(|(id, token)| (id.clone(), token.clone())));
    }

    /// Takes each token away that is in `other` exactly as it is.
    pub(crate) fn remove(&mut self, other: &Self) {
        self.0.retain(|id, token| !other.0.get(id).is_some_and(|removed| removed.equals(token)));
    }

    /// Returns the token whose text is `bearer`, if it is valid now.
    pub(crate) fn find(&self, bearer: &str) -> Option<&ActiveToken> {
        // Hashed before the look-up, so that an id that exists takes no longer than one that does not.
        let hash = TokenHash::of(bearer);
        let token = self.0.get(&token_id(bearer)?)?;
        (token.hash.matches(&hash) && token.is_valid(SystemTime::now())).then_some(token)
    }

    /// Returns true if a token of this name is valid.
    #[cfg(feature = "sessions")]
    pub(crate) fn has_name(&self, name: &str) -> bool {
        let now = SystemTime::now();
        self.0.values().any(|token| &*token.name == name && token.is_valid(now))
    }

    /// Revokes each token that is not in `after` or has expired, and returns their names.
    pub(crate) fn revoke_missing(&self, after: &Self) -> Vec<Arc<str>> {
        let now = SystemTime::now();
        let stays = |id: &TokenId| after.0.get(id).is_some_and(|token| token.is_valid(now));
        let missing = self.0.iter().filter(|(id, token)| !stays(id) && !token.revoked.is_cancelled());
        missing
            .map(|(_, token)| {
                token.revoked.cancel();
                Arc::clone(&token.name)
            })
            .collect()
    }

    /// Returns the choices of roots that the tokens name.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &Arc<[PathBuf]>> {
        self.0.values().map(|token| &token.roots)
    }
}

impl ActiveToken {
    /// Returns true if the other token gives the same to the same bearer.
    fn equals(&self, other: &Self) -> bool {
        self.name == other.name
            && self.role == other.role
            && self.roots == other.roots
            && self.limits == other.limits
            && self.expires_at == other.expires_at
            && self.hash.matches(&other.hash)
    }

    fn is_valid(&self, now: SystemTime) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }
}
