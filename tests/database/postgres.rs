//! PostgreSQL: what the tool answers, and that the server is really told to stop.

use crate::servers::{PASSWORD, TestDatabase, postgres};
use crate::{answer, error, rows, serve};
use integration_tests::{Project, Wire, wait_until};
use serde_json::{Value, json};
use std::time::Duration;

/// A server with tables, and the users `app`, which may change rows, and `reader`, which may not.
pub(crate) fn shop() -> Option<TestDatabase> {
    let server = postgres()?;
    server.sql(&format!(
        "CREATE TYPE mood AS ENUM ('sad', 'happy');
         CREATE TABLE users (id serial PRIMARY KEY, name text NOT NULL DEFAULT 'nobody', born date, mood mood);
         CREATE UNIQUE INDEX by_name ON users (lower(name));
         CREATE TABLE posts (id bigint PRIMARY KEY, author int REFERENCES users (id), body bytea);
         CREATE VIEW authors AS SELECT DISTINCT author FROM posts;
         CREATE SCHEMA audit;
         CREATE TABLE audit.log (what text);
         CREATE FUNCTION sneaky() RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.users (name) VALUES ('sneaky'); RETURN 1; END $$;
         INSERT INTO users (name, born, mood) VALUES ('ann', '1990-01-02', 'happy'), ('bob', NULL, NULL);
         INSERT INTO posts VALUES (1, 1, '\\x00ff');
         ANALYZE;
         CREATE ROLE app LOGIN PASSWORD '{PASSWORD}';
         CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}' IN ROLE pg_read_all_data;
         GRANT USAGE ON SCHEMA public, audit TO app;
         GRANT ALL ON ALL TABLES IN SCHEMA public, audit TO app;
         GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO app;
         GRANT CREATE ON SCHEMA public TO app"
    ));
    Some(server)
}

/// A server for an empty project, with this database.
pub(crate) fn connect(server: &TestDatabase, user: &str) -> (Project, Wire) {
    let project = Project::empty();
    let wire = serve(&project, &[("DB_URL", &server.url(user))]);
    (project, wire)
}

#[test]
fn the_schema_of_postgres_has_tables_columns_keys_and_indexes() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "reader");
    let mut schema = answer(&mut wire, json!({"action": "schema"}));
    schema["elapsed_ms"] = Value::Null;
    insta::assert_json_snapshot!("postgres_schema", schema);
    let one = answer(&mut wire, json!({"action": "schema", "payload": "audit.*"}));
    assert_eq!(one["table_names"], json!(["audit.log"]));
}

