//! [`CredentialRule`]: a secret that the proxy puts into the requests to one host.

use std::fmt;
use std::path::PathBuf;

use crate::allowed_hosts::{parse_port, split_port};
use crate::host::{InvalidHost, NetworkHost};

/// The port of an entry that names none: that of HTTPS.
const DEFAULT_PORT: u16 = 443;

/// The place of the secret in the value of a header.
const PLACE: &str = "{secret}";

/// The header of an entry that names none.
const DEFAULT_HEADER: &str = "Authorization";

/// The value of a header that is not described: a bearer token (RFC 6750).
const DEFAULT_VALUE: &str = "Bearer {secret}";

/// A secret that the proxy puts into the requests to one host and port, in a header.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CredentialRule {
    /// The host whose requests get the header.
    pub host: NetworkHost,
    /// The port of the host, which speaks TLS.
    pub port: u16,
    /// The header.
    pub header: CredentialHeader,
    /// The place of the secret.
    pub secret: SecretSource,
    /// A file with certificates of further authorities that may sign for this host, as PEM.
    pub ca_file: Option<PathBuf>,
}

/// The place of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SecretSource {
    /// A variable of the server's environment.
    Variable(String),
    /// A file that only the server's user may read.
    File(PathBuf),
}

/// A header that holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CredentialHeader {
    name: String,
    form: HeaderForm,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum HeaderForm {
    /// The text before the secret, and the text behind it.
    Template(String, String),
    /// A user name and the secret as its password (RFC 7617).
    Basic(String),
}

/// The reason that a credential cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCredential {
    /// The host cannot be read.
    #[error(
        "`{entry}` is no host of a credential: {problem}; write one name or address, with `:PORT` for another port than 443"
    )]
    Host {
        /// The host as it was given.
        entry: String,
        /// The part that is wrong.
        problem: InvalidHost,
    },
    /// The host has something else than a port behind its colon.
    #[error("`{0}` has no port from 1 to 65535 behind its colon")]
    Port(String),
    /// The header may not be set, or is none.
    #[error(
        "`{0}` is no header that may hold a credential; write a name such as `Authorization` or `PRIVATE-TOKEN`"
    )]
    Header(String),
    /// The value has no place for the secret, or several.
    #[error("`{0}` needs `{PLACE}` once, and else only printable ASCII, as in `{DEFAULT_VALUE}`")]
    Value(String),
    /// The user name cannot stand before a colon.
    #[error("`{0}` is no user name for basic authentication: it may have no colon and no control characters")]
    User(String),
}

impl CredentialRule {
    /// Returns the rule that puts a secret into requests to `host`, which is `NAME` or `NAME:PORT`.
    ///
    /// # Errors
    /// The host cannot be read.
    pub fn new(
        host: &str,
        header: CredentialHeader,
        secret: SecretSource,
    ) -> Result<Self, InvalidCredential> {
        let (name, port) = split_port(host);
        let port = match port {
            None => DEFAULT_PORT,
            Some(port) => parse_port(port).ok_or_else(|| InvalidCredential::Port(host.to_owned()))?,
        };
        let found = NetworkHost::parse(name)
            .map_err(|problem| InvalidCredential::Host { entry: host.to_owned(), problem })?;
        Ok(Self { host: found, port, header, secret, ca_file: None })
    }

    /// Sets the file with certificates of further authorities that may sign for the host.
    #[must_use]
    pub fn ca_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(file.into());
        self
    }
}

impl fmt::Display for CredentialRule {
    /// Writes the host and the header, as in "git.example.com:443 (Authorization)".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} ({})", self.host, self.port, self.header.name)
    }
}

impl Default for CredentialHeader {
    /// Returns `Authorization: Bearer {secret}`.
    fn default() -> Self {
        let form = HeaderForm::Template("Bearer ".to_owned(), String::new());
        Self { name: DEFAULT_HEADER.to_owned(), form }
    }
}

