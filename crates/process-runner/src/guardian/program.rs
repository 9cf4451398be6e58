//! The program that is started as the guardian.

use std::io;
#[cfg(unix)]
use std::path::Path;
use std::path::PathBuf;

/// The program that is started as the guardian.
#[derive(Clone, Debug)]
pub struct GuardianProgram {
    #[cfg_attr(not(unix), allow(dead_code, reason = "no guardian is started"))]
    program: PathBuf,
}

impl GuardianProgram {
    /// Uses this program itself, whose `main` must call [`run_if_requested`](super::run_if_requested) first of all.
    ///
    /// # Errors
    /// If the system does not say where this program's file is.
    pub fn current_exe() -> io::Result<Self> {
        if cfg!(target_os = "linux") {
            // This is the same file also when another has taken its name since, as after an update.
            return Ok(Self { program: "/proc/self/exe".into() });
        }
        std::env::current_exe().map(Self::program)
    }

    /// Uses another program whose `main` calls [`run_if_requested`](super::run_if_requested). A small one starts faster
    /// and needs less memory.
    pub fn program(path: impl Into<PathBuf>) -> Self {
        Self { program: path.into() }
    }

    /// Returns the program's file.
    #[cfg(unix)]
    pub(super) fn path(&self) -> &Path {
        &self.program
    }
}
