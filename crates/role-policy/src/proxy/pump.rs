//! The thread that reads what client and server say, and hands it to the session, which writes at once what
//! follows from it. One thread for both: a call wakes it twice, and finds it where it was.

use super::lines::{Line, Lines};
use super::session::Session;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// How long a client that does not read is left alone, in nanoseconds: 100 ms.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The thread, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Pump {
    next: Arc<Mutex<Option<Source>>>,
    /// A byte in it says that there is something in `next`, its end that all is over.
    wake: OwnedFd,
}

/// What the server of a generation says.
type Source = (u64, Lines);

impl Pump {
    /// Reads the client, and whatever server is [attached](Self::attach).
    pub(super) fn start(session: Session, client: Lines) -> io::Result<Self> {
        let (woken, wake) = io::pipe()?;
        let pump = Self { next: Arc::default(), wake: wake.into() };
        let next = Arc::clone(&pump.next);
        // Not joined: who drops the pump need not wait for it.
        std::thread::Builder::new().name("pump".to_owned()).spawn(move || {
            run(&session, client, &next, &woken.into());
        })?;
        Ok(pump)
    }

    /// From now on this server is read, and the one before no more.
    pub(super) fn attach(&self, generation: u64, lines: Lines) -> io::Result<()> {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some((generation, lines));
        rustix::io::write(&self.wake, &[1])?;
        Ok(())
    }
}

/// What to wait for: of lines that are not to be read, nothing, in the place of which stands `woken`.
fn watched<'a>(lines: Option<&'a Lines>, has_room: bool, woken: &'a OwnedFd) -> PollFd<'a> {
    match lines.filter(|_| has_room) {
        Some(lines) => PollFd::from_borrowed_fd(lines.as_fd(), PollFlags::IN),
        None => PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::empty()),
    }
}

fn run(session: &Session, client: Lines, next: &Mutex<Option<Source>>, woken: &OwnedFd) {
    let (mut client, mut server) = (Some(client), None);
    loop {
        // What anybody says makes lines for the client, and who does not read them is given no more.
        let has_room = session.client().has_room();
        let [is_woken, client_speaks, server_speaks] = {
            let server: Option<&Source> = server.as_ref();
            let mut polled = [
                PollFd::new(woken, PollFlags::IN),
                watched(client.as_ref(), has_room, woken),
                watched(server.map(|(_, lines)| lines), has_room, woken),
            ];
            match poll(&mut polled, if has_room { None } else { Some(&LOOK) }) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "cannot wait for client and server");
                    return session.client_is_gone();
                }
            }
            polled.map(|polled| !polled.revents().is_empty())
        };
        if is_woken {
            if !matches!(rustix::io::read(woken, &mut [0; 16]), Ok(1..) | Err(Errno::INTR)) {
                return;
            }
            server = next.lock().unwrap_or_else(PoisonError::into_inner).take().or(server);
            // What was said of the one before says nothing of this one.
            continue;
        }
        let is_gone = |lines: &mut Lines| match has_room {
            true => client_speaks && !read_client(session, lines),
            false => lines.hung_up(),
        };
        if client.take_if(is_gone).is_some() {
            session.client_is_gone();
        }
        if server_speaks {
            server.take_if(|(generation, lines)| !read_server(session, *generation, lines));
        }
    }
}

/// Whether it goes on.
fn read_client(session: &Session, lines: &mut Lines) -> bool {
    if let Err(error) = lines.fill() {
        tracing::warn!(%error, "cannot read from the client");
        return false;
    }
    while let Some(line) = lines.take() {
        match line {
            Line::Whole(line) => session.client_line(line),
            Line::TooLong(outline) => session.client_line_too_long(outline),
            Line::End => return false,
        }
    }
    true
}

/// Whether it goes on.
fn read_server(session: &Session, generation: u64, lines: &mut Lines) -> bool {
    if let Err(error) = lines.fill() {
        session.server_is_gone(generation, &error.to_string());
        return false;
    }
    while let Some(line) = lines.take() {
        match line {
            Line::Whole(line) => session.server_line(generation, line),
            Line::TooLong(outline) => session.server_line_too_long(generation, outline),
            Line::End => {
                session.server_is_gone(generation, "its output has ended");
                return false;
            }
        }
    }
    true
}
