//! The subcommand `approvals`: a person answers the questions of servers in a terminal.

use crate::cli::ApprovalsCommand;
use crate::error::Error;
use crate::output::{name, print, print_error};
use core_tools::mcp::{ApprovalFolder, ApprovalVerdict, FolderQuestion, shown_text};
use serde_json::json;
use server_setup::approvals;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// The exit code if the call does not wait any more.
const NOT_PENDING: u8 = 1;
/// The time that a server has to take an answer. It looks every 0.2 s.
const TAKE_LIMIT: Duration = Duration::from_secs(5);

/// Runs `mcp-stdio approvals COMMAND`; without a command it lists.
pub(crate) fn run(command: Option<ApprovalsCommand>) -> Result<ExitCode, Error> {
    let path = approvals::folder()
        .ok_or_else(|| Error::Failed("set HOME or XDG_STATE_HOME: approvals are kept there".to_owned()))?;
    let folder = ApprovalFolder::open(path).map_err(|error| Error::Failed(error.to_string()))?;
    let result = match command.unwrap_or(ApprovalsCommand::List { json: false }) {
        ApprovalsCommand::List { json } => return list(&folder, json),
        ApprovalsCommand::Show { id } => {
            folder.find(&id).map(|question| format!("{}\n\n{}", question.id, question.question.text()))
        }
        ApprovalsCommand::Allow { id, session } => {
            let verdict = if session { ApprovalVerdict::AllowForSession } else { ApprovalVerdict::AllowOnce };
            answer(&folder, &id, verdict)
        }
        ApprovalsCommand::Deny { id, reason } => {
            let reason = reason.map(|reason| shown_text(reason.trim(), 500));
            answer(&folder, &id, ApprovalVerdict::Deny(reason.filter(|reason| !reason.is_empty())))
        }
    };
    Ok(match result {
        Ok(text) => print(&text),
        Err(error) => {
            print_error(&format!("{}: {error}", name()));
            ExitCode::from(NOT_PENDING)
        }
    })
}

fn answer(
    folder: &ApprovalFolder,
    id: &str,
    verdict: ApprovalVerdict,
) -> Result<String, core_tools::mcp::ApprovalError> {
    let question = folder.find(id)?;
    let word = verdict.as_str();
    folder.answer(&question, verdict, TAKE_LIMIT)?;
    Ok(format!("{word}: {} for {}", shown_text(&question.question.tool, 128), question.question.role))
}

fn list(folder: &ApprovalFolder, as_json: bool) -> Result<ExitCode, Error> {
    let questions = folder.questions().map_err(|error| Error::Failed(error.to_string()))?;
    if as_json {
        let list: Vec<_> = questions
            .iter()
            .map(|waiting| {
                let FolderQuestion { id, question, process, .. } = waiting;
                json!({"id": id, "process": process, "question": question, "waits_s": waits(waiting), "text": question.text()})
            })
            .collect();
        return Ok(print(&format!("{:#}", json!({ "approvals": list }))));
    }
    if questions.is_empty() {
        return Ok(print("no call waits for an approval"));
    }
    let mut text = String::new();
    for waiting in &questions {
        let short: String = waiting.id.chars().take(8).collect();
        let question = &waiting.question;
        let (tool, role) = (shown_text(&question.tool, 40), shown_text(&question.role, 40));
        let _ = writeln!(text, "{short}  {tool}  {role}  waits {} s", waits(waiting));
    }
    text.push_str(
        "show one with `approvals show ID`, answer with `approvals allow ID` or `approvals deny ID`",
    );
    Ok(print(&text))
}

fn waits(question: &FolderQuestion) -> u64 {
    SystemTime::now().duration_since(question.asked_at).unwrap_or_default().as_secs()
}
