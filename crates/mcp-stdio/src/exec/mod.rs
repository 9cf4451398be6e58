//! The subcommands `exec` and `shell`: a command with the policy, the confinement and the end of a tool, in the foreground.

#[cfg(feature = "sessions")]
pub(crate) mod background;

use crate::cli::GlobalOptions;
use crate::error::Error;
use crate::output::{name, print_error};
use agent_hooks::HookVerdict;
use clap::Args;
use core_tools::ci::EgressLog;
use process_runner::guardian::GuardianProgram;
use process_runner::{Command, ExitStatus, ForegroundEnd, ForegroundRun, Limits};
use server_setup::native_tools::{CommandDecision, NativeToolHost};
use server_setup::settings_snapshot::SettingsSnapshot;
use server_setup::{Program, read_settings};
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub(crate) const EXAMPLES: &str = "\
Examples:
  mcp-stdio exec --timeout 600 -- make test
  mcp-stdio --role worker exec -- bash -c 'cargo build | tail'
  CLAUDE_CODE_SHELL_PREFIX=\"mcp-stdio shell -c\" claude

The command has the standard streams, the terminal and the signals of this program. When it ends, so does everything
that it has started. With --keep-background, what it leaves in the background goes on in a session of the supervisor:
`session list` shows it, `session end` ends it.

Exit codes:
  that of the command, or the signal that ended it
  124  a time limit ended it
  126  the policy refuses it
  2    it could not be started";

pub(crate) const SHELL_EXAMPLES: &str = "\
Examples:
  mcp-stdio shell -c 'cargo test | tail'
  ln -s \"$(command -v mcp-stdio)\" ~/.local/bin/mcp-stdio-shell; SHELL=~/.local/bin/mcp-stdio-shell make

Started under a name that ends in -shell, the program is this subcommand.";

/// The exit code of a command that is refused, as of one that cannot be executed.
const REFUSED: u8 = 126;

/// The arguments of `exec`.
#[derive(Args, Debug)]
pub(crate) struct ExecArguments {
    /// End the command after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// End the command after this many seconds in which nothing of it used a processor, read or wrote
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    idle_timeout: Option<Duration>,
    /// End the command when this process has ended
    #[arg(long, value_name = "PID")]
    ends_with: Option<u32>,
    /// Id of the grant that a hook left for this command when it had a person asked
    #[arg(long, hide = true, value_name = "ID")]
    approved: Option<String>,
    /// Leave running what the command leaves in the background, in a session of the supervisor (`session daemon`)
    #[cfg(feature = "sessions")]
    #[arg(long, conflicts_with_all = ["ends_with", "approved"])]
    keep_background: bool,
    /// The socket of the process that waits for the end of the command
    #[cfg(feature = "sessions")]
    #[arg(long, hide = true, value_name = "SOCKET")]
    report_to: Option<std::path::PathBuf>,
    /// Command to run, and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The arguments of `shell`.
#[derive(Args, Debug)]
pub(crate) struct ShellArguments {
    /// Arguments of the shell: options, -c LINE, or a script. A single word is a line
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

/// A time limit that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("expected seconds, more than 0")]
struct InvalidSeconds;

fn seconds(text: &str) -> Result<Duration, InvalidSeconds> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0).ok_or(InvalidSeconds)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| InvalidSeconds)
}

