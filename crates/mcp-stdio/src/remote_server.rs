//! The subcommand `remote-server`: the far end of a remote.

use crate::cli::GlobalOptions;
use crate::error::Error;
use crate::far_session::FarSession;
use crate::output::{name, print_error};
use crate::serve;
use crate::serve_session::{SessionServer, serve_session};
use error_causes::chain;
use remotes::{MAX_OPENING_BYTES, NO_SESSION, OpenSession, Opening};
use server_setup::remote::{FarEndLimits, far_end_settings, open_answer, version};
use server_setup::{Program, log, setup};
use std::io::{BufRead, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

pub(crate) const EXAMPLES: &str = "\
The server in front starts it there. Its standard streams are the channel, and its first line says what it may do. The
flags here can only take away, for example in a line of authorized_keys:

  command=\"mcp-stdio remote-server --root /srv/app --role dev\",restrict ssh-ed25519 AAAA...

--role and --policy are those of this machine: the built-in policy, or the file. With --root, programs are confined for
every role. If the system cannot confine them, none runs.";

/// The flags that have no meaning here: the server in front decides what they say.
fn check_flags(options: &GlobalOptions) -> Result<(), Error> {
    let given = [
        ("--toolsets", options.toolsets.is_some()),
        ("--audit", options.audit.is_some()),
        ("--remote-option", !options.remote_options.is_empty()),
        ("--text-only", options.text_only),
        // A variable may say the same, for all servers of this user, and is no limit of this one.
        ("--config", options.config.is_some() && std::env::var_os("CORETOOLS_CONFIG").is_none()),
        (
            "--agent-command",
            options.agent_command.is_some() && std::env::var_os("CORETOOLS_AGENT_COMMAND").is_none(),
        ),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => Err(Error::Argument(format!(
            "`{flag}` does nothing for `remote-server`: give it to the server in front. Allowed are --root, --role, --policy and --log"
        ))),
    }
}

/// Serves the server in front until the channel ends.
pub(crate) fn run(program: Program, options: &GlobalOptions) -> Result<ExitCode, Error> {
    check_flags(options)?;
    let version = version(program);
    let line = first_line()?;
    let opening = match Opening::read(&line, &version) {
        Ok(opening) => opening,
        Err(invalid) => return refused(&invalid.refusal(), &invalid.to_string()),
    };
    if let Some(session) = &opening.request.session {
        if !session.is_valid() {
            return refused(
                &opening.refusal("the name of the session is none"),
                "the name of the session is none",
            );
        }
        if session.resumes {
            return match FarSession::connect(&session.id) {
                Some(stream) => pass_on(&line, stream),
                None => refused(&opening.refusal(NO_SESSION), NO_SESSION),
            };
        }
    }
    // From here on every problem is told to the server in front, whose operator reads it.
    let limits = FarEndLimits::new(options.roots.clone(), options.role.clone(), options.policy.clone());
    let settings = match far_end_settings(program, &opening.request, &limits) {
        Ok(settings) => settings,
        Err(error) => return refused(&opening.refusal(&chain(&error)), &chain(&error)),
    };
    let _log = log::start(options.log.as_deref().unwrap_or("warn"), settings.redactor.clone(), None)?;
    let server = match setup::server(settings) {
        Ok(server) => server,
        Err(error) => return refused(&opening.refusal(&chain(&error)), &chain(&error)),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::system("cannot start the runtime"))?;
    let kept = match &opening.request.session {
        None => None,
        Some(OpenSession { id, grace_s, .. }) => {
            // The listener belongs to the runtime.
            let _in_runtime = runtime.enter();
            match FarSession::create(id, *grace_s) {
                Ok(session) => Some((session, Duration::from_secs(*grace_s))),
                Err(error) => {
                    let problem = format!("no session can be kept here, set `grace_s = 0`: {error}");
                    return refused(&opening.refusal(&problem), &problem);
                }
            }
        }
    };
    let answer = open_answer(&server, version.clone());
    let answer = opening.answer(&answer).map_err(|error| Error::Failed(chain(&error)))?;
    write(&answer)?;
    let code = match kept {
        None => runtime.block_on(serve::serve(server)),
        Some((session, grace)) => {
            let request = opening.request;
            let served = SessionServer { server, session, request, version, grace };
            runtime.block_on(serve_session(served))
        }
    };
    // Not dropped: that would wait for its threads, and one may hang in the file system.
    runtime.shutdown_background();
    Ok(code)
}

/// Reads the first line. Nothing follows it before it is answered.
fn first_line() -> Result<Vec<u8>, Error> {
    let mut line = Vec::new();
    let limit = u64::try_from(MAX_OPENING_BYTES).unwrap_or(u64::MAX);
    let mut input = std::io::stdin().lock().take(limit);
    input.read_until(b'\n', &mut line).map_err(Error::system("cannot read standard input"))?;
    Ok(line)
}

/// Passes lines on between the standard streams and the process that serves the session, whose answer to the first line
/// comes first.
fn pass_on(first: &[u8], mut stream: UnixStream) -> Result<ExitCode, Error> {
    let failed = Error::system("cannot pass lines on to the session");
    let mut to_session = stream.write_all(first).and_then(|()| stream.try_clone()).map_err(failed)?;
    let passing = std::thread::Builder::new().name("to-session".into()).spawn(move || {
        let copied = std::io::copy(&mut std::io::stdin().lock(), &mut to_session);
        // Also after an error: the session then knows that this channel is lost.
        let _ = to_session.shutdown(Shutdown::Write);
        copied
    });
    passing.map_err(Error::system("cannot start a thread"))?;
    let mut output = std::io::stdout().lock();
    // It ends when the session does, when that serves a later channel, and when nobody reads here any more.
    match std::io::copy(&mut stream, &mut output).and_then(|_| output.flush()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Error::system("cannot pass lines on from the session")(error)),
    }
}

/// Writes a refusal to the server in front, and says it here.
fn refused(line: &[u8], problem: &str) -> Result<ExitCode, Error> {
    print_error(&format!("{}: {problem}", name()));
    write(line)?;
    Ok(ExitCode::from(2))
}

fn write(line: &[u8]) -> Result<(), Error> {
    let mut output = std::io::stdout().lock();
    output
        .write_all(line)
        .and_then(|()| output.flush())
        .map_err(Error::system("cannot write to standard output"))
}
