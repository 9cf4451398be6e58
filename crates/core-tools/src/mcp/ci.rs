//! The toolset `ci`: commands, builds and diagnostics.

use super::answer::Answer;
use super::background_process::BackgroundProcess;
use super::background_resources;
use super::call_context::CallContext;
use super::permits::{NoPermit, ProcessPermits};
use super::task_use::TASK_AFTER;
use super::tool::Tool;
use super::tool_error::ToolError;
use super::toolset::Toolset;
use crate::ci::{
    BackgroundCommands, BackgroundStartContext, BackgroundStatus, BuildError, BuildGoal, BuildRequest,
    CommandError, CommandList, CommandReport, CommandScope, Commands, GetDiagnostics, ListCommands,
    ReadCommandOutput, RunCommand, ServerDiagnostics, ServerFacts, StartCommand, StartedCommand, StopCommand,
    SuccessOutput, WriteCommandInput, build, diagnose, toolchains,
};
use crate::workspace::Workspace;
use process_runner::SystemCallPermission;
use role_policy::{Access, Effect, SystemCallGroup};
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

/// Creates the toolset `ci`: commands in the foreground and the background, builds, diagnostics. `max_timeout` is
/// [`HostLimits::max_timeout`](super::HostLimits) of the host, which the input schemas give as the maximum.
pub fn toolset(commands: Commands, facts: ServerFacts, max_timeout: Duration) -> Toolset {
    let background = Arc::new(BackgroundCommands::new(commands.clone()));
    let started = commands.clone();
    Toolset::new(
        "ci",
        [
            run_command(commands.clone(), Arc::clone(&background), max_timeout),
            start_command(started, Arc::clone(&background)),
            read_command_output(Arc::clone(&background)),
            write_command_input(Arc::clone(&background)),
            stop_command(Arc::clone(&background)),
            list_commands(background),
            build_or_restore(commands.clone(), BuildGoal::Build, max_timeout),
            build_or_restore(commands.clone(), BuildGoal::Restore, max_timeout),
            get_diagnostics(commands, facts),
        ],
    )
    .resources(background_resources::resources())
}

/// The effects of a command on the workspace, for the policy: the folder that it runs in, and the program.
const COMMAND: &[Effect] = &[
    Effect::Reads("working_directory"),
    Effect::Runs { command: "command", environment: "env" },
    Effect::Shell("shell"),
];

fn run_command(commands: Commands, background: Arc<BackgroundCommands>, max_timeout: Duration) -> Tool {
    Tool::new(
        "run_command",
        "Run a command",
        "Runs a program to its end and returns its exit code, standard output and standard error. Use \
         `start_command` for servers, watchers and work of more than some minutes, and `run_tests` for test \
         suites, whose failures it names one by one. There is no shell unless `shell` is true. At `timeout_ms` \
         the program is ended with everything it started, and what it had printed is returned. A long output \
         keeps its beginning and its end, and the answer says how to read the rest. What a program deletes cannot \
         be undone.",
        move |input: RunCommand, context: CallContext| {
            let commands = command_scope(&commands, &context).map(|scope| commands.narrowed(&scope));
            let background = Arc::clone(&background);
            async move {
                let commands = commands?;
                let progress = context.progress.clone();
                let on_progress = move |line: &str| {
                    if !line.trim().is_empty() {
                        progress.output_line(line);
                    }
                };
                let mut report = commands.run(&input, context.max_timeout, &context.cancel, on_progress).await?;
                background.keep_output(context.background_owner(), &input.command, &mut report);
                Ok(Answer::report(&report, report.to_text())?.failed_if(!report.is_success()))
            }
        },
    )
    .destroys()
    .open_world()
    .effects(COMMAND)
    // At its limit the tool ends the program and still answers with the output, which the host's deadline would drop.
    .own_deadline()
    .long_running(TASK_AFTER)
    .runs_programs()
    .maximum("timeout_ms", u64::try_from(max_timeout.as_millis()).unwrap_or(u64::MAX))
    .answers::<CommandReport>()
}

/// The time that a call needs to answer after a wait.
const ANSWER_MARGIN_MS: u64 = 1_000;

/// Returns true if a start waits for the command to be ready.
fn waits(input: &StartCommand) -> bool {
    input.wait_for_port.is_some() || input.wait_for_output.is_some()
}

