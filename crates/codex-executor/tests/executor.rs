//! The protocol, spoken to an executor that allows everything in one folder but what the policy of the test refuses.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![allow(clippy::disallowed_methods, reason = "a test looks at the files itself")]
#![cfg(unix)]

use codex_executor::{
    CodexCommand, ExecutorOptions, ExecutorPolicy, ExecutorRefusal, FileRequest, serve, uri_of_path,
};
use process_runner::{Command, Limits, Runner};
use redaction::Redactor;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, split};
use workspace::{ConfinedPath, Workspace};

/// The time after which a test has failed.
const LIMIT: Duration = Duration::from_secs(60);

struct TestPolicy {
    workspace: Workspace,
    /// The ends that were recorded.
    ended: Arc<Mutex<Vec<bool>>>,
}

impl ExecutorPolicy for TestPolicy {
    type Permit = ();

    fn command(&self, request: &CodexCommand<'_>) -> Result<(Command, ()), ExecutorRefusal> {
        if request.words[0] == "forbidden" {
            return Err(ExecutorRefusal::new("this program is forbidden"));
        }
        let command = Command::new(&request.words[0], request.folder).args(&request.words[1..]);
        Ok((command.limits(Limits::default().timeout(LIMIT)), ()))
    }

    fn file(&self, request: &FileRequest<'_>) -> Result<(ConfinedPath, ()), ExecutorRefusal> {
        let path =
            self.workspace.locate(request.path).map_err(|error| ExecutorRefusal::new(error.to_string()))?;
        Ok((path, ()))
    }

    fn ended(&self, (): (), succeeded: bool) -> Vec<String> {
        self.ended.lock().unwrap().push(succeeded);
        Vec::new()
    }
}

struct Client {
    input: WriteHalf<DuplexStream>,
    output: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    /// The messages that came while an answer was waited for.
    notifications: Vec<Value>,
    last_id: u64,
    served: tokio::task::JoinHandle<Result<(), codex_executor::Error>>,
    ended: Arc<Mutex<Vec<bool>>>,
    folder: tempfile::TempDir,
}

impl Client {
    async fn start() -> Self {
        let mut client = Self::uninitialized();
        let hello = client.ask("initialize", json!({"clientName": "test"})).await;
        let info = &hello["result"]["environmentInfo"];
        assert!(info["cwd"].as_str().unwrap().starts_with("file:///"), "{hello}");
        // A capability that is named is used.
        assert_eq!(info.get("capabilities"), None, "{hello}");
        client.send(&json!({"method": "initialized"})).await;
        client
    }

    fn uninitialized() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (near, far) = tokio::io::duplex(1 << 16);
        let (reader, writer) = split(far);
        let ended = Arc::default();
        let policy =
            TestPolicy { workspace: Workspace::new([folder.path()]).unwrap(), ended: Arc::clone(&ended) };
        let redactor = Redactor::new(Default::default()).unwrap();
        let options = ExecutorOptions::new(Runner::new(), redactor, folder.path().to_owned());
        let served =
            tokio::spawn(serve(BufReader::new(reader), writer, policy, options, std::future::pending()));
        let (output, input) = split(near);
        let output = BufReader::new(output).lines();
        Self { input, output, notifications: Vec::new(), last_id: 0, served, ended, folder }
    }

    fn uri(&self, path: &str) -> String {
        uri_of_path(&self.folder.path().canonicalize().unwrap().join(path))
    }

    async fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = tokio::time::timeout(LIMIT, self.output.next_line()).await.expect("an answer in time");
        serde_json::from_str(&line.unwrap().expect("the executor is there")).unwrap()
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"id": id, "method": method, "params": params})).await;
        loop {
            let message = self.receive().await;
            if message["id"] == id {
                return message;
            }
            self.notifications.push(message);
        }
    }

    async fn start_process(&mut self, id: &str, words: &[&str], tty: bool, pipe_stdin: bool) -> Value {
        let cwd = self.uri("");
        let params = json!({"processId": id, "argv": words, "cwd": cwd, "env": {"FROM_CODEX": "yes"}, "tty": tty,
            "pipeStdin": pipe_stdin, "arg0": null, "sandbox": null, "enforceManagedNetwork": false});
        self.ask("process/start", params).await
    }

    /// Returns the output of a process to its end, and its exit code. The numbers of its events have no gap.
    async fn read_to_end(&mut self, id: &str) -> (String, i64) {
        let (mut text, mut code, mut seq) = (String::new(), None, 0);
        let mut waiting: Vec<Value> = std::mem::take(&mut self.notifications);
        waiting.reverse();
        loop {
            let message = match waiting.pop() {
                Some(message) => message,
                None => self.receive().await,
            };
            let params = &message["params"];
            if params["processId"] != id {
                self.notifications.push(message);
                continue;
            }
            seq += 1;
            assert_eq!(params["seq"], seq, "{message}");
            match message["method"].as_str().unwrap() {
                "process/output" => text.push_str(&decoded(&params["chunk"])),
                "process/exited" => code = params["exitCode"].as_i64(),
                "process/closed" => {
                    waiting.reverse();
                    self.notifications.extend(waiting);
                    return (text, code.expect("the end before"));
                }
                other => panic!("{other}"),
            }
        }
    }

    /// Waits for a text in the output of a process.
    async fn wait_for_output(&mut self, id: &str, expected: &str) {
        let mut after = 0;
        let mut text = String::new();
        while !text.contains(expected) {
            let read =
                self.ask("process/read", json!({"processId": id, "afterSeq": after, "waitMs": 5000})).await;
            for chunk in read["result"]["chunks"].as_array().unwrap() {
                text.push_str(&decoded(&chunk["chunk"]));
            }
            assert_eq!(read["result"]["closed"], false, "{text} {read}");
            after = read["result"]["nextSeq"].as_u64().unwrap() - 1;
        }
    }

    async fn end(self) -> Vec<bool> {
        drop(self.input);
        drop(self.output);
        tokio::time::timeout(LIMIT, self.served).await.expect("the end in time").unwrap().unwrap();
        self.ended.lock().unwrap().clone()
    }
}

