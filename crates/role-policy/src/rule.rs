//! Selectors, which choose tools by name or kind, and rules, which judge arguments.

use crate::access::Access;
use crate::argument_names;
use crate::effect_resolver::{EffectResolver, PatchedPath};
use crate::otherwise::Otherwise;
use crate::path_rule::PathRule;
use crate::scope::CallScope;
use crate::tool::{Effect, ToolFacts};
use crate::violation::RuleViolation;
use egress_proxy::NetworkAccess;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A choice of tools, as an entry of `allow`, `deny` or `tools` makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolSelector {
    /// Canonical names, in which `*` stands for any characters.
    Name(String),
    Toolset(String),
    ReadOnly,
    Destructive,
    OpenWorld,
}

/// The reason why a text chooses no tools.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SelectorError {
    #[error("it is empty and matches no tool")]
    Empty,
    #[error("`toolset:` names no toolset")]
    NoToolset,
    #[error("there is no annotation `{0}`; expected {ANNOTATIONS}")]
    Annotation(String),
    #[error(
        "{0:?} is in no tool's name; expected a name in which `*` stands for any characters, \
         `toolset:NAME`, {ANNOTATIONS}"
    )]
    Character(char),
}

/// The selectors by annotation, for messages.
const ANNOTATIONS: &str = "`annotation:read-only`, `annotation:destructive` or `annotation:open-world`";

impl ToolSelector {
    /// Reads `git_*`, `toolset:git` or `annotation:read-only`.
    pub(crate) fn parse(text: &str) -> Result<Self, SelectorError> {
        if let Some(name) = text.strip_prefix("toolset:") {
            return match name {
                "" => Err(SelectorError::NoToolset),
                name => Ok(Self::Toolset(name.to_owned())),
            };
        }
        if let Some(kind) = text.strip_prefix("annotation:") {
            return match kind {
                "read-only" => Ok(Self::ReadOnly),
                "destructive" => Ok(Self::Destructive),
                "open-world" => Ok(Self::OpenWorld),
                _ => Err(SelectorError::Annotation(kind.to_owned())),
            };
        }
        // No tool has a `/` in its name. It is for areas of other servers, such as `mcp/prompts`.
        let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '*' | '/');
        match text.chars().find(|c| !is_name_char(*c)) {
            _ if text.is_empty() => Err(SelectorError::Empty),
            Some(c) => Err(SelectorError::Character(c)),
            None => Ok(Self::Name(text.to_owned())),
        }
    }

    pub(crate) fn matches(&self, tool: &ToolFacts<'_>) -> bool {
        match self {
            Self::Name(glob) => glob_matches(glob, tool.name),
            Self::Toolset(name) => name == tool.toolset,
            Self::ReadOnly => tool.read_only,
            Self::Destructive => tool.destructive,
            Self::OpenWorld => tool.open_world,
        }
    }

    /// Returns true if it chooses by annotation, whatever tools there are.
    pub(crate) fn is_kind(&self) -> bool {
        matches!(self, Self::ReadOnly | Self::Destructive | Self::OpenWorld)
    }

    /// Returns the one tool it names, if it is a name without `*`.
    pub(crate) fn exact(&self) -> Option<&str> {
        match self {
            Self::Name(name) if !name.contains('*') => Some(name),
            _ => None,
        }
    }
}

/// Returns true if `name` matches `glob`, in which `*` stands for any characters, also none, and all else for itself.
/// It takes linear time for usual globs, quadratic at worst.
// With one place to go back to and no recursion: names come from clients, and a recursive search takes exponential
// time for a glob with many stars.
pub(crate) fn glob_matches(glob: &str, name: &str) -> bool {
    let (glob, name) = (glob.as_bytes(), name.as_bytes());
    let (mut at, mut star) = ((0, 0), None);
    loop {
        match (glob.get(at.0), name.get(at.1)) {
            (Some(b'*'), _) => {
                star = Some(at);
                at.0 += 1;
            }
            (Some(expected), Some(found)) if expected == found => at = (at.0 + 1, at.1 + 1),
            (None, None) => return true,
            // The last star takes one character more. An earlier star need not: what follows it has matched as early
            // as it can, which leaves the most for the rest.
            _ => match star {
                Some((star_at, consumed)) if consumed < name.len() => {
                    star = Some((star_at, consumed + 1));
                    at = (star_at + 1, consumed + 1);
                }
                _ => return false,
            },
        }
    }
}

