//! The tools that a policy was loaded for.

use crate::approval::Approval;
use crate::caller::Caller;
use crate::decision::{Authorized, Refusal};
use crate::effect_resolver::EffectResolver;
use crate::policy::Policy;
use crate::tool::{Call, ToolFacts};
use serde_json::{Map, Value};

/// A tool that was known when the policy was loaded. [`Policy::tool`] finds it.
///
/// A `PolicyTool` judges calls by the facts that the policy was loaded with, so that a call cannot be judged by the
/// facts of another tool.
#[derive(Clone, Copy, Debug)]
pub struct PolicyTool<'p> {
    policy: &'p Policy,
    facts: ToolFacts<'p>,
}

impl Policy {
    /// Finds a tool that was known when the policy was loaded. A tool that was not is judged with
    /// [`Policy::authorize`], which takes its facts.
    ///
    /// # Errors
    /// [`Refusal::Hidden`]: no tool of that name was known.
    ///
    /// ```
    /// use role_policy::{Caller, Effect, LexicalResolver, Policy, ToolFacts};
    ///
    /// let save = ToolFacts::new("save", "files").effects(&[Effect::Writes("path")]);
    /// let policy = Policy::load("version = 1\n[roles.writer]\nallow = [\"save\"]", "roles.toml", &[save])?.policy;
    /// let arguments = serde_json::from_str(r#"{ "path": "docs/plan.md" }"#)?;
    /// let call = policy.tool("save")?.authorize(&Caller::new("writer"), arguments, &LexicalResolver)?;
    /// assert_eq!(call.tool(), "save");
    /// assert!(policy.tool("load").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tool(&self, name: &str) -> Result<PolicyTool<'_>, Refusal> {
        match self.compiled.known.iter().find(|tool| tool.name == name) {
            Some(tool) => Ok(PolicyTool { policy: self, facts: tool.facts() }),
            // An unknown tool is refused like a hidden one, so that nobody can probe for names.
            None => Err(Refusal::Hidden { rule: "the policy was loaded without this tool".into() }),
        }
    }
}

impl<'p> PolicyTool<'p> {
    /// Returns the facts that the policy was loaded with.
    pub fn facts(&self) -> ToolFacts<'p> {
        self.facts
    }

    /// Returns true if `caller` may know that the tool exists: see [`Policy::sees`].
    pub fn is_visible_to(&self, caller: &Caller) -> bool {
        self.policy.sees(caller, &self.facts)
    }

    /// Judges a call of the tool with these arguments, which must be in their canonical form: what is judged is what
    /// runs.
    ///
    /// # Errors
    /// As [`Policy::authorize`].
    pub fn authorize(
        &self,
        caller: &Caller,
        arguments: Map<String, Value>,
        effects: &dyn EffectResolver,
    ) -> Result<Authorized<Call>, Refusal> {
        self.policy.authorize(caller, &self.facts, Call::new(self.facts.name, arguments), effects)
    }

    /// Judges a call of the tool that a person has approved.
    ///
    /// # Errors
    /// As [`Policy::authorize_approved`].
    pub fn authorize_approved(
        &self,
        caller: &Caller,
        arguments: Map<String, Value>,
        effects: &dyn EffectResolver,
        approval: Approval,
    ) -> Result<Authorized<Call>, Refusal> {
        let call = Call::new(self.facts.name, arguments);
        self.policy.authorize_approved(caller, &self.facts, call, effects, approval)
    }
}
