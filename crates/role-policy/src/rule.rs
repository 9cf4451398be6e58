//! Selectors, which choose tools by name or kind, and rules, which judge arguments.

use crate::decision::{Access, Scope};
use crate::effects::Effects;
use crate::tool::{Effect, ToolFacts};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Which tools an entry of `allow`, `deny` or `tools` speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selector {
    /// Canonical names, in which `*` stands for any characters.
    Name(String),
    Toolset(String),
    ReadOnly,
    Destructive,
    OpenWorld,
}

impl Selector {
    /// Reads `git_*`, `toolset:git` or `annotation:read-only`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        const KINDS: &str = "`annotation:read-only`, `annotation:destructive` or `annotation:open-world`";
        if let Some(name) = text.strip_prefix("toolset:") {
            return match name {
                "" => Err("`toolset:` names no toolset".to_owned()),
                name => Ok(Self::Toolset(name.to_owned())),
            };
        }
        if let Some(kind) = text.strip_prefix("annotation:") {
            return match kind {
                "read-only" => Ok(Self::ReadOnly),
                "destructive" => Ok(Self::Destructive),
                "open-world" => Ok(Self::OpenWorld),
                _ => Err(format!("there is no annotation `{kind}`; expected {KINDS}")),
            };
        }
        let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '*' | '/');
        match text.chars().find(|c| !name(*c)) {
            _ if text.is_empty() => Err("it is empty and matches no tool".to_owned()),
            Some(c) => Err(format!(
                "{c:?} is in no tool's name; expected a name in which `*` stands for any characters, \
                 `toolset:NAME`, {KINDS}"
            )),
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

    /// Whether it speaks of a kind of tool, whatever tools there are.
    pub(crate) fn is_kind(&self) -> bool {
        matches!(self, Self::ReadOnly | Self::Destructive | Self::OpenWorld)
    }

    /// The one tool it names, where it is a name without `*`.
    pub(crate) fn exact(&self) -> Option<&str> {
        match self {
            Self::Name(name) if !name.contains('*') => Some(name),
            _ => None,
        }
    }
}

/// Whether `name` fits `glob`, in which `*` stands for any characters, also none, and all else for itself.
/// Linear in what is usual, quadratic at worst.
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
            // The last star takes one more.
            _ => match star {
                Some((place, taken)) if taken < name.len() => {
                    star = Some((place, taken + 1));
                    at = (place + 1, taken + 1);
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
    pub(crate) tools: Vec<Selector>,
    pub(crate) paths: Option<Arc<PathRule>>,
    pub(crate) commands: Option<CommandRule>,
    pub(crate) sql_read_only: bool,
    pub(crate) arguments: Vec<ArgumentRule>,
    /// No argument but those named in `arguments` may be given.
    pub(crate) only: bool,
    /// What the operator wants a caller to read.
    pub(crate) reason: Option<String>,
}

/// Where paths may lead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathRule {
    pub(crate) read_within: Option<Vec<String>>,
    pub(crate) write_within: Option<Vec<String>>,
    pub(crate) not_within: Vec<String>,
}

/// Which commands may run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandRule {
    /// Program and first arguments, each.
    pub(crate) allowed: Vec<Vec<String>>,
    /// Environment variables that a caller may set.
    pub(crate) environment: Vec<String>,
}

/// What one argument must be.
#[derive(Clone, Debug)]
pub(crate) struct ArgumentRule {
    /// A name at the top, or a JSON Pointer (RFC 6901).
    pub(crate) place: String,
    /// It may be left out. Otherwise leaving it out fails, for the tool's default is not known here.
    pub(crate) optional: bool,
    pub(crate) tests: Vec<Test>,
}

#[derive(Clone, Debug)]
pub(crate) enum Test {
    OneOf(Vec<Value>),
    Glob(String),
    MaxLength(u64),
    Min(f64),
    Max(f64),
    /// It may not be given.
    Absent,
    /// It is a path, which leads there.
    Path(PathRule),
}

impl Rule {
    pub(crate) fn concerns(&self, tool: &ToolFacts<'_>) -> bool {
        self.tools.iter().any(|selector| selector.matches(tool))
    }

    /// Every folder or file that may not be reached.
    pub(crate) fn excluded(&self) -> impl Iterator<Item = &str> {
        let tested =
            self.arguments.iter().flat_map(|argument| &argument.tests).filter_map(|test| match test {
                Test::Path(rule) => Some(rule),
                _ => None,
            });
        let rules = self.paths.as_deref().into_iter().chain(tested);
        rules.flat_map(|rule| rule.not_within.iter().map(String::as_str))
    }

    /// What it requires, without its name and place.
    pub(crate) fn content(&self) -> String {
        let Self { paths, commands, sql_read_only, arguments, only, .. } = self;
        format!("{paths:?} {commands:?} {sql_read_only} {arguments:?} {only}")
    }