/// Conditions on the arguments of some tools. All must hold, and one that cannot be judged does not.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// `dev: require `W3` (roles.toml:12)`.
    pub(crate) label: Arc<str>,
    pub(crate) line: usize,
    pub(crate) tools: Vec<ToolSelector>,
    pub(crate) paths: Option<Arc<PathRule>>,
    pub(crate) commands: Option<CommandRule>,
    pub(crate) sql_read_only: bool,
    /// The network that programs may reach.
    pub(crate) network: Option<NetworkAccess>,
    pub(crate) arguments: Vec<ArgumentRule>,
    /// True if no argument may be given but those named in `arguments`.
    pub(crate) only: bool,
    /// True if a tool of another server may be given arguments that it does not declare.
    pub(crate) additional_arguments: bool,
    /// The operator's explanation, which a refusal ends with.
    pub(crate) reason: Option<String>,
    /// The consequence if a condition does not hold.
    pub(crate) otherwise: Otherwise,
}

/// The commands that may run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandRule {
    /// Program and first arguments, each.
    pub(crate) allowed: Vec<Vec<String>>,
    /// Environment variables that a caller may set.
    pub(crate) environment: Vec<String>,
}

/// The conditions on one argument.
#[derive(Clone, Debug)]
pub(crate) struct ArgumentRule {
    /// The name of a top-level argument, or a JSON Pointer (RFC 6901).
    pub(crate) location: String,
    /// True if it may be left out. Otherwise leaving it out fails, because the tool's default is not known here.
    pub(crate) optional: bool,
    pub(crate) tests: Vec<ArgumentTest>,
}

#[derive(Clone, Debug)]
pub(crate) enum ArgumentTest {
    OneOf(Vec<Value>),
    Glob(String),
    MaxLength(u64),
    Min(f64),
    Max(f64),
    /// It may not be given.
    Absent,
    /// It is a path, and leads where this rule allows.
    Path(PathRule),
}

impl Rule {
    pub(crate) fn concerns(&self, tool: &ToolFacts<'_>) -> bool {
        self.tools.iter().any(|selector| selector.matches(tool))
    }

    /// Returns every folder or file that may not be reached.
    pub(crate) fn excluded(&self) -> impl Iterator<Item = &str> {
        let tested =
            self.arguments.iter().flat_map(|argument| &argument.tests).filter_map(|test| match test {
                ArgumentTest::Path(rule) => Some(rule),
                _ => None,
            });
        let rules = self.paths.as_deref().into_iter().chain(tested);
        rules.flat_map(|rule| rule.not_within.iter().map(String::as_str))
    }

    /// Returns its conditions as text, without its name and line: equal for equal conditions.
    pub(crate) fn content(&self) -> String {
        let Self {
            paths,
            commands,
            sql_read_only,
            network,
            arguments,
            only,
            additional_arguments,
            otherwise,
            ..
        } = self;
        format!(
            "{paths:?} {commands:?} {sql_read_only} {network:?} {arguments:?} {only} {additional_arguments} {otherwise:?}"
        )
    }

    /// Adds what must still hold while the call runs.
    pub(crate) fn extend(&self, scope: &mut CallScope) {
        scope.paths.extend(self.paths.iter().map(Arc::clone));
        scope.sql_read_only |= self.sql_read_only;
        if let Some(network) = &self.network {
            scope.narrow_network(network);
        }
    }

    /// Judges a call. The error says what is allowed.
    pub(crate) fn check(
        &self,
        tool: &ToolFacts<'_>,
        arguments: &Map<String, Value>,
        effects: &dyn EffectResolver,
    ) -> Result<(), RuleViolation> {
        self.conditions(tool, arguments, effects).map_err(|found| match &self.reason {
            Some(reason) => {
                RuleViolation::Explained { violation: Box::new(found), explanation: reason.clone() }
            }
            None => found,
        })
    }

