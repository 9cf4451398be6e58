//! The server that a TLS handshake asks for, beside the one that the client connected to.

use crate::denial::DenialReason;
use crate::host::NetworkHost;
use crate::proxy_state::{Destination, ProxyState};

/// A fatal TLS alert, `unrecognized_name` (RFC 6066), for a client whose handshake is refused.
pub(crate) const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// Returns the reason to refuse a handshake that asks for this server.
pub(crate) fn judge_server_name(
    state: &ProxyState,
    destination: &Destination,
    server_name: Option<&str>,
) -> Option<DenialReason> {
    match (&destination.host, server_name) {
        (NetworkHost::Address(_), None) => None,
        (NetworkHost::Name(_), None) => Some(DenialReason::NoServerName),
        (host, Some(name)) => match NetworkHost::parse(name) {
            Ok(name) if name == *host => None,
            // An address that is allowed may serve names, which have to be allowed too.
            Ok(name) if matches!(host, NetworkHost::Address(_)) => {
                match state.hosts.check(&name, destination.port) {
                    Ok(()) => None,
                    Err(_) => Some(DenialReason::ServerName(name)),
                }
            }
            Ok(name) => Some(DenialReason::ServerName(name)),
            Err(_) => Some(DenialReason::NotTls),
        },
    }
}
