//! The help texts: with the name of the program, with examples of what it has, and with the global options in one line
//! below each subcommand's own.

use super::arguments::Cli;
use crate::output::{DEFAULT_NAME, name};
use clap::{Command, CommandFactory};
use core_tools::mcp::PRESETS;
use server_setup::{Program, help};

const EXAMPLES: &str = "\
Examples:
  mcp-stdio                                   serve the current folder
  mcp-stdio --root ~/app --root ~/lib         serve two folders; relative paths start at the first
  mcp-stdio --toolsets minimal                offer six tools only
  mcp-stdio print-config claude --write       connect a client
  mcp-stdio tools                             list the tools that a client gets
  mcp-stdio call TOOL --help                  print what a tool takes
  mcp-stdio call read_file '{\"path\": \"README.md\", \"head\": 5}'
  mcp-stdio call run_command '{\"command\": \"cargo check\"}'
  mcp-stdio --remote ssh:build-box:/src       serve a folder of another machine
  mcp-stdio doctor                            check that everything is in place";

/// Words of examples, and whether the toolset is linked that they need. Without it, their lines are left out.
const WORDS_OF_TOOLSETS: [(&str, bool); 5] = [
    ("minimal", cfg!(feature = "filesystem")),
    ("read_file", cfg!(feature = "filesystem")),
    ("search_files", cfg!(feature = "filesystem")),
    ("run_command", cfg!(feature = "ci")),
    ("run_tests", cfg!(feature = "tests")),
];

/// Returns the command line of `program`, with its name in the help texts.
pub(crate) fn command(program: Program) -> Command {
    let toolsets = format!(
        "Tools to offer: presets ({}), toolsets or single tools, separated by commas",
        PRESETS.join(", ")
    );
    let command = Cli::command()
        .version(program.version)
        .after_help(EXAMPLES)
        .mut_arg("toolsets", |argument| argument.help(toolsets));
    let command = help::with_short_global_options(command, DEFAULT_NAME);
    let command =
        help::with_changed_texts(command, &|text| linked_lines(text).replace(DEFAULT_NAME, program.name));
    match program.name == DEFAULT_NAME {
        true => command,
        false => command.name(program.name).bin_name(program.name),
    }
}

/// Parses the arguments of this process. Ends the process if they cannot be understood, or ask for help.
pub(crate) fn parse(program: Program) -> Cli {
    #[cfg(all(feature = "hooks", target_os = "linux"))]
    let arguments = crate::exec::arguments_by_name(std::env::args_os());
    #[cfg(not(all(feature = "hooks", target_os = "linux")))]
    let arguments: Vec<_> = std::env::args_os().collect();
    help::parse(arguments, Cli::command, || command(program))
}

/// Returns the lines of a help text but those about tools that this program does not have.
fn linked_lines(text: &str) -> String {
    let is_linked =
        |line: &&str| WORDS_OF_TOOLSETS.iter().all(|(word, is_linked)| *is_linked || !line.contains(word));
    text.lines().filter(is_linked).collect::<Vec<_>>().join("\n")
}

/// Returns the help of the subcommand `call` itself.
pub(crate) fn call_help(program: Program) -> String {
    let mut command = command(program);
    command.build();
    match command.find_subcommand_mut("call") {
        Some(call) => call.render_help().to_string().trim_end().to_owned(),
        None => String::new(),
    }
}

/// Returns what the program says to somebody who starts it on a terminal, where no client speaks to it.
pub(crate) fn introduction(program: Program) -> String {
    let name = name();
    format!(
        "{name} {version}: tools for a coding agent, served over the Model Context Protocol on standard input and\n\
         output. A client starts it, and on a terminal there is none. You may want\n\n\
         \x20 {name} print-config claude --write   to connect a client (codex, gemini, cursor, vscode and others too)\n\
         \x20 {name} tools                         to list the tools\n\
         \x20 {name} call TOOL --help              to see what a tool takes; without --help it is called\n\
         \x20 {name} doctor                        to check that everything is in place\n\
         \x20 {name} --help                        for everything else",
        version = program.version,
    )
}