impl CredentialHeader {
    /// Returns the header `name` whose value is `value` with the secret in place of `{secret}`.
    ///
    /// # Errors
    /// The name is no header that may be set, or the value has not exactly one place for the secret.
    pub fn new(name: Option<&str>, value: Option<&str>) -> Result<Self, InvalidCredential> {
        let value = value.unwrap_or(DEFAULT_VALUE);
        let invalid = || InvalidCredential::Value(value.to_owned());
        let (before, after) = value.split_once(PLACE).ok_or_else(invalid)?;
        let is_text = |text: &str| text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if !is_text(value) || after.contains(PLACE) || value.trim() != value {
            return Err(invalid());
        }
        let form = HeaderForm::Template(before.to_owned(), after.to_owned());
        Ok(Self { name: header_name(name)?, form })
    }

    /// Returns the header `name` for basic authentication as `user`, with the secret as the password.
    ///
    /// # Errors
    /// The name is no header that may be set, or the user has a colon or a control character.
    pub fn basic(name: Option<&str>, user: &str) -> Result<Self, InvalidCredential> {
        if user.contains(':') || user.chars().any(char::is_control) {
            return Err(InvalidCredential::User(user.to_owned()));
        }
        Ok(Self { name: header_name(name)?, form: HeaderForm::Basic(user.to_owned()) })
    }

    /// Returns the name of the header.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value of the header for this secret.
    #[cfg(feature = "credentials")]
    pub(crate) fn value(&self, secret: &str) -> String {
        use base64::Engine as _;
        match &self.form {
            HeaderForm::Template(before, after) => format!("{before}{secret}{after}"),
            HeaderForm::Basic(user) => {
                let pair = format!("{user}:{secret}");
                format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
            }
        }
    }
}

/// Returns the name of a header that may hold a credential. Those that decide where a request goes or ends are refused.
fn header_name(name: Option<&str>) -> Result<String, InvalidCredential> {
    const REFUSED: [&str; 14] = [
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "if-range",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "range",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    let name = name.unwrap_or(DEFAULT_HEADER);
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_valid = (1..=64).contains(&name.len())
        && name.bytes().all(is_token)
        && !REFUSED.iter().any(|refused| name.eq_ignore_ascii_case(refused));
    if is_valid { Ok(name.to_owned()) } else { Err(InvalidCredential::Header(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_for_one_host_and_port() {
        let rule = |host: &str| {
            CredentialRule::new(host, CredentialHeader::default(), SecretSource::Variable("T".into()))
        };
        assert_eq!(rule("Git.Example.com").unwrap().to_string(), "git.example.com:443 (Authorization)");
        assert_eq!(rule("127.0.0.2:8443").unwrap().port, 8443);
        for host in
            ["*.example.com", "*", "", "10.0.0.0/8", "https://a.example", "a.example:0", "a.example:x"]
        {
            assert!(rule(host).is_err(), "{host}");
        }
    }

    #[test]
    fn a_header_has_one_place_for_the_secret_and_decides_nothing_else() {
        for value in ["Bearer", "{secret}{secret}", "a\r\nHost: b {secret}", " {secret}", "ä{secret}"] {
            assert!(CredentialHeader::new(None, Some(value)).is_err(), "{value}");
        }
        for name in ["Host", "content-LENGTH", "Transfer-Encoding", "Range", "a b", "a:b", "", "Connection"] {
            assert!(CredentialHeader::new(Some(name), None).is_err(), "{name}");
            assert!(CredentialHeader::basic(Some(name), "user").is_err(), "{name}");
        }
        assert!(CredentialHeader::basic(None, "a:b").is_err());
    }

    #[cfg(feature = "credentials")]
    #[test]
    fn the_value_is_the_template_or_a_pair_in_base64() {
        let value = |header: CredentialHeader| header.value("s3cret");
        assert_eq!(value(CredentialHeader::default()), "Bearer s3cret");
        assert_eq!(value(CredentialHeader::new(Some("PRIVATE-TOKEN"), Some("{secret}")).unwrap()), "s3cret");
        assert_eq!(value(CredentialHeader::basic(None, "me").unwrap()), "Basic bWU6czNjcmV0");
    }
}
