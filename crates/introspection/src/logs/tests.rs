//! Reading and following whole sources, on real files.
#![allow(clippy::disallowed_methods, reason = "these are the application that writes the logs")]
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(
    clippy::needless_pass_by_value,
    reason = "calls read better with a query than with a reference to one"
)]

use super::cursor::Cursor;
use super::files::LogSource;
use super::followers::{MergedFollowBatch, SourceFollowers};
use super::query::LogEntryFilter;
use super::reader::FIRST_ENTRY_TIMEOUT;
use super::{EntryLevel, GetLogs, LogEntry, LogPage, Logs, UnknownPart};
use proptest::prelude::*;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio_util::sync::CancellationToken;
use workspace::Workspace;

struct LoggingApplication {
    folder: tempfile::TempDir,
}

impl LoggingApplication {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn with(content: &str) -> Self {
        let application = Self::new();
        application.write("app.log", content);
        application
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        let mut file = File::options().create(true).append(true).open(self.path(name)).unwrap();
        file.write_all(content.as_bytes()).unwrap();
    }

    fn logs(&self) -> Logs {
        Logs::new(Arc::new(Workspace::new([self.folder.path()]).unwrap()))
    }

    fn read(&self, query: GetLogs) -> LogPage {
        self.logs().read(&query, &CancellationToken::new()).unwrap()
    }

    fn error(&self, query: GetLogs) -> String {
        self.logs().read(&query, &CancellationToken::new()).unwrap_err().to_string()
    }

    fn source(&self) -> LogSource {
        LogSource::new(&Workspace::new([self.folder.path()]).unwrap(), "app.log", "app.log").unwrap()
    }

    /// `app.log.1` becomes `app.log.2` and so on.
    fn shift(&self) {
        let mut last = 1;
        while self.path(&format!("app.log.{last}")).exists()
            || self.path(&format!("app.log.{last}.gz")).exists()
        {
            last += 1;
        }
        for number in (1..last).rev() {
            for end in ["", ".gz"] {
                let from = self.path(&format!("app.log.{number}{end}"));
                if from.exists() {
                    fs::rename(from, self.path(&format!("app.log.{}{end}", number + 1))).unwrap();
                }
            }
        }
    }

    fn rotate(&self) {
        self.shift();
        fs::rename(self.path("app.log"), self.path("app.log.1")).unwrap();
        File::create(self.path("app.log")).unwrap();
    }

    fn copy_truncate(&self) {
        self.shift();
        fs::copy(self.path("app.log"), self.path("app.log.1")).unwrap();
        File::options().write(true).truncate(true).open(self.path("app.log")).unwrap();
    }

    fn pack(&self, name: &str) {
        pack(&self.path(name));
    }
}

fn pack(path: &Path) {
    if let Ok(content) = fs::read(path) {
        let packed =
            File::create(path.with_file_name(format!("{}.gz", path.file_name().unwrap().to_str().unwrap())));
        let mut packed = flate2::write::GzEncoder::new(packed.unwrap(), flate2::Compression::fast());
        packed.write_all(&content).unwrap();
        packed.finish().unwrap();
        fs::remove_file(path).unwrap();
    }
}

fn line(number: usize) -> String {
    let level = 10 * (number % 6 + 1);
    let time = 1_795_168_800_000_u64 + number as u64 * 1000;
    format!("{{\"level\":{level},\"time\":{time},\"pid\":7,\"msg\":\"entry {number}\"}}\n")
}

fn lines(numbers: std::ops::Range<usize>) -> String {
    numbers.map(line).collect()
}

fn messages(page: &LogPage) -> Vec<&str> {
    page.entries.iter().map(|entry| entry.message.as_str()).collect()
}

fn at(level: EntryLevel) -> GetLogs {
    GetLogs { level: Some(level), ..GetLogs::default() }
}

#[test]
fn a_level_is_a_minimum_and_exact_on_request() {
    let application = LoggingApplication::with(&lines(0..12));
    assert_eq!(
        messages(&application.read(at(EntryLevel::Error))),
        ["entry 4", "entry 5", "entry 10", "entry 11"]
    );
    let exact = GetLogs { exact: true, ..at(EntryLevel::Error) };
    assert_eq!(messages(&application.read(exact)), ["entry 4", "entry 10"]);
    assert_eq!(application.read(at(EntryLevel::Trace)).entries.len(), 12);
}

#[test]
fn the_last_entries_come_oldest_first_with_their_lines() {
    let application = LoggingApplication::with(&lines(0..50));
    let page = application.read(GetLogs { limit: Some(2), ..at(EntryLevel::Trace) });
    assert_eq!(messages(&page), ["entry 48", "entry 49"]);
    assert_eq!(page.entries.iter().map(|entry| entry.line).collect::<Vec<_>>(), [Some(49), Some(50)]);
}

#[test]
fn broken_lines_are_counted_and_shown_on_request() {
    let application = LoggingApplication::with(
        "{\"level\":50,\"msg\":\"a\"}\n{\"level\":50,\"ms\n{\"level\":50,,}\n{nothing}\n",
    );
    let page = application.read(at(EntryLevel::Error));
    assert_eq!((messages(&page), page.malformed), (vec!["a"], 3));
    let page = application.read(GetLogs { malformed: true, ..at(EntryLevel::Error) });
    assert_eq!(messages(&page), ["a", "{\"level\":50,\"ms", "{\"level\":50,,}", "{nothing}"]);
    assert_eq!(page.entries[1].level, "malformed");
}

