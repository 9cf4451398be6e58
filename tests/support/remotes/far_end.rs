//! A far end for one test, and the server in front of it.

use crate::{Era, Project, Wire};
use std::any::Any;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A project that the tools work on: a text that differs from what git has, and two tests, of which one fails.
const FILES: [(&str, &str); 3] = [
    ("notes.txt", "first\nsecond\n"),
    ("pyproject.toml", ""),
    (
        "test_sums.py",
        "import unittest\n\n\nclass Sums(unittest.TestCase):\n    def test_right(self):\n        self.assertEqual(1 + 1, 2)\n\n\
         \x20   def test_wrong(self):\n        self.assertEqual(1 + 1, 3)\n",
    ),
];

/// A far end that can be connected to. Dropping it ends everything that was started for it.
pub struct FarEnd {
    /// The folder of the server in front: its configuration and its state.
    pub front: Project,
    /// The project of the tools, as this process sees it.
    pub project: Project,
    /// The name or `KIND:TARGET:ROOT`, and the options.
    arguments: Vec<String>,
    /// Variables of the server in front.
    variables: Vec<(String, OsString)>,
    /// Its name, as `uname -n` prints it there. Empty where it has that of this machine.
    pub host: String,
    /// Prints one line for each thing that the engine has, such as a container.
    list: Option<Command>,
    /// The words before a program that run it there without a server.
    bare: Vec<String>,
    /// The values that must live as long as the far end.
    _guards: Vec<Box<dyn Any>>,
}

impl FarEnd {
    /// Creates the project, and a far end that `remote` names: `KIND:TARGET`, where the kind takes one. Its root is `root`,
    /// or where that is None, the folder of the project.
    pub fn new(remote: &str, project: Project, root: Option<&str>) -> Self {
        let root = root.map_or_else(|| project.path().display().to_string(), str::to_owned);
        let arguments = vec!["--remote".to_owned(), format!("{remote}:{root}")];
        let (front, list, host) = (Project::empty(), None, String::new());
        let (variables, bare) = (Vec::new(), Vec::new());
        Self { front, project, arguments, variables, host, list, bare, _guards: Vec::new() }
    }

    /// Sets an option of the kind.
    #[must_use]
    pub fn option(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.arguments.extend(["--remote-option".to_owned(), format!("{name}={}", value.as_ref())]);
        self
    }

    /// Sets a variable of the server in front.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// Sets the name that `uname -n` prints there.
    #[must_use]
    pub fn host(mut self, name: &str) -> Self {
        name.clone_into(&mut self.host);
        self
    }

    /// Sets the command that prints one line for each thing that the engine has made for a lease.
    pub fn listed_by(mut self, list: Command) -> Self {
        self.list = Some(list);
        self
    }

    /// Sets the words before a program that run it there without a server.
    #[must_use]
    pub fn bare(mut self, words: &[&str]) -> Self {
        self.bare = words.iter().map(ToString::to_string).collect();
        self
    }

    /// The command that runs a program there without a server.
    pub fn bare_command(&self, program: &[&str]) -> Command {
        let mut command = Command::new(&self.bare[0]);
        command.args(&self.bare[1..]).args(program).envs(self.variables.iter().cloned());
        command
    }

    /// Keeps a value as long as the far end.
    #[must_use]
    pub fn keeping(mut self, guard: impl Any) -> Self {
        self._guards.push(Box::new(guard));
        self
    }

    /// Takes the remote from a configuration file of the server in front: `text` stands in the table `[remotes.far]`.
    pub fn configured(mut self, text: &str) -> Self {
        self.front.write("coretools.toml", &format!("[remotes.far]\n{text}"));
        let file = self.front.join("coretools.toml").display().to_string();
        self.arguments = ["--config", &file, "--remote", "far"].map(str::to_owned).to_vec();
        self
    }

    /// The server in front, with `arguments` behind those that name the remote.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.front.server();
        // The far end finds a server of the same build, as an installed one would be found.
        command.args(&self.arguments).args(arguments).env("PATH", path_with(Path::new("")));
        command.envs(self.variables.iter().cloned());
        command
    }

    /// The server in front, which copies its program into the folder `cache` there.
    pub fn copying(&self, cache: &str) -> Command {
        let text = self.front.read("coretools.toml");
        // The binary that is named is there already.
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("binary =")).collect();
        let name = format!("copying{}.toml", cache.replace('/', "-"));
        self.front.write(&name, &format!("{}\ncopy_binary = true\ncache = '{cache}'\n", lines.join("\n")));
        let mut command = self.front.server();
        command.arg("--config").arg(self.front.join(&name)).args(["--remote", "far"]);
        command.envs(self.variables.iter().cloned());
        command
    }

    /// The command that destroys what killed servers have left.
    pub fn reap(&self) -> Command {
        let mut command = self.front.server();
        if self.front.join("coretools.toml").exists() {
            command.arg("--config").arg(self.front.join("coretools.toml"));
        }
        command.args(["remotes", "reap"]).envs(self.variables.iter().cloned());
        command
    }

    /// A client of the server in front.
    pub fn connect(&self) -> Wire {
        Wire::connect(self.command(&[]), Era::Modern).patience(Duration::from_secs(60))
    }

    /// Returns what the engine has made for leases, one name for each thing.
    pub fn listed(&mut self) -> Vec<String> {
        let Some(list) = &mut self.list else { return Vec::new() };
        let variables = self.variables.iter().cloned();
        let output = list.envs(variables).output().expect("the engine can be asked");
        assert!(output.status.success(), "{list:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
    }

    /// Returns the files of leases, of which none may be left when a server in front has ended.
    pub fn leases(&self) -> Vec<String> {
        let folder = self.front.state().join("coretools/remotes");
        let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
        let names = files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned());
        // One that is being written names nothing that was created.
        names.filter(|name| name.ends_with(".json")).collect()
    }
}

/// Returns the project of the tools: in git, with one change since the commit.
pub fn tools_project() -> Project {
    fill(Project::empty())
}

/// Writes the project of the tools into a folder.
pub fn fill(project: Project) -> Project {
    for (path, content) in FILES {
        project.write(path, content);
    }
    open_to_all(project.path());
    project.git(&["init", "--quiet", "--initial-branch=main"]);
    project.git(&["add", "."]);
    project.git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "first"]);
    project.write("notes.txt", "first\nsecond\nthird\n");
    project
}

/// Lets other users look into a temporary folder.
pub fn open_to_all(folder: &Path) {
    run(Command::new("chmod").arg("755").arg(folder));
}

/// The variable PATH with a folder and that of the built server before the others.
pub fn path_with(folder: &Path) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let before = [folder, server_folder()].map(Path::to_owned);
    let folders =
        before.into_iter().filter(|folder| folder.is_absolute()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).expect("no folder has a colon")
}

/// The folder of the built server.
pub fn server_folder() -> &'static Path {
    crate::server().parent().expect("a file is in a folder")
}

/// Runs a command that must succeed, and returns what it prints.
pub fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {printed}{}", String::from_utf8_lossy(&output.stderr));
    printed
}

/// A daemon, which is asked to end when it is dropped, and killed if it does not.
#[derive(Debug)]
pub struct Daemon(Child);

impl Daemon {
    /// Starts `command`, which writes its messages to `log`.
    pub fn start(command: &mut Command, log: &Path) -> Self {
        let file = || std::fs::File::options().create(true).append(true).open(log).expect("a log");
        command.stdin(Stdio::null()).stdout(file()).stderr(file());
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Returns true if it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("it is a child").is_some()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let started = std::time::Instant::now();
        while started.elapsed() < Duration::from_secs(5) {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
