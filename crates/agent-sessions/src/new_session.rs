//! Checks the description of a new session, and makes its first record.

use crate::clock;
use crate::error::{Error, ErrorCode};
use crate::options::EffectiveSupervisorOptions;
use crate::protocol::NewSession;
use crate::random::new_session_id;
use crate::record::SessionRecord;
use crate::state::SessionState;

/// The longest message, prompt or argument, in bytes. A line of the protocol holds it, and so does a command line
/// (execve(2) takes 128 KiB).
pub(crate) const MAX_TEXT_BYTES: usize = 100_000;

/// Makes the record of a new session that belongs to `principal`.
///
/// # Errors
/// The description names no program, no role or an unknown agent, or a text in it cannot be an argument.
pub(crate) fn new_record(
    settings: &EffectiveSupervisorOptions,
    principal: Option<&str>,
    new: NewSession,
) -> Result<SessionRecord, Error> {
    let invalid = |message: String| Error::new(ErrorCode::Invalid, message);
    let named_agent = match &new.agent {
        None => None,
        Some(name) => Some(settings.agents.by_name(name).ok_or_else(|| {
            let known: Vec<_> = settings.agents.names().collect();
            invalid(format!("no agent is called `{name}`; known are {}", known.join(", ")))
        })?),
    };
    let command = match (new.command, named_agent) {
        (Some(command), _) => command,
        (None, Some(agent)) => agent.programs.iter().take(1).cloned().collect(),
        (None, None) => settings.command.clone(),
    };
    let Some(program) = command.first().filter(|program| !program.is_empty()) else {
        return Err(invalid(
            "no agent to start: name it by `agent` or its command, or set sessions.command in the configuration"
                .to_owned(),
        ));
    };
    let agent = named_agent.or_else(|| settings.agents.by_program(program));
    let pty = new.pty.unwrap_or_else(|| agent.is_some_and(|agent| agent.pty));
    let agent = agent.map(|agent| agent.name.clone());
    // execve(2) takes no NUL, and would fail later with an error that names nothing.
    for text in command.iter().chain(&new.prompt) {
        if text.len() > MAX_TEXT_BYTES || text.contains('\0') {
            return Err(invalid(format!(
                "a text of the session is longer than {MAX_TEXT_BYTES} bytes, or has a NUL"
            )));
        }
    }
    if new.roles.is_empty() || !new.roles.contains(&new.role) {
        return Err(invalid("a session has a role".to_owned()));
    }
    let now = clock::now_ms();
    Ok(SessionRecord {
        id: new_session_id().map_err(|error| Error::broken("no random numbers", &error))?,
        created: now,
        state: SessionState::Starting,
        since: now,
        // An agent that works on a prompt reads no messages meanwhile, but what has a terminal reads that.
        input: pty || new.input.unwrap_or(agent.is_none() || new.prompt.is_none()),
        pty,
        principal: principal.map(str::to_owned),
        role: new.role,
        roles: new.roles,
        orchestrates: new.orchestrates,
        confinement: new.confinement,
        resource_limits: new.resource_limits,
        inherited_variables: new.inherited_variables,
        roots: new.roots,
        command,
        agent,
        agent_session: None,
        prompt: new.prompt,
        cwd: new.cwd,
        parent: new.parent,
        replaces: None,
        replaced_by: None,
        credential: None,
        process: None,
        started: now,
        attempts: 0,
        crashes: Vec::new(),
        last_stop: None,
    })
}
