//! The tokens that are in use.

use super::bearer::{TokenHash, TokenId, token_id};
use super::token_file::{RevokedEntry, TokenFile, TokenFileError, TokenProblem};
use super::token_usage::{TokenUse, TokenUses};
use crate::limits::caller_limits::CallerLimits;
use crate::net::address::ConnectionPeer;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// A token that ends within this time ends soon.
const SOON: Duration = Duration::from_secs(7 * 86_400);

/// A token that its bearer may use, or one that has ended.
#[derive(Clone, Debug)]
pub(crate) struct ActiveToken {
    pub(crate) name: Arc<str>,
    pub(crate) role: String,
    pub(crate) roots: Arc<[PathBuf]>,
    pub(crate) remote: Option<Arc<str>>,
    /// The limits of the token, and those of the server where it has none.
    pub(crate) limits: CallerLimits,
    /// Cancelled once the token was revoked or has expired.
    pub(crate) revoked: CancellationToken,
    /// The time at which it was made.
    pub(crate) created_at: SystemTime,
    pub(crate) expires_at: Option<SystemTime>,
    /// It is the secret before a rotation. Its bearer goes on with the one after.
    is_previous: bool,
    last_use: Arc<LastUse>,
    hash: TokenHash,
}

/// The last use of a token by this process.
#[derive(Debug, Default)]
struct LastUse {
    /// The second since 1970; 0 if it was not used. Apart from the peer, so that most requests only read it.
    at: AtomicU64,
    from: Mutex<String>,
}

/// The tokens that are in use, by their ids, and those that were revoked.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActiveTokens {
    tokens: HashMap<TokenId, ActiveToken>,
    revoked: HashMap<TokenId, RevokedToken>,
}

/// A token that was revoked. It opens nothing, and names who comes back with it.
#[derive(Clone, Debug)]
pub(crate) struct RevokedToken {
    pub(crate) name: Arc<str>,
    pub(crate) at: SystemTime,
    hash: TokenHash,
}

