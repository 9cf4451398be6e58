//! The reasons that the network of commands cannot be limited.

#[cfg(feature = "credentials")]
use egress_proxy::{InterceptionError, SecretError};
use process_runner::NetworkNamespaceError;
use std::io;
use std::path::PathBuf;

/// The reason that the network which a role allows its commands cannot be kept. No command starts then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EgressError {
    /// Commands are not confined.
    #[error(
        "the network of this role is limited ({access}), which needs confinement, and that is off: {reason}; the \
         operator may set `policy.confinement = \"required\"`, or `network = \"allow\"` for the role"
    )]
    Unconfined {
        /// The network that the role allows.
        access: String,
        /// The reason that confinement is off.
        reason: String,
    },
    /// The kernel cannot refuse TCP.
    #[error(
        "this role may reach no network, and this kernel cannot refuse TCP (it needs Landlock of Linux 6.7); the \
         operator may set `network = \"allow\"` for the role"
    )]
    TcpNotRefused,
    /// There is no network namespace.
    #[error(
        "this role may reach named hosts only, which needs a network namespace: {0}; the operator may give the role \
         `network = \"none\"` or `\"allow\"`, or let the server make user namespaces"
    )]
    NoNamespace(#[from] NetworkNamespaceError),
    /// The proxy for the hosts cannot be started.
    #[error("the proxy for this role's hosts cannot be started")]
    Proxy(#[source] io::Error),
    /// The self-test found a way out beside the proxy.
    #[error(
        "the self-test of this role's network found a way past the proxy: {0}; no command of the role starts"
    )]
    Leak(String),
    /// The program is not started by this server, whose proxy it may outlive.
    #[error(
        "an agent session, and a command of `exec` or a hook, cannot be limited to named hosts ({0}); give the role that starts it `network = \"none\"` or \
         `\"allow\"`"
    )]
    NotOurs(String),
    /// A credential of the role cannot be used.
    #[error(
        "a credential of this role cannot be used ({rule}): {problem}; no command of the role that may connect starts"
    )]
    Credential {
        /// The host and the header of the credential.
        rule: String,
        /// The reason.
        problem: CredentialError,
    },
    /// Too many different lists of hosts, or principals with one, are in use.
    #[error(
        "{0} different lists of hosts are in use by programs that run, which is the most there may be; stop some of them"
    )]
    TooManyLists(usize),
}

/// The reason that a credential cannot be put into the requests of programs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// The variable of the secret is not set.
    #[error("the variable `{0}` is not set in the server's environment, or is not Unicode")]
    NoVariable(String),
    /// The file of the secret lies where tools and programs read.
    #[error(
        "the file of its secret lies in a root of the server, where tools and programs read it; keep it elsewhere"
    )]
    SecretInRoot,
    /// The secret is of a kind that this version does not know.
    #[error("its secret is of a kind that this version does not know")]
    UnknownSource,
    /// The secret cannot be read, or no header can hold it.
    #[cfg(feature = "credentials")]
    #[error("its secret cannot be used: {0}")]
    Secret(#[from] SecretError),
    /// Certificates of authorities cannot be read.
    #[error("the certificates in {} cannot be used: {error}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        error: io::Error,
    },
    /// The proxy cannot stand in for the hosts.
    #[cfg(feature = "credentials")]
    #[error(transparent)]
    Interception(#[from] InterceptionError),
    /// The file of certificates for programs cannot be written.
    #[error("the certificates for programs cannot be written: {0}")]
    Bundle(#[source] io::Error),
    /// This build cannot put credentials into requests.
    #[error("this program is built without the feature `credentials`")]
    NotLinked,
}
