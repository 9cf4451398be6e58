//! A defect is found and mended through the tools alone: the walk that `docs/debugging.md` shows.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use integration_tests::{Era, Project, Wire, require, wait_until};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The service, as its customers see it.
struct ShopService {
    child: Child,
    port: u16,
}

impl ShopService {
    /// Starts it as `npm start` does.
    fn open(project: &Project, node: &Path) -> Self {
        let mut child = Command::new(node)
            .args(["--inspect=127.0.0.1:0", "server.js"])
            .current_dir(project.path())
            .env_remove("NODE_OPTIONS")
            .env_remove("PORT")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim_end().strip_prefix("listening ").unwrap_or_else(|| panic!("{line:?}"));
        Self { port: port.parse().unwrap(), child }
    }

    fn post(&self, path: &str) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 20"), "{path}: {answer}");
    }
}

impl Drop for ShopService {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The service's files, in a folder of the test.
fn sources() -> Project {
    let project = Project::empty();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("debugging/shop");
    for file in folder.read_dir().unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), project.path().join(file.file_name())).unwrap();
    }
    project
}

/// Node.js with `node:sqlite`.
fn node() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.nodes/node_modules/node24/bin/node");
    let path = path.is_file().then(|| path.canonicalize().unwrap());
    require(
        path,
        "no Node.js 24; `.ci/run tools` installs it: npm install --prefix .nodes node24@npm:node@24",
    )
}

/// A server that finds this Node.js for the tests of the project.
fn serve(project: &Project, node: &Path) -> Wire {
    let mut command = project.server();
    let path = format!("{}:{}", node.parent().unwrap().display(), std::env::var("PATH").unwrap());
    command.env("PATH", path);
    Wire::connect(command, Era::Modern)
}

#[test]
fn a_defect_is_found_and_mended_through_the_tools_alone() {
    let Some(node) = node() else { return };
    let project = sources();
    let shop = ShopService::open(&project, &node);
    // What happened before anybody looked: Ada wanted three cups, Bob pressed `+` seven times and shops on.
    shop.post("/carts/ada?article=cup&quantity=1");
    shop.post("/carts/ada?article=cup&quantity=2");
    shop.post("/orders/ada");
    for _ in 0..7 {
        shop.post("/carts/bob?article=tea&quantity=1");
    }
    let mut wire = serve(&project, &node);

    let (report, failed) = wire.outcome("run_test_suite", json!({}));
    assert!(failed, "{report}");
    assert_eq!((&report["runner"], &report["failed"]), (&json!("node"), &json!(1)), "{report}");
    assert_eq!(report["tests"][0]["name"], "one cup and two cups are three cups");
    assert!(report["tests"][0]["error"].as_str().unwrap().contains("12 !== 3"), "{report}");

    let (logs, failed) = wire.outcome("get_logs", json!({"level": "error", "limit": 5}));
    assert!(!failed, "{logs}");
    let entry = &logs["entries"][0];
    assert_eq!(
        (&entry["message"], &entry["fields"]["quantity"]),
        (&json!("order out of stock"), &json!(12)),
        "{logs}"
    );

    let (state, failed) = wire.outcome("inspect_state", json!({"path": "local:cart.js/carts"}));
    assert!(!failed, "{state}");
    assert!(state["source"].as_str().unwrap().starts_with("node: "), "{state}");
    // A text, where a number was meant: here is the defect.
    assert_eq!(state["value"], json!({"$map": [["bob", {"$map": [["tea", "01111111"]]}]]}));

    let select = "SELECT article, quantity, state FROM orders WHERE customer = ?";
    let (found, failed) =
        wire.outcome("db_bridge", json!({"action": "query", "payload": select, "params": ["ada"]}));
    assert!(!failed, "{found}");
    assert_eq!(
        found["rows"][0],
        json!({"article": "cup", "quantity": 12, "state": "out of stock"}),
        "{found}"
    );

    let (profile, failed) = wire.outcome("capture_trace", json!({"type": "cpu", "duration_ms": 1500}));
    assert!(!failed, "{profile}");
    // The compiler may have put `price` into its caller.
    let hottest = &profile["summary"]["top_self"][0];
    assert_eq!(hottest["file"], "cart.js", "{profile}");
    assert!(["price", "worth"].contains(&hottest["function"].as_str().unwrap()), "{profile}");

    let (edited, failed) = wire.outcome(
        "edit_file",
        json!({"path": "cart.js", "edits": [{"old_string": "?? 0) + quantity", "new_string": "?? 0) + Number(quantity)"}]}),
    );
    assert!(!failed, "{edited}");
    let (report, failed) = wire.outcome("run_test_suite", json!({}));
    assert!(!failed, "{report}");
    assert_eq!((&report["passed"], &report["failed"]), (&json!(1), &json!(0)));

    // And with the service that was mended Bob's seven are seven.
    drop(shop);
    let shop = ShopService::open(&project, &node);
    for _ in 0..7 {
        shop.post("/carts/bob?article=tea&quantity=1");
    }
    wait_until(Duration::from_secs(30), "the state is right", || {
        let (state, _) = wire.outcome("inspect_state", json!({"path": "local:cart.js/carts"}));
        state["value"] == json!({"$map": [["bob", {"$map": [["tea", 7]]}]]})
    });
}
