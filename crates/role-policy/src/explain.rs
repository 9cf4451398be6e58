//! The explanation of a decision, rule by rule.

use crate::caller::Caller;
use crate::decision::{Decision, Refusal};
use crate::effect_resolver::EffectResolver;
use crate::otherwise::Otherwise;
use crate::policy::Policy;
use crate::tool::{Call, ToolFacts};
use std::sync::Arc;

/// The explanation that [`Policy::explain`] gives.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The entries and rules that were looked at, in order.
    pub steps: Vec<ExplainStep>,
    /// The decision of [`Policy::authorize`].
    pub decision: Result<Decision, Refusal>,
}

/// One entry or rule that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainStep {
    /// The role that has it, itself or by extending another.
    pub role: String,
    /// The entry or rule, with its file and line.
    pub rule: Arc<str>,
    /// Its line in the file, from 1; 0 where there is none.
    pub line: usize,
    /// Its verdict on the call.
    pub says: ExplainVerdict,
}

/// The verdict of one entry or rule on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExplainVerdict {
    /// The rule is about other tools.
    NoMatch,
    /// The rule hides the tool.
    Denies,
    /// The rule shows the tool.
    Allows,
    /// The arguments fit.
    Holds,
    /// The arguments do not fit, for this reason.
    Refuses(String),
    /// A person must approve the call: every call of the tool, or one for which this condition does not hold.
    Asks(Option<String>),
}

impl Policy {
    /// Explains the decision about a call: every entry and rule that was looked at, and the decision.
    pub fn explain(
        &self,
        caller: &Caller,
        tool: &ToolFacts<'_>,
        call: Call,
        effects: &dyn EffectResolver,
    ) -> Explanation {
        let mut steps = Vec::new();
        for name in caller.roles() {
            let role = self.role(name);
            let mut step = |rule: &Arc<str>, line: usize, says: ExplainVerdict| {
                steps.push(ExplainStep { role: role.name.clone(), rule: Arc::clone(rule), line, says });
            };
            let lists = [
                (&role.deny, ExplainVerdict::Denies),
                (&role.ask, ExplainVerdict::Asks(None)),
                (&role.allow, ExplainVerdict::Allows),
            ];
            for (list, says) in lists {
                for entry in list {
                    let says =
                        if entry.selector.matches(tool) { says.clone() } else { ExplainVerdict::NoMatch };
                    step(&entry.label, entry.line, says);
                }
            }
            for rule in &role.rules {
                let says = match rule.concerns(tool) {
                    false => ExplainVerdict::NoMatch,
                    true => match rule.check(tool, call.arguments(), effects) {
                        Ok(()) => ExplainVerdict::Holds,
                        Err(violation) if rule.otherwise == Otherwise::Deny => {
                            ExplainVerdict::Refuses(violation.to_string())
                        }
                        Err(_) => match rule.unmet(tool, call.arguments(), effects) {
                            Ok(unmet) => ExplainVerdict::Asks(Some(unmet.condition)),
                            Err(violation) => ExplainVerdict::Refuses(violation.to_string()),
                        },
                    },
                };
                step(&rule.label, rule.line, says);
            }
        }
        // Asked anew and not derived from the steps, so that an explanation cannot differ from what really happens.
        let decision = self.authorize(caller, tool, call, effects).map(|call| call.decision().clone());
        Explanation { steps, decision }
    }
}
