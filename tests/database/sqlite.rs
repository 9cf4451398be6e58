//! SQLite: what the tool answers, and where it looks.

use crate::{DDL, answer, bridge, error, rows, serve};
use integration_tests::{Project, Wire, wait_until};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs statements in a file with another SQLite than ours.
pub(crate) fn sqlite(file: &Path, script: &str) -> String {
    let program = "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\nfor s in sys.argv[2].split(';;'):\n    for r in c.execute(s): print(r)\nc.commit()";
    let output = Command::new("python3").args(["-c", program]).arg(file).arg(script).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn shop() -> Project {
    let project = Project::empty();
    sqlite(
        &project.join("app.db"),
        "CREATE TABLE users (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL DEFAULT 'nobody', born DATE);;\
         CREATE UNIQUE INDEX by_name ON users (name);;\
         CREATE TABLE posts (id INTEGER PRIMARY KEY, author INTEGER REFERENCES users (id), body BLOB);;\
         CREATE TABLE log (what TEXT);;\
         CREATE VIEW authors AS SELECT DISTINCT author FROM posts;;\
         CREATE TRIGGER logged AFTER INSERT ON posts BEGIN INSERT INTO log VALUES ('post ' || new.id); END;;\
         INSERT INTO users (name, born) VALUES ('ann', '1990-01-02'), ('bob', NULL);;\
         INSERT INTO posts VALUES (1, 1, x'00ff')",
    );
    project
}

#[test]
fn what_the_original_promises_holds() {
    let project = Project::empty();
    sqlite(&project.join("app.db"), "CREATE TABLE test_table (val TEXT)");
    let mut wire = serve(&project, &[]);
    let schema = answer(&mut wire, json!({"action": "schema", "payload": ""}));
    assert_eq!(schema["table_names"], json!(["test_table"]));
    let answered = answer(&mut wire, json!({"action": "query", "payload": "SELECT 1 AS n"}));
    assert_eq!(answered["rows"], json!([{"n": 1}]));
    let seed = json!({"action": "seed", "payload": "INSERT INTO test_table (val) VALUES ('x')"});
    assert_eq!(answer(&mut wire, seed)["affected"], 1);
    for payload in ["DROP TABLE test_table", "ALTER TABLE test_table ADD b"] {
        for action in ["query", "seed"] {
            assert_eq!(error(&mut wire, json!({"action": action, "payload": payload})), DDL);
        }
    }
    assert_eq!(sqlite(&project.join("app.db"), "SELECT * FROM test_table"), "('x',)\n");
}

#[test]
fn the_schema_has_tables_columns_keys_indexes_and_row_counts() {
    let project = shop();
    let mut wire = serve(&project, &[]);
    let mut schema = answer(&mut wire, json!({"action": "schema", "payload": "*s"}));
    schema["elapsed_ms"] = Value::Null;
    insta::assert_json_snapshot!("sqlite_schema", schema);
    let one = answer(&mut wire, json!({"action": "schema", "payload": "log"}));
    assert_eq!(one["table_names"], json!(["log"]));
}

#[test]
fn every_value_survives_there_and_back() {
    let project = Project::empty();
    sqlite(&project.join("app.db"), "CREATE TABLE t (a)");
    let mut wire = serve(&project, &[]);
    let values = [
        (json!(null), json!(null)),
        (json!(9_007_199_254_740_993_i64), json!("9007199254740993")),
        (json!(-5), json!(-5)),
        (json!(1.5), json!(1.5)),
        (json!("ä\n''\"😀"), json!("ä\n''\"😀")),
        (json!("9".repeat(40)), json!("9".repeat(40))),
        (json!({"$base64": "AP8="}), json!({"$base64": "AP8=", "bytes": 2})),
        (json!(true), json!(1)),
        (json!({"a": [1]}), json!("{\"a\":[1]}")),
    ];
    for (given, found) in values {
        let seed = json!({"action": "seed", "payload": "INSERT INTO t VALUES (?)", "params": [[given]]});
        assert_eq!(answer(&mut wire, seed)["affected"], 1);
        assert_eq!(
            rows(&mut wire, "SELECT a FROM t ORDER BY rowid DESC LIMIT 1", json!([])),
            json!([{"a": found}])
        );
    }
    for given in [json!(u64::MAX), json!(12_345_678_901_234_567_890.5_f64)] {
        let seed = json!({"action": "seed", "payload": "INSERT INTO t VALUES (?)", "params": [[given]]});
        assert!(error(&mut wire, seed).contains("give it as a text"), "{given}");
    }
    assert_eq!(
        rows(&mut wire, "SELECT 1e999 AS a, CAST(x'ff41' AS TEXT) AS b", json!([])),
        json!([{"a": "Infinity", "b": {"$base64": "/0E=", "bytes": 2}}])
    );
    assert_eq!(
        rows(&mut wire, "SELECT ? AS a, ? AS a", json!(["x'); DROP TABLE t", 2])),
        json!([{"a": "x'); DROP TABLE t", "a_2": 2}])
    );
    assert!(
        error(&mut wire, json!({"action": "query", "payload": "SELECT ?"})).contains("1 expected, 0 given")
    );
}

#[test]
fn rows_values_and_bytes_have_limits_that_are_said() {
    let project = shop();
    let mut wire = serve(&project, &[]);
    let many =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000) SELECT i FROM n";
    let page = answer(&mut wire, json!({"action": "query", "payload": many}));
    assert_eq!((page["row_count"].as_u64(), page["truncated"].as_bool()), (Some(200), Some(true)));
    let page =
        answer(&mut wire, json!({"action": "query", "payload": format!("{many} LIMIT 3"), "limit": 3}));
    assert_eq!((page["row_count"].as_u64(), page["truncated"].as_bool()), (Some(3), Some(false)));
    let page = answer(&mut wire, json!({"action": "query", "payload": "SELECT hex(zeroblob(4000000)) AS a"}));
    assert!(
        page["rows"][0]["a"].as_str().unwrap().len() < 2100
            && page["notes"][0].as_str().unwrap().contains("cut")
    );
    let wide = format!("SELECT i, hex(zeroblob(900)) FROM ({many})");
    let page = answer(&mut wire, json!({"action": "query", "payload": wide, "limit": 5000}));
    assert!(page["truncated"] == true && page.to_string().len() < 60_000, "{}", page.to_string().len());
    // Refused by the engine before it is made.
    let said = error(&mut wire, json!({"action": "query", "payload": "SELECT hex(zeroblob(300000000))"}));
    assert!(said.contains("too big"), "{said}");
    let result = wire.call("db_bridge", json!({"action": "query", "payload": "SELECT 1", "limit": 5001}));
    assert_eq!(result["isError"], true);
}

