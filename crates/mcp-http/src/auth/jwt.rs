//! Verification of JSON Web Tokens of an authorization server (RFC 7519, RFC 7515, RFC 8725).

use super::error::{AuthError, MissingGrant, RefusedCaller, RefusedIdentity};
use super::jwk::{KeySetError, SignatureAlgorithm, SigningKey, parse_keys};
use super::role_rule::{RoleRule, RoleRuleError, has_scope, is_or_contains};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use error_causes::chain;
use http::StatusCode;
use json_rpc::json::Json;
use serde_json::{Map, Value};
use server_setup::config::HttpTable;
use server_setup::trusted_text;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

/// Verifies the tokens of one issuer.
#[derive(Debug)]
pub(crate) struct JwtVerifier {
    issuer: String,
    audience: String,
    scope: Option<String>,
    algorithms: Vec<SignatureAlgorithm>,
    rules: Vec<RoleRule>,
    /// The rules that give a remote to a caller.
    remotes: Vec<RoleRule>,
    source: IssuerKeySource,
    keys: RwLock<Arc<Vec<SigningKey>>>,
    /// The time of the last fetch of the keys.
    fetched_at: Mutex<Option<Instant>>,
}

/// The bearer of a token that was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VerifiedToken {
    pub(crate) subject: String,
    pub(crate) role: String,
    /// The remote on which the bearer's tools work, if a claim names one.
    pub(crate) remote: Option<Arc<str>>,
    /// The time at which the token expires, with the leeway for clocks.
    pub(crate) expires_at: SystemTime,
}

/// The source of the issuer's keys.
#[derive(Clone, Debug)]
enum IssuerKeySource {
    File(PathBuf),
    Url(String),
}

impl fmt::Display for IssuerKeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Url(url) => f.write_str(url),
        }
    }
}

