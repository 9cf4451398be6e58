//! MariaDB: what the tool answers, that the server is really told to stop, and attacks.

use crate::attack::{AttackOutcome, DatabaseAttack, run};
use crate::servers::{PASSWORD, TestDatabase, mariadb};
use crate::{answer, error, rows, serve};
use AttackOutcome::{Ddl, Harmless, Refused};
use integration_tests::{Project, Wire, wait_until};
use serde_json::{Value, json};
use std::time::Duration;

/// A server with tables, and the user `app`, which may do everything with them and nothing else.
fn shop() -> Option<TestDatabase> {
    let server = mariadb()?;
    server.sql(&format!(
        "CREATE TABLE users (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50) NOT NULL DEFAULT 'nobody' UNIQUE, born DATE);
         CREATE TABLE posts (id BIGINT PRIMARY KEY, author INT, body BLOB, FOREIGN KEY (author) REFERENCES users (id));
         CREATE TABLE old (a INT) ENGINE = MyISAM;
         CREATE VIEW authors AS SELECT DISTINCT author FROM posts;
         CREATE SEQUENCE numbers;
         INSERT INTO users (name, born) VALUES ('ann', '1990-01-02'), ('bob', NULL);
         INSERT INTO posts VALUES (1, 1, x'00ff');
         DELIMITER //
         CREATE FUNCTION sneaky() RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO users (name) VALUES ('sneaky'); RETURN 1; END//
         CREATE PROCEDURE wipe() BEGIN DELETE FROM posts; END//
         DELIMITER ;
         CREATE USER app@localhost IDENTIFIED BY '{PASSWORD}';
         GRANT ALL ON shop.* TO app@localhost;
         CREATE USER boss@localhost IDENTIFIED BY '{PASSWORD}';
         GRANT ALL ON *.* TO boss@localhost WITH GRANT OPTION"
    ));
    Some(server)
}

fn connect(server: &TestDatabase, user: &str) -> (Project, Wire) {
    let project = Project::empty();
    let wire = serve(&project, &[("DB_URL", &server.url(user))]);
    (project, wire)
}

#[test]
fn the_schema_of_mariadb_has_tables_columns_keys_and_indexes() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "app");
    let mut schema = answer(&mut wire, json!({"action": "schema", "payload": "*s"}));
    schema["elapsed_ms"] = Value::Null;
    for table in schema["tables"].as_array_mut().unwrap() {
        // InnoDB counts when it likes.
        assert!(table["type"] == "view" || table["row_estimate"].is_i64(), "{table}");
        table.as_object_mut().unwrap().remove("row_estimate");
    }
    insta::assert_json_snapshot!("mariadb_schema", schema);
}

/// Interrupted, BENCHMARK returns a value as if it had finished, and the statement goes on with that.
#[test]
fn an_interrupted_benchmark_of_mariadb_is_a_failure_and_changes_nothing() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "app");
    let endless = "BENCHMARK(1000000000000, MD5('a'))";
    let query = json!({"action": "query", "payload": format!("SELECT {endless} AS n"), "timeout_ms": 500});
    let said = error(&mut wire, query);
    assert!(said.starts_with("stopped after 500 ms"), "{said}");
    let insert = format!("INSERT INTO users (name) SELECT CONCAT('n', COALESCE({endless}, 'x'))");
    let said = error(&mut wire, json!({"action": "seed", "payload": insert, "timeout_ms": 500}));
    assert!(said.starts_with("stopped after 500 ms"), "{said}");
    wait_until(Duration::from_secs(20), "the statements end", || {
        server.sql("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%BENCHMARK%' AND id <> CONNECTION_ID()")
            == "0"
    });
    assert_eq!(server.sql("SELECT COUNT(*) FROM users"), "2");
}

