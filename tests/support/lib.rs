//! Support for the end-to-end tests: the built server, a project to serve, and two ways to talk to it.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "calls read better with a `json!` than with a reference to one"
)]
#![allow(clippy::missing_panics_doc, reason = "everything here panics where the test has failed")]

mod every_pair;
mod http;
mod left_running;
pub mod outside;
mod processes;
mod project;
pub mod remotes;
mod wire;

pub use every_pair::{Ask, check_every_pair};
pub use http::{Http, HttpServer, Reply, exchange, read as read_reply};
pub use left_running::{Escape, wait_until_left};
pub use processes::{
    alive, children, command_line, contained, is_alive, memory_limit, peak_memory_kib, sleeping,
    unique_seconds, wait_until_gone, zombies_of,
};
pub use project::{Project, serve};
/// See [`skipped_tests::require`].
pub use skipped_tests::require;
pub use wire::{Era, Wire};

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// The server: `$CORETOOLS_TEST_SERVER` where that is set, else built from the sources as they are, in the
/// profile of the tests.
pub fn server() -> &'static Path {
    static SERVER: OnceLock<PathBuf> = OnceLock::new();
    SERVER.get_or_init(|| match std::env::var_os("CORETOOLS_TEST_SERVER") {
        Some(given) => given.into(),
        None => once_a_run("mcp-stdio"),
    })
}

/// A copy of [`server`] that anybody may run. Another process writes it: what this one has open for writing, every child has
/// that another test starts at that moment, until it executes its program, and such a file cannot be executed (`ETXTBSY`).
pub fn copy_server(path: &Path) {
    let status = Command::new("install").args(["-m", "755"]).arg(server()).arg(path).status();
    assert!(status.expect("install is there").success(), "no copy at {}", path.display());
}

/// The server over HTTP: `$CORETOOLS_TEST_HTTP_SERVER` where that is set, else built as [`server`] is.
pub fn http_server() -> &'static Path {
    static SERVER: OnceLock<PathBuf> = OnceLock::new();
    SERVER.get_or_init(|| match std::env::var_os("CORETOOLS_TEST_HTTP_SERVER") {
        Some(given) => given.into(),
        None => once_a_run("mcp-http"),
    })
}

/// The example `everything` of `core-tools`, built as [`server`] is.
pub fn everything() -> &'static Path {
    static EXAMPLE: OnceLock<PathBuf> = OnceLock::new();
    EXAMPLE.get_or_init(|| once_a_run("everything"))
}

/// nextest runs each test in a process of its own; the first of them builds, the others are told where.
fn once_a_run(program: &str) -> PathBuf {
    let Ok(run) = std::env::var("NEXTEST_RUN_ID") else { return build(program) };
    let note = std::env::temp_dir().join(format!("coretools-tests-{run}-{program}"));
    let mut file =
        File::options().create(true).append(true).read(true).open(&note).expect("a note can be left");
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).expect("a file can be locked");
    let mut known = String::new();
    file.read_to_string(&mut known).expect("the note can be read");
    if known.is_empty() {
        known = build(program).to_str().expect("a path in UTF-8").to_owned();
        file.write_all(known.as_bytes()).expect("a note can be left");
    }
    known.into()
}

/// The cargo that runs the tests, without what it has told them of their own package: build scripts that look at that
/// (ring's does) would run again, and everything above them be built again, each time that another package asks.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let of_the_package =
            ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
        if of_the_package.iter().any(|prefix| name.starts_with(prefix)) {
            cargo.env_remove(&*name);
        }
    }
    cargo
}

/// Builds `program` with the features that `cargo test --workspace` chooses, and returns its path. Chosen for its package
/// alone they differ in a hundred crates, which would all be compiled again. A test target is among what is built because
/// only then cargo counts the features of development dependencies.
fn build(program: &str) -> PathBuf {
    let mut cargo = cargo();
    let kind = if program == "everything" { "--example" } else { "--bin" };
    cargo.args(["build", "--quiet", "--workspace", kind, program, "--test", "summary"]);
    cargo.args(["--message-format", "json"]);
    if !cfg!(debug_assertions) {
        cargo.args(["--profile", "dist"]); // what is measured is what is shipped
    }
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let artifacts = String::from_utf8_lossy(&output.stdout);
    let mut artifacts =
        artifacts.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let executable = artifacts.find_map(|artifact| {
        let of_the_program = artifact["target"]["name"] == program;
        artifact["executable"].as_str().filter(|_| of_the_program).map(PathBuf::from)
    });
    executable.expect("cargo names the executable")
}

