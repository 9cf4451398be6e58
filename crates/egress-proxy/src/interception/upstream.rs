//! The proxy's own connection to a host whose requests get a credential.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::intercepted_host::InterceptedHost;
use crate::limits::ProxyLimits;

/// A connection to a host, over TLS.
pub(super) struct UpstreamConnection {
    pub(super) reader: BufReader<ReadHalf<TlsStream<TcpStream>>>,
    pub(super) writer: WriteHalf<TlsStream<TcpStream>>,
    /// True if it has carried a request before.
    pub(super) is_reused: bool,
}

impl UpstreamConnection {
    /// Makes TLS on a connection. The certificate of the host is verified.
    pub(super) async fn start(
        stream: TcpStream,
        host: &InterceptedHost,
        limits: &ProxyLimits,
    ) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let connector = TlsConnector::from(std::sync::Arc::clone(&host.client_config));
        let stream =
            timeout(limits.connect_timeout, connector.connect(host.server_name.clone(), stream)).await??;
        let (reader, writer) = tokio::io::split(stream);
        Ok(Self { reader: BufReader::new(reader), writer, is_reused: false })
    }

    /// Returns the connection for another request, unless the host closed it or sent something unasked.
    pub(super) async fn reuse(mut self) -> Option<Self> {
        self.is_reused = true;
        match timeout(Duration::ZERO, self.reader.fill_buf()).await {
            Err(_) => Some(self),
            Ok(_) => None,
        }
    }
}
