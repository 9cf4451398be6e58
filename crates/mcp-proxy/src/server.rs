//! The server behind the proxy, as the caller of [`Proxy::run`](crate::Proxy::run) names it.

#[cfg(feature = "url")]
use super::upstream_http::RemoteServer;
use super::upstream_process::UpstreamCommand;
use process_runner::Runner;

/// The server behind the proxy.
#[derive(Debug)]
#[non_exhaustive]
pub enum Upstream {
    /// A child process, started with this runner, which is shut down at the end.
    Child(UpstreamCommand, Runner),
    /// A server that is reached by URL.
    #[cfg(feature = "url")]
    Remote(RemoteServer),
}