/// A Python with the official `mcp` package: see [`python_with`].
pub fn python_with_mcp() -> Option<PathBuf> {
    python_with("mcp")
}

/// A Python that has `module`, one of those in `tests/python/requirements.txt`: the repository's own `.venv`,
/// or `$CORETOOLS_TEST_PYTHON`. Without one the test says so and passes; in CI it fails.
pub fn python_with(module: &str) -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/bin/python");
    let python = std::env::var_os("CORETOOLS_TEST_PYTHON").map_or(own, PathBuf::from);
    let import = format!("import {module}");
    let found =
        Command::new(&python).args(["-c", &import]).output().is_ok_and(|output| output.status.success());
    let how = "python3 -m venv .venv && .venv/bin/pip install -r tests/python/requirements.txt";
    require(found.then_some(python), &format!("no Python with `{module}`; install it: {how}"))
}

/// The entry of `@modelcontextprotocol/server-filesystem`, for `node`: the repository's own `.peers`, or
/// `$CORETOOLS_TEST_FILESYSTEM_SERVER`. Without it the test says so and passes; in CI it fails.
pub fn filesystem_server() -> Option<PathBuf> {
    const ENTRY: &str = "../.peers/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(ENTRY);
    let entry = std::env::var_os("CORETOOLS_TEST_FILESYSTEM_SERVER").map_or(own, PathBuf::from);
    let found = entry.is_file() && Command::new("node").arg("--version").output().is_ok();
    let how = "npm install --prefix .peers --no-save @modelcontextprotocol/server-filesystem@2026.8.31";
    require(found.then_some(entry), &format!("no node, or no filesystem server; install it: {how}"))
}

/// A Node.js that can run it (22 and newer), and the entry of the official conformance suite: the repository's own
/// `.nodes` and `.peers`, or `$CORETOOLS_TEST_NODE` and `$CORETOOLS_TEST_CONFORMANCE`. Without them the test says so and
/// passes; in CI it fails.
pub fn conformance_suite() -> Option<(PathBuf, PathBuf)> {
    let own = |place: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(place);
    let given = |name: &str, place: &str| std::env::var_os(name).map_or_else(|| own(place), PathBuf::from);
    let node = given("CORETOOLS_TEST_NODE", ".nodes/node_modules/node24/bin/node");
    let entry = given(
        "CORETOOLS_TEST_CONFORMANCE",
        ".peers/node_modules/@modelcontextprotocol/conformance/dist/index.js",
    );
    let found = node.is_file() && entry.is_file();
    let how = "npm install --prefix .peers --no-save @modelcontextprotocol/conformance@0.2.0-alpha.12, and --prefix \
               .nodes node24@npm:node@24";
    require(found.then_some((node, entry)), &format!("no conformance suite; install it: {how}"))
}

/// The `node_modules` with the coding agents and clients that are tried: the repository's own `.clients`, or
/// `$CORETOOLS_TEST_CLIENTS`, if `entry` is in it. Without it the test says so and passes; in CI it fails.
pub fn npm_clients(entry: &str) -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.clients/node_modules");
    let modules = std::env::var_os("CORETOOLS_TEST_CLIENTS").map_or(own, PathBuf::from);
    let modules = modules.canonicalize().unwrap_or(modules);
    let found = modules.join(entry).exists();
    require(found.then_some(modules), &format!("no {entry} in .clients; `.ci/run tools` installs it"))
}

/// Makes a certificate for `localhost`, `cert.pem`, and its key, `key.pem`. Without openssl the test says so and passes; in
/// CI it fails.
pub fn certificate(folder: &Path) -> Option<()> {
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(folder.join("key.pem"))
        .arg("-out")
        .arg(folder.join("cert.pem"))
        .output();
    require(made.is_ok_and(|made| made.status.success()).then_some(()), "no openssl")
}

/// A port of the loopback network that nobody listens on and that the system gives to nobody: below those which it chooses
/// for connections and for port 0 (`ip_local_port_range`, from 32768 on). Another test takes another one.
///
/// For a program that must be told its port. What can listen on port 0 does, and says which it has got.
pub fn unused_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = u16::try_from(std::process::id() % 1_000).expect("below 1,000") * 20;
    loop {
        let port = 10_000 + own + NEXT.fetch_add(1, Ordering::Relaxed) % 20;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Waits until `condition` holds, and fails with `what` where it does not within `limit`.
pub fn wait_until(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the file of a program of this machine.
pub fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}
