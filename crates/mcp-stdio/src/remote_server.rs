//! The subcommand `remote-server`: the far end of a remote.

use crate::cli::GlobalOptions;
use crate::error::Error;
use crate::output::{name, print_error};
use crate::serve;
use error_causes::chain;
use remotes::{MAX_OPENING_BYTES, Opening};
use server_setup::remote::{FarEndLimits, far_end_settings, open_answer, version};
use server_setup::{Program, log, setup};
use std::io::{BufRead, Read, Write};
use std::process::ExitCode;

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
        ("--remote", options.remote.is_some()),
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
    let answer = open_answer(&server, version);
    let answer = opening.answer(&answer).map_err(|error| Error::Failed(chain(&error)))?;
    write(&answer)?;
    let code = runtime.block_on(serve::serve(server));
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
