//! Logs that the loggers themselves write; see `loggers/README.md` for where they come from.

use crate::{page, serve};
use serde_json::{Value, json};

const LOGGERS: [&str; 18] = [
    "pino",
    "bunyan",
    "winston",
    "zap",
    "zap-console",
    "logrus",
    "logrus-text",
    "slog",
    "slog-text",
    "tracing-json",
    "tracing-flat",
    "tracing-text",
    "structlog",
    "loguru",
    "python-json-logger",
    "logging",
    "basic",
    "serilog",
];

fn written_by(logger: &str) -> String {
    let path = format!("{}/introspection/loggers/{logger}.log", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_logger_is_read_as_recorded() {
    let (project, mut wire) = serve([]);
    let mut read = Vec::new();
    for logger in LOGGERS {
        project.write("app.log", &written_by(logger));
        let page = page(&mut wire, json!({"level": "debug"}));
        let lines: Vec<String> = page["entries"].as_array().unwrap().iter().map(Value::to_string).collect();
        read.push(format!("== {logger}, {} malformed\n{}", page["malformed"], lines.join("\n")));
    }
    insta::assert_snapshot!("loggers", read.join("\n"));
}

#[test]
fn every_logger_tells_its_errors_from_the_rest() {
    let (project, mut wire) = serve([]);
    for logger in LOGGERS {
        project.write("app.log", &written_by(logger));
        let page = page(&mut wire, json!({"level": "error"}));
        let entries = page["entries"].as_array().unwrap();
        assert_eq!(entries.len(), 1, "{logger}: {page}");
        assert_eq!(entries[0]["level"], "error", "{logger}");
        assert!(entries[0]["message"].as_str().unwrap().contains("payment failed"), "{logger}: {page}");
    }
}

#[test]
fn lines_of_all_loggers_in_one_file_are_read_as_in_files_of_their_own() {
    let all: String = LOGGERS.into_iter().map(written_by).collect();
    let (_project, mut wire) = serve([("app.log", all.as_str())]);
    let read = page(&mut wire, json!({"level": "error"}));
    assert_eq!(read["entries"].as_array().unwrap().len(), LOGGERS.len(), "{read}");
    assert_eq!(read["malformed"], 0);
}
