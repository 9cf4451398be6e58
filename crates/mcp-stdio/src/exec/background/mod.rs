//! `exec --keep-background`: a command that a session of the user's supervisor owns from its start, so that what it leaves in
//! the background goes on, is listed, and can be ended.
//!
//! A process cannot be given to another one once it runs: an orphan becomes the child of its nearest ancestor that adopts
//! orphans. So the command is started below the supervisor: this process has it start a session, whose process receives the
//! standard streams, the folder, the arguments and the variables of this one, and becomes `exec` with them. This process
//! passes signals on, and ends as the command does.

mod handover;
mod holder;
mod report;

pub(crate) use holder::{HolderArguments, hold};

use crate::error::Error;
use crate::output::{name, print_error};
use core_tools::sessions::{
    ErrorCode, NewSession, SessionStarted, SupervisorClient, SupervisorHostKind, SupervisorRequest,
    SupervisorStatus,
};
use handover::CommandHandover;
use process_runner::{ForegroundEnd, ResourceLimits};
use report::CommandEndReport;
use role_policy::Caller;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, Signal, getuid, kill_process};
use server_setup::sessions;
use server_setup::settings::Settings;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// The flag that is replaced by the arguments of the process that a session runs.
const FLAG: &str = "--keep-background";
/// The time in which the session's process must be there.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A socket beside the supervisor's, which is removed when this is dropped.
struct BackgroundSocketFile(PathBuf);

impl Drop for BackgroundSocketFile {
    #[allow(clippy::disallowed_methods, reason = "the socket that this process has made")]
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The connection by which the session's process tells the end of the command.
#[derive(Debug)]
pub(crate) struct EndReporter(BlockingStream);

impl EndReporter {
    /// Connects to the process that waits at `socket`.
    pub(crate) fn connect(socket: &Path) -> Result<Self, Error> {
        let connected = BlockingStream::connect(socket);
        connected.map(Self).map_err(Error::system("cannot reach the process that waits for the command"))
    }

    /// Tells the end of the command. A process that no longer waits is told nothing.
    pub(crate) fn report(self, end: &ForegroundEnd) {
        if let Err(error) = CommandEndReport::of(end).send(&self.0) {
            print_error(&format!("{}: nobody waits for the end of the command: {error}", name()));
        }
    }
}

/// Runs `words` in `folder` in a session of the supervisor, within `limits`, and waits for the end of the command.
pub(crate) fn run(
    settings: &Settings,
    caller: &Caller,
    words: &[String],
    folder: &Path,
    limits: ResourceLimits,
) -> Result<ExitCode, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::system("cannot start the runtime"))?;
    let report = runtime.block_on(run_in_session(settings, caller, words, folder, limits))?;
    if let Some(signal) = report.signal {
        let status = process_runner::ExitStatus::Signaled { signal, core: false };
        process_runner::end_as(&ForegroundEnd::Ended { status, leftovers: 0 });
    }
    Ok(ExitCode::from(u8::try_from(report.code).unwrap_or(1)))
}

async fn run_in_session(
    settings: &Settings,
    caller: &Caller,
    words: &[String],
    folder: &Path,
    limits: ResourceLimits,
) -> Result<CommandEndReport, Error> {
    let state = sessions::state_folder(settings)?;
    let client = SupervisorClient::new(state.clone());
    check_supervisor(&client).await?;
    let socket = BackgroundSocketFile(state.join(socket_name()));
    let listener = UnixListener::bind(&socket.0)
        .map_err(Error::system(format!("cannot make the socket {}", socket.0.display())))?;
    let executable = std::env::current_exe()
        .map_err(Error::system("cannot find out which file this program was started from"))?;
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| Error::Argument(format!("{} is not valid UTF-8", path.display())))
    };
    let mut command =
        vec![text(&executable)?, "exec-holder".to_owned(), "--socket".to_owned(), text(&socket.0)?];
    command.push("--".to_owned());
    command.extend(words.iter().cloned());
    let roles: Vec<String> = caller.roles().map(str::to_owned).collect();
    let mut new = NewSession::new(folder, roles.first().cloned().unwrap_or_default()).command(command);
    (new.roles, new.input, new.pty) = (roles, Some(false), Some(false));
    new.resource_limits = limits;
    let started = client.ask(&SupervisorRequest::New(Box::new(new))).await?;
    let started: SessionStarted = serde_json::from_value(started)?;

    let handover = CommandHandover {
        folder: folder.to_owned(),
        arguments: arguments_of_session(std::env::args_os().skip(1), &socket.0),
        variables: std::env::vars_os().collect(),
    };
    let holder = accept(&listener, &started).await?;
    let holder = holder.into_std().map_err(Error::system("cannot use the socket"))?;
    let (input, output, errors) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    holder
        .set_nonblocking(false)
        .and_then(|()| handover.send(&holder, [input.as_fd(), output.as_fd(), errors.as_fd()]))
        .map_err(Error::system("cannot hand the command over"))?;
    let mut signals = signals()?;
    let end = async {
        let reporter = accept(&listener, &started).await?;
        let mut line = String::new();
        BufReader::new(reporter)
            .read_line(&mut line)
            .await
            .map_err(Error::system("cannot follow the command"))?;
        serde_json::from_str::<CommandEndReport>(&line).map_err(|_| {
            Error::Failed(format!(
                "the command was ended with its session {}; `{} session logs --session {0}` may say why",
                started.session_id,
                name()
            ))
        })
    };
    tokio::pin!(end);
    let report = loop {
        tokio::select! {
            report = &mut end => break report?,
            Some(signal) = signals.recv() => pass_on(started.pid, signal),
        }
    };
    if report.background > 0 {
        let processes = if report.background == 1 {
            "1 process goes on".to_owned()
        } else {
            format!("{} processes go on", report.background)
        };
        print_error(&format!(
            "{0}: {processes} in the background, in session {1}; `{0} session end {1}` ends it",
            name(),
            started.session_id
        ));
    }
    Ok(report)
}

