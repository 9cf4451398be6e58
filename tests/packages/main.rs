//! The packages that users install: the manual, the npm package, the wheel, the bundle, the entry of the registry, archives
//! with their installer, and what clients and package managers install by themselves; made
//! from the programs as they are built for the tests, installed from local files, and driven as a client does.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod bundle;
mod clients;
mod installer;
mod managers;
mod manual;
mod npm;
mod python;
mod registry;
mod workflows;

use integration_tests::{Era, Project, Wire, require};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// For what should be soon, on a machine that has much else to do.
const SOON: Duration = Duration::from_secs(30);

/// The version of every package.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The target of this machine, with the C library that the tests are built for.
const TARGET: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };

/// A path in the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Makes packages of one kind from the programs, and returns their paths.
fn package(kind: &str, out: &Path, more: &[&str]) -> Vec<PathBuf> {
    let has_programs = ["archive", "npm", "wheel", "mcpb"].contains(&kind);
    let binaries = if has_programs { stripped(out) } else { out.to_owned() };
    package_of(&binaries, kind, out, more)
}

/// The same of other programs.
fn package_of(binaries: &Path, kind: &str, out: &Path, more: &[&str]) -> Vec<PathBuf> {
    let mut command = Command::new("python3");
    command.arg(repository("packaging/package.py")).arg(kind).arg("--out").arg(out);
    command.args(["--repository", "owner/name"]).args(more);
    if ["archive", "npm", "wheel", "mcpb"].contains(&kind) {
        command.args(["--target", TARGET, "--binaries"]).arg(binaries);
    }
    let output = command.output().expect("python3 is needed");
    assert!(output.status.success(), "{kind}: {output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(PathBuf::from).collect()
}

/// A folder with a small program in place of `mcp-stdio`, where only the package matters.
fn small(out: &Path) -> PathBuf {
    let folder = out.join("small");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("mcp-stdio"), "#!/bin/sh\n").unwrap();
    folder
}

/// A folder with the programs, without what only a debugger reads: that packs in a tenth of the time.
fn stripped(out: &Path) -> PathBuf {
    let folder = out.join("programs");
    for program in [integration_tests::server(), integration_tests::http_server()] {
        let copy = folder.join(program.file_name().unwrap());
        if !copy.exists() {
            fs::create_dir_all(&folder).unwrap();
            succeed(Command::new("strip").arg("-o").arg(copy).arg(program));
        }
    }
    folder
}

/// Runs a command that must succeed.
fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

/// A program or file that packages are checked with, of the repository's own `.packagers`. Without it the test says so
/// and passes; in CI it fails.
fn packager(path: &str) -> Option<PathBuf> {
    let folder =
        std::env::var_os("CORETOOLS_TEST_PACKAGERS").map_or_else(|| repository(".packagers"), PathBuf::from);
    let path = folder.join(path);
    let missing = format!("{} is not there; `.ci/run tools` installs it", path.display());
    require(path.exists().then_some(path), &missing)
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Proves that what `start` makes commands of is the server and adds nothing of its own: the answers, every byte of
/// standard input and output, exit codes, signals, the end.
fn is_the_server(start: &dyn Fn(&Project) -> Command) {
    let project = Project::with([("a.txt", "hello\n")]);
    for era in Era::BOTH {
        let mut wire = Wire::connect(start(&project), era);
        assert!(wire.text("read_file", json!({"path": "a.txt"})).contains("hello"));
        wire.close_input();
        assert!(wire.wait(SOON).0.success(), "{era:?}: it ends with its input");
    }
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut wire = Wire::connect(start(&project), Era::BOTH[0]);
        wire.signal(signal);
        assert!(wire.wait(SOON).0.success(), "it ends in good order with {signal:?}");
    }
    for arguments in [
        &["call", "read_file", r#"{"path": "a.txt"}"#][..],
        &["call", "read_file", r#"{"path": "nothing"}"#],
        &["call", "no_such_tool"],
        &["--help"],
        &["call", "read_file", "-"],
        &["--version"],
    ] {
        let run = |mut command: Command| {
            let pipe = Stdio::piped;
            let mut child =
                command.args(arguments).stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn().unwrap();
            // Most read nothing.
            let _ = child.stdin.take().unwrap().write_all(br#"{"path": "a.txt"}"#);
            child.wait_with_output().unwrap()
        };
        let (packed, plain) = (run(start(&project)), run(project.server()));
        assert_eq!(packed, plain, "{arguments:?}");
    }
}
