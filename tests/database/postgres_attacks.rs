//! Attacks on PostgreSQL.

use crate::attack::{AttackOutcome, DatabaseAttack, run};
use crate::postgres::{connect, shop};
use crate::servers::{PASSWORD, TestDatabase};
use crate::{answer, error};
use AttackOutcome::{Ddl, Harmless, Refused};
use integration_tests::Project;
use serde_json::json;

const ATTACKS: &[DatabaseAttack] = &[
    // What defines.
    ("query", "DROP TABLE users", Ddl),
    ("seed", "DROP TABLE users", Ddl),
    ("query", "/* /* SELECT */ */ DROP TABLE users", Ddl),
    ("seed", "CREATE TABLE x (a int)", Ddl),
    ("query", "CREATE TEMP TABLE x (a int)", Ddl),
    ("seed", "CREATE TABLE x AS SELECT 1", Ddl),
    ("seed", "ALTER TABLE users ADD x int", Ddl),
    ("seed", "TRUNCATE users", Ddl),
    ("query", "TRUNCATE users", Ddl),
    ("seed", "CREATE FUNCTION x() RETURNS int LANGUAGE sql AS 'SELECT 1'", Ddl),
    ("seed", "CREATE EXTENSION dblink", Ddl),
    ("seed", "GRANT ALL ON users TO PUBLIC", Ddl),
    ("seed", "REVOKE ALL ON users FROM reader", Ddl),
    ("seed", "COMMENT ON TABLE users IS 'x'", Ddl),
    ("query", "VACUUM", Ddl),
    ("seed", "ANALYZE", Ddl),
    ("seed", "REINDEX TABLE users", Ddl),
    ("seed", "CREATE ROLE x SUPERUSER", Ddl),
    ("query", "EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1", Ddl),
    ("explain", "CREATE TABLE x AS SELECT 1", Harmless),
    // More than one.
    ("query", "SELECT 1; DROP TABLE users", Refused),
    ("query", "SELECT 1; COMMIT; DELETE FROM users", Refused),
    ("query", "COMMIT; BEGIN READ WRITE; DELETE FROM users; COMMIT", Refused),
    ("seed", "INSERT INTO users (name) VALUES ('x'); DROP TABLE users", Refused),
    ("explain", "SELECT 1; DELETE FROM users", Refused),
    ("query", "", Refused),
    ("query", "-- nothing", Refused),
    // Out of the subquery.
    ("query", "SELECT 1) AS x, (SELECT 2", Refused),
    ("query", "SELECT 1) AS x; DELETE FROM users; --", Refused),
    ("query", "SELECT 1) AS x UNION (SELECT 2", Refused),
    ("query", "SELECT 1 /*", Refused),
    ("query", "SELECT 1 --", Harmless),
    ("query", "SELECT $$", Refused),
    ("query", "SELECT 'a' || $x$ ) $x$ --", Harmless),
    // Writing by way of reading.
    ("query", "INSERT INTO users (name) VALUES ('x')", Refused),
    ("query", "INSERT INTO users (name) VALUES ('x') RETURNING *", Refused),
    ("query", "UPDATE users SET name = 'x' RETURNING id", Refused),
    ("query", "DELETE FROM users RETURNING *", Refused),
    ("query", "WITH x AS (DELETE FROM users RETURNING *) SELECT * FROM x", Refused),
    ("query", "WITH x AS (INSERT INTO users (name) VALUES ('x') RETURNING *) SELECT * FROM x", Refused),
    ("query", "WITH x AS (UPDATE users SET name = 'x' RETURNING *) TABLE x", Refused),
    ("query", "MERGE INTO users USING (SELECT 1) s ON true WHEN MATCHED THEN DELETE", Refused),
    ("query", "SELECT * INTO x FROM users", Refused),
    ("query", "SELECT * INTO TEMP x FROM users", Refused),
    ("seed", "SELECT * INTO x FROM users", Refused),
    ("query", "SELECT * FROM users FOR UPDATE", Refused),
    ("query", "EXPLAIN ANALYZE DELETE FROM users", Refused),
    ("query", "EXPLAIN (ANALYZE) DELETE FROM users", Refused),
    ("explain", "ANALYZE DELETE FROM users", Refused),
    ("explain", "(ANALYZE) DELETE FROM users", Refused),
    ("explain", "DELETE FROM users", Harmless),
    ("query", "SELECT sneaky()", Refused),
    ("query", "SELECT nextval('users_id_seq')", Refused),
    ("query", "SELECT setval('users_id_seq', 99)", Refused),
    // PostgreSQL 16 refuses these, before it they are taken back.
    ("query", "SELECT lo_create(4711)", Harmless),
    ("query", "SELECT lo_from_bytea(0, '\\x00')", Harmless),
    ("query", "SELECT query_to_xml('DELETE FROM users RETURNING *', true, true, '')", Refused),
    ("query", "SELECT pg_logical_emit_message(true, 'a', 'b')", Refused),
    // Blocks, calls, cursors, prepared statements.
    ("query", "DO $$ BEGIN DELETE FROM users; END $$", Refused),
    ("seed", "DO $$ BEGIN EXECUTE 'DROP TABLE users'; END $$", Refused),
    ("query", "CALL x()", Refused),
    ("seed", "CALL x()", Refused),
    ("query", "PREPARE x AS DELETE FROM users", Refused),
    ("query", "EXECUTE coretools_class", Refused),
    ("seed", "EXECUTE coretools_class", Refused),
    ("query", "DECLARE x CURSOR FOR SELECT 1", Refused),
    ("query", "FETCH ALL FROM x", Refused),
    ("query", "LISTEN x", Refused),
    ("query", "NOTIFY x", Refused),
    ("query", "LOCK TABLE users", Refused),
    ("seed", "LOCK TABLE users", Refused),
    ("query", "CHECKPOINT", Refused),
    ("query", "LOAD 'x'", Refused),
    ("query", "DISCARD ALL", Refused),
    // The server's files and programs.
    ("query", "COPY users TO '/tmp/ct-stolen'", Refused),
    ("query", "COPY users TO STDOUT", Refused),
    ("query", "COPY users FROM '/etc/passwd'", Refused),
    ("query", "COPY (SELECT 1) TO PROGRAM 'touch /tmp/ct-stolen'", Refused),
    ("seed", "COPY users FROM PROGRAM 'echo x'", Refused),
    ("seed", "COPY (SELECT 1) TO PROGRAM 'touch /tmp/ct-stolen'", Refused),
    ("query", "SELECT pg_read_file('/etc/passwd')", Refused),
    ("query", "SELECT pg_read_binary_file('/etc/passwd')", Refused),
    ("query", "SELECT * FROM pg_ls_dir('/')", Refused),
    ("query", "SELECT pg_stat_file('/etc/passwd')", Refused),
    ("query", "SELECT lo_import('/etc/passwd')", Refused),
    ("query", "SELECT lo_export(1, '/tmp/ct-stolen')", Refused),
    ("query", "SELECT * FROM pg_hba_file_rules", Refused),
    ("query", "SELECT rolpassword FROM pg_authid", Refused),
    // Who, and how much.
    ("query", "SET ROLE boss", Refused),
    ("query", "SET SESSION AUTHORIZATION boss", Refused),
    ("query", "RESET ROLE", Refused),
    ("query", "SELECT set_config('role', 'boss', false)", Refused),
    ("query", "SELECT set_config('session_authorization', 'boss', false)", Refused),
    ("query", "SET transaction_read_only = off", Refused),
    ("query", "SET TRANSACTION READ WRITE", Refused),
    ("query", "SELECT set_config('transaction_read_only', 'off', false)", Refused),
    ("query", "SELECT set_config('transaction_read_only', 'off', true), sneaky()", Refused),
    ("query", "SELECT set_config('default_transaction_read_only', 'off', false), sneaky()", Refused),
    ("query", "SELECT set_config('statement_timeout', '0', false)", Refused),
    ("query", "SELECT pg_reload_conf()", Refused),
    ("query", "SELECT pg_rotate_logfile()", Refused),
    ("query", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'boss'", Refused),
    ("query", "SELECT pg_switch_wal()", Refused),
    ("query", "SELECT pg_create_restore_point('x')", Refused),
    ("query", "ALTER SYSTEM SET work_mem = '1MB'", Ddl),
    // Transactions.
    ("query", "BEGIN", Refused),
    ("query", "COMMIT", Refused),
    ("query", "ROLLBACK", Refused),
    ("query", "SAVEPOINT x", Refused),
    ("query", "ROLLBACK AND CHAIN", Refused),
    ("seed", "COMMIT", Refused),
    ("seed", "ROLLBACK", Refused),
    ("query", "PREPARE TRANSACTION 'x'", Refused),
    ("seed", "SELECT 1", Refused),
    // Nothing but odd.
    ("query", "SELECT 'DROP TABLE users'", Harmless),
    ("query", "TABLE users", Harmless),
    ("query", "VALUES (1), (2)", Harmless),
    ("query", "SELECT", Harmless),
    ("query", "SHOW ALL", Refused),
];

/// All that an attack could change.
fn state(server: &TestDatabase) -> String {
    assert!(!std::path::Path::new("/tmp/ct-stolen").exists(), "a file was made");
    server.sql(
        "SELECT (SELECT string_agg(u::text, ',' ORDER BY id) FROM users u), (SELECT count(*) FROM posts),
                (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_proc), (SELECT count(*) FROM pg_largeobject_metadata),
                (SELECT string_agg(r::text, ',' ORDER BY rolname) FROM pg_roles r), (SELECT last_value FROM users_id_seq),
                (SELECT string_agg(relacl::text, ',' ORDER BY oid) FROM pg_class WHERE relname = 'users'),
                (SELECT count(*) FROM pg_prepared_xacts), (SELECT count(*) FROM pg_description)",
    )
}

#[test]
fn no_attack_on_postgres_changes_or_reaches_anything() {
    assert!(ATTACKS.len() >= 60);
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "app");
    run(&mut wire, "", ATTACKS, || state(&server));
}

