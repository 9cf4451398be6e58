//! Tools from the shell: what there is, and one call.

use crate::print;
use crate::setup::Server;
use core_tools::mcp::Context;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Prints the tools that a client would be offered.
pub(crate) fn tools(server: &Server, as_json: bool, as_markdown: bool) -> ExitCode {
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
    let mut last = "";
    for (tool, toolset) in tools.iter().zip(toolsets) {
        if toolset != last {
            let _ = writeln!(text, "{}{toolset}:", if last.is_empty() { "" } else { "\n" });
            last = toolset;
        }
        let title = tool.title.as_deref().unwrap_or_default();
        let _ = writeln!(text, "  {:width$}  {title}", tool.name);
    }
    let bytes = json!({"tools": tools}).to_string().len();
    let _ = write!(text, "\n{} tools; a client's list of them has {bytes} bytes", tools.len());
    print(&text)
}

/// Makes one call and prints its answer.
pub(crate) async fn call(
    server: Server,
    tool: &str,
    arguments: &str,
    as_json: bool,
) -> Result<ExitCode, String> {
    let arguments = read_arguments(arguments)?;
    let cancel = CancellationToken::new();
    let context = Context::new(server.caller.clone(), cancel.clone());
    let call = server.host.call(tool, arguments, context);
    let mut call = std::pin::pin!(call);
    let answer = tokio::select! {
        answer = &mut call => answer,
        _ = tokio::signal::ctrl_c() => {
            cancel.cancel();
            call.await
        }
    };
    server.runner.shutdown(Duration::from_secs(2)).await;
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Err(error.to_string()),
    };
    let failed = answer.is_failed();
    let printed = if as_json {
        print(&format!("{:#}", json!(answer.into_call_result())))
    } else if failed {
        crate::print_error(&answer.to_text());
        ExitCode::FAILURE
    } else {
        print(&answer.to_text())
    };
    Ok(if failed { ExitCode::FAILURE } else { printed })
}

fn read_arguments(text: &str) -> Result<Map<String, Value>, String> {
    let mut input = String::new();
    let text = if text == "-" {
        std::io::stdin()
            .read_to_string(&mut input)
            .map_err(|error| format!("cannot read standard input: {error}"))?;
        &input
    } else {
        text
    };
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err("the arguments are no JSON object; for example: {\"path\": \"README.md\"}".to_owned()),
        Err(error) => {
            Err(format!("the arguments are not JSON: {error}; for example: {{\"path\": \"README.md\"}}"))
        }
    }
}
