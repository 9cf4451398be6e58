//! Tools that work on another machine: the server in front, the channel, and the server there, with kinds that need nothing
//! but this machine, with the engines that the other kinds are for, and with far ends that lie, die and lose what they send.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "calls read better with a `json!` than with a reference to one"
)]

#[cfg(feature = "stress")]
mod agent_task;
mod callers;
mod calls;
mod channel;
mod chosen;
mod command_line;
mod crash;
mod engines;
mod grace;
mod hostile;
mod http;
mod lease_database;
mod leases;
mod loss;
mod notices;
mod policy;
mod random;
#[path = "../database/servers.rs"]
#[allow(dead_code, reason = "the other database, and what other tests ask")]
mod servers;
mod soak;

use integration_tests::remotes::{self as fixtures, far_end};
use integration_tests::{Era, Project, Wire, server};
use std::path::Path;
use std::process::Command;

/// A machine there: a folder that the server in front does not serve, and a folder in which that one is started.
struct Machines {
    /// The folder of the server in front.
    front: Project,
    /// The folder there.
    there: Project,
}

impl Machines {
    /// Two machines, with these files there.
    fn with<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self { front: Project::empty(), there: Project::with(files) }
    }

    /// The remote as a command line names it: this machine, by a shell.
    fn remote(&self) -> String {
        self.remote_by(&format!("exec {} remote-server", server().display()))
    }

    /// The same by another line of a shell.
    fn remote_by(&self, line: &str) -> String {
        format!("sh:{line}:{}", self.there.path().display())
    }

    /// The server in front.
    fn command(&self) -> Command {
        self.command_by(&self.remote())
    }

    /// The server in front of another remote.
    fn command_by(&self, remote: &str) -> Command {
        let mut command = self.front.server();
        command.args(["--remote", remote]);
        command
    }

    /// A client of the server in front.
    fn connect(&self) -> Wire {
        Wire::connect(self.command(), Era::Modern)
    }

    /// Writes a configuration for the server in front, and returns a command that is given it.
    fn configured(&self, remote: &str, text: &str) -> Command {
        self.front.write("remotes.toml", text);
        let mut command = self.front.server();
        command.arg("--config").arg(self.front.join("remotes.toml")).args(["--remote", remote]);
        command
    }
}

/// Runs a command to its end: exit code, standard output, standard error.
fn output(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// Writes a program there that anybody may run.
fn script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
