//! The tools of another server, for questions about the policy that `wrap` would put in front of it.
#![allow(clippy::disallowed_methods, reason = "the user names the file with the recorded list")]
#![allow(clippy::doc_markdown, reason = "the comments are what --help prints")]

use super::query::PolicyQuery;
use crate::error::Error;
use clap::Args;
use did_you_mean::nearest;
use mcp_proxy::{McpProxyLimits, PolicyHandle, Proxy, ToolDefinitions};
use process_runner::{CancellationToken, ResourceLimits};
use role_policy::{Caller, Policy, ToolFacts};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The time in which the server must answer each question.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The most pages of the list that are read.
const MAX_PAGES: u32 = 1000;

/// The server that `wrap` would run, if the question is about one of its tools.
#[derive(Args, Debug)]
pub(crate) struct ServerArguments {
    /// Tools of another server, as wrap would offer them: a file with the result of its tools/list
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    server_tools: Option<PathBuf>,

    /// Server whose tools wrap would offer: it is started and asked for its tools
    #[arg(last = true, value_name = "COMMAND")]
    server: Vec<OsString>,
}

impl ServerArguments {
    pub(crate) fn is_given(&self) -> bool {
        self.server_tools.is_some() || !self.server.is_empty()
    }

    /// Calls `answer` with the query about a call of the tool.
    pub(super) fn query(
        self,
        policy: Policy,
        caller: Caller,
        tool: &str,
        arguments: &str,
        answer: impl FnOnce(PolicyQuery<'_>) -> Result<ExitCode, Error>,
    ) -> Result<ExitCode, Error> {
        let tools = self.definitions()?;
        if !tools.names().any(|known| known == tool) {
            let suggestion = nearest(tool, tools.names())
                .map(|near| format!("; did you mean `{near}`?"))
                .unwrap_or_default();
            return Err(Error::Argument(format!("the server offers no tool `{tool}`{suggestion}")));
        }
        if let Some((first, second)) = tools.ambiguous_names(tool, arguments.as_bytes()) {
            return Err(Error::Argument(format!(
                "--args: `{first}` and `{second}` are one name to some parsers; wrap refuses such a call"
            )));
        }
        let declared = tools.declared_arguments(tool);
        let facts = ToolFacts::external(tool).declared_arguments(&declared);
        answer(PolicyQuery::of_server(policy, caller, facts, arguments)?)
    }

    fn definitions(self) -> Result<ToolDefinitions, Error> {
        let text = match &self.server_tools {
            Some(file) => std::fs::read(file)
                .map_err(Error::system(format!("cannot read the list of tools {}", file.display())))?,
            None => list(self.server)?,
        };
        ToolDefinitions::parse(&text).map_err(|error| Error::Argument(format!("the list of tools: {error}")))
    }
}

/// Starts the server behind a policy that allows everything, and returns its tools as JSON.
fn list(command: Vec<OsString>) -> Result<Vec<u8>, Error> {
    let failed = || Error::system("cannot talk to the server");
    let folder = std::env::current_dir().map_err(Error::system("cannot find the current folder"))?;
    let upstream = crate::wrap::child(command, folder, ResourceLimits::default())?;
    let (input, to_proxy) = std::io::pipe().map_err(failed())?;
    let (from_proxy, output) = std::io::pipe().map_err(failed())?;
    // The proxy ends when this thread has its answer and closes the pipe.
    let client = std::thread::Builder::new().name("policy-client".to_owned());
    let client = client.spawn(move || ask(to_proxy, from_proxy)).map_err(failed())?;
    let mut limits = McpProxyLimits::default();
    limits.request_timeout = ANSWER_TIMEOUT;
    let proxy = Proxy::new(PolicyHandle::new(Policy::allow_all()), Caller::new("operator")).limits(limits);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::system("cannot start the runtime"))?;
    let streams = (input.into(), output.into());
    let ended =
        runtime.block_on(proxy.run(upstream, streams, CancellationToken::new(), std::future::pending));
    runtime.shutdown_background();
    let answer = client.join().map_err(|_| Error::Failed("the client of the server failed".to_owned()))?;
    ended?;
    answer
}

/// Asks for the tools as a client does.
fn ask(mut to_proxy: PipeWriter, from_proxy: PipeReader) -> Result<Vec<u8>, Error> {
    let mut lines = BufReader::new(from_proxy).lines();
    let mut last_id = 0;
    let mut request = |method: &str, params: Value| -> Result<Value, Error> {
        last_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": last_id, "method": method, "params": params});
        let failed = || Error::system("cannot talk to the server");
        writeln!(to_proxy, "{message}").map_err(failed())?;
        loop {
            let line = lines.next().ok_or_else(|| Error::Failed("the server ended".to_owned()))?;
            let Ok(answer) = serde_json::from_str::<Value>(&line.map_err(failed())?) else { continue };
            if answer["id"] == last_id && answer.get("method").is_none() {
                return match answer.get("result") {
                    Some(result) => Ok(result.clone()),
                    None => Err(Error::Failed(format!(
                        "the server refused {method}: {}",
                        answer["error"]["message"]
                    ))),
                };
            }
        }
    };
    let client = json!({"name": "policy", "version": env!("CARGO_PKG_VERSION")});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    request("initialize", hello)?;
    let mut tools = Vec::new();
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let page = request("tools/list", params)?;
        tools.extend(page["tools"].as_array().cloned().unwrap_or_default());
        match page.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    Ok(Value::Array(tools).to_string().into_bytes())
}