fn start_command(commands: Commands, background: Arc<BackgroundCommands>) -> Tool {
    let observed = Arc::clone(&background);
    Tool::new(
        "start_command",
        "Start a background command",
        "Starts a program that goes on after this call, such as a server, a watcher or a REPL, and returns its \
         `id` for `read_command_output` and `stop_command`. `write_command_input` types into it. With \
         `wait_for_port` or `wait_for_output` it answers when the program is ready, ends or the time is up. The \
         program ends with `stop_command`, at its `timeout_ms`, and when this server ends. At most 32 run at once. \
         Use `run_command` for programs that end. What a program deletes cannot be undone.",
        move |mut input: StartCommand, context: CallContext| {
            // The command outlives the call, so the limit of the caller's role becomes its own.
            if let Some(role_limit) = context.role_limit {
                let max = u64::try_from(role_limit.as_millis()).unwrap_or(u64::MAX);
                input.timeout_ms = Some(input.timeout_ms.map_or(max, |requested| requested.min(max)));
                // The call itself has the same limit, and must answer before it.
                let max_wait = max.saturating_sub(ANSWER_MARGIN_MS);
                input.wait_ms = input.wait_ms.or(Some(max_wait).filter(|wait| *wait < 30_000 && waits(&input)));
                input.wait_ms = input.wait_ms.map(|wait| wait.min(max_wait));
            }
            let background = Arc::clone(&background);
            let scope = command_scope(&commands, &context);
            async move {
                // The call does not wait for a permit: one is free only when another program ends, which may be never.
                let permit = context.process_permits.as_ref().map(ProcessPermits::try_acquire).transpose();
                let permit = permit.map_err(|error| ToolError::from_error(&error))?;
                let mut start = BackgroundStartContext::new(context.background_owner());
                start.scope = scope?;
                start.permit = permit;
                start.cancel = context.cancel.clone();
                let started = background.start(&input, start).await?;
                Ok(Answer::report(&started, started.to_text().to_owned())?.failed_if(started.is_failed()))
            }
        },
    )
    .destroys()
    .open_world()
    .effects(COMMAND)
    .answers::<StartedCommand>()
    .sends_notices(move |notices| background_resources::tell_of_changes(&observed, notices))
}

fn read_command_output(background: Arc<BackgroundCommands>) -> Tool {
    Tool::new(
        "read_command_output",
        "Read background output",
        "Returns what a background command has printed since the last read, standard output and standard error in \
         order, and if it runs or how it ended. It waits until there is something new or the command has ended, \
         at most `wait_ms`. Of a command with `pty` it returns the lines that have left the screen since, and the \
         screen as it is now. The last 1 MiB is kept, also after the end.",
        move |input: ReadCommandOutput, context: CallContext| {
            let background = Arc::clone(&background);
            async move {
                let output = background.read(&input, context.background_owner(), &context.cancel).await?;
                context.egress_log.extend(background.refused_connections(input.id, context.background_owner())?);
                Ok(Answer::text(output.to_text()))
            }
        },
    )
    // Output must be readable, and a command must be stoppable, while commands hold every call permit.
    .unmetered()
}

fn write_command_input(background: Arc<BackgroundCommands>) -> Tool {
    Tool::new(
        "write_command_input",
        "Write to a background command",
        "Writes text to the standard input of a background command, or types it into its terminal. A program that \
         reads lines sees nothing before a line end, so end each line with \"\\n\". With `wait_ms` the answer has \
         what the program prints in reply, which saves a read. What the program then does cannot be undone.",
        move |input: WriteCommandInput, context: CallContext| {
            let background = Arc::clone(&background);
            async move { Ok(Answer::text(background.write(&input, context.background_owner(), &context.cancel).await?)) }
        },
    )
    .destroys()
    .open_world()
    .unmetered()
}

fn stop_command(background: Arc<BackgroundCommands>) -> Tool {
    // One hook for the whole toolset is enough; it is with the tool that ends commands.
    let released = Arc::clone(&background);
    let registry = Arc::clone(&background);
    Tool::new(
        "stop_command",
        "Stop a background command",
        "Ends a background command and everything that it started, and returns the end of its output and how it \
         ended. The program is asked to end (SIGTERM) and killed after `grace_ms`, which drops what it had not \
         saved. For a command that has ended already it returns the same.",
        move |input: StopCommand, context: CallContext| {
            let background = Arc::clone(&background);
            async move { Ok(Answer::text(background.stop(&input, context.background_owner()).await?.to_text())) }
        },
    )
    .destroys()
    .idempotent()
    .unmetered()
    .on_release_caller(move |owner| released.stop_all(owner))
    .takes_leftovers(move |owner, tree| {
        registry.add_leftovers(owner, tree).map_err(|error| NoPermit::new(error.to_string()))
    })
}

