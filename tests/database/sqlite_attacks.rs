//! Attacks on SQLite.

use crate::attack::{AttackOutcome, DatabaseAttack, run};
use crate::serve;
use crate::sqlite::{shop, sqlite};
use AttackOutcome::{Ddl, Harmless, Refused};

const ATTACKS: &[DatabaseAttack] = &[
    // What defines, in all the ways it is spelt.
    ("query", "DROP TABLE users", Ddl),
    ("seed", "DROP TABLE users", Ddl),
    ("query", "drop/**/table/**/users", Ddl),
    ("query", "/* SELECT */ DROP TABLE users", Ddl),
    ("query", "-- SELECT\nDROP TABLE users", Ddl),
    ("seed", "ALTER TABLE users ADD COLUMN x", Ddl),
    ("seed", "ALTER TABLE users RENAME TO x", Ddl),
    ("seed", "CREATE TABLE x (a)", Ddl),
    ("seed", "CREATE TABLE x AS SELECT * FROM users", Ddl),
    ("query", "CREATE TEMP TABLE x (a)", Ddl),
    ("seed", "CREATE TEMP TRIGGER x AFTER INSERT ON users BEGIN DELETE FROM posts; END", Ddl),
    ("seed", "CREATE VIEW x AS SELECT 1", Ddl),
    ("seed", "CREATE INDEX x ON users (born)", Ddl),
    ("seed", "CREATE TRIGGER x AFTER INSERT ON users BEGIN DELETE FROM posts; END", Ddl),
    ("seed", "CREATE VIRTUAL TABLE x USING fts5(a)", Ddl),
    ("query", "CREATE VIRTUAL TABLE temp.x USING dbstat", Ddl),
    ("seed", "DROP VIEW authors", Ddl),
    ("seed", "DROP INDEX by_name", Ddl),
    ("seed", "DROP TRIGGER logged", Ddl),
    ("seed", "REINDEX", Ddl),
    ("seed", "ANALYZE", Ddl),
    ("query", "VACUUM", Ddl),
    ("seed", "VACUUM", Ddl),
    ("query", "VACUUM INTO 'stolen.db'", Ddl),
    ("seed", "VACUUM INTO 'stolen.db'", Ddl),
    ("query", "EXPLAIN DROP TABLE users", Ddl),
    ("explain", "DROP TABLE users", Ddl),
    // More than one.
    ("query", "SELECT 1; DROP TABLE users", Refused),
    ("query", "SELECT 1; DELETE FROM users", Refused),
    ("query", "SELECT 1; SELECT 2", Refused),
    ("query", "SELECT 1;;;; SELECT 2 -- x", Refused),
    ("query", "SELECT 1; /* x */ DELETE FROM users; --", Refused),
    ("seed", "INSERT INTO users (name) VALUES ('x'); DROP TABLE users", Refused),
    ("seed", "INSERT INTO users (name) VALUES ('x'); COMMIT; DELETE FROM posts", Refused),
    ("seed", "COMMIT; DELETE FROM users", Refused),
    ("explain", "SELECT 1; DELETE FROM users", Refused),
    ("query", "", Refused),
    ("query", " -- nothing", Refused),
    ("query", ";", Refused),
    ("query", "SELECT 1\0; DROP TABLE users", Refused),
    // Writing by way of reading.
    ("query", "INSERT INTO users (name) VALUES ('x')", Refused),
    ("query", "UPDATE users SET name = 'x'", Refused),
    ("query", "DELETE FROM users", Refused),
    ("query", "REPLACE INTO users (id, name) VALUES (1, 'x')", Refused),
    ("query", "WITH x AS (SELECT 1) DELETE FROM users", Refused),
    ("query", "WITH x AS (SELECT 1) INSERT INTO log SELECT * FROM x", Refused),
    ("query", "INSERT INTO log VALUES ('x') RETURNING *", Refused),
    ("query", "DELETE FROM users RETURNING *", Refused),
    ("query", "INSERT INTO users (id, name) VALUES (1, 'x') ON CONFLICT DO UPDATE SET name = 'x'", Refused),
    ("query", "EXPLAIN DELETE FROM users", Refused),
    ("query", "EXPLAIN QUERY PLAN DELETE FROM users", Refused),
    ("explain", "DELETE FROM users", Harmless),
    ("explain", "QUERY PLAN DELETE FROM users", Refused),
    // Other files.
    ("query", "ATTACH DATABASE 'inside.db' AS x", Refused),
    ("query", "ATTACH 'new.db' AS x", Refused),
    ("seed", "ATTACH 'new.db' AS x", Refused),
    ("query", "ATTACH 'file:new.db?mode=rwc' AS x", Refused),
    ("query", "ATTACH ':memory:' AS x", Refused),
    ("query", "DETACH main", Refused),
    ("query", "SELECT load_extension('/tmp/x.so')", Refused),
    ("seed", "INSERT INTO log SELECT load_extension('/tmp/x.so')", Refused),
    ("query", "SELECT readfile('/etc/passwd')", Refused),
    ("query", "SELECT writefile('stolen.txt', 'x')", Refused),
    ("query", "SELECT edit('x')", Refused),
    ("query", "SELECT fts3_tokenizer('simple')", Refused),
    ("query", "SELECT fts3_tokenizer('simple', x'0000000000000000')", Refused),
    ("query", "SELECT * FROM sqlite_dbpage", Refused),
    // The schema behind the tables.
    ("seed", "DELETE FROM sqlite_schema", Refused),
    ("seed", "UPDATE sqlite_master SET sql = 'x'", Refused),
    ("seed", "INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 0, 'CREATE TABLE x (a)')", Refused),
    ("seed", "DELETE FROM sqlite_sequence", Refused),
    ("seed", "UPDATE sqlite_temp_schema SET sql = 'x'", Refused),
    ("query", "SELECT name FROM sqlite_schema", Harmless),
    // Switches.
    ("query", "PRAGMA query_only = OFF", Refused),
    ("query", "PRAGMA query_only(0)", Refused),
    ("query", "PRAGMA writable_schema = ON", Refused),
    ("seed", "PRAGMA writable_schema = ON", Refused),
    ("query", "PRAGMA journal_mode = DELETE", Refused),
    ("seed", "PRAGMA journal_mode = OFF", Refused),
    ("query", "PRAGMA user_version = 7", Refused),
    ("seed", "PRAGMA user_version = 7", Refused),
    ("query", "PRAGMA temp_store_directory = '/tmp'", Refused),
    ("query", "PRAGMA trusted_schema = ON", Refused),
    ("query", "PRAGMA foreign_keys = OFF", Refused),
    ("query", "PRAGMA wal_checkpoint(TRUNCATE)", Refused),
    ("query", "PRAGMA optimize", Refused),
    ("query", "PRAGMA incremental_vacuum", Refused),
    ("query", "PRAGMA database_list", Refused),
    ("query", "PRAGMA mmap_size = 100000000", Refused),
    ("query", "PRAGMA hard_heap_limit = 0", Refused),
    ("query", "PRAGMA temp.user_version = 1", Refused),
    ("query", "SELECT * FROM pragma_user_version(7)", Refused),
    ("query", "SELECT * FROM pragma_query_only('OFF')", Refused),
    ("query", "SELECT * FROM pragma_database_list", Refused),
    ("query", "PRAGMA table_info(users)", Harmless),
    ("query", "PRAGMA integrity_check", Harmless),
    // Transactions.
    ("query", "BEGIN", Refused),
    ("query", "BEGIN EXCLUSIVE", Refused),
    ("seed", "BEGIN", Refused),
    ("seed", "COMMIT", Refused),
    ("seed", "ROLLBACK", Refused),
    ("query", "SAVEPOINT x", Refused),
    ("seed", "RELEASE x", Refused),
    ("query", "END", Refused),
    // Too much of something.
    ("query", "SELECT hex(zeroblob(900000000))", Refused),
    ("query", "SELECT printf('%.*c', 500000000, 'x')", Harmless),
    ("query", "SELECT replace(hex(zeroblob(8000000)), '00', hex(zeroblob(1000)))", Refused),
    (
        "query",
        "SELECT group_concat(hex(zeroblob(1000000))) FROM users a, users b, users c, users d, users e",
        Refused,
    ),
    ("seed", "INSERT INTO users (name) SELECT hex(randomblob(10)) || 1/0 FROM nowhere", Refused),
    // Nothing but odd.
    ("query", "SELECT 'DROP TABLE users'", Harmless),
    ("query", "SELECT \"DROP TABLE users\" FROM users", Refused),
    ("query", "(SELECT 1)", Refused),
    ("query", "VALUES (1), (2)", Harmless),
    ("query", "SELECT * FROM authors", Harmless),
];

