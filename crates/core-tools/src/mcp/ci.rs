//! Commands and diagnostics as tools.

use super::answer::{Answer, ToolError};
use super::host::Context;
use super::limits::Programs;
use super::tool::{Left, Tool, Toolset};
use crate::ci::{
    Background, Build, BuildError, CommandError, CommandList, CommandReport, Commands, Diagnostics,
    GetDiagnostics, Goal, ListCommands, Reach, ReadCommandOutput, RunCommand, ServerFacts, StartCommand,
    StartedCommand, StopCommand, Verdict, WriteCommandInput, build, diagnose, toolchains,
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

/// The toolset `ci`: commands in the foreground and the background, diagnostics. `max_timeout` is the host's
/// ([`Limits::max_timeout`](super::Limits)), for the list to tell.
pub fn toolset(commands: Commands, facts: ServerFacts, max_timeout: Duration) -> Toolset {
    let background = Arc::new(Background::new(commands.clone()));
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
            build_or_restore(commands.clone(), Goal::Build, max_timeout),
            build_or_restore(commands.clone(), Goal::Restore, max_timeout),
            get_diagnostics(commands, facts),
        ],
    }
}

/// Where a command runs, and what it is.
const COMMAND: &[Effect] =
    &[Effect::Reads("working_directory"), Effect::Runs { command: "command", environment: "env" }];

fn run_command(commands: Commands, max_timeout: Duration) -> Tool {
    Tool::new(
        "run_command",
        "Run a command",
        "Runs a program to its end, or to the time limit. No shell: name one for pipes. Servers: start_command.",
        move |input: RunCommand, context: Context| {
            let commands = reach(&commands, &context).map(|reach| commands.narrowed(&reach));
            async move {
                let commands = commands?;
                let progress = context.progress.clone();
                let said = move |line: &str| {
                    if !line.trim().is_empty() {
                        progress.say(line);
                    }
                };
                let report = commands.run(&input, context.max_timeout, &context.cancel, said).await?;
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

fn start_command(commands: Commands, background: Arc<Background>) -> Tool {
    Tool::new(
        "start_command",
        "Start a background command",
        "Starts a program that outlives this call and ends with the server.",
        move |mut input: StartCommand, context: Context| {
            if let Some(most) = context.role_limit {
                let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
                input.timeout_ms = Some(input.timeout_ms.map_or(most, |asked| asked.min(most)));
            }
            let background = Arc::clone(&background);
            let reach = reach(&commands, &context);
            async move {
                let held = context.programs.as_ref().map(Programs::reserve).transpose();
                let held = held.map_err(ToolError::new)?;
                let started = background.start_within(&input, owner(&context), &reach?, held).await?;
                Answer::structured(&started)
            }
        },
    )
    .destroys()
    .open_world()
    .effects(COMMAND)
    .answers::<StartedCommand>()
}

fn read_command_output(background: Arc<Background>) -> Tool {
    Tool::new(
        "read_command_output",
        "Read background output",
        "What a background command printed, from a cursor on, and whether it runs.",
        move |input: ReadCommandOutput, context: Context| {
            let background = Arc::clone(&background);
            async move {
                Ok(Answer::text(background.read(&input, owner(&context), &context.cancel).await?.to_text()))
            }
        },
    )
    .without_place()
}

fn write_command_input(background: Arc<Background>) -> Tool {
    Tool::new(
        "write_command_input",
        "Write to a background command",
        "Writes to the standard input of a background command. Add the line end.",
        move |input: WriteCommandInput, context: Context| {
            let background = Arc::clone(&background);
            async move { Ok(Answer::text(background.write(&input, owner(&context)).await?)) }
        },
    )
    .destroys()
    .open_world()
    .without_place()
}

fn stop_command(background: Arc<Background>) -> Tool {
    let left = Arc::clone(&background);
    Tool::new(
        "stop_command",
        "Stop a background command",
        "Ends a background command and everything it started; returns its last output.",
        move |input: StopCommand, context: Context| {
            let background = Arc::clone(&background);
            async move { Ok(Answer::text(background.stop(&input, owner(&context)).await?.to_text())) }
        },
    )
    .destroys()
    .idempotent()
    .without_place()
    .on_leave(move |owner| left.end(owner))
}

fn list_commands(background: Arc<Background>) -> Tool {
    let left = Arc::clone(&background);
    Tool::new(
        "list_commands",
        "List background commands",
        "Background commands, running and ended.",
        move |_: ListCommands, context: Context| {
            let background = Arc::clone(&background);
            async move { Answer::structured(&background.list(owner(&context))) }
        },
    )
    .answers::<CommandList>()
    .without_place()
    .tells_left(move || {
        let left = left.all().into_iter().map(|(principal, state)| Left {
            principal,
            id: state.id,
            command: state.command,
            state: state.state,
            duration: Duration::from_millis(state.duration_ms),
        });
        left.collect()
    })
}

fn get_diagnostics(commands: Commands, facts: ServerFacts) -> Tool {
    let shared = Arc::new((commands, facts, OnceCell::new()));
    Tool::new(
        "get_diagnostics",
        "Server and toolchains",
        "Server, system, roots, role, toolchains found.",
        move |_: GetDiagnostics, context: Context| {
            let shared = Arc::clone(&shared);
            async move {
                let (commands, facts, found) = &*shared;
                // Asked once, whoever asks: 25 programs that say the same each time.
                let toolchains = found.get_or_init(|| toolchains(commands, facts, &context.cancel)).await;
                Answer::structured(&diagnose(commands, facts, &context.caller.role(), toolchains.clone()))
            }
        },
    )
    .answers::<Diagnostics>()
}

fn build_or_restore(commands: Commands, goal: Goal, max_timeout: Duration) -> Tool {
    let (name, title, description) = match goal {
        Goal::Build => ("build", "Build a project", "Builds; reports compiler errors."),
        Goal::Restore => ("restore", "Fetch dependencies", "Fetches what a project depends on."),
    };
    Tool::new(name, title, description, move |input: Build, context: Context| {
        let commands = reach(&commands, &context).map(|reach| commands.narrowed(&reach));
        async move {
            let said = |line: &str| context.progress.say(line);
            let report = build(&commands?, goal, &input, context.max_timeout, &context.cancel, said).await?;
            Ok(Answer::report(&report, report.to_text())?.failed_if(!report.success))
        }
    })
    .destroys()
    .open_world()
    .effects(&[Effect::Reads("project_path")])
    .own_deadline()
    .runs_programs()
    .answers::<Verdict>()
    .maximum("timeout_ms", u64::try_from(max_timeout.as_millis()).unwrap_or(u64::MAX))
}

/// What the commands of this call may reach. Folders are all that a fence can be told: what a policy leaves
/// out within them, a command can reach.
pub(super) fn reach(commands: &Commands, context: &Context) -> Result<Reach, ToolError> {
    if context.scope.reaches_all_paths() {
        return Ok(Reach::default());
    }
    let workspace = commands.workspace();
    let folders = |access| {
        let folders = context.scope.folders(access)?;
        // One that is no path beneath a root leads to nothing that could be granted.
        let located = folders.into_iter().filter_map(|folder| workspace.locate(folder).ok());
        Some(located.map(|folder| folder.to_absolute()).collect())
    };
    Ok(Reach {
        read: folders(Access::Read),
        write: folders(Access::Write),
        workspace: Some(context.within(workspace)?),
    })
}

/// Background commands belong to who started them; a local server has one user.
fn owner(context: &Context) -> &str {
    context.owner.as_deref().or_else(|| context.caller.principal()).unwrap_or_default()
}