#[test]
fn times_and_text_narrow_what_is_answered() {
    let application = LoggingApplication::with(&lines(0..60));
    let query = GetLogs {
        since: Some("2026-11-20T10:00:10Z".to_owned()),
        until: Some("2026-11-20T10:00:12Z".to_owned()),
        ..at(EntryLevel::Trace)
    };
    assert_eq!(messages(&application.read(query)), ["entry 10", "entry 11", "entry 12"]);
    let query = GetLogs { contains: Some("entry 5".to_owned()), limit: Some(3), ..at(EntryLevel::Trace) };
    assert_eq!(messages(&application.read(query)), ["entry 57", "entry 58", "entry 59"]);
}

#[test]
fn text_is_found_in_a_stack_trace_and_behind_escapes() {
    let application = LoggingApplication::with(
        "{\"level\":50,\"msg\":\"say \\\"hi\\\"\"}\n2026-11-20 10:00:00 ERROR failed\n\tat a.Needle\n",
    );
    let find =
        |text: &str| application.read(GetLogs { contains: Some(text.to_owned()), ..GetLogs::default() });
    assert_eq!(messages(&find("say \"hi\"")), ["say \"hi\""]);
    assert_eq!(messages(&find("Needle")), ["failed\n\tat a.Needle"]);
    assert_eq!(messages(&find("absent")), Vec::<&str>::new());
}

#[test]
fn since_ends_the_reading_early() {
    let text = lines(0..10_000).repeat(12) + &lines(0..50_000);
    let application = LoggingApplication::with(&text);
    let query = GetLogs { since: Some("2026-11-20T23:53:10Z".to_owned()), ..at(EntryLevel::Trace) };
    let page = application.read(query);
    assert_eq!(page.entries.last().unwrap().message, "entry 49999");
    assert_eq!(page.entries[0].message, "entry 49990");
    assert!(page.scanned_bytes + (4 << 20) < text.len() as u64, "{} of {}", page.scanned_bytes, text.len());
    assert_eq!(page.older_cursor, None);
}

#[test]
fn since_finds_an_entry_before_a_long_stretch_of_older_ones() {
    let padding = "p".repeat(3000);
    let stretch = |lines: usize| {
        let old = |line| {
            format!("2026-11-22 08:{:02}:{:02} ERROR old{line} {padding}\n", line / 60 % 60, line % 60)
        };
        (0..lines).map(old).collect::<String>()
    };
    let since = || GetLogs { since: Some("2026-11-23T11:00:00Z".to_owned()), ..at(EntryLevel::Error) };
    let wanted = "2026-11-23 12:00:00 ERROR wanted\n";
    for text in [format!("{wanted}{}", stretch(1_600)), format!("{}{wanted}{}", stretch(600), stretch(600))] {
        assert_eq!(messages(&LoggingApplication::with(&text).read(since())), ["wanted"]);
    }
    // A larger file is looked at in places.
    let recent: String =
        (0..100).map(|line| format!("2026-11-23 12:00:00 ERROR wanted{line} {padding}\n")).collect();
    let text = format!("{}{recent}{}", stretch(3_000), stretch(3_000));
    let application = LoggingApplication::with(&text);
    let more = application.read(GetLogs { limit: Some(3), ..since() });
    assert!(more.entries[2].message.starts_with("wanted99 "), "{more:?}");
    application.write("other.log", wanted);
    let both = application.read(GetLogs { source: Some("*.log".to_owned()), limit: Some(2), ..since() });
    assert!(both.entries.iter().all(|entry| entry.message.starts_with("wanted")), "{both:?}");
    assert_eq!(both.entries.len(), 2);
}

#[test]
fn rotated_files_that_are_not_read_are_told() {
    let application = LoggingApplication::with("2026-11-20 10:00:00 ERROR now\n");
    for name in ["app.log.3.xz", "app.log.4.bz2", "app.log.5.zst", "app.log.old", "other.log"] {
        application.write(name, "2026-11-20 09:00:00 ERROR before\n");
    }
    let page = application.read(at(EntryLevel::Error));
    assert_eq!(messages(&page), ["now"]);
    let note = page.notes.iter().find(|note| note.starts_with("not read: ")).unwrap();
    assert!(note.contains("app.log.3.xz, app.log.4.bz2, app.log.5.zst, app.log.old;"), "{note}");
    let glob = application.read(GetLogs { source: Some("app.log*".to_owned()), ..at(EntryLevel::Error) });
    assert!(glob.notes.iter().any(|note| note.contains("app.log.3.xz")), "{:?}", glob.notes);
    assert!(!glob.files.iter().any(|file| file.ends_with(".xz")), "{:?}", glob.files);
    let error = application.error(GetLogs { source: Some("app.log.3.xz".to_owned()), ..GetLogs::default() });
    assert!(error.contains("app.log.3.xz is compressed in a form that is not read"), "{error}");
}

#[test]
fn a_time_in_a_zone_that_is_not_known_is_told_and_others_are_converted() {
    let application = LoggingApplication::with(
        "2026-11-23 14:40:36.755 -03 [1] ERROR:  division by zero\n2026-11-23 23:10:37 IST [2] ERROR:  again\n",
    );
    let since = GetLogs { since: Some("2026-11-23T17:40:00Z".to_owned()), ..at(EntryLevel::Error) };
    let page = application.read(since);
    assert_eq!(messages(&page), ["[1] ERROR:  division by zero"]);
    assert_eq!(page.entries[0].timestamp.as_deref(), Some("2026-11-23T17:40:36.755Z"));
    assert_eq!(page.not_understood.len(), 1);
    assert_eq!((page.not_understood[0].part, page.not_understood[0].count), (UnknownPart::Time, 1));
}

