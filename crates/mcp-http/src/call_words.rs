//! Calls, refusals and what they reach, in words for people.

use crate::refusal_reason::RefusalReason;
use crate::wait_reason::WaitReason;
use audit_log::CallTargets;
use core_tools::mcp::{CallDecision, Outcome};

/// Describes what a call reaches: `deletes src/a.rs`, `cargo test`.
pub(crate) fn describe_targets(tool: &str, targets: &CallTargets) -> String {
    let mut parts = Vec::new();
    parts.extend(targets.command.clone());
    let changes = match tool.split('_').next() {
        Some("delete") => "deletes",
        Some("move" | "rename") => "moves",
        Some("create") => "creates",
        _ => "changes",
    };
    // A command reads the folder that it runs in, and nobody asks for that.
    let reads_are_told = targets.command.is_none();
    for (verb, list, is_told) in [
        (changes, &targets.writes, true),
        ("reads", &targets.reads, reads_are_told),
        ("reaches", &targets.hosts, true),
    ] {
        if is_told && !list.is_empty() {
            parts.push(format!("{verb} {}", list.join(", ")));
        }
    }
    parts.extend(targets.sql.as_ref().map(|kind| format!("SQL: {kind}")));
    parts.extend(targets.role.as_ref().map(|role| format!("as the role {role}")));
    if targets.omitted > 0 {
        parts.push(format!("and {} more", targets.omitted));
    }
    parts.join("; ")
}

/// Describes names and sizes of arguments, which the audit writes as `path:12c edits:2[] dry_run:bool`.
pub(crate) fn describe_arguments(summary: &str) -> String {
    let describe = |argument: &str| {
        let (name, size) = argument.rsplit_once(':')?;
        // At the end of the size, so that names may end as they like.
        let kind = size.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = size.strip_suffix(kind).filter(|number| !number.is_empty());
        Some(match (kind, number) {
            ("c", Some("1")) => format!("{name} (1 character)"),
            ("c", Some(number)) => format!("{name} ({number} characters)"),
            ("[]", Some("1")) => format!("{name} (a list of 1)"),
            ("[]", Some(number)) => format!("{name} (a list of {number})"),
            ("{}", Some(number)) => format!("{name} (an object of {number})"),
            ("bool", None) => format!("{name} (true or false)"),
            ("number", None) => format!("{name} (a number)"),
            ("null", None) => format!("{name} (null)"),
            _ => return None,
        })
    };
    let words = summary.split(' ').map(|argument| describe(argument).unwrap_or_else(|| argument.to_owned()));
    words.collect::<Vec<_>>().join(", ")
}

/// Says why a call was not run.
pub(crate) fn explain_refusal(decision: CallDecision, role: &str, rule: &str) -> String {
    if let Some(rule) = rule.strip_prefix("http: ") {
        let (code, rest) = rule.split_at(rule.find([':', ' ', ',']).unwrap_or(rule.len()));
        let rest = rest.trim_start_matches([':', ',', ' ']);
        return match RefusalReason::parse(code) {
            Some(reason) if rest.is_empty() => reason.explanation().to_owned(),
            Some(reason) => format!("{} ({rest})", narrowed_explanation(reason, rest)),
            None => rule.to_owned(),
        };
    }
    match decision {
        CallDecision::Hidden => format!("The role {role} does not have this tool."),
        CallDecision::Unknown => "There is no tool of this name.".to_owned(),
        CallDecision::Invalid => "The arguments do not fit the tool.".to_owned(),
        CallDecision::Asked => "A person was asked, and has not allowed it.".to_owned(),
        CallDecision::Refused if rule.starts_with("limits") => {
            format!("A limit of the role {role} was reached.")
        }
        CallDecision::Refused if rule == "roots" => "A path leads outside the roots.".to_owned(),
        CallDecision::Refused if rule == "audit" => {
            "The audit could not be written, and no call runs without a record.".to_owned()
        }
        CallDecision::Refused => format!("The policy does not let the role {role} do this."),
        CallDecision::Allowed => String::new(),
    }
}