    /// Adds what must still hold while the call runs.
    pub(crate) fn extend(&self, scope: &mut Scope) {
        scope.paths.extend(self.paths.iter().map(Arc::clone));
        scope.sql_read_only |= self.sql_read_only;
    }

    /// Judges a call. The error says what is allowed.
    pub(crate) fn check(
        &self,
        tool: &ToolFacts<'_>,
        arguments: &Map<String, Value>,
        effects: &dyn Effects,
    ) -> Result<(), String> {
        self.conditions(tool, arguments, effects).map_err(|found| match &self.reason {
            Some(reason) => format!("{found}. {reason}"),
            None => found,
        })
    }

    fn conditions(
        &self,
        tool: &ToolFacts<'_>,
        arguments: &Map<String, Value>,
        effects: &dyn Effects,
    ) -> Result<(), String> {
        for effect in tool.effects {
            match effect {
                Effect::Reads(name) => self.check_paths(Access::Read, name, arguments, effects)?,
                Effect::Writes(name) => self.check_paths(Access::Write, name, arguments, effects)?,
                Effect::Replaces(name) => self.check_name(&[Access::Write], name, arguments, effects)?,
                Effect::Moves(name) => {
                    self.check_name(&[Access::Read, Access::Write], name, arguments, effects)?;
                }
                Effect::Runs { command, environment } => {
                    if let Some(rule) = &self.commands {
                        rule.check(command, environment, arguments, effects)?;
                    }
                }
                Effect::Sql(name) => {
                    if self.sql_read_only
                        && !matches!(
                            arguments.get(*name).and_then(Value::as_str),
                            Some("query" | "schema" | "explain")
                        )
                    {
                        return Err(format!(
                            "`{name}` must be \"query\", \"schema\" or \"explain\": databases are read only"
                        ));
                    }
                }
                // Judged for every caller, by what its roles may use.
                Effect::Role(_) => {}
            }
        }
        // A rule for what the tool does not declare cannot be judged, and so does not hold.
        if self.commands.is_some() && !tool.effects.iter().any(|effect| matches!(effect, Effect::Runs { .. }))
        {
            return Err(format!(
                "`{}` does not say what it runs, so no rule for commands can allow it",
                tool.name
            ));
        }
        // What a tool of another server reaches is not declared at all.
        if self.paths.is_some() && tool.is_external() {
            return Err(format!(
                "`{}` is another server's, and which of its arguments are paths is not known; \
                 name them under `arguments`, with `within`",
                tool.name
            ));
        }
        if self.sql_read_only && !tool.effects.iter().any(|effect| matches!(effect, Effect::Sql(_))) {
            return Err(format!("`{}` does not say what it does to a database", tool.name));
        }
        for argument in &self.arguments {
            argument.check(arguments, effects)?;
        }
        if self.only {
            let known = |name: &str| self.arguments.iter().any(|argument| argument.top() == name);
            if let Some(name) = arguments.keys().find(|name| !known(name)) {
                return Err(format!("`{name}` may not be given"));
            }
        }
        Ok(())
    }

    fn check_paths(
        &self,
        access: Access,
        name: &str,
        arguments: &Map<String, Value>,
        effects: &dyn Effects,
    ) -> Result<(), String> {
        let Some(rule) = &self.paths else { return Ok(()) };
        match arguments.get(name) {
            None | Some(Value::Null) => rule.check_argument(access, name, ".", effects),
            Some(Value::String(path)) => rule.check_argument(access, name, path, effects),
            Some(Value::Array(paths)) => paths.iter().try_for_each(|path| match path {
                Value::String(path) => rule.check_argument(access, name, path, effects),
                _ => Err(format!("`{name}` holds something that is no path")),
            }),
            Some(_) => Err(format!("`{name}` is no path")),
        }
    }

    /// Judges a path by where its own name stands, and with all that lies beneath it.
    fn check_name(
        &self,
        accesses: &[Access],
        name: &str,
        arguments: &Map<String, Value>,
        effects: &dyn Effects,
    ) -> Result<(), String> {
        let Some(rule) =
            self.paths.as_ref().filter(|rule| accesses.iter().any(|access| rule.limits(*access)))
        else {
            return Ok(());
        };
        let Some(Value::String(path)) = arguments.get(name) else {
            return Err(format!("`{name}` is no path"));
        };
        let judged = effects.resolve_name(path).map_err(|_| UNREACHABLE.to_owned()).and_then(|resolved| {
            rule.check_holds(&resolved)?;
            accesses.iter().try_for_each(|access| rule.check(*access, &resolved))
        });
        judged.map_err(|error| format!("`{name}`: {error}"))
    }
}

/// Of a path that cannot be followed. Why it cannot would tell what lies out of reach.
const UNREACHABLE: &str = "it cannot be followed, or leads out of reach";

