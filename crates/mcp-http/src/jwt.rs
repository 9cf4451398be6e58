//! JSON Web Tokens of an outside authorization server (RFC 7519, RFC 7515, RFC 7517, RFC 8725).

use crate::identity::Denied;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core_tools::config::Http;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use role_policy::proxy::json::Json;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

/// Checks tokens of one issuer.
#[derive(Debug)]
pub(crate) struct Jwts {
    issuer: String,
    audience: String,
    scope: Option<String>,
    algorithms: Vec<Algorithm>,
    rules: Vec<Rule>,
    place: Place,
    keys: RwLock<Arc<Vec<Key>>>,
    /// When keys were last asked for.
    asked: Mutex<Option<Instant>>,
}

/// Who has a token that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) subject: String,
    pub(crate) role: String,
    /// When it is over.
    pub(crate) until: SystemTime,
}

/// Where the issuer's keys are.
#[derive(Clone, Debug)]
enum Place {
    File(PathBuf),
    Url(String),
}

/// `claim=value:role`
#[derive(Clone, Debug)]
struct Rule {
    claim: String,
    value: String,
    role: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

/// What the kind of a key allows; a token cannot choose otherwise.
#[derive(Clone, Debug)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

#[derive(Clone, Debug)]
struct Key {
    id: Option<String>,
    algorithm: Option<Algorithm>,
    material: Material,
}

/// Clocks differ by so much.
const LEEWAY: Duration = Duration::from_secs(30);
/// Seconds since 1970 up to the year 9999; what is beyond is no time, or counts milliseconds.
const MAX_TIME: f64 = 253_402_300_800.0;
/// Between two looks at a URL because of a key that is not known.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// A longer token, or a larger set of keys, is a mistake.
const MAX_TOKEN: usize = 16 * 1024;
const MAX_KEYS: u64 = 1 << 20;

impl Jwts {
    /// Sets up what `http` says of an issuer; nothing where it names none.
    pub(crate) fn new(http: &Http) -> Result<Option<Self>, String> {
        let Some(issuer) = http.jwt_issuer.as_ref() else {
            let said = [http.jwt_keys.is_some(), http.jwt_audience.is_some(), !http.jwt_roles.is_empty()];
            return match said.contains(&true) {
                true => Err("http.jwt_issuer is missing, and without it no JWT is taken".to_owned()),
                false => Ok(None),
            };
        };
        let missing = |key: &str| format!("http.jwt_issuer needs http.{key} too");
        let keys = http.jwt_keys.as_ref().ok_or_else(|| missing("jwt_keys"))?;
        let audience = http.jwt_audience.as_ref().or(http.public_url.as_ref());
        let audience = audience.ok_or_else(|| missing("public_url or http.jwt_audience"))?;
        if http.jwt_roles.is_empty() {
            return Err(missing("jwt_roles"));
        }
        let algorithm = |name: &String| {
            Algorithm::parse(name).ok_or_else(|| {
                format!(
                    "http.jwt_algorithms: `{name}` is none that is taken; expected RS256, RS384, RS512, PS256, PS384, \
                     PS512, ES256, ES384 or EdDSA"
                )
            })
        };
        let place = match keys.split_once("://") {
            None => Place::File(keys.into()),
            Some(("https", _)) => Place::Url(keys.clone()),
            Some(("http", rest)) if rest.starts_with("127.0.0.1:") || rest.starts_with("localhost:") => {
                Place::Url(keys.clone())
            }
            Some(_) => return Err("http.jwt_keys: a URL must be https".to_owned()),
        };
        let jwts = Self {
            issuer: issuer.clone(),
            audience: audience.clone(),
            scope: http.jwt_scope.value.clone(),
            algorithms: http.jwt_algorithms.iter().map(algorithm).collect::<Result<_, _>>()?,
            rules: http.jwt_roles.iter().map(|rule| Rule::parse(rule)).collect::<Result<_, _>>()?,
            place,
            keys: RwLock::default(),
            asked: Mutex::default(),
        };
        jwts.reload()?;
        Ok(Some(jwts))
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The file of the keys, to be watched.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        match &self.place {
            Place::File(path) => Some(path),
            Place::Url(_) => None,
        }
    }

