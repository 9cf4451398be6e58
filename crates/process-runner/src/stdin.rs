//! The standard input of a program.

use std::fmt;
use std::fs::File;
#[cfg(unix)]
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncRead;

/// The source of a program's standard input. A program never gets this process's own.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Stdin {
    /// `/dev/null`: the program reads end of file at once.
    #[default]
    Null,
    /// These bytes, then end of file.
    Bytes(Arc<Vec<u8>>),
    /// An open file, from its current position. Its bytes do not pass through this process.
    File(Arc<File>),
    /// The bytes of a reader until it ends. See [`Stdin::reader`].
    Reader(SharedReader),
    /// A pipe to which [`Running::write_stdin`](crate::Running::write_stdin) writes.
    Piped,
    /// A terminal, such as `/dev/pts/3`, that controls no session yet. The terminal becomes the controlling terminal of
    /// the program's new session (`open(2)`, `O_NOCTTY`; Linux). A [`Confinement`](crate::Confinement) must grant the
    /// terminal. The program's output goes to the terminal only if [`Command::stdout`](crate::Command::stdout) is the
    /// same terminal.
    #[cfg(unix)]
    Terminal(PathBuf),
}

/// A reader that the first run of a [`Command`](crate::Command) takes.
#[derive(Clone)]
pub struct SharedReader(pub(crate) Arc<Mutex<Option<Box<dyn AsyncRead + Send + Unpin>>>>);

impl Stdin {
    /// Returns an input of these bytes, then end of file.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Bytes(Arc::new(bytes.into()))
    }

    /// Returns an input of the bytes of `reader` until it ends. The run ends with its program, also if the reader does
    /// not end. A reader can be used once: a second run of the same command is refused.
    pub fn reader(reader: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self::Reader(SharedReader(Arc::new(Mutex::new(Some(Box::new(reader))))))
    }

    /// Returns true if a reader was taken by an earlier run.
    pub(crate) fn is_used_up(&self) -> bool {
        match self {
            Self::Reader(shared) => shared.0.lock().unwrap_or_else(PoisonError::into_inner).is_none(),
            _ => false,
        }
    }
}

impl fmt::Debug for SharedReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedReader").finish_non_exhaustive()
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::File(_) => f.write_str("File"),
            Self::Reader(_) => f.write_str("Reader"),
            Self::Piped => f.write_str("Piped"),
            #[cfg(unix)]
            Self::Terminal(path) => write!(f, "Terminal({})", path.display()),
        }
    }
}