#[test]
fn older_cursors_lead_through_all_rotated_files_once() {
    let application = LoggingApplication::new();
    application.write("app.log.3", &lines(0..1000));
    application.pack("app.log.3");
    application.write("app.log.2", &lines(1000..2000));
    application.write("app.log.1", &lines(2000..2500));
    application.write("app.log", &lines(2500..3000));
    let mut cursor = None;
    let mut found = Vec::new();
    loop {
        let query = GetLogs { cursor, limit: Some(137), ..at(EntryLevel::Trace) };
        let page = application.read(query);
        found.splice(0..0, page.entries.iter().map(|entry| entry.message.clone()));
        if page.older_cursor.is_none() {
            break;
        }
        if found.len() > 400 && found.len() < 600 {
            application.rotate();
        }
        cursor = page.older_cursor;
    }
    let expected: Vec<String> = (0..3000).map(|number| format!("entry {number}")).collect();
    assert_eq!(found, expected);
}

#[test]
fn an_answer_has_at_most_its_bytes_and_says_how_to_get_the_rest() {
    let long = "x".repeat(3000);
    let content: String =
        (0..100).map(|number| format!("{{\"level\":50,\"msg\":\"{number} {long}\"}}\n")).collect();
    let application = LoggingApplication::with(&content);
    let page = application.read(GetLogs { limit: Some(500), ..at(EntryLevel::Error) });
    assert!(page.to_text().len() < 40_000, "{}", page.to_text().len());
    assert!(page.entries.len() > 5 && page.older_cursor.is_some());
    assert!(page.notes[0].contains("older_cursor"), "{:?}", page.notes);
    assert!(page.entries.last().unwrap().message.starts_with("99 "));
}

#[test]
fn a_half_written_last_line_is_left_for_the_next_reader() {
    let application = LoggingApplication::with(&format!("{}{{\"level\":50,\"msg\":\"ha", line(4)));
    let page = application.read(at(EntryLevel::Error));
    assert_eq!((messages(&page), page.malformed), (vec!["entry 4"], 0));
    assert!(page.notes.iter().any(|note| note.contains("is left for newer_cursor")), "{:?}", page.notes);
    let cursor = page.newer_cursor.clone();
    let unchanged = application.read(GetLogs { cursor, ..at(EntryLevel::Error) });
    assert_eq!(messages(&unchanged), Vec::<&str>::new());
    assert!(unchanged.notes[0].contains("is left for newer_cursor"), "{:?}", unchanged.notes);
    application.write("app.log", "lf\"}\n");
    let page = application.read(GetLogs { cursor: page.newer_cursor, ..at(EntryLevel::Error) });
    assert_eq!(messages(&page), ["half"]);
}

#[test]
fn an_entry_that_was_read_while_it_was_written_is_answered_whole_later() {
    const HEAD: &str = "2026-11-20 10:00:00 ERROR pay failed";
    const TRACE: &str = "\njava.lang.IllegalStateException: bad\n\tat a.B.c(B.java:1)\n";
    let whole = format!("{HEAD}{TRACE}");
    // The line feed may come with the head, alone, or with what follows.
    for cut in 1..whole.len() {
        let (begun, rest) = whole.split_at(cut);
        let application = LoggingApplication::with(&format!("{}{begun}", line(0)));
        let next = |page: LogPage| {
            let page = application.read(GetLogs { cursor: page.newer_cursor, ..at(EntryLevel::Trace) });
            let texts: Vec<String> = page.entries.iter().map(|entry| entry.message.clone()).collect();
            (page, texts)
        };
        let first = application.read(at(EntryLevel::Trace));
        assert_eq!(first.entries.len(), 2, "{begun:?}");
        let (page, texts) = next(first);
        assert_eq!((texts.len(), page.notes.len()), (0, 0), "{begun:?}: {texts:?} {:?}", page.notes);
        application.write("app.log", rest);
        let (page, texts) = next(page);
        let expected = "pay failed\njava.lang.IllegalStateException: bad\n\tat a.B.c(B.java:1)";
        // Only the line feed was missing: nothing is new.
        let is_complete = rest.trim().is_empty();
        let expected = if is_complete { vec![] } else { vec![expected.to_owned()] };
        assert_eq!(texts, expected, "{begun:?}");
        if !is_complete {
            assert_eq!((page.entries[0].line, page.notes.len()), (Some(2), 1), "{:?}", page.notes);
        }
        let (page, texts) = next(page);
        assert_eq!(texts, Vec::<String>::new(), "{begun:?}");
        application.write("app.log", &line(1));
        assert_eq!(next(page).1, ["entry 1"], "{begun:?}");
    }
}