    /// Gets the keys again; blocks. What cannot be used changes nothing.
    pub(crate) fn reload(&self) -> Result<(), String> {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let (text, place) = match &self.place {
            Place::File(path) => {
                let text = server_setup::identity::read(path).map_err(|error| error.to_string());
                (text, path.display().to_string())
            }
            Place::Url(url) => (fetch(url), url.clone()),
        };
        let keys = text
            .and_then(|text| read_keys(&text))
            .map_err(|why| format!("cannot use the keys {place}: {why}"))?;
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
        Ok(())
    }

    /// Who has this token, if it holds.
    pub(crate) async fn check(self: &Arc<Self>, token: &str) -> Result<Known, Denied> {
        match self.verify(token, SystemTime::now()) {
            Err(Denied::Invalid(UNKNOWN_KEY)) if self.may_ask() => {
                let jwts = Arc::clone(self);
                let reloaded = tokio::task::spawn_blocking(move || jwts.reload()).await;
                if let Ok(Err(error)) = reloaded {
                    tracing::warn!("{error}");
                }
                self.verify(token, SystemTime::now())
            }
            known => known,
        }
    }

    /// Whether a key that is not known may have come since.
    fn may_ask(&self) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(self.place, Place::File(_)) || asked.is_some_and(|asked| asked.elapsed() < ASK_AGAIN) {
            return false;
        }
        *asked = Some(Instant::now());
        true
    }

    fn verify(&self, token: &str, now: SystemTime) -> Result<Known, Denied> {
        if token.len() > MAX_TOKEN {
            return Err(Denied::Invalid("a token that is too long"));
        }
        let no_jwt = Denied::Invalid("no token of ours, and no JWT");
        let mut parts = token.split('.');
        let (Some(head), Some(claims), Some(sealed), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(no_jwt);
        };
        let header = object(head).ok_or_else(|| no_jwt.clone())?;
        if header.contains_key("crit") {
            return Err(Denied::Invalid("a header with an extension that is not known"));
        }
        // A token of another kind, as for logging out, is signed with the same key (RFC 8725 §3.11, RFC 9068 §4).
        if let Some(kind) = header.get("typ") {
            let kind = kind.as_str().unwrap_or_default().to_ascii_lowercase();
            if !matches!(kind.strip_prefix("application/").unwrap_or(&kind), "jwt" | "at+jwt") {
                return Err(Denied::Invalid("a token of another kind"));
            }
        }
        let algorithm = header.get("alg").and_then(Value::as_str).and_then(Algorithm::parse);
        let algorithm = algorithm.filter(|algorithm| self.algorithms.contains(algorithm));
        let algorithm = algorithm.ok_or(Denied::Invalid("an algorithm that is not taken"))?;
        let id = match header.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.as_str()),
            Some(_) => return Err(Denied::Invalid("a key that is named by no name")),
        };
        let signature = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| no_jwt)?;
        let signed = token.get(..head.len() + 1 + claims.len()).unwrap_or_default();
        let keys = Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner));
        let mut fitting = keys.iter().filter(|key| key.fits(id, algorithm)).peekable();
        if fitting.peek().is_none() {
            return Err(Denied::Invalid(UNKNOWN_KEY));
        }
        if !fitting.any(|key| key.verifies(algorithm, signed.as_bytes(), &signature)) {
            return Err(Denied::Invalid("a signature that does not hold"));
        }
        let claims = object(claims).ok_or(Denied::Invalid("claims that are no object"))?;
        self.judge(&claims, now)
    }

    fn judge(&self, claims: &Map<String, Value>, now: SystemTime) -> Result<Known, Denied> {
        if claims.get("iss").and_then(Value::as_str) != Some(&self.issuer) {
            return Err(Denied::Invalid("another issuer"));
        }
        if !claims.get("aud").is_some_and(|audience| is_or_holds(audience, &self.audience)) {
            return Err(Denied::Invalid("another audience"));
        }
        let time = |name: &str| {
            let seconds = claims.get(name)?.as_f64().filter(|seconds| (0.0..MAX_TIME).contains(seconds))?;
            Some(SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds))
        };
        let until = time("exp").filter(|end| *end + LEEWAY > now);
        let until = until.ok_or(Denied::Invalid("its time is over, or it has no end"))? + LEEWAY;
        let has_begun = match claims.contains_key("nbf") {
            true => time("nbf").is_some_and(|begin| begin <= now + LEEWAY),
            false => true,
        };
        if !has_begun {
            return Err(Denied::Invalid("its time has not come"));
        }
        // It stands in the log and the audit, where what moves the cursor or turns the writing would mislead.
        let is_name = |subject: &&str| {
            (1..=256).contains(&subject.len())
                && subject.chars().flat_map(char::escape_debug).eq(subject.chars())
        };
        let subject = claims.get("sub").and_then(Value::as_str).filter(is_name);
        let subject = subject.ok_or(Denied::Invalid("no subject"))?;
        if let Some(scope) = &self.scope
            && !["scope", "scp"]
                .iter()
                .any(|name| claims.get(*name).is_some_and(|held| has_word(held, scope)))
        {
            return Err(Denied::Insufficient(Some(scope.clone())));
        }
        let rule = self.rules.iter().find(|rule| rule.fits(claims)).ok_or(Denied::Insufficient(None))?;
        Ok(Known { subject: subject.to_owned(), role: rule.role.clone(), until })
    }
}

