//! Authentication of a request: by a token, a JWT or the user behind a Unix socket. Where the operator allows it, a local
//! caller may be anonymous.

use super::bearer::TokenId;
use super::error::{AuthError, RefusedCaller, RefusedIdentity};
use super::jwt::{JwtVerifier, VerifiedToken};
use super::principal::Principal;
use super::tokens::ActiveTokens;
use crate::limits::caller_limits::CallerLimits;
use crate::net::address::ConnectionPeer;
use http::{HeaderMap, header};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;
use tokio_util::sync::CancellationToken;

/// The ways in which a caller is authenticated.
#[derive(Debug)]
pub(crate) struct Authenticator {
    tokens: RwLock<Arc<ActiveTokens>>,
    /// The tokens that were revoked on the page. They stay out for the life of the server, also if the file of tokens could
    /// not be changed. With the times of their revocations.
    revoked_tokens: Mutex<HashMap<TokenId, SystemTime>>,
    jwts: Option<Arc<JwtVerifier>>,
    /// The roles of users behind a Unix socket; `None` is any user.
    peers: Vec<(Option<u32>, String)>,
    anonymous_role: Option<String>,
    limits: CallerLimits,
    /// The revocations of the callers who have no token, by name.
    revocations: Mutex<HashMap<Arc<str>, CancellationToken>>,
    /// The parent of all `revocations`, so that all can be cancelled at once.
    shutdown: CancellationToken,
}

/// The error of a text that does not give a role to a user. It has the text.
#[derive(Debug, thiserror::Error)]
#[error("http.peers: `{0}` is not a user and a role; expected UID=ROLE or *=ROLE")]
pub(crate) struct PeerRuleError(String);

/// The callers without a token that can be revoked one by one.
const MAX_REVOCATIONS: usize = 10_000;

impl Authenticator {
    /// Returns true if JWTs are taken, and the keys of their issuer are not there yet.
    pub(crate) fn waits_for_issuer(&self) -> bool {
        self.jwts.as_ref().is_some_and(|jwts| !jwts.has_keys())
    }

    /// Authenticates by JWTs and by `peers`, each `UID=ROLE`, and by tokens once [`replace_tokens`] has some.
    ///
    /// [`replace_tokens`]: Self::replace_tokens
    pub(crate) fn new(
        peers: &[String],
        anonymous_role: Option<String>,
        jwts: Option<Arc<JwtVerifier>>,
        limits: CallerLimits,
    ) -> Result<Self, PeerRuleError> {
        let parse = |text: &String| {
            let wrong = || PeerRuleError(text.clone());
            let (uid, role) = text.split_once('=').ok_or_else(wrong)?;
            let uid = match uid.trim() {
                "*" => None,
                uid => Some(uid.parse().map_err(|_| wrong())?),
            };
            let role = role.trim();
            if role.is_empty() { Err(wrong()) } else { Ok((uid, role.to_owned())) }
        };
        Ok(Self {
            tokens: RwLock::default(),
            revoked_tokens: Mutex::default(),
            jwts,
            peers: peers.iter().map(parse).collect::<Result<_, _>>()?,
            anonymous_role,
            limits,
            revocations: Mutex::default(),
            shutdown: CancellationToken::new(),
        })
    }