#[test]
fn what_is_added_to_an_older_file_that_a_link_leads_to_is_answered_alone() {
    let application = LoggingApplication::new();
    let link = |target: &str| {
        let _ = fs::remove_file(application.path("app.log"));
        std::os::unix::fs::symlink(target, application.path("app.log")).unwrap();
    };
    application.write("older.txt", &lines(0..3));
    application.write("newer.txt", &lines(10..12));
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    for name in ["older.txt", "newer.txt"] {
        let file = File::options().append(true).open(application.path(name)).unwrap();
        file.set_modified(hour_ago).unwrap();
    }
    link("newer.txt");
    let next =
        |page: LogPage| application.read(GetLogs { cursor: page.newer_cursor, ..at(EntryLevel::Trace) });
    let page = application.read(at(EntryLevel::Trace));
    link("older.txt");
    application.write("newer.txt", &line(12));
    let page = next(page);
    assert_eq!(messages(&page), ["entry 12"]);
    assert!(page.notes[0].contains("is an older file now"), "{:?}", page.notes);
    let page = next(page);
    assert_eq!(messages(&page), Vec::<&str>::new());
    application.write("older.txt", &line(3));
    let page = next(page);
    assert_eq!((messages(&page), page.entries[0].line), (vec!["entry 3"], Some(4)));
    application.write("older.txt", &line(4));
    assert_eq!(messages(&next(page)), ["entry 4"]);
}

#[test]
fn a_newer_cursor_answers_only_what_is_new() {
    let application = LoggingApplication::with(&lines(0..10));
    let first = application.read(at(EntryLevel::Trace));
    application.write("app.log", &lines(10..12));
    let second = application.read(GetLogs { cursor: first.newer_cursor, ..at(EntryLevel::Trace) });
    assert_eq!(messages(&second), ["entry 10", "entry 11"]);
    assert_eq!(second.entries[0].line, Some(11));
    let third = application.read(GetLogs { cursor: second.newer_cursor, ..at(EntryLevel::Trace) });
    assert_eq!(messages(&third), Vec::<&str>::new());
}

#[test]
fn a_glob_is_one_log_in_the_order_of_its_files() {
    let application = LoggingApplication::new();
    fs::create_dir(application.path("logs")).unwrap();
    application.write("logs/api-b.log", &lines(0..2));
    std::thread::sleep(Duration::from_millis(20));
    application.write("logs/api-a.log", &lines(2..4));
    application.write("logs/web.log", &lines(9..10));
    let logs = application.logs().named([("api".to_owned(), "logs/api-*.log".to_owned())]);
    for source in [Some("api".to_owned()), Some("logs/api-*.log".to_owned()), None] {
        let query = GetLogs { source, ..at(EntryLevel::Trace) };
        let page = logs.read(&query, &CancellationToken::new()).unwrap();
        assert_eq!(messages(&page), ["entry 0", "entry 1", "entry 2", "entry 3"]);
        assert_eq!(page.entries[0].file.as_deref(), Some("logs/api-b.log"));
    }
}