#[test]
fn no_attack_on_sqlite_changes_or_reaches_anything() {
    assert!(ATTACKS.len() >= 60);
    let project = shop();
    sqlite(&project.join("inside.db"), "CREATE TABLE hidden (a)");
    let mut wire = serve(&project, &[]);
    run(&mut wire, "", ATTACKS, || {
        let mut files: Vec<_> = std::fs::read_dir(project.path())
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                format!("{} {:?}", path.display(), std::fs::read(&path).unwrap())
            })
            .collect();
        files.sort();
        files.concat()
    });
    assert!(!std::path::Path::new("/tmp/new.db").exists());
}

/// A stranger's file may hold views and triggers, which run in whoever reads it.
#[test]
fn a_hostile_file_reaches_nothing_through_its_own_views_and_triggers() {
    let project = shop();
    let file = project.join("app.db");
    sqlite(
        &file,
        "CREATE VIEW bad AS SELECT load_extension('/tmp/x.so') AS a;;\
         CREATE VIEW broken AS SELECT 1;;\
         CREATE TABLE \"x\"\"; DROP TABLE users; --\" (a);;\
         CREATE TRIGGER evil AFTER UPDATE ON users BEGIN DELETE FROM posts; SELECT load_extension('/tmp/x.so'); END",
    );
    let mut wire = serve(&project, &[]);
    run(
        &mut wire,
        "",
        &[
            ("query", "SELECT * FROM bad", Refused),
            ("seed", "UPDATE users SET name = name || 'x'", Refused),
            ("query", "SELECT * FROM \"x\"\"; DROP TABLE users; --\"", Harmless),
            ("schema", "", Harmless),
        ],
        || format!("{:?}", std::fs::read(&file).unwrap()),
    );
}