const UNKNOWN_KEY: &str = "a key that is not known";

/// Whether a claim is `wanted`, or a list that holds it.
fn is_or_holds(claim: &Value, wanted: &str) -> bool {
    match claim {
        Value::String(text) => text == wanted,
        Value::Array(list) => list.iter().any(|value| value.as_str() == Some(wanted)),
        _ => false,
    }
}

/// The same of scopes, which are words of one text too (RFC 8693 §4.2). No other claim is read so: a name that somebody
/// chose may have any words.
fn has_word(claim: &Value, wanted: &str) -> bool {
    is_or_holds(claim, wanted)
        || claim.as_str().is_some_and(|text| text.split(' ').any(|word| word == wanted))
}

/// The object in a part of a token, read strictly: a name that is there twice could be read in two ways.
fn object(part: &str) -> Option<Map<String, Value>> {
    let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
    Json::parse(&bytes).ok()?.as_object()?.to_map()
}

fn fetch(url: &str) -> Result<String, String> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(10)))
        .max_redirects(0)
        .build()
        .into();
    let mut response = agent.get(url).call().map_err(|error| error.to_string())?;
    if response.status() != 200 {
        return Err(format!("it answered with status {}, expected 200", response.status()));
    }
    response.body_mut().with_config().limit(MAX_KEYS).read_to_string().map_err(|error| error.to_string())
}

fn read_keys(text: &str) -> Result<Vec<Key>, String> {
    let set: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let keys = set.get("keys").and_then(Value::as_array).ok_or("it has no list `keys`")?;
    // Keys of other kinds are for others (RFC 7517 §5).
    let keys: Vec<Key> = keys.iter().filter_map(Key::read).collect();
    if keys.is_empty() {
        return Err(
            "none of its keys can be used; expected RSA, EC (P-256, P-384) or Ed25519 keys for signatures"
                .to_owned(),
        );
    }
    Ok(keys)
}