#[test]
fn every_value_of_postgres_survives_there_and_back() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "app");
    let cases = [
        ("NULL::text", json!(null)),
        ("9007199254740993::bigint", json!("9007199254740993")),
        ("42::smallint", json!(42)),
        ("true", json!(true)),
        ("1.5::float8", json!(1.5)),
        ("'NaN'::float8", json!("NaN")),
        ("0.1::real", json!(0.1)),
        ("123456789012345678901234567890.12345::numeric", json!("123456789012345678901234567890.12345")),
        ("'2024-02-29'::date", json!("2024-02-29")),
        ("'2024-02-29 12:00:00.5+02'::timestamptz", json!("2024-02-29 10:00:00.5+00")),
        ("'1 day 02:00'::interval", json!("1 day 02:00:00")),
        ("'{\"a\": [1, null, \"x\"]}'::jsonb", json!({"a": [1, null, "x"]})),
        ("'[12345678901234567890]'::jsonb", json!("[12345678901234567890]")),
        ("'\\x00ff'::bytea", json!({"$base64": "AP8=", "bytes": 2})),
        ("ARRAY[1, NULL, 3]", json!([1, null, 3])),
        ("ARRAY[[true], [false]]", json!([[true], [false]])),
        ("ARRAY['a\"b', 'c,d']", json!(["a\"b", "c,d"])),
        ("ARRAY[9007199254740993::bigint]", json!(["9007199254740993"])),
        ("ARRAY[1.10::numeric]", json!(["1.10"])),
        ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", json!("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
        ("'happy'::mood", json!("happy")),
        ("'10.0.0.1/8'::inet", json!("10.0.0.1/8")),
        ("int4range(1, 5)", json!("[1,5)")),
        ("ROW(1, 'x')", json!("(1,x)")),
        ("B'101'", json!("101")),
        ("'ab'::char(5)", json!("ab   ")),
        (r#"'{"a":1,"a":2}'::json"#, json!(r#"{"a":1,"a":2}"#)),
        ("'ä😀'", json!("ä😀")),
    ];
    for (expression, value) in cases {
        assert_eq!(
            rows(&mut wire, &format!("SELECT {expression} AS a -- one"), json!([])),
            json!([{"a": value}]),
            "{expression}"
        );
    }
    let bound = [
        ("int", json!(5), json!(5)),
        ("bigint", json!("9007199254740993"), json!("9007199254740993")),
        ("numeric", json!("1.10"), json!("1.10")),
        ("text", json!("x'); DROP TABLE users; --"), json!("x'); DROP TABLE users; --")),
        ("date", json!("2024-02-29"), json!("2024-02-29")),
        (
            "uuid",
            json!("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
            json!("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ),
        ("jsonb", json!({"a": "b"}), json!({"a": "b"})),
        ("jsonb", json!("text"), json!("text")),
        ("text[]", json!(["a\"}", null, ","]), json!(["a\"}", null, ","])),
        ("mood", json!("sad"), json!("sad")),
        ("bool", json!(false), json!(false)),
        ("bytea", json!({"$base64": "AP8="}), json!({"$base64": "AP8=", "bytes": 2})),
        ("inet", json!(null), json!(null)),
    ];
    for (kind, given, found) in bound {
        assert_eq!(
            rows(&mut wire, &format!("SELECT $1::{kind} AS a"), json!([given])),
            json!([{"a": found}]),
            "{kind}"
        );
    }
    assert_eq!(rows(&mut wire, "SELECT name FROM users WHERE id = $1", json!([1])), json!([{"name": "ann"}]));
    let said = error(&mut wire, json!({"action": "query", "payload": "SELECT $1::int", "params": ["x"]}));
    assert!(said.contains("params") && said.contains("invalid input syntax"), "{said}");
    assert_eq!(rows(&mut wire, "SELECT 1 AS a, 2 AS a", json!([])), json!([{"a": 1, "a_2": 2}]));
}

#[test]
fn rows_and_values_of_postgres_have_limits_that_the_server_keeps() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "reader");
    let page =
        answer(&mut wire, json!({"action": "query", "payload": "SELECT generate_series(1, 1000000000)"}));
    assert_eq!((page["row_count"].as_u64(), page["truncated"].as_bool()), (Some(200), Some(true)));
    let page = answer(&mut wire, json!({"action": "query", "payload": "SELECT repeat('x', 100000000) AS a"}));
    assert!(
        page["rows"][0]["a"].as_str().unwrap().len() < 2100
            && page["notes"][0].as_str().unwrap().contains("cut")
    );
    let page = answer(&mut wire, json!({"action": "query", "payload": "SELECT 1 ORDER BY 1;", "limit": 1}));
    assert_eq!(page["truncated"], false);
}

#[test]
fn a_seed_of_postgres_is_all_or_nothing_and_can_be_tried() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "app");
    let insert = "INSERT INTO users (name, born) VALUES ($1, $2)";
    let two = json!({"action": "seed", "payload": insert, "params": [["x", "2000-01-01"], ["y", null]]});
    let mut tried = two.clone();
    tried["dry_run"] = true.into();
    assert_eq!(answer(&mut wire, tried)["affected"], 2);
    assert_eq!(server.sql("SELECT count(*) FROM users"), "2");
    let said = error(
        &mut wire,
        json!({"action": "seed", "payload": insert, "params": [["x", null], ["ANN", null]]}),
    );
    assert!(said.contains("by_name"), "{said}");
    assert_eq!(server.sql("SELECT count(*) FROM users"), "2");
    assert_eq!(answer(&mut wire, two)["affected"], 2);
    assert_eq!(server.sql("SELECT count(*) FROM users"), "4");
    let upsert = "WITH x AS (DELETE FROM users WHERE name = 'x' RETURNING id) INSERT INTO audit.log SELECT 'gone ' || id FROM x";
    assert_eq!(answer(&mut wire, json!({"action": "seed", "payload": upsert}))["affected"], 1);
    assert_eq!(server.sql("SELECT count(*) FROM users"), "3");
    let plan = answer(&mut wire, json!({"action": "explain", "payload": "DELETE FROM users"}));
    assert!(plan["rows"][0]["plan"].as_str().unwrap().contains("Delete on users"), "{plan}");
    assert_eq!(server.sql("SELECT count(*) FROM users"), "3");
}

