//! Names the build: a hash of the sources that both ends of a remote share, so that two builds of one version are told
//! apart. A release has no such name, and neither has a build from a package: their versions say what they are.
#![allow(clippy::disallowed_methods, reason = "a build script learns everything from its environment")]
#![allow(clippy::print_stdout, reason = "cargo reads what a build script prints")]

use std::io;
use std::path::{Path, PathBuf};

/// The crates that are built on this one. Their protocols are those of the crates that are hashed.
const BUILT_ON_THIS: [&str; 3] = ["mcp-http", "mcp-proxy", "mcp-stdio"];

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CORETOOLS_RELEASE");
    let is_release = std::env::var_os("CORETOOLS_RELEASE").is_some_and(|value| !value.is_empty());
    let crates = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("..");
    // In a package, the folder above has other packages and no lock file of a workspace.
    let lock = crates.join("../Cargo.lock");
    if is_release || !lock.is_file() || !crates.join("server-setup/build.rs").is_file() {
        println!("cargo:rustc-env=CORETOOLS_BUILD=");
        return Ok(());
    }
    let mut hash = Fnv::default();
    println!("cargo:rerun-if-changed={}", lock.display());
    hash.add(&std::fs::read(&lock)?);
    for folder in entries(&crates)? {
        let sources = folder.join("src");
        let is_shared = folder
            .file_name()
            .is_some_and(|name| !BUILT_ON_THIS.iter().any(|built_on_this| name == *built_on_this));
        if is_shared && sources.is_dir() {
            println!("cargo:rerun-if-changed={}", sources.display());
            add_folder(&mut hash, &crates, &sources)?;
        }
    }
    println!("cargo:rustc-env=CORETOOLS_BUILD={:016x}", hash.0);
    Ok(())
}

/// The entries of a folder, by name.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    Ok(entries)
}

fn add_folder(hash: &mut Fnv, base: &Path, folder: &Path) -> io::Result<()> {
    for path in entries(folder)? {
        if path.is_dir() {
            add_folder(hash, base, &path)?;
            continue;
        }
        let name = path.strip_prefix(base).unwrap_or(&path);
        hash.add(name.to_string_lossy().as_bytes());
        hash.add(&std::fs::read(&path)?);
    }
    Ok(())
}

/// The hash FNV-1a of 64 bits. It tells builds apart, and proves nothing.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Adds bytes and their number.
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&bytes.len().to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
