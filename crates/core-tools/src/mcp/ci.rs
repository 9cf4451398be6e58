//! The toolset `ci`: commands, builds and diagnostics.

use super::answer::{Answer, ToolError};
use super::call_context::CallContext;
use super::permits::ProcessPermits;
use super::tool::{BackgroundProcess, Tool};
use super::toolset::Toolset;
use crate::ci::{
    BackgroundCommands, BackgroundStatus, BuildError, BuildGoal, BuildRequest, CommandError, CommandList,
    CommandReport, CommandScope, Commands, GetDiagnostics, ListCommands, ReadCommandOutput, RunCommand,
    ServerDiagnostics, ServerFacts, StartCommand, StartedCommand, StopCommand, SuccessOutput,
    WriteCommandInput, build, diagnose, toolchains,
};
use role_policy::{Access, Effect};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

impl From<CommandError> for ToolError {
    fn from(error: CommandError) -> Self {
        Self::from_error(&error)
    }
}

impl From<BuildError> for ToolError {
    fn from(error: BuildError) -> Self {
        Self::from_error(&error)
    }
}

/// Creates the toolset `ci`: commands in the foreground and the background, builds, diagnostics. `max_timeout`
/// is that of the host ([`HostLimits::max_timeout`](super::HostLimits)); the input schemas give it as the maximum.
pub fn toolset(commands: Commands, facts: ServerFacts, max_timeout: Duration) -> Toolset {
    let background = Arc::new(BackgroundCommands::new(commands.clone()));
    let started = commands.clone();
    Toolset {
        name: "ci",
        tools: vec![
            run_command(commands.clone(), max_timeout),
            start_command(started, Arc::clone(&background)),
            read_command_output(Arc::clone(&background)),
            write_command_input(Arc::clone(&background)),
            stop_command(Arc::clone(&background)),
            list_commands(background),
            build_or_restore(commands.clone(), BuildGoal::Build, max_timeout),
            build_or_restore(commands.clone(), BuildGoal::Restore, max_timeout),
            get_diagnostics(commands, facts),
        ],
    }
}

/// The effects of a command on the workspace, for the policy: the folder that it runs in, and the program.
const COMMAND: &[Effect] =
    &[Effect::Reads("working_directory"), Effect::Runs { command: "command", environment: "env" }];

fn run_command(commands: Commands, max_timeout: Duration) -> Tool {
    Tool::new(
        "run_command",
        "Run a command",
        "Runs a program to its end, or to the time limit. No shell: name one for pipes. Servers: start_command.",
        move |input: RunCommand, context: CallContext| {
            let commands = command_scope(&commands, &context).map(|scope| commands.narrowed(&scope));
            async move {
                let commands = commands?;
                let progress = context.progress.clone();
                let on_progress = move |line: &str| {
                    if !line.trim().is_empty() {
                        progress.update(line);
                    }
                };
                let report = commands.run(&input, context.max_timeout, &context.cancel, on_progress).await?;
                Ok(Answer::report(&report, report.to_text())?.failed_if(!report.is_success()))
            }
        },
    )
    .destroys()
    .open_world()
    .effects(COMMAND)
    .own_deadline()
    .runs_programs()
    .maximum("timeout_ms", u64::try_from(max_timeout.as_millis()).unwrap_or(u64::MAX))
    .answers::<CommandReport>()
}

fn start_command(commands: Commands, background: Arc<BackgroundCommands>) -> Tool {
    Tool::new(
        "start_command",
        "Start a background command",
        "Starts a program that outlives this call and ends with the server.",
        move |mut input: StartCommand, context: CallContext| {
            // The command outlives the call, so the limit of the caller's role becomes its own.
            if let Some(role_limit) = context.role_limit {
                let max = u64::try_from(role_limit.as_millis()).unwrap_or(u64::MAX);
                input.timeout_ms = Some(input.timeout_ms.map_or(max, |requested| requested.min(max)));
            }
            let background = Arc::clone(&background);
            let scope = command_scope(&commands, &context);
            async move {
                let permit = context.process_permits.as_ref().map(ProcessPermits::try_acquire).transpose();
                let permit = permit.map_err(|error| ToolError::from_error(&error))?;
                let started = background.start_within(&input, owner(&context), &scope?, permit).await?;
                Answer::structured(&started)
            }
        },
    )
    .destroys()
    .open_world()
    .effects(COMMAND)
    .answers::<StartedCommand>()
}

fn read_command_output(background: Arc<BackgroundCommands>) -> Tool {
    Tool::new(
        "read_command_output",
        "Read background output",
        "What a background command printed, from a cursor on, and whether it runs.",
        move |input: ReadCommandOutput, context: CallContext| {
            let background = Arc::clone(&background);
            async move {
                Ok(Answer::text(background.read(&input, owner(&context), &context.cancel).await?.to_text()))
            }
        },
    )
    .unmetered()
}