#[test]
fn the_rows_of_returning_of_postgres_are_answered_or_said_to_be_missing() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "app");
    let seed = |sql: &str, params: Value| json!({"action": "seed", "payload": sql, "params": params});
    let insert = "INSERT INTO users (name) VALUES ($1) RETURNING id, name -- the key";
    let seeded = answer(&mut wire, seed(insert, json!([["x"], ["y"]])));
    assert_eq!(seeded["rows"], json!([{"id": 3, "name": "x"}, {"id": 4, "name": "y"}]), "{seeded}");
    assert_eq!((&seeded["affected"], seeded.get("notes")), (&json!(2), None), "{seeded}");
    let update = "UPDATE users SET name = name || '2' WHERE id > 2 RETURNING true AS changed";
    assert_eq!(
        answer(&mut wire, seed(update, json!([])))["rows"],
        json!([{"changed": true}, {"changed": true}])
    );
    let within = "WITH gone AS (DELETE FROM users WHERE id = 3 RETURNING id) INSERT INTO audit.log SELECT id::text FROM gone RETURNING what";
    let told = answer(&mut wire, seed(within, json!([])));
    assert_eq!((&told["affected"], told.get("rows")), (&json!(1), None), "{told}");
    assert!(told["notes"][0].as_str().unwrap().contains("not shown"), "{told}");
}

#[test]
fn postgres_is_told_to_stop_at_the_time_limit_when_cancelled_and_when_the_client_leaves() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "reader");
    let working = || {
        server.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'coretools db_bridge'")
            != "0"
    };
    let query = json!({"action": "query", "payload": "SELECT pg_sleep(500)", "timeout_ms": 500});
    let said = error(&mut wire, query);
    assert!(said.starts_with("stopped after 500 ms"), "{said}");
    wait_until(Duration::from_secs(20), "the statement ends", || !working());
    let long = json!({"name": "db_bridge", "arguments": {"action": "query", "payload": "SELECT pg_sleep(500)", "timeout_ms": 600_000}});
    let id = wire.ask("tools/call", long.clone());
    wait_until(Duration::from_secs(20), "the statement runs", working);
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
    wait_until(Duration::from_secs(20), "the statement runs", working);
    wire.close_input();
    wait_until(Duration::from_secs(20), "the statement ends with the client", || !working());
}

/// It catches the cancellation of its statement, so only the end of its connection ends it.
#[test]
fn a_statement_of_postgres_that_goes_on_after_its_cancellation_is_ended() {
    let Some(server) = shop() else { return };
    server.sql(
        "CREATE FUNCTION stubborn() RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN LOOP
           BEGIN PERFORM pg_sleep(500); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$",
    );
    let (_project, mut wire) = connect(&server, "reader");
    let query = json!({"action": "query", "payload": "SELECT stubborn()", "timeout_ms": 500});
    let said = error(&mut wire, query);
    assert!(said.starts_with("stopped after 500 ms") && said.contains("its connection was ended"), "{said}");
    wait_until(Duration::from_secs(20), "the statement ends", || {
        server.sql(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%stubborn%' AND pid <> pg_backend_pid()",
        ) == "0"
    });
    assert_eq!(rows(&mut wire, "SELECT 1 AS n", json!([])), json!([{"n": 1}]));
}

