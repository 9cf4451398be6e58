//! The audit as an operator asks it: `mcp-http audit query` and `verify` on the file, SQLite and PostgreSQL.

use crate::{SOON, servers};
use integration_tests::{Ask, Era, HttpServer, Project, require, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A configuration outside of the project, and the program with it.
struct Audited {
    project: Project,
    outside: Project,
}

impl Audited {
    fn new(config: &str) -> Self {
        let project = Project::with([("src/a.txt", "a"), ("src/b.txt", "b"), ("c.txt", "c")]);
        let audited = Self { project, outside: Project::empty() };
        let config = config.replace("OUTSIDE", &audited.outside.path().display().to_string());
        fs::write(audited.config(), config).unwrap();
        audited
    }

    fn config(&self) -> String {
        self.outside.join("coretools.toml").to_str().unwrap().to_owned()
    }

    fn start(&self) -> HttpServer {
        HttpServer::start(&self.project, &["--config", &self.config()])
    }

    fn audit(&self, arguments: &[&str]) -> Output {
        let mut command = HttpServer::program(&self.project);
        command.args(["--config", &self.config(), "audit"]).args(arguments).output().unwrap()
    }

    fn query(&self, arguments: &[&str]) -> Vec<Value> {
        let all: Vec<&str> = ["query", "--format", "json"].iter().chain(arguments).copied().collect();
        let output = self.audit(&all);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The number of the calls of the two callers.
    fn of_callers(&self) -> usize {
        let all = self.query(&["--limit", "0"]);
        all.iter().filter(|entry| entry["principal"] == "ada" || entry["principal"] == "bob").count()
    }

    /// The exit code of `audit verify`, and what it prints.
    fn verify(&self, arguments: &[&str]) -> (i32, String) {
        let all: Vec<&str> = ["verify"].iter().chain(arguments).copied().collect();
        let output = self.audit(&all);
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(text).unwrap())
    }
}

/// Two callers do things, one of which is refused. Returns once `count` has them all.
fn do_things(server: &HttpServer, count: impl Fn() -> usize) {
    let (ada, bob) = (server.token("ada", "dev", &[]), server.token("bob", "readonly", &[]));
    let mut ada = server.connect(&ada, Era::Modern);
    ada.text("delete_file", json!({"path": "src/a.txt"}));
    ada.text("write_file", json!({"path": "src/new.txt", "content": "words that are nobody's business"}));
    let token = format!("ghp_{}", "a1B2".repeat(9));
    ada.text(
        "run_command",
        json!({"command": ["echo", "--token", token, "done"], "env": {"X": "in the environment"}}),
    );
    let mut bob = server.connect(&bob, Era::Modern);
    bob.text("read_file", json!({"path": "src/b.txt"}));
    bob.failure("read_file", json!({"path": "/etc/shadow"}));
    bob.failure("git_status", json!({"repository_path": "../elsewhere"}));
    bob.request("tools/call", json!({"name": "delete_file", "arguments": {"path": "c.txt"}}));
    wait_until(SOON, "all calls are recorded", || count() >= 7);
}

/// The questions of an operator, which each store answers alike.
fn check_answers(audited: &Audited) {
    let of = |entries: &[Value], key: &str| -> Vec<String> {
        entries.iter().map(|entry| entry[key].as_str().unwrap_or_default().to_owned()).collect()
    };
    let deleted = audited.query(&["--path", "src/a.txt", "--tool", "delete_*", "--since", "1d"]);
    assert_eq!((of(&deleted, "principal"), of(&deleted, "outcome")), (vec!["ada".into()], vec!["ok".into()]));
    let path = audited.project.join("src/a.txt");
    assert_eq!(deleted[0]["targets"], json!({"writes": [path]}));
    let refused = audited.query(&["--outcome", "hidden", "--caller", "b*"]);
    assert_eq!(of(&refused, "tool"), ["delete_file"]);
    assert_eq!(refused[0]["targets"], json!({"writes": [audited.project.join("c.txt")]}));
    // The tools keep the roots, and the audit says so like a refusal of the policy.
    let outside = audited.query(&["--outcome", "refused", "--caller", "bob"]);
    assert_eq!(of(&outside, "tool"), ["read_file", "git_status"]);
    assert_eq!(
        (of(&outside, "rule"), of(&outside, "outcome")),
        (vec!["roots".to_owned(); 2], vec!["not_run".to_owned(); 2])
    );
    let ran = audited.query(&["--containing", "echo"]);
    let command = ran[0]["targets"]["command"].as_str().unwrap();
    assert!(command.starts_with("echo --token ") && command.ends_with(" done"), "{command}");
    assert_eq!(
        of(&audited.query(&["--path", "**/*.txt", "--limit", "2"]), "tool"),
        ["read_file", "delete_file"]
    );
    let all = json!(audited.query(&["--limit", "0"])).to_string();
    for secret in ["ghp_", "nobody's business", "in the environment"] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
    assert!(audited.query(&["--until", "2020-01-01"]).is_empty());
    assert!(audited.query(&["--since", "2099-01-01T00:00:00Z"]).is_empty());
    let csv = audited.audit(&["query", "--format", "csv", "--tool", "delete_file", "--caller", "ada"]);
    let csv = String::from_utf8(csv.stdout).unwrap();
    assert!(csv.starts_with("time,caller,role,tool,outcome,duration,what\r\n"), "{csv}");
    assert!(csv.contains(",ada,dev,delete_file,ok,") && csv.contains("src/a.txt"), "{csv}");
    let table = audited.audit(&["query", "--caller", "bob", "--limit", "1"]);
    let (table, told) = (String::from_utf8(table.stdout).unwrap(), String::from_utf8(table.stderr).unwrap());
    assert!(table.contains("hidden") && table.contains("c.txt") && table.lines().count() == 2, "{table}");
    assert!(told.contains("the newest 1"), "{told}");
    for wrong in [&["--since", "soon"][..], &["--path", "{"]] {
        let all: Vec<&str> = ["query"].iter().chain(wrong).copied().collect();
        assert_eq!(audited.audit(&all).status.code(), Some(2));
    }
}

#[test]
fn the_file_says_who_deleted_what_and_a_changed_or_missing_line_is_found() {
    let audited = Audited::new("[policy]\naudit = \"OUTSIDE/audit.jsonl\"\n");
    let path = audited.outside.join("audit.jsonl");
    let lines =
        || fs::read_to_string(&path).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>();
    let server = audited.start();
    do_things(&server, || audited.of_callers());
    check_answers(&audited);
    let checkpoint = audited.outside.join("checkpoint.json");
    let saved = audited.verify(&["--save-checkpoint", checkpoint.to_str().unwrap()]);
    assert!(
        saved.0 == 0 && saved.1.contains("intact") && saved.1.contains("Without --checkpoint"),
        "{saved:?}"
    );
    drop(server);
    let compare = ["--checkpoint", checkpoint.to_str().unwrap()];
    assert_eq!(audited.verify(&compare).0, 0);
    // The chain goes on with the next server.
    let server = audited.start();
    let token = server.token("ada", "dev", &[]);
    server.connect(&token, Era::Modern).text("read_file", json!({"path": "c.txt"}));
    wait_until(SOON, "it is recorded", || audited.query(&["--path", "c.txt", "--caller", "ada"]).len() == 1);
    assert_eq!(audited.verify(&compare).0, 0, "{:?}", audited.verify(&compare));
    drop(server);
    let whole = lines();
    let place = whole.iter().position(|line| line.contains("delete_file")).unwrap();
    let put = |lines: &[String]| fs::write(&path, lines.join("\n") + "\n").unwrap();
    let mut changed = whole.clone();
    changed[place] = changed[place].replace("\"ada\"", "\"bob\"");
    put(&changed);
    let (code, said) = audited.verify(&[]);
    assert!(code == 1 && said.contains(&format!("audit.jsonl:{} was changed", place + 1)), "{said}");
    let mut missing = whole.clone();
    missing.remove(place);
    put(&missing);
    let (code, said) = audited.verify(&[]);
    assert!(code == 1 && said.contains(&format!("record {} is missing", place + 1)), "{said}");
    // An end that was cut off shows only against the checkpoint.
    put(&whole[..place]);
    assert_eq!(audited.verify(&[]).0, 0);
    let (code, said) = audited.verify(&compare);
    assert!(code == 1 && said.contains("the end is missing"), "{said}");
}

/// Runs SQL with Python's own SQLite, which knows nothing of this server.
fn sqlite(path: &Path, sql: &str) {
    const SCRIPT: &str = "import sqlite3, sys
c = sqlite3.connect(sys.argv[1], timeout=30); c.executescript(sys.argv[2]); c.commit()";
    let output = Command::new("python3").args(["-c", SCRIPT]).arg(path).arg(sql).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The table of version 0.1.0, with a row.
const OLD_TABLE: &str = "CREATE TABLE coretools_audit (server TEXT NOT NULL, number INTEGER NOT NULL, at TEXT NOT NULL, \
     principal TEXT, session TEXT, role TEXT NOT NULL, tool TEXT NOT NULL, decision TEXT NOT NULL, rule TEXT NOT NULL, \
     outcome TEXT NOT NULL, duration_us INTEGER NOT NULL, arguments TEXT NOT NULL, bytes_in INTEGER NOT NULL, \
     bytes_out INTEGER NOT NULL, lost_before INTEGER NOT NULL, PRIMARY KEY (server, number)) STRICT;
     INSERT INTO coretools_audit VALUES ('old:1', 1, '2026-01-01T00:00:00.000Z', 'carol', NULL, 'dev', 'read_file', \
     'allowed', '', 'ok', 5, 'path:5c', 7, 9, 0);";

#[test]
fn sqlite_answers_the_same_finds_changed_rows_and_takes_over_the_table_of_before() {
    let audited = Audited::new("[http]\naudit_database = \"sqlite:OUTSIDE/audit.db\"\n");
    let path = audited.outside.join("audit.db");
    let none = audited.audit(&["query"]);
    assert_eq!(none.status.code(), Some(2), "{none:?}");
    sqlite(&path, OLD_TABLE);
    assert_eq!(audited.query(&[])[0]["principal"], "carol", "it is read before a server has changed it");
    let mut server = audited.start();
    do_things(&server, || audited.of_callers());
    check_answers(&audited);
    let old = audited.query(&["--caller", "carol"]);
    assert_eq!((&old[0]["tool"], &old[0]["arguments"]), (&json!("read_file"), &json!("path:5c")));
    let (code, said) = audited.verify(&[]);
    assert!(
        code == 0 && said.contains("it has no end") && said.contains("1 records of version 0.1.0"),
        "{said}"
    );
    server.signal(Signal::TERM);
    assert!(server.wait(SOON).success(), "{}", server.log());
    let checkpoint = audited.outside.join("checkpoint.json");
    let (code, said) = audited.verify(&["--save-checkpoint", checkpoint.to_str().unwrap()]);
    assert!(code == 0 && !said.contains("it has no end"), "{said}");
    for (sql, expected) in [
        ("UPDATE coretools_audit SET principal = 'bob' WHERE tool = 'write_file'", "was changed"),
        ("UPDATE coretools_audit SET targets = '{}' WHERE tool = 'write_file'", "was changed"),
        ("UPDATE coretools_audit SET outcome = 'failed' WHERE tool = 'write_file'", "was changed"),
        (
            "UPDATE coretools_audit SET at = '2026-01-01T00:00:00.000Z' WHERE tool = 'write_file'",
            "was changed",
        ),
        ("UPDATE coretools_audit SET hash = NULL WHERE tool = 'write_file'", "has no hash"),
        ("DELETE FROM coretools_audit WHERE tool = 'write_file'", "missing"),
    ] {
        let copy = audited.outside.join("copy.db");
        // Everything is in the one file once the server has ended.
        fs::copy(&path, &copy).unwrap();
        sqlite(&copy, sql);
        let config = format!("[http]\naudit_database = \"sqlite:{}\"\n", copy.display());
        let changed = Audited { project: Project::empty(), outside: Project::empty() };
        fs::write(changed.config(), config).unwrap();
        let (code, said) = changed.verify(&[]);
        assert!(code == 1 && said.contains(expected), "{sql}: {said}");
    }
    // The last rows, and with them the record of the end.
    sqlite(&path, "DELETE FROM coretools_audit WHERE number > 3");
    assert!(audited.verify(&[]).1.contains("it has no end"));
    let (code, said) = audited.verify(&["--checkpoint", checkpoint.to_str().unwrap()]);
    assert!(code == 1 && said.contains("the end is missing"), "{said}");
    // A table of a newer program is left alone, with words.
    sqlite(&path, "PRAGMA user_version = 9");
    let refused =
        HttpServer::refuses(&audited.project, &["--config", &audited.config(), "--anonymous-role", "dev"]);
    assert!(refused.contains("has format 9") && refused.contains("a newer version wrote it"), "{refused}");
    assert!(audited.verify(&[]).1.contains("has format 9"));
}

#[test]
fn postgresql_answers_the_same_of_several_servers_and_finds_changed_rows() {
    let Some(database) = servers::postgres() else { return };
    let audited = Audited::new(&format!("[http]\naudit_database = \"{}\"\n", database.url("boss")));
    let [server, mut other] = [(), ()].map(|()| audited.start());
    do_things(&server, || audited.of_callers());
    check_answers(&audited);
    let token = other.token("dan", "dev", &[]);
    other.connect(&token, Era::Modern).text("read_file", json!({"path": "c.txt"}));
    wait_until(SOON, "it is recorded", || audited.query(&["--caller", "dan"]).len() == 1);
    other.signal(Signal::TERM);
    assert!(other.wait(SOON).success(), "{}", other.log());
    let (code, said) = audited.verify(&[]);
    assert!(code == 0 && said.contains("of 2 servers, intact"), "{said}");
    // One runs and one has ended.
    assert_eq!(said.matches("it has no end").count(), 1, "{said}");
    database.sql("UPDATE coretools_audit SET principal = 'bob' WHERE tool = 'write_file'");
    let (code, said) = audited.verify(&[]);
    assert!(code == 1 && said.contains("was changed") && !said.contains(servers::PASSWORD), "{said}");
    database.sql("DELETE FROM coretools_audit WHERE tool = 'write_file'");
    let (code, said) = audited.verify(&[]);
    assert!(code == 1 && said.contains("missing"), "{said}");
    database.sql("COMMENT ON TABLE coretools_audit IS 'coretools audit, format 9'");
    let refused =
        HttpServer::refuses(&audited.project, &["--config", &audited.config(), "--anonymous-role", "dev"]);
    assert!(refused.contains("has format 9") && !refused.contains(servers::PASSWORD), "{refused}");
}

#[test]
fn postgresql_takes_over_the_table_of_before_or_says_what_its_owner_must_run() {
    let Some(database) = servers::postgres() else { return };
    let old = OLD_TABLE
        .replace(") STRICT;", ");")
        .replace("at TEXT NOT NULL", "at TIMESTAMPTZ NOT NULL")
        .replace("INTEGER", "BIGINT");
    for statement in old.split(';').filter(|statement| !statement.trim().is_empty()) {
        database.sql(statement);
    }
    database.sql(&format!("CREATE ROLE writer LOGIN PASSWORD '{}'", servers::PASSWORD));
    database.sql("GRANT INSERT ON coretools_audit TO writer");
    let writer = Audited::new(&format!("[http]\naudit_database = \"{}\"\n", database.url("writer")));
    let refused =
        HttpServer::refuses(&writer.project, &["--config", &writer.config(), "--anonymous-role", "dev"]);
    assert!(refused.contains("ALTER TABLE coretools_audit ADD COLUMN"), "{refused}");
    let boss = Audited::new(&format!("[http]\naudit_database = \"{}\"\n", database.url("boss")));
    drop(boss.start());
    // After the owner has, who may only add rows goes on.
    let server = writer.start();
    let token = server.token("ada", "dev", &[]);
    server.connect(&token, Era::Modern).text("read_file", json!({"path": "c.txt"}));
    wait_until(SOON, "it is recorded", || boss.query(&["--path", "c.txt"]).len() == 1);
    assert_eq!(boss.query(&["--caller", "carol"])[0]["tool"], "read_file");
    assert_eq!(boss.verify(&[]).0, 0, "{:?}", boss.verify(&[]));
}

#[test]
fn the_level_decides_what_is_recorded_of_the_arguments() {
    for level in ["names", "targets", "full"] {
        let audited =
            Audited::new(&format!("[policy]\naudit = \"OUTSIDE/audit.jsonl\"\naudit_level = \"{level}\"\n"));
        let server = audited.start();
        let token = server.token("ada", "dev", &[]);
        let mut client = server.connect(&token, Era::Modern);
        let secret = format!("ghp_{}", "a1B2".repeat(9));
        let content = format!("some words and {secret}\n{}", "line\n".repeat(50_000));
        client.text("write_file", json!({"path": "src/x.txt", "content": content}));
        wait_until(SOON, "it is recorded", || audited.query(&["--tool", "write_file"]).len() == 1);
        let line = audited.query(&["--tool", "write_file"]).remove(0);
        assert!(line["arguments"].as_str().unwrap().starts_with("path:9c content:"), "{line}");
        let text = line.to_string();
        assert_eq!(text.contains("src/x.txt"), level != "names", "{text}");
        assert_eq!(text.contains("some words"), level == "full", "{text}");
        assert!(!text.contains("ghp_") && text.len() < 20_000, "{text}");
    }
}

/// Runs `openssl` in a folder.
fn openssl(folder: &Path, arguments: &[&str]) -> Option<()> {
    let run = Command::new("openssl").args(arguments).current_dir(folder).stderr(Stdio::null()).status();
    require(run.is_ok_and(|status| status.success()).then_some(()), "no openssl 3; apt install openssl")
}

#[test]
fn a_checkpoint_that_is_signed_is_believed_only_as_it_was_signed() {
    let audited = Audited::new("[policy]\naudit = \"OUTSIDE/audit.jsonl\"\n");
    let server = audited.start();
    do_things(&server, || audited.of_callers());
    drop(server);
    let place = |name: &str| audited.outside.join(name).to_str().unwrap().to_owned();
    let folder = audited.outside.path();
    for name in ["own", "other"] {
        let (key, public) = (format!("{name}.key"), format!("{name}.pub"));
        let Some(()) = openssl(folder, &["genpkey", "-algorithm", "ed25519", "-out", &key]) else { return };
        let Some(()) = openssl(folder, &["pkey", "-in", &key, "-pubout", "-out", &public]) else { return };
    }
    let [checkpoint, key, public, other] = ["checkpoint.json", "own.key", "own.pub", "other.pub"].map(place);
    let (code, said) = audited.verify(&["--save-checkpoint", &checkpoint, "--sign-key", &key]);
    assert_eq!(code, 0, "{said}");
    let compare = |key: &str| audited.verify(&["--checkpoint", &checkpoint, "--public-key", key]);
    assert_eq!(compare(&public).0, 0, "{}", compare(&public).1);
    // Without the key it is read as before.
    assert_eq!(audited.verify(&["--checkpoint", &checkpoint]).0, 0);
    let wrong = |(code, said): (i32, String), words: &str| {
        assert!(code == 2 && said.contains(words), "{code}: {said}");
    };
    wrong(compare(&other), "does not hold");
    wrong(compare(&key), "no PEM of a key");
    let signed: Value = serde_json::from_str(&fs::read_to_string(&checkpoint).unwrap()).unwrap();
    let mut changed = signed.clone();
    changed["chains"]["file"]["number"] = json!(1);
    fs::write(&checkpoint, changed.to_string()).unwrap();
    wrong(compare(&public), "does not hold");
    // The order of its members and its blanks do not matter.
    fs::write(&checkpoint, signed.to_string()).unwrap();
    assert_eq!(compare(&public).0, 0, "{}", compare(&public).1);
    let mut unsigned = signed;
    unsigned.as_object_mut().unwrap().remove("signature");
    fs::write(&checkpoint, unsigned.to_string()).unwrap();
    wrong(compare(&public), "has no signature");
    let (code, said) = audited.verify(&["--save-checkpoint", &checkpoint, "--sign-key", &public]);
    assert!(code == 2 && said.contains("no PEM of a key"), "{code}: {said}");
}