    pub(crate) fn conditions(
        &self,
        tool: &ToolFacts<'_>,
        arguments: &Map<String, Value>,
        effects: &dyn EffectResolver,
    ) -> Result<(), RuleViolation> {
        for effect in tool.effects {
            match effect {
                Effect::Reads(name) => self.check_paths(Access::Read, name, arguments, effects)?,
                Effect::Writes(name) => self.check_paths(Access::Write, name, arguments, effects)?,
                Effect::Replaces(name) => self.check_name(&[Access::Write], name, arguments, effects)?,
                Effect::Moves(name) => {
                    self.check_name(&[Access::Read, Access::Write], name, arguments, effects)?;
                }
                Effect::Patches { patch, .. } => self.check_patch(patch, arguments, effects)?,
                Effect::Runs { command, environment } => {
                    if let Some(rule) = &self.commands {
                        let shell = in_shell(tool, arguments);
                        rule.check(command, environment, shell, arguments, effects)?;
                    }
                }
                // It changes what `Runs` is judged by.
                Effect::Shell(_) => {}
                Effect::Sql(name) => {
                    if self.sql_read_only
                        && !matches!(
                            arguments.get(*name).and_then(Value::as_str),
                            Some("query" | "schema" | "explain")
                        )
                    {
                        return Err(RuleViolation::DatabaseWrite { argument: (*name).to_owned() });
                    }
                }
                // Judged for every caller, by what its roles may use.
                Effect::Role(_) => {}
            }
        }
        // A rule for what the tool does not declare cannot be judged, and so does not hold.
        if self.commands.is_some() && !tool.effects.iter().any(|effect| matches!(effect, Effect::Runs { .. }))
        {
            return Err(RuleViolation::UndeclaredCommand { tool: tool.name.to_owned() });
        }
        // What a tool of another server reaches is not declared at all.
        if self.paths.is_some() && tool.is_external() {
            return Err(RuleViolation::UndeclaredPaths { tool: tool.name.to_owned() });
        }
        if self.network.as_ref().is_some_and(|network| !network.is_unrestricted()) && tool.is_external() {
            return Err(RuleViolation::UndeclaredNetwork { tool: tool.name.to_owned() });
        }
        if self.sql_read_only && !tool.effects.iter().any(|effect| matches!(effect, Effect::Sql(_))) {
            return Err(RuleViolation::UndeclaredDatabase { tool: tool.name.to_owned() });
        }
        for argument in &self.arguments {
            if tool.is_external() {
                argument_names::check_variants(&argument.location, arguments)?;
            }
            argument.check(arguments, effects)?;
        }
        if self.only {
            let known = |name: &str| self.arguments.iter().any(|argument| argument.top_level_name() == name);
            if let Some(name) = arguments.keys().find(|name| !known(name)) {
                return Err(RuleViolation::UnknownArgument { argument: name.clone() });
            }
        }
        Ok(())
    }

    fn check_paths(
        &self,
        access: Access,
        name: &str,
        arguments: &Map<String, Value>,
        effects: &dyn EffectResolver,
    ) -> Result<(), RuleViolation> {
        let Some(rule) = &self.paths else { return Ok(()) };
        match arguments.get(name) {
            // Left out, a path is the primary root: see `Effect::Reads`.
            None | Some(Value::Null) => rule.check_argument(access, name, ".", effects),
            Some(Value::String(path)) => rule.check_argument(access, name, path, effects),
            Some(Value::Array(paths)) => paths.iter().try_for_each(|element| match element_path(element) {
                Some(path) => rule.check_argument(access, name, path, effects),
                None => Err(RuleViolation::NotPaths { argument: name.to_owned() }),
            }),
            Some(_) => Err(RuleViolation::NotAPath { argument: name.to_owned() }),
        }
    }

    /// Judges the path that an argument is, by where its own name stands.
    fn check_name(
        &self,
        accesses: &[Access],
        name: &str,
        arguments: &Map<String, Value>,
        effects: &dyn EffectResolver,
    ) -> Result<(), RuleViolation> {
        let Some(rule) = self.name_rule(accesses) else { return Ok(()) };
        let Some(Value::String(path)) = arguments.get(name) else {
            return Err(RuleViolation::NotAPath { argument: name.to_owned() });
        };
        check_own_name(rule, accesses, name, path, effects)
    }

    /// Returns the rule for paths if it limits one of `accesses`.
    fn name_rule(&self, accesses: &[Access]) -> Option<&PathRule> {
        self.paths.as_deref().filter(|rule| accesses.iter().any(|access| rule.limits(*access)))
    }

