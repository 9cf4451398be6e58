//! Opening a channel: the start of `connect`, the first message, and the text that comes before its answer.

use super::pending::PendingCalls;
use super::reader::{self, LineSource};
use super::supervisor::{self, LastLines};
use super::tool_channel::Channel;
use super::writer::{self, Lines};
use crate::commands::{RemoteCommand, outcome};
use crate::error::Error;
use crate::opening::{OpenAnswer, OpenRequest, read_answer};
use json_rpc::line_buffer::Line;
use json_rpc::message::Id;
use process_runner::{CancellationToken, LeftoverPolicy, Limits, Runner, Running, Stdin, Termination};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};

/// The text before the answer that is skipped: greetings, and what the start files of a shell print.
const MAX_SKIPPED_BYTES: usize = 64 * 1024;

/// The bytes that are read until there is an answer. One with a long message is read, to be shown shortened.
const MAX_READ_BYTES: usize = 2 << 20;

/// The time that a command which has failed has to end, so that its message is complete.
const END_TIME: Duration = Duration::from_millis(500);

/// The reason why the lines of a channel are not read until its answer.
#[derive(Debug, thiserror::Error)]
enum OpeningFault {
    #[error("its output cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("more than {MAX_SKIPPED_BYTES} bytes came before an answer")]
    TooMuchBefore,
    #[error("no answer within {} s", .0.as_secs())]
    NoAnswer(Duration),
}

/// The parts of a new channel.
#[derive(Clone, Copy)]
pub(crate) struct ChannelOptions<'a> {
    pub(crate) request: &'a OpenRequest,
    /// The name of this program.
    pub(crate) client: &'static str,
    pub(crate) timeout: Duration,
    pub(crate) idle: Option<Duration>,
    /// Counts the changes of what runs there.
    pub(crate) changes: &'a watch::Sender<u64>,
}

/// A command that connects, which has started and was told nothing yet.
#[derive(Debug)]
pub(crate) struct StartedConnect {
    running: Running,
    to_child: pipe::Sender,
    from_child: pipe::Receiver,
    stderr: LastLines,
}

impl StartedConnect {
    /// Returns true if the command has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.running.is_finished()
    }

    /// Waits for the end of the command.
    pub(crate) async fn finished(&self) {
        self.running.finished().await;
    }

    /// Ends the command: its input ends, and with it the server there.
    pub(crate) async fn end(self) {
        let Self { mut running, to_child, from_child, .. } = self;
        drop((to_child, from_child));
        end_of(&mut running).await;
    }
}

/// Starts `connect`.
pub(crate) async fn start_connect(connect: &RemoteCommand, runner: &Runner) -> Result<StartedConnect, Error> {
    let pipes = || -> io::Result<_> { Ok((io::pipe()?, io::pipe()?)) };
    let ((child_stdin, to_child), (from_child, child_stdout)) = pipes().map_err(Error::Channel)?;
    let file = |end: OwnedFd| File::from(end);
    let stderr = LastLines::default();
    let kept = stderr.clone();
    let command = connect
        // The root folder always exists, and a command that connects needs no folder of this machine.
        .in_folder(Path::new("/"), runner)?
        .stdin(Stdin::File(Arc::new(file(child_stdin.into()))))
        .stdout(file(child_stdout.into()))
        .on_line(move |_, line| {
            let text = line.text();
            tracing::info!("remote: {text}");
            kept.push(&text);
        })
        // The channel lives as long as its server. What `connect` leaves behind would keep the pipes open.
        .limits(Limits::unlimited().capture(4096).leftovers(LeftoverPolicy::KillAll));
    let failed = |source| Error::Command { command: connect.shown(), source: Box::new(source) };
    let running = runner.start(command).await.map_err(failed)?;
    let pipes = || -> io::Result<_> {
        Ok((pipe::Sender::from_owned_fd(to_child.into())?, pipe::Receiver::from_owned_fd(from_child.into())?))
    };
    let (to_child, from_child) = pipes().map_err(Error::Channel)?;
    Ok(StartedConnect { running, to_child, from_child, stderr })
}