/// Checks that a supervisor runs which outlives its clients.
async fn check_supervisor(client: &SupervisorClient) -> Result<(), Error> {
    let advice = format!(
        "only a supervisor can own what a command leaves in the background; start one: `{} session daemon`",
        name()
    );
    let status = match client.ask(&SupervisorRequest::Status {}).await {
        Ok(status) => serde_json::from_value::<SupervisorStatus>(status)?,
        Err(error) if error.code == ErrorCode::NotRunning => {
            return Err(Error::Failed(format!("no supervisor is running, and {advice}")));
        }
        Err(error) => return Err(error.into()),
    };
    if status.owner == SupervisorHostKind::Daemon {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "the supervisor, process {}, is the server of one client and ends with it, and {advice} after it has ended",
        status.pid
    )))
}

/// Returns the next connection of the session's process.
async fn accept(listener: &UnixListener, started: &SessionStarted) -> Result<UnixStream, Error> {
    let accepting = async {
        loop {
            let (stream, _) = listener.accept().await.map_err(Error::system("cannot accept a connection"))?;
            // The folder is the user's alone; whoever else connects is not answered.
            let peer = socket_peercred(&stream)
                .map_err(|error| Error::system("cannot see who connects")(error.into()))?;
            if peer.uid == getuid() {
                return Ok(stream);
            }
        }
    };
    tokio::time::timeout(START_LIMIT, accepting).await.unwrap_or_else(|_| {
        Err(Error::Failed(format!(
            "session {} did not start the command within {START_LIMIT:?}; `{} session logs --session {0}` may say why",
            started.session_id,
            name()
        )))
    })
}

/// Returns the arguments of this process, but for the process of a session that reports to `socket`.
fn arguments_of_session(own: impl Iterator<Item = OsString>, socket: &Path) -> Vec<OsString> {
    let mut arguments = Vec::new();
    let mut is_replaced = false;
    for argument in own {
        if !is_replaced && argument == OsStr::new(FLAG) {
            is_replaced = true;
            arguments.extend(["--report-to".into(), socket.as_os_str().to_owned()]);
            arguments.extend(["--ends-with".into(), std::process::id().to_string().into()]);
        } else {
            arguments.push(argument);
        }
    }
    arguments
}

fn socket_name() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("exec-{}-{}", std::process::id(), now.subsec_nanos())
}

/// Returns the signals that this process gets and the command should.
fn signals() -> Result<mpsc::Receiver<i32>, Error> {
    let (sender, receiver) = mpsc::channel(16);
    for kind in [
        SignalKind::interrupt(),
        SignalKind::quit(),
        SignalKind::terminate(),
        SignalKind::hangup(),
        SignalKind::user_defined1(),
        SignalKind::user_defined2(),
        SignalKind::alarm(),
        SignalKind::window_change(),
    ] {
        let mut stream = signal(kind).map_err(Error::system("cannot wait for signals"))?;
        let sender = sender.clone();
        tokio::spawn(async move {
            while stream.recv().await.is_some() && sender.send(kind.as_raw_value()).await.is_ok() {}
        });
    }
    Ok(receiver)
}

fn pass_on(pid: u32, number: i32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(number)) {
        // One that has ended needs no signal; its report is on the way.
        let _ = kill_process(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_alone_is_replaced_and_only_once() {
        let own = ["--role", "worker", "exec", "--keep-background", "--", "x", "--keep-background"];
        let arguments = arguments_of_session(own.iter().map(OsString::from), Path::new("/s"));
        let pid = std::process::id().to_string();
        let expected = [
            "--role",
            "worker",
            "exec",
            "--report-to",
            "/s",
            "--ends-with",
            &pid,
            "--",
            "x",
            "--keep-background",
        ];
        assert_eq!(arguments, expected.map(OsString::from));
    }
}
