//! The decision, and the value that proves it was made.

use crate::Caller;
use serde_json::{Map, Value};

/// What a policy knows of a tool beside its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolFacts<'a> {
    /// The canonical name. Aliases are resolved before a policy is asked.
    pub name: &'a str,
    /// The toolset it belongs to.
    pub toolset: &'a str,
    /// It changes nothing.
    pub read_only: bool,
    /// It may overwrite or remove what was there.
    pub destructive: bool,
    /// It reaches beyond this machine, or runs programs that may.
    pub open_world: bool,
}

/// One call, as it is judged and as it is run: the canonical tool name and the normalised arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    tool: String,
    arguments: Map<String, Value>,
}

impl Call {
    /// A call of `tool` with `arguments`. Both must be in their canonical form already: what is judged
    /// here is what runs.
    pub fn new(tool: impl Into<String>, arguments: Map<String, Value>) -> Self {
        Self { tool: tool.into(), arguments }
    }

    /// The canonical tool name.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The normalised arguments.
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }
}

/// Why a call was allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// The rule that allowed it.
    pub rule: &'static str,
}

/// A call that a policy has allowed. Only [`Policy::authorize`] makes one.
#[derive(Debug)]
pub struct Authorized<C> {
    call: C,
    decision: Decision,
}

impl<C> Authorized<C> {
    /// Why it was allowed.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }
}

impl Authorized<Call> {
    /// The canonical tool name.
    pub fn tool(&self) -> &str {
        self.call.tool()
    }

    /// The arguments that were judged, to run the call with.
    pub fn into_arguments(self) -> Map<String, Value> {
        self.call.arguments
    }
}

/// Why a call was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The caller may not see the tool. To the caller this is the same as a tool that does not exist.
    Hidden,
    /// The caller may call the tool, but not with these arguments.
    Arguments {
        /// The rule that refused them.
        rule: String,
        /// What was wrong and what is allowed, in words for the caller.
        reason: String,
    },
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Hidden => f.write_str("no such tool"),
            Self::Arguments { reason, .. } => f.write_str(reason),
        }
    }
}

impl std::error::Error for Refusal {}

/// What each caller may see and call.
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Rules,
}

#[derive(Clone, Debug)]
enum Rules {
    AllowAll,
}

impl Policy {
    /// Allows every caller every call: right for a server whose one caller already owns the machine it
    /// runs on, and for nothing else.
    pub fn allow_all() -> Self {
        Self { rules: Rules::AllowAll }
    }

    /// Whether `caller` may know that the tool exists.
    pub fn sees(&self, _caller: &Caller, _tool: &ToolFacts<'_>) -> bool {
        match self.rules {
            Rules::AllowAll => true,
        }
    }

    /// Judges one call. `tool` must be the facts of the tool that `call` names.
    ///
    /// # Errors
    ///
    /// [`Refusal::Hidden`] where the caller does not see the tool, or where `tool` is not the tool of
    /// `call`; [`Refusal::Arguments`] where the tool is allowed and these arguments are not.
    pub fn authorize(
        &self,
        caller: &Caller,
        tool: &ToolFacts<'_>,
        call: Call,
    ) -> Result<Authorized<Call>, Refusal> {
        // Facts of another tool would judge one call and run another.
        if tool.name != call.tool || !self.sees(caller, tool) {
            return Err(Refusal::Hidden);
        }
        match self.rules {
            Rules::AllowAll => Ok(Authorized { call, decision: Decision { rule: "allow-all" } }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: ToolFacts<'static> = ToolFacts {
        name: "delete_file",
        toolset: "filesystem",
        read_only: false,
        destructive: true,
        open_world: false,
    };

    #[test]
    fn the_arguments_that_were_judged_are_the_ones_that_run() {
        let arguments = Map::from_iter([("path".to_owned(), Value::from("a"))]);
        let call = Call::new("delete_file", arguments.clone());
        let authorized = Policy::allow_all().authorize(&Caller::new("dev"), &FACTS, call).expect("allowed");
        assert_eq!(authorized.decision().rule, "allow-all");
        assert_eq!(authorized.into_arguments(), arguments);
    }

    #[test]
    fn facts_of_another_tool_authorize_nothing() {
        let call = Call::new("read_file", Map::new());
        let refused = Policy::allow_all().authorize(&Caller::new("dev"), &FACTS, call);
        assert_eq!(refused.expect_err("refused"), Refusal::Hidden);
    }
}
