//! The server over HTTP, on one address of this machine: rmcp's service behind hyper.

use bytes::Bytes;
use core_tools::mcp::Connection;
use http_body_util::combinators::BoxBody;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use tokio::net::TcpListener;

/// The origins of pages on this machine. A page of another origin must not reach the server.
const ORIGINS: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];

/// Serves `connection` at `address`, and prints the address that it got.
pub(crate) async fn serve(address: &str, connection: Connection) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    let config = StreamableHttpServerConfig::default().with_allowed_origins(ORIGINS);
    let sessions = Arc::new(LocalSessionManager::default());
    let service =
        Arc::new(StreamableHttpService::new(move || Ok(connection.new_session()), sessions, config));
    loop {
        let (stream, _) = listener.accept().await?;
        // Without it, the second half of an answer waits for the client's acknowledgement of the first.
        stream.set_nodelay(true)?;
        let service = Arc::clone(&service);
        let answer = service_fn(move |request: http::Request<Incoming>| {
            let service = Arc::clone(&service);
            async move {
                Ok::<http::Response<BoxBody<Bytes, Infallible>>, Infallible>(service.handle(request).await)
            }
        });
        tokio::spawn(async move {
            if let Err(error) = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await {
                tracing::debug!(%error, "a connection ended");
            }
        });
    }
}
