//! Puts the servers of npm, `PyPI` and crates.io into a folder of their own each, and says which cannot be had.

use crate::BenchmarkError;
use crate::peers::{self, InstallSource, PeerServer};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a server is, or would be, installed.
pub(crate) fn folder(name: &str) -> PathBuf {
    crate::home().join(".peers").join(name)
}

/// Installs those that are named, or all, that are not there.
pub(crate) fn install(file: Option<&Path>, names: &[String]) -> Result<(), BenchmarkError> {
    let default = crate::home().join("peers.toml");
    let peers = peers::load(file.unwrap_or(&default))?;
    if let Some(unknown) = names.iter().find(|name| !peers.iter().any(|peer| peer.name == **name)) {
        return Err(format!("no server `{unknown}`").into());
    }
    let mut failed = Vec::new();
    for peer in peers.iter().filter(|peer| names.is_empty() || names.contains(&peer.name)) {
        let Some(source) = &peer.install else { continue };
        let said = match folder(&peer.name).exists() {
            true => "is there".to_owned(),
            false => match get(peer, source) {
                Ok(()) => "installed".to_owned(),
                Err(failure) => {
                    let _ = fs::remove_dir_all(folder(&peer.name));
                    failed.push(peer.name.as_str());
                    format!("cannot be had: {failure}")
                }
            },
        };
        println!("{}: {said}", peer.name);
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("not installed: {}", failed.join(", ")).into()),
    }
}

fn get(peer: &PeerServer, source: &InstallSource) -> Result<(), BenchmarkError> {
    let folder = folder(&peer.name);
    fs::create_dir_all(&folder)?;
    match source {
        // A browser is not what is measured, and not everybody may download one.
        InstallSource::Npm(package) => run(Command::new("npm")
            .env("PUPPETEER_SKIP_DOWNLOAD", "true")
            .args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"])
            .arg(&folder)
            .arg(package)),
        InstallSource::Pip(package) => {
            run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
            run(Command::new(folder.join("bin/pip"))
                .args(["install", "--quiet", "--disable-pip-version-check"])
                .arg(package))
        }
        InstallSource::Cargo(package) => run(Command::new("cargo")
            .args(["install", "--locked", "--quiet", "--root"])
            .arg(&folder)
            .arg(package)),
    }
}

/// Runs a program to its end. What it says is the reader's, the last line of it the reason of a failure.
fn run(command: &mut Command) -> Result<(), BenchmarkError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
    Err(format!("{program} failed ({}): {last}", output.status).into())
}
