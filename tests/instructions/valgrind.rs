//! Counting by callgrind: every instruction of a process, in all its threads, without those of its children.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The message of a machine without valgrind.
pub(crate) const MISSING: &str = "no valgrind; install it: apt install valgrind";

/// The message of a machine that has no namespaces for processes.
pub(crate) const NO_NAMESPACES: &str = "no PID namespace; allow user namespaces, or run it as root";

/// The options of `unshare` for a namespace of processes: a look at all processes, as commands need one, then costs the same
/// on every machine.
const IN_A_NAMESPACE: [&str; 6] =
    ["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"];

pub(crate) fn is_installed() -> bool {
    succeeds(Command::new("valgrind").arg("--version"))
}

pub(crate) fn has_namespaces() -> bool {
    succeeds(Command::new("unshare").args(IN_A_NAMESPACE).arg("true"))
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// A program that is counted while it runs.
#[derive(Debug)]
pub(crate) struct CountedProgram {
    folder: tempfile::TempDir,
}

impl CountedProgram {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// Returns the command that runs `program` under callgrind, with the same environment on every machine.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("unshare");
        // Below a shell: as the first process of its namespace, a server would serve in a child of its own.
        command.args(IN_A_NAMESPACE).args(["sh", "-c", "\"$@\"; exit $?", "sh"]);
        command.args(["valgrind", "--tool=callgrind"]).arg(option("--log-file=", &self.log()));
        command.arg(option("--callgrind-out-file=", &self.folder.path().join("profile")));
        command.arg(program).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.folder.path());
        command
    }

    /// Returns the number of instructions, once the program has ended.
    pub(crate) fn count(&self) -> u64 {
        let log = std::fs::read_to_string(self.log()).expect("valgrind writes a log");
        let collected = log.lines().find_map(|line| line.split_once("Collected : "));
        let (_, count) = collected.unwrap_or_else(|| panic!("no count: {log}"));
        count.trim().parse().unwrap_or_else(|_| panic!("no number: {count}"))
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

fn option(name: &str, path: &Path) -> std::ffi::OsString {
    [OsStr::new(name), path.as_os_str()].into_iter().collect()
}
