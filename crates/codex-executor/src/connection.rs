//! [`serve`]: the requests of one connection.

use crate::error::Error;
use crate::files::{FileRequestHandler, MAX_FILE_BYTES};
use crate::policy::ExecutorPolicy;
use crate::processes::Processes;
use crate::protocol::{CODEX_VERSION, EnvironmentInfo, ShellInfo, method};
use crate::rpc_error::RpcError;
use crate::uri_of_path;
use process_runner::Runner;
use redaction::Redactor;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc};

/// The longest line: a file of the largest size in base64, with what stands around it.
#[allow(clippy::cast_possible_truncation, reason = "a constant, which fits")]
const MAX_LINE_BYTES: usize = (MAX_FILE_BYTES / 3 * 4) as usize + (1 << 20);
/// The messages that wait to be written.
const MAX_QUEUED: usize = 64;
/// The requests about files that run at once.
const MAX_FILE_REQUESTS: usize = 16;

/// Methods of Codex's protocol that this executor does not offer, and the reason.
const NOT_OFFERED: [(&str, &str); 6] = [
    ("http/request", "this executor makes no HTTP requests; connect MCP servers from Codex itself"),
    ("network/policyDecision", "the network of a command is decided by its role"),
    ("environmentConfig/read", "this executor has no settings of Codex"),
    ("fs/watchMissing", "files are not watched"),
    ("capabilityRoots/discoverV1", "plugins of Codex are not looked for here"),
    ("capabilities/discoverV2", "plugins of Codex are not looked for here"),
];

/// The parts that [`serve`] needs beside the policy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExecutorOptions {
    /// The runner of the processes. The runner is shut down when the connection ends.
    pub runner: Runner,
    /// The redactor of their output.
    pub redactor: Redactor,
    /// The folder that Codex is told.
    pub folder: PathBuf,
    /// The shell that Codex is told.
    pub shell: PathBuf,
    /// The time that processes have to end by themselves when the connection ends.
    pub grace: Duration,
}

impl ExecutorOptions {
    /// Creates the options of an executor in `folder`, whose commands run in bash.
    pub fn new(runner: Runner, redactor: Redactor, folder: PathBuf) -> Self {
        Self {
            runner,
            redactor,
            folder,
            shell: PathBuf::from("/bin/bash"),
            grace: Duration::from_millis(250),
        }
    }
}

/// Serves the executor to the client on `reader` and `writer`, until the client is gone or `ending` is ready. Then every
/// process has ended.
///
/// # Errors
/// The requests cannot be read. Every process has ended then too.
pub async fn serve<P: ExecutorPolicy>(
    mut reader: impl AsyncBufRead + Unpin,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    policy: P,
    options: ExecutorOptions,
    ending: impl Future<Output = ()>,
) -> Result<(), Error> {
    let (sender, messages) = mpsc::channel(MAX_QUEUED);
    let writing = tokio::spawn(write(messages, writer));
    let policy = Arc::new(policy);
    let info = EnvironmentInfo {
        shell: ShellInfo {
            name: options.shell.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            path: options.shell.to_string_lossy().into_owned(),
        },
        cwd: uri_of_path(&options.folder),
        platform_os: std::env::consts::OS,
    };
    let mut connection = ExecutorConnection {
        processes: Processes::new(
            Arc::clone(&policy),
            options.runner.clone(),
            options.redactor.clone(),
            sender.clone(),
        ),
        files: Arc::new(FileRequestHandler::new(policy)),
        file_permits: Arc::new(Semaphore::new(MAX_FILE_REQUESTS)),
        redactor: options.redactor,
        sender,
        info: json!(info),
        is_initialized: false,
    };
    let served = tokio::select! {
        served = connection.read_requests(&mut reader) => served,
        () = ending => Ok(()),
    };
    let ExecutorConnection { processes, sender, .. } = connection;
    processes.shut_down(options.grace).await;
    drop(sender);
    // The last answers, which a client that is gone does not read.
    let abort = writing.abort_handle();
    if tokio::time::timeout(options.grace, writing).await.is_err() {
        abort.abort();
    }
    served
}