impl ActiveTokens {
    /// Returns the tokens in `file`, which was read from `path`, each with the secret before its last rotation. A token that is
    /// in `before` too is not revoked by that.
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
        let now = SystemTime::now();
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let parse_hash = |name: &str, hash: &str| {
            TokenHash::parse(hash).ok_or_else(|| TokenFileError::Content {
                path: path.to_owned(),
                source: TokenProblem::Hash(name.to_owned()),
            })
        };
        let mut revoked = HashMap::new();
        let now_seconds = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let remembered = file.revoked.into_iter().filter(|revoked| revoked.is_remembered(now_seconds));
        for RevokedEntry { name, id, hash, at: second } in remembered {
            // The reader of the file has left damaged ones out.
            let Some(hash) = TokenHash::parse(&hash) else { continue };
            revoked.insert(TokenId(id), RevokedToken { name: name.into(), at: at(second), hash });
        }
        for entry in file.tokens {
            let expires_at = entry.expires.map(at);
            let previous = entry.previous.as_ref().map(|previous| {
                // A token that ends before the time of its rotation is over takes both secrets with it.
                let end = at(previous.expires);
                (&previous.id, &previous.hash, Some(expires_at.map_or(end, |whole| whole.min(end))), true)
            });
            for (id, hash, expires_at, is_previous) in
                [(&entry.id, &entry.hash, expires_at, false)].into_iter().chain(previous)
            {
                let id = TokenId(id.clone());
                let hash = parse_hash(&entry.name, hash)?;
                // What is shared with calls outlives a reload, so that those which began before it can still be revoked. A
                // new hash under an old id is another token.
                let old = before.tokens.get(&id).filter(|old| old.hash.matches(&hash));
                let token = ActiveToken {
                    name: entry.name.as_str().into(),
                    role: entry.role.clone(),
                    roots: entry.roots.clone().into(),
                    remote: entry.remote.as_deref().map(Into::into),
                    limits: CallerLimits {
                        calls_per_second: entry.calls_per_second.unwrap_or(defaults.calls_per_second),
                        calls_in_flight: entry.calls_in_flight.unwrap_or(defaults.calls_in_flight),
                        processes: entry.processes.unwrap_or(defaults.processes),
                        bytes_per_minute: entry.bytes_per_minute.unwrap_or(defaults.bytes_per_minute),
                        ..defaults.clone()
                    },
                    revoked: old.map(|old| old.revoked.clone()).unwrap_or_default(),
                    last_use: old.map(|old| Arc::clone(&old.last_use)).unwrap_or_default(),
                    created_at: at(entry.created),
                    expires_at,
                    is_previous,
                    hash,
                };
                // One that had ended before this server knew it has nothing that runs.
                if old.is_none() && !token.is_valid(now) {
                    token.revoked.cancel();
                }
                tokens.insert(id, token);
            }
        }
        Ok(Self { tokens, revoked })
    }

    /// Returns the tokens of `self` that `file` has as well, exactly as they are: what others may have written can only
    /// take tokens away.
    pub(crate) fn retained(&self, file: &Self) -> Self {
        let stays = |(id, token): &(&TokenId, &ActiveToken)| {
            file.tokens.get(*id).is_some_and(|other| token.equals(other))
        };
        let stay = self.tokens.iter().filter(stays).map(|(id, token)| (id.clone(), token.clone()));
        Self { tokens: stay.collect(), revoked: self.revoked.clone() }
    }

    /// Returns the ids of the token `name`, which may have two secrets.
    pub(crate) fn ids_of(&self, name: &str) -> Vec<TokenId> {
        self.tokens.iter().filter(|(_, token)| &*token.name == name).map(|(id, _)| id.clone()).collect()
    }

    /// Returns the tokens whose ids are not in `revoked`, and remembers those that are, with the times of their revocations.
    pub(crate) fn without(&self, revoked: &HashMap<TokenId, SystemTime>) -> Self {
        let mut rest = self.clone();
        for (id, at) in revoked {
            if let Some(ActiveToken { name, hash, .. }) = rest.tokens.remove(id) {
                rest.revoked.insert(id.clone(), RevokedToken { name, at: *at, hash });
            }
        }
        rest
    }

    /// Remembers the revoked tokens of `before` whose ids are in `revoked`.
    pub(crate) fn remembering(mut self, before: &Self, revoked: &HashMap<TokenId, SystemTime>) -> Self {
        for (id, token) in before.revoked.iter().filter(|(id, _)| revoked.contains_key(*id)) {
            self.revoked.entry(id.clone()).or_insert_with(|| token.clone());
        }
        self
    }

    /// Adds the tokens of `other` that are not in `known` exactly as they are.
    pub(crate) fn add_unknown(&mut self, other: &Self, known: &Self) {
        let is_known =
            |id: &TokenId, token: &ActiveToken| known.tokens.get(id).is_some_and(|old| old.equals(token));
        let unknown = other.tokens.iter().filter(|(id, token)| !is_known(id, token));
        self.tokens.extend(unknown.map(|(id, token)| (id.clone(), token.clone())));
    }

    /// Takes each token away that is in `other` exactly as it is.
    pub(crate) fn remove(&mut self, other: &Self) {
        self.tokens.retain(|id, token| !other.tokens.get(id).is_some_and(|removed| removed.equals(token)));
    }

    /// Returns the token whose text is `bearer`, if it is valid now.
    pub(crate) fn find(&self, bearer: &str) -> Option<&ActiveToken> {
        // Hashed before the look-up, so that an id that exists takes no longer than one that does not.
        let hash = TokenHash::of(bearer);
        let token = self.tokens.get(&token_id(bearer)?)?;
        let now = SystemTime::now();
        if !token.hash.matches(&hash) || !token.is_valid(now) {
            return None;
        }
        Some(token)
    }

    /// Returns the name of the token whose text is `bearer`, if it has ended.
    pub(crate) fn find_ended(&self, bearer: &str) -> Option<&Arc<str>> {
        let hash = TokenHash::of(bearer);
        let token = self.tokens.get(&token_id(bearer)?)?;
        (token.hash.matches(&hash) && !token.is_valid(SystemTime::now())).then_some(&token.name)
    }

    /// Returns the revoked token whose text is `bearer`.
    pub(crate) fn find_revoked(&self, bearer: &str) -> Option<&RevokedToken> {
        let hash = TokenHash::of(bearer);
        self.revoked.get(&token_id(bearer)?).filter(|token| token.hash.matches(&hash))
    }

    /// Returns the names of the revoked tokens, each with the time at which it was revoked, the last one first.
    pub(crate) fn revoked(&self) -> Vec<(Arc<str>, SystemTime)> {
        let mut all: Vec<_> =
            self.revoked.values().map(|token| (Arc::clone(&token.name), token.at)).collect();
        all.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        // A token may have had two secrets.
        all.dedup();
        all
    }

    /// Returns the valid tokens, without the secrets before a rotation.
    pub(crate) fn valid(&self) -> impl Iterator<Item = &ActiveToken> {
        let now = SystemTime::now();
        self.tokens.values().filter(move |token| !token.is_previous && token.is_valid(now))
    }

    /// Returns the time at which the secret before the last rotation of the token `name` ends, if it still holds.
    pub(crate) fn previous_secret_ends(&self, name: &str) -> Option<SystemTime> {
        let now = SystemTime::now();
        let mut previous = self.tokens.values().filter(|token| token.is_previous && token.is_valid(now));
        previous.find(|token| &*token.name == name)?.expires_at
    }

    /// Returns the last uses by this process, by the names of the tokens.
    pub(crate) fn uses(&self) -> TokenUses {
        let mut uses = TokenUses::new();
        for token in self.tokens.values() {
            let Some(at) = token.last_used() else { continue };
            // A token may have two secrets.
            if uses.get(&*token.name).is_none_or(|other| other.at < at) {
                let from = token.last_use.from.lock().unwrap_or_else(PoisonError::into_inner).clone();
                uses.insert(token.name.to_string(), TokenUse { at, from });
            }
        }
        uses
    }

    /// Returns the names of all tokens, valid or not.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.tokens.values().map(|token| token.name.to_string()).collect()
    }

    /// Returns the names of the tokens here of which `after` has none.
    pub(crate) fn names_missing_in(&self, after: &Self) -> Vec<Arc<str>> {
        let stay = after.names();
        self.names().difference(&stay).map(|name| name.as_str().into()).collect()
    }

    /// Returns true if a token of this name is valid.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        let now = SystemTime::now();
        self.tokens.values().any(|token| &*token.name == name && token.is_valid(now))
    }

    /// Revokes each token that is not in `after` or has expired, and returns the names of those whose bearers have no other. A
    /// bearer goes on when only the secret before a rotation ends.
    pub(crate) fn revoke_missing(&self, after: &Self) -> Vec<Arc<str>> {
        let now = SystemTime::now();
        let stays = |id: &TokenId| after.tokens.get(id).is_some_and(|token| token.is_valid(now));
        let missing = self.tokens.iter().filter(|(id, token)| !stays(id) && !token.revoked.is_cancelled());
        missing
            .filter_map(|(_, token)| {
                token.revoked.cancel();
                let goes_on = token.is_previous && after.has_name(&token.name);
                (!goes_on).then(|| Arc::clone(&token.name))
            })
            .collect()
    }

    /// Returns the choices of roots that the tokens name.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &Arc<[PathBuf]>> {
        let now = SystemTime::now();
        self.tokens.values().filter(move |token| token.is_valid(now)).map(|token| &token.roots)
    }
}