#[test]
fn a_session_of_postgres_keeps_the_time_zone_and_the_order_of_dates_of_role_and_database() {
    let Some(server) = shop() else { return };
    server.sql("CREATE TABLE times (at timestamptz, day date); GRANT ALL ON times TO app");
    server.sql(
        "ALTER DATABASE shop SET timezone = 'America/New_York'; ALTER DATABASE shop SET datestyle = 'German'",
    );
    let (_project, mut wire) = connect(&server, "app");
    let insert = "INSERT INTO times VALUES ('2026-11-23 10:00:00', '02.01.2026')";
    answer(&mut wire, json!({"action": "seed", "payload": insert}));
    assert_eq!(
        server.sql("SELECT extract(epoch FROM at)::int, day = date '2026-01-02' FROM times"),
        "1795446000|t"
    );
    let sql = "SELECT at, day, timestamptz '2026-11-23 03:00:00Z'::date AS evening FROM times";
    let expected = json!([{"at": "2026-11-23 10:00:00-05", "day": "2026-01-02", "evening": "2026-11-22"}]);
    assert_eq!(rows(&mut wire, sql, json!([])), expected);
    server.sql("ALTER ROLE app SET timezone = 'Asia/Kolkata'");
    assert_eq!(
        rows(&mut wire, "SELECT at FROM times", json!([])),
        json!([{"at": "2026-11-23 20:30:00+05:30"}])
    );
}

#[test]
fn a_time_zone_of_the_server_that_a_role_may_not_see_is_said() {
    let Some(server) = shop() else { return };
    server.sql("ALTER SYSTEM SET timezone = 'Asia/Kolkata'");
    server.sql("ALTER SYSTEM SET log_timezone = 'Asia/Kolkata'");
    server.sql("SELECT pg_reload_conf()");
    wait_until(Duration::from_secs(20), "the settings are read", || {
        server.sql("SHOW timezone") == "Asia/Kolkata"
    });
    let query =
        json!({"action": "query", "payload": "SELECT timestamptz '2026-11-23 20:00:00Z'::date AS day"});
    let (_project, mut wire) = connect(&server, "app");
    let read = answer(&mut wire, query.clone());
    assert_eq!(read["rows"], json!([{"day": "2026-11-23"}]));
    assert!(read["notes"].to_string().contains("Asia/Kolkata"), "{read}");
    let without_times = answer(&mut wire, json!({"action": "query", "payload": "SELECT 1 AS n"}));
    assert_eq!(without_times["notes"], Value::Null);
    // A superuser sees it, so the session has it.
    let (_project, mut wire) = connect(&server, "boss");
    assert_eq!(answer(&mut wire, query)["rows"], json!([{"day": "2026-11-24"}]));
}

#[test]
fn a_type_that_cannot_be_read_is_named_and_reads_as_text() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "reader");
    for sql in ["SELECT '{[1,3)}'::int4multirange AS a", "SELECT array['{[1,3)}'::int4multirange] AS a"] {
        let said = error(&mut wire, json!({"action": "query", "payload": sql}));
        assert!(said.contains("multirange") && said.contains("`::text`"), "{said}");
    }
    let cast = "SELECT '{[1,3)}'::int4multirange::text AS a";
    assert_eq!(rows(&mut wire, cast, json!([])), json!([{"a": "{[1,3)}"}]));
}

