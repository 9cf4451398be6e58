//! [`Processes`]: the processes of one connection.

use crate::environment::with_environment;
use crate::policy::{CodexCommand, ExecutorPolicy};
use crate::process::{ExecutorProcess, write_input};
use crate::protocol::{
    ReadProcess, SignalProcess, StartProcess, TerminateProcess, WriteProcess, WriteStatus,
};
use crate::rpc_error::RpcError;
use crate::sandbox::SandboxLimits;
use crate::{file_uri, protocol};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use error_causes::chain;
use process_runner::{EventGranularity, EventOptions, LagPolicy, Runner, Stdin, TerminalSize};
use redaction::Redactor;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// The processes that are remembered after their end, for `process/read`.
const MAX_ENDED: usize = 64;
/// The pieces of input that wait for a process.
const MAX_QUEUED_INPUT: usize = 256;
/// The time that a process has to end by itself when Codex ends it.
const TERMINATE_GRACE: Duration = Duration::from_secs(1);
/// The longest wait of `process/read`.
const MAX_READ_WAIT: Duration = Duration::from_secs(60);

/// The processes of one connection.
#[derive(Debug)]
pub(crate) struct Processes<P> {
    policy: Arc<P>,
    runner: Runner,
    redactor: Redactor,
    sender: mpsc::Sender<Value>,
    table: HashMap<String, Arc<ExecutorProcess>>,
    /// The ids of `table`, the oldest first.
    order: VecDeque<String>,
    tasks: JoinSet<()>,
}

impl<P: ExecutorPolicy> Processes<P> {
    pub(crate) fn new(
        policy: Arc<P>,
        runner: Runner,
        redactor: Redactor,
        sender: mpsc::Sender<Value>,
    ) -> Self {
        let (table, order, tasks) = (HashMap::new(), VecDeque::new(), JoinSet::new());
        Self { policy, runner, redactor, sender, table, order, tasks }
    }

    pub(crate) async fn start(&mut self, params: StartProcess) -> Result<Value, RpcError> {
        let StartProcess {
            process_id,
            argv,
            cwd,
            env_policy,
            env,
            tty,
            pipe_stdin,
            sandbox,
            metadata,
            others,
        } = params;
        if self.table.contains_key(&process_id) {
            return Err(RpcError::refused(format!("there is a process `{process_id}` already")));
        }
        if argv.first().is_none_or(String::is_empty) {
            return Err(RpcError::params("`argv` names no program"));
        }
        // It could be a restriction, which must not be dropped.
        if let Some(name) = others.iter().find_map(|(name, value)| asks_for_something(value).then_some(name))
        {
            return Err(RpcError::refused(format!(
                "`{name}` is not known to this executor, which speaks the protocol of Codex {}; nothing was started",
                protocol::CODEX_VERSION
            )));
        }
        let folder = file_uri::path_of_uri(&cwd).map_err(|error| RpcError::params(error.to_string()))?;
        let sandbox =
            SandboxLimits::read(&sandbox).map_err(|refusal| RpcError::refused(refusal.to_string()))?;
        let policy = Arc::clone(&self.policy);
        let decided = tokio::task::spawn_blocking(move || {
            policy.command(&CodexCommand {
                words: &argv,
                folder: &folder,
                terminal: tty,
                sandbox: sandbox.as_ref(),
                session: metadata.thread_id.as_deref(),
            })
        });
        let (command, permit) = decided
            .await
            .map_err(|_| RpcError::failed("the decision about the command was not completed"))?
            .map_err(|refusal| RpcError::refused(refusal.to_string()))?;
        let mut command = with_environment(command, &self.runner, env_policy.as_ref(), env);
        let has_input = tty || pipe_stdin;
        if has_input {
            command = command.stdin(Stdin::Piped);
        }
        if tty {
            command = command.terminal(TerminalSize::default()).merge_stderr();
        }
        // `Block`: a program whose output Codex does not read waits, as it would for a terminal.
        let options = EventOptions::default().granularity(EventGranularity::Chunk).lag(LagPolicy::Block);
        let mut running = match self.runner.start(command.events(options)).await {
            Ok(running) => running,
            Err(error) => {
                self.policy.ended(permit, false);
                return Err(RpcError::failed(chain(&error)));
            }
        };
        let Some(events) = running.events() else {
            running.kill();
            self.policy.ended(permit, false);
            return Err(RpcError::failed("the output of the process cannot be followed"));
        };
        let (input, queue) = mpsc::channel(MAX_QUEUED_INPUT);
        let process =
            Arc::new(ExecutorProcess::new(process_id.clone(), running, tty, has_input.then_some(input)));
        if has_input {
            self.tasks.spawn(write_input(Arc::clone(&process), queue));
        }
        let policy = Arc::clone(&self.policy);
        let on_end = |succeeded| async move {
            let ended = tokio::task::spawn_blocking(move || policy.ended(permit, succeeded));
            ended.await.unwrap_or_default()
        };
        let following =
            Arc::clone(&process).follow(events, self.sender.clone(), self.redactor.clone(), on_end);
        self.tasks.spawn(following);
        self.remember(process_id.clone(), process);
        Ok(json!({"processId": process_id, "sandboxType": "none"}))
    }

