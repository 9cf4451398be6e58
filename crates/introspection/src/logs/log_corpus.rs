//! Logs of real formats with what is read of each entry, so that a change in parsing shows.
//!
//! The logs are in `tests/log_corpus`; a snapshot beside them has the level, the time, the message and the fields of
//! each entry. No file changes its meaning with the day: each was last changed on 2026-11-21.
#![allow(clippy::disallowed_methods, reason = "these are the applications that write the logs")]
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use super::{EntryLevel, GetLogs, LogPage, Logs};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;
use workspace::Workspace;

/// Seconds from 1970 to 2026-11-21T00:00:00Z.
const LAST_CHANGE: u64 = 1_795_219_200;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/log_corpus")
}

fn names() -> Vec<String> {
    let files = fs::read_dir(corpus()).unwrap().map(|entry| entry.unwrap().path());
    let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    let mut names: Vec<String> =
        logs.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

fn read(name: &str, query: &GetLogs) -> LogPage {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    fs::copy(corpus().join(format!("{name}.log")), &path).unwrap();
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(LAST_CHANGE);
    File::options().write(true).open(&path).unwrap().set_modified(changed).unwrap();
    let logs = Logs::new(Arc::new(Workspace::new([folder.path()]).unwrap()));
    logs.read(query, &CancellationToken::new()).unwrap()
}

#[test]
fn every_entry_of_the_corpus_is_read_as_recorded() {
    let names = names();
    assert!(names.len() >= 60, "{} logs", names.len());
    let mut recorded = String::new();
    for name in names {
        recorded.push_str(&format!("# {name}\n"));
        let page =
            read(&name, &GetLogs { level: Some(EntryLevel::Trace), malformed: true, ..GetLogs::default() });
        for entry in &page.entries {
            let time = entry.timestamp.as_deref().unwrap_or("-");
            let message = entry.message.replace('\t', "\\t").replace('\n', "\n    | ");
            recorded.push_str(&format!("{} {time} {message}\n", entry.level));
            if !entry.fields.is_empty() {
                let fields = serde_json::Value::Object(entry.fields.clone());
                recorded.push_str(&format!("    {fields}\n"));
            }
        }
        recorded.push('\n');
    }
    insta::assert_snapshot!("corpus", recorded);
}

#[test]
fn no_error_of_the_corpus_is_lost_to_a_query_for_errors() {
    for name in names() {
        let all = read(&name, &GetLogs { level: Some(EntryLevel::Trace), ..GetLogs::default() });
        let errors = read(&name, &GetLogs { level: Some(EntryLevel::Error), ..GetLogs::default() });
        let expected: Vec<&str> = all
            .entries
            .iter()
            .filter(|entry| matches!(entry.level, "error" | "fatal"))
            .map(|entry| entry.message.as_str())
            .collect();
        let found: Vec<&str> = errors.entries.iter().map(|entry| entry.message.as_str()).collect();
        assert_eq!(found, expected, "{name}");
        let unknown = all.entries.iter().filter(|entry| entry.level == "unknown").count() as u64;
        let told: u64 = errors.not_understood.iter().map(|left_out| left_out.count).sum();
        assert_eq!(told, unknown, "{name}: {:?}", errors.not_understood);
    }
}
