//! The first process of a container.
//!
//! What has lost its parent falls to the first process of its PID namespace, and stays in the table of processes until
//! that one waits for it (`pid_namespaces(7)`). A server waits for its own children alone. So where it would be the
//! first, it runs as the child of one that waits for everybody; no `--init` is needed.
#![allow(clippy::disallowed_methods, reason = "what it starts is no tool's program, but this one again")]

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use tokio::signal::unix::{SignalKind, signal};

/// The signals that are passed on.
const SIGNALS: [Signal; 6] =
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];

/// Runs this program again with the same arguments if this process is the first of its PID namespace. It passes signals
/// on to that child, waits for every process that ends, and returns the child's exit code once it has ended (128 and
/// the number of the signal that ended it). It returns `None` if this is not the first process.
///
/// With a terminal on standard input, SIGINT and SIGQUIT are the terminal's to send, to both; those that are sent to
/// the first process alone are not passed on.
///
/// Call it before threads and runtimes exist. All other processes of the namespace end with this one.
///
/// # Errors
/// If the program cannot be run again, as where `/proc` is missing.
pub fn run_below() -> io::Result<Option<ExitCode>> {
    if getpid() == Pid::INIT { start_and_wait().map(Some) } else { Ok(None) }
}

fn start_and_wait() -> io::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        // Before the child exists, so that no signal is lost: what comes from now on is kept.
        let mut child_ended = signal(SignalKind::child())?;
        let (signal_sender, mut signals) = tokio::sync::mpsc::unbounded_channel();
        // What a terminal sends must come once. One that the server may read itself sends it there, and here as well.
        let has_terminal = io::stdin().is_terminal();
        let from_terminal = [Signal::INT, Signal::QUIT];
        for kind in SIGNALS.into_iter().filter(|kind| !(has_terminal && from_terminal.contains(kind))) {
            let mut incoming = signal(SignalKind::from_raw(kind.as_raw()))?;
            let signal_sender = signal_sender.clone();
            tokio::spawn(async move {
                while incoming.recv().await.is_some() && signal_sender.send(kind).is_ok() {}
            });
        }
        let mut arguments = std::env::args_os();
        // By its path and not as /proc/self/exe, by which name it would then be listed.
        let mut program = Command::new(std::env::current_exe()?);
        if let Some(name) = arguments.next() {
            program.arg0(name);
        }
        if has_terminal {
            // Received and dropped, so that they do not end this process before the server.
            for kind in from_terminal {
                let mut incoming = signal(SignalKind::from_raw(kind.as_raw()))?;
                tokio::spawn(async move { while incoming.recv().await.is_some() {} });
            }
        } else {
            // In a group of its own, so that a signal to the whole group reaches the server once, through this
            // process.
            program.process_group(0);
        }
        let child = program.args(arguments).spawn()?;
        let server = Pid::from_child(&child);
        loop {
            tokio::select! {
                Some(signal) = signals.recv() => {
                    // Not waited for yet, so the number is still the server's.
                    let _ = kill_process(server, signal);
                }
                _ = child_ended.recv() => {
                    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
                        if pid == server {
                            return Ok(exit_code(status));
                        }
                    }
                }
            }
        }
    })
}

fn exit_code(status: WaitStatus) -> ExitCode {
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
