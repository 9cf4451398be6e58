//! The subcommands `tools` and `call`.

use crate::error::Error;
use crate::output::{print, print_error};
use core_tools::mcp::CallContext;
use serde_json::{Map, Value, json};
use server_setup::setup::LocalServer;
use std::fmt::Write as _;
use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Prints the tools that a client would be offered.
pub(crate) fn tools(server: &LocalServer, as_json: bool, as_markdown: bool) -> ExitCode {
    if as_markdown {
        return print(server.host.reference(&server.caller).trim_end());
    }
    let tools = server.host.list(&server.caller);
    if as_json {
        return print(&format!("{:#}", json!({"tools": tools})));
    }
    let toolsets = server.host.toolsets(&server.caller);
    let width = tools.iter().map(|tool| tool.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut last_toolset = "";
    for (tool, toolset) in tools.iter().zip(toolsets) {
        if toolset != last_toolset {
            let _ = writeln!(text, "{}{toolset}:", if last_toolset.is_empty() { "" } else { "\n" });
            last_toolset = toolset;
        }
        let title = tool.title.as_deref().unwrap_or_default();
        let _ = writeln!(text, "  {:width$}  {title}", tool.name);
    }
    // Each conversation pays for these bytes: a client gives the list to its model.
    let bytes = json!({"tools": tools}).to_string().len();
    let _ = write!(text, "\n{} tools; a client's list of them has {bytes} bytes", tools.len());
    print(&text)
}

/// Makes one call and prints its answer.
pub(crate) async fn call(
    server: LocalServer,
    tool: &str,
    arguments: &str,
    as_json: bool,
) -> Result<ExitCode, Error> {
    let arguments = read_arguments(arguments)?;
    let cancel = CancellationToken::new();
    let context = CallContext::new(server.caller.clone(), cancel.clone());
    let call = server.host.call(tool, arguments, context);
    let mut call = std::pin::pin!(call);
    let answer = tokio::select! {
        answer = &mut call => answer,
        _ = tokio::signal::ctrl_c() => {
            // The call is waited for: it ends what it has started, and returns an answer that says so.
            cancel.cancel();
            call.await
        }
    };
    server.runner.shutdown(Duration::from_secs(2)).await;
    let answer = answer?;
    let failed = answer.is_failed();
    let printed = if as_json {
        print(&format!("{:#}", json!(answer.into_call_result())))
    } else if failed {
        print_error(&answer.to_text());
        ExitCode::FAILURE
    } else {
        print(&answer.to_text())
    };
    Ok(if failed { ExitCode::FAILURE } else { printed })
}

/// Reads arguments as a JSON object; `-` reads them from standard input.
fn read_arguments(text: &str) -> Result<Map<String, Value>, Error> {
    let mut input = String::new();
    let text = if text == "-" {
        std::io::stdin().read_to_string(&mut input).map_err(Error::system("cannot read standard input"))?;
        &input
    } else {
        text
    };
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(Error::Argument(
            "the arguments are no JSON object; for example: {\"path\": \"README.md\"}".to_owned(),
        )),
        Err(error) => Err(Error::Argument(format!(
            "the arguments are not JSON: {error}; for example: {{\"path\": \"README.md\"}}"
        ))),
    }
}
