//! HTTP/2: the same answers as over HTTP/1.1, and limits on what one connection can do.

use crate::SOON;
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use http::{Method, Request};
use integration_tests::{HttpServer, Project, alive, unique_seconds, wait_until, wait_until_gone};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// A connection, which is driven by a task until either side closes it.
struct Http2Connection {
    requests: SendRequest<Bytes>,
    driver: JoinHandle<Result<(), h2::Error>>,
}

impl Http2Connection {
    async fn connect(server: &HttpServer) -> Self {
        let stream = TcpStream::connect(server.address()).await.unwrap();
        let (requests, connection) = h2::client::handshake(stream).await.unwrap();
        Self { requests, driver: tokio::spawn(connection) }
    }

    /// Begins a request with this body.
    async fn begin(&self, request: Request<()>, body: Option<String>) -> ResponseFuture {
        let mut ready = self.requests.clone().ready().await.unwrap();
        let (response, mut stream) = ready.send_request(request, body.is_none()).unwrap();
        if let Some(body) = body {
            stream.send_data(body.into(), true).unwrap();
        }
        response
    }

    async fn get(&self, host: &str, path: &str) -> u16 {
        let request = Request::get(format!("http://{host}{path}")).body(()).unwrap();
        answered(self.begin(request, None).await).await.0
    }

    async fn call(&self, token: &str, tool: &str, arguments: Value) -> ResponseFuture {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "h2", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = Request::builder()
            .method(Method::POST)
            .uri("http://localhost/mcp")
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool)
            .body(())
            .unwrap();
        self.begin(request, Some(message.to_string())).await
    }
}

async fn answered(response: ResponseFuture) -> (u16, String) {
    let response = tokio::time::timeout(SOON, response).await.unwrap().unwrap();
    let (status, mut body) = (response.status().as_u16(), response.into_body());
    let mut text = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        let _ = body.flow_control().release_capacity(data.len());
        text.extend_from_slice(&data);
    }
    (status, String::from_utf8(text).unwrap())
}

#[test]
fn many_calls_at_once_are_answered_on_one_connection() {
    let project = Project::with([("a.txt", "hello over two")]);
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    Runtime::new().unwrap().block_on(async {
        let client = Http2Connection::connect(&server).await;
        assert_eq!(client.get("localhost", "/healthz").await, 200);
        assert_eq!(client.get("localhost", "/mcp").await, 401);
        assert_eq!(client.get("evil.example", "/healthz").await, 403);
        let mut calls = Vec::new();
        for _ in 0..10 {
            calls.push(client.call(&token, "read_file", json!({"path": "a.txt"})).await);
        }
        for call in calls {
            let (status, text) = answered(call).await;
            assert!(status == 200 && text.contains("hello over two"), "{status}: {text}");
        }
    });
}

#[test]
fn a_request_that_is_reset_ends_its_call_and_no_other() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    Runtime::new().unwrap().block_on(async {
        let client = Http2Connection::connect(&server).await;
        let (one, other) = (unique_seconds(), unique_seconds());
        let sleep = |seconds: &str| json!({"command": ["sleep", seconds]});
        let call = client.call(&token, "run_command", sleep(&one)).await;
        let kept = client.call(&token, "run_command", sleep(&other)).await;
        wait_until(SOON, "both run", || !alive(&one).is_empty() && !alive(&other).is_empty());
        drop(call);
        wait_until_gone(&one, SOON);
        assert!(!alive(&other).is_empty());
        drop(kept);
        wait_until_gone(&other, SOON);
    });
}

#[test]
fn one_connection_has_a_number_of_requests_and_a_size_of_heads() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    Runtime::new().unwrap().block_on(async {
        let mut client = Http2Connection::connect(&server).await;
        assert_eq!(client.get("localhost", "/healthz").await, 200);
        assert_eq!(client.requests.current_max_send_streams(), 100);
        let request = Request::get("http://localhost/healthz").header("x-large", "x".repeat(40 * 1024));
        let response = client.begin(request.body(()).unwrap(), None).await.await;
        let refused = response.map_or(true, |response| response.status().as_u16() == 431);
        assert!(refused, "a head of 40 KiB is refused");
        // Requests that are reset as soon as they are sent, as in CVE-2023-44487.
        for _ in 0..10_000 {
            let Ok(mut ready) = client.requests.clone().ready().await else { break };
            let request = Request::get("http://localhost/healthz").body(()).unwrap();
            let Ok((_, mut stream)) = ready.send_request(request, false) else { break };
            stream.send_reset(h2::Reason::CANCEL);
            client.requests = ready;
        }
        assert_eq!(
            Http2Connection::connect(&server).await.get("localhost", "/healthz").await,
            200,
            "others are served"
        );
    });
}

#[test]
fn a_connection_without_requests_is_closed_in_time() {
    let (project, outside) = (Project::empty(), Project::empty());
    let config = outside.join("coretools.toml");
    std::fs::write(&config, "[http]\nheader_timeout_ms = 1000\n").unwrap();
    let server = HttpServer::start(&project, &["--config", config.to_str().unwrap()]);
    Runtime::new().unwrap().block_on(async {
        let silent = Http2Connection::connect(&server).await;
        let used = Http2Connection::connect(&server).await;
        assert_eq!(used.get("localhost", "/healthz").await, 200);
        let began = Instant::now();
        for client in [silent, used] {
            tokio::time::timeout(SOON, client.driver).await.expect("it is closed").unwrap().ok();
        }
        assert!(began.elapsed() >= Duration::from_millis(500), "{:?}", began.elapsed());
    });
}
