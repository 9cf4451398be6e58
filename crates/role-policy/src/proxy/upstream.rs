//! The server behind the proxy: started, started again, ended.

use super::lines::Lines;
use super::outbox::Outbox;
use super::pump::Pump;
use super::session::Session;
use process_runner::{
    CancellationToken, Command, Error, Leftovers, Limits, Output, Runner, Running, Stdin, Termination,
};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the server gets to end by itself when its input ends.
const OWN_END: Duration = Duration::from_millis(150);
/// And then after `SIGTERM`.
const GRACE: Duration = Duration::from_millis(200);
/// The same for one that has closed its output and goes on.
const AFTER_OUTPUT: Duration = Duration::from_secs(1);

/// The wait before the second start, doubled with each one up to the longest.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(50);
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// A server that has lived so long begins again with the first wait.
pub(super) const GOOD_LIFE: Duration = Duration::from_secs(60);

/// What to start.
#[derive(Debug)]
pub struct Child {
    /// A name on `PATH`, or a path.
    pub program: OsString,
    /// Its arguments, as they stand: there is no shell.
    pub arguments: Vec<OsString>,
    /// Where it runs.
    pub folder: PathBuf,
    /// Variables of ours that it does not get.
    pub without: Vec<OsString>,
    /// Where its standard error goes, line by line; what is not read there in time is left out.
    pub stderr: OwnedFd,
}

/// Keeps a server running until the client is gone or `end` is cancelled, and ends it.
pub(super) async fn supervise(
    session: &Session,
    pump: &Pump,
    child: &Child,
    runner: &Runner,
    end: &CancellationToken,
) {
    let stderr = match child.stderr.try_clone().and_then(|fd| Outbox::new(fd, 1 << 20, "server-stderr")) {
        Ok(stderr) => stderr,
        Err(error) => return tracing::error!(%error, "cannot begin"),
    };
    let mut wait = FIRST_WAIT;
    loop {
        let begun = Instant::now();
        match start(session, pump, child, runner, &stderr).await {
            Ok((mut running, generation)) => {
                if attend(session, &mut running, generation, end).await {
                    return wind_up(session, running, generation, runner).await;
                }
                let why = match running.wait().await {
                    Ok(output) => describe(&output),
                    Err(error) => error.to_string(),
                };
                tracing::warn!("the server is gone: {why}");
                session.server_is_gone(generation, &why);
            }
            Err(error) => {
                tracing::error!("the server cannot be started: {error}");
                session.server_cannot_start(&error);
            }
        }
        if begun.elapsed() >= GOOD_LIFE {
            wait = FIRST_WAIT;
        }
        if pause(session, wait, end).await {
            return runner.shutdown(GRACE).await;
        }
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Starts the server on pipes of our own, which the pump reads.
async fn start(
    session: &Session,
    pump: &Pump,
    child: &Child,
    runner: &Runner,
    stderr: &Outbox,
) -> Result<(Running, u64), String> {
    let pipes = || -> io::Result<_> { Ok((io::pipe()?, io::pipe()?)) };
    let ((its_input, input), (output, its_output)) = pipes().map_err(|error| error.to_string())?;
    for pipe in [input.as_fd(), output.as_fd()] {
        widen(pipe);
    }
    let file = |end: OwnedFd| File::from(end);
    let stderr = stderr.clone();
    let mut command = Command::new(&child.program, &child.folder)
        .args(child.arguments.iter().cloned())
        .stdin(Stdin::File(Arc::new(file(its_input.into()))))
        .stdout(file(its_output.into()))
        .on_line(move |_, line| {
            let mut text = line.text().as_bytes().to_vec();
            text.push(b'\n');
            // Standard error is for people; what they do not read in time is gone.
            let _ = stderr.put(text);
            stderr.drain();
        })
        .limits(Limits::unlimited().capture(4096).leftovers(Leftovers::KillAll));
    for name in &child.without {
        command = command.env_remove(name);
    }
    let running = runner.start(command).await.map_err(|error| match error {
        Error::Spawn(error) => error.to_string(),
        other => other.to_string(),
    })?;
    let outbox =
        Outbox::new(input.into(), super::QUEUE_BYTES, "to-server").map_err(|error| error.to_string())?;
    let lines = Lines::new(output.into(), super::message::MAX_MESSAGE_BYTES);
    let generation = session.server_is_up(outbox);
    pump.attach(generation, lines).map_err(|error| error.to_string())?;
    Ok((running, generation))
}

/// Waits for the end of the server, or of the client: whether it is the client's.
async fn attend(session: &Session, running: &mut Running, generation: u64, end: &CancellationToken) -> bool {
    loop {
        let todo = session.tick(Instant::now());
        if todo.end {
            return true;
        }
        if todo.condemned == Some(generation) {
            // A server that ends closes its output a moment before.
            if tokio::time::timeout(OWN_END, running.finished()).await.is_err() {
                running.terminate_within(AFTER_OUTPUT);
                running.finished().await;
            }
            return false;
        }
        tokio::select! {
            () = running.finished() => return false,
            () = end.cancelled() => return true,
            () = session.wait() => {}
            () = until(todo.next) => {}
        }
    }
}

/// Waits before the next start: whether the client has gone meanwhile.
pub(super) async fn pause(session: &Session, wait: Duration, end: &CancellationToken) -> bool {
    let over = Instant::now() + wait;
    loop {
        let todo = session.tick(Instant::now());
        if todo.end {
            return true;
        }
        tokio::select! {
            () = tokio::time::sleep_until(over.into()) => return false,
            () = end.cancelled() => return true,
            () = session.wait() => {}
            () = until(todo.next) => {}
        }
    }
}

pub(super) async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

/// As MCP wants it: the end of its input, then `SIGTERM`, then `SIGKILL`.
async fn wind_up(session: &Session, running: Running, generation: u64, runner: &Runner) {
    session.server_is_gone(generation, "the client has ended");
    // It may have gone by itself.
    let _ = tokio::time::timeout(OWN_END, running.finished()).await;
    runner.shutdown(GRACE).await;
}

/// Room for a large message in one go, where the system gives it: each time that a pipe is full costs a turn of
/// both sides.
fn widen(pipe: BorrowedFd<'_>) {
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, 256 * 1024);
    #[cfg(not(target_os = "linux"))]
    let _ = pipe;
}

fn describe(output: &Output) -> String {
    match &output.termination {
        Termination::Exited { code } => format!("it has ended with exit code {code}"),
        Termination::Cancelled { .. } => "it was ended after its output had".to_owned(),
        other => format!("it has ended: {other:?}"),
    }
}