impl Key {
    fn read(key: &Value) -> Option<Self> {
        let text = |name: &str| key.get(name).and_then(Value::as_str);
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        // For what the issuer made it, and nothing else (RFC 7517 §4.2, §4.3).
        if key.get("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        if key.get("key_ops").is_some_and(|uses| !is_or_holds(uses, "verify")) {
            return None;
        }
        let point = |size: usize| {
            let (x, y) = (bytes("x")?, bytes("y")?);
            (x.len() == size && y.len() == size).then(|| [&[4], x.as_slice(), y.as_slice()].concat())
        };
        let material = match (text("kty")?, text("crv")) {
            ("RSA", _) => Material::Rsa { n: bytes("n")?, e: bytes("e")? },
            ("EC", Some("P-256")) => Material::P256(point(32)?),
            ("EC", Some("P-384")) => Material::P384(point(48)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes("x").filter(|x| x.len() == 32)?),
            _ => return None,
        };
        let algorithm = match key.get("alg") {
            None => None,
            Some(name) => Some(Algorithm::parse(name.as_str()?)?),
        };
        Some(Self { id: text("kid").map(str::to_owned), algorithm, material })
    }

    fn fits(&self, id: Option<&str>, algorithm: Algorithm) -> bool {
        use Algorithm::{EdDsa, Es256, Es384, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};
        let kind = matches!(
            (&self.material, algorithm),
            (Material::Rsa { .. }, Rs256 | Rs384 | Rs512 | Ps256 | Ps384 | Ps512)
                | (Material::P256(_), Es256)
                | (Material::P384(_), Es384)
                | (Material::Ed25519(_), EdDsa)
        );
        let named = match (id, &self.id) {
            (Some(id), Some(own)) => id == own,
            (Some(_), None) => false,
            (None, _) => true,
        };
        kind && named && self.algorithm.is_none_or(|own| own == algorithm)
    }

    fn verifies(&self, algorithm: Algorithm, message: &[u8], sealed: &[u8]) -> bool {
        use Algorithm::{EdDsa, Es256, Es384, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};
        let rsa = match algorithm {
            Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
            Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
            Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
            Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
            Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
            Es256 | Es384 | EdDsa => {
                let (kind, key): (&'static dyn signature::VerificationAlgorithm, _) = match &self.material {
                    Material::P256(point) => (&signature::ECDSA_P256_SHA256_FIXED, point),
                    Material::P384(point) => (&signature::ECDSA_P384_SHA384_FIXED, point),
                    Material::Ed25519(point) => (&signature::ED25519, point),
                    Material::Rsa { .. } => return false,
                };
                return UnparsedPublicKey::new(kind, key).verify(message, sealed).is_ok();
            }
        };
        match &self.material {
            Material::Rsa { n, e } => RsaPublicKeyComponents { n, e }.verify(rsa, message, sealed).is_ok(),
            _ => false,
        }
    }
}

impl Algorithm {
    /// `none` and the symmetric ones are not among them.
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "RS256" => Self::Rs256,
            "RS384" => Self::Rs384,
            "RS512" => Self::Rs512,
            "PS256" => Self::Ps256,
            "PS384" => Self::Ps384,
            "PS512" => Self::Ps512,
            "ES256" => Self::Es256,
            "ES384" => Self::Es384,
            "EdDSA" | "Ed25519" => Self::EdDsa,
            _ => return None,
        })
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("http.jwt_roles: `{text}` is no rule; expected CLAIM=VALUE:ROLE");
        let (claim, rest) = text.split_once('=').ok_or_else(wrong)?;
        let (value, role) = rest.rsplit_once(':').ok_or_else(wrong)?;
        if claim.is_empty() || value.is_empty() || role.is_empty() {
            return Err(wrong());
        }
        Ok(Self { claim: claim.to_owned(), value: value.to_owned(), role: role.to_owned() })
    }

    /// A claim that lies deeper is named by its way: `realm_access.roles`.
    fn fits(&self, claims: &Map<String, Value>) -> bool {
        if let Some(claim) = claims.get(&self.claim) {
            let holds = if matches!(&*self.claim, "scope" | "scp") { has_word } else { is_or_holds };
            return holds(claim, &self.value);
        }
        let mut way = self.claim.split('.');
        let first = way.next().and_then(|name| claims.get(name));
        let claim = way.fold(first, |claim, name| claim?.get(name));
        self.claim.contains('.') && claim.is_some_and(|claim| is_or_holds(claim, &self.value))
    }
}
