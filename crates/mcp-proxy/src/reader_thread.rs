//! The thread that reads the lines of client and server and hands them to the session, which writes the resulting
//! lines at once. One thread serves both: a call wakes it twice, with its memory still in the cache.

use super::line_reader::{BoundedLineReader, Line};
use super::session::ProxySession;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// The interval at which a full queue to the client is looked at again: 100 ms.
const CAPACITY_CHECK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A handle of the thread; dropping it ends the thread.
#[derive(Debug)]
pub(super) struct ReaderThread {
    attached: Arc<Mutex<Option<ServerLineSource>>>,
    /// A pipe to the thread: a byte means that `attached` holds a server, and its end that the thread is to end.
    wake: OwnedFd,
}

/// The generation of a server, and the reader of its lines.
type ServerLineSource = (u64, BoundedLineReader);

impl ReaderThread {
    /// Reads the client, and whatever server is [attached](Self::attach).
    pub(super) fn start(session: ProxySession, client: BoundedLineReader) -> io::Result<Self> {
        let (wake_reader, wake) = io::pipe()?;
        let reader_thread = Self { attached: Arc::default(), wake: wake.into() };
        let attached = Arc::clone(&reader_thread.attached);
        // Not joined: dropping the handle must not block.
        std::thread::Builder::new().name("reader".to_owned()).spawn(move || {
            run(&session, client, &attached, &wake_reader.into());
        })?;
        Ok(reader_thread)
    }

    /// Reads this server from now on, in place of the one before.
    pub(super) fn attach(&self, generation: u64, lines: BoundedLineReader) -> io::Result<()> {
        // A lock with a pipe and no condition variable: the thread sleeps in `poll(2)`, which waits for descriptors
        // alone. Lines of the former server that are still unread are dropped, as its requests have failed.
        *self.attached.lock().unwrap_or_else(PoisonError::into_inner) = Some((generation, lines));
        rustix::io::write(&self.wake, &[1])?;
        Ok(())
    }
}

/// Returns the descriptor to poll. For lines that are not to be read it is `wake_reader`, without any event.
fn poll_entry<'a>(
    lines: Option<&'a BoundedLineReader>,
    has_capacity: bool,
    wake_reader: &'a OwnedFd,
) -> PollFd<'a> {
    match lines.filter(|_| has_capacity) {
        Some(lines) => PollFd::from_borrowed_fd(lines.as_fd(), PollFlags::IN),
        None => PollFd::from_borrowed_fd(wake_reader.as_fd(), PollFlags::empty()),
    }
}

fn run(
    session: &ProxySession,
    client: BoundedLineReader,
    attached: &Mutex<Option<ServerLineSource>>,
    wake_reader: &OwnedFd,
) {
    let (mut client, mut server) = (Some(client), None);
    loop {
        // Every line that is read can cause lines to the client. While it does not read them, nobody is read.
        let has_capacity = session.client().has_capacity();
        let [is_woken, client_readable, server_readable] = {
            let server: Option<&ServerLineSource> = server.as_ref();
            let mut polled = [
                PollFd::new(wake_reader, PollFlags::IN),
                poll_entry(client.as_ref(), has_capacity, wake_reader),
                poll_entry(server.map(|(_, lines)| lines), has_capacity, wake_reader),
            ];
            match poll(&mut polled, if has_capacity { None } else { Some(&CAPACITY_CHECK_INTERVAL) }) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "cannot wait for client and server");
                    return session.client_is_gone();
                }
            }
            polled.map(|polled| !polled.revents().is_empty())
        };
        if is_woken {
            // The end of this pipe means that the handle was dropped.
            if !matches!(rustix::io::read(wake_reader, &mut [0; 16]), Ok(1..) | Err(Errno::INTR)) {
                return;
            }
            server = attached.lock().unwrap_or_else(PoisonError::into_inner).take().or(server);
            // The events were polled for the server before this one.
            continue;
        }
        let is_gone = |lines: &mut BoundedLineReader| match has_capacity {
            true => client_readable && !read_client(session, lines),
            // Nothing is read from a client that reads nothing, so its end is not read either.
            false => lines.is_hung_up(),
        };
        if client.take_if(is_gone).is_some() {
            session.client_is_gone();
        }
        if server_readable {
            server.take_if(|(generation, lines)| !read_server(session, *generation, lines));
        }
    }
}

/// Reads what has arrived; returns false at the end of the stream.
fn read_client(session: &ProxySession, lines: &mut BoundedLineReader) -> bool {
    if let Err(error) = lines.fill() {
        tracing::warn!(%error, "cannot read from the client");
        return false;
    }
    while let Some(line) = lines.take() {
        match line {
            Line::Whole(line) => session.client_line(line),
            Line::TooLong { outline, .. } => session.client_line_too_long(outline),
            Line::End => return false,
        }
    }
    true
}

/// Reads what has arrived; returns false at the end of the stream.
fn read_server(session: &ProxySession, generation: u64, lines: &mut BoundedLineReader) -> bool {
    if let Err(error) = lines.fill() {
        session.server_is_gone(generation, &error.to_string());
        return false;
    }
    while let Some(line) = lines.take() {
        match line {
            Line::Whole(line) => session.server_line(generation, line),
            Line::TooLong { outline, .. } => session.server_line_too_long(generation, outline),
            Line::End => {
                session.server_is_gone(generation, "its output has ended");
                return false;
            }
        }
    }
    true
}
