//! The protocol byte by byte: a client that can also misbehave.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The two ways to speak MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// `initialize` first; this protocol version.
    Initialize(&'static str),
    /// No handshake; every request says who asks. 2026-07-28.
    Modern,
}

impl Era {
    /// Those that begin with `initialize`.
    pub const INITIALIZE: [Self; 4] = [
        Self::Initialize("2024-11-05"),
        Self::Initialize("2025-03-26"),
        Self::Initialize("2025-06-18"),
        Self::Initialize("2025-11-25"),
    ];

    /// One of each kind: the newest that begins with `initialize`, and the one that does not.
    pub const BOTH: [Self; 2] = [Self::Initialize("2025-11-25"), Self::Modern];

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::INITIALIZE.into_iter().chain([Self::Modern])
    }

    /// The protocol version.
    pub fn version(self) -> &'static str {
        match self {
            Self::Initialize(version) => version,
            Self::Modern => "2026-07-28",
        }
    }

    /// Puts into `params` what every request of this era carries.
    pub fn fill(self, params: &mut Value) {
        if self == Self::Modern {
            let meta = params.as_object_mut().expect("an object").entry("_meta").or_insert_with(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = self.version().into();
            // A test may declare some of its own.
            if meta.get("io.modelcontextprotocol/clientCapabilities").is_none() {
                meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            }
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
        }
    }
}

/// A server, and a client that speaks to it line by line. Dropping it kills the server.
#[derive(Debug)]
pub struct Wire {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    era: Era,
    last_id: i64,
    /// The messages that came while something else was waited for.
    pending: Vec<Value>,
    /// The capabilities that the client declares.
    capabilities: Value,
    /// How long an answer may take.
    patience: Duration,
}

/// How long an answer may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

impl Wire {
    /// Starts `command` and says nothing yet.
    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the server can be started");
        let output = child.stdout.take().expect("it is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                if line.map(|line| sender.send(line)).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take();
        let (era, capabilities) = (Era::Initialize("2025-11-25"), json!({}));
        Self { child, input, lines, era, last_id: 0, pending: Vec::new(), capabilities, patience: PATIENCE }
    }

    /// Waits so long for an answer, for a server that is slowed down on purpose.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Starts `command` and gets ready to call tools.
    pub fn connect(command: Command, era: Era) -> Self {
        Self::connect_as(command, era, json!({}))
    }

    /// The same, as a client with these capabilities.
    pub fn connect_as(command: Command, era: Era, capabilities: Value) -> Self {
        let mut wire = Self::start(command);
        (wire.era, wire.capabilities) = (era, capabilities);
        if let Era::Initialize(version) = era {
            let client = json!({"name": "test", "version": "1"});
            let params =
                json!({"protocolVersion": version, "capabilities": wire.capabilities, "clientInfo": client});
            let answer = wire.request("initialize", params);
            assert_eq!(answer["result"]["protocolVersion"], version);
            wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        wire
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("input is open");
        input.write_all(bytes).and_then(|()| input.flush()).expect("the server reads");
    }

    /// Sends one message.
    pub fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    /// The next message from the server, whatever it is.
    pub fn receive(&mut self) -> Value {
        if self.pending.is_empty() { self.receive_new() } else { self.pending.remove(0) }
    }

    fn receive_new(&mut self) -> Value {
        let patience = self.patience;
        match self.lines.recv_timeout(patience) {
            Ok(line) => {
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("no JSON ({error}): {line:?}"))
            }
            Err(RecvTimeoutError::Timeout) => panic!("nothing from the server in {patience:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("the server has closed its output"),
        }
    }

    /// Returns the messages that have come beside the answers that were waited for: notifications, and answers to
    /// others.
    pub fn others(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.pending)
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Returns true if the server says nothing for so long.
    pub fn is_silent_for(&mut self, time: Duration) -> bool {
        match self.lines.recv_timeout(time) {
            Ok(line) => {
                self.pending.push(serde_json::from_str(&line).expect("JSON"));
                false
            }
            Err(_) => true,
        }
    }

    /// Sends a request, and returns its id.
    pub fn ask(&mut self, method: &str, mut params: Value) -> i64 {
        self.last_id += 1;
        let id = self.last_id;
        self.era.fill(&mut params);
        if self.era == Era::Modern {
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Waits for the answer to one request.
    pub fn answer(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        if let Some(place) = self.pending.iter().position(|message| message["id"] == id) {
            return self.pending.remove(place);
        }
        loop {
            let message = self.receive_new();
            if message["id"] == id {
                return message;
            }
            self.pending.push(message);
        }
    }

    /// Sends a request and waits for its answer.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Calls a tool and returns the result, which may be one with `isError`.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("error").is_none(), "a protocol error: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool and returns its answer, which is structured, JSON in a text or a text, and whether that is a failure.
    pub fn outcome(&mut self, tool: &str, arguments: Value) -> (Value, bool) {
        let mut result = self.call(tool, arguments);
        let answer = match result["structuredContent"].take() {
            Value::Null => {
                let text = result["content"][0]["text"].as_str().unwrap_or_default();
                serde_json::from_str(text).unwrap_or_else(|_| text.into())
            }
            answer => answer,
        };
        (answer, result["isError"] == true)
    }

    /// Calls a tool that must succeed, and returns its text.
    pub fn text(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        // `false` is what it is where a server does not say it.
        assert_ne!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    /// Calls a tool that must fail, and returns what it says.
    pub fn failure(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    /// Closes the server's input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits for the server's end, and returns its status and how long that took.
    pub fn wait(&mut self, limit: Duration) -> (ExitStatus, Duration) {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the server can be waited for") {
                return (status, started.elapsed());
            }
            assert!(started.elapsed() < limit, "the server is alive after {limit:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Sends the server a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("the server is there");
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // The test is over, and so is the server, however it ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
