//! The server over HTTP, and a client that can also misbehave.

use crate::{Ask, Era, Project, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

/// A server, its tokens, and what it logs. Dropping it kills the server.
#[derive(Debug)]
pub struct HttpServer {
    child: Child,
    address: SocketAddr,
    home: tempfile::TempDir,
    root: PathBuf,
    /// `--policy FILE`, if it has one.
    policy: Vec<String>,
}

/// How long an answer may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

impl HttpServer {
    /// The program, with nothing of the developer's, to be started in `project`.
    pub fn program(project: &Project) -> Command {
        let mut command = project.server_as(crate::http_server());
        command.env_remove("TMPDIR");
        command
    }

    /// Starts a server of `project` with tokens and these `arguments`; the port is the system's choice.
    pub fn start(project: &Project, arguments: &[&str]) -> Self {
        Self::start_with(project, arguments, |_| {})
    }

    /// The same, where `prepare` has the folder in which its tokens and its log are.
    pub fn start_with(project: &Project, arguments: &[&str], prepare: impl FnOnce(&std::path::Path)) -> Self {
        Self::start_as(project, arguments, &[], prepare)
    }

    /// The same, with these variables in its environment.
    pub fn start_in(project: &Project, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::start_as(project, arguments, variables, |_| {})
    }

    fn start_as(
        project: &Project,
        arguments: &[&str],
        variables: &[(&str, &str)],
        prepare: impl FnOnce(&std::path::Path),
    ) -> Self {
        let home = tempfile::tempdir().expect("a temporary folder");
        prepare(home.path());
        let given = arguments.iter().position(|argument| *argument == "--policy");
        let policy = given.map(|place| arguments[place..place + 2].iter().map(ToString::to_string).collect());
        let policy: Vec<String> = policy.unwrap_or_default();
        let tokens = home.path().join("tokens.toml");
        if !tokens.exists() {
            make_token(project, &tokens, "first", "minimal", &[]);
        }
        let log = fs::File::create(home.path().join("log")).expect("a log can be made");
        let mut command = Self::program(project);
        command.arg("--tokens").arg(&tokens);
        if !arguments.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.args(["--log", "info"]).args(arguments).envs(variables.iter().copied());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("a server");
        let mut server = Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            home,
            root: project.path().to_owned(),
            policy,
        };
        let mut found = None;
        wait_until(PATIENCE, "the server says where it is", || {
            found = server.log().lines().find_map(|line| {
                let rest = line.strip_prefix("mcp-http: serving ")?;
                Some(rest.split_once("://")?.1.trim_end_matches("/mcp").parse().ok())
            });
            let unix = server.log().contains("serving unix:");
            found.is_some() || unix || server.child.try_wait().expect("it can be asked").is_some()
        });
        match found.flatten() {
            Some(address) => server.address = address,
            None => assert!(server.log().contains("serving unix:"), "no server: {}", server.log()),
        }
        server
    }

    /// Runs the program to its end, which is what it does where it may not start.
    pub fn refuses(project: &Project, arguments: &[&str]) -> String {
        let output =
            Self::program(project).args(arguments).stdin(Stdio::null()).output().expect("it can be run");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        said
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its folder for tokens and the like, which is none of its roots.
    pub fn home(&self) -> &std::path::Path {
        self.home.path()
    }

    /// Returns what it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }

    /// The file of its tokens.
    pub fn token_file(&self) -> PathBuf {
        self.home.path().join("tokens.toml")
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Makes a token, which the server knows when this returns.
    pub fn token(&self, name: &str, role: &str, more: &[&str]) -> String {
        let project = Project::at(&self.root);
        let policy = self.policy.iter().map(String::as_str);
        let more: Vec<&str> = policy.chain(more.iter().copied()).collect();
        let token = make_token(&project, &self.home.path().join("tokens.toml"), name, role, &more);
        wait_until(PATIENCE, "the token is known", || {
            let reply = self.get("/mcp", Some(&token));
            reply.status != 401
        });
        token
    }

    /// Runs `mcp-http token …` on its tokens.
    pub fn tokens(&self, arguments: &[&str]) -> Output {
        let project = Project::at(&self.root);
        let mut command = Self::program(&project);
        command.arg("--tokens").arg(self.home.path().join("tokens.toml")).arg("token").args(arguments);
        command.output().expect("it can be run")
    }

    /// A GET of `path`.
    pub fn get(&self, path: &str, token: Option<&str>) -> Reply {
        let bearer = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\n{bearer}Accept: text/event-stream\r\nConnection: close\r\n\r\n"
        );
        exchange(self.address, request.as_bytes())
    }

    /// A client with a token.
    pub fn connect(&self, token: &str, era: Era) -> Http {
        Http::connect(self.address, Some(token), era)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal)
            .expect("it is there");
    }

    /// Waits for its end.
    pub fn wait(&mut self, limit: Duration) -> ExitStatus {
        let mut status = None;
        wait_until(limit, "the server ends", || {
            status = self.child.try_wait().expect("it can be waited for");
            status.is_some()
        });
        status.expect("it has ended")
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // The test is over, and so is the server, however it ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn make_token(project: &Project, tokens: &std::path::Path, name: &str, role: &str, more: &[&str]) -> String {
    let mut command = HttpServer::program(project);
    command.arg("--tokens").arg(tokens).args(["token", "new", "--name", name, "--role", role]).args(more);
    let output = command.output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// Its body, as one piece.
    pub body: String,
    /// The same, where it is no text.
    pub bytes: Vec<u8>,
}

impl Reply {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(header, _)| header.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The messages in it: its body, or the events of its stream.
    pub fn messages(&self) -> Vec<Value> {
        let json = |text: &str| {
            serde_json::from_str(text).unwrap_or_else(|error| panic!("no JSON ({error}): {text:?}"))
        };
        match self.header("content-type") {
            Some(kind) if kind.starts_with("text/event-stream") => {
                let data = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
                data.map(str::trim).filter(|data| !data.is_empty()).map(json).collect()
            }
            Some(kind) if kind.starts_with("application/json") => vec![json(&self.body)],
            _ => Vec::new(),
        }
    }

    /// The only message in it, or the last.
    pub fn message(&self) -> Value {
        self.messages().pop().unwrap_or_else(|| panic!("no message: {self:?}"))
    }
}

/// Sends bytes on a connection of their own, and reads one answer.
pub fn exchange(address: SocketAddr, request: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("it can be set");
    // A server that refuses before it has read all of it may close.
    let _ = stream.write_all(request);
    read(&mut stream).unwrap_or_else(|error| {
        panic!("no answer ({error}) to {:?}", String::from_utf8_lossy(&request[..request.len().min(300)]))
    })
}

/// Reads one answer.
///
/// # Errors
/// There is none, or the connection breaks off in the middle of it.
pub fn read(stream: &mut impl Read) -> io::Result<Reply> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(byte(stream)?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("no status: {head:?}")))?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    let mut reply = Reply { status, headers, body: String::new(), bytes: Vec::new() };
    let mut body = Vec::new();
    if reply.header("transfer-encoding") == Some("chunked") {
        loop {
            let mut size = Vec::new();
            while !size.ends_with(b"\r\n") {
                size.push(byte(stream)?);
            }
            let size =
                usize::from_str_radix(String::from_utf8_lossy(&size).trim(), 16).map_err(io::Error::other)?;
            let mut chunk = vec![0; size + 2];
            stream.read_exact(&mut chunk)?;
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = reply.header("content-length") {
        body = vec![0; length.parse().map_err(io::Error::other)?];
        stream.read_exact(&mut body)?;
    } else if status != 204 && status != 202 {
        stream.read_to_end(&mut body)?;
    }
    reply.body = String::from_utf8_lossy(&body).into_owned();
    reply.bytes = body;
    Ok(reply)
}

fn byte(stream: &mut impl Read) -> io::Result<u8> {
    let mut byte = [0];
    stream.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// A client of `/mcp` that keeps one connection.
#[derive(Debug)]
pub struct Http {
    address: SocketAddr,
    stream: Option<TcpStream>,
    token: Option<String>,
    era: Era,
    /// Its session, in the `initialize` era.
    pub session: Option<String>,
    /// Further headers of every request, each with its line end.
    pub headers: String,
    last_id: i64,
}

impl Http {
    /// A client that has said nothing yet.
    pub fn silent(address: SocketAddr, token: Option<&str>, era: Era) -> Self {
        let (token, headers) = (token.map(str::to_owned), String::new());
        Self { address, stream: None, token, era, session: None, headers, last_id: 0 }
    }

    /// A client that is ready to call tools.
    pub fn connect(address: SocketAddr, token: Option<&str>, era: Era) -> Self {
        let mut client = Self::silent(address, token, era);
        if let Era::Initialize(version) = era {
            let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
            let reply =
                client.post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
            assert_eq!(reply.status, 200, "{reply:?}");
            client.session = Some(reply.header("mcp-session-id").expect("a session").to_owned());
            let reply = client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
            assert_eq!(reply.status, 202, "{reply:?}");
        }
        client
    }

    /// The head and the body of a request as this client would send it.
    pub fn bytes(&self, body: &str, method: Option<&str>, name: Option<&str>) -> Vec<u8> {
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{}",
            body.len(),
            self.headers
        );
        let mut header = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        };
        header("Authorization", self.token.as_ref().map(|token| format!("Bearer {token}")).as_deref());
        header("Mcp-Session-Id", self.session.as_deref());
        if method != Some("initialize") {
            header("MCP-Protocol-Version", Some(self.era.version()));
        }
        if self.era == Era::Modern {
            header("Mcp-Method", method);
            header("Mcp-Name", name);
        }
        format!("{head}\r\n{body}").into_bytes()
    }

    /// Returns the bytes that it would send for a message.
    pub fn request_bytes(&self, message: &Value) -> Vec<u8> {
        let params = &message["params"];
        let name = params["name"].as_str().or_else(|| params["uri"].as_str());
        self.bytes(&message.to_string(), message["method"].as_str(), name)
    }

    /// Sends a message, and reads the answer.
    pub fn post(&mut self, message: &Value) -> Reply {
        let bytes = self.request_bytes(message);
        self.send(&bytes)
    }

    /// Sends bytes on its connection, and reads the answer.
    pub fn send(&mut self, bytes: &[u8]) -> Reply {
        // A server may have closed a connection that was idle.
        if let Some(mut stream) = self.stream.take()
            && stream.write_all(bytes).is_ok()
            && let Ok(reply) = read(&mut stream)
        {
            self.stream = Some(stream);
            return reply;
        }
        let mut stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("it can be set");
        stream.set_nodelay(true).expect("it can be set");
        let _ = stream.write_all(bytes);
        let reply = read(&mut stream).unwrap_or_else(|error| panic!("no answer: {error}"));
        self.stream = Some(stream);
        reply
    }

    /// A request as a message.
    pub fn message(&mut self, method: &str, mut params: Value) -> Value {
        self.last_id += 1;
        self.era.fill(&mut params);
        json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
    }

    /// Sends a request without waiting, on a connection of its own.
    pub fn begin(&mut self, method: &str, params: Value) -> TcpStream {
        let message = self.message(method, params);
        let mut stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("it can be set");
        stream.write_all(&self.request_bytes(&message)).expect("it can be sent");
        stream
    }

    /// Sends a request, and returns the whole reply.
    pub fn reply(&mut self, method: &str, params: Value) -> Reply {
        let message = self.message(method, params);
        self.post(&message)
    }

    /// Calls a tool and returns the result, which may be one with `isError`.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("error").is_none(), "a protocol error: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool that must succeed, and returns its text.
    pub fn text(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    /// Calls a tool that must fail, and returns what it says.
    pub fn failure(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }
}

impl Ask for Http {
    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.last_id + 1;
        let reply = self.reply(method, params);
        let messages = reply.messages();
        let answer = messages.into_iter().find(|message| message["id"] == id);
        answer.unwrap_or_else(|| panic!("no answer: {reply:?}"))
    }
}

/// Reads one answer from a connection.
impl TryFrom<&mut TcpStream> for Reply {
    type Error = io::Error;

    fn try_from(stream: &mut TcpStream) -> io::Result<Self> {
        read(stream)
    }
}