#[test]
fn doctor_tells_what_the_user_of_a_connection_may_do() {
    let Some(server) = shop() else { return };
    let project = Project::empty();
    let connections =
        ["reader", "app", "boss", "nobody"].map(|user| format!("{user}=${}", user.to_uppercase()));
    project.write("all.toml", &format!("[databases]\nconnections = {connections:?}\n"));
    let mut command = project.server();
    for user in ["reader", "app", "boss", "nobody"] {
        command.env(user.to_uppercase(), server.url(user));
    }
    let output = command
        .env_remove("DB_PATH")
        .env_remove("DB_URL")
        .args(["--config", "all.toml", "doctor"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let of = |user: &str| {
        let line = said.lines().find(|line| line.contains(&format!(" {user}: ")));
        line.unwrap_or_else(|| panic!("nothing is said of {user}:\n{said}"))
    };
    assert!(of("reader").starts_with("ok ") && of("reader").ends_with("PostgreSQL answers"), "{said}");
    assert!(of("app").starts_with("note ") && of("app").contains("may only read"), "{said}");
    assert!(of("boss").starts_with("note ") && of("boss").contains("superuser"), "{said}");
    assert!(of("nobody").starts_with("BROKEN "), "{said}");
    assert_eq!(output.status.code(), Some(1));
    assert!(!said.contains(PASSWORD), "{said}");
}

/// With what a superuser may do beyond all transactions.
#[test]
fn a_superusers_queries_reach_no_files_and_warn() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "boss");
    let answered = answer(&mut wire, json!({"action": "query", "payload": "SELECT name FROM users"}));
    assert_eq!(answered["row_count"], 2);
    assert!(answered["notes"][0].as_str().unwrap().contains("superuser"), "{answered}");
    let queries: Vec<DatabaseAttack> = ATTACKS
        .iter()
        .filter(|(action, payload, _)| {
            // Passwords are rows of a table, and it may read all tables.
            *action == "query" && !payload.contains("pg_authid")
        })
        .copied()
        .collect();
    assert!(queries.len() >= 60);
    run(&mut wire, "", &queries, || state(&server));
}

