//! The tools that start, steer and look at sessions.

mod logs;
mod resources;
mod start;
mod steer;
mod supervisor;

use super::toolset::Toolset;
use crate::ci::Commands;
use crate::sessions::SessionService;

/// The toolset `sessions`. A session may reach what commands of its caller may that are run by `commands`.
pub fn toolset(commands: &Commands, sessions: &SessionService) -> Toolset {
    Toolset::new(
        "sessions",
        [
            steer::status(sessions),
            steer::pause(sessions),
            steer::resume(sessions),
            start::new_session(commands, sessions),
            logs::logs(sessions),
            start::run_agent_command(commands, sessions),
            steer::send_message(sessions),
            steer::list_sessions(sessions),
            steer::end_session(sessions),
        ],
    )
    .resources(resources::resources())
}