impl ActiveToken {
    /// Returns true if the other token gives the same to the same bearer.
    fn equals(&self, other: &Self) -> bool {
        self.name == other.name
            && self.role == other.role
            && self.roots == other.roots
            && self.remote == other.remote
            && self.limits == other.limits
            && self.expires_at == other.expires_at
            && self.hash.matches(&other.hash)
    }

    /// Returns the time that is left, if that is little: less than a week, and less than a tenth of its life.
    pub(crate) fn ends_soon(&self, now: SystemTime) -> Option<Duration> {
        let end = self.expires_at?;
        let (left, life) = (end.duration_since(now).ok()?, end.duration_since(self.created_at).ok()?);
        (left < SOON.min(life / 10)).then_some(left)
    }

    /// Returns the time of its last use by this server, in seconds since 1970.
    pub(crate) fn last_used(&self) -> Option<u64> {
        Some(self.last_use.at.load(Ordering::Relaxed)).filter(|second| *second > 0)
    }

    /// Notes that `peer` uses the token now.
    pub(crate) fn note_use(&self, peer: ConnectionPeer) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        // Once a second: all requests of the bearer share it.
        if self.last_use.at.load(Ordering::Relaxed) != now
            && self.last_use.at.swap(now, Ordering::Relaxed) != now
        {
            *self.last_use.from.lock().unwrap_or_else(PoisonError::into_inner) = peer.label();
        }
    }

    fn is_valid(&self, now: SystemTime) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }
}
