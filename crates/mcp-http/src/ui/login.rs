//! Who is signed in at the page: a browser has a cookie, the server what it stands for.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// How long one stays signed in.
pub(super) const LIFE: Duration = Duration::from_secs(12 * 60 * 60);
/// Who may be signed in at once; of more, the oldest is not any more.
const MOST: usize = 1000;
/// The cookie.
const NAME: &str = "coretools_ui";

/// Everybody who is signed in. The cookie is no token: it opens this page alone, ends with the process, and its bearer is
/// asked for again at each request, so that what is revoked or over is so here too.
#[derive(Debug, Default)]
pub(crate) struct Logins(Mutex<HashMap<[u8; 32], Login>>);

/// One who is signed in.
#[derive(Clone)]
pub(super) struct Login {
    /// The token that was given.
    pub(super) bearer: String,
    /// What a form has to hold that does something.
    pub(super) secret: String,
    until: Instant,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("until", &self.until).finish_non_exhaustive()
    }
}

impl Login {
    /// Whether `given` is the secret of its forms.
    pub(super) fn allows(&self, given: &str) -> bool {
        self.secret.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

impl Logins {
    fn table(&self) -> MutexGuard<'_, HashMap<[u8; 32], Login>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signs in whoever has `bearer`, which is good. The cookie for it; `secure` where the browser came by TLS.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(super) fn begin(&self, bearer: &str, secure: bool) -> Result<String, getrandom::Error> {
        let (id, secret) = (random()?, random()?);
        let now = Instant::now();
        let mut table = self.table();
        table.retain(|_, login| login.until > now);
        if table.len() >= MOST {
            let oldest = table.iter().min_by_key(|(_, login)| login.until).map(|(key, _)| *key);
            oldest.and_then(|key| table.remove(&key));
        }
        table.insert(key(&id), Login { bearer: bearer.to_owned(), secret, until: now + LIFE });
        Ok(cookie(&id, LIFE, secure))
    }

    /// Who sends these headers, if they are signed in.
    pub(super) fn find(&self, headers: &HeaderMap) -> Option<Login> {
        let login = self.table().get(&key(id(headers)?)).cloned()?;
        (login.until > Instant::now()).then_some(login)
    }

    /// Signs out. The cookie that ends the one there is.
    pub(super) fn end(&self, headers: &HeaderMap) -> String {
        if let Some(id) = id(headers) {
            self.table().remove(&key(id));
        }
        cookie("", Duration::ZERO, false)
    }
}

/// 256 random bits.
fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// What is looked up is a hash: how long that takes tells nothing of an id.
fn key(id: &str) -> [u8; 32] {
    Sha256::digest(id.as_bytes()).into()
}

fn cookie(id: &str, life: Duration, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("{NAME}={id}; Path=/ui; Max-Age={}; HttpOnly; SameSite=Strict{secure}", life.as_secs())
}

/// The id in a cookie. With two, somebody put one there.
fn id(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut ours = all
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|pair| pair.trim().split_once('=').filter(|(name, _)| *name == NAME));
    match (ours.next(), ours.next()) {
        (Some((_, id)), None) => Some(id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(cookie: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_str(cookie).unwrap());
        headers
    }

    #[test]
    fn a_cookie_stands_for_its_bearer_until_it_is_ended_and_two_stand_for_nobody() {
        let logins = Logins::default();
        let cookie = logins.begin("bearer", true).unwrap();
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Secure") && !cookie.contains("bearer"));
        let pair = cookie.split(';').next().unwrap();
        let login = logins.find(&headers(&format!("other=1; {pair}"))).unwrap();
        assert_eq!(login.bearer, "bearer");
        assert!(login.allows(&login.secret) && !login.allows("") && !pair.contains(&login.secret));
        assert!(logins.find(&headers(&format!("{pair}; {pair}"))).is_none());
        assert!(logins.find(&headers(&format!("{pair}x"))).is_none());
        logins.end(&headers(pair));
        assert!(logins.find(&headers(pair)).is_none());
    }

    #[test]
    fn of_too_many_the_oldest_is_signed_in_no_more() {
        let logins = Logins::default();
        let first = logins.begin("first", false).unwrap();
        let last = (0..MOST).map(|_| logins.begin("x", false).unwrap()).last().unwrap();
        let found = |cookie: &str| logins.find(&headers(cookie.split(';').next().unwrap())).is_some();
        assert!(!found(&first) && found(&last));
    }
}