impl PathRule {
    /// What is beneath a path is reached with it.
    pub(crate) fn check_holds(&self, resolved: &str) -> Result<(), String> {
        match self.not_within.iter().find(|folder| lies_in(folder, resolved)) {
            Some(held) => Err(format!("`{resolved}` holds `{held}`, which this role may not reach")),
            None => Ok(()),
        }
    }

    /// Whether it limits anything.
    fn limits(&self, access: Access) -> bool {
        self.within(access).is_some() || !self.not_within.is_empty()
    }

    fn check_argument(
        &self,
        access: Access,
        name: &str,
        path: &str,
        effects: &dyn Effects,
    ) -> Result<(), String> {
        // Nothing to resolve where nothing is limited: a missing file is then the tool's to report.
        if !self.limits(access) {
            return Ok(());
        }
        let resolved = effects.resolve_path(path).map_err(|_| format!("`{name}`: {UNREACHABLE}"))?;
        self.check(access, &resolved).map_err(|error| format!("`{name}`: {error}"))
    }

    /// Judges a path that has been resolved.
    pub(crate) fn check(&self, access: Access, resolved: &str) -> Result<(), String> {
        if let Some(folder) = self.not_within.iter().find(|folder| lies_in(resolved, folder)) {
            return Err(format!("`{resolved}` lies in `{folder}`, which this role may not reach"));
        }
        match self.within(access) {
            Some(folders) if !folders.iter().any(|folder| lies_in(resolved, folder)) => {
                let verb = if access == Access::Read { "read" } else { "write" };
                Err(match folders {
                    [] => format!("this role may {verb} no file"),
                    _ => format!(
                        "this role may {verb} only in {}, and `{resolved}` is elsewhere",
                        quoted(folders)
                    ),
                })
            }
            _ => Ok(()),
        }
    }

    fn within(&self, access: Access) -> Option<&[String]> {
        match access {
            Access::Read => self.read_within.as_deref(),
            Access::Write => self.write_within.as_deref(),
        }
    }

    pub(crate) fn folders(&self, access: Access) -> Option<impl Iterator<Item = &str>> {
        self.within(access).map(|folders| folders.iter().map(String::as_str))
    }
}

/// Whether `path` is `folder` or lies in it. Both are as [`Effects::resolve_path`] gives them: `.` is the
/// primary root, `name:.` another one.
pub(crate) fn lies_in(path: &str, folder: &str) -> bool {
    // A colon further on is part of a name.
    let root = |path: &str| {
        let first = path.split('/').next().unwrap_or(path);
        first.split_once(':').map_or(0, |(root, _)| root.len() + 1)
    };
    let (path_root, folder_root) = (root(path), root(folder));
    if path.get(..path_root) != folder.get(..folder_root) {
        return false;
    }
    match folder.get(folder_root..) {
        Some("." | "") => true,
        _ => path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
    }
}

impl CommandRule {
    fn check(
        &self,
        command: &str,
        environment: &str,
        arguments: &Map<String, Value>,
        effects: &dyn Effects,
    ) -> Result<(), String> {
        // A variable such as PATH or LD_PRELOAD turns an allowed program into another.
        match arguments.get(environment) {
            None | Some(Value::Null) => {}
            Some(Value::Object(variables)) => {
                if let Some(name) = variables.keys().find(|name| !self.environment.contains(name)) {
                    return Err(match self.environment.as_slice() {
                        [] => format!(
                            "`{environment}`: this role may set no environment variable, and `{name}` is one"
                        ),
                        allowed => format!(
                            "`{environment}`: this role may set only {}, and not `{name}`",
                            quoted(allowed)
                        ),
                    });
                }
            }
            Some(_) => return Err(format!("`{environment}` is no object of variables")),
        }
        let words: Vec<Cow<'_, str>> = match arguments.get(command) {
            Some(Value::String(line)) => {
                let words = effects.split_command(line).map_err(|error| format!("`{command}`: {error}"))?;
                words.into_iter().map(Cow::Owned).collect()
            }
            Some(Value::Array(words)) => words
                .iter()
                .map(|word| word.as_str().map(Cow::Borrowed))
                .collect::<Option<_>>()
                .ok_or_else(|| format!("`{command}` holds something that is no text"))?,
            // Another tool that runs what this rule cannot see.
            _ => {
                return Err(format!(
                    "`{command}` must be given, for this role may run only {}",
                    self.names()
                ));
            }
        };
        let Some((program, rest)) = words.split_first() else {
            return Err(format!("`{command}` is empty"));
        };
        let mut typed = None;
        for allowed in &self.allowed {
            let Some((name, prefix)) = allowed.split_first() else { continue };
            if rest.len() < prefix.len() || rest.iter().zip(prefix).any(|(word, expected)| word != expected) {
                continue;
            }
            // The word that was typed may be a path to something else of that name.
            let typed = match &typed {
                Some(typed) => typed,
                None => typed.insert(
                    effects.resolve_program(program).map_err(|error| format!("`{command}`: {error}"))?,
                ),
            };
            if effects.resolve_program(name).is_ok_and(|resolved| resolved == *typed) {
                return Ok(());
            }
        }
        Err(format!(
            "`{command}`: this role may run only {}, and nothing that begins otherwise",
            self.names()
        ))
    }

    fn names(&self) -> String {
        match self.allowed.as_slice() {
            [] => "no program".to_owned(),
            allowed => quoted(allowed.iter().map(|words| words.join(" ")).collect::<Vec<_>>().as_slice()),
        }
    }
}

