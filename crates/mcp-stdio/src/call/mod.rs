//! The subcommand `call`: one call of a tool, from the shell.

mod list;
mod live_display;
mod parameters;

use crate::error::Error;
use crate::output::{print, print_error};
use crate::served_remotes::ServedRemotes;
use crate::terminal::colours;
use core_tools::mcp::{Answer, CallContext, NoSuchTool};
pub(crate) use list::tools;
use live_display::LiveDisplay;
use serde_json::{Map, Value, json};
use server_setup::setup::LocalServer;
use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The time that what a call has left running gets to end.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// The time between two drawings of the progress.
const DRAWING_INTERVAL: Duration = Duration::from_millis(100);

/// Prints what a tool does and takes.
pub(crate) fn parameters(server: &LocalServer, tool: &str) -> Result<ExitCode, Error> {
    let definition = server.host.definition(&server.caller, tool)?;
    Ok(print(&parameters::help(&definition, colours(&std::io::stdout()))))
}

/// Makes one call and prints its answer, also that of work that failed.
pub(crate) async fn call(
    server: LocalServer,
    tool: &str,
    arguments: &str,
    as_json: bool,
) -> Result<ExitCode, Error> {
    let arguments = read_arguments(arguments)?;
    let cancel = CancellationToken::new();
    let mut context = CallContext::new(server.caller.clone(), cancel.clone());
    let mut display = LiveDisplay::on_terminal(tool);
    if let Some(display) = &display {
        context.progress = display.reporter(server.host.redactor().clone());
    }
    let answer = answered(server.host.call(tool, arguments, context), &cancel, display.as_mut()).await;
    if let Some(display) = &mut display {
        display.clear();
    }
    end_what_was_started(&server).await;
    let answer = answer?;
    let failed = answer.is_failed();
    let printed = match as_json {
        true => print(&format!("{:#}", json!(answer.into_call_result()))),
        false => print(&colours(&std::io::stdout()).answer(&answer.to_text(), failed)),
    };
    Ok(if failed { ExitCode::FAILURE } else { printed })
}

/// Waits for the answer, and draws the progress meanwhile. An interrupt cancels the call.
async fn answered(
    call: impl Future<Output = Result<Answer, NoSuchTool>>,
    cancel: &CancellationToken,
    mut display: Option<&mut LiveDisplay>,
) -> Result<Answer, NoSuchTool> {
    let mut call = std::pin::pin!(call);
    let mut ticks = tokio::time::interval(DRAWING_INTERVAL);
    let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        tokio::select! {
            answer = &mut call => return answer,
            _ = ticks.tick(), if display.is_some() => {
                if let Some(display) = display.as_deref_mut() {
                    display.draw();
                }
            }
            _ = &mut interrupt, if !cancel.is_cancelled() => {
                // The call is waited for: it ends what it has started, and returns an answer that says so.
                cancel.cancel();
                if let Some(display) = display.take() {
                    display.clear();
                }
                print_error("interrupted: the call ends, and everything that it started");
            }
        }
    }
}

/// Ends background commands, and the supervisor of sessions if this process has become it: it removes its socket then,
/// so that nobody takes it for killed.
async fn end_what_was_started(server: &LocalServer) {
    /// The time that an engine has to destroy what was created for the call.
    const DESTROY_LIMIT: Duration = Duration::from_secs(60);
    ServedRemotes::of(server).end(DESTROY_LIMIT, SHUTDOWN_GRACE).await;
    #[cfg(all(feature = "sessions", unix))]
    tokio::join!(server.runner.shutdown(SHUTDOWN_GRACE), server.sessions.shutdown(SHUTDOWN_GRACE));
    #[cfg(not(all(feature = "sessions", unix)))]
    server.runner.shutdown(SHUTDOWN_GRACE).await;
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