#[test]
fn every_value_of_mariadb_survives_there_and_back() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "app");
    server.sql(
        "CREATE TABLE kinds (a TINYINT, b BIGINT UNSIGNED, c DOUBLE, d DECIMAL(40,10), e DATE, f DATETIME(3), g TIME,
            h YEAR, i BLOB, j JSON, k ENUM('x', 'y'), l BIT(10), m TEXT, n VARBINARY(4), o TIMESTAMP NULL, p BOOLEAN, q SET('a', 'b'));
         INSERT INTO kinds VALUES (-1, 18446744073709551615, 1.5, 123456789012345678901234567890.1234567890, '2024-02-29',
            '2024-02-29 12:00:00.123', '-12:30:00', 2024, x'00ff', '{\"a\":[1]}', 'y', b'1000000001', 'ä😀', x'41ff', NULL, TRUE, 'a,b')",
    );
    let found = rows(&mut wire, "SELECT * FROM kinds", json!([]));
    let expected = json!([{
        "a": -1, "b": "18446744073709551615", "c": 1.5, "d": "123456789012345678901234567890.1234567890",
        "e": "2024-02-29", "f": "2024-02-29 12:00:00.123", "g": "-12:30:00", "h": 2024,
        "i": {"$base64": "AP8=", "bytes": 2}, "j": "{\"a\":[1]}", "k": "y", "l": 513, "m": "ä😀",
        "n": {"$base64": "Qf8=", "bytes": 2}, "o": null, "p": 1, "q": "a,b"
    }]);
    assert_eq!(found, expected);
    // No byte of 0x80 or more is text.
    server.sql(
        "CREATE TABLE flags (a BIT(8), b BIT(16), c BIT(64), d BIT(1));
         INSERT INTO flags VALUES (b'10000000', b'1111111100000000', ~0, b'1')",
    );
    assert_eq!(
        rows(&mut wire, "SELECT * FROM flags", json!([])),
        json!([{"a": 128, "b": 65280, "c": "18446744073709551615", "d": 1}])
    );
    let bound =
        json!([1, "9007199254740993", 1.5, "x'); DROP TABLE users; --", null, true, {"$base64": "AP8="}]);
    let found = rows(
        &mut wire,
        "SELECT ? AS a, CAST(? AS SIGNED) AS b, ? AS c, ? AS d, ? AS e, ? AS f, ? AS g",
        bound,
    );
    let row = &found[0];
    assert_eq!(
        (&row["a"], &row["b"], &row["d"]),
        (&json!(1), &json!("9007199254740993"), &json!("x'); DROP TABLE users; --"))
    );
    assert_eq!((&row["c"], &row["e"], &row["f"]), (&json!(1.5), &json!(null), &json!(1)));
    assert_eq!(row["g"]["$base64"], "AP8=", "{row}");
    assert_eq!(rows(&mut wire, "SELECT name FROM users WHERE id = ?", json!([1])), json!([{"name": "ann"}]));
    assert_eq!(rows(&mut wire, "SELECT 1 AS a, 2 AS a", json!([])), json!([{"a": 1, "a_2": 2}]));
}

#[test]
fn a_seed_of_mariadb_is_all_or_nothing_and_can_be_tried() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "app");
    let insert = "INSERT INTO users (name, born) VALUES (?, ?)";
    let two = json!({"action": "seed", "payload": insert, "params": [["x", "2000-01-01"], ["y", null]]});
    let mut tried = two.clone();
    tried["dry_run"] = true.into();
    assert_eq!(answer(&mut wire, tried)["affected"], 2);
    let count = || server.sql("SELECT COUNT(*) FROM users");
    assert_eq!(count(), "2");
    let said = error(
        &mut wire,
        json!({"action": "seed", "payload": insert, "params": [["x", null], ["ANN", null]]}),
    );
    assert!(said.contains("Duplicate"), "{said}");
    assert_eq!(count(), "2");
    assert_eq!(answer(&mut wire, two)["affected"], 2);
    assert_eq!(count(), "4");
    let plan = answer(
        &mut wire,
        json!({"action": "explain", "payload": "SELECT * FROM users WHERE name = ?", "params": ["x"]}),
    );
    assert_eq!(plan["rows"][0]["table"], "users", "{plan}");
    assert_eq!(count(), "4");
    let untried = json!({"action": "seed", "payload": "INSERT INTO old VALUES (1)", "dry_run": true});
    let said = error(&mut wire, untried);
    assert!(said.contains("could NOT be taken back"), "{said}");
    let page = answer(
        &mut wire,
        json!({"action": "query", "payload": "SELECT seq FROM seq_1_to_100000000", "limit": 3}),
    );
    assert_eq!((page["row_count"].as_u64(), page["truncated"].as_bool()), (Some(3), Some(true)));
}