    /// Returns the tokens that are in use.
    pub(crate) fn tokens(&self) -> Arc<ActiveTokens> {
        Arc::clone(&self.tokens.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns true if JWTs are taken.
    pub(crate) fn takes_jwts(&self) -> bool {
        self.jwts.is_some()
    }

    /// Revokes the token `name` for the life of the server, whatever its file has. Returns the tokens before, and those
    /// after; `None` if there is no such token.
    pub(crate) fn revoke_token(&self, name: &str) -> Option<(Arc<ActiveTokens>, Arc<ActiveTokens>)> {
        let mut revoked = self.revoked_tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        let ids = tokens.ids_of(name);
        if ids.is_empty() {
            return None;
        }
        let now = SystemTime::now();
        revoked.extend(ids.into_iter().map(|id| (id, now)));
        let before = Arc::clone(&tokens);
        *tokens = Arc::new(before.without(&revoked));
        Some((before, Arc::clone(&tokens)))
    }

    /// Uses `tokens` from now on.
    pub(crate) fn replace_tokens(&self, tokens: Arc<ActiveTokens>) {
        let revoked = self.revoked_tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let mut current = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        let tokens = match revoked.is_empty() {
            true => tokens,
            // Their file may know nothing of what was revoked on the page.
            false => Arc::new(tokens.without(&revoked).remembering(&current, &revoked)),
        };
        *current = tokens;
    }

    /// Returns the caller of a request with these headers from `peer`. What the request presents must hold: a user who is
    /// known by its socket and sends a bad token is refused.
    pub(crate) async fn authenticate(
        &self,
        headers: &HeaderMap,
        peer: ConnectionPeer,
    ) -> Result<Principal, RefusedCaller> {
        match bearer_token(headers)? {
            Some(bearer) => self.authenticate_bearer(bearer, peer).await,
            None => Ok(self.implicit(peer)?),
        }
    }

    /// Returns the caller that has the token or JWT `bearer`, and notes that `peer` uses it.
    pub(crate) async fn authenticate_bearer(
        &self,
        bearer: &str,
        peer: ConnectionPeer,
    ) -> Result<Principal, RefusedCaller> {
        // Tokens come first: they cost one hash and one look-up, while a JWT may need its keys fetched.
        let tokens = self.tokens();
        if let Some(token) = tokens.find(bearer) {
            token.note_use(peer);
            return Ok(Principal {
                name: Arc::clone(&token.name),
                role: token.role.clone(),
                roots: Arc::clone(&token.roots),
                remote: token.remote.clone(),
                limits: token.limits.clone(),
                revoked: token.revoked.clone(),
                expires_at: None,
            });
        }
        // An expired token is still looked up by its name, so that the audit log tells whose call was refused.
        if let Some(name) = tokens.find_ended(bearer) {
            let identity = RefusedIdentity::Verified(name.to_string());
            return Err(RefusedCaller { error: AuthError::Invalid("it has expired"), identity });
        }
        if let Some(token) = tokens.find_revoked(bearer) {
            let identity = RefusedIdentity::Verified(token.name.to_string());
            return Err(RefusedCaller { error: AuthError::Revoked(token.at), identity });
        }
        let jwts = self.jwts.as_ref().ok_or(AuthError::Invalid("no such token"))?;
        let verified = jwts.verify(bearer).await?;
        // With a prefix that no name of a token has, so that no subject can pass for one.
        let name: Arc<str> = format!("jwt:{}", verified.subject).into();
        let VerifiedToken { role, remote, expires_at, .. } = verified;
        Ok(Principal { remote, expires_at: Some(expires_at), ..self.principal(name, role) })
    }

    /// Returns the caller of a request that presents nothing.
    fn implicit(&self, peer: ConnectionPeer) -> Result<Principal, AuthError> {
        if let ConnectionPeer::Unix { uid } = peer
            && let Some((_, role)) = self.peers.iter().find(|(user, _)| user.is_none_or(|user| user == uid))
        {
            return Ok(self.principal(format!("uid:{uid}").into(), role.clone()));
        }
        match &self.anonymous_role {
            Some(role) => Ok(self.principal("anonymous:".into(), role.clone())),
            None => Err(AuthError::Missing),
        }
    }

    fn principal(&self, name: Arc<str>, role: String) -> Principal {
        let mut revocations = self.revocations.lock().unwrap_or_else(PoisonError::into_inner);
        if revocations.len() >= MAX_REVOCATIONS {
            // Running calls keep their tokens. These stay children of `shutdown`, so `revoke_all` still reaches them.
            revocations.clear();
        }
        let revoked =
            revocations.entry(Arc::clone(&name)).or_insert_with(|| self.shutdown.child_token()).clone();
        Principal {
            name,
            role,
            roots: Arc::default(),
            remote: None,
            limits: self.limits.clone(),
            revoked,
            expires_at: None,
        }
    }

    /// Returns true if a caller of this name may call, as far as the server can know without a request of it.
    #[cfg(feature = "sessions")]
    pub(crate) fn is_admitted(&self, name: &str) -> bool {
        // Names of tokens have no colon (`token_file::is_name`); all others begin with one of these prefixes.
        match name.split_once(':') {
            None => self.tokens().has_name(name),
            Some(("jwt", _)) => self.jwts.is_some(),
            Some(("uid", uid)) => {
                self.peers.iter().any(|(user, _)| user.is_none_or(|user| user.to_string() == uid))
            }
            Some(("anonymous", _)) => self.anonymous_role.is_some(),
            Some(_) => false,
        }
    }

    /// Revokes every caller.
    pub(crate) fn revoke_all(&self) {
        self.shutdown.cancel();
        self.tokens().revoke_missing(&ActiveTokens::default());
    }
}

/// Returns the bearer token of a request (RFC 6750 §2.1). It is taken from the header alone: URLs are logged.
fn bearer_token(headers: &HeaderMap) -> Result<Option<&str>, AuthError> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let Some(first) = given.next() else { return Ok(None) };
    if given.next().is_some() {
        return Err(AuthError::Invalid("two Authorization headers"));
    }
    let text = first.to_str().map_err(|_| AuthError::Invalid("an Authorization header that is not text"))?;
    let (scheme, token) =
        text.split_once(' ').ok_or(AuthError::Invalid("an Authorization header without a token"))?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(AuthError::Invalid("an Authorization header of another scheme than Bearer"));
    }
    Ok(Some(token.trim()))
}
