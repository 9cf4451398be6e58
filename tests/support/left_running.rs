//! The ways in which a command leaves something running that nothing of the command shows any more.

use crate::alive;
use serde_json::{Value, json};

/// A way out of a command that ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// A background job of a shell, with its output redirected.
    Job,
    /// A job that ignores the end of its terminal.
    Nohup,
    /// A session of its own.
    Session,
    /// A session of its own and an empty environment.
    SessionAndEnvironment,
    /// The same, and its parent has ended before the command does.
    DoubleFork,
    /// The steps of a program that calls itself a daemon: two forks, a session, no environment, no open files.
    Daemon,
    /// The server of tmux, which starts what it is asked for.
    Tmux,
}

impl Escape {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Job,
        Self::Nohup,
        Self::Session,
        Self::SessionAndEnvironment,
        Self::DoubleFork,
        Self::Daemon,
        Self::Tmux,
    ];

    /// Returns the arguments of `run_command` with which `sleep SECONDS` escapes. `None` if a program for it is missing.
    pub fn command(self, seconds: &str) -> Option<Value> {
        let shell = |script: String| json!({"command": ["sh", "-c", script]});
        let quiet = "< /dev/null > /dev/null 2>&1";
        Some(match self {
            Self::Job => shell(format!("sleep {seconds} {quiet} &")),
            Self::Nohup => shell(format!("nohup sleep {seconds} {quiet} &")),
            Self::Session => shell(format!("setsid sleep {seconds} {quiet} &")),
            Self::SessionAndEnvironment => shell(format!("env -i setsid sleep {seconds} {quiet} &")),
            // The command goes on for a moment, so that the orphan is one before the command ends.
            Self::DoubleFork => shell(format!("(env -i setsid sleep {seconds} {quiet} &); sleep 0.4")),
            Self::Daemon => {
                skipped_tests::require(crate::installed("python3"), "no python3; apt install python3")?;
                let script = format!(
                    "import os\n\
                     if os.fork(): os._exit(0)\n\
                     os.setsid()\n\
                     if os.fork(): os._exit(0)\n\
                     os.closerange(0, 256)\n\
                     os.execve('/bin/sleep', ['sleep', '{seconds}'], {{}})"
                );
                json!({"command": ["python3", "-c", script]})
            }
            Self::Tmux => {
                skipped_tests::require(crate::installed("tmux"), "no tmux; apt install tmux")?;
                let socket = format!("\"${{TMPDIR:-/tmp}}/t{seconds}\"");
                shell(format!("tmux -S {socket} -f /dev/null new-session -d 'exec sleep {seconds}'"))
            }
        })
    }
}

/// Waits until `sleep SECONDS` itself runs, without the shell that starts it.
pub fn wait_until_left(seconds: &str) {
    let sleeps = |pid: &u32| crate::command_line(*pid) == format!("sleep {seconds}");
    crate::wait_until(std::time::Duration::from_secs(20), "it is left running", || {
        alive(seconds).iter().any(&sleeps)
    });
}
