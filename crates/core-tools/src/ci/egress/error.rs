//! The reasons that the network of commands cannot be limited.

#[cfg(feature = "credentials")]
use egress_proxy::{InterceptionError, SecretError};
use process_runner::{ConfinementLevel, NetworkNamespaceError};
use std::io;
use std::path::PathBuf;

/// The reason that the network which a role allows its commands cannot be kept. No command starts then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EgressError {
    /// Commands are not confined.
    #[error(
        "the network of this command is limited ({access}), which needs confinement, and that is off: {reason}; the \
         operator may set `policy.confinement = \"required\"`, or `network = \"allow\"` for the role, where the role limits it"
    )]
    Unconfined {
        /// The network that the role allows, or that the call asks for.
        access: String,
        /// The reason that confinement is off.
        reason: String,
    },
    /// The kernel cannot refuse TCP.
    #[error(
        "this command may reach no network, and this kernel cannot refuse TCP (it needs Landlock of Linux 6.7); the \
         operator may set `network = \"allow\"` for the role, where the role limits it"
    )]
    TcpNotRefused,
    /// Programs reach Unix sockets, behind which others connect for them.
    #[error(
        "this role may reach named hosts only, and at the level `{0}` programs reach Unix sockets of this machine, which lead \
         elsewhere; named hosts need the level `namespaces` (`policy.confinement_level`, and a system that has it); the \
         operator may give the role `network = \"none\"` or `\"allow\"`"
    )]
    UnixSocketsReachable(ConfinementLevel),
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
        "an agent session, and a command of `exec --keep-background`, cannot be limited to named hosts ({0}); give the role that starts it `network = \"none\"` or \
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
    /// The files that programs need to use the proxy cannot be written.
    #[error("the files that lead programs to the proxy for this role's hosts cannot be written: {0}")]
    Files(#[source] io::Error),
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
    /// The file of the secret lies where programs read it.
    #[error(
        "the file of its secret lies where programs read it: in a root, in a toolchain or in a folder of the system; keep it \
         elsewhere, such as in a folder of your own in your home"
    )]
    SecretReadable,
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
    /// This build cannot put credentials into requests.
    #[error("this program is built without the feature `credentials`")]
    NotLinked,
}
