//! The findings of `doctor`: what was checked, and what to do about what is not as it should be.

use process_runner::{ConfinementLevel, ConfinementStatus, ConfinementUnavailable};
use serde::Serialize;
use std::fmt::Write as _;

/// One thing that was checked.
#[derive(Debug, Serialize)]
pub struct DoctorFinding {
    /// The thing.
    pub what: &'static str,
    /// Its state.
    pub state: CheckHealth,
    /// The facts that were found.
    pub detail: String,
    /// The remedy, if something is not as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// The state of a thing that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckHealth {
    /// As it should be.
    Ok,
    /// Works, with something missing that some users need.
    Note,
    /// Does not work.
    Broken,
}

/// Returns the finding that something is as it should be.
pub fn ok(what: &'static str, detail: impl Into<String>) -> DoctorFinding {
    DoctorFinding { what, state: CheckHealth::Ok, detail: detail.into(), remedy: None }
}

/// Returns the finding that something is missing which some users need.
pub fn note(what: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> DoctorFinding {
    DoctorFinding { what, state: CheckHealth::Note, detail: detail.into(), remedy: Some(remedy.into()) }
}

/// Returns the finding that something does not work.
pub fn broken(what: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> DoctorFinding {
    DoctorFinding { what, state: CheckHealth::Broken, detail: detail.into(), remedy: Some(remedy.into()) }
}

/// Returns true if nothing is broken.
pub fn is_healthy(findings: &[DoctorFinding]) -> bool {
    findings.iter().all(|finding| finding.state != CheckHealth::Broken)
}

/// Writes findings as JSON.
pub fn json(findings: &[DoctorFinding]) -> String {
    // The verdict stands in the JSON too, because a script may read the text and not the exit code.
    format!("{:#}", serde_json::json!({"healthy": is_healthy(findings), "findings": findings}))
}

/// Writes findings as a table for people. `mark` returns the mark of a state, which is given in six columns, with colours
/// where they are wanted.
pub fn table(findings: &[DoctorFinding], mark: impl Fn(CheckHealth, &'static str) -> String) -> String {
    let mut text = String::new();
    for finding in findings {
        let word = match finding.state {
            CheckHealth::Ok => "ok    ",
            CheckHealth::Note => "note  ",
            CheckHealth::Broken => "BROKEN",
        };
        let _ = writeln!(text, "{}  {:13}  {}", mark(finding.state, word), finding.what, finding.detail);
        if let Some(remedy) = &finding.remedy {
            let _ = writeln!(text, "{:23}-> {remedy}", "");
        }
    }
    let has_notes = findings.iter().any(|finding| finding.state == CheckHealth::Note);
    text.push_str(match (is_healthy(findings), has_notes) {
        (true, false) => "everything is in place",
        (true, true) => {
            "everything that is needed is in place; the notes are about what only some users need"
        }
        (false, _) => "something is broken",
    });
    text
}

/// Returns the finding about the confinement of the programs that tools run, and what this system lacks for its highest level.
pub fn confinement(
    description: String,
    available: Result<ConfinementStatus, ConfinementUnavailable>,
) -> DoctorFinding {
    let status = match available {
        Ok(status) => status,
        Err(why) => {
            return note(
                "confinement",
                format!("{description}; this system could not do it: {why}"),
                "boot Linux 5.13 or newer with `landlock` in its `lsm=`; until then roles bound what tools are asked, \
                 and not what commands do",
            );
        }
    };
    match status.level {
        ConfinementLevel::Strict => ok("confinement", description),
        level => note(
            "confinement",
            format!("{description}; this system reaches the level `{level}`: {status}"),
            "run Linux 6.12 or newer, and let this user make user namespaces (`sysctl user.max_user_namespaces` above 0, \
             `kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu; in a container, a seccomp profile that allows \
             `unshare`, and a `/proc` without masks)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use process_runner::Protection;

    #[test]
    fn a_system_that_cannot_confine_is_told_with_what_it_would_take() {
        let finding = confinement("off".to_owned(), Err(ConfinementUnavailable::NoLandlock));
        assert!(finding.detail.contains("no Landlock"), "{}", finding.detail);
        assert!(finding.remedy.is_some_and(|remedy| remedy.contains("lsm=")));
        let mut status = ConfinementStatus::default();
        status.level = ConfinementLevel::SystemCalls;
        status.enforced = vec![Protection::Files];
        status.missing = vec![Protection::Mounts];
        let finding = confinement("on".to_owned(), Ok(status.clone()));
        assert!(
            finding.detail.contains("`system_calls`") && finding.detail.contains("mounts"),
            "{}",
            finding.detail
        );
        assert!(finding.remedy.is_some_and(|remedy| remedy.contains("max_user_namespaces")));
        status.level = ConfinementLevel::Strict;
        assert!(confinement("on".to_owned(), Ok(status)).remedy.is_none());
    }
}
