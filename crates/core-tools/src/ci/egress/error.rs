//! The reasons that the network of commands cannot be limited.

use process_runner::NetworkNamespaceError;
use std::io;

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
    /// Too many different lists of hosts, or principals with one, are in use.
    #[error("{0} different lists of hosts are in use, which is the most there may be; restart the server")]
    TooManyLists(usize),
}