    /// Judges each path in a patch as the argument of a tool that does the same to it.
    fn check_patch(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        effects: &dyn EffectResolver,
    ) -> Result<(), RuleViolation> {
        let Some(rule) = self.name_rule(&[Access::Read, Access::Write]) else { return Ok(()) };
        let Some(Value::String(patch)) = arguments.get(name) else {
            return Err(RuleViolation::NotAPath { argument: name.to_owned() });
        };
        let paths = effects.patched_paths(patch).map_err(RuleViolation::unresolved(name))?;
        paths.iter().try_for_each(|patched| match patched {
            PatchedPath::Edited(path) => {
                rule.check_argument(Access::Read, name, path, effects)?;
                rule.check_argument(Access::Write, name, path, effects)
            }
            PatchedPath::Created(path) => rule.check_argument(Access::Write, name, path, effects),
            PatchedPath::Removed(path) => check_own_name(rule, &[Access::Write], name, path, effects),
            PatchedPath::Moved(path) => {
                check_own_name(rule, &[Access::Read, Access::Write], name, path, effects)
            }
        })
    }
}

/// Returns the path that an element of an array of paths is, or has as its member `path`.
pub(crate) fn element_path(element: &Value) -> Option<&str> {
    match element {
        Value::String(path) => Some(path),
        Value::Object(members) => members.get("path")?.as_str(),
        _ => None,
    }
}

/// Judges a path by where its own name stands, and with all that lies beneath it.
fn check_own_name(
    rule: &PathRule,
    accesses: &[Access],
    name: &str,
    path: &str,
    effects: &dyn EffectResolver,
) -> Result<(), RuleViolation> {
    // The cause would tell what lies out of reach.
    let resolved =
        effects.resolve_name(path).map_err(|_| RuleViolation::Unreachable { argument: name.to_owned() })?;
    rule.check_holds(&resolved)
        .and_then(|()| accesses.iter().try_for_each(|access| rule.check(*access, &resolved)))
        .map_err(RuleViolation::path(name))
}

/// Returns true if the command of a call runs in a shell. Whatever is not plainly false counts as true.
pub(crate) fn in_shell(tool: &ToolFacts<'_>, arguments: &Map<String, Value>) -> bool {
    tool.effects.iter().any(|effect| match effect {
        Effect::Shell(name) => !matches!(arguments.get(*name), None | Some(Value::Null | Value::Bool(false))),
        _ => false,
    })
}

impl CommandRule {
    fn check(
        &self,
        command: &str,
        environment: &str,
        shell: bool,
        arguments: &Map<String, Value>,
        effects: &dyn EffectResolver,
    ) -> Result<(), RuleViolation> {
        // A variable such as PATH or LD_PRELOAD turns an allowed program into another.
        match arguments.get(environment) {
            None | Some(Value::Null) => {}
            Some(Value::Object(variables)) => {
                if let Some(name) = variables.keys().find(|name| !self.environment.contains(name)) {
                    return Err(RuleViolation::Variable {
                        argument: environment.to_owned(),
                        variable: name.clone(),
                        allowed: self.environment.clone(),
                    });
                }
            }
            Some(_) => return Err(RuleViolation::NotVariables { argument: environment.to_owned() }),
        }
        let words = self.words(command, shell, arguments, effects)?;
        let Some((program, rest)) = words.split_first() else {
            return Err(RuleViolation::EmptyCommand { argument: command.to_owned() });
        };
        let mut requested = None;
        for allowed in &self.allowed {
            let Some((name, prefix)) = allowed.split_first() else { continue };
            if rest.len() < prefix.len() || rest.iter().zip(prefix).any(|(word, expected)| word != expected) {
                continue;
            }
            // Resolved after the cheap comparison and only once: it may search the file system. The word may also be a
            // path to another program of that name.
            let requested = match &requested {
                Some(requested) => requested,
                None => requested
                    .insert(effects.resolve_program(program).map_err(RuleViolation::unresolved(command))?),
            };
            // A program of the rule that is not installed matches nothing, and the next entry is tried.
            if effects.resolve_program(name).is_ok_and(|resolved| resolved == *requested) {
                return Ok(());
            }
        }
        Err(RuleViolation::Program { argument: command.to_owned(), allowed: self.allowed.clone() })
    }

    /// Returns the words that would run: those of the command, or those of the shell that it is a line of.
    pub(crate) fn words(
        &self,
        command: &str,
        shell: bool,
        arguments: &Map<String, Value>,
        effects: &dyn EffectResolver,
    ) -> Result<Vec<String>, RuleViolation> {
        let words = match arguments.get(command) {
            Some(Value::String(line)) if shell => effects.shell_words(line),
            Some(Value::String(line)) => effects.split_command(line),
            Some(Value::Array(words)) => {
                let words: Vec<String> = words
                    .iter()
                    .map(|word| word.as_str().map(str::to_owned))
                    .collect::<Option<_>>()
                    .ok_or_else(|| RuleViolation::NotWords { argument: command.to_owned() })?;
                if shell { effects.shell_words(&words.join(" ")) } else { effects.vector_words(words) }
            }
            // Left out, the tool would run a default of its own, which this rule cannot see.
            _ => {
                return Err(RuleViolation::NoCommand {
                    argument: command.to_owned(),
                    allowed: self.allowed.clone(),
                });
            }
        };
        words.map_err(RuleViolation::unresolved(command))
    }
}