fn list_commands(background: Arc<BackgroundCommands>) -> Tool {
    let listed = Arc::clone(&background);
    Tool::new(
        "list_commands",
        "List background commands",
        "Lists the background commands of this caller and what its other commands left running, the latest last: `id`, \
         command line, whether it runs or how it ended, and for how long. Use it when an `id` is lost, or to see what still runs. Of those that have ended, the \
         last 32 are kept.",
        move |_: ListCommands, context: CallContext| {
            let background = Arc::clone(&background);
            async move { Answer::structured(&background.list(context.background_owner())) }
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
        "Describes this server and its machine: version, operating system, processors, the roots that paths must \
         lie in, the role of the caller, the confinement of programs, and the toolchains that were found, with \
         versions and paths. Use it when a program is missing or may not do something. It runs nothing of the \
         project.",
        move |_: GetDiagnostics, context: CallContext| {
            let shared = Arc::clone(&shared);
            async move {
                let (commands, facts, cached) = &*shared;
                // The 25 programs are asked once: they print the same for every caller.
                let toolchains = cached.get_or_init(|| toolchains(commands, facts, &context.cancel)).await;
                // The hosts that programs reach are those of the caller's role.
                let network = context.scope.network().clone();
                let credentials = context.credentials.clone();
                let own =
                    commands.narrowed(&CommandScope { network, credentials, ..CommandScope::default() });
                Answer::structured(&diagnose(&own, facts, &context.caller.role(), toolchains.clone()))
            }
        },
    )
    .answers::<ServerDiagnostics>()
}

fn build_or_restore(commands: Commands, goal: BuildGoal, max_timeout: Duration) -> Tool {
    let (name, title, description) = match goal {
        BuildGoal::Build => (
            "build",
            "Build a project",
            "Builds a project with the tool that its files name (Cargo, npm, Go, Maven, Gradle, .NET, Python, CMake, \
             make, just) and returns the compiler's errors and warnings, each with file, line, code and message, \
             errors first, or else the end of the output. Use it in place of the build command: the answer is short. \
             For tests, `run_tests` builds what it needs. Build scripts may write and delete files.",
        ),
        BuildGoal::Restore => (
            "restore",
            "Fetch dependencies",
            "Fetches what a project depends on, with the package manager that its files name, such as `cargo fetch`, \
             `npm install`, `uv sync` or `go mod download`. Use it once after a checkout, or when a build says that a \
             package is missing; it needs the network. Returns the command that ran, its exit code, and the end of \
             the output if it failed.",
        ),
    };
    Tool::new(name, title, description, move |input: BuildRequest, context: CallContext| {
        let commands = command_scope(&commands, &context).map(|scope| commands.narrowed(&scope));
        async move {
            let on_progress = |line: &str| context.progress.output_line(line);
            let report =
                build(&commands?, goal, &input, context.max_timeout, &context.cancel, on_progress).await?;
            Ok(Answer::report(&report, report.to_text())?.failed_if(!report.success))
        }
    })
    .destroys()
    .open_world()
    .effects(&[Effect::Reads("project_path")])
    .own_deadline()
    .long_running(TASK_AFTER)
    .runs_programs()
    .answers::<SuccessOutput>()
    .maximum("timeout_ms", u64::try_from(max_timeout.as_millis()).unwrap_or(u64::MAX))
}

/// Returns the scope of commands that `caller` runs outside a host. The scope is the same as for commands of this
/// server: it follows from the rules of the caller's roles and their groups of system calls.
#[must_use]
pub fn policy_scope(
    policy: &role_policy::Policy,
    caller: &role_policy::Caller,
    scope: &role_policy::CallScope,
    workspace: &Workspace,
) -> CommandScope {
    let groups = policy.system_calls(caller);
    let system_calls = groups.into_iter().filter_map(system_call_permission).collect();
    let folders = |access| {
        let located = scope.folders(access)?.into_iter().filter_map(|folder| workspace.locate(folder).ok());
        Some(located.map(|folder| folder.to_absolute()).collect())
    };
    CommandScope {
        read: folders(Access::Read),
        write: folders(Access::Write),
        system_calls,
        network: scope.network().clone(),
        credentials: policy.credentials(caller),
        resource_limits: super::host::resource_limits(policy.limits(caller)),
        ..CommandScope::default()
    }
}

/// Returns what the commands of this call may reach. Confinement grants whole folders: a command can reach what
/// the policy leaves out within them.
pub(super) fn command_scope(commands: &Commands, context: &CallContext) -> Result<CommandScope, ToolError> {
    let system_calls = context.system_calls.iter().filter_map(|group| system_call_permission(*group));
    let mut scope = CommandScope {
        system_calls: system_calls.collect(),
        network: context.scope.network().clone(),
        credentials: context.credentials.clone(),
        egress_log: Some(context.egress_log.clone()),
        resource_limits: context.resource_limits,
        principal: context.caller.principal().map(str::to_owned),
        ..CommandScope::default()
    };
    let workspace = commands.workspace();
    if context.restricted || !context.scope.reaches_all_paths() {
        scope.workspace = Some(context.within(workspace)?);
    }
    if context.scope.reaches_all_paths() {
        return Ok(scope);
    }
    let folders = |access| {
        let folders = context.scope.folders(access)?;
        // A folder outside the roots is left out: there is nothing in it that could be granted.
        let located = folders.into_iter().filter_map(|folder| workspace.locate(folder).ok());
        Some(located.map(|folder| folder.to_absolute()).collect())
    };
    scope.read = folders(Access::Read);
    scope.write = folders(Access::Write);
    Ok(scope)
}

/// Returns the permission of a confinement that a policy's group stands for.
fn system_call_permission(group: SystemCallGroup) -> Option<SystemCallPermission> {
    match group {
        SystemCallGroup::Tracing => Some(SystemCallPermission::Tracing),
        SystemCallGroup::Profiling => Some(SystemCallPermission::Profiling),
        SystemCallGroup::UserNamespaces => Some(SystemCallPermission::UserNamespaces),
        // `SystemCallGroup` is non-exhaustive. A group that is not known here grants nothing.
        _ => None,
    }
}
