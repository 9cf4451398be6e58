//! The reasons for which requests and connections are turned away before they reach the protocol.

use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};
use std::fmt::{self, Write as _};

/// A reason, as metrics and the audit name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RefusalReason {
    /// `http.max_connections` is reached, or the share of one address in it.
    Connections,
    /// The peer is none of `http.behind_proxy`.
    NotAProxy,
    /// The request names no host, or several.
    HostUnclear,
    /// The request names a host that is none of the server's.
    Host,
    /// The request comes from a web page that may not call the server.
    Origin,
    /// The request has no token, and nothing else says who calls.
    NoToken,
    /// The token is unknown, revoked or expired.
    BadToken,
    /// The token is good and gives no role, or not the scope that is needed.
    Insufficient,
    /// The caller is over one of its limits, or the server over its own.
    Rate,
    /// `http.max_sessions` is reached, or the caller's share of it.
    Sessions,
}

impl RefusalReason {
    /// Every reason.
    const ALL: [Self; 10] = [
        Self::Connections,
        Self::NotAProxy,
        Self::HostUnclear,
        Self::Host,
        Self::Origin,
        Self::NoToken,
        Self::BadToken,
        Self::Insufficient,
        Self::Rate,
        Self::Sessions,
    ];

    /// Returns the reason of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }

    /// Returns a sentence about the reason, for people.
    pub(crate) fn explanation(self) -> &'static str {
        match self {
            Self::Connections => "There were too many connections, from this address or in all.",
            Self::NotAProxy => "The connection did not come from a proxy in front of this server.",
            Self::HostUnclear => "The request did not say clearly which host it is for.",
            Self::Host => "The request is for a host name that is none of this server's (http.hosts).",
            Self::Origin => "A web page of another origin sent the request (http.origins).",
            Self::NoToken => "The request had no token.",
            Self::BadToken => "The token is unknown, was revoked, or has ended.",
            Self::Insufficient => "The token is good, and gives no role here.",
            Self::Rate => "The caller was over one of its limits, or the server over its own.",
            Self::Sessions => "There were too many sessions, of this caller or in all.",
        }
    }

    /// Returns the name of the reason in metrics and the audit.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::NotAProxy => "not_a_proxy",
            Self::HostUnclear => "host_unclear",
            Self::Host => "host",
            Self::Origin => "origin",
            Self::NoToken => "no_token",
            Self::BadToken => "bad_token",
            Self::Insufficient => "insufficient",
            Self::Rate => "rate",
            Self::Sessions => "sessions",
        }
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl EncodeLabelValue for RefusalReason {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        encoder.write_str(self.as_str())
    }
}