#[test]
fn a_superusers_query_says_that_policies_hide_rows() {
    let Some(server) = shop() else { return };
    server.sql(
        "CREATE TABLE notes (id int, owner text);
         INSERT INTO notes VALUES (1, 'boss'), (2, 'app');
         ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
         CREATE POLICY own ON notes USING (owner = current_user);
         CREATE VIEW all_notes AS SELECT * FROM notes;
         CREATE VIEW own_notes WITH (security_invoker) AS SELECT * FROM notes;
         GRANT SELECT ON notes TO app",
    );
    let query = |sql: &str| json!({"action": "query", "payload": sql});
    let (_project, mut wire) = connect(&server, "boss");
    for sql in ["SELECT * FROM notes", "SELECT * FROM own_notes", "SELECT 1 WHERE EXISTS (SELECT FROM notes)"]
    {
        let answered = answer(&mut wire, query(sql));
        assert_eq!(answered["row_count"], 0, "{answered}");
        let note = answered["notes"][1].as_str().unwrap_or_else(|| panic!("{answered}"));
        assert!(note.contains("rows may be MISSING") && note.contains("\"notes\""), "{answered}");
    }
    // The view reads with the rights of its owner, to whom no policy applies.
    for (sql, count) in [("SELECT * FROM all_notes", 2), ("SELECT * FROM users", 2)] {
        let answered = answer(&mut wire, query(sql));
        assert_eq!(answered["row_count"], count, "{answered}");
        assert!(!answered["notes"].to_string().contains("MISSING"), "{answered}");
    }
    let (_project, mut wire) = connect(&server, "app");
    let answered = answer(&mut wire, query("SELECT id FROM notes"));
    assert_eq!(answered["rows"], json!([{"id": 2}]), "{answered}");
    assert!(answered["notes"].is_null(), "{answered}");
}