#[test]
fn what_mariadb_warns_of_is_told() {
    let Some(server) = shop() else { return };
    server.sql("CREATE TABLE w (y YEAR, e ENUM('a', 'b'))");
    let (_project, mut wire) = connect(&server, "app");
    let insert = "INSERT IGNORE INTO w (y, e) VALUES (1800, ?)";
    let seeded = answer(&mut wire, json!({"action": "seed", "payload": insert, "params": [["zz"]]}));
    let notes = seeded["notes"].to_string();
    assert!(notes.contains("Out of range value for column 'y'") && notes.contains("column 'e'"), "{seeded}");
    let fine = answer(
        &mut wire,
        json!({"action": "seed", "payload": insert.replace("1800", "2000"), "params": [["a"]]}),
    );
    assert_eq!(fine.get("notes"), None, "{fine}");
    let cast = |sql: &str| json!({"action": "query", "payload": sql});
    let told = answer(&mut wire, cast("SELECT CAST('abc' AS SIGNED) AS n"));
    assert!(told["notes"].to_string().contains("Truncated incorrect INTEGER value: 'abc'"), "{told}");
    assert_eq!(answer(&mut wire, cast("SELECT CAST('7' AS SIGNED) AS n")).get("notes"), None);
}

/// After the rows of RETURNING the server sends no number.
#[test]
fn a_seed_of_mariadb_with_returning_counts_its_rows() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "app");
    let mut seed = |sql: &str, params: Value, dry_run: bool| {
        answer(&mut wire, json!({"action": "seed", "payload": sql, "params": params, "dry_run": dry_run}))
    };
    let insert = "INSERT INTO users (name) VALUES (?) RETURNING id, name";
    let inserted = seed(insert, json!([["x"], ["y"]]), false);
    assert_eq!((inserted["affected"].as_u64(), inserted["last_insert_id"].as_u64()), (Some(2), Some(4)));
    assert_eq!(inserted["rows"], json!([{"id": 3, "name": "x"}, {"id": 4, "name": "y"}]));
    let delete = "DELETE FROM users WHERE name IN ('x', 'y') RETURNING id";
    assert_eq!(seed(delete, json!([]), true)["affected"], 2);
    assert_eq!(seed(delete, json!([]), false)["affected"], 2);
    assert_eq!(seed(delete, json!([]), false)["affected"], 0);
    assert_eq!(
        seed("REPLACE INTO users (id, name) VALUES (9, 'z') RETURNING id", json!([]), false)["affected"],
        1
    );
    assert_eq!(server.sql("SELECT COUNT(*) FROM users"), "3");
}

#[test]
fn a_failed_seed_of_mariadb_says_what_a_table_without_transactions_keeps() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "app");
    server.sql("CREATE TABLE kept (id INT PRIMARY KEY) ENGINE = MyISAM");
    let insert =
        json!({"action": "seed", "payload": "INSERT INTO kept VALUES (?)", "params": [[1], [2], [2]]});
    let said = error(&mut wire, insert);
    assert!(said.contains("Duplicate entry") && said.contains("could NOT be taken back"), "{said}");
    assert_eq!(server.sql("SELECT COUNT(*) FROM kept"), "2");
    let first = json!({"action": "seed", "payload": "INSERT INTO kept VALUES (?)", "params": [[2], [3]]});
    let said = error(&mut wire, first);
    assert!(said.contains("Duplicate entry") && !said.contains("could NOT"), "{said}");
}

