//! The subcommand `hook`: answers the hooks of agent clients, and installs itself in their settings.

mod answer;
mod arguments;
mod findings;
mod install;
mod trial;

use crate::cli::GlobalOptions;
use crate::error::Error;
use agent_hooks::HookClient;
pub(crate) use arguments::HookCommand;
pub(crate) use findings::findings;
use server_setup::Program;
use std::process::ExitCode;

pub(crate) const EXAMPLES: &str = "\
Examples:
  mcp-stdio --role worker hook install claude        judge what Claude Code does, in every project
  mcp-stdio --role worker hook install gemini --project
  mcp-stdio --role worker hook test claude calls.jsonl    print the decision for each line, run nothing
  mcp-stdio hook remove claude

The client's own settings are changed, and kept as they were beside them, under their name with .bak.

Exit codes:
  0  the event was answered, or the settings are as they should be
  2  it could not be done; a client refuses the tool then";

/// Runs the subcommand.
pub(crate) fn run(
    program: Program,
    options: &GlobalOptions,
    command: HookCommand,
) -> Result<ExitCode, Error> {
    match command {
        HookCommand::Claude(arguments) => {
            Ok(answer::answer(program, options, HookClient::Claude, &arguments))
        }
        HookCommand::Codex(arguments) => Ok(answer::answer(program, options, HookClient::Codex, &arguments)),
        HookCommand::Gemini(arguments) => {
            Ok(answer::answer(program, options, HookClient::Gemini, &arguments))
        }
        HookCommand::Opencode(arguments) => {
            Ok(answer::answer(program, options, HookClient::Opencode, &arguments))
        }
        HookCommand::Copilot(arguments) => {
            Ok(answer::answer(program, options, HookClient::Copilot, &arguments))
        }
        HookCommand::Cursor(arguments) => {
            Ok(answer::answer(program, options, HookClient::Cursor, &arguments))
        }
        HookCommand::Install { client, placement, answer } => {
            install::install(options, client.into(), placement, &answer)
        }
        HookCommand::Remove { client, placement } => install::remove(client.into(), placement),
        HookCommand::Test { client, file } => trial::test(program, options, client.into(), &file),
    }
}