fn encoded(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn decoded(chunk: &Value) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(chunk.as_str().unwrap()).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[tokio::test]
async fn a_process_runs_with_both_streams_and_its_exit_code() {
    let mut client = Client::start().await;
    let line = "printf out; printf err >&2; printf $FROM_CODEX; exit 3";
    let started = client.start_process("p", &["sh", "-c", line], false, false).await;
    assert_eq!(started["result"]["processId"], "p", "{started}");
    let (text, code) = client.read_to_end("p").await;
    assert!(text.contains("outyes") && text.contains("err"), "{text}");
    assert_eq!(code, 3);
    let read = client.ask("process/read", json!({"processId": "p", "afterSeq": null, "waitMs": 1000})).await;
    assert_eq!(
        (&read["result"]["exited"], &read["result"]["closed"]),
        (&json!(true), &json!(true)),
        "{read}"
    );
    let again = client.start_process("p", &["true"], false, false).await;
    assert!(message(&again).contains("already"), "{again}");
    assert_eq!(client.end().await, [false]);
}

#[tokio::test]
async fn a_terminal_and_a_pipe_take_input_and_others_do_not() {
    let mut client = Client::start().await;
    client.start_process("terminal", &["sh", "-c", "tty -s && read x && echo got:$x"], true, false).await;
    let write = json!({"processId": "terminal", "chunk": encoded("typed\n"), "writeId": "1"});
    assert_eq!(client.ask("process/write", write).await["result"]["status"], "accepted");
    let (text, code) = client.read_to_end("terminal").await;
    assert!(text.contains("got:typed"), "{text}");
    assert_eq!(code, 0);
    client.start_process("pipe", &["head", "-c", "5"], false, true).await;
    client.ask("process/write", json!({"processId": "pipe", "chunk": encoded("12345")})).await;
    assert_eq!(client.read_to_end("pipe").await, ("12345".to_owned(), 0));
    client.start_process("closed", &["cat"], false, false).await;
    let refused = client.ask("process/write", json!({"processId": "closed", "chunk": encoded("x")})).await;
    assert_eq!(refused["result"]["status"], "stdinClosed");
    let unknown = client.ask("process/write", json!({"processId": "none", "chunk": encoded("x")})).await;
    assert_eq!(unknown["result"]["status"], "unknownProcess");
    client.end().await;
}

#[tokio::test]
async fn a_process_is_interrupted_and_ended() {
    let mut client = Client::start().await;
    let line = "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.1; done";
    client.start_process("one", &["sh", "-c", line], false, false).await;
    client.wait_for_output("one", "ready").await;
    client.ask("process/signal", json!({"processId": "one", "signal": "interrupt"})).await;
    let (text, code) = client.read_to_end("one").await;
    assert!(text.contains("interrupted"), "{text}");
    assert_eq!(code, 5);
    client.start_process("two", &["sleep", "1000"], false, false).await;
    let ended = client.ask("process/terminate", json!({"processId": "two"})).await;
    assert_eq!(ended["result"]["running"], true);
    assert_eq!(client.read_to_end("two").await.1, 143);
    let ended = client.ask("process/terminate", json!({"processId": "two"})).await;
    assert_eq!(ended["result"]["running"], false);
    client.end().await;
}

#[tokio::test]
async fn what_runs_ends_with_the_connection() {
    let mut client = Client::start().await;
    let line = "sleep 1000 & echo pid:$!.; wait";
    client.start_process("p", &["sh", "-c", line], false, false).await;
    client.wait_for_output("p", ".").await;
    let read = client.ask("process/read", json!({"processId": "p", "afterSeq": 0})).await;
    let text: String =
        read["result"]["chunks"].as_array().unwrap().iter().map(|chunk| decoded(&chunk["chunk"])).collect();
    let pid = text.trim().trim_start_matches("pid:").trim_end_matches('.').to_owned();
    assert!(Path::new(&format!("/proc/{pid}")).exists() || !cfg!(target_os = "linux"), "{text}");
    assert_eq!(client.end().await, [false], "its end is recorded");
    // A zombie has ended; only its parent is slow.
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
}

#[tokio::test]
async fn secrets_in_output_are_masked() {
    let mut client = Client::start().await;
    let (first, second) = ("ghp_a1B2c3D4e5F6g7", "H8i9J0k1L2m3N4o5P6q7R8");
    let line = format!("printf {first}; printf {second}; echo; echo plain");
    client.start_process("p", &["sh", "-c", &line], false, false).await;
    let (text, _) = client.read_to_end("p").await;
    assert!(!text.contains(first) && text.contains("redacted") && text.contains("plain"), "{text}");
    client.end().await;
}

#[tokio::test]
async fn what_may_not_be_or_is_not_known_is_refused_with_the_reason() {
    let mut client = Client::uninitialized();
    let early = client.ask("environment/info", json!({})).await;
    assert!(message(&early).contains("initialize"), "{early}");
    client.ask("initialize", json!({"clientName": "test"})).await;
    let refused = client.start_process("p", &["forbidden"], false, false).await;
    assert_eq!(message(&refused), "this program is forbidden");
    for (method, code, part) in [
        ("process/unknown", -32601, "no method"),
        ("http/request", -32601, "makes no HTTP requests"),
        ("environmentConfig/read", -32601, "not offered"),
        ("process/start", -32602, "do not fit"),
        ("fs/readFile", -32602, "do not fit"),
    ] {
        let answer = client.ask(method, json!({})).await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(message(&answer).contains(part), "{answer}");
    }
    // A member that could be a restriction.
    let cwd = client.uri("");
    let mut params = json!({"processId": "q", "argv": ["true"], "cwd": cwd, "env": {}, "tty": false});
    for (member, value) in [
        ("enforceManagedNetwork", json!(true)),
        ("arg0", json!("codex-linux-sandbox")),
        ("somethingLater", json!({"deny": 1})),
        ("sandbox", json!({"permissions": {"type": "later"}})),
    ] {
        let mut with = params.clone();
        with[member] = value;
        let answer = client.ask("process/start", with).await;
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
    }
    params["argv"] = json!([]);
    assert!(message(&client.ask("process/start", params).await).contains("no program"));
    client.send(&json!({"id": 70})).await;
    assert!(message(&client.receive().await).contains("no method"));
    client.input.write_all(b"{no json\n\n").await.unwrap();
    assert_eq!(client.receive().await["error"]["code"], -32700);
    client.end().await;
}

#[tokio::test]
async fn files_are_written_read_listed_and_removed() {
    let mut client = Client::start().await;
    let file = client.uri("sub/a b.txt");
    let write = json!({"path": file, "dataBase64": encoded("one\ntwo\n"), "sandbox": null});
    // Codex creates the folder when it reads this code.
    assert_eq!(client.ask("fs/writeFile", write.clone()).await["error"]["code"], -32004);
    let folder = json!({"path": client.uri("sub"), "recursive": true, "sandbox": null});
    assert_eq!(client.ask("fs/createDirectory", folder.clone()).await["result"], json!({}));
    assert_eq!(client.ask("fs/writeFile", write).await["result"], json!({}));
    let read = client.ask("fs/readFile", json!({"path": file})).await;
    assert_eq!(decoded(&read["result"]["dataBase64"]), "one\ntwo\n");
    std::os::unix::fs::symlink("sub", client.folder.path().join("link")).unwrap();
    let link = json!({"path": client.uri("link")});
    let described = client.ask("fs/getMetadata", link.clone()).await;
    assert_eq!(described["result"]["isDirectory"], true, "{described}");
    assert_eq!(described["result"]["isSymlink"], true, "{described}");
    assert_eq!(client.ask("fs/canonicalize", link).await["result"]["path"], client.uri("sub"));
    let paths = json!({"paths": [file, client.uri("none")]});
    let batch = client.ask("fs/getMetadataBatch", paths).await;
    assert_eq!(batch["result"]["results"][0]["metadata"]["size"], 8, "{batch}");
    assert_eq!(batch["result"]["results"][1]["error"]["code"], -32004, "{batch}");
    let root = json!({"path": client.uri("")});
    let listed = client.ask("fs/readDirectory", root.clone()).await;
    let names: Vec<&str> = listed["result"]["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["fileName"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["link", "sub"]);
    let mut walk = root;
    walk["options"] =
        json!({"maxDepth": 3, "maxDirectories": 10, "maxEntries": 10, "followDirectorySymlinks": false});
    let walked = client.ask("fs/walk", walk).await;
    assert_eq!(walked["result"]["entries"].as_array().unwrap().len(), 3, "{walked}");
    assert_eq!(walked["result"]["truncated"], false, "{walked}");
    let copy = json!({"sourcePath": file, "destinationPath": client.uri("copy"), "recursive": false});
    client.ask("fs/copy", copy).await;
    assert_eq!(std::fs::read_to_string(client.folder.path().join("copy")).unwrap(), "one\ntwo\n");
    client.ask("fs/open", json!({"handleId": "h", "path": file})).await;
    let block = client.ask("fs/readBlock", json!({"handleId": "h", "offset": 4, "len": 100})).await;
    assert_eq!(
        (decoded(&block["result"]["chunk"]).as_str(), &block["result"]["eof"]),
        ("two\n", &json!(true))
    );
    client.ask("fs/close", json!({"handleId": "h"})).await;
    let closed = client.ask("fs/readBlock", json!({"handleId": "h", "offset": 0, "len": 1})).await;
    assert!(message(&closed).contains("no open file"), "{closed}");
    let kept =
        client.ask("fs/remove", json!({"path": client.uri("sub"), "recursive": false, "force": false})).await;
    assert!(message(&kept).contains("not empty"), "{kept}");
    assert_eq!(client.ask("fs/remove", json!({"path": client.uri("sub")})).await["result"], json!({}));
    assert!(!client.folder.path().join("sub").exists());
    let outside = client.ask("fs/readFile", json!({"path": "file:///etc/hostname"})).await;
    assert_eq!(outside["error"]["code"], -32600, "{outside}");
    client.end().await;
}

#[tokio::test]
async fn a_sandbox_of_codex_keeps_files_from_being_changed() {
    let mut client = Client::start().await;
    let sandbox = json!({
        "permissions": {
            "type": "managed",
            "file_system": {"type": "restricted", "entries": [
                {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
                {"path": {"type": "special", "value": {"kind": "project_roots", "subpath": "open"}}, "access": "write"},
            ]},
            "network": "restricted",
        },
        "workspaceRoots": [client.uri("")],
    });
    std::fs::create_dir(client.folder.path().join("open")).unwrap();
    let write = |path: String| json!({"path": path, "dataBase64": encoded("x"), "sandbox": sandbox});
    let refused = client.ask("fs/writeFile", write(client.uri("a.txt"))).await;
    assert!(message(&refused).contains("the sandbox that Codex runs with"), "{refused}");
    assert!(!client.folder.path().join("a.txt").exists());
    // A link does not lead around it.
    std::os::unix::fs::symlink("../a.txt", client.folder.path().join("open/link")).unwrap();
    let through = client.ask("fs/writeFile", write(client.uri("open/link"))).await;
    assert!(message(&through).contains("the sandbox"), "{through}");
    assert_eq!(client.ask("fs/writeFile", write(client.uri("open/b.txt"))).await["result"], json!({}));
    assert_eq!(client.end().await, [false, false, true]);
}
