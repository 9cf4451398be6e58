//! The audit in a database.

use crate::SOON;
use crate::servers;
use integration_tests::{Ask, Era, HttpServer, Project, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn start(project: &Project, outside: &Project, place: &str) -> HttpServer {
    let config = outside.join("coretools.toml");
    std::fs::write(&config, format!("[http]\ncalls_per_second = 100000\naudit_database = \"{place}\"\n"))
        .unwrap();
    HttpServer::start(project, &["--config", config.to_str().unwrap()])
}

/// Python's own SQLite, which knows nothing of this server.
fn python(script: &str, path: &Path) -> Command {
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(path);
    command
}

fn rows(path: &Path) -> Vec<Value> {
    const SCRIPT: &str = "
import json, sqlite3, sys
c = sqlite3.connect(sys.argv[1]); c.row_factory = sqlite3.Row
print(json.dumps([dict(r) for r in c.execute('SELECT * FROM coretools_audit ORDER BY server, number')]))";
    let output = python(SCRIPT, path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Somebody who keeps a database to himself, until he is dropped.
struct DatabaseLock(Child);

impl DatabaseLock {
    fn of(path: &Path) -> Self {
        const SCRIPT: &str = "
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
c.execute('BEGIN IMMEDIATE'); print('locked', flush=True); sys.stdin.read()";
        let mut child = python(SCRIPT, path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = [0; 6];
        child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
        Self(child)
    }
}

impl Drop for DatabaseLock {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn sqlite_has_every_call_and_refusal_and_all_of_them_in_the_end() {
    let (project, outside) = (Project::with([("a.txt", "a")]), Project::empty());
    let path = outside.join("audit.db");
    let place = format!("sqlite:{}", path.display());
    let mut server = start(&project, &outside, &place);
    let token = server.token("ada", "readonly", &[]);
    for era in Era::BOTH {
        let mut client = server.connect(&token, era);
        client.text("read_file", json!({"path": "a.txt"}));
        client.failure("read_file", json!({"path": "missing.txt"}));
        let write = json!({"name": "write_file", "arguments": {"path": "x", "content": "secret words"}});
        client.request("tools/call", write);
    }
    server.get("/mcp", None);
    wait_until(SOON, "the rows are there", || {
        let found = rows(&path);
        let count = |tool: &str, decision: &str, outcome: &str| {
            let fits = |row: &&Value| {
                row["tool"] == tool && row["decision"] == decision && row["outcome"] == outcome
            };
            found.iter().filter(fits).count()
        };
        let counts = [
            count("read_file", "allowed", "ok"),
            count("read_file", "allowed", "failed"),
            count("write_file", "hidden", "not_run"),
        ];
        let stranger =
            |row: &Value| row["principal"] == "stranger:127.0.0.1" && row["rule"] == "http: no_token";
        counts == [2, 2, 2] && found.iter().any(stranger)
    });
    let found = rows(&path);
    assert!(!json!(found).to_string().contains("secret words"));
    let read = found.iter().find(|row| row["tool"] == "read_file").unwrap();
    assert_eq!((&read["principal"], &read["role"]), (&json!("ada"), &json!("readonly")));
    assert_eq!(read["arguments"], "path:5c");
    assert!(read["at"].as_str().unwrap().starts_with("20") && read["at"].as_str().unwrap().ends_with('Z'));
    assert!(read["duration_us"].as_u64().unwrap() > 0 && read["bytes_out"].as_u64().unwrap() > 0);
    assert!(found.iter().any(|row| row["session"].is_string()));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let figures = server.get("/metrics", Some(&token)).body;
    assert!(figures.contains("coretools_audit_rows_total{outcome=\"lost\"} 0"), "{figures}");
    // What was said last is not lost with the server.
    let mut client = server.connect(&token, Era::Modern);
    for _ in 0..300 {
        client.text("read_file", json!({"path": "a.txt"}));
    }
    server.signal(Signal::TERM);
    assert!(server.wait(SOON).success(), "{}", server.log());
    let read = |found: &[Value]| {
        found.iter().filter(|row| row["tool"] == "read_file" && row["outcome"] == "ok").count()
    };
    assert_eq!(read(&rows(&path)), 302, "{}", server.log());
    // The next server adds its own.
    let server = start(&project, &outside, &place);
    let token = server.token("ada", "readonly", &[]);
    server.connect(&token, Era::Modern).text("read_file", json!({"path": "a.txt"}));
    wait_until(SOON, "the row is there", || read(&rows(&path)) == 303);
    let found = rows(&path);
    let servers: std::collections::BTreeSet<&str> =
        found.iter().map(|row| row["server"].as_str().unwrap()).collect();
    assert_eq!(servers.len(), 2, "{servers:?}");
}

#[test]
fn no_call_waits_for_a_database_that_does_not_answer_and_nothing_is_lost_meanwhile() {
    let (project, outside) = (Project::with([("a.txt", "a")]), Project::empty());
    let path = outside.join("audit.db");
    let server = start(&project, &outside, &format!("sqlite:{}", path.display()));
    let token = server.token("ada", "dev", &[]);
    let mut client = server.connect(&token, Era::Modern);
    client.text("read_file", json!({"path": "a.txt"}));
    let lock = DatabaseLock::of(&path);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(7) {
        let asked = Instant::now();
        client.text("read_file", json!({"path": "a.txt"}));
        assert!(asked.elapsed() < Duration::from_secs(4), "a call took {:?}", asked.elapsed());
        std::thread::sleep(Duration::from_millis(50));
    }
    wait_until(SOON, "it is told", || server.log().contains("wait for their database"));
    drop(lock);
    let numbers = || -> Vec<u64> { rows(&path).iter().map(|row| row["number"].as_u64().unwrap()).collect() };
    let all = |numbers: &[u64]| numbers.iter().zip(1..).all(|(number, place)| *number == place);
    wait_until(SOON, "they are there", || numbers().len() > 20);
    assert!(all(&numbers()), "one is missing, or there twice: {:?}", numbers());
}

#[test]
fn postgresql_has_them_too_once_each_also_where_its_connection_breaks() {
    let Some(database) = servers::postgres() else { return };
    let (project, outside) = (Project::with([("a.txt", "a")]), Project::empty());
    let mut server = start(&project, &outside, &database.url("boss"));
    let token = server.token("ada", "dev", &[]);
    let mut client = server.connect(&token, Era::Modern);
    let read = |client: &mut integration_tests::Http, times: usize| {
        for _ in 0..times {
            client.text("read_file", json!({"path": "a.txt"}));
        }
    };
    let count = || database.sql("SELECT count(*) FROM coretools_audit WHERE tool = 'read_file'");
    read(&mut client, 20);
    wait_until(SOON, "they are there", || count() == "20");
    database.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = 'shop'");
    read(&mut client, 20);
    wait_until(SOON, "they are there", || count() == "40");
    let late = "SELECT count(*) FROM coretools_audit WHERE at BETWEEN now() - interval '10 minutes' AND now() AND \
                principal = 'ada' AND role = 'dev' AND outcome = 'ok' AND tool = 'read_file'";
    assert_eq!(database.sql(late), "40");
    // A zero byte, which PostgreSQL's text has not.
    let mut other = server.connect(&token, Era::Initialize("2025-06-18"));
    other.request("tools/call", json!({"name": "read\u{0}file", "arguments": {}}));
    read(&mut client, 1);
    wait_until(SOON, "they are there", || count() == "41");
    server.signal(Signal::TERM);
    assert!(server.wait(SOON).success(), "{}", server.log());
    assert!(!server.log().contains(servers::PASSWORD), "{}", server.log());
    // Another server, that may add rows and nothing else.
    database.sql(&format!("CREATE ROLE writer LOGIN PASSWORD '{}'", servers::PASSWORD));
    database.sql("GRANT INSERT ON coretools_audit TO writer");
    let server = start(&project, &outside, &database.url("writer"));
    let token = server.token("ada", "dev", &[]);
    read(&mut server.connect(&token, Era::Modern), 1);
    wait_until(SOON, "it is there", || count() == "42");
    assert_eq!(database.sql("SELECT count(DISTINCT server) FROM coretools_audit"), "2");
}

#[test]
fn a_database_that_cannot_be_used_keeps_the_server_from_starting() {
    let (project, outside) = (Project::empty(), Project::empty());
    let tokens = outside.join("tokens.toml");
    let made = HttpServer::program(&project)
        .arg("--tokens")
        .arg(&tokens)
        .args(["token", "new", "--name", "a", "--role", "dev"])
        .output()
        .unwrap();
    assert!(made.status.success());
    let no_database = outside.join("no.db");
    std::fs::File::create(&no_database).unwrap().write_all(&[b'x'; 4096]).unwrap();
    for (place, said) in [
        ("mysql://me:s3cret@localhost/x".to_owned(), "expected sqlite:PATH"),
        ("$NO_SUCH_VARIABLE".to_owned(), "NO_SUCH_VARIABLE is not set"),
        ("postgres://me:s3cret@127.0.0.1:1/x".to_owned(), "http.audit_database"),
        (format!("sqlite:{}", no_database.display()), "not a database"),
        (format!("sqlite:{}/missing/audit.db", outside.path().display()), "audit.db"),
        (format!("sqlite:{}", project.join("audit.db").display()), "lies in a root"),
    ] {
        let config = outside.join("coretools.toml");
        std::fs::write(&config, format!("[http]\naudit_database = \"{place}\"\n")).unwrap();
        let arguments = ["--config", config.to_str().unwrap(), "--tokens", tokens.to_str().unwrap()];
        let refused = HttpServer::refuses(&project, &arguments);
        assert!(refused.contains(said) && !refused.contains("s3cret"), "{place}: {refused}");
    }
}