impl ArgumentRule {
    pub(crate) fn top_level_name(&self) -> String {
        match self.location.strip_prefix('/') {
            Some(pointer) => {
                pointer.split('/').next().unwrap_or(pointer).replace("~1", "/").replace("~0", "~")
            }
            None => self.location.clone(),
        }
    }

    pub(crate) fn check(
        &self,
        arguments: &Map<String, Value>,
        effects: &dyn EffectResolver,
    ) -> Result<(), RuleViolation> {
        let location = &self.location;
        let found = match location.strip_prefix('/') {
            None => arguments.get(location),
            Some(pointer) => {
                let mut keys = pointer.splitn(2, '/');
                let first = arguments.get(&self.top_level_name());
                keys.next();
                match keys.next() {
                    None => first,
                    Some(rest) => first.and_then(|value| value.pointer(&format!("/{rest}"))),
                }
            }
        };
        let Some(value) = found else {
            let absent = self.tests.iter().any(|test| matches!(test, ArgumentTest::Absent));
            return if self.optional || absent {
                Ok(())
            } else {
                Err(RuleViolation::Missing { argument: location.clone(), expected: self.expected() })
            };
        };
        for test in &self.tests {
            if !test.holds(location, value, effects)? {
                let (argument, found) = (location.clone(), value_summary(value));
                return Err(RuleViolation::Value { argument, found, expected: self.expected() });
            }
        }
        Ok(())
    }

    fn expected(&self) -> String {
        let tests: Vec<String> = self.tests.iter().map(ArgumentTest::expected).collect();
        match tests.as_slice() {
            [] => "any value will do".to_owned(),
            tests => format!("this role may give {}", tests.join(" and ")),
        }
    }
}

impl ArgumentTest {
    /// Returns true if the value is as expected. An error says more than what is expected.
    fn holds(
        &self,
        location: &str,
        value: &Value,
        effects: &dyn EffectResolver,
    ) -> Result<bool, RuleViolation> {
        Ok(match self {
            Self::OneOf(values) => values.contains(value),
            Self::Glob(glob) => value.as_str().is_some_and(|text| glob_matches(glob, text)),
            Self::MaxLength(max) => length(value).is_some_and(|length| length <= *max),
            Self::Min(min) => value.as_f64().is_some_and(|value| value >= *min),
            Self::Max(max) => value.as_f64().is_some_and(|value| value <= *max),
            Self::Absent => false,
            Self::Path(rule) => {
                let paths = match value {
                    Value::Array(paths) => paths.as_slice(),
                    path => std::slice::from_ref(path),
                };
                for path in paths {
                    let Value::String(path) = path else {
                        return Err(RuleViolation::NotAPath { argument: location.to_owned() });
                    };
                    // What a tool of another server does with a path is not known: both must hold.
                    rule.check_argument(Access::Read, location, path, effects)?;
                    rule.check_argument(Access::Write, location, path, effects)?;
                }
                true
            }
        })
    }

    fn expected(&self) -> String {
        match self {
            Self::OneOf(values) => {
                let values: Vec<String> = values.iter().map(Value::to_string).collect();
                format!("one of {}", values.join(", "))
            }
            Self::Glob(glob) => format!("text like `{glob}`"),
            Self::MaxLength(max) => format!("at most {max} characters or elements"),
            Self::Min(min) => format!("at least {min}"),
            Self::Max(max) => format!("at most {max}"),
            Self::Absent => "nothing".to_owned(),
            Self::Path(_) => "a path it may reach".to_owned(),
        }
    }
}

/// Returns the number of characters of a text, or of elements of an array.
fn length(value: &Value) -> Option<u64> {
    let length = match value {
        Value::String(text) => text.chars().count(),
        Value::Array(elements) => elements.len(),
        _ => return None,
    };
    u64::try_from(length).ok()
}

/// Returns a value as a message shows it. A long or nested one is only named, because it could be anything.
fn value_summary(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() > 40 => "too long or of another form".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        value => value.to_string(),
    }
}
