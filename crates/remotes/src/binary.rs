//! [`copied_binary`]: the program that is copied to a remote.
#![allow(clippy::disallowed_methods, reason = "the program's own file, and those that the operator names")]

use crate::commands::RemoteCommand;
use crate::error::{CopyError, Error};
use crate::settings::RemoteSettings;
use process_runner::Runner;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The time that the command which tells the architecture may take.
const ARCHITECTURE_TIMEOUT: Duration = Duration::from_secs(30);

/// The time that copying may take.
pub(crate) const COPY_TIMEOUT: Duration = Duration::from_secs(600);

/// A program that can be copied to a remote.
#[derive(Clone, Debug)]
pub(crate) struct CopiedBinary {
    /// Its name there: it has the hash, so that another program has another name.
    pub(crate) name: String,
    /// Its SHA-256 in hexadecimal digits.
    pub(crate) sha256: String,
    path: PathBuf,
}

impl CopiedBinary {
    /// Reads the program.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, Error> {
        std::fs::read(&self.path).map_err(|source| Error::ReadBinary { path: self.path.clone(), source })
    }
}

/// Returns the program for the architecture of a remote.
pub(crate) async fn copied_binary(
    settings: &RemoteSettings,
    architecture: Option<&RemoteCommand>,
    runner: &Runner,
    program: &str,
    version: &str,
) -> Result<CopiedBinary, Error> {
    let own = std::env::consts::ARCH;
    let architecture = match architecture {
        None => own.to_owned(),
        Some(command) => {
            let output = command.run(runner, None, ARCHITECTURE_TIMEOUT).await?;
            let text = output.stdout.text();
            // The last line counts, because the start files of a shell may print something before it.
            architecture_name(text.lines().last().unwrap_or_default().trim()).to_owned()
        }
    };
    let path = match (&settings.binaries, architecture == own) {
        (Some(folder), _) => folder.join(format!("{program}-{architecture}")),
        // Without a folder of programs, this program is the only one that is known to be of the right version.
        (None, true) => std::env::current_exe()
            .map_err(|source| Error::ReadBinary { path: PathBuf::from(program), source })?,
        (None, false) => {
            let (there, program) = (architecture, program.to_owned());
            return Err(CopyError::Architecture { there, here: own, program }.into());
        }
    };
    let sha256 = hash(path.clone()).await?;
    // Sixty-four bits of the hash tell builds of one version apart. The whole hash is compared after the copy.
    let name = format!("{program}-{version}-{}", &sha256[..16]);
    Ok(CopiedBinary { name, sha256, path })
}

/// Hashes a file on a thread of its own: a program has tens of megabytes.
async fn hash(path: PathBuf) -> Result<String, Error> {
    let path = Arc::new(path);
    let read = Arc::clone(&path);
    let hashed = tokio::task::spawn_blocking(move || hash_file(&read)).await;
    let error = |source| Error::ReadBinary { path: path.to_path_buf(), source };
    hashed.map_err(|failed| error(std::io::Error::other(failed)))?.map_err(error)
}

fn hash_file(path: &Path) -> std::io::Result<String> {
    let digest = Sha256::digest(std::fs::read(path)?);
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns Rust's name of an architecture that `uname -m` prints.
fn architecture_name(machine: &str) -> &str {
    match machine {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        "armv7l" | "armv6l" => "arm",
        "i686" | "i386" => "x86",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::de::DeTable;

    fn settings(text: &str) -> RemoteSettings {
        let table = DeTable::parse(text).unwrap();
        RemoteSettings::parse("box", table.get_ref(), &(0..0)).unwrap()
    }

    fn prints(text: &str) -> RemoteCommand {
        RemoteCommand { arguments: vec!["echo".to_owned(), text.to_owned()], variables: Vec::new() }
    }

    #[tokio::test]
    async fn the_program_of_the_architecture_is_named_by_its_hash() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mcp-stdio-aarch64"), "program").unwrap();
        let text = format!("connect = ['x']\nbinaries = '{}'", folder.path().display());
        let runner = Runner::new();
        let found =
            copied_binary(&settings(&text), Some(&prints("arm64")), &runner, "mcp-stdio", "1").await.unwrap();
        assert_eq!(found.name, format!("mcp-stdio-1-{}", &found.sha256[..16]));
        assert_eq!(found.bytes().unwrap(), b"program");
        let own = settings("connect = ['x']");
        let other =
            copied_binary(&own, Some(&prints("riscv64")), &runner, "mcp-stdio", "1").await.unwrap_err();
        assert!(
            matches!(&other, Error::Copy(CopyError::Architecture { there, .. }) if there == "riscv64"),
            "{other}"
        );
    }
}