/// Runs a command to its end, as the policy allows.
pub(crate) fn exec(
    program: Program,
    options: &GlobalOptions,
    arguments: &ExecArguments,
) -> Result<ExitCode, Error> {
    let settings = read_settings::read(program, &options.flags(), options.agent_command.clone())?;
    let folder = std::env::current_dir().map_err(Error::system("cannot find the current folder"))?;
    let host = NativeToolHost::new(settings)?;
    let words: Option<Vec<String>> =
        arguments.command.iter().map(|word| word.to_str().map(str::to_owned)).collect();
    let words =
        words.ok_or_else(|| Error::Argument("a word of the command is not valid UTF-8".to_owned()))?;
    #[cfg(feature = "sessions")]
    let is_handed_over = arguments.keep_background;
    #[cfg(not(feature = "sessions"))]
    let is_handed_over = false;
    // The copy that runs it decides again, and records it.
    let decided = match is_handed_over {
        true => host.check_command(&words, &folder),
        false => host.decide_command(&words, &folder, arguments.approved.as_deref()),
    };
    if decided.decision.verdict != HookVerdict::Allow {
        print_error(&format!(
            "{}: refused for the role {}: {}",
            name(),
            host.caller().role(),
            decided.decision.reason
        ));
        return Ok(ExitCode::from(REFUSED));
    }
    #[cfg(feature = "sessions")]
    if arguments.keep_background {
        let limits = host.resource_limits();
        return background::run(host.settings(), host.caller(), &words, &folder, limits);
    }
    #[cfg(feature = "sessions")]
    let reporter = arguments.report_to.as_deref().map(background::EndReporter::connect).transpose()?;
    #[cfg(feature = "sessions")]
    let is_kept = reporter.is_some();
    #[cfg(not(feature = "sessions"))]
    let is_kept = false;
    let refused = EgressLog::default();
    let mut arguments_of_command = arguments.command.iter().cloned();
    let Some(executable) = arguments_of_command.next() else {
        return Err(Error::Argument("name the command to run after `--`".to_owned()));
    };
    let command = Command::new(executable, folder).args(arguments_of_command);
    // The proxy of named hosts has threads, which must leave the signals to the run.
    let (mut command, held) =
        process_runner::with_signals_blocked(|| host.foreground_command(command, is_kept, &refused))?;
    if std::env::var_os("CORETOOLS_ROLE").is_none()
        && let Some(role) = host.caller().roles().next()
    {
        // Another copy of this program below is then in this role at most.
        command = command.env("CORETOOLS_ROLE", role);
    }
    let guardian = GuardianProgram::current_exe()
        .map_err(Error::system("cannot find out which file this program was started from"))?;
    let mut limits = Limits::unlimited();
    (limits.timeout, limits.idle_timeout) = (arguments.timeout, arguments.idle_timeout);
    let mut run = ForegroundRun::new(command.limits(limits)).guardian(guardian);
    if let Some(pid) = arguments.ends_with {
        run = run.ends_with(pid);
    }
    // A role that may do everything may change settings too.
    // What a person has agreed to is not undone.
    let opened = &decided.decision.opened;
    let snapshot = (!host.is_unrestricted()).then(|| SettingsSnapshot::take(&host.settings().roots, opened));
    let (began, limits) = (Instant::now(), run_limits(arguments));
    let ended = CommandEnd { host, decided, words, snapshot, began, limits, refused };
    #[cfg(feature = "sessions")]
    if let Some(reporter) = reporter {
        let ended = std::rc::Rc::new(ended);
        let at_end = std::rc::Rc::clone(&ended);
        run.run_keeping_background(move |end| {
            at_end.tell(end);
            reporter.report(end);
            // Whoever reads the streams would wait for this process.
            if let Err(error) = process_runner::release_standard_streams() {
                print_error(&format!("{}: the standard streams stay open: {error}", name()));
            }
        })
        .map_err(|error| Error::Argument(error_causes::chain(&error)))?;
        // The background may have changed settings too.
        ended.restore_settings();
        drop(held);
        return Ok(ExitCode::SUCCESS);
    }
    let end = run.run().map_err(|error| Error::Argument(error_causes::chain(&error)))?;
    ended.tell(&end);
    drop(held);
    Ok(ExitCode::from(u8::try_from(process_runner::end_as(&end)).unwrap_or(1)))
}

/// The time limits of a run.
fn run_limits(arguments: &ExecArguments) -> [Duration; 2] {
    [arguments.timeout.unwrap_or_default(), arguments.idle_timeout.unwrap_or_default()]
}

/// The parts that are needed at the end of a command.
struct CommandEnd {
    host: NativeToolHost,
    decided: CommandDecision,
    words: Vec<String>,
    /// The settings of clients as they were before.
    snapshot: Option<SettingsSnapshot>,
    began: Instant,
    /// The time limit and the idle limit.
    limits: [Duration; 2],
    /// The connections that were refused to the command.
    refused: EgressLog,
}

impl CommandEnd {
    /// Undoes changes of settings, records the end of the command, and tells its user what ended it.
    fn tell(&self, end: &ForegroundEnd) {
        self.restore_settings();
        let succeeded = matches!(end, ForegroundEnd::Ended { status: ExitStatus::Exited { code: 0 }, .. });
        let refused = self.refused.messages();
        self.host.ended(&self.decided, &self.words, succeeded, self.began.elapsed(), &refused);
        for message in &refused {
            print_error(&format!("{}: refused connection: {message}", name()));
        }
        let [timeout, idle_timeout] = self.limits;
        match end {
            ForegroundEnd::TimedOut => print_error(&format!(
                "{}: ended after {timeout:?}, its time limit, with everything that it had started",
                name()
            )),
            ForegroundEnd::IdleTimedOut => {
                print_error(&format!("{}: ended, because nothing happened for {idle_timeout:?}", name()));
            }
            _ => {}
        }
    }

    fn restore_settings(&self) {
        for told in self.snapshot.iter().flat_map(SettingsSnapshot::restore_and_tell) {
            print_error(&format!("{}: {told}", name()));
        }
    }
}

/// Runs a shell, as the policy allows.
pub(crate) fn shell(
    program: Program,
    options: &GlobalOptions,
    arguments: &ShellArguments,
) -> Result<ExitCode, Error> {
    let mut words = vec![OsString::from("bash")];
    match arguments.arguments.as_slice() {
        // `CLAUDE_CODE_SHELL_PREFIX` without `-c`.
        [line] if !line.as_encoded_bytes().starts_with(b"-") && !std::path::Path::new(line).is_file() => {
            words.extend([OsString::from("-c"), line.clone()]);
        }
        arguments => words.extend(arguments.iter().cloned()),
    }
    exec(
        program,
        options,
        &ExecArguments {
            timeout: None,
            idle_timeout: None,
            ends_with: None,
            approved: None,
            #[cfg(feature = "sessions")]
            keep_background: false,
            #[cfg(feature = "sessions")]
            report_to: None,
            command: words,
        },
    )
}

/// Returns the arguments of this process. Under a name that ends in `-shell`, they are those of the subcommand.
pub(crate) fn arguments_by_name(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    let is_shell = arguments.first().is_some_and(|name| {
        std::path::Path::new(name)
            .file_name()
            .and_then(OsStr::to_str)
            .is_some_and(|name| name.ends_with("-shell"))
    });
    if is_shell {
        arguments.insert(1, "shell".into());
    }
    arguments
}
