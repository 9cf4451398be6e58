//! The project's own test command: what a developer types to run all of its tests.
//!
//! A run without a selection runs this command as it is, with its flags, its files, its environment and the other
//! commands around a runner. Each process in it loads a module that adds our reporter where it finds a runner. The
//! exit code of the whole command outranks every report.
//!
//! An ecosystem takes part with a file here that finds its command, and with a way to load a reporter into it
//! ([`ReporterLoading`]).

mod cargo;
mod command;
mod composer;
mod deno;
mod django;
mod find;
mod make_text;
mod node;
mod python_program;
mod rake;
mod recipe;
mod runner_flags;
mod script;
mod script_files;
mod shell;
mod tox;

pub(crate) use command::{CommandPart, ProjectCommand, ReporterLoading, RunnerOwnReport};
pub(crate) use django::django;
pub(crate) use find::{commands_not_run, flags_of_runner, project_command};
pub(crate) use runner_flags::RunnerFlags;
pub(crate) use script::{ScriptCommand, file_name};
pub(crate) use shell::{ShellOptions, commands_of_shell, split_commands};
pub(crate) use tox::pytest_words_of_tox;
