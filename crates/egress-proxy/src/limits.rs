//! The limits of a proxy.

use std::time::Duration;

/// The limits that a proxy keeps, so that no client can exhaust it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyLimits {
    /// The most connections of clients at once; the others wait to be accepted. 256 by default.
    pub max_connections: usize,
    /// The most bytes of the head of a request, or of a TLS `ClientHello`. 64 KiB by default.
    pub max_head_bytes: usize,
    /// The time for a client to send a whole head or handshake once it has connected. 30 s by default.
    pub head_timeout: Duration,
    /// The time to resolve a name and connect to a host. 30 s by default.
    pub connect_timeout: Duration,
    /// The time after which a connection that carries nothing in either direction is closed. 10 minutes by default.
    pub idle_timeout: Duration,
    /// The time for which the addresses of a name are kept. 10 minutes by default.
    pub pin_duration: Duration,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            max_connections: 256,
            max_head_bytes: 64 << 10,
            head_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(600),
            pin_duration: Duration::from_secs(600),
        }
    }
}

impl ProxyLimits {
    /// Sets [`max_connections`](Self::max_connections).
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections;
        self
    }

    /// Sets [`head_timeout`](Self::head_timeout).
    #[must_use]
    pub fn head_timeout(mut self, timeout: Duration) -> Self {
        self.head_timeout = timeout;
        self
    }

    /// Sets [`idle_timeout`](Self::idle_timeout).
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Sets [`pin_duration`](Self::pin_duration).
    #[must_use]
    pub fn pin_duration(mut self, duration: Duration) -> Self {
        self.pin_duration = duration;
        self
    }
}