#[test]
fn a_seed_is_all_or_nothing_and_can_be_tried() {
    let project = shop();
    let mut wire = serve(&project, &[]);
    let insert = "INSERT INTO users (name) VALUES (?)";
    let three = json!({"action": "seed", "payload": insert, "params": [["x"], ["y"], ["z"]]});
    let mut tried = three.clone();
    tried["dry_run"] = true.into();
    let answered = answer(&mut wire, tried);
    assert_eq!((answered["affected"].as_u64(), answered["dry_run"].as_bool()), (Some(3), Some(true)));
    let count = "SELECT count(*) AS n FROM users";
    assert_eq!(rows(&mut wire, count, json!([])), json!([{"n": 2}]));
    // The last of them breaks the unique index.
    let said =
        error(&mut wire, json!({"action": "seed", "payload": insert, "params": [["x"], ["y"], ["ann"]]}));
    assert!(said.contains("UNIQUE"), "{said}");
    assert_eq!(rows(&mut wire, count, json!([])), json!([{"n": 2}]));
    assert_eq!(answer(&mut wire, three)["affected"], 3);
    assert_eq!(rows(&mut wire, count, json!([])), json!([{"n": 5}]));
    // Triggers and AUTOINCREMENT go on working.
    let post = json!({"action": "seed", "payload": "INSERT INTO posts (author) VALUES (1)"});
    assert_eq!(answer(&mut wire, post)["affected"], 1);
    assert_eq!(
        rows(&mut wire, "SELECT what FROM log", json!([])),
        json!([{"what": "post 1"}, {"what": "post 2"}])
    );
    let select = error(&mut wire, json!({"action": "seed", "payload": "SELECT 1"}));
    assert!(select.contains("see `query`"), "{select}");
}