#[test]
fn a_session_of_mariadb_keeps_the_time_zone_of_the_server() {
    let Some(server) = shop() else { return };
    server.sql("SET GLOBAL time_zone = '-05:00'; CREATE TABLE times (id INT, at TIMESTAMP NULL)");
    let (_project, mut wire) = connect(&server, "app");
    answer(
        &mut wire,
        json!({"action": "seed", "payload": "INSERT INTO times VALUES (1, '2026-11-23 10:00:00')"}),
    );
    assert_eq!(server.sql("SELECT UNIX_TIMESTAMP(at) FROM times"), "1795446000");
    let read = answer(&mut wire, json!({"action": "query", "payload": "SELECT at FROM times"}));
    assert_eq!(read["rows"], json!([{"at": "2026-11-23 10:00:00"}]));
    assert!(read["notes"].to_string().contains("-05:00"), "{read}");
}

#[test]
fn mariadb_is_told_to_stop_at_the_time_limit_when_cancelled_and_when_the_client_leaves() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "app");
    let working =
        || server.sql("SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app'") != "0";
    let said =
        error(&mut wire, json!({"action": "query", "payload": "SELECT SLEEP(500)", "timeout_ms": 500}));
    assert!(said.starts_with("stopped after 500 ms"), "{said}");
    wait_until(Duration::from_secs(20), "the statement ends", || !working());
    let long = json!({"name": "db_bridge", "arguments": {"action": "query", "payload": "SELECT SLEEP(500)", "timeout_ms": 600_000}});
    let sleeping = || {
        server.sql("SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User sleep'") != "0"
    };
    let id = wire.ask("tools/call", long.clone());
    wait_until(Duration::from_secs(20), "the statement runs", sleeping);
    wire.notify("notifications/cancelled", json!({"requestId": id}));
    wait_until(Duration::from_secs(20), "the cancelled statement ends", || !working());
    // Wherever it was: connecting, between two statements, in one.
    for pause in (0..50).step_by(5) {
        let id = wire.ask("tools/call", long.clone());
        std::thread::sleep(Duration::from_millis(pause));
        wire.notify("notifications/cancelled", json!({"requestId": id}));
    }
    wait_until(Duration::from_secs(20), "all that was cancelled ends", || !working());
    wire.ask("tools/call", long);
    wait_until(Duration::from_secs(20), "the statement runs", sleeping);
    wire.close_input();
    wait_until(Duration::from_secs(20), "the statement ends with the client", || !working());
}

