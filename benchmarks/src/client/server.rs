//! A server as a process, from its start to the last of what it leaves.

use super::http::{HttpClient, ServerAddress};
use super::stdio::StdioClient;
use super::{ClientAnswer, MeasureError, ServerClient};
use crate::peers::{PeerServer, Placeholders, fill_text};
use crate::processes;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio as Streams};
use std::time::{Duration, Instant};

/// How long a server may take to be ready.
const START: Duration = Duration::from_secs(30);

/// How long it may take to end when it is asked to.
const END: Duration = Duration::from_secs(3);

/// A running server and the connection to it. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct RunningServer {
    pub(crate) client: ServerClient,
    /// None where it runs without us.
    child: Option<Child>,
    /// From the start of the process to the answered `tools/list`.
    pub(crate) ready: Duration,
    /// The answer to `tools/list`.
    pub(crate) tools: ClientAnswer,
    /// The version that it reports.
    pub(crate) version: String,
    home: tempfile::TempDir,
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ServerExit {
    /// After the end of its input, or SIGTERM where it listens on a port. None where it had to be killed.
    pub(crate) after: Option<Duration>,
    /// Processes that it left and that had to be killed.
    pub(crate) left: usize,
}

impl RunningServer {
    /// Starts `peer` over the folder `dir`, and asks it what tools it has.
    pub(crate) fn start(peer: &PeerServer, dir: &Path) -> Result<Self, MeasureError> {
        let home = tempfile::tempdir().map_err(start)?;
        let values = values(peer, dir, home.path())?;
        for (path, content) in &peer.files {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap_or(home.path())).map_err(start)?;
            fs::write(path, fill_text(content, &values)).map_err(start)?;
        }
        let token = match peer.token_command.is_empty() {
            true => None,
            false => Some(token(&mut program(&peer.token_command, peer, &values, dir, home.path()))?),
        };
        let place = peer.url.as_ref().map(|url| ServerAddress::new(&fill_text(url, &values), token));
        let began = Instant::now();
        let deadline = began + START;
        let mut child = None;
        if !peer.command.is_empty() {
            let log = fs::File::create(home.path().join("stderr")).map_err(start)?;
            let mut command = program(&peer.command, peer, &values, dir, home.path());
            match place {
                Some(_) => command.stdin(Streams::null()).stdout(Streams::null()),
                None => command.stdin(Streams::piped()).stdout(Streams::piped()),
            };
            child = Some(command.stderr(log).spawn().map_err(|error| {
                MeasureError::Start(format!("{}: {error}", command.get_program().to_string_lossy()))
            })?);
        }
        let client = match (place, &mut child) {
            (Some(place), child) => {
                let http = HttpClient::new(place);
                while !http.is_up() {
                    let ended = child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(Some(_))));
                    if ended || Instant::now() > deadline {
                        return Err(not_ready(
                            &mut None,
                            child.take(),
                            home.path(),
                            &MeasureError::NoAnswer(START),
                        ));
                    }
                    std::thread::sleep(Duration::from_micros(500));
                }
                ServerClient::Http(http)
            }
            (None, Some(child)) => match (child.stdin.take(), child.stdout.take()) {
                (Some(input), Some(output)) => ServerClient::Stdio(StdioClient::new(input, output)),
                _ => return Err(MeasureError::Start("no pipes".to_owned())),
            },
            (None, None) => return Err(MeasureError::Start("neither command nor url".to_owned())),
        };
        let mut client = Some(client);
        let listed = client.as_mut().map_or(Err(MeasureError::Gone(String::new())), |client| {
            let version = client.greet(deadline)?;
            let tools = client.request("tools/list", &json!({}), deadline)?;
            tools.check()?;
            Ok((tools, version))
        });
        match (listed, client) {
            (Ok((tools, version)), Some(client)) => {
                Ok(Self { client, child, ready: tools.arrived - began, tools, version, home })
            }
            (Err(problem), mut client) => Err(not_ready(&mut client, child, home.path(), &problem)),
            (Ok(_), None) => Err(MeasureError::Start("no connection".to_owned())),
        }
    }

    /// Calls a tool, which must not be answered with an error.
    pub(crate) fn call(&mut self, call: &Value, patience: Duration) -> Result<ClientAnswer, MeasureError> {
        let answer = self.client.request("tools/call", call, Instant::now() + patience)?;
        answer.check()?;
        Ok(answer)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Returns what it wrote to its standard error.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("stderr")).unwrap_or_default()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(child) = &self.child {
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }

    /// Waits for its end, and says how long that took.
    pub(crate) fn wait(&mut self, limit: Duration) -> Option<Duration> {
        let began = Instant::now();
        let child = self.child.as_mut()?;
        loop {
            if matches!(child.try_wait(), Ok(Some(_))) {
                return Some(began.elapsed());
            }
            if began.elapsed() > limit {
                return None;
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// Ends it as its client would, counts what it leaves, and ends that too.
    pub(crate) fn stop(mut self) -> ServerExit {
        let over_http = matches!(self.client, ServerClient::Http(_));
        self.client.close();
        if over_http {
            self.signal(Signal::TERM);
        }
        let after = self.wait(END);
        self.end(after)
    }

    /// Ends it and counts what is left of it, with `after` as it was measured by others.
    pub(crate) fn end(mut self, after: Option<Duration>) -> ServerExit {
        let Some(mut child) = self.child.take() else { return ServerExit { after: None, left: 0 } };
        // What ends beside the server may take its time to be gone.
        if after.is_some() {
            let began = Instant::now();
            while !processes::descendants(std::process::id()).is_empty()
                && began.elapsed() < Duration::from_millis(500)
            {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let mut left = processes::descendants(std::process::id());
        let _ = child.kill();
        let _ = child.wait();
        left.retain(|pid| *pid != child.id());
        // Whoever was below the server itself is ours only now.
        processes::end(&left);
        ServerExit { after, left: left.len() }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
            processes::end(&processes::descendants(std::process::id()));
        }
    }
}

/// A program in the environment of a server, with nothing of whoever runs this.
fn program(words: &[String], peer: &PeerServer, values: &Placeholders, dir: &Path, home: &Path) -> Command {
    let mut words = words.iter().map(|word| fill_text(word, values));
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).current_dir(dir).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", home).env("TMPDIR", home).env("LANG", "C.UTF-8");
    for (name, value) in &peer.env {
        command.env(name, fill_text(value, values));
    }
    command
}

fn values(peer: &PeerServer, dir: &Path, home: &Path) -> Result<Placeholders, MeasureError> {
    let all = peer.command.iter().chain(&peer.token_command).chain(&peer.url).chain(peer.env.values());
    let words: Vec<&String> = all.chain(peer.files.values()).collect();
    let asks = |what: &str| words.iter().any(|word| word.contains(what));
    let mut values = Placeholders::from([
        ("dir", json!(dir)),
        ("home", json!(home)),
        ("installed", json!(crate::install::folder(&peer.name))),
    ]);
    // Found, and built, only for whom they are named.
    if asks("{mcp-stdio}") {
        values.insert("mcp-stdio", json!(integration_tests::server()));
    }
    if asks("{mcp-http}") {
        values.insert("mcp-http", json!(integration_tests::http_server()));
    }
    if asks("{port}") {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        values.insert("port", json!(free.map_err(start)?.port()));
    }
    Ok(values)
}

fn token(command: &mut Command) -> Result<String, MeasureError> {
    let output = command.output().map_err(start)?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(MeasureError::Start(super::short(&String::from_utf8_lossy(&output.stderr)))),
    }
}

fn not_ready(
    client: &mut Option<ServerClient>,
    child: Option<Child>,
    home: &Path,
    problem: &MeasureError,
) -> MeasureError {
    *client = None;
    if let Some(mut child) = child {
        let _ = child.kill();
        let _ = child.wait();
        processes::end(&processes::descendants(std::process::id()));
    }
    let log = fs::read_to_string(home.join("stderr")).unwrap_or_default();
    let last = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    match last {
        "" => MeasureError::Start(problem.to_string()),
        last => MeasureError::Start(super::short(&format!("{problem}; it says: {last}"))),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn start(error: std::io::Error) -> MeasureError {
    MeasureError::Start(error.to_string())
}
