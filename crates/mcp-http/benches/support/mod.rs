//! The built server, and a client that does little beside waiting.
#![allow(dead_code, reason = "each of the two programs uses a part")]

use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A server that is killed when it is dropped.
pub(crate) struct ServerProcess {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    home: tempfile::TempDir,
}

impl ServerProcess {
    /// `mcp-http` over `root`, with tokens of these names that may do whatever they can, or what `limits` say.
    pub(crate) fn start(root: &Path, config: &str, tokens: &[(&str, &[&str])]) -> (Self, Vec<String>) {
        Self::start_program(Path::new(env!("CARGO_BIN_EXE_mcp-http")), root, config, tokens)
    }

    /// Starts another build of `mcp-http` in the same way.
    pub(crate) fn start_program(
        path: &Path,
        root: &Path,
        config: &str,
        tokens: &[(&str, &[&str])],
    ) -> (Self, Vec<String>) {
        let home = tempfile::tempdir().unwrap();
        let (file, config_file) = (home.path().join("tokens.toml"), home.path().join("coretools.toml"));
        fs::write(&config_file, config).unwrap();
        let program = || {
            let mut command = Command::new(path);
            command.arg("--root").arg(root).arg("--tokens").arg(&file).arg("--config").arg(&config_file);
            command
        };
        let token = |(name, limits): &(&str, &[&str])| {
            let made = program()
                .args(["token", "new", "--name", name, "--role", "orchestrator"])
                .args(*limits)
                .output();
            let made = made.unwrap();
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            String::from_utf8(made.stdout).unwrap().trim().to_owned()
        };
        let tokens = tokens.iter().map(token).collect();
        let log = home.path().join("log");
        let child = program()
            .args(["--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut server = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)), home };
        let began = Instant::now();
        loop {
            let said = fs::read_to_string(&log).unwrap();
            if let Some(address) =
                said.lines().find_map(|line| line.strip_prefix("mcp-http: serving http://"))
            {
                server.address = address.trim_end_matches("/mcp").parse().unwrap();
                return (server, tokens);
            }
            assert!(began.elapsed() < Duration::from_secs(30), "no server: {said}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// This program again, as another server that says its address.
    pub(crate) fn start_self(arguments: &[&str], root: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(arguments)
            .arg(root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut output = child.stdout.take().unwrap();
        while !said.ends_with('\n') {
            let mut byte = [0];
            output.read_exact(&mut byte).unwrap();
            said.push(char::from(byte[0]));
        }
        Self { child, address: said.trim().parse().unwrap(), home: tempfile::tempdir().unwrap() }
    }

    /// Resident memory, in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().split(' ').next().unwrap().parse().unwrap()
    }

    /// Open descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// Programs that it has started and that are there, zombies among them.
    pub(crate) fn children(&self) -> usize {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().flatten();
        let of = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).unwrap_or_default();
        tasks.map(of).map(|children| children.split_whitespace().count()).sum()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One connection that is kept.
pub(crate) struct KeptConnection {
    address: SocketAddr,
    pub(crate) stream: TcpStream,
    token: String,
    pub(crate) session: Option<String>,
    buffer: Vec<u8>,
}

/// An answer.
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) body: String,
}

impl KeptConnection {
    pub(crate) async fn connect(address: SocketAddr, token: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { address, stream, token: token.to_owned(), session: None, buffer: Vec::new() }
    }

    /// A session of the `initialize` era.
    pub(crate) async fn handshake(address: SocketAddr, token: &str) -> Self {
        let mut client = Self::connect(address, token).await;
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let reply = client.send(&client.legacy(&hello)).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        client.session = reply.session;
        let hello = client.legacy(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(client.send(&hello).await.status, 202);
        client
    }

    fn legacy(&self, message: &Value) -> Vec<u8> {
        let session = self.session.as_ref().map(|session| format!("Mcp-Session-Id: {session}\r\n"));
        self.request("POST", &message.to_string(), &session.unwrap_or_default())
    }

    fn request(&self, method: &str, body: &str, more: &str) -> Vec<u8> {
        format!(
            "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{more}\r\n{body}",
            self.token,
            body.len()
        )
        .into_bytes()
    }

    /// The bytes of a call.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Vec<u8> {
        let mut params = json!({"name": tool, "arguments": arguments});
        let message =
            |params: &Value| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        if self.session.is_some() {
            return self.legacy(&message(&params));
        }
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "b", "version": "1"},
        });
        let more =
            format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n");
        self.request("POST", &message(&params).to_string(), &more)
    }

    /// Ends the session.
    pub(crate) async fn end(mut self) {
        if let Some(session) = self.session.take() {
            let goodbye = self.request("DELETE", "", &format!("Mcp-Session-Id: {session}\r\n"));
            assert_eq!(self.send(&goodbye).await.status, 202);
        }
    }

    /// Sends a request on this connection, or on another where the server has closed it, and reads the answer.
    pub(crate) async fn send(&mut self, request: &[u8]) -> HttpReply {
        if self.stream.write_all(request).await.is_ok()
            && let Some(reply) = self.read().await
        {
            return reply;
        }
        self.stream = TcpStream::connect(self.address).await.unwrap();
        self.stream.set_nodelay(true).unwrap();
        self.stream.write_all(request).await.unwrap();
        self.read().await.expect("an answer")
    }

    async fn read(&mut self) -> Option<HttpReply> {
        self.buffer.clear();
        let head = loop {
            if let Some(end) = self.buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break String::from_utf8_lossy(&self.buffer[..end]).into_owned();
            }
            self.more().await?;
        };
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(':'));
            lines
                .find(|(header, _)| header.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.trim().to_owned())
        };
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let begin = head.len() + 4;
        match header("content-length") {
            Some(length) => {
                let length: usize = length.parse().ok()?;
                while self.buffer.len() < begin + length {
                    self.more().await?;
                }
            }
            None if header("transfer-encoding").is_some() => {
                while !self.buffer.ends_with(b"0\r\n\r\n") {
                    self.more().await?;
                }
            }
            None => {}
        }
        let body = String::from_utf8_lossy(&self.buffer[begin..]).into_owned();
        Some(HttpReply { status, session: header("mcp-session-id"), body })
    }

    async fn more(&mut self) -> Option<()> {
        (self.stream.read_buf(&mut self.buffer).await.ok()? > 0).then_some(())
    }
}

/// The time within which `percent` of these were.
pub(crate) fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times.get((times.len() * percent / 100).min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// `uptime`'s three numbers.
pub(crate) fn load() -> String {
    fs::read_to_string("/proc/loadavg").unwrap().split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// A project with some files.
pub(crate) fn lay_out(folder: &Path) -> PathBuf {
    fs::write(folder.join("small.txt"), "0123456789abcdef0123456789abcde\n".repeat(34)).unwrap();
    for index in 0..200 {
        fs::write(folder.join(format!("file_{index:03}.rs")), "fn main() {}\n// TODO\n".repeat(20)).unwrap();
    }
    folder.canonicalize().unwrap()
}