const ATTACKS: &[DatabaseAttack] = &[
    // What defines.
    ("query", "DROP TABLE users", Ddl),
    ("seed", "DROP TABLE users", Ddl),
    ("query", "/* SELECT */ DROP TABLE users", Ddl),
    ("query", "/*!50000 DROP TABLE users */", Ddl),
    ("query", "/*M!100000 DROP TABLE users */", Ddl),
    ("query", "# SELECT\nDROP TABLE users", Ddl),
    ("seed", "CREATE TABLE x (a INT)", Ddl),
    ("query", "CREATE TEMPORARY TABLE x (a INT)", Ddl),
    ("seed", "CREATE TABLE x SELECT 1", Ddl),
    ("seed", "ALTER TABLE users ADD x INT", Ddl),
    ("seed", "TRUNCATE users", Ddl),
    ("query", "TRUNCATE TABLE users", Ddl),
    ("seed", "RENAME TABLE users TO x", Ddl),
    ("seed", "CREATE VIEW x AS SELECT 1", Ddl),
    ("seed", "CREATE FUNCTION x() RETURNS INT RETURN 1", Ddl),
    ("seed", "CREATE TRIGGER x BEFORE INSERT ON users FOR EACH ROW SET @a = 1", Ddl),
    ("seed", "GRANT ALL ON shop.* TO boss@localhost", Ddl),
    ("seed", "REVOKE ALL ON shop.* FROM app@localhost", Ddl),
    ("query", "ANALYZE TABLE users", Ddl),
    ("query", "OPTIMIZE TABLE users", Ddl),
    ("seed", "DROP DATABASE shop", Ddl),
    ("seed", "CREATE USER x", Ddl),
    ("explain", "DROP TABLE users", Ddl),
    // More than one.
    ("query", "SELECT 1; DROP TABLE users", Refused),
    ("query", "SELECT 1; COMMIT; DELETE FROM users", Refused),
    ("query", "COMMIT; SET SESSION TRANSACTION READ WRITE; DELETE FROM users", Refused),
    ("seed", "INSERT INTO users (name) VALUES ('x'); DROP TABLE users", Refused),
    ("explain", "SELECT 1; DELETE FROM users", Refused),
    ("query", "", Refused),
    ("query", "-- nothing", Refused),
    ("query", "SELECT 1 /*! ; DROP TABLE users */", Refused),
    // Out of the subquery.
    ("query", "SELECT 1) AS x INTO OUTFILE '/tmp/ct-stolen' -- ", Refused),
    ("query", "SELECT 1) AS x; DELETE FROM users -- ", Refused),
    ("query", "SELECT 1) AS x, (SELECT 2", Refused),
    ("query", "SELECT 1 /* ) AS x", Harmless),
    ("query", "SELECT 1 -- ", Harmless),
    ("query", "SELECT 1 #", Harmless),
    // Writing by way of reading.
    ("query", "INSERT INTO users (name) VALUES ('x')", Refused),
    ("query", "INSERT INTO users (name) VALUES ('x') RETURNING id", Refused),
    ("query", "REPLACE INTO users (id, name) VALUES (1, 'x') RETURNING id", Refused),
    ("query", "UPDATE users SET name = 'x'", Refused),
    ("query", "DELETE FROM posts RETURNING *", Refused),
    ("query", "/*!50000 DELETE */ FROM posts", Refused),
    ("query", "WITH x AS (SELECT 1) DELETE FROM posts", Refused),
    ("query", "EXPLAIN DELETE FROM posts", Refused),
    ("query", "ANALYZE DELETE FROM posts", Ddl),
    ("query", "ANALYZE FORMAT=JSON DELETE FROM posts", Ddl),
    ("explain", "ANALYZE DELETE FROM posts", Refused),
    ("explain", "FORMAT=JSON DELETE FROM posts", Refused),
    ("explain", "DELETE FROM posts", Harmless),
    ("query", "SELECT sneaky()", Refused),
    ("query", "SELECT NEXTVAL(numbers)", Refused),
    ("query", "SELECT NEXT VALUE FOR numbers", Refused),
    ("query", "SELECT SETVAL(numbers, 99)", Refused),
    ("query", "SELECT * FROM users FOR UPDATE", Harmless),
    ("query", "SELECT name INTO @a FROM users LIMIT 1", Refused),
    ("query", "SELECT @a := 1", Harmless),
    ("query", "CALL wipe()", Refused),
    ("seed", "CALL wipe()", Refused),
    ("query", "DO SLEEP(0)", Refused),
    ("query", "EXECUTE IMMEDIATE 'DELETE FROM posts'", Refused),
    ("seed", "EXECUTE IMMEDIATE 'DROP TABLE posts'", Refused),
    ("query", "PREPARE x FROM 'DELETE FROM posts'", Refused),
    ("query", "BEGIN NOT ATOMIC DELETE FROM posts; END", Refused),
    ("seed", "BEGIN NOT ATOMIC DROP TABLE posts; END", Refused),
    ("query", "HANDLER users OPEN", Refused),
    ("query", "LOCK TABLES users WRITE", Refused),
    ("query", "UNLOCK TABLES", Refused),
    ("query", "FLUSH TABLES", Refused),
    ("query", "RESET QUERY CACHE", Refused),
    // The server's files and programs.
    ("query", "SELECT * FROM users INTO OUTFILE '/tmp/ct-stolen'", Refused),
    ("query", "SELECT 'x' INTO DUMPFILE '/tmp/ct-stolen'", Refused),
    ("query", "(SELECT 'x' INTO OUTFILE '/tmp/ct-stolen')", Refused),
    ("query", "SELECT 1 UNION SELECT 2 INTO OUTFILE '/tmp/ct-stolen'", Refused),
    ("seed", "SELECT 'x' INTO OUTFILE '/tmp/ct-stolen'", Refused),
    ("query", "SELECT LOAD_FILE('/etc/passwd')", Harmless),
    ("query", "LOAD DATA INFILE '/etc/passwd' INTO TABLE users", Refused),
    ("query", "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE users", Refused),
    ("seed", "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE users", Refused),
    ("seed", "LOAD XML LOCAL INFILE '/etc/passwd' INTO TABLE users", Refused),
    ("query", "INSTALL SONAME 'x'", Refused),
    // Who, and how much.
    ("query", "SET GLOBAL max_connections = 1", Refused),
    ("query", "SET SESSION TRANSACTION READ WRITE", Refused),
    ("query", "SET @@tx_read_only = 0", Refused),
    ("query", "SET STATEMENT tx_read_only = 0 FOR DELETE FROM posts", Refused),
    ("query", "SET STATEMENT max_statement_time = 0 FOR SELECT 1", Refused),
    ("query", "SET ROLE x", Refused),
    ("query", "SET PASSWORD = PASSWORD('x')", Refused),
    ("query", "KILL 1", Refused),
    ("query", "SHUTDOWN", Refused),
    ("query", "USE mysql", Refused),
    ("query", "CHANGE MASTER TO MASTER_HOST = 'x'", Refused),
    ("query", "PURGE BINARY LOGS TO 'x'", Refused),
    ("query", "SELECT GET_LOCK('x', 0)", Harmless),
    // Transactions.
    ("query", "BEGIN", Refused),
    ("query", "START TRANSACTION READ WRITE", Refused),
    ("query", "COMMIT", Refused),
    ("query", "ROLLBACK", Refused),
    ("query", "SAVEPOINT x", Refused),
    ("query", "XA START 'x'", Refused),
    ("seed", "COMMIT", Refused),
    ("seed", "ROLLBACK", Refused),
    ("seed", "SHUTDOWN", Refused),
    ("seed", "FLUSH TABLES", Refused),
    ("seed", "START SLAVE", Refused),
    ("explain", "COMMIT", Refused),
    ("seed", "SELECT 1", Refused),
    // Nothing but odd.
    ("query", "SELECT 'DROP TABLE users'", Harmless),
    ("query", "VALUES (1), (2)", Harmless),
    ("query", "SHOW TABLES", Refused),
    ("query", "DESCRIBE users", Refused),
];

