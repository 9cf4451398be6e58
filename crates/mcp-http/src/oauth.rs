//! The metadata of the server as an OAuth resource (RFC 9728): where a client gets a token.

/// The path of the metadata.
pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// The server as a protected resource.
#[derive(Clone, Debug)]
pub(crate) struct ProtectedResource {
    /// The URL by which clients call the server.
    resource: String,
    /// The authorization server.
    issuer: String,
    /// The scope that a token must have.
    pub(crate) scope: Option<String>,
    /// The URL of the metadata (RFC 9728 §3.1).
    pub(crate) metadata_url: String,
}

/// The error of a public URL that cannot be read. It has the text.
#[derive(Debug, thiserror::Error)]
#[error("http.public_url: `{0}` is not a URL; expected https://NAME/mcp")]
pub(crate) struct PublicUrlError(String);

impl ProtectedResource {
    /// Describes the server that clients call by `public_url`, such as `https://name/mcp`.
    pub(crate) fn new(
        public_url: &str,
        issuer: String,
        scope: Option<String>,
    ) -> Result<Self, PublicUrlError> {
        let wrong = || PublicUrlError(public_url.to_owned());
        let (scheme, rest) = public_url.split_once("://").ok_or_else(wrong)?;
        let (name, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if !matches!(scheme, "https" | "http")
            || name.is_empty()
            || public_url.contains(['"', '\\', ' ', '?', '#'])
        {
            return Err(wrong());
        }
        let path = if path == "/" { "" } else { path };
        let metadata_url = format!("{scheme}://{name}{METADATA_PATH}{path}");
        Ok(Self { resource: public_url.to_owned(), issuer, scope, metadata_url })
    }

    /// Returns the metadata as JSON.
    pub(crate) fn metadata(&self) -> String {
        let mut document = serde_json::json!({
            "resource": self.resource,
            "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"],
        });
        if let (Some(scope), Some(document)) = (&self.scope, document.as_object_mut()) {
            document.insert("scopes_supported".to_owned(), serde_json::json!([scope]));
        }
        document.to_string()
    }
}
