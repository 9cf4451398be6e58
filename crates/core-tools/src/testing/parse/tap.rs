//! TAP 12, 13 and 14 (<https://testanything.org>), as bats and others print it.

use super::super::found::Found;
use super::super::report::{ProblemKind, Status, TestCase};
use super::{Lines, append};

/// The parser. Subtests (indented) are told by the test that follows them, so they are left out.
#[derive(Default)]
pub(in super::super) struct Tap {
    planned: Option<u64>,
    seen: u64,
    /// The latest test: what explains it follows.
    open: Option<TestCase>,
    /// In its YAML block.
    yaml: bool,
    bailed: bool,
    /// AVA tells what goes wrong outside of tests as failed tests beyond the plan.
    ava: bool,
    /// bats has what a name says where a directive would be, and a time between the two.
    bats: bool,
}

impl Tap {
    /// As AVA prints it.
    pub(in super::super) fn of_ava() -> Self {
        Self { ava: true, ..Self::default() }
    }

    /// As bats prints it with `--timing`.
    pub(in super::super) fn of_bats() -> Self {
        Self { bats: true, ..Self::default() }
    }

    fn close(&mut self, found: &mut Found) {
        self.yaml = false;
        let Some(test) = self.open.take() else { return };
        let kind = match test.name.as_str() {
            _ if !self.ava || !test.status.is_failure() => None,
            name if name.contains(" exited with a non-zero exit code") => Some(ProblemKind::CollectionError),
            name if name.contains(" exited due to ") => Some(ProblemKind::Crashed),
            name if name.starts_with("No tests found in ") => Some(ProblemKind::NoTests),
            _ => None,
        };
        match kind {
            Some(kind) => found.problem(kind, test.name),
            None => found.push(test),
        }
    }
}

/// The plan: `1..N`.
fn plan(line: &str) -> Option<u64> {
    let count = line.strip_prefix("1..")?;
    count.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// `name # directive`, at a `#` that is not escaped and has a space before it.
fn directive(text: &str) -> (String, Option<(String, String)>) {
    let mut from = 0;
    while let Some(index) = text[from..].find('#').map(|index| index + from) {
        let before = &text[..index];
        let after = text[index + 1..].trim();
        let (word, reason) = after.split_once([' ', ':']).unwrap_or((after, ""));
        let known = ["skip", "skipped", "todo"].contains(&word.to_ascii_lowercase().as_str());
        if known && !before.ends_with('\\') {
            return (unescaped(before), Some((word.to_ascii_lowercase(), reason.trim().to_owned())));
        }
        from = index + 1;
    }
    (unescaped(text), None)
}

fn unescaped(text: &str) -> String {
    text.trim().replace("\\#", "#").replace("\\\\", "\\")
}

/// The time that bats adds to a name: `name in 12ms`.
fn timed(name: &str) -> Option<(&str, f64)> {
    let (name, time) = name.rsplit_once(" in ")?;
    let time = time.strip_suffix("ms")?.parse().ok()?;
    Some((name, time))
}

/// `name in 12ms # skip reason`, where only what follows the time is no part of the name. Nothing excuses a
/// failure.
fn of_bats(text: &str, ok: bool) -> (String, Option<(String, String)>) {
    let whole = || (text.trim().to_owned(), None);
    if !ok {
        return whole();
    }
    match text.rmatch_indices(" # skip").find(|(index, _)| timed(&text[..*index]).is_some()) {
        Some((index, directive)) => {
            let reason = text[index + directive.len()..].trim();
            (text[..index].to_owned(), Some(("skip".to_owned(), reason.to_owned())))
        }
        None if timed(text).is_some() => whole(),
        // Before version 1.5 the time came last, and in seconds.
        None => directive(text),
    }
}

/// Where a bats test failed: `(in test file tests/a.bats, line 7)`.
fn bats_place(comment: &str) -> Option<(String, u64)> {
    let (_, after) = comment.split_once("file ")?;
    let (file, line) = after.rsplit_once(", line ")?;
    let line = line.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    Some((file.rsplit("file ").next()?.to_owned(), line))
}

/// A line that follows a failed test.
fn explain(test: &mut TestCase, line: &str) {
    if test.file.is_none()
        && let Some((file, line)) = bats_place(line)
    {
        (test.file, test.line) = (Some(file), Some(line));
    }
    append(test.error.get_or_insert_default(), line);
}

impl Lines for Tap {
    fn line(&mut self, line: &str, found: &mut Found) {
        if self.yaml {
            if line.trim() == "..." {
                self.yaml = false;
            } else if let Some(test) = &mut self.open {
                let time = line.trim().strip_prefix("duration_ms: ");
                match time.and_then(|time| time.trim_matches(['"', '\'']).parse().ok()) {
                    Some(time) => test.duration_ms = Some(time),
                    None if test.status.is_failure() && line.trim() != "message: |" => {
                        explain(test, line.trim());
                    }
                    None => {}
                }
            }
            return;
        }
        if line.trim() == "---" && line.starts_with(' ') {
            self.yaml = self.open.is_some();
            return;
        }
        let (ok, rest) = match (line.strip_prefix("ok"), line.strip_prefix("not ok")) {
            (_, Some(rest)) => (false, rest),
            (Some(rest), None) => (true, rest),
            (None, None) => {
                if let Some(count) = plan(line) {
                    self.planned = Some(count);
                    found.expected = Some(count);
                } else if let Some(reason) = line.strip_prefix("Bail out!") {
                    self.close(found);
                    self.bailed = true;
                    found.problem(ProblemKind::RunnerFailed, format!("Bail out!{reason}"));
                } else if let (Some(comment), Some(test)) = (line.strip_prefix('#'), &mut self.open)
                    && test.status.is_failure()
                {
                    explain(test, comment.trim());
                }
                return;
            }
        };
        if !rest.is_empty() && !rest.starts_with(' ') {
            return;
        }
        self.close(found);
        self.seen += 1;
        let rest = rest.trim_start();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let rest = rest[digits..].trim_start();
        let rest = if self.bats { rest } else { rest.strip_prefix("- ").unwrap_or(rest) };
        let (name, directive) = if self.bats { of_bats(rest, ok) } else { directive(rest) };
        let status = match (&directive, ok) {
            (Some(_), _) => Status::Skipped,
            (None, true) => Status::Passed,
            (None, false) => Status::Failed,
        };
        let (name, time) = timed(&name).map_or((name.as_str(), None), |(name, time)| (name, Some(time)));
        let name = if name.is_empty() { format!("test {}", self.seen) } else { name.to_owned() };
        let mut test = TestCase { duration_ms: time, ..TestCase::new(name, status) };
        test.error = directive.map(|(word, reason)| if reason.is_empty() { word } else { reason });
        self.open = Some(test);
    }

    fn end(&mut self, found: &mut Found) {
        self.close(found);
        match self.planned {
            Some(planned) if planned < self.seen && !self.ava => found.problem(
                ProblemKind::Mismatch,
                format!("{planned} tests were planned and {} reported", self.seen),
            ),
            Some(planned) if planned > self.seen && !self.bailed => found.problem(
                ProblemKind::Crashed,
                format!("{planned} tests were planned and {} reported: the run ended early", self.seen),
            ),
            _ => {}
        }
    }
}