/// All that an attack could change.
fn state(server: &TestDatabase) -> String {
    assert!(!std::path::Path::new("/tmp/ct-stolen").exists(), "a file was made");
    server.sql(
        "SELECT GROUP_CONCAT(CONCAT(id, name, COALESCE(born, '')) ORDER BY id) FROM users; SELECT COUNT(*) FROM posts;
         SELECT GROUP_CONCAT(table_name ORDER BY table_name) FROM information_schema.tables WHERE table_schema IN ('shop', 'test');
         SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'shop';
         SELECT COUNT(*) FROM information_schema.routines; SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = 'shop';
         SELECT next_not_cached_value FROM numbers; SELECT COUNT(*), MD5(GROUP_CONCAT(Priv ORDER BY User)) FROM mysql.global_priv;
         SELECT COUNT(*) FROM mysql.db; SELECT @@GLOBAL.max_connections; SELECT @@GLOBAL.tx_read_only",
    )
}

#[test]
fn no_attack_on_mariadb_changes_or_reaches_anything() {
    assert!(ATTACKS.len() >= 60);
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "app");
    run(&mut wire, "", ATTACKS, || state(&server));
}

#[test]
fn a_superusers_queries_write_nothing_either_and_warn() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "boss");
    let answered = answer(&mut wire, json!({"action": "query", "payload": "SELECT name FROM users"}));
    assert!(answered["notes"][0].as_str().unwrap().contains("FILE"), "{answered}");
    // A superuser is locked out of nothing, but a seed defines nothing either.
    run(&mut wire, "", ATTACKS, || state(&server));
}