#[test]
fn the_rows_of_returning_are_answered_with_what_was_cut() {
    let project = shop();
    let mut wire = serve(&project, &[]);
    let insert = "INSERT INTO users (name) VALUES (?) RETURNING upper(name) AS n";
    let seeded = answer(&mut wire, json!({"action": "seed", "payload": insert, "params": [["x"], ["y"]]}));
    assert_eq!(
        (&seeded["affected"], &seeded["rows"]),
        (&json!(2), &json!([{"n": "X"}, {"n": "Y"}])),
        "{seeded}"
    );
    assert_eq!((seeded.get("truncated"), seeded.get("notes")), (None, None), "{seeded}");
    let delete = json!({"action": "seed", "payload": "DELETE FROM users WHERE name IN ('x', 'y') RETURNING name",
        "limit": 1, "dry_run": true});
    let deleted = answer(&mut wire, delete);
    assert_eq!((&deleted["affected"], &deleted["truncated"]), (&json!(2), &json!(true)), "{deleted}");
    assert!(deleted["notes"][0].as_str().unwrap().contains("more than 1 rows"), "{deleted}");
    let long = answer(&mut wire, json!({"action": "query", "payload": "SELECT printf('%.5000c', 'y') AS y"}));
    assert_eq!(
        (&long["truncated"], &long["notes"][0]),
        (&json!(true), &json!("1 values are cut; use substr() for the rest"))
    );
}

#[test]
fn a_plan_is_told_and_nothing_is_run() {
    let project = shop();
    let mut wire = serve(&project, &[]);
    let plan = answer(
        &mut wire,
        json!({"action": "explain", "payload": "SELECT * FROM users WHERE name = ?", "params": ["a"]}),
    );
    assert!(plan["rows"][0]["detail"].as_str().unwrap().contains("USING INDEX by_name"), "{plan}");
    answer(&mut wire, json!({"action": "explain", "payload": "DELETE FROM users"}));
    assert_eq!(rows(&mut wire, "SELECT count(*) AS n FROM users", json!([])), json!([{"n": 2}]));
}

const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";

/// The CPU time of a process and its threads, in ticks.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    after[11].parse::<u64>().unwrap() + after[12].parse::<u64>().unwrap()
}

/// Returns true if the server does nothing for a while.
fn rests(wire: &Wire) -> bool {
    let before = ticks(wire.pid());
    std::thread::sleep(Duration::from_millis(300));
    ticks(wire.pid()) - before <= 5
}

#[test]
#[cfg(target_os = "linux")]
fn at_its_time_limit_and_when_it_is_cancelled_a_statement_ends_in_the_engine() {
    let project = shop();
    let mut wire = serve(&project, &[]);
    let started = Instant::now();
    let said = error(&mut wire, json!({"action": "query", "payload": ENDLESS, "timeout_ms": 300}));
    assert!(
        said.starts_with("stopped after 300 ms") && started.elapsed() < Duration::from_secs(10),
        "{said}"
    );
    wait_until(Duration::from_secs(10), "the engine rests", || rests(&wire));
    let call = json!({"name": "db_bridge", "arguments": {"action": "query", "payload": ENDLESS, "timeout_ms": 600_000}});
    let id = wire.ask("tools/call", call);
    wait_until(Duration::from_secs(10), "the engine works", || !rests(&wire));
    wire.notify("notifications/cancelled", json!({"requestId": id}));
    wait_until(Duration::from_secs(10), "the engine rests", || rests(&wire));
    assert_eq!(rows(&mut wire, "SELECT 1 AS n", json!([])), json!([{"n": 1}]));
}