impl ArgumentRule {
    fn top(&self) -> String {
        match self.place.strip_prefix('/') {
            Some(pointer) => {
                pointer.split('/').next().unwrap_or(pointer).replace("~1", "/").replace("~0", "~")
            }
            None => self.place.clone(),
        }
    }

    fn check(&self, arguments: &Map<String, Value>, effects: &dyn Effects) -> Result<(), String> {
        let place = &self.place;
        let found = match place.strip_prefix('/') {
            None => arguments.get(place),
            Some(pointer) => {
                let mut keys = pointer.splitn(2, '/');
                let first = arguments.get(&self.top());
                keys.next();
                match keys.next() {
                    None => first,
                    Some(rest) => first.and_then(|value| value.pointer(&format!("/{rest}"))),
                }
            }
        };
        let Some(value) = found else {
            let absent = self.tests.iter().any(|test| matches!(test, Test::Absent));
            return if self.optional || absent {
                Ok(())
            } else {
                Err(format!("`{place}` must be given: {}", self.expected()))
            };
        };
        for test in &self.tests {
            test.check(place, value, effects).map_err(|found| {
                found.unwrap_or_else(|| format!("`{place}` is {}: {}", brief(value), self.expected()))
            })?;
        }
        Ok(())
    }

    fn expected(&self) -> String {
        let tests: Vec<String> = self.tests.iter().map(Test::expected).collect();
        match tests.as_slice() {
            [] => "any value will do".to_owned(),
            tests => format!("this role may give {}", tests.join(" and ")),
        }
    }
}

impl Test {
    /// The error is what was found, where that says more than what is expected.
    fn check(&self, place: &str, value: &Value, effects: &dyn Effects) -> Result<(), Option<String>> {
        let holds = match self {
            Self::OneOf(values) => values.contains(value),
            Self::Glob(glob) => value.as_str().is_some_and(|text| glob_matches(glob, text)),
            Self::MaxLength(most) => length(value).is_some_and(|length| length <= *most),
            Self::Min(least) => value.as_f64().is_some_and(|value| value >= *least),
            Self::Max(most) => value.as_f64().is_some_and(|value| value <= *most),
            Self::Absent => false,
            Self::Path(rule) => {
                // What a tool of another server does with a path is not known: both must hold.
                let paths = match value {
                    Value::Array(paths) => paths.as_slice(),
                    path => std::slice::from_ref(path),
                };
                return paths.iter().try_for_each(|path| match path {
                    Value::String(path) => rule
                        .check_argument(Access::Read, place, path, effects)
                        .and_then(|()| rule.check_argument(Access::Write, place, path, effects))
                        .map_err(Some),
                    _ => Err(Some(format!("`{place}` is no path"))),
                });
            }
        };
        if holds { Ok(()) } else { Err(None) }
    }

    fn expected(&self) -> String {
        match self {
            Self::OneOf(values) => {
                let values: Vec<String> = values.iter().map(Value::to_string).collect();
                format!("one of {}", values.join(", "))
            }
            Self::Glob(glob) => format!("text like `{glob}`"),
            Self::MaxLength(most) => format!("at most {most} characters or elements"),
            Self::Min(least) => format!("at least {least}"),
            Self::Max(most) => format!("at most {most}"),
            Self::Absent => "nothing".to_owned(),
            Self::Path(_) => "a path it may reach".to_owned(),
        }
    }
}

/// Characters of a text, elements of an array.
fn length(value: &Value) -> Option<u64> {
    let length = match value {
        Value::String(text) => text.chars().count(),
        Value::Array(elements) => elements.len(),
        _ => return None,
    };
    u64::try_from(length).ok()
}

/// A value for a message. What is long or nested is only named, for it may be anything.
fn brief(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() > 40 => "too long or of another form".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        value => value.to_string(),
    }
}

pub(crate) fn quoted<T: AsRef<str>>(names: &[T]) -> String {
    names.iter().map(|name| format!("`{}`", name.as_ref())).collect::<Vec<_>>().join(", ")
}
