//! Standard input and output as asynchronous streams, registered with the reactor where the system allows. tokio's own
//! go through a thread for each read and write.
//!
//! Clients start a stdio server with pipes (Python, Rust, Go) or with socket pairs (Node). The reactor can
//! wait for both; a terminal or a file goes through tokio's blocking handles.

use tokio::io::{AsyncRead, AsyncWrite};

/// An input that may know that nobody writes to it any more, before all of it has been read.
pub(super) trait InputStream: AsyncRead + Send + Unpin {
    /// Returns true if it is known that nobody writes any more. What was written before may still be there to read.
    fn is_hung_up(&self) -> bool;
}

/// The stream that messages are read from.
pub(super) type MessageInput = Box<dyn InputStream>;
/// The stream that messages are written to.
pub(super) type MessageOutput = Box<dyn AsyncWrite + Send + Unpin>;

impl InputStream for tokio::io::Stdin {
    /// Returns false: a thread of tokio's reads ahead, and does not tell.
    fn is_hung_up(&self) -> bool {
        false
    }
}

#[cfg(unix)]
impl InputStream for tokio::net::unix::OwnedReadHalf {
    #[cfg(target_os = "linux")]
    fn is_hung_up(&self) -> bool {
        unix::is_closed(self.ready(tokio::io::Interest::READABLE))
    }

    /// Returns false: it is not asked where the other streams cannot be asked either.
    #[cfg(not(target_os = "linux"))]
    fn is_hung_up(&self) -> bool {
        false
    }
}

/// Returns standard input and output.
pub(super) fn standard() -> (MessageInput, MessageOutput) {
    (
        unix::input().unwrap_or_else(|| Box::new(tokio::io::stdin())),
        unix::output().unwrap_or_else(|| Box::new(tokio::io::stdout())),
    )
}

#[cfg(target_os = "linux")]
mod unix {
    use super::{InputStream, MessageInput, MessageOutput};
    use std::fs::{File, OpenOptions};
    use std::io::{stdin, stdout};
    use std::os::fd::{AsFd, AsRawFd, OwnedFd};
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    use tokio::io::{Interest, Ready};
    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    pub(super) fn input() -> Option<MessageInput> {
        match kind(stdin().as_fd())? {
            StreamKind::Pipe => {
                let pipe = reopen(stdin().as_raw_fd(), OpenOptions::new().read(true))?;
                Some(Box::new(pipe::Receiver::from_owned_fd(pipe).ok()?))
            }
            StreamKind::Socket => Some(Box::new(socket(stdin().as_fd())?)),
        }
    }

    pub(super) fn output() -> Option<MessageOutput> {
        match kind(stdout().as_fd())? {
            StreamKind::Pipe => {
                let pipe = reopen(stdout().as_raw_fd(), OpenOptions::new().write(true))?;
                Some(Box::new(pipe::Sender::from_owned_fd(pipe).ok()?))
            }
            StreamKind::Socket => Some(Box::new(socket(stdout().as_fd())?)),
        }
    }

    impl InputStream for pipe::Receiver {
        fn is_hung_up(&self) -> bool {
            is_closed(self.ready(Interest::READABLE))
        }
    }

    impl InputStream for UnixStream {
        fn is_hung_up(&self) -> bool {
            is_closed(self.ready(Interest::READABLE))
        }
    }

    /// Polls once. `EPOLLHUP` and `EPOLLRDHUP` (`epoll_ctl(2)`) come while there is still something to read.
    pub(super) fn is_closed(ready: impl Future<Output = std::io::Result<Ready>>) -> bool {
        match pin!(ready).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(ready)) => ready.is_read_closed(),
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        }
    }

    /// The kinds of standard streams that the reactor can wait for.
    enum StreamKind {
        Pipe,
        Socket,
    }

    fn kind(descriptor: impl AsFd) -> Option<StreamKind> {
        // A copy of the descriptor: dropping the file must not close the standard stream.
        let file = File::from(descriptor.as_fd().try_clone_to_owned().ok()?);
        let kind = file.metadata().ok()?.file_type();
        if kind.is_fifo() {
            Some(StreamKind::Pipe)
        } else if kind.is_socket() {
            Some(StreamKind::Socket)
        } else {
            // A terminal's settings are shared with the shell, and epoll takes no regular file (EPERM, epoll_ctl(2)).
            None
        }
    }

    /// Opens the same pipe anew. `O_NONBLOCK` (open(2)) belongs to the open file, which other processes share: a shell
    /// would find its terminal or pipe changed.
    #[allow(
        clippy::disallowed_methods,
        reason = "it opens the pipe that is its own standard stream, by /proc"
    )]
    fn reopen(descriptor: i32, options: &mut OpenOptions) -> Option<OwnedFd> {
        // The value of x86, Arm, RISC-V and s390x; the standard library does not name it.
        const O_NONBLOCK: i32 = 0o4000;
        let path = format!("/proc/self/fd/{descriptor}");
        options.custom_flags(O_NONBLOCK).open(path).ok().map(OwnedFd::from)
    }

    /// Makes a socket non-blocking in place, since it cannot be opened anew. Nobody else reads this end of the pair:
    /// children inherit none of our descriptors.
    fn socket(descriptor: impl AsFd) -> Option<UnixStream> {
        let stream = std::os::unix::net::UnixStream::from(descriptor.as_fd().try_clone_to_owned().ok()?);
        stream.set_nonblocking(true).ok()?;
        UnixStream::from_std(stream).ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod unix {
    use super::{MessageInput, MessageOutput};

    pub(super) fn input() -> Option<MessageInput> {
        None
    }

    pub(super) fn output() -> Option<MessageOutput> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::InputStream;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{UnixStream, unix::pipe};

    /// Returns true if `reader` sees the end of `writer`, and not before it.
    async fn is_seen(mut writer: impl AsyncWriteExt + Unpin, reader: impl InputStream) -> bool {
        let written = writer.write_all(b"unread").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        let early = reader.is_hung_up();
        drop(writer);
        let seen = async {
            while !reader.is_hung_up() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        written.is_ok() && !early && tokio::time::timeout(Duration::from_secs(20), seen).await.is_ok()
    }

    #[tokio::test]
    async fn a_hang_up_is_seen_before_all_has_been_read() {
        let (writer, reader) = pipe::pipe().unwrap();
        assert!(is_seen(writer, reader).await);
        let (writer, reader) = UnixStream::pair().unwrap();
        assert!(is_seen(writer, reader).await);
    }
}