#[test]
fn a_file_is_beneath_a_root_and_never_made() {
    let outside = shop();
    let project = shop();
    std::fs::rename(project.join("app.db"), project.join("other.db")).unwrap();
    let file = outside.join("app.db");
    std::os::unix::fs::symlink(&file, project.join("link.db")).unwrap();
    std::os::unix::fs::symlink("other.db", project.join("inner.db")).unwrap();
    std::fs::create_dir(project.join("folder.db")).unwrap();
    let mut wire = serve(&project, &[]);
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(project.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let query = |database: &str| json!({"action": "query", "payload": "SELECT count(*) AS n FROM users", "database": database});
    let one = answer(&mut wire, json!({"action": "query", "payload": "SELECT 1"}));
    assert_eq!(one["database"], "other.db (the only SQLite file in the usual folders)");
    for database in [
        file.to_str().unwrap(),
        "link.db",
        "../app.db",
        "folder.db",
        ":memory:",
        "",
        "file:x.db?mode=rwc",
        "no.db",
        "file:other.db",
        "/proc/self/fd/0",
        "other.db?mode=rwc",
        "postgres://a:b@localhost/c",
    ] {
        let said = error(&mut wire, query(database));
        assert!(!said.contains(outside.path().to_str().unwrap()), "{said}");
        let (_, failed) = bridge(
            &mut wire,
            json!({"action": "seed", "payload": "DELETE FROM users", "database": database}),
        );
        assert!(failed, "{database}");
    }
    assert_eq!(before, names(), "something was made");
    for database in ["other.db", "inner.db", project.join("other.db").to_str().unwrap()] {
        assert_eq!(answer(&mut wire, query(database))["rows"], json!([{"n": 2}]), "{database}");
    }
}

#[test]
fn the_database_that_the_project_itself_names_is_found_and_a_server_only_told() {
    let project = shop();
    std::fs::create_dir(project.join("storage")).unwrap();
    std::fs::rename(project.join("app.db"), project.join("storage/dev.sqlite3")).unwrap();
    std::fs::copy(project.join("storage/dev.sqlite3"), project.join("other.db")).unwrap();
    let count = json!({"action": "query", "payload": "SELECT count(*) AS n FROM users"});
    let mut wire = serve(&project, &[]);
    let said = error(&mut wire, count.clone());
    assert!(said.contains("there are other.db, storage/dev.sqlite3: give one as `database`"), "{said}");
    project.write(".env", "DATABASE_URL=sqlite:///storage/dev.sqlite3\n");
    let found = answer(&mut wire, count.clone());
    assert_eq!(found["rows"], json!([{"n": 2}]));
    assert_eq!(found["database"], "storage/dev.sqlite3 (DATABASE_URL in .env)");
    let seed = json!({"action": "seed", "payload": "DELETE FROM users"});
    let said = error(&mut wire, seed);
    assert!(said.starts_with("`database`: a seed names its database: here is storage/dev.sqlite3"), "{said}");
    assert_eq!(answer(&mut wire, count.clone())["rows"], json!([{"n": 2}]));
    project.write(".env", "DATABASE_URL=postgres://zoe77:s3cr3t-word@db.internal/shop\n");
    let said = error(&mut wire, count);
    assert!(said.contains("DATABASE_URL in .env names a PostgreSQL database"), "{said}");
    assert!(["s3cr3t", "zoe77", "internal"].iter().all(|secret| !said.contains(secret)), "{said}");
}

/// Starts a process that holds the lock of a file until its input ends.
fn lock_holder(file: &Path) -> Child {
    let script = "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                  c.execute('BEGIN EXCLUSIVE')\nprint('held', flush=True)\nsys.stdin.read()";
    let mut holder = Command::new("python3")
        .args(["-c", script])
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
    holder
}

#[test]
fn a_locked_file_is_said_to_be_locked_and_how_long_it_was_waited_for() {
    let project = shop();
    let mut other = lock_holder(&project.join("app.db"));
    let mut wire = serve(&project, &[]);
    for request in [
        json!({"action": "query", "payload": "SELECT count(*) AS n FROM users", "timeout_ms": 700}),
        json!({"action": "seed", "payload": "DELETE FROM users", "timeout_ms": 700}),
        json!({"action": "schema", "timeout_ms": 700}),
    ] {
        let said = error(&mut wire, request.clone());
        let waited = said
            .strip_prefix("the database file is locked: another connection held its lock for all of the ");
        let waited =
            waited.and_then(|rest| rest.split_once(" ms that were waited")).map(|(ms, _)| ms.parse::<u64>());
        assert!(matches!(waited, Some(Ok(_))), "{request}: {said}");
    }
    drop(other.stdin.take());
    other.wait().unwrap();
    assert_eq!(rows(&mut wire, "SELECT count(*) AS n FROM users", json!([])), json!([{"n": 2}]));
}

#[test]
fn settings_name_the_file_and_others_by_name() {
    let project = shop();
    std::fs::create_dir(project.join("data")).unwrap();
    std::fs::rename(project.join("app.db"), project.join("data/shop.db")).unwrap();
    let count = "SELECT count(*) AS n FROM users";
    for variables in [
        ("DB_PATH", "data/shop.db"),
        ("DB_URL", "sqlite://data/shop.db"),
        ("CORETOOLS_DATABASES_CONNECTIONS", "shop=data/shop.db"),
    ] {
        let mut wire = serve(&project, &[variables]);
        assert_eq!(rows(&mut wire, count, json!([])), json!([{"n": 2}]), "{variables:?}");
    }
    let mut wire = serve(
        &project,
        &[("CORETOOLS_DATABASES_CONNECTIONS", "a=nothing.db,shop=$SHOP"), ("SHOP", "data/shop.db")],
    );
    let query = json!({"action": "query", "payload": count, "database": "shop"});
    assert_eq!(answer(&mut wire, query)["rows"], json!([{"n": 2}]));
    let said = error(&mut wire, json!({"action": "query", "payload": count, "database": "shp"}));
    assert!(said.contains("did you mean `shop`?"), "{said}");
}

#[test]
fn a_database_in_wal_mode_is_read_and_seeded_while_another_has_it_open() {
    let project = shop();
    let file = project.join("app.db");
    let script = "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\nc.execute('PRAGMA journal_mode=WAL')\nc.execute(\"INSERT INTO users (name) VALUES ('wal')\")\nc.commit()\nprint('ready', flush=True)\nsys.stdin.read()";
    let mut other = Command::new("python3")
        .args(["-c", script])
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(other.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let mut wire = serve(&project, &[]);
    assert_eq!(rows(&mut wire, "SELECT count(*) AS n FROM users", json!([])), json!([{"n": 3}]));
    let seed = json!({"action": "seed", "payload": "DELETE FROM users WHERE name = 'wal'"});
    assert_eq!(answer(&mut wire, seed)["affected"], 1);
    drop(other.stdin.take());
    other.wait().unwrap();
    assert_eq!(sqlite(&file, "SELECT count(*) FROM users;;PRAGMA integrity_check"), "(2,)\n('ok',)\n");
    assert_eq!(rows(&mut wire, "SELECT count(*) AS n FROM users", json!([])), json!([{"n": 2}]));
}

#[test]
fn a_file_that_is_no_database_is_an_error_in_words() {
    let project = Project::with([(
        "app.db",
        "this is a text, and longer than the header of a database would be: it has to say something",
    )]);
    let mut wire = serve(&project, &[]);
    let said = error(&mut wire, json!({"action": "query", "payload": "SELECT * FROM sqlite_schema"}));
    assert!(said.contains("not a database"), "{said}");
}

#[test]
fn a_role_that_may_only_read_databases_cannot_seed() {
    let project = shop();
    let mut wire = serve(&project, &[("CORETOOLS_ROLE", "architect")]);
    assert_eq!(rows(&mut wire, "SELECT count(*) AS n FROM users", json!([])), json!([{"n": 2}]));
    answer(&mut wire, json!({"action": "explain", "payload": "SELECT 1"}));
    let seed = json!({"action": "seed", "payload": "DELETE FROM users"});
    let said = wire.failure("db_bridge", seed);
    assert!(said.contains("databases are read only"), "{said}");
    assert_eq!(rows(&mut wire, "SELECT count(*) AS n FROM users", json!([])), json!([{"n": 2}]));
}

#[test]
fn a_file_that_is_named_without_its_folder_is_found_and_one_that_is_not_there_names_the_others() {
    let project = Project::empty();
    std::fs::create_dir(project.join("data")).unwrap();
    sqlite(&project.join("data/shop.db"), "CREATE TABLE t (a);;INSERT INTO t VALUES (7)");
    let mut wire = serve(&project, &[]);
    let query =
        |database: &str| json!({"action": "query", "payload": "SELECT a FROM t", "database": database});
    let found = answer(&mut wire, query("shop.db"));
    assert_eq!(
        (&found["rows"], &found["database"]),
        (&json!([{"a": 7}]), &json!("data/shop.db (there is no shop.db)"))
    );
    let said = error(&mut wire, query("app.db"));
    assert_eq!(
        said,
        "database file not found: app.db; the project has data/shop.db: give that as `database`, or leave `database` out"
    );
    // Nothing is written to a file that was not named.
    let said = error(&mut wire, json!({"action": "seed", "payload": "DELETE FROM t", "database": "shop.db"}));
    assert!(said.contains("the project has data/shop.db"), "{said}");
    assert_eq!(sqlite(&project.join("data/shop.db"), "SELECT count(*) FROM t"), "(1,)\n");
}

#[test]
fn the_schema_has_generated_columns_actions_of_keys_and_conditions_of_indexes() {
    let project = Project::empty();
    for statement in [
        "CREATE TABLE parent (id INTEGER PRIMARY KEY AUTOINCREMENT, n INT, twice INT GENERATED ALWAYS AS (n * 2) STORED,
         name TEXT AS (upper('a)' || n)))",
        "CREATE TABLE child (id INTEGER PRIMARY KEY, p INT REFERENCES parent (id) ON DELETE CASCADE ON UPDATE SET NULL, s TEXT,
         CONSTRAINT short CHECK (length(s) < 9))",
        "CREATE UNIQUE INDEX child_part ON child (p) WHERE s = 'zz'",
    ] {
        sqlite(&project.join("app.db"), statement);
    }
    let mut wire = serve(&project, &[]);
    let schema = answer(&mut wire, json!({"action": "schema"}));
    let [child, parent] = schema["tables"].as_array().unwrap().as_slice() else { panic!("{schema}") };
    assert_eq!(child["indexes"][0]["predicate"], "s = 'zz'");
    assert_eq!(child["checks"], json!([{"name": "short", "expression": "(length(s) < 9)"}]));
    assert_eq!(parent.get("checks"), None);
    let key = &child["foreign_keys"][0];
    assert_eq!((&key["on_delete"], &key["on_update"]), (&json!("cascade"), &json!("set null")));
    assert_eq!(child["columns"][0].get("identity"), None);
    let columns = &parent["columns"];
    assert_eq!((&columns[0]["identity"], &columns[1]["generated"]), (&json!("autoincrement"), &Value::Null));
    assert_eq!(columns[2]["generated"], "stored (n * 2)");
    assert_eq!(columns[3]["generated"], "virtual (upper('a)' || n))");
}

