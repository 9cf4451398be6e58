//! `get_logs` at rest.

use crate::{line, messages, page, serve};
use integration_tests::{Era, Project, Wire, peak_memory_kib};
use serde_json::json;
use std::io::Write;

#[test]
fn the_last_entries_of_a_level_and_above_are_answered_with_all_their_fields() {
    let log = [line(30, "up"), line(50, "down"), line(20, "detail"), line(60, "out")].concat();
    let (_project, mut wire) = serve([("app.log", log.as_str())]);
    let mut text = wire.text("get_logs", json!({"level": "info", "limit": 2}));
    for cursor in ["older_cursor", "newer_cursor"] {
        let value =
            text.split(&format!("\"{cursor}\":\"")).nth(1).unwrap().split('"').next().unwrap().to_owned();
        text = text.replace(&value, "[cursor]");
    }
    insta::assert_snapshot!(text, @r#"
    {"entries":[
    {"timestamp":"2026-11-20T10:00:00.000Z","level":"error","message":"down","line":2},
    {"timestamp":"2026-11-20T10:00:00.000Z","level":"fatal","message":"out","line":4}
    ],"total":3,"malformed":0,"files":["app.log"],"scanned_bytes":187,"older_cursor":"[cursor]","newer_cursor":"[cursor]"}
    "#);
    let result = wire.call("get_logs", json!({"level": "info", "limit": 2}));
    assert_eq!(result.get("structuredContent"), None);
}

#[test]
fn the_tool_is_listed_as_recorded_in_few_bytes() {
    let (_project, mut wire) = serve([]);
    let tools = wire.request("tools/list", json!({}))["result"]["tools"].take();
    let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "get_logs").unwrap().clone();
    insta::assert_json_snapshot!("tool", tool);
    assert!(tool.to_string().len() <= 2_400, "{} bytes", tool.to_string().len());
}

#[test]
fn the_path_in_the_environment_and_the_configured_sources_are_read() {
    let project = Project::with([
        ("var/service.log", line(50, "from the environment").as_str()),
        ("logs/api-1.log", line(50, "from the configuration").as_str()),
        ("coretools.toml", "[logs]\nsources = [\"api=logs/api-*.log\"]\n"),
    ]);
    let mut command = project.server();
    command.env("LOG_PATH", "var/service.log");
    let mut wire = Wire::connect(command, Era::Modern);
    assert_eq!(messages(&page(&mut wire, json!({}))), ["from the environment"]);
    assert_eq!(messages(&page(&mut wire, json!({"source": "api"}))), ["from the configuration"]);
    assert_eq!(messages(&page(&mut wire, json!({"source": "logs/*.log"}))), ["from the configuration"]);

    let mut command = project.server();
    command.env("LOG_PATH", project.join("var/service.log"));
    let mut wire = Wire::connect(command, Era::Modern);
    assert_eq!(messages(&page(&mut wire, json!({}))), ["from the environment"]);
}

#[test]
fn the_logs_of_the_project_are_found_where_nothing_names_them() {
    let (project, mut wire) = serve([("log/development.log", line(50, "found").as_str())]);
    let found = page(&mut wire, json!({}));
    assert_eq!(messages(&found), ["found"]);
    assert_eq!(found["notes"][0], "no `source` was given: log/*.log was found (the usual folders)");
    project.write("out/api.txt", &line(50, "named"));
    project.write(".env", "LOG_FILE=out/api.txt\n");
    let found = page(&mut wire, json!({}));
    assert_eq!((messages(&found), &found["files"]), (vec!["named"], &json!(["out/api.txt"])));
    let (_project, mut wire) = serve([]);
    let said = wire.failure("get_logs", json!({}));
    assert!(said.contains("no .env file names a log, and there is no *.log in logs, log"), "{said}");
}

#[test]
fn nothing_outside_the_roots_is_read_whoever_names_it() {
    let outside = Project::with([("secret.log", line(50, "secret").as_str())]);
    let project = Project::empty();
    std::os::unix::fs::symlink(outside.join("secret.log"), project.join("link.log")).unwrap();
    let mut command = project.server();
    command.env("LOG_PATH", outside.join("secret.log"));
    let mut wire = Wire::connect(command, Era::Modern);
    let absolute = outside.join("secret.log").to_str().unwrap().to_owned();
    for arguments in [
        json!({}),
        json!({"source": "link.log"}),
        json!({"source": absolute}),
        json!({"source": "../*/secret.log"}),
    ] {
        let error = wire.failure("get_logs", arguments.clone());
        assert!(!error.contains(outside.path().to_str().unwrap()), "{arguments}: {error}");
    }
}