    fn remember(&mut self, id: String, process: Arc<ExecutorProcess>) {
        self.table.insert(id.clone(), process);
        self.order.push_back(id);
        let ended =
            self.order.iter().filter(|id| self.table.get(*id).is_none_or(|one| one.is_closed())).count();
        if ended > MAX_ENDED
            && let Some(oldest) =
                self.order.iter().position(|id| self.table.get(id).is_none_or(|one| one.is_closed()))
            && let Some(id) = self.order.remove(oldest)
        {
            self.table.remove(&id);
        }
        while self.tasks.try_join_next().is_some() {}
    }

    fn get(&self, id: &str) -> Result<&Arc<ExecutorProcess>, RpcError> {
        self.table.get(id).ok_or_else(|| RpcError::refused(format!("there is no process `{id}`")))
    }

    /// Returns the future of the answer, which may wait for output.
    pub(crate) fn read(
        &self,
        params: &ReadProcess,
    ) -> Result<impl Future<Output = Value> + Send + use<P>, RpcError> {
        let process = Arc::clone(self.get(&params.process_id)?);
        let (after, max_bytes) = (params.after_seq, params.max_bytes);
        let wait = Duration::from_millis(params.wait_ms.unwrap_or(0)).min(MAX_READ_WAIT);
        Ok(async move {
            // Nothing new in time is an answer too.
            let _ = tokio::time::timeout(wait, process.wait_for_event(after.unwrap_or(0))).await;
            process.read(after, max_bytes)
        })
    }

    pub(crate) fn write(&self, params: &WriteProcess) -> Result<Value, RpcError> {
        let Ok(process) = self.get(&params.process_id) else {
            return Ok(json!({"status": WriteStatus::UnknownProcess}));
        };
        let bytes = STANDARD
            .decode(&params.chunk)
            .map_err(|error| RpcError::params(format!("`chunk` is not valid base64: {error}")))?;
        let status = process.write(bytes)?;
        Ok(json!({"status": status}))
    }

    pub(crate) fn signal(&self, params: &SignalProcess) -> Result<Value, RpcError> {
        const SIGINT: i32 = 2;
        let process = self.get(&params.process_id)?;
        let number = match params.signal {
            protocol::ProcessSignal::Interrupt => SIGINT,
        };
        if !process.running().is_finished() {
            process.running().signal(number)?;
        }
        Ok(json!({}))
    }

    pub(crate) fn terminate(&self, params: &TerminateProcess) -> Value {
        let running = self.table.get(&params.process_id).filter(|process| !process.running().is_finished());
        if let Some(process) = running {
            process.running().terminate_within(TERMINATE_GRACE);
        }
        json!({"running": running.is_some()})
    }

    /// Ends every process, and waits until their ends are recorded.
    pub(crate) async fn shut_down(mut self, grace: Duration) {
        self.runner.shutdown(grace).await;
        // Their notifications go nowhere, if the client is gone.
        self.table.clear();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(grace, ended).await;
    }
}

/// Returns true unless the value says nothing.
fn asks_for_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(values) => !values.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    }
}
