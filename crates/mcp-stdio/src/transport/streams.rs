//! Standard input and output as asynchronous streams, without a thread between them and the reactor where
//! the system allows.
//!
//! Clients start a stdio server with pipes (Python, Rust, Go) or with socket pairs (Node). Both can be
//! waited for; a terminal or a file goes through tokio's blocking handles.

use tokio::io::{AsyncRead, AsyncWrite};

/// A stream that may know that nobody writes to it any more, before all of it has been read.
pub(super) trait Source: AsyncRead + Send + Unpin {
    /// Whether nobody is known to write any more. What was written before may still be there to read.
    fn hung_up(&self) -> bool;
}

/// Where messages come from.
pub(super) type Input = Box<dyn Source>;
/// Where messages go.
pub(super) type Output = Box<dyn AsyncWrite + Send + Unpin>;

impl Source for tokio::io::Stdin {
    /// Not known: a thread of tokio's reads ahead of us.
    fn hung_up(&self) -> bool {
        false
    }
}

/// Standard input and output.
pub(super) fn standard() -> (Input, Output) {
    (
        unix::input().unwrap_or_else(|| Box::new(tokio::io::stdin())),
        unix::output().unwrap_or_else(|| Box::new(tokio::io::stdout())),
    )
}

#[cfg(target_os = "linux")]
mod unix {
    use super::{Input, Output, Source};
    use std::fs::{File, OpenOptions};
    use std::io::{stdin, stdout};
    use std::os::fd::{AsFd, AsRawFd, OwnedFd};
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    use tokio::io::{Interest, Ready};
    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    pub(super) fn input() -> Option<Input> {
        match kind(stdin().as_fd())? {
            Kind::Pipe => {
                let pipe = reopen(stdin().as_raw_fd(), OpenOptions::new().read(true))?;
                Some(Box::new(pipe::Receiver::from_owned_fd(pipe).ok()?))
            }
            Kind::Socket => Some(Box::new(socket(stdin().as_fd())?)),
        }
    }

    pub(super) fn output() -> Option<Output> {
        match kind(stdout().as_fd())? {
            Kind::Pipe => {
                let pipe = reopen(stdout().as_raw_fd(), OpenOptions::new().write(true))?;
                Some(Box::new(pipe::Sender::from_owned_fd(pipe).ok()?))
            }
            Kind::Socket => Some(Box::new(socket(stdout().as_fd())?)),
        }
    }

    impl Source for pipe::Receiver {
        fn hung_up(&self) -> bool {
            is_closed(self.ready(Interest::READABLE))
        }
    }

    impl Source for UnixStream {
        fn hung_up(&self) -> bool {
            is_closed(self.ready(Interest::READABLE))
        }
    }

    /// Looks once. `EPOLLHUP` and `EPOLLRDHUP` (`epoll_ctl(2)`) come while there is still something to read.
    fn is_closed(ready: impl Future<Output = std::io::Result<Ready>>) -> bool {
        match pin!(ready).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(ready)) => ready.is_read_closed(),
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        }
    }

    enum Kind {
        Pipe,
        Socket,
    }

    fn kind(descriptor: impl AsFd) -> Option<Kind> {
        let file = File::from(descriptor.as_fd().try_clone_to_owned().ok()?);
        let kind = file.metadata().ok()?.file_type();
        if kind.is_fifo() {
            Some(Kind::Pipe)
        } else if kind.is_socket() {
            Some(Kind::Socket)
        } else {
            None
        }
    }

    /// A description of its own for the same pipe, so that `O_NONBLOCK` (open(2)) is set on nobody else's.
    fn reopen(descriptor: i32, options: &mut OpenOptions) -> Option<OwnedFd> {
        const O_NONBLOCK: i32 = 0o4000;
        let path = format!("/proc/self/fd/{descriptor}");
        options.custom_flags(O_NONBLOCK).open(path).ok().map(OwnedFd::from)
    }

    /// A socket cannot be reopened. `O_NONBLOCK` goes to our end of the pair, which nobody else reads:
    /// children inherit none of our descriptors.
    fn socket(descriptor: impl AsFd) -> Option<UnixStream> {
        let stream = std::os::unix::net::UnixStream::from(descriptor.as_fd().try_clone_to_owned().ok()?);
        stream.set_nonblocking(true).ok()?;
        UnixStream::from_std(stream).ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod unix {
    use super::{Input, Output};

    pub(super) fn input() -> Option<Input> {
        None
    }

    pub(super) fn output() -> Option<Output> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::Source;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{UnixStream, unix::pipe};

    /// Whether `reader` sees the end of `writer`, and not before it.
    async fn is_seen(mut writer: impl AsyncWriteExt + Unpin, reader: impl Source) -> bool {
        let written = writer.write_all(b"unread").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        let early = reader.hung_up();
        drop(writer);
        let seen = async {
            while !reader.hung_up() {
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