/// Opens the channel of a command that has started.
pub(crate) async fn open(started: StartedConnect, options: ChannelOptions<'_>) -> Result<Channel, Error> {
    let StartedConnect { mut running, mut to_child, from_child, stderr } = started;
    let mut lines = LineSource::new(from_child);
    let mut skipped = LastLines::default();
    // The id is random, so that a text which was printed before the answer cannot pass for the answer.
    let id = Id::Text(format!("open-{}", random_hex::<16>()?));
    let first = options.request.to_line(&id)?;
    let answered = async {
        // A command that ends without reading is told by its end.
        let _ = to_child.write_all(&first).await;
        read_until_answer(&mut lines, &id, &options.request.version, &mut skipped).await
    };
    let answer = match tokio::time::timeout(options.timeout, answered).await {
        Ok(Ok(Some(answer))) => answer?,
        Ok(Ok(None)) => {
            drop(to_child);
            let (reason, exit_code) = end_of(&mut running).await;
            return Err(not_opened(reason, exit_code, &stderr, &skipped));
        }
        Ok(Err(fault)) => return Err(not_opened(fault.to_string(), None, &stderr, &skipped)),
        Err(_) => {
            let fault = OpeningFault::NoAnswer(options.timeout);
            return Err(not_opened(fault.to_string(), None, &stderr, &skipped));
        }
    };
    let text = skipped.text();
    if !text.is_empty() {
        tracing::warn!("before the server of a remote answered, something else printed: {text}");
    }
    Ok(start(options, running, (to_child, lines), answer))
}

/// Starts the tasks of a channel that is open.
fn start(
    options: ChannelOptions<'_>,
    running: Running,
    (to_child, from_child): (pipe::Sender, LineSource),
    answer: OpenAnswer,
) -> Channel {
    let pending = Arc::new(PendingCalls::new(options.changes.clone()));
    let (lines, queued) = Lines::new();
    let (cancellations, cancelled) = mpsc::unbounded_channel();
    let (closing, ended) = (CancellationToken::new(), CancellationToken::new());
    let closes_session = options.request.session.is_some();
    let (shared, token) = (Arc::clone(&pending), closing.clone());
    tokio::spawn(writer::write(to_child, queued, cancelled, shared, token, closes_session));
    let reading = tokio::spawn(reader::read(from_child, Arc::clone(&pending), closing.clone()));
    tokio::spawn(supervisor::supervise(
        running,
        Arc::clone(&pending),
        options.idle,
        closing.clone(),
        ended.clone(),
        reading,
    ));
    Channel::new(pending, lines, cancellations, (closing, ended), answer, options.client)
}

/// Reads until the answer of this id. None at the end of the stream.
async fn read_until_answer(
    lines: &mut LineSource,
    id: &Id,
    version: &str,
    skipped: &mut LastLines,
) -> Result<Option<Result<OpenAnswer, Error>>, OpeningFault> {
    let mut skipped_bytes = 0;
    loop {
        // A greeting without line ends is no line of any length.
        let Some(line) = lines.next_within(MAX_READ_BYTES).await? else {
            return Err(OpeningFault::TooMuchBefore);
        };
        match line {
            Line::Whole(line) => {
                if let Some(answer) = read_answer(line, id, version) {
                    return Ok(Some(answer));
                }
                skipped_bytes += line.len() + 1;
                let text = String::from_utf8_lossy(&line[..line.len().min(1000)]);
                if !text.trim().is_empty() {
                    skipped.push(text.trim());
                }
            }
            // A line of this length is no greeting. The answer is not looked for behind it.
            Line::TooLong { .. } => skipped_bytes = usize::MAX,
            Line::End => return Ok(None),
        }
        if skipped_bytes > MAX_SKIPPED_BYTES {
            return Err(OpeningFault::TooMuchBefore);
        }
    }
}

/// Returns how `connect` ended, and the exit code, if `connect` has exited.
async fn end_of(running: &mut Running) -> (String, Option<u32>) {
    if tokio::time::timeout(END_TIME, running.finished()).await.is_err() {
        running.terminate_within(END_TIME);
    }
    match running.wait().await {
        Ok(output) => {
            let exit_code = match output.termination {
                Termination::Exited { code } => Some(code),
                _ => None,
            };
            (format!("`connect` {}", outcome(&output)), exit_code)
        }
        Err(error) => (error.to_string(), None),
    }
}

fn not_opened(mut reason: String, exit_code: Option<u32>, stderr: &LastLines, skipped: &LastLines) -> Error {
    for (name, lines) in [("standard error", stderr), ("standard output", skipped)] {
        let text = lines.text();
        // The end of the command has its last lines already.
        if !text.is_empty() && !reason.contains(&text) {
            reason.push_str(&format!("; its {name} ended with: {text}"));
        }
    }
    Error::NotOpened { reason, exit_code }
}

/// Returns random bytes as hexadecimal digits.
pub(crate) fn random_hex<const BYTES: usize>() -> Result<String, Error> {
    let mut random = [0_u8; BYTES];
    getrandom::fill(&mut random).map_err(Error::Random)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}
