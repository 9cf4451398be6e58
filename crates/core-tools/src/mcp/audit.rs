//! The audit: one line of JSON for each call and each refusal, in a file that is only added to.

#![allow(clippy::disallowed_methods, reason = "the operator names the file, and no client can reach it")]

use crate::time::rfc3339;
use role_policy::Caller;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// What happens to calls when the audit cannot be written, as on a full disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Calls go on. Lost lines are counted, and the next line that can be written says how many.
    #[default]
    Count,
    /// No call runs. Each call then has a second line, `"event":"start"`, written before it runs.
    Refuse,
}

/// Where calls are recorded. Cheap to clone.
///
/// A line holds the time, principal, session, roles, tool, decision, rule, outcome, duration, bytes, and the
/// shape of the arguments: their names and sizes, never their values. The file is made 0600; at
/// [`MAX_FILE_BYTES`](Self::MAX_FILE_BYTES) it is renamed to `NAME.1`, and so on to `NAME.5`.
#[derive(Clone, Debug)]
pub struct Audit {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    when_full: WhenFull,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// The last write broke off, so that half a line may stand at the end.
    torn: bool,
    lost: u64,
}

/// How a call came out, for the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did its work.
    Ok,
    /// It ran, or may have run, and failed.
    Failed,
    /// Not run: hidden or unknown, refused, or its arguments do not fit.
    NotRun,
}

/// What is known of a call when it ends.
#[derive(Debug)]
pub struct Record<'a> {
    /// Who calls.
    pub caller: &'a Caller,
    /// As it was asked for.
    pub tool: &'a str,
    /// `allowed`, `hidden`, `unknown`, `refused` or `invalid`.
    pub decision: &'static str,
    /// The rule that decided.
    pub rule: &'a str,
    /// How it came out.
    pub outcome: Outcome,
    /// From its arrival to its end.
    pub duration: Duration,
    /// The names and sizes of its arguments, never their values.
    pub arguments: &'a str,
    /// Bytes of its arguments.
    pub bytes_in: usize,
    /// Bytes of its answer.
    pub bytes_out: usize,
}

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    role: String,
    tool: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    decision: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    rule: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_us: Option<u64>,
    arguments: &'a str,
    bytes_in: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_out: Option<usize>,
    #[serde(skip_serializing_if = "is_zero")]
    lost_before: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Audit {
    /// A file that reaches this size is put aside.
    pub const MAX_FILE_BYTES: u64 = 16 << 20;

    /// Files that were put aside and are kept.
    pub const KEPT: u32 = 5;

    /// Records calls in the file at `path`, which is made where it is missing.
    ///
    /// # Errors
    /// It cannot be written to, it is a link or no regular file, it is another user's, or others may write to it.
    pub fn open(path: &Path, when_full: WhenFull) -> io::Result<Self> {
        let state = Mutex::new(State { file: open(path)?, torn: false, lost: 0 });
        Ok(Self { shared: Arc::new(Shared { path: path.to_owned(), when_full, state }) })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Says that a call is about to run, where it may not run unrecorded ([`WhenFull::Refuse`]).
    ///
    /// # Errors
    /// That cannot be written, and so the call may not run.
    pub fn start(&self, caller: &Caller, tool: &str, arguments: &str, bytes_in: usize) -> io::Result<()> {
        if self.shared.when_full == WhenFull::Count {
            return Ok(());
        }
        self.write(Line {
            event: "start",
            decision: "",
            rule: "",
            outcome: None,
            duration_us: None,
            bytes_out: None,
            ..line(caller, tool, arguments, bytes_in)
        })
    }

    /// Records a call that has ended, or was not run.
    pub fn end(&self, record: &Record<'_>) {
        let written = self.write(Line {
            event: "call",
            decision: record.decision,
            rule: record.rule,
            outcome: Some(record.outcome),
            duration_us: Some(u64::try_from(record.duration.as_micros()).unwrap_or(u64::MAX)),
            bytes_out: Some(record.bytes_out),
            ..line(record.caller, record.tool, record.arguments, record.bytes_in)
        });
        if let Err(error) = written {
            tracing::error!(%error, "a call was not recorded in the audit");
        }
    }

    fn write(&self, mut line: Line<'_>) -> io::Result<()> {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        line.lost_before = state.lost;
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        let written = state.append(&self.shared.path, &text);
        match &written {
            Ok(()) => state.lost = 0,
            Err(_) => state.lost += 1,
        }
        written
    }
}

fn line<'a>(caller: &'a Caller, tool: &str, arguments: &'a str, bytes_in: usize) -> Line<'a> {
    Line {
        time: rfc3339(SystemTime::now()),
        event: "",
        principal: caller.principal(),
        session: caller.session(),
        role: caller.role(),
        // Marks of direction and the like would mislead whoever reads it.
        tool: tool.chars().take(64).flat_map(char::escape_debug).collect(),
        decision: "",
        rule: "",
        outcome: None,
        duration_us: None,
        arguments,
        bytes_in,
        bytes_out: None,
        lost_before: 0,
    }
}

impl State {
    /// Other servers may add to the same file, and put it aside. So it is looked at before each line, and half a
    /// line is taken back only while it is the last thing in it; else what follows begins a new line.
    fn append(&mut self, path: &Path, text: &[u8]) -> io::Result<()> {
        let mut bytes = match there(path, &self.file) {
            Some(bytes) => bytes,
            None => self.reopen(path)?,
        };
        if bytes + text.len() as u64 > Audit::MAX_FILE_BYTES && bytes > 0 {
            rotate(path)?;
            bytes = self.reopen(path)?;
        }
        let mut line = Vec::with_capacity(text.len() + 1);
        if self.torn {
            line.push(b'\n');
        }
        line.extend_from_slice(text);
        let mut rest = line.as_slice();
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(taken) if taken > 0 => rest = rest.get(taken..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                failed => {
                    let ours = bytes + (line.len() - rest.len()) as u64;
                    let last = self.file.metadata().is_ok_and(|found| found.len() == ours);
                    self.torn |= ours > bytes && !(last && self.file.set_len(bytes).is_ok());
                    return Err(failed.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into()));
                }
            }
        }
        self.torn = false;
        Ok(())
    }

    /// The file at `path` as it is now, and its length.
    fn reopen(&mut self, path: &Path) -> io::Result<u64> {
        self.file = open(path)?;
        self.torn = false;
        Ok(self.file.metadata()?.len())
    }
}

