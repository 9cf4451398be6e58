//! The session that continues the work of another, with the next step as its prompt.

use super::launch::SessionLaunchError;
use super::owned_record::OwnedSessionRecord;
use crate::backup::back_up;
use crate::clock;
use crate::log::SessionLogLevel;
use crate::next_step::next_prompt;
use crate::random::new_session_id;
use crate::record::SessionRecord;
use crate::state::SessionState;
use crate::supervisor_context::SupervisorContext;
use error_causes::chain;
use std::path::Path;

/// Starts a session that continues the work of the one that `record` describes, and returns its id.
pub(super) async fn start(
    context: &SupervisorContext,
    record: &mut OwnedSessionRecord,
    agent_command: Option<String>,
    attempts: u32,
) -> Result<String, SessionLaunchError> {
    // The watched folders belong to the user for whom the supervisor runs, and to no other caller.
    let is_users = record.principal.is_none();
    let file = is_users.then(|| context.watcher.file_of(record)).flatten();
    if let Some(file) = &file {
        match back_up(file, clock::now_ms()) {
            Ok(copy) => {
                record.log(SessionLogLevel::Info, &format!("its file was copied to {}", copy.display()));
            }
            // A missing copy is no reason to stop the work.
            Err(error) => {
                record.log(SessionLogLevel::Warn, &format!("its file was not copied: {}", chain(&error)));
            }
        }
    }
    let successor = successor_of(record, file.as_deref(), attempts).map_err(SessionLaunchError::Random)?;
    let (id, prompt) = (successor.id.clone(), successor.prompt.clone());
    context.start_successor(successor, agent_command, prompt).await?;
    record.update(|record| record.replaced_by = Some(id.clone()));
    Ok(id)
}

/// Creates the record of a session that continues the work of `record`. `file` is its session file, if it wrote one;
/// `attempts` is the number of attempts that count against the successor.
fn successor_of(
    record: &SessionRecord,
    file: Option<&Path>,
    attempts: u32,
) -> Result<SessionRecord, getrandom::Error> {
    let now = clock::now_ms();
    Ok(SessionRecord {
        id: new_session_id()?,
        created: now,
        since: now,
        started: now,
        state: SessionState::Starting,
        replaces: Some(record.id.clone()),
        replaced_by: None,
        agent_session: None,
        process: None,
        credential: None,
        // The attempts go on, or sessions that exhaust their context at once would follow each other for ever.
        attempts,
        crashes: Vec::new(),
        prompt: next_prompt(file, record),
        ..record.clone()
    })
}
