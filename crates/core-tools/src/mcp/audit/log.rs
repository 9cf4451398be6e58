//! The audit as its users see it: a start and an end of each call.

use super::record::CallRecord;
use audit_log::{AuditEntry, AuditFile, Outcome};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

/// The way in which calls are treated while the audit cannot be written, as on a full disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditFailureMode {
    /// Calls go on. Lost lines are counted, and the next line that can be written says how many.
    #[default]
    CountLost,
    /// No call runs. Each call then has a second line, `"event":"start"`, written before it runs.
    RefuseCalls,
}

/// The state of an audit's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditFileHealth {
    /// The time at which this process wrote the last line; `None` before its first one.
    pub last_written: Option<SystemTime>,
    /// The lines that could not be written since then; 0 once a line is written again.
    pub lost_lines: u64,
}

/// The file that calls are recorded in. Cheap to clone.
///
/// A line holds the time, principal, session, roles, tool, decision, rule, outcome, duration, bytes, and the parts of
/// the arguments that the [`AuditLevel`](super::AuditLevel) of the host selects. Each line is linked to the line
/// before. The file is made 0600; at [`MAX_FILE_BYTES`](Self::MAX_FILE_BYTES) it is renamed to `NAME.1`, and so on to
/// `NAME.5`.
#[derive(Clone, Debug)]
pub struct Audit {
    shared: Arc<SharedAuditLog>,
}

#[derive(Debug)]
struct SharedAuditLog {
    path: PathBuf,
    failure_mode: AuditFailureMode,
    state: Mutex<AuditLogFileState>,
    confinement: OnceLock<String>,
}

#[derive(Debug)]
struct AuditLogFileState {
    file: AuditFile,
    health: AuditFileHealth,
}

impl Audit {
    /// A file that reaches this size is renamed.
    pub const MAX_FILE_BYTES: u64 = AuditFile::MAX_BYTES;

    /// The renamed files that are kept, `NAME.1` to `NAME.5`.
    pub const ROTATED_FILES: u32 = AuditFile::ROTATED;

    /// Records calls in the file at `path`, which is made where it is missing.
    ///
    /// # Errors
    /// It cannot be written to, it is a link or no regular file, it is another user's, or others may write to it.
    pub fn open(path: &Path, failure_mode: AuditFailureMode) -> io::Result<Self> {
        Ok(Self::with_file(AuditFile::open(path)?, failure_mode))
    }

    fn with_file(file: AuditFile, failure_mode: AuditFailureMode) -> Self {
        let path = file.path().to_owned();
        let state = Mutex::new(AuditLogFileState { file, health: AuditFileHealth::default() });
        let confinement = OnceLock::new();
        Self { shared: Arc::new(SharedAuditLog { path, failure_mode, state, confinement }) }
    }

    /// Records `level` with each call of a tool that runs programs: the level at which they are confined. The first call
    /// of this counts.
    pub fn set_confinement(&self, level: impl fmt::Display) {
        let _ = self.shared.confinement.set(level.to_string());
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Returns the state of the file, as the last line that was written or lost has left it.
    pub fn health(&self) -> AuditFileHealth {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).health
    }

    /// Records that a call is about to run, where none may run unrecorded ([`AuditFailureMode::RefuseCalls`]). Of `record`
    /// the caller, the tool and the arguments count.
    ///
    /// # Errors
    /// The line cannot be written, and so the call may not run.
    pub fn start(&self, record: &CallRecord<'_>) -> io::Result<()> {
        match self.shared.failure_mode {
            AuditFailureMode::CountLost => Ok(()),
            AuditFailureMode::RefuseCalls => self.write(record.start_entry()),
        }
    }

    /// Records a call that has ended, or was not run. A failure is logged and counted.
    pub fn end(&self, record: &CallRecord<'_>) {
        let mut entry = record.to_entry();
        // A call that did not run started no program, so there is no confinement to record.
        if record.runs_programs && record.outcome != Outcome::NotRun {
            entry.confinement = self.shared.confinement.get().cloned();
        }
        if let Err(error) = self.write(entry) {
            tracing::error!(%error, "a call was not recorded in the audit");
        }
    }

