//! Programs to look into.

use integration_tests::{Project, require, wait_until};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long a program may take to get ready on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that runs until it is dropped.
pub(crate) struct InspectedApp {
    child: Child,
    lines: Receiver<String>,
}

impl InspectedApp {
    /// Starts it, in the folder of the project unless it says otherwise.
    pub(crate) fn start(project: &Project, mut command: Command) -> Self {
        if command.get_current_dir().is_none() {
            command.current_dir(project.path());
        }
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
        });
        Self { child, lines }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it prints.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("the program prints a line")
    }

    /// The port that it says it listens on.
    pub(crate) fn port(&self) -> u16 {
        let line = self.line();
        line.strip_prefix("listening ").unwrap_or_else(|| panic!("{line}")).parse().unwrap()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub(crate) fn ends_within(&mut self, limit: Duration) {
        wait_until(limit, "the program ends", || !self.is_running());
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for InspectedApp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file of `apps`.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("inspect/apps").join(name)
}

/// A program that tests need; without it they say so, and fail in CI.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::split_paths(&paths).map(|folder| folder.join(name)).find(|path| path.is_file());
    require(path, &format!("no {name} in PATH; `.ci/run tools` installs it"))
}

/// A JavaScript runtime of `.nodes`.
pub(crate) fn installed(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.nodes/node_modules").join(path);
    let path = path.is_file().then(|| path.canonicalize().unwrap());
    require(
        path,
        "no .nodes; `.ci/run tools` installs it: npm install --prefix .nodes node22@npm:node@22 node24@npm:node@24 deno@2",
    )
}

/// The versions of Node.js.
pub(crate) fn nodes() -> Vec<PathBuf> {
    let all = [program("node"), installed("node22/bin/node"), installed("node24/bin/node")];
    all.into_iter().flatten().collect()
}

/// The application with every kind of value, ready, with an inspector.
pub(crate) fn state(project: &Project, node: &Path, arguments: &[&str]) -> InspectedApp {
    let app = plain(project, node, &[&["--inspect=127.0.0.1:0"][..], &["state.cjs"], arguments].concat());
    app.port();
    app
}

/// Node.js with these arguments, in a project that has the applications.
pub(crate) fn plain(project: &Project, node: &Path, arguments: &[&str]) -> InspectedApp {
    for name in ["state.cjs", "module.mjs"] {
        project.write(name, &std::fs::read_to_string(source(name)).unwrap());
    }
    let mut command = Command::new(node);
    command.args(arguments).env_remove("NODE_OPTIONS");
    InspectedApp::start(project, command)
}
