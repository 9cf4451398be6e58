//! A proxy that lets programs reach named hosts and nothing else.
//!
//! [`AllowedHosts`] is a list of hosts by name, address and port. With the feature `proxy` (on by default),
//! `EgressProxy` serves HTTP `CONNECT`, plain HTTP requests and SOCKS5 on one port, and connects only to the hosts
//! of its list. With the feature `credentials`, the proxy puts secrets into the requests to chosen hosts (`Interception`).

mod address;
mod allowed_hosts;
#[cfg(feature = "proxy")]
mod client_hello;
#[cfg(feature = "proxy")]
mod client_stream;
#[cfg(feature = "proxy")]
mod connection;
mod credential_rule;
#[cfg(feature = "proxy")]
mod denial;
mod host;
#[cfg(feature = "proxy")]
mod http;
#[cfg(feature = "credentials")]
mod interception;
#[cfg(feature = "proxy")]
mod limits;
mod network_access;
#[cfg(feature = "proxy")]
mod proxy;
#[cfg(feature = "proxy")]
mod proxy_answer;
#[cfg(feature = "proxy")]
mod proxy_state;
#[cfg(feature = "proxy")]
mod resolver;
#[cfg(feature = "proxy")]
mod server_name;
#[cfg(feature = "proxy")]
mod socks5;
#[cfg(feature = "proxy")]
mod tunnel;
mod variables;

pub use address::ClosedAddressKind;
pub use allowed_hosts::{AllowedHosts, HostRefusal, InvalidHostRule};
pub use credential_rule::{CredentialHeader, CredentialRule, InvalidCredential, SecretSource};
#[cfg(feature = "proxy")]
pub use denial::{DenialReason, DeniedConnection};
pub use host::{InvalidHost, NetworkHost};
#[cfg(feature = "credentials")]
pub use interception::{HostCredential, Interception, InterceptionError, SecretError};
#[cfg(feature = "proxy")]
pub use limits::ProxyLimits;
pub use network_access::NetworkAccess;
#[cfg(feature = "proxy")]
pub use proxy::EgressProxy;
#[cfg(feature = "proxy")]
pub use resolver::{Resolve, ResolvedAddresses, SystemResolver};
pub use variables::{certificate_variables, proxy_variables};

/// The example of the README, which must compile and run as it is.
#[cfg(all(doctest, feature = "proxy"))]
#[doc = include_str!("../README.md")]
struct Readme;