    fn write(&self, mut entry: AuditEntry) -> io::Result<()> {
        // Held while the file is written, so that the number of lost lines stands in the line after them.
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        entry.lost_before = state.health.lost_lines;
        let written = state.file.append(&mut entry);
        match &written {
            Ok(()) => {
                state.health = AuditFileHealth { last_written: Some(SystemTime::now()), lost_lines: 0 };
            }
            Err(_) => state.health.lost_lines += 1,
        }
        written
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests look at the file that the audit wrote")]
mod tests {
    use super::*;
    use audit_log::{CallDecision, Outcome};
    use role_policy::Caller;
    use serde_json::{Value, json};
    use std::fs::OpenOptions;
    use std::io::Write as _;
    use std::time::Duration;

    fn record<'a>(caller: &'a Caller, tool: &'a str) -> CallRecord<'a> {
        CallRecord::new(caller, tool, CallDecision::Allowed, Outcome::Ok)
            .rule("r")
            .duration(Duration::from_micros(7))
            .arguments("path:3c", 5)
            .bytes_out(9)
    }

    fn lines(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        // A test makes a file long with zeros.
        let written = text.lines().filter(|line| !line.is_empty() && !line.starts_with('\0'));
        written.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_call_is_one_line_that_only_its_owner_may_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = Audit::open(&path, AuditFailureMode::CountLost).unwrap();
        let caller = Caller::new("dev").with_principal("ada").with_session("s1");
        audit.start(&record(&caller, "read_file")).unwrap();
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
        let audit = Audit::open(&path, AuditFailureMode::RefuseCalls).unwrap();
        let caller = Caller::new("dev");
        audit.start(&record(&caller, "read_file")).unwrap();
        audit.end(&record(&caller, "read_file"));
        let events: Vec<Value> = lines(&path).iter().map(|line| line["event"].clone()).collect();
        assert_eq!(events, ["start", "call"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn on_a_full_disk_lines_are_counted_or_the_start_fails() {
        let caller = Caller::new("dev");
        let full = |failure_mode| {
            let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
            Audit::with_file(AuditFile::with_file(Path::new("/dev/full"), file), failure_mode)
        };
        let audit = full(AuditFailureMode::CountLost);
        audit.start(&record(&caller, "t")).unwrap();
        audit.end(&record(&caller, "t"));
        audit.end(&record(&caller, "t"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        assert_eq!(audit.health(), AuditFileHealth { last_written: None, lost_lines: 2 });
        // The disk has room again.
        let audit = Audit::open(&path, AuditFailureMode::CountLost).unwrap();
        audit.shared.state.lock().unwrap().health.lost_lines = 2;
        audit.end(&record(&caller, "t"));
        assert!(audit.health().last_written.is_some() && audit.health().lost_lines == 0);
        audit.end(&record(&caller, "t"));
        let lost: Vec<Value> = lines(&path).iter().map(|line| line["lost_before"].clone()).collect();
        assert_eq!(lost, [json!(2), Value::Null]);
        assert_eq!(
            full(AuditFailureMode::RefuseCalls).start(&record(&caller, "t")).unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
    }

    #[test]
    fn a_file_that_is_full_is_put_aside_and_few_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = Audit::open(&path, AuditFailureMode::CountLost).unwrap();
        let caller = Caller::new("dev");
        for round in 0..8 {
            // Zeros before the lines: the chain goes on from the last line.
            let written = std::fs::read(&path).unwrap();
            let file = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
            file.set_len(Audit::MAX_FILE_BYTES).unwrap();
            drop(file);
            let mut file = OpenOptions::new().append(true).open(&path).unwrap();
            file.write_all(b"\n").and_then(|()| file.write_all(&written)).unwrap();
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
        // The chain goes on from file to file.
        assert_eq!(lines(&path)[0]["number"], 8);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_or_a_file_that_others_may_write_is_no_audit() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        std::fs::write(&path, "").unwrap();
        std::os::unix::fs::symlink(&path, folder.path().join("link")).unwrap();
        assert!(Audit::open(&folder.path().join("link"), AuditFailureMode::CountLost).is_err());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(Audit::open(&path, AuditFailureMode::CountLost).is_err());
    }
}