/// The length of the file at `path`, if that is still the one that is written to: somebody may have put it away.
#[cfg(unix)]
fn there(path: &Path, file: &File) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let (there, ours) = (path.symlink_metadata().ok()?, file.metadata().ok()?);
    ((there.dev(), there.ino()) == (ours.dev(), ours.ino())).then_some(ours.len())
}

#[cfg(not(unix))]
fn there(path: &Path, file: &File) -> Option<u64> {
    path.exists().then(|| file.metadata().ok())?.map(|ours| ours.len())
}

fn rotate(path: &Path) -> io::Result<()> {
    let numbered = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    for number in (1..Audit::KEPT).rev() {
        match std::fs::rename(numbered(number), numbered(number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    std::fs::rename(path, numbered(1))
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
        .open(path)?;
    let metadata = file.metadata()?;
    let wrong = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned()));
    if !metadata.is_file() {
        return wrong("it is not a regular file");
    }
    if metadata.mode() & 0o022 != 0 {
        return wrong("others may write to it");
    }
    // Root may write to anybody's file, and whose it is may change what was recorded.
    if metadata.uid() != rustix::process::geteuid().as_raw() && metadata.uid() != 0 {
        return wrong("it belongs to another user");
    }
    Ok(file)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// The names and sizes of arguments: `path:12c edits:2[] dry_run:bool`. Only names that a tool has are told;
/// others could hold anything.
pub(crate) fn shape(arguments: &Map<String, Value>, known: impl Fn(&str) -> bool) -> String {
    let mut shape = String::new();
    for (name, value) in arguments {
        if !shape.is_empty() {
            shape.push(' ');
        }
        shape.push_str(if known(name) { name } else { "(unknown)" });
        shape.push(':');
        match value {
            Value::Null => shape.push_str("null"),
            Value::Bool(_) => shape.push_str("bool"),
            Value::Number(_) => shape.push_str("number"),
            Value::String(text) => shape.push_str(&format!("{}c", text.chars().count())),
            Value::Array(elements) => shape.push_str(&format!("{}[]", elements.len())),
            Value::Object(members) => shape.push_str(&format!("{}{{}}", members.len())),
        }
        if shape.len() > 400 {
            shape.push_str(" …");
            break;
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record<'a>(caller: &'a Caller, tool: &'a str) -> Record<'a> {
        Record {
            caller,
            tool,
            decision: "allowed",
            rule: "r",
            outcome: Outcome::Ok,
            duration: Duration::from_micros(7),
            arguments: "path:3c",
            bytes_in: 5,
            bytes_out: 9,
        }
    }

    fn lines(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        // A test makes a file long with zeros.
        let written = text.lines().filter(|line| !line.starts_with('\0'));
        written.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_call_is_one_line_that_only_its_owner_may_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = Audit::open(&path, WhenFull::Count).unwrap();
        let caller = Caller::new("dev").with_principal("ada").with_session("s1");
        audit.start(&caller, "read_file", "", 5).unwrap();
        audit.end(&record(&caller, "read_file"));
        let [line] = lines(&path).try_into().unwrap();
        assert_eq!(
            (&line["tool"], &line["role"], &line["principal"]),
            (&json!("read_file"), &json!("dev"), &json!("ada"))
        );
        assert_eq!(
            (&line["outcome"], &line["duration_us"], &line["event"]),
            (&json!("ok"), &json!(7), &json!("call"))
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn where_calls_may_not_run_unrecorded_their_start_is_recorded_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = Audit::open(&path, WhenFull::Refuse).unwrap();
        let caller = Caller::new("dev");
        audit.start(&caller, "read_file", "path:3c", 5).unwrap();
        audit.end(&record(&caller, "read_file"));
        let events: Vec<Value> = lines(&path).iter().map(|line| line["event"].clone()).collect();
        assert_eq!(events, ["start", "call"]);
    }

    #[test]
    fn two_servers_share_a_file_and_none_takes_back_what_the_other_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let caller = Caller::new("dev");
        let [one, other] = [(), ()].map(|()| Audit::open(&path, WhenFull::Count).unwrap());
        other.end(&record(&caller, "t0"));
        // A write that broke off in the middle of a line.
        one.shared.state.lock().unwrap().file.write_all(b"{\"time").unwrap();
        one.shared.state.lock().unwrap().torn = true;
        one.end(&record(&caller, "t1"));
        other.end(&record(&caller, "t2"));
        let text = std::fs::read_to_string(&path).unwrap();
        let tools: Vec<Value> = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .map(|line| line["tool"].clone())
            .collect();
        // Half a line spoils at most the one that was written onto it.
        assert!(
            tools.contains(&json!("t0")) && tools.contains(&json!("t1")) && tools.contains(&json!("t2")),
            "{text}"
        );
        // What the other has filled or put aside, this one sees.
        other.shared.state.lock().unwrap().file.set_len(Audit::MAX_FILE_BYTES).unwrap();
        one.end(&record(&caller, "t3"));
        other.end(&record(&caller, "t4"));
        let tools: Vec<Value> = lines(&path).iter().map(|line| line["tool"].clone()).collect();
        assert_eq!(tools, ["t3", "t4"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn on_a_full_disk_lines_are_counted_or_the_start_fails() {
        let caller = Caller::new("dev");
        let full = |when_full| {
            let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
            let state = Mutex::new(State { file, torn: false, lost: 0 });
            Audit { shared: Arc::new(Shared { path: "/dev/full".into(), when_full, state }) }
        };
        let audit = full(WhenFull::Count);
        audit.start(&caller, "t", "", 0).unwrap();
        audit.end(&record(&caller, "t"));
        audit.end(&record(&caller, "t"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        {
            assert_eq!(audit.shared.state.lock().unwrap().lost, 2);
        }
        // Room again.
        let state = Mutex::new(State { file: open(&path).unwrap(), torn: false, lost: 2 });
        let audit =
            Audit { shared: Arc::new(Shared { path: path.clone(), when_full: WhenFull::Count, state }) };
        audit.end(&record(&caller, "t"));
        audit.end(&record(&caller, "t"));
        let lost: Vec<Value> = lines(&path).iter().map(|line| line["lost_before"].clone()).collect();
        assert_eq!(lost, [json!(2), Value::Null]);
        assert_eq!(
            full(WhenFull::Refuse).start(&caller, "t", "", 0).unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
    }

    #[test]
    fn a_file_that_is_full_is_put_aside_and_few_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = Audit::open(&path, WhenFull::Count).unwrap();
        let caller = Caller::new("dev");
        for round in 0..8 {
            audit.shared.state.lock().unwrap().file.set_len(Audit::MAX_FILE_BYTES).unwrap();
            audit.end(&record(&caller, &format!("t{round}")));
        }
        let mut names: Vec<String> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                "audit.jsonl",
                "audit.jsonl.1",
                "audit.jsonl.2",
                "audit.jsonl.3",
                "audit.jsonl.4",
                "audit.jsonl.5"
            ]
        );
        assert_eq!(lines(&path)[0]["tool"], "t7");
        assert_eq!(lines(&folder.path().join("audit.jsonl.5"))[0]["tool"], "t2");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_or_a_file_that_others_may_write_is_no_audit() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        std::fs::write(&path, "").unwrap();
        std::os::unix::fs::symlink(&path, folder.path().join("link")).unwrap();
        assert!(Audit::open(&folder.path().join("link"), WhenFull::Count).is_err());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(Audit::open(&path, WhenFull::Count).is_err());
    }

    #[test]
    fn arguments_are_told_by_name_and_size_and_never_by_value() {
        let arguments =
            json!({"path": "süß", "edits": [1, 2], "env": {"A": "b"}, "hunter2": true, "n": 7, "x": null});
        let Value::Object(arguments) = arguments else { unreachable!() };
        let shape = shape(&arguments, |name| name != "hunter2");
        assert_eq!(shape, "path:3c edits:2[] env:1{} (unknown):bool n:number x:null");
    }
}