/// Calls of functions that act, each in another way, with the function that the refusal names.
const ACTS: &[(&str, &str)] = &[
    ("SELECT pg_try_advisory_lock(1)", "pg_try_advisory_lock(bigint)"),
    ("SELECT pg_catalog . \"pg_try_advisory_lock\" /* ( */ -- x\n (1)", "pg_try_advisory_lock(bigint)"),
    ("SELECT E'\\'' , pg_try_advisory_lock(1)--'", "pg_try_advisory_lock(bigint)"),
    ("SELECT 'a\\' , pg_try_advisory_lock(1)--'", "pg_try_advisory_lock(bigint)"),
    ("SELECT U&\"pg_try_advisory_loc\\006b\"(1)", "Unicode escapes"),
    ("SELECT 1 LIMIT pg_try_advisory_lock(1)::int", "pg_try_advisory_lock(bigint)"),
    ("SELECT 1 WHERE false AND pg_try_advisory_lock(1)", "pg_try_advisory_lock(bigint)"),
    ("SELECT * FROM generate_series(1, 2) WHERE pg_try_advisory_xact_lock(1)", "pg_try_advisory_xact_lock"),
    ("SELECT pg_terminate_backend(1)", "pg_terminate_backend"),
    ("SELECT pg_cancel_backend(1)", "pg_cancel_backend"),
    ("SELECT pg_notify('a', 'b')", "pg_notify"),
    ("SELECT pg_logical_emit_message(false, 'a', 'b')", "pg_logical_emit_message"),
    ("SELECT set_config('x.y', '1', false)", "set_config"),
    ("SELECT query_to_xml('SELECT acts(1)', true, true, '')", "query_to_xml"),
    ("SELECT acts(1)", "acts(integer) is declared VOLATILE, the default"),
    ("SELECT shop_tools.acts_there()", "shop_tools.acts_there()"),
    ("SELECT count(*) FROM acting", "acts(integer), which the view acting calls,"),
    ("SELECT count(*) FROM nested", "acts(integer), which the view acting calls,"),
    ("SELECT users.of_row FROM users", "of_row(users)"),
    ("SELECT (u).of_row FROM users u", "of_row(users)"),
    ("SELECT 1 @@@ 2", "which the operator @@@ calls"),
    ("SELECT 1 OPERATOR(public.@@@) 2", "which the operator @@@ calls"),
    ("SELECT gathered(id) FROM users", "gathered(integer)"),
    ("SELECT 1::picky", "which the domain picky calls"),
    ("SELECT CAST(ROW(1) AS boxed)::int", "which a cast to integer calls"),
];

