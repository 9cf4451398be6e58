//! A patch is judged as the calls that would do the same, one for each file.

use crate::caller::Caller;
use crate::decision::Refusal;
use crate::effect_resolver::{EffectResolver, PatchedPath};
use crate::policy::{Judgement, Policy, ToolVerdict};
use crate::tool::{Effect, PatchParts, ToolFacts};
use serde_json::{Map, Value};

impl Policy {
    /// Judges the parts of a patch, if `tool` applies one, and adds to `judgement` what must hold while it is applied, and who
    /// must be asked.
    pub(crate) fn judge_patch(
        &self,
        caller: &Caller,
        tool: &ToolFacts<'_>,
        arguments: &Map<String, Value>,
        effects: &dyn EffectResolver,
        judgement: &mut Judgement,
    ) -> Result<(), Refusal> {
        for effect in tool.effects {
            let Effect::Patches { patch: name, parts } = effect else { continue };
            // Where nothing limits these tools, the text is not read, so that the tool itself says what is wrong with it.
            if !self.limits_any(caller, parts) {
                continue;
            }
            let refused = |reason: String| Refusal::Arguments { rule: "parts of a patch".into(), reason };
            let Some(Value::String(patch)) = arguments.get(*name) else {
                return Err(refused(format!("`{name}` must be a text")));
            };
            let paths =
                effects.patched_paths(patch).map_err(|error| refused(format!("`{name}`: {error}")))?;
            let mut others = arguments.clone();
            others.remove(*name);
            for path in &paths {
                judgement.narrow(self.judge_part(caller, parts, path, &others, effects)?);
            }
        }
        Ok(())
    }

    fn limits_any(&self, caller: &Caller, parts: &PatchParts) -> bool {
        let PatchParts { edit, create, remove, rename } = *parts;
        [edit, create, remove, rename].into_iter().filter_map(|name| self.known_facts(name)).any(|facts| {
            caller.roles().any(|role| match &*self.role(role).verdict(&facts) {
                ToolVerdict::Hidden(_) => true,
                ToolVerdict::Visible { rules, ask, .. } => ask.is_some() || !rules.is_empty(),
            })
        })
    }

    /// Judges the call that would do to one file what the patch does.
    fn judge_part(
        &self,
        caller: &Caller,
        parts: &PatchParts,
        path: &PatchedPath,
        others: &Map<String, Value>,
        effects: &dyn EffectResolver,
    ) -> Result<Judgement, Refusal> {
        let (part, path, verb) = match path {
            PatchedPath::Edited(path) => (parts.edit, path, "change"),
            PatchedPath::Created(path) => (parts.create, path, "create"),
            PatchedPath::Removed(path) => (parts.remove, path, "remove"),
            PatchedPath::Moved(path) => (parts.rename, path, "move"),
        };
        let Some(facts) = self.known_facts(part) else { return Ok(Judgement::default()) };
        // The other arguments, `dry_run` for example, mean the same there.
        let mut call = others.clone();
        for effect in facts.effects {
            if let Effect::Reads(path_name)
            | Effect::Writes(path_name)
            | Effect::Replaces(path_name)
            | Effect::Moves(path_name) = effect
            {
                call.insert((*path_name).to_owned(), Value::String(path.clone()));
            }
        }
        match self.judge(caller, &facts, &call, effects, 0) {
            Ok(judgement) => Ok(judgement),
            // The patch tool itself is visible, so this refuses its arguments, and names no hidden tool.
            Err(Refusal::Hidden { rule }) => {
                let reason = format!("the patch would {verb} `{path}`, and this role may {verb} no file");
                Err(Refusal::Arguments { rule, reason })
            }
            Err(refusal) => Err(refusal),
        }
    }

    fn known_facts(&self, name: &str) -> Option<ToolFacts<'_>> {
        self.compiled.known.iter().find(|tool| tool.name == name).map(crate::tool::OwnedToolFacts::facts)
    }
}
