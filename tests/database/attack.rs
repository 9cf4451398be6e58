//! Attacks as a table.

use crate::{DDL, bridge};
use integration_tests::Wire;
use serde_json::json;

/// The outcome that an attack must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttackOutcome {
    /// Refused with the words for DDL.
    Ddl,
    /// Refused.
    Refused,
    /// Answered or refused, as long as nothing changes.
    Harmless,
}

/// An action, what it is given, and what must become of that.
pub(crate) type DatabaseAttack = (&'static str, &'static str, AttackOutcome);

/// Runs each of them. `state` is all that an attack could change, looked at from outside.
pub(crate) fn run(
    wire: &mut Wire,
    database: &str,
    attacks: &[DatabaseAttack],
    mut state: impl FnMut() -> String,
) {
    let before = state();
    assert!(!before.is_empty());
    let mut wrong = Vec::new();
    for (action, payload, outcome) in attacks {
        let mut arguments = json!({"action": action, "payload": payload, "timeout_ms": 3000});
        if !database.is_empty() {
            arguments["database"] = database.into();
        }
        let (answer, failed) = bridge(wire, arguments);
        let said = answer["error"].as_str().unwrap_or_default();
        let right = match outcome {
            AttackOutcome::Ddl => failed && said == DDL,
            AttackOutcome::Refused => {
                failed && !said.starts_with("stopped") && !said.starts_with("cannot connect")
            }
            AttackOutcome::Harmless => !said.starts_with("cannot connect"),
        };
        if !right {
            wrong.push(format!("{action} {payload:?} should be {outcome:?}: {answer}"));
        }
        let after = state();
        if after != before {
            wrong.push(format!("{action} {payload:?} CHANGED SOMETHING ({answer})\n  {before}\n  {after}"));
            break;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
