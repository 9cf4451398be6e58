//! Who is calling: a token, a JWT, the user behind a Unix socket, or, where the operator says so, anybody.

use crate::address::Peer;
use crate::governor::Limits;
use crate::jwt::Jwts;
use crate::tokens::Tokens;
use http::{HeaderMap, header};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;
use tokio_util::sync::CancellationToken;

/// Who is calling, and what that gives.
#[derive(Clone, Debug)]
pub(crate) struct Principal {
    /// What the audit, the sessions and the accounts know it by.
    pub(crate) name: Arc<str>,
    pub(crate) role: String,
    /// None: all that the server may use.
    pub(crate) roots: Arc<[PathBuf]>,
    pub(crate) limits: Limits,
    /// Cancelled once it may make no further call.
    pub(crate) live: CancellationToken,
    /// When what it presented is over; a token's life ends of itself.
    pub(crate) until: Option<SystemTime>,
}

/// Why somebody is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// Nothing was said of who calls.
    Missing,
    /// What was said does not hold. Why is for the log alone.
    Invalid(&'static str),
    /// It holds and is not enough: this scope is missing, or the caller has no role.
    Insufficient(Option<String>),
}

/// All the ways to be known.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) tokens: RwLock<Arc<Tokens>>,
    pub(crate) jwts: Option<Arc<Jwts>>,
    /// Roles of users; `None` is any.
    peers: Vec<(Option<u32>, String)>,
    anonymous: Option<String>,
    limits: Limits,
    /// The lives of those who have no token.
    lives: Mutex<HashMap<Arc<str>, CancellationToken>>,
    everybody: CancellationToken,
}

/// Callers without a token who are told apart.
const MAX_LIVES: usize = 10_000;

impl Identity {
    /// `peers` are `UID=role`.
    pub(crate) fn new(
        peers: &[String],
        anonymous: Option<String>,
        jwts: Option<Arc<Jwts>>,
        limits: Limits,
    ) -> Result<Self, String> {
        let parse = |text: &String| {
            let wrong = || format!("http.peers: `{text}` is no user and role; expected UID=ROLE or *=ROLE");
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
            jwts,
            peers: peers.iter().map(parse).collect::<Result<_, _>>()?,
            anonymous,
            limits,
            lives: Mutex::default(),
            everybody: CancellationToken::new(),
        })
    }

    /// The tokens that are good now.
    pub(crate) fn tokens(&self) -> Arc<Tokens> {
        Arc::clone(&self.tokens.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Who makes a request with these headers from `peer`. What is presented must hold: a bad token is not mended by
    /// being the right user.
    pub(crate) async fn who(&self, headers: &HeaderMap, peer: Peer) -> Result<Principal, Denied> {
        match bearer(headers)? {
            Some(bearer) => self.bearer(bearer).await,
            None => self.unspoken(peer),
        }
    }

    async fn bearer(&self, bearer: &str) -> Result<Principal, Denied> {
        if let Some(token) = self.tokens().find(bearer) {
            return Ok(Principal {
                name: Arc::clone(&token.name),
                role: token.role.clone(),
                roots: Arc::clone(&token.roots),
                limits: token.limits.clone(),
                live: token.live.clone(),
                until: None,
            });
        }
        let jwts = self.jwts.as_ref().ok_or(Denied::Invalid("no such token"))?;
        let known = jwts.check(bearer).await?;
        let name: Arc<str> = format!("jwt:{}", known.subject).into();
        Ok(Principal { until: Some(known.until), ..self.principal(name, known.role) })
    }

    /// One who presents nothing.
    fn unspoken(&self, peer: Peer) -> Result<Principal, Denied> {
        if let Peer::Unix { uid } = peer
            && let Some((_, role)) = self.peers.iter().find(|(user, _)| user.is_none_or(|user| user == uid))
        {
            return Ok(self.principal(format!("uid:{uid}").into(), role.clone()));
        }
        match &self.anonymous {
            Some(role) => Ok(self.principal("anonymous:".into(), role.clone())),
            None => Err(Denied::Missing),
        }
    }

    fn principal(&self, name: Arc<str>, role: String) -> Principal {
        let mut lives = self.lives.lock().unwrap_or_else(PoisonError::into_inner);
        if lives.len() >= MAX_LIVES {
            // A life that is forgotten goes on; the next request of its caller begins another.
            lives.clear();
        }
        let live = lives.entry(Arc::clone(&name)).or_insert_with(|| self.everybody.child_token()).clone();
        Principal { name, role, roots: Arc::default(), limits: self.limits.clone(), live, until: None }
    }

    /// Whether somebody of this name may call, as far as the server can know without them.
    #[cfg(feature = "sessions")]
    pub(crate) fn may_come(&self, name: &str) -> bool {
        match name.split_once(':') {
            None => self.tokens().has(name),
            Some(("jwt", _)) => self.jwts.is_some(),
            Some(("uid", uid)) => {
                self.peers.iter().any(|(user, _)| user.is_none_or(|user| user.to_string() == uid))
            }
            Some(("anonymous", _)) => self.anonymous.is_some(),
            Some(_) => false,
        }
    }

    /// Ends every life.
    pub(crate) fn end(&self) {
        self.everybody.cancel();
        self.tokens().end_others(&Tokens::default());
    }
}

/// The bearer token of a request (RFC 6750 §2.1). In the header alone: an address is logged.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Denied> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let Some(first) = given.next() else { return Ok(None) };
    if given.next().is_some() {
        return Err(Denied::Invalid("two authorizations"));
    }
    let text = first.to_str().map_err(|_| Denied::Invalid("an authorization that is no text"))?;
    let (scheme, token) = text.split_once(' ').ok_or(Denied::Invalid("an authorization without a token"))?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Denied::Invalid("another authorization than a bearer token"));
    }
    Ok(Some(token.trim()))
}
