//! The limits of a session.

use std::collections::BTreeMap;
use std::time::Duration;

/// The longest wait for the last answers after the client has closed its end.
pub(super) const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_millis(300);

/// The limits of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpProxyLimits {
    /// The longest time a request may take. 10 minutes by default.
    pub request_timeout: Duration,
    /// The longest time a call of a single tool may take, by the tool's name, in place of `request_timeout`.
    pub tool_timeouts: BTreeMap<String, Duration>,
    /// The longest time a request waits for a server that is down. 10 s by default.
    pub reconnect_timeout: Duration,
    /// The largest number of the client's requests that may be open at once. 1,024 by default.
    pub max_open_requests: usize,
}

impl Default for McpProxyLimits {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(600),
            tool_timeouts: BTreeMap::new(),
            reconnect_timeout: Duration::from_secs(10),
            max_open_requests: 1024,
        }
    }
}

impl McpProxyLimits {
    /// Returns the longest time that a call of `tool` may take.
    pub(super) fn timeout_of(&self, tool: &str) -> Duration {
        self.tool_timeouts.get(tool).copied().unwrap_or(self.request_timeout)
    }

    /// Returns the longest time that any request may take.
    #[cfg(feature = "url")]
    pub(super) fn max_timeout(&self) -> Duration {
        self.tool_timeouts.values().copied().fold(self.request_timeout, Duration::max)
    }
}
