//! Applications to profile, and a server that does.

use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// An application that runs until the end of its test.
pub(crate) struct ProfiledApp {
    child: Child,
    /// Where it listens, if it does.
    pub(crate) port: u16,
}

impl ProfiledApp {
    /// Starts `command`, which says `ready PORT`.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next().expect("it says that it is ready").unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        let port = line.strip_prefix("ready ").and_then(|port| port.parse().ok());
        Self { child, port: port.unwrap_or_else(|| panic!("{line}")) }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn target(&self) -> String {
        format!("pid:{}", self.pid())
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Returns the process that traces it; 0 if none does.
    pub(crate) fn tracer(&self) -> u32 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).unwrap();
        line.trim().parse().unwrap()
    }

    /// Returns its answer to a GET.
    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        // In one piece, and read to its length: a server that closes while something is unread resets the connection.
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            if let Some(body) = complete_body(&String::from_utf8_lossy(&answer)) {
                return body;
            }
            match stream.read(&mut buffer).unwrap() {
                0 => break,
                read => answer.extend_from_slice(&buffer[..read]),
            }
        }
        String::from_utf8(answer).unwrap().split_once("\r\n\r\n").unwrap().1.to_owned()
    }
}

/// The body of an answer, once it has the length that its head tells.
fn complete_body(answer: &str) -> Option<String> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())?.ok()
    })?;
    (body.len() >= length).then(|| body.to_owned())
}

impl Drop for ProfiledApp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file of the applications beside these tests.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("trace/apps").join(name)
}

/// A server that keeps its profiles in a folder of the test.
pub(crate) struct TraceServer {
    pub(crate) project: Project,
    pub(crate) wire: Wire,
}

impl TraceServer {
    pub(crate) fn start() -> Self {
        let project = Project::empty();
        let wire = Wire::connect(command(&project), Era::Modern);
        Self { project, wire }
    }

    /// A profile, which must be there.
    pub(crate) fn profile(&mut self, arguments: Value) -> Value {
        let result = self.wire.call("capture_trace", arguments);
        assert_eq!(result["isError"], false, "{result}");
        told(&result)
    }

    /// A profile of the processor with as many samples: on a busy machine a program gets few in one capture.
    pub(crate) fn cpu_profile(&mut self, target: &str, least_samples: u64) -> Value {
        let mut duration_ms = 1500;
        loop {
            let profile = self.profile(json!({"duration_ms": duration_ms, "type": "cpu", "target": target}));
            if profile["samples"].as_u64().unwrap() >= least_samples || duration_ms > 6_000 {
                return profile;
            }
            duration_ms *= 2;
        }
    }

    /// Why there is none.
    pub(crate) fn refusal(&mut self, arguments: Value) -> Value {
        let result = self.wire.call("capture_trace", arguments);
        assert_eq!(result["isError"], true, "{result}");
        told(&result)
    }

    pub(crate) fn ask(&mut self, arguments: Value) -> i64 {
        self.wire.ask("tools/call", json!({"name": "capture_trace", "arguments": arguments}))
    }

    /// Cancels a capture, and waits until nothing of it is left: another one is not refused as busy.
    pub(crate) fn cancel(&mut self, id: i64) {
        self.wire.notify("notifications/cancelled", json!({"requestId": id}));
    }

    pub(crate) fn traces(&self) -> PathBuf {
        self.project.join("state/coretools/traces")
    }
}

/// The server, with a folder for state of its own and py-spy in its path.
pub(crate) fn command(project: &Project) -> Command {
    let mut command = project.server();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/bin");
    let path = format!("{}:{}", own.display(), std::env::var("PATH").unwrap());
    command.env("XDG_STATE_HOME", project.join("state")).env("PATH", path);
    command
}

/// Reads the text of a result, which is JSON.
pub(crate) fn told(result: &Value) -> Value {
    let text = result["content"][0]["text"].as_str().unwrap();
    serde_json::from_str(text).unwrap_or_else(|error| panic!("no JSON ({error}): {text}"))
}

/// The function with this name in a list of hot ones.
pub(crate) fn hot<'a>(list: &'a Value, function: &str) -> &'a Value {
    let found =
        list.as_array().unwrap().iter().find(|hot| hot["function"].as_str().unwrap().contains(function));
    found.unwrap_or_else(|| panic!("no {function} in {list}"))
}

/// Reads the file of a profile; it and the folder it is in are for their owner alone.
pub(crate) fn file(path: &Value) -> Vec<u8> {
    use std::os::unix::fs::PermissionsExt;
    let path = Path::new(path.as_str().unwrap());
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(path), mode(path.parent().unwrap())), (0o600, 0o700), "{}", path.display());
    std::fs::read(path).unwrap()
}

/// Returns the path of a program in the environment for Python.
pub(crate) fn python_program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/bin").join(name)
}

/// Returns true if a program can be started; if not, the test says so, and fails in CI.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/bin");
    let there = std::env::split_paths(&path).chain([own]).any(|folder| folder.join(program).is_file());
    integration_tests::require(there.then_some(()), &format!("no {program}")).is_some()
}