async fn write(mut messages: mpsc::Receiver<Value>, mut writer: impl AsyncWrite + Unpin) {
    while let Some(message) = messages.recv().await {
        let mut line = message.to_string();
        line.push('\n');
        if writer.write_all(line.as_bytes()).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}

struct ExecutorConnection<P> {
    processes: Processes<P>,
    files: Arc<FileRequestHandler<P>>,
    file_permits: Arc<Semaphore>,
    redactor: Redactor,
    sender: mpsc::Sender<Value>,
    info: Value,
    is_initialized: bool,
}

impl<P: ExecutorPolicy> ExecutorConnection<P> {
    async fn read_requests(&mut self, reader: &mut (impl AsyncBufRead + Unpin)) -> Result<(), Error> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut line).await;
            if read.map_err(Error::Read)? == 0 {
                return Ok(());
            }
            if line.len() > MAX_LINE_BYTES {
                return Err(Error::LongRequest { limit: MAX_LINE_BYTES });
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            self.message(&line).await;
        }
    }

    async fn message(&mut self, line: &[u8]) {
        let mut message: Value = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(error) => {
                let error = RpcError::parse(format!("the line is no JSON: {error}"));
                return self.send(error.answer(&Value::Null)).await;
            }
        };
        let id = message.get("id").cloned().unwrap_or(Value::Null);
        let Some(method) = message["method"].as_str().map(str::to_owned) else {
            if message.get("result").is_none() && message.get("error").is_none() {
                self.send(RpcError::refused("the message names no method").answer(&id)).await;
            }
            return;
        };
        if id.is_null() {
            // `initialized`, or one that is not known: a notification has no answer.
            return;
        }
        let params = message["params"].take();
        if let Some(answer) = self.request(&method, params, &id).await {
            let answer = match answer {
                Ok(result) => json!({"id": id, "result": result}),
                Err(error) => self.masked(error.answer(&id)),
            };
            self.send(answer).await;
        }
    }

    /// Returns the answer to a request, or `None` if a task of its own sends it.
    async fn request(&mut self, method: &str, params: Value, id: &Value) -> Option<Result<Value, RpcError>> {
        if method == method::INITIALIZE {
            self.is_initialized = true;
            return Some(Ok(json!({"sessionId": "coretools", "environmentInfo": self.info})));
        }
        if !self.is_initialized {
            return Some(Err(RpcError::refused("the first request must be `initialize`")));
        }
        match method {
            method::ENVIRONMENT_INFO => Some(Ok(self.info.clone())),
            method::START => Some(match parsed(params) {
                Ok(params) => self.processes.start(params).await,
                Err(error) => Err(error),
            }),
            method::READ => match parsed(params).and_then(|params| self.processes.read(&params)) {
                Ok(reading) => {
                    let (sender, id) = (self.sender.clone(), id.clone());
                    tokio::spawn(async move {
                        let result = reading.await;
                        let _ = sender.send(json!({"id": id, "result": result})).await;
                    });
                    None
                }
                Err(error) => Some(Err(error)),
            },
            method::WRITE => Some(parsed(params).and_then(|params| self.processes.write(&params))),
            method::SIGNAL => Some(parsed(params).and_then(|params| self.processes.signal(&params))),
            method::TERMINATE => Some(parsed(params).map(|params| self.processes.terminate(&params))),
            method::GET_METADATA_BATCH => {
                self.file_request(params, id, |files, params| files.metadata_of(&params))
            }
            method::COPY => self.file_request(params, id, |files, params| files.copy(&params)),
            method::READ_BLOCK => self.file_request(params, id, |files, params| files.read_block(&params)),
            method::CLOSE => self.file_request(params, id, |files, params| Ok(files.close(&params))),
            other => match ON_PATH.into_iter().find(|name| *name == other) {
                Some(name) => {
                    self.file_request(params, id, move |files, params| files.on_path(name, &params))
                }
                None => Some(Err(unknown_method(other))),
            },
        }
    }

    /// Answers a request about files from a blocking thread.
    fn file_request<T: DeserializeOwned + Send + 'static>(
        &self,
        params: Value,
        id: &Value,
        work: impl FnOnce(&FileRequestHandler<P>, T) -> Result<Value, RpcError> + Send + 'static,
    ) -> Option<Result<Value, RpcError>> {
        let params: T = match parsed(params) {
            Ok(params) => params,
            Err(error) => return Some(Err(error)),
        };
        let (files, permits) = (Arc::clone(&self.files), Arc::clone(&self.file_permits));
        let (sender, redactor, id) = (self.sender.clone(), self.redactor.clone(), id.clone());
        tokio::spawn(async move {
            // The semaphore is never closed.
            let _permit = permits.acquire_owned().await;
            let done = tokio::task::spawn_blocking(move || work(&files, params)).await;
            let done = done.unwrap_or_else(|_| Err(RpcError::failed("the request was not completed")));
            let answer = match done {
                Ok(result) => json!({"id": id, "result": result}),
                Err(error) => masked(&redactor, error.answer(&id)),
            };
            let _ = sender.send(answer).await;
        });
        None
    }

    fn masked(&self, answer: Value) -> Value {
        masked(&self.redactor, answer)
    }

    async fn send(&self, message: Value) {
        // A client that is gone reads nothing; the end of its requests ends the connection.
        let _ = self.sender.send(message).await;
    }
}

/// Masks the message of an error, which may quote a path or a command.
fn masked(redactor: &Redactor, mut answer: Value) -> Value {
    if let Some(message) = answer["error"]["message"].as_str() {
        answer["error"]["message"] = json!(redactor.redact(message));
    }
    answer
}

/// The methods about one path.
const ON_PATH: [&str; 9] = [
    method::READ_FILE,
    method::OPEN,
    method::WRITE_FILE,
    method::CREATE_DIRECTORY,
    method::GET_METADATA,
    method::CANONICALIZE,
    method::READ_DIRECTORY,
    method::WALK,
    method::REMOVE,
];

fn parsed<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params)
        .map_err(|error| RpcError::params(format!("the parameters do not fit: {error}")))
}

fn unknown_method(method: &str) -> RpcError {
    let shown: String = method.chars().take(100).collect();
    match NOT_OFFERED.into_iter().find(|(name, _)| *name == method) {
        Some((name, reason)) => RpcError::unknown_method(format!("`{name}` is not offered: {reason}")),
        None => RpcError::unknown_method(format!(
            "`{shown}` is no method of this executor, which speaks the protocol of Codex {CODEX_VERSION}"
        )),
    }
}
