//! The detail of a call's arguments: what it reaches, and all of it, masked and bounded.

use crate::redact::Redactor;
use crate::shell_quote::shell_quote;
use audit_log::{AuditLevel, CallTargets, TargetLimits};
use role_policy::{Effect, EffectResolver, PatchedPath};
use serde_json::{Map, Value};
use std::path::{Component, Path, PathBuf};

/// The detail of the arguments of one call.
#[derive(Debug, Default)]
pub(crate) struct ArgumentDetail {
    pub(crate) targets: Option<CallTargets>,
    pub(crate) full: Option<String>,
}

/// Finds the detail that is recorded.
pub(crate) struct DetailSource<'a> {
    pub(crate) level: AuditLevel,
    pub(crate) redactor: &'a Redactor,
    /// The folders of the caller. The first is where relative paths begin.
    pub(crate) roots: &'a [PathBuf],
    pub(crate) resolver: &'a dyn EffectResolver,
}

/// Text beyond the bound that is searched for secrets too: one that begins before the bound is found whole. It is longer than
/// any secret but a key of several lines, which is found by its beginning.
const MARGIN_BYTES: usize = 4096;

impl DetailSource<'_> {
    /// Returns the detail of `arguments`, which are in their canonical form, of a tool with these effects.
    pub(crate) fn detail(&self, effects: &[Effect], arguments: &Map<String, Value>) -> ArgumentDetail {
        match self.level {
            AuditLevel::Names => ArgumentDetail::default(),
            AuditLevel::Targets => {
                ArgumentDetail { targets: Some(self.targets(effects, arguments)), full: None }
            }
            AuditLevel::Full => ArgumentDetail {
                targets: Some(self.targets(effects, arguments)),
                full: Some(self.full(effects, arguments)),
            },
        }
    }

    fn targets(&self, effects: &[Effect], arguments: &Map<String, Value>) -> CallTargets {
        let mut targets = CallTargets::default();
        for effect in effects {
            match effect {
                Effect::Reads(name) => {
                    self.paths(arguments.get(*name), &mut targets.reads, &mut targets.omitted);
                }
                // A moved path is recorded as written, because the file is gone from there afterwards.
                Effect::Writes(name) | Effect::Replaces(name) | Effect::Moves(name) => {
                    self.paths(arguments.get(*name), &mut targets.writes, &mut targets.omitted);
                }
                Effect::Patches { patch, .. } => {
                    let patch = arguments.get(*patch).and_then(Value::as_str);
                    let paths = patch.and_then(|patch| self.resolver.patched_paths(patch).ok());
                    for path in paths.unwrap_or_default() {
                        if let PatchedPath::Edited(path)
                        | PatchedPath::Created(path)
                        | PatchedPath::Removed(path)
                        | PatchedPath::Moved(path) = path
                        {
                            CallTargets::push(&mut targets.writes, &mut targets.omitted, self.path(&path));
                        }
                    }
                }
                Effect::Runs { command, .. } => {
                    targets.command = arguments.get(*command).and_then(|command| self.command(command));
                }
                Effect::Sql(name) => {
                    let kind = arguments.get(*name).and_then(Value::as_str);
                    targets.sql = kind.map(|kind| self.redacted(kind, TargetLimits::ITEM_BYTES));
                }
                Effect::Role(name) => {
                    let role = arguments.get(*name).and_then(Value::as_str);
                    targets.role = role.map(|role| self.redacted(role, TargetLimits::ITEM_BYTES));
                }
                // A kind that is not known here names nothing that could be recorded.
                _ => {}
            }
        }
        for host in arguments.values().filter_map(|value| url_host(value.as_str()?)) {
            CallTargets::push(&mut targets.hosts, &mut targets.omitted, host.to_owned());
        }
        targets
    }

    /// Adds the paths of an argument: a path, a list of paths, or of objects that have one. Left out, it is the first root.
    fn paths(&self, value: Option<&Value>, list: &mut Vec<String>, omitted: &mut u64) {
        match value {
            None | Some(Value::Null) => {
                if let Some(root) = self.roots.first() {
                    CallTargets::push(list, omitted, root.display().to_string());
                }
            }
            Some(Value::String(path)) => CallTargets::push(list, omitted, self.path(path)),
            Some(Value::Array(items)) => {
                for item in items {
                    if let Some(path) = item.as_str().or_else(|| item.get("path")?.as_str()) {
                        CallTargets::push(list, omitted, self.path(path));
                    }
                }
            }
            Some(_) => {}
        }
    }

    /// Returns a path as the operator knows it: from the root on. Links are not followed, and the path need not exist.
    fn path(&self, text: &str) -> String {
        let Some(root) =
            self.roots.first().filter(|_| !Path::new(text).is_absolute() && !text.starts_with('~'))
        else {
            return self.redacted(text, TargetLimits::ITEM_BYTES);
        };
        // `NAME:PATH` is a path in another root.
        let other = text.split_once(':').and_then(|(name, rest)| {
            let root = self.roots.iter().find(|root| root.file_name().is_some_and(|last| last == name))?;
            Some((root, rest))
        });
        let (root, rest) = other.unwrap_or((root, text));
        let mut path = root.clone();
        for component in Path::new(rest).components() {
            match component {
                Component::ParentDir => {
                    path.pop();
                }
                Component::CurDir => {}
                other => path.push(other),
            }
        }
        self.redacted(&path.display().to_string(), TargetLimits::ITEM_BYTES)
    }

    /// Returns a command as one line. A secret may be beside its name, in another word, so that the line is masked as a whole.
    fn command(&self, command: &Value) -> Option<String> {
        let line = match command {
            Value::String(line) => line.clone(),
            Value::Array(words) => {
                let words: Vec<_> = words.iter().filter_map(Value::as_str).map(shell_quote).collect();
                words.join(" ")
            }
            _ => return None,
        };
        Some(self.redacted(&line, TargetLimits::COMMAND_BYTES))
    }

    /// Returns all arguments as JSON.
    fn full(&self, effects: &[Effect], arguments: &Map<String, Value>) -> String {
        let mut budget = TargetLimits::FULL_BYTES;
        let mut bounded = Map::new();
        for (name, value) in arguments {
            let is_command = effects
                .iter()
                .any(|effect| matches!(effect, Effect::Runs { command, .. } if command == name));
            let value = match is_command.then(|| self.command(value)).flatten() {
                Some(line) => Value::String(line),
                None => self.bounded(value, &mut budget),
            };
            bounded.insert(name.clone(), value);
        }
        let mut bounded = Value::Object(bounded);
        // The object is masked again as a whole: the name of a member may tell that its value is a secret.
        self.redactor.redact_json(&mut bounded);
        TargetLimits::cut(bounded.to_string(), TargetLimits::FULL_BYTES)
    }

    /// Returns `value` with no more text than is left of `budget`, each text masked before it is cut.
    fn bounded(&self, value: &Value, budget: &mut usize) -> Value {
        if *budget == 0 {
            return Value::String("…".to_owned());
        }
        match value {
            Value::String(text) => {
                let text = self.redacted(text, *budget);
                *budget = budget.saturating_sub(text.len());
                Value::String(text)
            }
            Value::Array(items) => {
                let mut bounded = Vec::new();
                for item in items {
                    // Each item costs something. Otherwise a list of a million empty items would never reach the bound.
                    *budget = budget.saturating_sub(2);
                    bounded.push(self.bounded(item, budget));
                    if *budget == 0 {
                        break;
                    }
                }
                Value::Array(bounded)
            }
            Value::Object(members) => {
                let mut bounded = Map::new();
                for (name, member) in members {
                    *budget = budget.saturating_sub(name.len() + 4);
                    bounded.insert(name.clone(), self.bounded(member, budget));
                    if *budget == 0 {
                        break;
                    }
                }
                Value::Object(bounded)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// Returns at most about `bytes` of `text`, masked. No secret is taken apart by the cut.
    fn redacted(&self, text: &str, bytes: usize) -> String {
        if text.len() <= bytes + MARGIN_BYTES {
            return TargetLimits::cut(self.redactor.redact(text).into_owned(), bytes);
        }
        let begin = text.get(..text.floor_char_boundary(bytes + MARGIN_BYTES)).unwrap_or_default();
        let masked = self.redactor.redact(begin);
        // A secret that is cut by the end of `begin` is not found. It is in what is taken off here.
        let end = masked.floor_char_boundary(masked.len().saturating_sub(MARGIN_BYTES).min(bytes));
        let kept = masked.get(..end).unwrap_or_default();
        format!("{kept}… ({} more bytes)", text.len().saturating_sub(end))
    }
}

/// Returns the host in a URL, without a user and a password.
fn url_host(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let is_scheme = (1..=16).contains(&scheme.len())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let authority = rest.split(['/', '?', '#']).next()?;
    // The last `@` counts, as in the URL standard, because a password may contain others.
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let is_host = !host.is_empty() && host.len() <= 255 && !host.contains(char::is_whitespace);
    (is_scheme && is_host).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use role_policy::LexicalResolver;
    use serde_json::json;

    fn detail(level: AuditLevel, effects: &[Effect], arguments: Value) -> ArgumentDetail {
        let Value::Object(arguments) = arguments else { unreachable!() };
        let redactor = Redactor::new(Default::default()).unwrap();
        let roots = [PathBuf::from("/srv/one"), PathBuf::from("/srv/two")];
        DetailSource { level, redactor: &redactor, roots: &roots, resolver: &LexicalResolver }
            .detail(effects, &arguments)
    }

    fn targets(effects: &[Effect], arguments: Value) -> CallTargets {
        detail(AuditLevel::Targets, effects, arguments).targets.unwrap()
    }

    const RUNS: Effect = Effect::Runs { command: "command", environment: "env" };

    #[test]
    fn paths_are_told_from_the_root_on_with_what_is_done_to_them() {
        let effects = [Effect::Reads("from"), Effect::Replaces("to")];
        let found =
            targets(&effects, json!({"from": ["a/../b", {"path": "two:c"}, "/etc/x"], "to": "./src/x.rs"}));
        assert_eq!(found.reads, ["/srv/one/b", "/srv/two/c", "/etc/x"]);
        assert_eq!(found.writes, ["/srv/one/src/x.rs"]);
        assert_eq!(targets(&effects, json!({"to": "x"})).reads, ["/srv/one"]);
        let many: Vec<String> = (0..40).map(|number| format!("f{number}")).collect();
        let found = targets(&[Effect::Reads("from")], json!({"from": many}));
        assert_eq!((found.reads.len(), found.omitted), (32, 8));
    }

    #[test]
    fn a_command_is_a_line_without_its_secrets_and_without_its_environment() {
        let arguments = json!({"command": ["mysql", "--password", "hunter2hunter2", "a b"],
                               "env": {"X": "in the environment"}, "url": "https://me:pw@git.example.com:8443/x?y"});
        let found = targets(&[RUNS, Effect::Shell("shell")], arguments);
        let text = serde_json::to_string(&found).unwrap();
        assert!(found.command.as_ref().is_some_and(|line| line.starts_with("mysql --password ")), "{text}");
        assert!(found.command.as_ref().is_some_and(|line| line.ends_with("'a b'")), "{text}");
        assert!(
            !text.contains("hunter2") && !text.contains("environment") && !text.contains("me:pw"),
            "{text}"
        );
        assert_eq!(found.hosts, ["git.example.com:8443"]);
        let long = targets(&[RUNS], json!({"command": format!("echo {}", "x".repeat(100_000))}));
        assert!(long.command.is_some_and(|line| line.len() < 2100 && line.ends_with("more bytes)")));
    }

    #[test]
    fn full_arguments_are_masked_and_bounded_and_no_cut_takes_a_secret_apart() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        for padding in [10, 16_000, 16_370, 16_384, 20_440, 20_475] {
            let text = format!("{} {token} {}", "word ".repeat(padding / 5), "tail ".repeat(10_000));
            let arguments = json!({"path": "a", "content": text, "env": {"PASSWORD": "hunter2hunter2"}});
            let found = detail(AuditLevel::Full, &[Effect::Writes("path")], arguments).full.unwrap();
            assert!(found.len() < 17_000, "{}", found.len());
            assert!(!found.contains("ghp_a1B2") && !found.contains("hunter2"), "{padding}: {found}");
        }
        let found = detail(
            AuditLevel::Full,
            &[RUNS],
            json!({"command": ["mysql", "--password", "hunter2hunter2"], "timeout_ms": 7}),
        );
        let found: Value = serde_json::from_str(&found.full.unwrap()).unwrap();
        assert_eq!(found["timeout_ms"], 7);
        assert!(!found.to_string().contains("hunter2"), "{found}");
        // However many secrets the masks make shorter.
        let text = format!("{token}\n").repeat(2000);
        let found = detail(AuditLevel::Full, &[], json!({"content": text})).full.unwrap();
        assert!(!found.contains("ghp_"), "{found}");
    }
}
