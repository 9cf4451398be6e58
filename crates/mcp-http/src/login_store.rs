//! The browsers that are signed in at the page, and their cookies.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// The time for which a browser stays signed in.
const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// The browsers that are signed in at once. One more signs out the one that signed in first.
const MAX_LOGINS: usize = 1000;
/// The name of the cookie.
const COOKIE_NAME: &str = "coretools_ui";

/// The browsers that are signed in, by the hash of their cookie. The cookie is not the token: it opens the page alone and
/// ends with the process. The token is verified again at each request, so that one that was revoked or has expired opens
/// nothing.
#[derive(Debug, Default)]
pub(crate) struct BrowserLoginStore(Mutex<HashMap<[u8; 32], BrowserLogin>>);

/// A browser that is signed in.
#[derive(Clone)]
pub(crate) struct BrowserLogin {
    /// The token that its user gave.
    pub(crate) bearer: String,
    /// The secret that a form must contain which changes something. A browser sends the cookie with the form of any page.
    pub(crate) form_secret: String,
    expires_at: Instant,
}

impl std::fmt::Debug for BrowserLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BrowserLogin").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

impl BrowserLogin {
    /// Returns true if `given` is the secret of the forms, in a time that does not depend on where it differs.
    pub(crate) fn verifies_form(&self, given: &str) -> bool {
        self.form_secret.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

impl BrowserLoginStore {
    fn table(&self) -> MutexGuard<'_, HashMap<[u8; 32], BrowserLogin>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signs in a browser whose user has the token `bearer`, which was verified. Returns the `Set-Cookie` value, for HTTPS
    /// alone if `is_https`.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn sign_in(&self, bearer: &str, is_https: bool) -> Result<String, getrandom::Error> {
        let (id, form_secret) = (random_text()?, random_text()?);
        let now = Instant::now();
        let mut table = self.table();
        // Logins end without a request, so the table is cleared of them here.
        table.retain(|_, login| login.expires_at > now);
        if table.len() >= MAX_LOGINS {
            let oldest = table.iter().min_by_key(|(_, login)| login.expires_at).map(|(key, _)| *key);
            // Signing in needs a valid token, so that the limit bounds the memory and locks nobody out.
            oldest.and_then(|key| table.remove(&key));
        }
        table.insert(
            key(&id),
            BrowserLogin { bearer: bearer.to_owned(), form_secret, expires_at: now + LIFETIME },
        );
        Ok(set_cookie(&id, LIFETIME, is_https))
    }

    /// Returns the login of the browser that sends these headers.
    pub(crate) fn find(&self, headers: &HeaderMap) -> Option<BrowserLogin> {
        let login = self.table().get(&key(cookie_id(headers)?)).cloned()?;
        (login.expires_at > Instant::now()).then_some(login)
    }

    /// Signs out the browser that sends these headers. Returns the `Set-Cookie` value that removes the cookie.
    pub(crate) fn sign_out(&self, headers: &HeaderMap) -> String {
        if let Some(id) = cookie_id(headers) {
            self.table().remove(&key(id));
        }
        set_cookie("", Duration::ZERO, false)
    }
}

/// Returns 256 random bits as text.
fn random_text() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns the key of a login. It is a hash, so that the time of a look-up tells nothing of the ids.
fn key(id: &str) -> [u8; 32] {
    Sha256::digest(id.as_bytes()).into()
}

fn set_cookie(id: &str, max_age: Duration, is_https: bool) -> String {
    let secure = if is_https { "; Secure" } else { "" };
    // Scripts cannot read the cookie, and other sites cannot send it. Over plain HTTP a browser would drop a secure
    // cookie.
    format!("{COOKIE_NAME}={id}; Path=/ui; Max-Age={}; HttpOnly; SameSite=Strict{secure}", max_age.as_secs())
}

/// Returns the id in the cookie. Two cookies of the name are none: another server of this machine may have set one.
fn cookie_id(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut ours = all
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|pair| pair.trim().split_once('=').filter(|(name, _)| *name == COOKIE_NAME));
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
    fn a_cookie_signs_in_until_it_is_removed_and_two_of_them_never() {
        let logins = BrowserLoginStore::default();
        let cookie = logins.sign_in("bearer", true).unwrap();
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Secure") && !cookie.contains("bearer"));
        let pair = cookie.split(';').next().unwrap();
        let login = logins.find(&headers(&format!("other=1; {pair}"))).unwrap();
        assert_eq!(login.bearer, "bearer");
        assert!(
            login.verifies_form(&login.form_secret)
                && !login.verifies_form("")
                && !pair.contains(&login.form_secret)
        );
        assert!(logins.find(&headers(&format!("{pair}; {pair}"))).is_none());
        assert!(logins.find(&headers(&format!("{pair}x"))).is_none());
        logins.sign_out(&headers(pair));
        assert!(logins.find(&headers(pair)).is_none());
    }

    #[test]
    fn one_login_too_many_signs_out_the_first() {
        let logins = BrowserLoginStore::default();
        let first = logins.sign_in("first", false).unwrap();
        let last = (0..MAX_LOGINS).map(|_| logins.sign_in("x", false).unwrap()).last().unwrap();
        let found = |cookie: &str| logins.find(&headers(cookie.split(';').next().unwrap())).is_some();
        assert!(!found(&first) && found(&last));
    }
}