#[test]
fn the_files_of_a_glob_are_merged_by_time_in_any_number_of_pages() {
    let application = LoggingApplication::new();
    fs::create_dir(application.path("logs")).unwrap();
    for number in 0..3000 {
        application.write(&format!("logs/worker-{}.log", number % 7 % 3), &line(number));
    }
    application.write("logs/worker-old.log", "no time at all\n");
    application.pack("logs/worker-2.log");
    let (mut cursor, mut found) = (None, Vec::new());
    loop {
        let query = GetLogs {
            source: Some("logs/worker-*.log*".to_owned()),
            cursor,
            limit: Some(223),
            ..at(EntryLevel::Trace)
        };
        let page = application.read(query);
        let numbers =
            page.entries.iter().filter(|entry| entry.file.as_deref() != Some("logs/worker-old.log"));
        found.splice(0..0, numbers.map(|entry| (entry.message.clone(), entry.line.unwrap())));
        cursor = page.older_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let mut lines = [0; 3];
    let expected: Vec<(String, u64)> = (0..3000)
        .map(|number: usize| {
            lines[number % 7 % 3] += 1;
            (format!("entry {number}"), lines[number % 7 % 3])
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn new_entries_of_several_files_are_merged_and_none_comes_twice() {
    let application = LoggingApplication::new();
    application.write("a.log", &lines(0..2));
    application.write("b.log", &lines(2..4));
    let query = |cursor| GetLogs { source: Some("*.log".to_owned()), cursor, ..at(EntryLevel::Trace) };
    let first = application.read(query(None));
    application.write("a.log", &line(5));
    application.write("b.log", &line(4));
    application.write("c.log", &line(6));
    let second = application.read(query(first.newer_cursor));
    assert_eq!(messages(&second), ["entry 4", "entry 5", "entry 6"]);
    assert_eq!(second.entries[0].file.as_deref(), Some("b.log"));
    let third = application.read(query(second.newer_cursor));
    assert_eq!(messages(&third), Vec::<&str>::new());
}

#[test]
fn pieces_of_both_streams_of_a_container_are_put_together_by_stream() {
    let piece = |second: u32, stream: &str, tag: &str, text: &str| {
        format!("2026-11-20T10:00:{second:02}.000000000Z {stream} {tag} {text}\n")
    };
    let content = [
        piece(0, "stdout", "P", r#"{"level":"error","msg":"out "#),
        piece(1, "stderr", "P", r#"{"level":"warn","msg":"err "#),
        piece(2, "stdout", "P", "of "),
        piece(3, "stderr", "F", r#"of order"}"#),
        piece(4, "stdout", "F", r#"memory"}"#),
        piece(5, "stderr", "P", "ERROR half "),
        piece(6, "stdout", "F", "INFO between"),
        piece(7, "stderr", "F", "whole"),
        piece(8, "stdout", "F", "INFO last"),
    ];
    let expected = [
        ("error", "out of memory"),
        ("warn", "err of order"),
        ("error", "half whole"),
        ("info", "between"),
        ("info", "last"),
    ];
    let found = |page: &LogPage| {
        page.entries.iter().map(|entry| (entry.level, entry.message.clone())).collect::<Vec<_>>()
    };
    let expected = expected.map(|(level, message)| (level, message.to_owned()));
    let application = LoggingApplication::with(&content.concat());
    assert_eq!(found(&application.read(at(EntryLevel::Info))), expected);
    // Through pages of one, packed, among the files of a glob, and as new entries: the same ones.
    let mut query = GetLogs { limit: Some(1), ..at(EntryLevel::Info) };
    let mut paged = Vec::new();
    loop {
        let page = application.read(query.clone());
        paged.splice(0..0, found(&page));
        let Some(cursor) = page.older_cursor else { break };
        query.cursor = Some(cursor);
    }
    assert_eq!(paged, expected);
    application.write("b.log", "2026-11-20T09:00:00Z INFO other\n");
    let merged = application.read(GetLogs { source: Some("*.log".to_owned()), ..at(EntryLevel::Info) });
    assert_eq!(found(&merged).get(1..).unwrap(), expected);
    application.pack("app.log");
    let packed = application.read(GetLogs { source: Some("app.log.gz".to_owned()), ..at(EntryLevel::Info) });
    assert_eq!(found(&packed), expected);
    let text = GetLogs { contains: Some("half whole".to_owned()), ..at(EntryLevel::Info) };
    let application = LoggingApplication::with("2026-11-20T09:00:00Z stdout F INFO first\n");
    let mut cursor = application.read(at(EntryLevel::Info)).newer_cursor;
    application.write("app.log", &content.concat());
    assert_eq!(found(&application.read(text)), expected.get(2..3).unwrap());
    let mut followed = Vec::new();
    loop {
        let page =
            application.read(GetLogs { cursor: cursor.clone(), limit: Some(1), ..at(EntryLevel::Info) });
        if page.entries.is_empty() {
            break;
        }
        followed.extend(found(&page));
        cursor = page.newer_cursor;
    }
    assert_eq!(followed, expected);
}

#[test]
fn a_trace_of_one_stream_of_a_container_goes_on_behind_lines_of_the_other() {
    let content = "2026-11-20T20:00:01.000000005Z stderr F panic: boom\n\
        2026-11-20T20:00:01.100000005Z stdout F GET /health 200\n\
        2026-11-20T20:00:01.200000005Z stderr F \n\
        2026-11-20T20:00:01.300000005Z stderr F goroutine 1 [running]:\n\
        2026-11-20T20:00:01.350000005Z stdout F GET /orders 200\n\
        2026-11-20T20:00:01.400000005Z stderr F main.main()\n\
        2026-11-20T20:00:01.500000005Z stderr F \t/app/main.go:5 +0x1d\n";
    let application = LoggingApplication::with(content);
    let expected = [
        "panic: boom\ngoroutine 1 [running]:\nmain.main()\n\t/app/main.go:5 +0x1d",
        "GET /health 200",
        "GET /orders 200",
    ];
    assert_eq!(messages(&application.read(at(EntryLevel::Debug))), expected);
    application.pack("app.log");
    let packed = application.read(GetLogs { source: Some("app.log.gz".to_owned()), ..at(EntryLevel::Debug) });
    assert_eq!(messages(&packed), expected);
}

#[test]
fn the_most_frequent_message_of_a_group_is_found_behind_any_number_of_others() {
    let word = |number: usize| {
        let letter = |place: u32| char::from(b'a' + u8::try_from(number / 26_usize.pow(place) % 26).unwrap());
        (0..4).map(letter).collect::<String>()
    };
    let line = |text: String| format!("2026-11-20 10:00:00 INFO {text}\n");
    for (others, at_least) in [(300, false), (120_000, true)] {
        let mut content: String =
            (0..others).map(|number| line(format!("unique {}", word(number)))).collect();
        content.push_str(&line("hot message".to_owned()).repeat(1000));
        let application = LoggingApplication::with(&content);
        let page = application.read(GetLogs { group_by: Some("level".to_owned()), ..at(EntryLevel::Info) });
        let [group] = page.groups.as_slice() else { panic!("{:?}", page.groups) };
        let first = group.messages.first().unwrap();
        assert_eq!((first.message.as_str(), first.count), ("hot message", 1000));
        assert_eq!(group.distinct_at_least, at_least);
        match at_least {
            false => assert_eq!(group.distinct_messages, others + 1),
            true => assert!(group.distinct_messages > 100_000 && group.distinct_messages <= others + 1),
        }
    }
}

#[test]
fn the_hour_of_mariadb_before_ten_is_understood() {
    let application = LoggingApplication::with(
        "2026-11-20  8:00:01 3 [ERROR] InnoDB: Unable to lock ./ibdata1 error: 11\n",
    );
    let page =
        application.read(GetLogs { since: Some("2026-11-20T00:00:00Z".to_owned()), ..at(EntryLevel::Info) });
    assert_eq!(page.entries.first().unwrap().timestamp.as_deref(), Some("2026-11-20T08:00:01.000Z"));
}

#[test]
fn entries_without_a_known_time_in_a_part_that_since_leaves_unread_are_told() {
    let old = |number: u32| {
        format!("2026-11-19 {:02}:{:02}:00 INFO {}\n", number / 60 % 24, number % 60, "x".repeat(200))
    };
    let mut content: String = (0..30_000).map(old).collect();
    content.push_str(&"the time of this one nobody knows\n".repeat(30_000));
    content.extend((0..30_000).map(old));
    content.push_str("2026-11-21 10:00:00 ERROR new\n");
    let application = LoggingApplication::with(&content);
    let query = GetLogs { since: Some("2026-11-21T00:00:00Z".to_owned()), ..at(EntryLevel::Info) };
    let page = application.read(query);
    assert_eq!(messages(&page), ["new"]);
    let [untimed] = page.not_understood.as_slice() else { panic!("{:?}", page.not_understood) };
    assert!(untimed.part == UnknownPart::Time && untimed.at_least && untimed.count >= 200, "{untimed:?}");
    assert_eq!(untimed.sample, "the time of this one nobody knows");
    assert!(page.notes.iter().any(|note| note.starts_with("at least ")), "{:?}", page.notes);
    assert!(page.notes.iter().any(|note| note.contains("MiB were read in places only")), "{:?}", page.notes);
    assert!(page.scanned_bytes < content.len() as u64 / 2);
}

#[test]
fn entries_whose_time_or_level_is_not_understood_are_told() {
    let application = LoggingApplication::with("something broke\n10:00:00 ERROR whichever day\n");
    let page = application.read(GetLogs { since: Some("10m".to_owned()), ..at(EntryLevel::Error) });
    assert_eq!(messages(&page), Vec::<&str>::new());
    let told = serde_json::to_value(&page.not_understood).unwrap();
    assert_eq!(
        told,
        serde_json::json!([
            {"part": "level", "count": 1, "sample": "something broke"},
            {"part": "time", "count": 1, "sample": "10:00:00 ERROR whichever day"},
        ])
    );
    assert!(page.notes.iter().any(|note| note.contains("without `since`")), "{:?}", page.notes);
    let understood = application.read(GetLogs::default());
    assert_eq!((understood.entries.len(), understood.not_understood.len()), (2, 0));
}

#[test]
fn a_line_longer_than_the_limit_is_shown_cut() {
    let long = "x".repeat(3 << 20);
    for (content, level) in [
        (format!("{{\"level\":50,\"msg\":\"long {long}\",\"a\":1}}\n"), "error"),
        (format!("{{\"msg\":\"long {long}\",\"level\":50}}\n"), "unknown"),
        (format!("2026-11-20 10:00:00 ERROR long {long}\n"), "error"),
        (format!("2026-11-20 10:00:00 ERROR long {long}"), "error"),
    ] {
        let application = LoggingApplication::with(&format!("{}{content}", line(0)));
        let page = application.read(at(EntryLevel::Error));
        assert_eq!((page.entries.len(), page.malformed), (1, 0), "{}", &content[..30]);
        let entry = &page.entries[0];
        assert_eq!(entry.level, level);
        assert!(
            entry.message.starts_with("long xxx")
                && entry.message.contains("bytes, of which only the first 1 MiB"),
            "{}",
            &content[..30]
        );
        let query = |text: &str| GetLogs { contains: Some(text.to_owned()), ..at(EntryLevel::Error) };
        assert_eq!(application.read(query("long x")).entries.len(), 1);
        let unsearched = application.read(query("not there"));
        let told = unsearched.not_understood.first().map(|left_out| (left_out.part, left_out.count));
        assert_eq!(told, Some((UnknownPart::Rest, 1)), "{:?}", unsearched.notes);
        let cursor = {
            let application = LoggingApplication::with(&line(0));
            let cursor = application.read(at(EntryLevel::Error)).newer_cursor;
            application.write("app.log", &content);
            application.write("app.log", "\n");
            application.read(GetLogs { cursor, ..at(EntryLevel::Error) })
        };
        assert_eq!(cursor.entries.len(), 1);
    }
}

#[test]
fn what_is_masked_cannot_be_searched() {
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let application =
        LoggingApplication::with(&format!("2026-11-20 10:00:00 ERROR push with {token} refused\n"));
    let redactor = redaction::Redactor::new(redaction::RedactionOptions::default()).unwrap();
    let logs = application.logs().redactor(redactor);
    let found = |text: &str| {
        let query = GetLogs { contains: Some(text.to_owned()), ..GetLogs::default() };
        logs.read(&query, &CancellationToken::new()).unwrap().entries.len()
    };
    assert_eq!((found("refused"), found("push with")), (1, 1));
    assert_eq!((found(&token), found("ghp_a"), found("a1B2")), (0, 0, 0));
    application.write("app.log", "2026-11-20 10:00:01 ERROR login with password=correcthorse refused\n");
    application.write(
        "app.log",
        "{\"level\":50,\"msg\":\"c\",\"headers\":{\"Cookie\":[\"sid=8f3kd9sl2m4n5b6v7c8x\"]}}\n",
    );
    assert_eq!((found("correcthorse"), found("8f3kd9")), (0, 0));
    let shown = logs.read(&GetLogs::default(), &CancellationToken::new()).unwrap().to_text();
    assert!(shown.contains("password=[redacted:password] refused"), "{shown}");
    assert!(!shown.contains("correcthorse") && !shown.contains("8f3kd9"), "{shown}");
}

#[test]
fn a_cursor_goes_on_where_a_link_led_before() {
    let application = LoggingApplication::new();
    application.write("app-a.txt", &lines(0..4));
    std::os::unix::fs::symlink("app-a.txt", application.path("app.log")).unwrap();
    let first = application.read(GetLogs { limit: Some(2), ..at(EntryLevel::Trace) });
    application.write("app-a.txt", &line(4));
    application.write("app-b.txt", &lines(5..7));
    fs::remove_file(application.path("app.log")).unwrap();
    std::os::unix::fs::symlink("app-b.txt", application.path("app.log")).unwrap();
    let newer = application.read(GetLogs { cursor: first.newer_cursor, ..at(EntryLevel::Trace) });
    assert_eq!(messages(&newer), ["entry 4", "entry 5", "entry 6"]);
    assert!(newer.notes.is_empty(), "{:?}", newer.notes);
    let older = application.read(GetLogs { cursor: first.older_cursor, ..at(EntryLevel::Trace) });
    assert_eq!(messages(&older), ["entry 0", "entry 1"]);
}

#[tokio::test]
async fn following_waits_for_a_file_and_for_those_of_a_glob() {
    for source in ["app.log", "logs/*.log"] {
        let application = LoggingApplication::new();
        let logs = application.logs();
        let query = GetLogs { source: Some(source.to_owned()), follow: true, ..at(EntryLevel::Trace) };
        let cancel = CancellationToken::new();
        let follow = logs.follow(&query, &cancel, None);
        let write = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            fs::create_dir_all(application.path("logs")).unwrap();
            application.write("logs/app.log", &lines(0..2));
            application.write("app.log", &lines(0..2));
        };
        let page = tokio::join!(follow, write).0.unwrap();
        assert_eq!(messages(&page)[..1], ["entry 0"], "{source}");
        assert!(page.newer_cursor.is_some());
    }
}

#[test]
fn utf_16_is_read_and_followed() {
    let application = LoggingApplication::new();
    let write = |text: &str| {
        let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut file = File::options().create(true).append(true).open(application.path("app.log")).unwrap();
        file.write_all(&bytes).unwrap();
    };
    write("\u{feff}2026-11-20 10:00:00 INFO up\r\n2026-11-20 10:00:01 ERROR keine Stifte für 🖊\r\n");
    let page = application.read(GetLogs::default());
    assert_eq!(messages(&page), ["up", "keine Stifte für 🖊"]);
    write("2026-11-20 10:00:02 ERROR again\r\n");
    let page = application.read(GetLogs { cursor: page.newer_cursor, ..GetLogs::default() });
    assert_eq!(messages(&page), ["again"]);
    write("2026-11-20 10:00:03 ERROR unended");
    assert_eq!(application.read(GetLogs::default()).entries[3].message, "unended");
    let page = application.read(GetLogs { cursor: page.newer_cursor, ..GetLogs::default() });
    assert_eq!(messages(&page), ["unended"]);
    write(" and more\r\n");
    let page = application.read(GetLogs { cursor: page.newer_cursor, ..GetLogs::default() });
    assert_eq!(messages(&page), ["unended and more"]);
}

#[test]
fn errors_say_what_was_wrong_and_what_is_allowed() {
    let application = LoggingApplication::with(&lines(0..10));
    application.write("other.log", "");
    let cursor = application.read(GetLogs { limit: Some(1), ..at(EntryLevel::Trace) }).older_cursor;
    let errors = [
        application.error(GetLogs { limit: Some(501), ..GetLogs::default() }),
        application.error(GetLogs { since: Some("soon".to_owned()), ..GetLogs::default() }),
        application
            .error(GetLogs {
                since: Some("1m".to_owned()),
                until: Some("1h".to_owned()),
                ..GetLogs::default()
            })
            .split(' ')
            .next()
            .unwrap()
            .to_owned(),
        application.error(GetLogs { cursor: Some("AAAA".to_owned()), ..GetLogs::default() }),
        application.error(GetLogs { cursor, source: Some("other.log".to_owned()), ..GetLogs::default() }),
        application.error(GetLogs { source: Some("missing.log".to_owned()), ..GetLogs::default() }),
        application.error(GetLogs { source: Some("[".to_owned()), ..GetLogs::default() }),
        application.error(GetLogs { source: Some("/etc/passwd".to_owned()), ..GetLogs::default() }),
    ];
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn an_older_cursor_whose_file_is_gone_says_so() {
    let application = LoggingApplication::with(&lines(0..10));
    let cursor = application.read(GetLogs { limit: Some(1), ..at(EntryLevel::Trace) }).older_cursor;
    fs::write(application.path("app.log"), lines(100..200)).unwrap();
    let error = application.error(GetLogs { cursor, ..GetLogs::default() });
    assert!(error.contains("call without it"), "{error}");
}

#[test]
fn what_is_no_regular_file_is_refused_and_links_stay_inside() {
    let application = LoggingApplication::new();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        application.path("app.log"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let source = std::error::Error::source(
        &application.logs().read(&GetLogs::default(), &CancellationToken::new()).unwrap_err(),
    )
    .unwrap()
    .to_string();
    assert!(source.contains("FIFO"), "{source}");
    let elsewhere = LoggingApplication::with(&lines(0..5));
    std::os::unix::fs::symlink(elsewhere.path("app.log"), application.path("link.log")).unwrap();
    let query = GetLogs { source: Some("link.log".to_owned()), ..GetLogs::default() };
    assert!(application.logs().read(&query, &CancellationToken::new()).is_err());
}

#[test]
fn holes_that_a_truncation_left_are_passed_over() {
    let application = LoggingApplication::with(&lines(0..6));
    let file = File::options().write(true).open(application.path("app.log")).unwrap();
    file.set_len(0).unwrap();
    file.set_len(3 << 20).unwrap();
    application.write("app.log", &line(4));
    let page = application.read(at(EntryLevel::Error));
    assert_eq!(messages(&page), ["entry 4"]);
}

#[tokio::test]
async fn following_streams_each_entry_and_ends_when_cancelled() {
    let application = LoggingApplication::with(&lines(0..10));
    let cancel = CancellationToken::new();
    let mut streamed = Vec::new();
    let page = {
        let mut on_entry = |entry: &LogEntry| {
            streamed.push(entry.message.clone());
            application.write("app.log", &line(10 + streamed.len()));
            if streamed.len() == 5 {
                cancel.cancel();
            }
        };
        let logs = application.logs();
        let query = at(EntryLevel::Trace);
        let follow = logs.follow(&query, &cancel, Some(&mut on_entry));
        let write = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            fs::write(application.path("trigger"), "").unwrap();
            let mut file = File::options().append(true).open(application.path("app.log")).unwrap();
            file.write_all(line(10).as_bytes()).unwrap();
        };
        tokio::join!(follow, write).0.unwrap()
    };
    assert_eq!(streamed[..3], ["entry 10", "entry 11", "entry 12"]);
    assert_eq!(streamed, messages(&page));
    assert!(page.newer_cursor.is_some());
}

#[tokio::test]
async fn a_caller_that_does_not_stream_gets_the_first_batch_and_a_cursor() {
    let application = LoggingApplication::with(&lines(0..10));
    let first = application.read(at(EntryLevel::Trace));
    application.write("app.log", &lines(10..13));
    let started = Instant::now();
    let query = GetLogs { cursor: first.newer_cursor, ..at(EntryLevel::Trace) };
    let page = application.logs().follow(&query, &CancellationToken::new(), None).await.unwrap();
    assert_eq!(messages(&page)[..2], ["entry 10", "entry 11"]);
    assert!(started.elapsed() < FIRST_ENTRY_TIMEOUT);
}

/// An empty file and the one that was being read are packed, so that neither is known by its inode any more.
#[test]
fn what_was_read_of_a_file_that_is_packed_meanwhile_is_not_read_again() {
    let application = LoggingApplication::with(&lines(0..3));
    let filter = LogEntryFilter::new(&GetLogs { limit: Some(500), ..at(EntryLevel::Trace) }).unwrap();
    let mut follower = SourceFollowers::new(application.source(), filter, None).unwrap();
    application.rotate();
    application.rotate();
    application.write("app.log", &line(3));
    application.rotate();
    assert!(follower.poll(false).unwrap().entries.is_empty(), "more lines of it may come");
    application.pack("app.log.2");
    application.rotate();
    application.pack("app.log.2");
    application.write("app.log", &lines(4..6));
    let read = follower.poll(true).unwrap().entries;
    let read: Vec<_> = read.iter().map(|entry| entry.message.as_str()).collect();
    assert_eq!(read, ["entry 3", "entry 4", "entry 5"]);
}

#[derive(Clone, Debug)]
enum FollowStep {
    Write(usize),
    Poll,
    Rotate,
    CopyTruncate,
    Pack,
    /// The call ends, and another one goes on from its cursor.
    Resume,
}

fn step() -> impl Strategy<Value = FollowStep> {
    prop_oneof![
        4 => (1_usize..4).prop_map(FollowStep::Write),
        4 => Just(FollowStep::Poll),
        2 => Just(FollowStep::Rotate),
        2 => Just(FollowStep::CopyTruncate),
        1 => Just(FollowStep::Pack),
        2 => Just(FollowStep::Resume),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_rotation_loses_or_repeats_an_entry(steps in prop::collection::vec(step(), 1..40)) {
        let application = LoggingApplication::with(&lines(0..3));
        let filter = LogEntryFilter::new(&GetLogs { limit: Some(500), ..at(EntryLevel::Trace) }).unwrap();
        let mut follower = SourceFollowers::new(application.source(), filter.clone(), None).unwrap();
        let mut written = 3;
        let mut found = Vec::new();
        let mut take = |batch: MergedFollowBatch| {
            found.extend(batch.entries.into_iter().map(|entry| entry.message));
        };
        for step in steps {
            match step {
                FollowStep::Write(count) => {
                    application.write("app.log", &lines(written..written + count));
                    written += count;
                }
                FollowStep::Poll => take(follower.poll(false).unwrap()),
                FollowStep::Rotate => application.rotate(),
                FollowStep::CopyTruncate => application.copy_truncate(),
                FollowStep::Pack => application.pack("app.log.2"),
                FollowStep::Resume => {
                    let cursor: Cursor = follower.cursor().to_string().parse().unwrap();
                    follower = SourceFollowers::new(application.source(), filter.clone(), Some(&cursor)).unwrap();
                }
            }
        }
        // The last file is left only for one that was begun.
        application.write("app.log", &line(written));
        written += 1;
        for _ in 0..3 {
            take(follower.poll(true).unwrap());
        }
        let expected: Vec<String> = (3..written).map(|number| format!("entry {number}")).collect();
        prop_assert_eq!(found, expected);
        prop_assert!(follower.notes().is_empty(), "{:?}", follower.notes());
    }
}

#[test]
fn a_glob_of_more_files_than_are_read_tells_how_many_are_left_out() {
    let application = LoggingApplication::new();
    for index in 0..205 {
        application.write(&format!("worker-{index}.log"), "2026-11-20T10:00:00Z INFO up\n");
    }
    let page = application.read(GetLogs { source: Some("worker-*.log".into()), ..GetLogs::default() });
    assert_eq!(page.notes, ["only the newest 200 of 205 files are read; name fewer with `source`"]);
    let page = application.read(GetLogs { source: Some("worker-1*.log".into()), ..GetLogs::default() });
    assert!(page.notes.is_empty() && page.files.len() == 111, "{:?}", page.notes);
}