/// Returns the explanation of a reason, which `rest` of the rule makes narrower. `rest` may begin with the peer of a bearer
/// whose name is known, and may contain text of a client behind that.
fn narrowed_explanation(reason: RefusalReason, rest: &str) -> &'static str {
    let why = rest.strip_prefix("from ").and_then(|rest| rest.split_once(": ")).map_or(rest, |(_, why)| why);
    match reason {
        RefusalReason::BadToken if why.starts_with("it was revoked on ") => "The token was revoked.",
        RefusalReason::BadToken if why.starts_with("it has expired") => "The token has ended.",
        RefusalReason::BadToken if why.starts_with("no such token") => "The token is unknown.",
        reason => reason.explanation(),
    }
}

/// Says what a call waits for.
pub(crate) fn explain_wait(principal: &str, reason: WaitReason) -> String {
    match reason {
        WaitReason::CallsOfCaller(limit) => {
            format!("Waits: {principal} has {limit} calls running, which is all that it may have at once.")
        }
        WaitReason::ProgramsOfCaller(limit) => {
            format!("Waits: {principal} has {limit} programs running, which is all that it may have at once.")
        }
        WaitReason::ProgramsOfServer(limit) => {
            format!(
                "Waits: all callers together have {limit} programs running, which is all that this server runs at once."
            )
        }
        WaitReason::ProgramCallsOfServer(limit) => {
            format!(
                "Waits: all callers together have {limit} calls running that run a program, and the rest is kept for calls \
                 that end soon."
            )
        }
        WaitReason::CallsOfServer(limit) => {
            format!(
                "Waits: all callers together have {limit} calls running, which is all that this server runs at once."
            )
        }
    }
}

/// Returns the word for the end of a call.
pub(crate) fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Failed => "failed",
        Outcome::NotRun => "not run",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_call_reaches_is_a_sentence_about_its_tool() {
        let mut targets = CallTargets { writes: vec!["src/a.rs".to_owned()], ..CallTargets::default() };
        assert_eq!(describe_targets("delete_file", &targets), "deletes src/a.rs");
        assert_eq!(describe_targets("edit_file", &targets), "changes src/a.rs");
        targets.command = Some("cargo test".to_owned());
        targets.reads = vec!["/srv/projects".to_owned()];
        assert_eq!(describe_targets("run_command", &targets), "cargo test; changes src/a.rs");
    }

    #[test]
    fn names_and_sizes_are_words() {
        assert_eq!(
            describe_arguments("path:11c edits:2[] env:1{} dry_run:bool n:number a:b:1c"),
            "path (11 characters), edits (a list of 2), env (an object of 1), dry_run (true or false), n (a number), \
             a:b (1 character)"
        );
        assert_eq!(describe_arguments("(unknown):null …"), "(unknown) (null), …");
        assert_eq!(describe_arguments(""), "");
    }

    #[test]
    fn a_refusal_is_told_by_its_reason_and_not_by_its_code() {
        let refused = |rule: &str| explain_refusal(CallDecision::Refused, "dev", rule);
        let text = refused("http: bad_token: it has expired, and 3 before");
        assert_eq!(text, "The token has ended. (it has expired, and 3 before)");
        let revoked = "from 127.0.0.1: it was revoked on 2026-11-28";
        assert_eq!(
            refused(&format!("http: bad_token {revoked}")),
            format!("The token was revoked. ({revoked})")
        );
        assert_eq!(refused("http: bad_token: no such token"), "The token is unknown. (no such token)");
        let claimed = "its key is not known; it says it is `it was revoked on 2026-11-28`, unverified";
        assert_eq!(
            refused(&format!("http: bad_token: {claimed}")),
            format!("{} ({claimed})", RefusalReason::BadToken.explanation())
        );
        assert_eq!(refused("http: rate"), RefusalReason::Rate.explanation());
        assert_eq!(
            refused("http: rate, and 2 before"),
            format!("{} (and 2 before)", RefusalReason::Rate.explanation())
        );
        assert_eq!(refused("roles.dev.tools"), "The policy does not let the role dev do this.");
        assert_eq!(
            explain_refusal(CallDecision::Hidden, "readonly", "x"),
            "The role readonly does not have this tool."
        );
    }
}
