//! The subcommand `completions`: a script that completes options, tools, roles and clients.

use crate::cli;
use crate::output::{name, print_error};
use clap::Command;
use clap::builder::{PossibleValue, PossibleValuesParser};
use core_tools::mcp::PRESETS;
use error_causes::chain;
use server_setup::config::SettingFlags;
use server_setup::manual::{self, Shell};
use server_setup::setup::{self, LocalServer};
use server_setup::{Program, read_settings};

/// Returns the script for `shell`. It has the tools and roles of the configuration that holds here; where that cannot be
/// used, it has none of them, and standard error says why.
pub(crate) fn script(program: Program, shell: Shell, flags: &SettingFlags) -> String {
    let command = cli::command(program);
    let mut command = match read_settings::read(program, flags, None).and_then(setup::server) {
        Ok(server) => with_words(command, &server),
        Err(error) => {
            print_error(&format!("{}: the script has no tools and roles: {}", name(), chain(&error)));
            command
        }
    };
    manual::completions(shell, &mut command)
}

/// Adds the names that exist to the arguments that take one. A call is parsed without them, as any name may come.
fn with_words(command: Command, server: &LocalServer) -> Command {
    let listed = server.host.list(&server.caller);
    let title = |name: &str| listed.iter().find(|tool| tool.name == name).and_then(|tool| tool.title.clone());
    let names = server.host.names(&server.caller).into_iter();
    let tools = names.map(|name| PossibleValue::new(name).help(title(name).unwrap_or_default())).collect();
    // The command line takes only texts that live as long as the program, which ends once the script is printed.
    let roles = server.host.policy().roles().map(|role| &*role.to_owned().leak()).collect();
    let mut toolsets = server.host.toolsets(&server.caller);
    toolsets.dedup();
    let lists = PRESETS.into_iter().chain(toolsets).collect();
    CompletionWords { tools, roles, lists }.added_to(command)
}

/// The words that stand for tools, roles and lists of tools.
struct CompletionWords {
    tools: Vec<PossibleValue>,
    roles: Vec<&'static str>,
    lists: Vec<&'static str>,
}

impl CompletionWords {
    /// Adds the words to the arguments of `command` and of its subcommands.
    fn added_to(&self, mut command: Command) -> Command {
        let ids: Vec<_> = command.get_arguments().map(|argument| argument.get_id().to_string()).collect();
        for id in ids {
            let parser = match id.as_str() {
                "tool" => PossibleValuesParser::new(self.tools.clone()),
                "role" | "session_role" => PossibleValuesParser::new(self.roles.clone()),
                "toolsets" if command.get_name() != "new" => PossibleValuesParser::new(self.lists.clone()),
                _ => continue,
            };
            command = command.mut_arg(id, |argument| argument.value_parser(parser));
        }
        let names: Vec<_> =
            command.get_subcommands().map(|subcommand| subcommand.get_name().to_owned()).collect();
        names.into_iter().fold(command, |command, name| {
            command.mut_subcommand(name, |subcommand| self.added_to(subcommand))
        })
    }
}
