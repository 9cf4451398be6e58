//! The kinds of files that may be connected to standard input and output, and what may come out.

use crate::connect;
use integration_tests::{Era, Project};
use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn request(id: u32, method: &str, mut params: Value) -> String {
    Era::Modern.fill(&mut params);
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

#[test]
fn socket_pairs_work_as_node_gives_them() {
    let project = Project::with([("a.txt", "0123456789\n".repeat(3_000).as_str())]);
    let (ours_in, theirs_in) = UnixStream::pair().unwrap();
    let (ours_out, theirs_out) = UnixStream::pair().unwrap();
    let mut server = project
        .server()
        .stdin(Stdio::from(OwnedFd::from(theirs_in)))
        .stdout(Stdio::from(OwnedFd::from(theirs_out)))
        .spawn()
        .unwrap();
    let mut input = ours_in;
    let mut output = BufReader::new(ours_out).lines();
    for id in 0..100 {
        writeln!(
            input,
            "{}",
            request(id, "tools/call", json!({"name": "read_file", "arguments": {"path": "a.txt"}}))
        )
        .unwrap();
    }
    for _ in 0..100 {
        let answer: Value = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["result"]["isError"], false);
    }
    let started = Instant::now();
    drop(input);
    assert!(server.wait().unwrap().success());
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn one_socket_may_be_both() {
    let project = Project::empty();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let twin = theirs.try_clone().unwrap();
    let mut server = project
        .server()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::from(OwnedFd::from(twin)))
        .spawn()
        .unwrap();
    let mut input = ours.try_clone().unwrap();
    writeln!(input, "{}", request(1, "tools/list", json!({}))).unwrap();
    let mut line = String::new();
    BufReader::new(&ours).read_line(&mut line).unwrap();
    assert!(line.contains("\"tools\""), "{line}");
    ours.shutdown(std::net::Shutdown::Both).unwrap();
    assert!(server.wait().unwrap().success());
}

#[test]
fn files_work() {
    let project = Project::with([("a.txt", "hello\n")]);
    let read = request(1, "tools/call", json!({"name": "read_file", "arguments": {"path": "a.txt"}}));
    let run =
        request(2, "tools/call", json!({"name": "run_command", "arguments": {"command": ["echo", "hi"]}}));
    project.write("requests", &format!("{read}\n{run}\n"));
    let status = project
        .server()
        .stdin(File::open(project.join("requests")).unwrap())
        .stdout(File::create(project.join("answers")).unwrap())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(project.read("answers").lines().count(), 2);
    assert!(project.read("answers").contains("hello\\n"));
}

#[test]
fn nothing_to_read_and_nowhere_to_write_is_no_fault() {
    let project = Project::empty();
    let status = project.server().stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_full_disk_behind_the_output_ends_it() {
    let project = Project::empty();
    project.write("requests", &format!("{}\n", request(1, "tools/list", json!({}))));
    let started = Instant::now();
    let full = File::options().write(true).open("/dev/full").unwrap();
    project.server().stdin(File::open(project.join("requests")).unwrap()).stdout(full).status().unwrap();
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn the_pipes_of_others_stay_blocking() {
    let project = Project::empty();
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let (answers, output) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    // The same open file description as the server's, as a shell shares it among the programs of a pipeline.
    let (shared_in, shared_out) = (reader.try_clone().unwrap(), output.try_clone().unwrap());
    let mut server = project.server().stdin(Stdio::from(reader)).stdout(Stdio::from(output)).spawn().unwrap();
    let mut input = File::from(writer);
    writeln!(input, "{}", request(1, "tools/list", json!({}))).unwrap();
    let mut line = String::new();
    BufReader::new(File::from(answers)).read_line(&mut line).unwrap();
    for descriptor in [&shared_in, &shared_out] {
        assert!(!rustix::fs::fcntl_getfl(descriptor).unwrap().contains(OFlags::NONBLOCK));
    }
    drop(input);
    drop(shared_in);
    assert!(server.wait().unwrap().success());
}

#[test]
fn nothing_but_protocol_is_on_standard_output_whatever_a_command_prints_and_the_log_says() {
    let project = Project::empty();
    let script =
        "echo noise; echo noise >&2; echo noise > /dev/tty; printf 'no line end'; cat < /dev/tty; exit 0";
    let calls = [
        request(
            1,
            "tools/call",
            json!({"name": "run_command", "arguments": {"command": ["sh", "-c", script]}}),
        ),
        request(
            2,
            "tools/call",
            json!({"name": "start_command", "arguments": {"command": ["sh", "-c", script]}}),
        ),
        request(3, "tools/call", json!({"name": "no_such"})),
        "nonsense".to_owned(),
    ];
    let mut command = project.server();
    command.args(["--log", "trace"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = command.spawn().unwrap();
    server.stdin.take().unwrap().write_all(calls.join("\n").as_bytes()).unwrap();
    let output = server.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 4, "{text}");
    for line in text.lines() {
        let message: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0");
    }
    assert!(!output.stderr.is_empty(), "the log is somewhere");
}

#[test]
fn a_command_gets_none_of_the_servers_descriptors() {
    let (_project, mut wire) = connect(Era::Modern);
    let result = wire.call("run_command", json!({"command": ["ls", "/proc/self/fd"]}));
    // 3 is the folder that `ls` itself has opened.
    assert_eq!(result["structuredContent"]["stdout"], "0\n1\n2\n3\n", "{result}");
}

#[test]
fn it_works_with_standard_error_closed() {
    let project = Project::empty();
    let line = request(1, "tools/call", json!({"name": "no_such"}));
    let script =
        format!("printf '%s\\n' '{line}' | {} --log trace 2>&-", integration_tests::server().display());
    let output =
        std::process::Command::new("sh").args(["-c", &script]).current_dir(project.path()).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["id"], 1, "{output:?}");
}