/// Leaves a database whose rollback journal names a super-journal: what a crash amid a transaction over two files leaves, and
/// what anybody who may write files can make.
const JOURNAL_WITH_SUPER_JOURNAL: &str = r#"
import sqlite3, struct, sys
path, named = sys.argv[1], sys.argv[2].encode()
c = sqlite3.connect(path, isolation_level=None)
c.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1); PRAGMA cache_size = 1; BEGIN; UPDATE t SET a = 2")
c.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 200)
journal, database = (open(path + end, "rb").read() for end in ("-journal", ""))
c.execute("ROLLBACK")
c.close()
sector, page = struct.unpack(">II", journal[20:28])
records = (len(journal) - sector) // (page + 8)
journal = journal[:8] + struct.pack(">i", records) + journal[12:sector + records * (page + 8)]
journal += struct.pack(">I", 0x40000000 // page + 1) + named
journal += struct.pack(">II", len(named), sum(named)) + bytes.fromhex("d9d505f920a163d7")
open(path, "wb").write(database)
open(path + "-journal", "wb").write(journal)
"#;

#[test]
fn a_journal_has_no_other_file_deleted() {
    let project = Project::empty();
    let elsewhere = Project::with([("theirs.txt", "kept\n")]);
    let theirs = elsewhere.join("theirs.txt");
    let mut wire = serve(&project, &[]);
    for (name, action, payload) in
        [("seed.db", "seed", "INSERT INTO t VALUES (5)"), ("query.db", "query", "SELECT count(*) FROM t")]
    {
        let file = project.join(name);
        let made = Command::new("python3")
            .args(["-c", JOURNAL_WITH_SUPER_JOURNAL])
            .arg(&file)
            .arg(&theirs)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let journal = project.join(&format!("{name}-journal"));
        let before = std::fs::read(&journal).unwrap();
        let told = error(&mut wire, json!({"action": action, "payload": payload, "database": name}));
        assert!(told.contains("a rollback journal lies beside the file"), "{told}");
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "kept\n", "{name}");
        // The program that the transaction belongs to can still roll it back.
        assert_eq!(std::fs::read(&journal).unwrap(), before, "{name}");
    }
    // With a program that may write there, the same journal does what it says: the test tests something.
    sqlite(&project.join("seed.db"), "SELECT count(*) FROM t");
    assert!(!theirs.exists());
}