#[test]
fn a_role_reads_only_the_logs_it_may_read() {
    let project = Project::with([
        ("app.log", line(50, "not for everyone").as_str()),
        ("docs/build.log", line(50, "for everyone").as_str()),
        (
            "roles.toml",
            "version = 1\n[roles.reader]\nallow = [\"get_logs\"]\n[[roles.reader.require]]\nid = \"docs\"\ntools = \
             [\"*\"]\nread_within = [\"docs\"]\n",
        ),
    ]);
    let mut command = project.server();
    command.args(["--policy", "roles.toml", "--role", "reader"]);
    let mut wire = Wire::connect(command, Era::Modern);
    assert_eq!(messages(&page(&mut wire, json!({"source": "docs/build.log"}))), ["for everyone"]);
    assert_eq!(messages(&page(&mut wire, json!({"source": "docs/*.log"}))), ["for everyone"]);
    let error = wire.failure("get_logs", json!({}));
    assert!(!error.contains("not for everyone"), "{error}");
}

#[test]
fn secrets_are_masked_and_the_answer_stays_json() {
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let key = "-----BEGIN PRIVATE KEY-----\nMIIBVgIBADANBgkqhkiG9w0BAQEFAASCAUAwggE8AgEAAkEA\n-----END PRIVATE KEY-----";
    let log = [
        line(50, &format!("refused {token}")),
        format!("{}\n", json!({"level": 50, "msg": "config", "password": "tR8kQ2vLx9Zp4WmN", "pem": key})),
        "2026-11-20 10:00:00 ERROR url https://user:sesame-open-1@host/\n".to_owned(),
    ]
    .concat();
    let (_project, mut wire) = serve([("app.log", log.as_str())]);
    let read = page(&mut wire, json!({}));
    let text = read.to_string();
    for secret in [token, "tR8kQ2vLx9Zp4WmN", "MIIBVgIBADANBgkq", "sesame-open-1"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    assert_eq!(read["entries"].as_array().unwrap().len(), 3);
    // What is masked must not be a cursor.
    let newer = read["newer_cursor"].clone();
    assert_eq!(messages(&page(&mut wire, json!({"cursor": newer}))), Vec::<&str>::new());
}

#[test]
fn what_does_not_fit_is_named_with_what_is_allowed() {
    let (_project, mut wire) = serve([("app.log", line(50, "x").as_str()), ("server.log", "")]);
    let errors: Vec<String> = [
        json!({"level": "errors"}),
        json!({"limit": 0}),
        json!({"limit": 501}),
        json!({"lines": 5}),
        json!({"since": "soon"}),
        json!({"cursor": "nonsense"}),
        json!({"source": "sever.log"}),
    ]
    .into_iter()
    .map(|arguments| wire.failure("get_logs", arguments))
    .collect();
    insta::assert_snapshot!("errors", errors.join("\n\n"));
}

#[test]
fn a_big_log_is_read_in_little_memory() {
    let project = Project::empty();
    let mut file = std::io::BufWriter::new(std::fs::File::create(project.join("app.log")).unwrap());
    let info = line(30, &"x".repeat(150));
    file.write_all(line(50, "the one").as_bytes()).unwrap();
    for _ in 0..(256 << 20) / info.len() {
        file.write_all(info.as_bytes()).unwrap();
    }
    file.flush().unwrap();
    let mut wire = Wire::connect(project.server(), Era::Modern);
    page(&mut wire, json!({"limit": 1}));
    let before = peak_memory_kib(wire.pid());
    assert_eq!(messages(&page(&mut wire, json!({"level": "error"}))), ["the one"]);
    let grown = peak_memory_kib(wire.pid()) - before;
    assert!(grown < 8 << 10, "{grown} KiB for 256 MiB");
}

/// Two writers that do not wait for each other: two records on one line, and one within another.
#[test]
fn a_broken_line_is_counted_whatever_level_was_asked_for() {
    let whole = line(30, "fine");
    let glued = format!("{}{}", whole.trim_end(), line(50, "E1"));
    let torn = "{\"level\":\"info\",\"msg\":\"half {\"level\":\"error\",\"msg\":\"boom\"}\n";
    let (_project, mut wire) = serve([("app.log", [&whole, &glued, torn, &whole].concat().as_str())]);
    for level in ["debug", "error"] {
        let found = page(&mut wire, json!({"level": level}));
        assert_eq!(found["malformed"], 2, "{level}: {found}");
        let found = page(&mut wire, json!({"level": level, "malformed": true}));
        let texts = messages(&found).join("\n");
        assert!(texts.contains("E1") && texts.contains("boom"), "{level}: {found}");
    }
    let counted = page(&mut wire, json!({"level": "error", "group_by": "message"}));
    assert_eq!((&counted["total"], &counted["malformed"]), (&json!(0), &json!(2)), "{counted}");
}

#[test]
fn numbers_are_those_that_were_written() {
    let numbers = r#""e":123456789.12345679,"a":-1.5e-300,"w":9007199254740993"#;
    let log = format!("{{\"level\":\"error\",\"msg\":\"m\",{numbers},\"id\":12345678901234567890123}}\n");
    let (_project, mut wire) = serve([("app.log", log.as_str())]);
    let text = wire.text("get_logs", json!({}));
    // No number of 64 bits holds the last one.
    assert!(text.contains(numbers) && text.contains(r#""id":"12345678901234567890123""#), "{text}");
}

#[test]
fn an_error_behind_a_carriage_return_is_found() {
    let old = "2026-11-27T10:00:01Z INFO m0\r2026-11-27T10:00:05Z ERROR E1\r";
    let (_project, mut wire) = serve([("cr.log", old), ("bar.log", "get 10%\rget 90%\rERROR: E2\ndone\n")]);
    let found = page(&mut wire, json!({"source": "cr.log", "level": "error"}));
    assert_eq!(messages(&found), ["m0\n2026-11-27T10:00:05Z ERROR E1"], "{found}");
    let found = page(&mut wire, json!({"source": "bar.log", "level": "error"}));
    assert_eq!(messages(&found), ["get 10%\nget 90%\nERROR: E2"], "{found}");
}

#[test]
fn rotated_files_are_read_or_named() {
    let log = |text: &str| format!("2026-11-27T10:00:05Z ERROR {text}\n");
    let project = Project::with([("app.log", log("current").as_str())]);
    project.write("app.2026-11-25.log", &log("older"));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(log("packed").as_bytes()).unwrap();
    std::fs::write(project.join("app.2026-11-26.gz"), packed.finish().unwrap()).unwrap();
    for name in
        ["app.old.log", "app.log.orig", "app.log.save", "app-2026-11-24.zip", "app.log.2026-11-23.tar.gz"]
    {
        project.write(name, &log("in another form"));
    }
    project.write("worker.log", &log("another program"));
    let mut wire = Wire::connect(project.server(), Era::Modern);
    let found = page(&mut wire, json!({}));
    assert_eq!(messages(&found), ["older", "packed", "current"], "{found}");
    let notes = found["notes"].to_string();
    for name in
        ["app.old.log", "app.log.orig", "app.log.save", "app-2026-11-24.zip", "app.log.2026-11-23.tar.gz"]
    {
        assert!(notes.contains(name), "{name}: {notes}");
    }
    assert!(!notes.contains("worker"), "{notes}");
}

#[cfg(unix)]
#[test]
fn a_file_of_the_source_that_cannot_be_read_is_named() {
    let elsewhere = Project::with([("secret.log", "2026-11-27T10:00:05Z ERROR elsewhere\n")]);
    let project = Project::with([("logs/a.log", "2026-11-27T10:00:05Z ERROR here\n")]);
    std::os::unix::fs::symlink(elsewhere.join("secret.log"), project.join("logs/b.log")).unwrap();
    std::os::unix::fs::symlink(elsewhere.join("secret.log"), project.join("logs/a.log.1")).unwrap();
    let mut wire = Wire::connect(project.server(), Era::Modern);
    for (source, name) in [("logs/*.log", "b.log"), ("logs/a.log", "a.log.1")] {
        let found = page(&mut wire, json!({"source": source}));
        assert_eq!(messages(&found), ["here"], "{found}");
        let notes = found["notes"].to_string();
        assert!(notes.contains("not read, because of an error") && notes.contains(name), "{source}: {notes}");
    }
    let said = wire.failure("get_logs", json!({"source": "logs/b*.log"}));
    assert!(said.contains("b.log") && said.contains("outside"), "{said}");
    std::fs::remove_file(project.join("logs/b.log")).unwrap();
    std::os::unix::fs::symlink("gone.log", project.join("logs/b.log")).unwrap();
    let found = page(&mut wire, json!({"source": "logs/*.log"}));
    assert!(found["notes"].to_string().contains("logs/b.log leads to a file that does not exist"), "{found}");
}

/// Programs that begin a file each day keep a link to the last one.
#[cfg(unix)]
#[test]
fn a_link_to_another_file_of_the_source_adds_no_entries() {
    let project = Project::with([("logs/today.log", "2026-11-27T10:00:05Z ERROR once\n")]);
    std::os::unix::fs::symlink("today.log", project.join("logs/current.log")).unwrap();
    let mut wire = Wire::connect(project.server(), Era::Modern);
    let found = page(&mut wire, json!({"group_by": "message"}));
    assert_eq!((&found["total"], &found["files"]), (&json!(1), &json!(["logs/today.log"])), "{found}");
    let found = page(&mut wire, json!({}));
    assert_eq!((messages(&found), &found["files"]), (vec!["once"], &json!(["logs/today.log"])), "{found}");
    let found = page(&mut wire, json!({"source": "logs/current.log"}));
    assert_eq!(messages(&found), ["once"], "{found}");
}
