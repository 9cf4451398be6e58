//! Addresses of other repositories, as configurations write them.

/// The kind of place that an address leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GitRemoteUrl<'a> {
    /// A folder, or a bundle, on this machine.
    Local(&'a str),
    /// Another machine.
    Network,
}

/// The reason that the address of a remote is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteRefusal {
    /// The text is empty, looks like an option, or has control characters.
    #[error("it is no address")]
    NoAddress,
    /// A `file://` address has a relative path, a host or an escape.
    #[error("a file:// address needs an absolute path without escapes")]
    FileAddress,
    /// git would run a program of this machine for an address that begins so.
    #[error("`{prefix}` would run a program (git-remote-{program})")]
    RunsProgram {
        /// The beginning of the address: `NAME://` or `NAME::`.
        prefix: String,
        /// The name after `git-remote-`.
        program: String,
    },
    /// The address leads to another machine, and programs of the role may not connect.
    #[error(
        "programs of this role may not connect to other machines: the server's configuration (policy.network) or the \
         role (network) forbids it"
    )]
    NetworkForbidden,
    /// The folder is outside the roots.
    #[error("it is outside the allowed roots: start the server with that folder as another root")]
    OutsideRoots,
    /// The path leads to nothing.
    #[error("there is nothing at this path")]
    NothingThere,
    /// The folder holds no repository.
    #[error("it is no repository")]
    NoRepository,
}

/// The schemes that lead to another machine, without a program that git would look for.
const NETWORK_SCHEMES: [&str; 6] = ["git", "git+ssh", "http", "https", "ssh", "ssh+git"];

impl<'a> GitRemoteUrl<'a> {
    /// Parses an address as git does (git-fetch(1), "Git URLs").
    ///
    /// # Errors
    /// A text that is no address, and an address for which git would run a program.
    pub(super) fn parse(url: &'a str) -> Result<Self, RemoteRefusal> {
        if url.is_empty() || url.starts_with('-') || url.contains(char::is_control) {
            return Err(RemoteRefusal::NoAddress);
        }
        if let Some((scheme, path)) = url.split_once("://") {
            return match scheme {
                "file" if path.starts_with('/') && !path.contains('%') => Ok(Self::Local(path)),
                "file" => Err(RemoteRefusal::FileAddress),
                scheme if NETWORK_SCHEMES.contains(&scheme) => Ok(Self::Network),
                scheme => Err(RemoteRefusal::RunsProgram {
                    prefix: format!("{scheme}://"),
                    program: scheme.to_owned(),
                }),
            };
        }
        // `ext::sh -c …`: the name of a program before `::`.
        if let Some((helper, _)) = url.split_once("::")
            && !helper.contains('/')
        {
            return Err(RemoteRefusal::RunsProgram {
                prefix: format!("{helper}::"),
                program: helper.to_owned(),
            });
        }
        // `host:path` is SSH, unless a slash comes first.
        match (url.find(':'), url.find('/')) {
            (Some(colon), slash) if slash.is_none_or(|slash| colon < slash) => Ok(Self::Network),
            _ => Ok(Self::Local(url)),
        }
    }
}

/// Returns an address without user name and password.
pub(super) fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let host_ends = rest.find('/').unwrap_or(rest.len());
    match rest.get(..host_ends).and_then(|host| host.rfind('@')) {
        Some(at) => format!("{scheme}://{}", rest.get(at + 1..).unwrap_or_default()),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_told_apart() {
        for url in ["https://x/y", "ssh://h/p", "git://h/p", "git@host:path/x.git", "host:p", "[::1]:x"] {
            // An IPv6 address looks like the name of a program, and is refused.
            let expected = !url.starts_with('[');
            assert_eq!(GitRemoteUrl::parse(url) == Ok(GitRemoteUrl::Network), expected, "{url}");
        }
        for (url, path) in
            [("../x.git", "../x.git"), ("./a:b", "./a:b"), ("/a::b", "/a::b"), ("file:///x", "/x")]
        {
            assert_eq!(GitRemoteUrl::parse(url), Ok(GitRemoteUrl::Local(path)), "{url}");
        }
        for url in ["ext::sh -c x", "fd::7", "evil://x", "", "-x", "file://host/x", "file:///a%2fb", "a\nb"] {
            assert!(GitRemoteUrl::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn nobodys_password_is_shown() {
        assert_eq!(without_credentials("https://me:secret@host/x@y"), "https://host/x@y");
        assert_eq!(without_credentials("https://host/x@y"), "https://host/x@y");
        assert_eq!(without_credentials("git@host:x"), "git@host:x");
    }

    proptest! {
        #[test]
        fn no_address_is_a_panic(url in "(:|/|@|[a-z.-]|.){0,12}") {
            let _ = GitRemoteUrl::parse(&url);
            without_credentials(&url);
        }
    }
}