#[test]
fn a_statement_that_cannot_be_prepared_yet_holds_up_nobody() {
    let project = shop();
    let mut holder = lock_holder(&project.join("app.db"));
    let mut wire = serve(&project, &[]);
    let waiting = json!({"action": "query", "payload": "SELECT * FROM users", "timeout_ms": 60_000});
    let waiting = wire.ask("tools/call", json!({"name": "db_bridge", "arguments": waiting}));
    // To prepare it, SQLite reads the schema, for which it waits some seconds. The server has one thread for the protocol.
    wire.call("file_exists", json!({"path": "app.db"}));
    assert!(wire.others().is_empty(), "the statement was answered first");
    let answered = wire.answer(waiting);
    assert!(answered.to_string().contains("the database file is locked"), "{answered}");
    drop(holder.stdin.take());
    holder.wait().unwrap();
}

/// Makes a database in WAL mode whose log holds all of its rows, says so, and keeps it open until its input ends.
const LARGE_LOG: &str = r#"
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute("PRAGMA journal_mode=WAL")
c.execute("PRAGMA wal_autocheckpoint=0")
c.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)")
c.execute("BEGIN")
c.executemany("INSERT INTO t VALUES (?, ?)", ((i, "x" * 3000) for i in range(8000)))
c.execute("COMMIT")
print("ready", flush=True)
sys.stdin.read()
"#;