fn write_command_input(background: Arc<BackgroundCommands>) -> Tool {
    Tool::new(
        "write_command_input",
        "Write to a background command",
        "Writes to the standard input of a background command. Add the line end.",
        move |input: WriteCommandInput, context: CallContext| {
            let background = Arc::clone(&background);
            async move { Ok(Answer::text(background.write(&input, owner(&context)).await?)) }
        },
    )
    .destroys()
    .open_world()
    .unmetered()
}

fn stop_command(background: Arc<BackgroundCommands>) -> Tool {
    // One hook for the whole toolset is enough; it is with the tool that ends commands.
    let released = Arc::clone(&background);
    Tool::new(
        "stop_command",
        "Stop a background command",
        "Ends a background command and everything it started; returns its last output.",
        move |input: StopCommand, context: CallContext| {
            let background = Arc::clone(&background);
            async move { Ok(Answer::text(background.stop(&input, owner(&context)).await?.to_text())) }
        },
    )
    .destroys()
    .idempotent()
    .unmetered()
    .on_release_caller(move |owner| released.stop_all(owner))
}

fn list_commands(background: Arc<BackgroundCommands>) -> Tool {
    let listed = Arc::clone(&background);
    Tool::new(
        "list_commands",
        "List background commands",
        "Background commands, running and ended.",
        move |_: ListCommands, context: CallContext| {
            let background = Arc::clone(&background);
            async move { Answer::structured(&background.list(owner(&context))) }
        },
    )
    .answers::<CommandList>()
    .unmetered()
    .lists_background(move || {
        let processes = listed.all().into_iter().map(|(principal, state)| BackgroundProcess {
            principal,
            id: state.id,
            command: state.command,
            state: state.state.name(),
            running: state.state == BackgroundStatus::Running,
            duration: Duration::from_millis(state.duration_ms),
        });
        processes.collect()
    })
}

fn get_diagnostics(commands: Commands, facts: ServerFacts) -> Tool {
    let shared = Arc::new((commands, facts, OnceCell::new()));
    Tool::new(
        "get_diagnostics",
        "Server and toolchains",
        "Server, system, roots, role, toolchains found.",
        move |_: GetDiagnostics, context: CallContext| {
            let shared = Arc::clone(&shared);
            async move {
                let (commands, facts, cached) = &*shared;
                // The 25 programs are asked once: they print the same for every caller.
                let toolchains = cached.get_or_init(|| toolchains(commands, facts, &context.cancel)).await;
                Answer::structured(&diagnose(commands, facts, &context.caller.role(), toolchains.clone()))
            }
        },
    )
    .answers::<ServerDiagnostics>()
}

fn build_or_restore(commands: Commands, goal: BuildGoal, max_timeout: Duration) -> Tool {
    let (name, title, description) = match goal {
        BuildGoal::Build => ("build", "Build a project", "Builds; reports compiler errors."),
        BuildGoal::Restore => ("restore", "Fetch dependencies", "Fetches what a project depends on."),
    };
    Tool::new(name, title, description, move |input: BuildRequest, context: CallContext| {
        let commands = command_scope(&commands, &context).map(|scope| commands.narrowed(&scope));
        async move {
            let on_progress = |line: &str| context.progress.update(line);
            let report =
                build(&commands?, goal, &input, context.max_timeout, &context.cancel, on_progress).await?;
            Ok(Answer::report(&report, report.to_text())?.failed_if(!report.success))
        }
    })
    .destroys()
    .open_world()
    .effects(&[Effect::Reads("project_path")])
    .own_deadline()
    .runs_programs()
    .answers::<SuccessOutput>()
    .maximum("timeout_ms", u64::try_from(max_timeout.as_millis()).unwrap_or(u64::MAX))
}

/// Returns what the commands of this call may reach. Confinement grants whole folders: a command can reach what
/// the policy leaves out within them.
pub(super) fn command_scope(commands: &Commands, context: &CallContext) -> Result<CommandScope, ToolError> {
    if context.scope.reaches_all_paths() {
        return Ok(CommandScope::default());
    }
    let workspace = commands.workspace();
    let folders = |access| {
        let folders = context.scope.folders(access)?;
        // A folder outside the roots is left out: there is nothing in it that could be granted.
        let located = folders.into_iter().filter_map(|folder| workspace.locate(folder).ok());
        Some(located.map(|folder| folder.to_absolute()).collect())
    };
    Ok(CommandScope {
        read: folders(Access::Read),
        write: folders(Access::Write),
        workspace: Some(context.within(workspace)?),
    })
}

/// Returns the owner of the background commands of this call: the caller. A local server has one caller, with an
/// empty name.
fn owner(context: &CallContext) -> &str {
    context.owner.as_deref().or_else(|| context.caller.principal()).unwrap_or_default()
}