/// The error of a configuration of JWTs that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JwtError {
    #[error("http.jwt_issuer is missing, and without it no JWT is taken")]
    NoIssuer,
    /// A key of the configuration is missing that an issuer needs.
    #[error("http.jwt_issuer needs http.{0} too")]
    Missing(&'static str),
    #[error(
        "http.jwt_algorithms: `{0}` is not accepted; expected RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 or EdDSA"
    )]
    Algorithm(String),
    #[error("http.jwt_keys: a URL must be https")]
    KeysOverHttp,
    #[error(transparent)]
    RoleRule(#[from] RoleRuleError),
    #[error(transparent)]
    Keys(#[from] IssuerKeysError),
}

/// The error of an issuer's keys that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the keys {location}")]
pub(crate) struct IssuerKeysError {
    location: IssuerKeySource,
    source: IssuerKeysProblem,
}

#[derive(Debug, thiserror::Error)]
enum IssuerKeysProblem {
    #[error(transparent)]
    File(trusted_text::Error),
    #[error(transparent)]
    Fetch(#[from] ureq::Error),
    #[error("the answer has status {0}, expected 200")]
    Status(StatusCode),
    #[error(transparent)]
    KeySet(#[from] KeySetError),
}

/// The difference of clocks that is tolerated.
const LEEWAY: Duration = Duration::from_secs(30);
/// The year 10000 in seconds since 1970. A greater number is a mistake, or counts milliseconds.
const MAX_TIMESTAMP: f64 = 253_402_300_800.0;
/// The least time between two fetches because of an unknown key: anybody can send a token that names one.
const REFETCH_INTERVAL: Duration = Duration::from_secs(10);
/// The size of a token, in bytes.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// The size of a set of keys, in bytes.
const MAX_KEYS_BYTES: u64 = 1 << 20;

impl IssuerKeysProblem {
    /// Returns true if the issuer does not answer, or says itself that it cannot at present.
    fn is_unavailable(&self) -> bool {
        match self {
            Self::Fetch(_) => true,
            Self::Status(status) => status.is_server_error(),
            Self::File(_) | Self::KeySet(_) => false,
        }
    }
}

impl JwtVerifier {
    /// Reads the settings of `http` and fetches the keys. Returns `None` where no issuer is named. An issuer that does not
    /// answer is asked again when a token comes.
    pub(crate) fn new(http: &HttpTable) -> Result<Option<Self>, JwtError> {
        let Some(issuer) = http.jwt_issuer.as_ref() else {
            let other_keys =
                [http.jwt_keys.is_some(), http.jwt_audience.is_some(), !http.jwt_roles.is_empty()];
            return match other_keys.contains(&true) {
                true => Err(JwtError::NoIssuer),
                false => Ok(None),
            };
        };
        let keys = http.jwt_keys.as_ref().ok_or_else(|| JwtError::Missing("jwt_keys"))?;
        let audience = http.jwt_audience.as_ref().or(http.public_url.as_ref());
        let audience = audience.ok_or_else(|| JwtError::Missing("public_url or http.jwt_audience"))?;
        if http.jwt_roles.is_empty() {
            return Err(JwtError::Missing("jwt_roles"));
        }
        let algorithm =
            |name: &String| SignatureAlgorithm::parse(name).ok_or_else(|| JwtError::Algorithm(name.clone()));
        let source = match keys.split_once("://") {
            None => IssuerKeySource::File(keys.into()),
            Some(("https", _)) => IssuerKeySource::Url(keys.clone()),
            // Over plain HTTP anybody on the way could replace the keys, except within this machine.
            Some(("http", rest)) if rest.starts_with("127.0.0.1:") || rest.starts_with("localhost:") => {
                IssuerKeySource::Url(keys.clone())
            }
            Some(_) => return Err(JwtError::KeysOverHttp),
        };
        let verifier = Self {
            issuer: issuer.clone(),
            audience: audience.clone(),
            scope: http.jwt_scope.value.clone(),
            algorithms: http.jwt_algorithms.iter().map(algorithm).collect::<Result<_, _>>()?,
            rules: http.jwt_roles.iter().map(|rule| RoleRule::parse(rule)).collect::<Result<_, _>>()?,
            remotes: http.jwt_remotes.iter().map(|rule| RoleRule::parse(rule)).collect::<Result<_, _>>()?,
            source,
            keys: RwLock::default(),
            fetched_at: Mutex::default(),
        };
        match verifier.reload() {
            // Callers with tokens of this server, and those behind a socket, do not need the issuer.
            Err(error) if error.source.is_unavailable() => {
                tracing::warn!("{}; JWTs are refused until the keys can be fetched", chain(&error));
            }
            loaded => loaded?,
        }
        Ok(Some(verifier))
    }

    /// Returns the issuer's identifier.
    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns true if there are keys. Without them every token is refused.
    pub(crate) fn has_keys(&self) -> bool {
        !self.keys.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Returns the file of the keys, if they are in one.
    pub(crate) fn key_file(&self) -> Option<&PathBuf> {
        match &self.source {
            IssuerKeySource::File(path) => Some(path),
            IssuerKeySource::Url(_) => None,
        }
    }

    /// Fetches the keys again, and blocks meanwhile. On an error the keys from before stay in use.
    pub(crate) fn reload(&self) -> Result<(), IssuerKeysError> {
        // Noted before the fetch, so that an issuer which does not answer is not asked again at once.
        *self.fetched_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let text = match &self.source {
            IssuerKeySource::File(path) => trusted_text::read(path).map_err(IssuerKeysProblem::File),
            IssuerKeySource::Url(url) => fetch(url),
        };
        let keys = text
            .and_then(|text| Ok(parse_keys(&text)?))
            .map_err(|source| IssuerKeysError { location: self.source.clone(), source })?;
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
        Ok(())
    }

    /// Verifies a token and returns its bearer.
    pub(crate) async fn verify(self: &Arc<Self>, token: &str) -> Result<VerifiedToken, RefusedCaller> {
        match self.verify_at(token, SystemTime::now()) {
            // The issuer may have rotated its keys since the last fetch.
            Err(RefusedCaller { error: AuthError::UnknownKey, .. }) if self.may_refetch() => {
                let verifier = Arc::clone(self);
                let reloaded = tokio::task::spawn_blocking(move || verifier.reload()).await;
                if let Ok(Err(error)) = reloaded {
                    tracing::warn!("{}", chain(&error));
                }
                self.verify_at(token, SystemTime::now())
            }
            verified => verified,
        }
    }

    /// Returns true if the keys are to be fetched because of an unknown one, which the issuer may have added since.
    fn may_refetch(&self) -> bool {
        let mut fetched_at = self.fetched_at.lock().unwrap_or_else(PoisonError::into_inner);
        // The file is polled anyway (`server::reload`), so its keys are never much older than the file.
        if matches!(self.source, IssuerKeySource::File(_))
            || fetched_at.is_some_and(|at| at.elapsed() < REFETCH_INTERVAL)
        {
            return false;
        }
        *fetched_at = Some(Instant::now());
        true
    }

    /// Verifies a token, and names its subject also where it is refused.
    fn verify_at(&self, token: &str, now: SystemTime) -> Result<VerifiedToken, RefusedCaller> {
        // Checked before anything is decoded, because the sender is not known yet.
        if token.len() > MAX_TOKEN_BYTES {
            return Err(AuthError::Invalid("the token is too long").into());
        }
        match self.verify_signature(token) {
            Ok(claims) => self.check_claims(&claims, now).map_err(|error| {
                let identity = subject(&claims).map(|subject| format!("jwt:{subject}"));
                RefusedCaller {
                    error,
                    identity: identity.map_or(RefusedIdentity::Unknown, RefusedIdentity::Verified),
                }
            }),
            Err(error) => {
                // Who it says it is helps an operator who looks for the reason. Nothing proves it.
                let claims = token.split('.').nth(1).and_then(decode_object);
                let claimed = claims.as_ref().and_then(|claims| subject(claims));
                let identity = claimed.map(str::to_owned);
                Err(RefusedCaller {
                    error,
                    identity: identity.map_or(RefusedIdentity::Unknown, RefusedIdentity::Claimed),
                })
            }
        }
    }

    /// Returns the claims of a token whose signature holds.
    fn verify_signature(&self, token: &str) -> Result<Map<String, Value>, AuthError> {
        let not_a_jwt = AuthError::Invalid("neither a token of this server nor a JWT");
        let mut parts = token.split('.');
        let (Some(head), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(not_a_jwt);
        };
        let header = decode_object(head).ok_or_else(|| not_a_jwt.clone())?;
        // RFC 7515 §4.1.11: a token with an extension that the reader does not know has to be refused.
        if header.contains_key("crit") {
            return Err(AuthError::Invalid("its header has an extension that is not known"));
        }
        // A token of another kind, as for logging out, is signed with the same key (RFC 8725 §3.11, RFC 9068 §4).
        if let Some(kind) = header.get("typ") {
            let kind = kind.as_str().unwrap_or_default().to_ascii_lowercase();
            if !matches!(kind.strip_prefix("application/").unwrap_or(&kind), "jwt" | "at+jwt") {
                return Err(AuthError::Invalid("it is a token of another kind"));
            }
        }
        let algorithm = header.get("alg").and_then(Value::as_str).and_then(SignatureAlgorithm::parse);
        let algorithm = algorithm.filter(|algorithm| self.algorithms.contains(algorithm));
        let algorithm = algorithm.ok_or(AuthError::Invalid("its algorithm is not accepted"))?;
        let id = match header.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.as_str()),
            Some(_) => return Err(AuthError::Invalid("its key is not named by text")),
        };
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| not_a_jwt)?;
        // RFC 7515 §5.2: the signature covers the text as it was sent and not the values that it decodes to.
        let signed = token.get(..head.len() + 1 + claims.len()).unwrap_or_default();
        let keys = Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner));
        let mut fitting = keys.iter().filter(|key| key.fits(id, algorithm)).peekable();
        if fitting.peek().is_none() {
            return Err(AuthError::UnknownKey);
        }
        if !fitting.any(|key| key.verifies(algorithm, signed.as_bytes(), &signature)) {
            return Err(AuthError::Invalid("its signature does not hold"));
        }
        decode_object(claims).ok_or(AuthError::Invalid("its claims are not an object"))
    }

    fn check_claims(&self, claims: &Map<String, Value>, now: SystemTime) -> Result<VerifiedToken, AuthError> {
        if claims.get("iss").and_then(Value::as_str) != Some(&self.issuer) {
            return Err(AuthError::Invalid(
                "it is of another issuer: its claim `iss` is not http.jwt_issuer",
            ));
        }
        if !claims.get("aud").is_some_and(|audience| is_or_contains(audience, &self.audience)) {
            return Err(AuthError::Invalid(
                "it is for another audience: its claim `aud` has not http.jwt_audience",
            ));
        }
        let time = |name: &str| {
            let seconds =
                claims.get(name)?.as_f64().filter(|seconds| (0.0..MAX_TIMESTAMP).contains(seconds))?;
            Some(SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds))
        };
        let expiry = time("exp").ok_or(AuthError::Invalid("its claim `exp` is missing or is no time"))?;
        if expiry + LEEWAY <= now {
            return Err(AuthError::Invalid("it has expired: its claim `exp` has passed"));
        }
        let has_begun = match claims.contains_key("nbf") {
            true => time("nbf").is_some_and(|begin| begin <= now + LEEWAY),
            false => true,
        };
        if !has_begun {
            return Err(AuthError::Invalid(
                "it is not valid yet: its claim `nbf` has not come, or is no time",
            ));
        }
        let subject =
            subject(claims).ok_or(AuthError::Invalid("its claim `sub` is missing or is not plain text"))?;
        if let Some(scope) = &self.scope
            && !["scope", "scp"]
                .iter()
                .any(|name| claims.get(*name).is_some_and(|held| has_scope(held, scope)))
        {
            return Err(AuthError::Insufficient(MissingGrant::Scope(scope.clone())));
        }
        let rule = self.rules.iter().find(|rule| rule.matches(claims)).ok_or_else(|| {
            let mut claims: Vec<String> = self.rules.iter().map(|rule| rule.claim.clone()).collect();
            claims.dedup();
            AuthError::Insufficient(MissingGrant::Role { claims })
        })?;
        Ok(VerifiedToken {
            subject: subject.to_owned(),
            role: rule.role.clone(),
            remote: self
                .remotes
                .iter()
                .find(|rule| rule.matches(claims))
                .map(|rule| rule.role.as_str().into()),
            expires_at: expiry + LEEWAY,
        })
    }
}

/// Returns the subject of a token, if it is text that can be shown. It is shown in the log and the audit, where control
/// characters and marks of direction would mislead.
fn subject(claims: &Map<String, Value>) -> Option<&str> {
    let is_plain = |subject: &&str| {
        (1..=256).contains(&subject.len()) && subject.chars().flat_map(char::escape_debug).eq(subject.chars())
    };
    claims.get("sub").and_then(Value::as_str).filter(is_plain)
}

/// Decodes the object in a part of a token. It is read strictly: a name that is there twice could be read in two ways.
fn decode_object(part: &str) -> Option<Map<String, Value>> {
    let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
    Json::parse(&bytes).ok()?.as_object()?.to_map()
}

/// Fetches a set of keys.
fn fetch(url: &str) -> Result<String, IssuerKeysProblem> {
    // A redirect could lead from the issuer to any other server, and off https.
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(10)))
        .max_redirects(0)
        .build()
        .into();
    let mut response = agent.get(url).call()?;
    if response.status() != 200 {
        return Err(IssuerKeysProblem::Status(response.status()));
    }
    Ok(response.body_mut().with_config().limit(MAX_KEYS_BYTES).read_to_string()?)
}