#[test]
#[cfg(target_os = "linux")]
fn a_shared_index_that_is_cut_ends_the_statement_and_not_the_server() {
    let project = Project::empty();
    let file = project.join("app.db");
    let mut other = Command::new("python3")
        .args(["-c", LARGE_LOG])
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(other.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let mut wire = serve(&project, &[]);
    // It reads pages all over the table for minutes, each of which SQLite finds by the index that it has mapped.
    let scattered = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000) \
                     SELECT sum(length((SELECT body FROM t WHERE id = (i * 7919) % 8000))) AS n FROM n";
    let query = json!({"action": "query", "payload": scattered, "timeout_ms": 60_000});
    let id = wire.ask("tools/call", json!({"name": "db_bridge", "arguments": query}));
    let maps = format!("/proc/{}/maps", wire.pid());
    wait_until(Duration::from_secs(20), "the index is mapped", || {
        std::fs::read_to_string(&maps).unwrap().contains("app.db-shm")
    });
    wait_until(Duration::from_secs(20), "the statement runs", || !rests(&wire));
    std::fs::File::options().write(true).open(project.join("app.db-shm")).unwrap().set_len(0).unwrap();
    let answered = wire.answer(id).to_string();
    assert!(answered.contains("another program cut the `-shm` file"), "{answered}");
    drop(other.stdin.take());
    other.wait().unwrap();
    assert_eq!(rows(&mut wire, "SELECT 1 AS n", json!([])), json!([{"n": 1}]));
    // A program that has the file to itself makes the index anew from the log.
    assert_eq!(rows(&mut wire, "SELECT count(*) AS n FROM t", json!([])), json!([{"n": 8000}]));
}