#[test]
fn functions_that_act_are_refused_and_those_that_only_read_run() {
    let Some(server) = shop() else { return };
    server.sql(
        "CREATE FUNCTION acts(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_lock(7); RETURN $1; END $$;
         CREATE FUNCTION acts2(int, int) RETURNS int LANGUAGE sql AS 'SELECT acts($1)';
         CREATE FUNCTION of_row(users) RETURNS int LANGUAGE sql AS 'SELECT acts($1.id)';
         CREATE SCHEMA shop_tools;
         CREATE FUNCTION shop_tools.acts_there() RETURNS int LANGUAGE sql AS 'SELECT acts(1)';
         GRANT USAGE ON SCHEMA shop_tools TO app;
         CREATE VIEW acting AS SELECT id FROM users ORDER BY id LIMIT acts(1);
         CREATE VIEW nested AS SELECT id FROM acting;
         CREATE OPERATOR @@@ (LEFTARG = int, RIGHTARG = int, FUNCTION = acts2);
         CREATE AGGREGATE gathered (int) (SFUNC = acts2, STYPE = int, INITCOND = '0');
         CREATE DOMAIN picky AS int CHECK (acts(VALUE) > 0);
         CREATE TYPE boxed AS (n int);
         CREATE FUNCTION unboxed(boxed) RETURNS int LANGUAGE sql AS 'SELECT acts($1.n)';
         CREATE CAST (boxed AS int) WITH FUNCTION unboxed(boxed);
         CREATE FUNCTION reads() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM users';
         CREATE FUNCTION defines() RETURNS text LANGUAGE plpgsql AS $$ BEGIN CREATE TABLE made (); RETURN 'x'; END $$;
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO app",
    );
    for user in ["app", "boss"] {
        let (_project, mut wire) = connect(&server, user);
        for (payload, words) in ACTS {
            let said = error(&mut wire, json!({"action": "query", "payload": payload}));
            assert!(
                said.starts_with("not permitted in `query`: ") && said.contains(words),
                "{payload}: {said}"
            );
        }
        let defines = json!({"action": "seed", "payload": "INSERT INTO users (name) SELECT defines()"});
        let said = error(&mut wire, defines);
        assert!(said.starts_with("not permitted in `seed`: defines() is declared VOLATILE"), "{said}");
        for payload in [
            "SELECT random(), gen_random_uuid(), clock_timestamp(), now(), pg_database_size(current_database())",
            "SELECT pg_total_relation_size('users'), pg_size_pretty(pg_table_size('users'))",
            "SELECT reads(), count(*) FROM users TABLESAMPLE system (100)",
            "SELECT count(*) FROM pg_locks, pg_stat_activity, information_schema.columns",
            "SELECT 'acts(1)', $$ acts(1) $$, name AS acts FROM users -- acts(1)",
            "SELECT name FROM users WHERE name LIKE '%pg_notify(%' /* acts( */",
            "WITH named (acts) AS (SELECT 1) SELECT named.acts FROM named",
        ] {
            answer(&mut wire, json!({"action": "query", "payload": payload}));
        }
        let seed = json!({
            "action": "seed", "dry_run": true,
            "payload": "INSERT INTO users (id, name) VALUES (nextval('users_id_seq'), 'r' || random())"
        });
        assert_eq!(answer(&mut wire, seed)["affected"], 1);
    }
    assert_eq!(server.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "0");
    assert_eq!(server.sql("SELECT count(*) FROM pg_class WHERE relname = 'made'"), "0");
}