#[test]
fn the_schema_of_mariadb_has_generated_columns_actions_of_keys_and_prefixes_of_indexes() {
    let Some(server) = shop() else { return };
    server.sql(
        "CREATE TABLE parent (id INT AUTO_INCREMENT PRIMARY KEY, n INT, twice INT AS (n * 2) STORED, v INT AS (n + 1) VIRTUAL,
            t TEXT, UNIQUE KEY by_start (t(3)), big BIGINT UNSIGNED, CONSTRAINT small CHECK (n < 1000));
         CREATE TABLE child (id INT PRIMARY KEY, p INT, q INT CHECK (q > 0), FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE SET NULL,
            CONSTRAINT small CHECK (id < 1000))",
    );
    let (_project, mut wire) = connect(&server, "app");
    let schema = answer(&mut wire, json!({"action": "schema"}));
    let table = |name: &str| {
        let tables = schema["tables"].as_array().unwrap();
        tables.iter().find(|table| table["name"] == name).unwrap_or_else(|| panic!("{schema}")).clone()
    };
    let (child, parent) = (table("child"), table("parent"));
    let key = &child["foreign_keys"][0];
    assert_eq!((&key["on_delete"], &key["on_update"]), (&json!("cascade"), &json!("set null")));
    assert_eq!(parent["checks"], json!([{"name": "small", "expression": "`n` < 1000"}]));
    let expected =
        json!([{"name": "q", "expression": "`q` > 0"}, {"name": "small", "expression": "`id` < 1000"}]);
    assert_eq!(child["checks"], expected);
    let columns = &parent["columns"];
    assert_eq!(columns[0]["identity"], "auto_increment");
    assert!(columns[2]["generated"].as_str().unwrap().starts_with("stored "), "{parent}");
    assert!(columns[3]["generated"].as_str().unwrap().starts_with("virtual "), "{parent}");
    assert!(parent["indexes"].to_string().contains(r#"["t(3)"]"#), "{parent}");
    let large = json!({"action": "seed", "payload": "INSERT INTO parent (big) VALUES (?)", "params": [9_223_372_036_854_775_809_u64]});
    answer(&mut wire, large);
    assert_eq!(server.sql("SELECT big FROM parent").trim(), "9223372036854775809");
}

#[test]
fn a_number_is_stored_in_mariadb_as_it_was_given_or_not_at_all() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "app");
    server.sql("CREATE TABLE numbers_given (big BIGINT UNSIGNED, exact DECIMAL(40,10), near DOUBLE)");
    let insert = "INSERT INTO numbers_given (big) VALUES (?)";
    let big = json!([[10_000_000_000_000_000_001_u64], [u64::MAX], [9_007_199_254_740_993_u64]]);
    answer(&mut wire, json!({"action": "seed", "payload": insert, "params": big}));
    let stored = server.sql("SELECT big FROM numbers_given ORDER BY big");
    assert_eq!(stored, "9007199254740993\n10000000000000000001\n18446744073709551615");
    let seed =
        r#"{"action": "seed", "payload": "INSERT INTO numbers_given (exact) VALUES (?)", "params": [GIVEN]}"#;
    for given in ["12345678901234567890.1234567", "18446744073709551617", "[12345678901234567890.5]"] {
        let arguments = serde_json::from_str(&seed.replace("GIVEN", given)).unwrap();
        let said = error(&mut wire, arguments);
        assert!(said.contains("more digits than a JSON number keeps; give it as a text"), "{said}");
    }
    let exact = "INSERT INTO numbers_given (exact, near) VALUES (?, ?)";
    let params = json!(["12345678901234567890.1234567", 1.5e300]);
    answer(&mut wire, json!({"action": "seed", "payload": exact, "params": params}));
    let stored = server.sql("SELECT exact, near FROM numbers_given WHERE exact IS NOT NULL");
    assert_eq!(stored, "12345678901234567890.1234567000\t1.5e300");
}