#[test]
fn rows_without_columns_are_rows() {
    let Some(server) = shop() else { return };
    let (_project, mut wire) = connect(&server, "reader");
    assert_eq!(rows(&mut wire, "SELECT FROM users", json!([])), json!([{}, {}]));
    assert_eq!(rows(&mut wire, "SELECT FROM users WHERE id = $1", json!([1])), json!([{}]));
    assert_eq!(rows(&mut wire, "SELECT", json!([])), json!([{}]));
}

#[test]
fn no_message_shows_a_url_a_user_or_a_password() {
    let Some(server) = shop() else { return };
    let wrong = server.url("reader").replace(PASSWORD, "wr0ng-Passw0rd-77");
    let nobody = server.url("n0b0dy-user");
    let gone = "postgres://reader:wr0ng-Passw0rd-77@localhost/shop?host=/nowhere/at-all";
    let bad = "postgres://reader:wr0ng-Passw0rd-77@[::bad/shop";
    let odd = "oracle://reader:wr0ng-Passw0rd-77@h0st-name/shop";
    for url in [&wrong, &nobody, gone, bad, odd] {
        let project = Project::empty();
        let mut wire = serve(&project, &[("DB_URL", url)]);
        let said = error(&mut wire, json!({"action": "query", "payload": "SELECT 1"}));
        for secret in ["wr0ng-Passw0rd-77", PASSWORD, "n0b0dy-user", "reader", "nowhere", "h0st-name", "://"]
        {
            assert!(!said.contains(secret), "{secret} in {said}");
        }
        assert!(said.contains("DB_URL"), "{said}");
    }
}

#[test]
fn the_schema_of_postgres_has_generated_columns_actions_of_keys_and_conditions_of_indexes() {
    let Some(server) = shop() else { return };
    server.sql(
        "CREATE TABLE parent (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int DEFAULT 1,
            twice int GENERATED ALWAYS AS (n * 2) STORED);
         CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES parent ON DELETE CASCADE ON UPDATE RESTRICT, s text,
            CONSTRAINT short CHECK (length(s) < 9));
         ALTER TABLE child ADD CHECK (p > 0) NOT VALID;
         CREATE UNIQUE INDEX child_part ON child (p) WHERE s = 'zz'",
    );
    let (_project, mut wire) = connect(&server, "reader");
    let schema = answer(&mut wire, json!({"action": "schema", "payload": "*"}));
    let table = |name: &str| {
        let tables = schema["tables"].as_array().unwrap();
        tables.iter().find(|table| table["name"] == name).unwrap_or_else(|| panic!("{schema}")).clone()
    };
    let (child, parent) = (table("child"), table("parent"));
    let key = &child["foreign_keys"][0];
    assert_eq!((&key["on_delete"], &key["on_update"]), (&json!("cascade"), &json!("restrict")));
    assert!(child["indexes"].to_string().contains(r#""predicate":"s = 'zz'::text""#), "{child}");
    let expected = json!([
        {"name": "child_p_check", "expression": "p > 0 NOT VALID"},
        {"name": "short", "expression": "length(s) < 9"},
    ]);
    assert_eq!((&child["checks"], parent.get("checks")), (&expected, None));
    let columns = &parent["columns"];
    assert_eq!((&columns[0]["identity"], &columns[1]["default"]), (&json!("always"), &json!("1")));
    assert_eq!((&columns[2]["generated"], columns[2].get("default")), (&json!("stored (n * 2)"), None));
}

#[test]
fn a_superuser_of_postgres_is_told_of_rows_that_row_security_may_hide() {
    let Some(server) = shop() else { return };
    server.sql(
        "CREATE TABLE rls (id int, o text); INSERT INTO rls VALUES (1, 'x'); ALTER TABLE rls ENABLE ROW LEVEL SECURITY;
         CREATE POLICY own ON rls USING (o = current_user)",
    );
    let (_project, mut wire) = connect(&server, "boss");
    let told = answer(&mut wire, json!({"action": "query", "payload": "SELECT * FROM rls"}));
    assert!(told.to_string().contains("row level security may hide rows of rls"), "{told}");
}
