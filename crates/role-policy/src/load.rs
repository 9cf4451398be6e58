//! From a policy file to a [`Policy`], with everything in it that cannot be meant.

use crate::builtin::BUILTIN;
use crate::caller::Caller;
use crate::decision::Refusal;
use crate::effect_resolver::LexicalResolver;
use crate::otherwise::Otherwise;
use crate::path_rule::PathRule;
use crate::policy::{AgentCommandRole, CompiledPolicy, DispatchRule, Policy, Role, ToolAccess, ToolEntry};
use crate::policy_file::{
    DraftRole, DraftRule, ExpectedDecision, LocatedText, PolicyDraft, PolicyExample, read,
};
use crate::problem::{LoadError, PolicyProblem, Severity};
use crate::quoted::quoted;
use crate::rule::{Rule, ToolSelector};
use crate::tool::{Call, OwnedToolFacts, ToolFacts};
use egress_proxy::{Host, NetworkAccess};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A policy, with the warnings about its file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadedPolicy {
    /// The policy.
    pub policy: Policy,
    /// The warnings, in the order of the file.
    pub warnings: Vec<PolicyProblem>,
    /// The number of examples in the file, all of which hold.
    pub examples: usize,
}

/// The role for anything unknown.
const MINIMAL: &str = "minimal";

impl Policy {
    /// Compiles the text of a policy file, called `file` in messages, for the `tools` of a server.
    ///
    /// Names in the file that are neither among `tools` nor among its own `external_tools` are errors in
    /// `deny`, where a misspelling is a hole, and warnings elsewhere. Without any `tools`, as before a server
    /// whose tools are not known yet, names are not checked, and examples only where they call an external tool.
    ///
    /// The examples of the file are judged by text alone ([`LexicalResolver`]), for it is loaded where no files are.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the file: what cannot be read, unknown keys, roles and tools, roles that
    /// extend each other in a circle, examples that do not hold.
    pub fn load(text: &str, file: &str, tools: &[ToolFacts<'_>]) -> Result<LoadedPolicy, LoadError> {
        Self::load_for(text, file, tools, tools.is_empty(), MeaningChecks::Made)
    }

    /// Compiles the built-in policy ([`BUILTIN`]) for a server that has the tools it names, or some of them: what is
    /// said of other tools is left out, as nobody wrote it for this server.
    ///
    /// # Errors
    ///
    /// Tools of the server have its names and are others, so that its examples do not hold.
    pub fn builtin(tools: &[ToolFacts<'_>]) -> Result<LoadedPolicy, LoadError> {
        Self::load_builtin(tools, MeaningChecks::Made)
    }

    /// Compiles the built-in policy as [`builtin`](Self::builtin) does, without its examples and without looking for roles
    /// that lend more than they have: for tools with which a test loads it. The checks take most of the time of a load.
    ///
    /// # Errors
    ///
    /// The text of the policy cannot be read.
    pub fn builtin_unchecked(tools: &[ToolFacts<'_>]) -> Result<LoadedPolicy, LoadError> {
        Self::load_builtin(tools, MeaningChecks::Skipped)
    }

    fn load_builtin(tools: &[ToolFacts<'_>], checks: MeaningChecks) -> Result<LoadedPolicy, LoadError> {
        let mut loaded = Self::load_for(BUILTIN, "built-in", tools, true, checks)?;
        // An operator could do nothing about a warning in a file that is part of the program.
        loaded.warnings.clear();
        Ok(loaded)
    }

    /// `partial`: the file may name tools that are not among these.
    fn load_for(
        text: &str,
        file: &str,
        tools: &[ToolFacts<'_>],
        partial: bool,
        checks: MeaningChecks,
    ) -> Result<LoadedPolicy, LoadError> {
        let mut problems = Vec::new();
        let draft = read(text, file, &mut problems);
        // Compiled also after errors of `read`: the checks then find the other problems too, and an operator mends
        // all of them at once. A policy with errors is dropped below.
        let mut loader =
            PolicyLoader { file, tools, partial, checks, draft: &draft, problems: &mut problems };
        let policy = loader.compile();
        // Each check goes through the whole file, so the problems come in the order of the checks.
        problems.sort_by_key(|problem| problem.line);
        if problems.iter().any(|problem| problem.severity == Severity::Error) {
            return Err(LoadError { problems });
        }
        let examples = |role: &DraftRole| {
            role.examples.len() + role.rules.iter().map(|rule| rule.examples.len()).sum::<usize>()
        };
        let examples = draft.roles.iter().map(examples).sum();
        Ok(LoadedPolicy { policy, warnings: problems, examples })
    }
}

/// The checks of what a compiled policy comes to: its examples, roles that are lent, entries without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MeaningChecks {
    Made,
    Skipped,
}

struct PolicyLoader<'a> {
    file: &'a str,
    tools: &'a [ToolFacts<'a>],
    /// The file may name others.
    partial: bool,
    checks: MeaningChecks,
    draft: &'a PolicyDraft,
    problems: &'a mut Vec<PolicyProblem>,
}

impl<'a> PolicyLoader<'a> {
    fn report(&mut self, severity: Severity, line: usize, message: String) {
        self.problems.push(PolicyProblem { severity, file: self.file.to_owned(), line, message });
    }

    fn error(&mut self, line: usize, message: String) {
        self.report(Severity::Error, line, message);
    }

    fn warn(&mut self, line: usize, message: String) {
        self.report(Severity::Warning, line, message);
    }

    fn label(&self, role: &str, what: &str, line: usize) -> Arc<str> {
        format!("{role}: {what} ({}:{line})", self.file).into()
    }

    fn compile(&mut self) -> Policy {
        let draft = self.draft;
        let mut facts: Vec<ToolFacts<'a>> = self.tools.to_vec();
        for tool in &draft.external_tools {
            match ToolSelector::parse(&tool.text) {
                Ok(selector) if selector.exact().is_some() => {}
                _ => self.error(tool.line, format!("`{}` in `external_tools` is no tool's name", tool.text)),
            }
            // A tool that the server vouches for keeps its facts. To name it in `external_tools` too adds nothing.
            if !facts.iter().any(|known| known.name == tool.text) {
                facts.push(ToolFacts::external(&tool.text));
            }
        }
        let lines: HashMap<&str, usize> =
            draft.roles.iter().map(|role| (role.name.text.as_str(), role.name.line)).collect();
        for role in &draft.roles {
            self.check_roles(&role.extends, "extends");
            self.check_roles(&role.may_use, "may_use");
            self.check_tools(role, &facts);
        }
        for (command, role) in &draft.derived {
            self.check_roles(std::slice::from_ref(role), "derived");
            if command.text.starts_with('/') {
                self.error(
                    command.line,
                    "a command is written without its leading `/`, and stands for both".to_owned(),
                );
            }
        }
        self.check_roles(draft.missing_role.as_slice(), "missing_role");

        let known: Arc<[OwnedToolFacts]> = facts.iter().map(OwnedToolFacts::from).collect();
        let mut order = Vec::new();
        let mut roles = HashMap::new();
        for draft_role in &draft.roles {
            let name = &draft_role.name.text;
            let mut role = self.flatten(draft_role);
            role.known = Arc::clone(&known);
            order.push(name.clone());
            roles.insert(name.clone(), role);
        }
        // A file may declare its own `minimal`. Without one, a caller with an unknown role sees nothing.
        let minimal = roles.get(MINIMAL).cloned().unwrap_or_else(|| Role {
            name: MINIMAL.to_owned(),
            unlisted: Some(self.label(MINIMAL, "declared nowhere, allows nothing", 1)),
            ..Role::default()
        });
        let dispatch = draft.dispatch.iter().map(|dispatch| DispatchRule {
            tool: dispatch.tool.text.clone(),
            name: dispatch.name.clone(),
            arguments: dispatch.arguments.clone(),
            label: self.label("dispatch", &format!("`{}`", dispatch.tool.text), dispatch.tool.line),
        });
        let compiled = CompiledPolicy {
            dispatch: dispatch.collect(),
            order,
            roles,
            missing: draft.missing_role.as_ref().map_or(MINIMAL, |role| &role.text).to_owned(),
            minimal,
            derived: draft
                .derived
                .iter()
                .map(|(command, role)| AgentCommandRole {
                    glob: command.text.clone(),
                    role: role.text.clone(),
                })
                .collect(),
            known,
        };
        let policy = Policy { compiled: Arc::new(compiled), narrowing: None, asked_by: None };
        if self.checks == MeaningChecks::Skipped {
            return policy;
        }
        self.check_ineffective_entries(&policy, &facts);
        self.check_lent_roles(&policy, &lines);
        for role in &draft.roles {
            for rule in &role.rules {
                self.check_examples(&policy, &role.name.text, &rule.examples, Some(rule), &facts);
            }
            self.check_examples(&policy, &role.name.text, &role.examples, None, &facts);
        }
        policy
    }

    /// Returns a role with all that it extends, ancestors first.
    fn flatten(&mut self, draft: &'a DraftRole) -> Role {
        let mut lineage = Vec::new();
        self.ancestors(draft, &mut Vec::new(), &mut lineage);
        let role_name = &draft.name.text;
        let mut role = Role {
            name: role_name.clone(),
            description: draft.description.clone(),
            unlisted: Some(self.label(role_name, "nothing allows it", draft.name.line)),
            ..Role::default()
        };
        for part in &lineage {
            let name = &part.name.text;
            let listed = |what: &str, entries: &[(LocatedText, ToolSelector)]| -> Vec<ToolEntry> {
                entries
                    .iter()
                    .map(|(text, selector)| ToolEntry {
                        selector: selector.clone(),
                        label: self.label(name, &format!("{what} `{}`", text.text), text.line),
                        line: text.line,
                    })
                    .collect()
            };
            role.allow.extend(listed("allow", &part.allow));
            role.deny.extend(listed("deny", &part.deny));
            role.ask.extend(listed("ask", &part.ask));
            // `roots` is a rule for every tool, so it also refuses tools of other servers: which of their arguments
            // are paths is not known. It has no line of its own in the draft.
            if let Some(roots) = &part.roots {
                role.rules.push(Arc::new(Rule {
                    label: self.label(name, "roots", part.name.line),
                    line: part.name.line,
                    tools: vec![ToolSelector::Name("*".to_owned())],
                    paths: Some(Arc::new(PathRule {
                        read_within: Some(roots.clone()),
                        write_within: Some(roots.clone()),
                        ..PathRule::default()
                    })),
                    commands: None,
                    sql_read_only: false,
                    network: None,
                    arguments: Vec::new(),
                    only: false,
                    additional_arguments: false,
                    reason: None,
                    otherwise: Otherwise::Deny,
                }));
            }
            // A rule too, so that the narrower holds of two roles and of a role and what it extends.
            if let Some((line, network)) = &part.network {
                role.rules.push(Arc::new(Rule {
                    label: self.label(name, "network", *line),
                    line: *line,
                    tools: vec![ToolSelector::Name("*".to_owned())],
                    paths: None,
                    commands: None,
                    sql_read_only: false,
                    network: Some(network.clone()),
                    arguments: Vec::new(),
                    only: false,
                    additional_arguments: false,
                    reason: None,
                    otherwise: Otherwise::Deny,
                }));
            }
            for rule in &part.rules {
                role.rules.push(Arc::new(Rule {
                    label: self.label(name, &format!("require `{}`", rule.id), rule.line),
                    line: rule.line,
                    tools: rule.tools.iter().map(|(_, selector)| selector.clone()).collect(),
                    paths: rule.paths.clone().map(Arc::new),
                    commands: rule.commands.clone(),
                    sql_read_only: rule.sql_read_only,
                    network: rule.network.clone(),
                    arguments: rule.arguments.clone(),
                    only: rule.only,
                    additional_arguments: rule.additional_arguments,
                    reason: rule.reason.clone(),
                    otherwise: rule.otherwise,
                }));
            }
            role.may_use.extend(part.may_use.iter().map(|role| role.text.clone()));
            role.documents.extend(part.documents.iter().cloned());
            // The lower of two limits holds, so a role cannot loosen what it extends.
            role.limits = role.limits.narrowed_by(part.limits);
            role.system_calls.extend(&part.system_calls);
            let credentials = part.credentials.iter().map(|(_, rule)| Arc::new(rule.clone()));
            role.credentials.extend(credentials);
        }
        self.check_credentials(draft, &lineage);
        role
    }

    /// Refuses credentials that no program of the role could use: for hosts that its `network` does not name, and two for
    /// one host.
    fn check_credentials(&mut self, draft: &DraftRole, lineage: &[&'a DraftRole]) {
        let networks = lineage.iter().filter_map(|part| part.network.as_ref());
        let network = networks.fold(NetworkAccess::Allow, |network, (_, other)| network.narrowed_by(other));
        let mut known: Vec<(&Host, u16)> = Vec::new();
        let all = lineage.iter().flat_map(|part| part.credentials.iter().map(move |found| (part, found)));
        for (part, (line, rule)) in all {
            // That of another role is reported there too, unless this one takes its host away.
            let line = if part.name.text == draft.name.text { *line } else { draft.name.line };
            let place = (&rule.host, rule.port);
            let is_named = match &network {
                NetworkAccess::Hosts(hosts) => hosts.check(&rule.host, rule.port).is_ok(),
                _ => false,
            };
            if !is_named {
                self.error(
                    line,
                    format!(
                        "the role `{}` has a credential for `{}:{}`, and its `network` does not name that host; write \
                         network = {{ hosts = [\"{}:{}\"] }}",
                        draft.name.text, rule.host, rule.port, rule.host, rule.port
                    ),
                );
            }
            if known.contains(&place) {
                let message = format!(
                    "the role `{}` has two credentials for `{}:{}`; a host and port may have one",
                    draft.name.text, rule.host, rule.port
                );
                self.error(line, message);
            }
            known.push(place);
        }
    }

    /// Adds `draft` and everything it extends to `lineage`, each once, ancestors first. `path` has the roles between
    /// the first one and this one, to find a circle.
    fn ancestors(&mut self, draft: &'a DraftRole, path: &mut Vec<&'a str>, lineage: &mut Vec<&'a DraftRole>) {
        let name = draft.name.text.as_str();
        if path.contains(&name) {
            // Each role of the circle reports it once, when it is the first. A role that only extends into the
            // circle does not.
            if path.first() == Some(&name) {
                let circle = path.iter().chain([&name]).copied().collect::<Vec<_>>().join(" -> ");
                self.error(draft.name.line, format!("roles extend each other in a circle: {circle}"));
            }
            return;
        }
        // Two parents may extend the same role. Its entries and rules are taken once.
        if lineage.iter().any(|found| found.name.text == name) {
            return;
        }
        path.push(name);
        for parent in &draft.extends {
            if let Some(parent) = self.draft.roles.iter().find(|role| role.name.text == parent.text) {
                self.ancestors(parent, path, lineage);
            }
        }
        path.pop();
        lineage.push(draft);
    }

    fn check_roles(&mut self, names: &[LocatedText], key: &str) {
        for name in names {
            let known = || self.draft.roles.iter().map(|role| role.name.text.as_str());
            if (key == "may_use" && name.text == "*") || known().any(|role| role == name.text) {
                continue;
            }
            let hint = match did_you_mean::nearest(&name.text, known()) {
                Some(near) => format!("; did you mean `{near}`?"),
                None => String::new(),
            };
            self.error(
                name.line,
                format!("`{key}` names the role `{}`, which is not declared{hint}", name.text),
            );
        }
    }

    fn check_tools(&mut self, role: &'a DraftRole, facts: &[ToolFacts<'_>]) {
        if self.partial {
            return;
        }
        let lists = [("allow", &role.allow), ("deny", &role.deny), ("ask", &role.ask)].into_iter();
        for (key, list) in lists.chain(role.rules.iter().map(|rule| ("tools", &rule.tools))) {
            for (text, selector) in list {
                // `ToolSelector::parse` knows every kind, so it is not misspelt, and denying or asking about a kind also
                // covers tools that are added later.
                let of_a_kind = matches!(key, "deny" | "ask") && selector.is_kind();
                if of_a_kind || facts.iter().any(|tool| selector.matches(tool)) {
                    continue;
                }
                let name = text.text.as_str();
                let near = match selector {
                    ToolSelector::Toolset(_) => did_you_mean::nearest(
                        name.trim_start_matches("toolset:"),
                        facts.iter().map(|tool| tool.toolset),
                    )
                    .map(|near| format!("toolset:{near}")),
                    _ => did_you_mean::nearest(name, facts.iter().map(|tool| tool.name)).map(str::to_owned),
                };
                let hint = match (near, selector.exact()) {
                    (Some(near), _) => format!("; did you mean `{near}`?"),
                    (None, Some(_)) => {
                        "; a tool of another server must be named in `external_tools`".to_owned()
                    }
                    (None, None) => String::new(),
                };
                let message = format!("`{name}` in `{key}` of `{}` matches no tool{hint}", role.name.text);
                // A misspelt name in `deny`, `ask` or `tools` leaves the tool that was meant unrestricted. In `allow` it
                // only takes the tool away.
                let severity = if key == "allow" { Severity::Warning } else { Severity::Error };
                self.report(severity, text.line, message);
            }
        }
    }

    /// Finds entries that change nothing, and programs that run anything.
    fn check_ineffective_entries(&mut self, policy: &Policy, facts: &[ToolFacts<'_>]) {
        for draft in &self.draft.roles {
            let name = draft.name.text.as_str();
            let role = policy.role(name);
            let denied = |tool: &ToolFacts<'_>| role.deny.iter().any(|entry| entry.selector.matches(tool));
            let listed = [("allow", "allows", &draft.allow), ("ask", "asks about", &draft.ask)].into_iter();
            for (key, verb, (text, selector)) in
                listed.flat_map(|(key, verb, list)| list.iter().map(move |entry| (key, verb, entry)))
            {
                let mut matching = facts.iter().filter(|tool| selector.matches(tool)).peekable();
                // Without the server's tools nobody knows what an entry matches.
                if !self.tools.is_empty() && matching.peek().is_some() && matching.all(denied) {
                    self.warn(
                        text.line,
                        format!("`{}` in `{key}` of `{name}` {verb} nothing: all of it is denied", text.text),
                    );
                }
            }
            let caller = Caller::new(name);
            for rule in &draft.rules {
                let concerned =
                    |tool: &&ToolFacts<'_>| rule.tools.iter().any(|(_, selector)| selector.matches(tool));
                if !self.tools.is_empty()
                    && facts.iter().any(|tool| concerned(&tool))
                    && !facts.iter().filter(concerned).any(|tool| policy.sees(&caller, tool))
                {
                    self.warn(
                        rule.line,
                        format!(
                            "the rule `{}` of `{name}` is never asked: the role sees none of its tools",
                            rule.id
                        ),
                    );
                }
                if rule.commands.is_some() && !self.tools.is_empty() {
                    let unlimited: Vec<&str> = facts
                        .iter()
                        .filter(|tool| !concerned(tool) && policy.runs_any_program(name, tool))
                        .map(|tool| tool.name)
                        .collect();
                    if !unlimited.is_empty() {
                        self.warn(
                            rule.line,
                            format!(
                                "the rule `{}` of `{name}` limits commands, and `{}` of the same role {} any: name {} in its \
                                 `tools`, or deny {}",
                                rule.id,
                                unlimited.join("`, `"),
                                if unlimited.len() == 1 { "runs" } else { "run" },
                                if unlimited.len() == 1 { "it" } else { "them" },
                                if unlimited.len() == 1 { "it" } else { "them" },
                            ),
                        );
                    }
                }
                for words in rule.commands.iter().flat_map(|commands| &commands.allowed) {
                    if let Some(why) = runs_anything(words) {
                        self.warn(
                            rule.line,
                            format!(
                                "the rule `{}` of `{name}` allows `{}`, which allows any program: {why}",
                                rule.id,
                                words.join(" ")
                            ),
                        );
                    }
                }
                for variable in rule.commands.iter().flat_map(|commands| &commands.environment) {
                    if changes_program(variable) {
                        self.warn(
                            rule.line,
                            format!("the rule `{}` of `{name}` lets `{variable}` be set, by which any program can be run", rule.id),
                        );
                    }
                }
            }
        }
    }

    /// Refuses a role whose `may_use` names a role that sees more tools than it does.
    fn check_lent_roles(&mut self, policy: &Policy, lines: &HashMap<&str, usize>) {
        for draft in &self.draft.roles {
            let name = draft.name.text.as_str();
            let own_tools: HashSet<&str> = policy.allowed_tools(name).into_iter().collect();
            let may_use_all = draft.may_use.iter().any(|other| other.text == "*");
            let lent_roles: Vec<(&str, usize)> = if may_use_all {
                let line = draft.may_use.first().map_or(draft.name.line, |other| other.line);
                lines.keys().map(|other| (*other, line)).collect()
            } else {
                draft.may_use.iter().map(|other| (other.text.as_str(), other.line)).collect()
            };
            for (other, line) in lent_roles {
                let wider: Vec<&str> = policy
                    .allowed_tools(other)
                    .into_iter()
                    .filter(|tool| !own_tools.contains(tool))
                    // A few are enough to find the mistake, and the message stays short.
                    .take(3)
                    .collect();
                if !wider.is_empty() {
                    self.error(
                        line,
                        format!(
                            "`{name}` may use `{other}`, which sees what `{name}` does not: {}",
                            quoted(&wider)
                        ),
                    );
                }
                // Without an entry that asks it asks about no tool.
                if policy.role(name).ask.is_empty() {
                    continue;
                }
                let asks = |role: &str, tool: &str| {
                    let facts = policy.tool(tool).map(|tool| tool.facts());
                    facts.is_ok_and(|facts| policy.access(role, &facts) == ToolAccess::Ask)
                };
                let unasked: Vec<&str> = policy
                    .allowed_tools(other)
                    .into_iter()
                    .filter(|tool| asks(name, tool) && !asks(other, tool))
                    .take(3)
                    .collect();
                if !unasked.is_empty() {
                    self.error(
                        line,
                        format!(
                            "`{name}` may use `{other}`, which calls without asking what `{name}` asks about: {}",
                            quoted(&unasked)
                        ),
                    );
                }
            }
        }
    }

    fn check_examples(
        &mut self,
        policy: &Policy,
        role: &str,
        examples: &[PolicyExample],
        rule: Option<&DraftRule>,
        facts: &[ToolFacts<'_>],
    ) {
        for example in examples {
            // An example of a rule for one tool need not name it again.
            let only_tool = match rule.map(|rule| rule.tools.as_slice()) {
                Some([(_, selector)]) => selector.exact(),
                _ => None,
            };
            let Some(name) = example.tool.as_deref().or(only_tool) else {
                self.error(example.line, "the example needs a `tool`".to_owned());
                continue;
            };
            let tool = match facts.iter().find(|tool| tool.name == name) {
                Some(tool) => tool,
                // Its annotations and its toolset are not known, so selectors cannot be judged.
                None if self.partial => continue,
                None => {
                    let hint = match did_you_mean::nearest(name, facts.iter().map(|tool| tool.name)) {
                        Some(near) => format!("; did you mean `{near}`?"),
                        None => String::new(),
                    };
                    self.error(
                        example.line,
                        format!("the example calls `{name}`, and there is no such tool{hint}"),
                    );
                    continue;
                }
            };
            // A server's own tool of that name may be another: the example cannot speak of its arguments.
            if tool.is_external() && !self.draft.external_tools.iter().any(|named| named.text == name) {
                continue;
            }
            let call = Call::new(name, example.arguments.clone());
            let judged = policy.authorize(&Caller::new(role), tool, call, &LexicalResolver);
            let (found, outcome) = match &judged {
                Ok(call) => (ExpectedDecision::Allow, format!("is allowed by {}", call.decision().rule)),
                Err(Refusal::Approval(request)) => {
                    (ExpectedDecision::Ask, format!("is asked about by {}", request.rule()))
                }
                Err(Refusal::Hidden { rule }) => (ExpectedDecision::Deny, format!("is denied by {rule}")),
                Err(Refusal::Arguments { rule, reason }) => {
                    (ExpectedDecision::Deny, format!("is refused by {rule}: {reason}"))
                }
            };
            if found == example.expected {
                continue;
            }
            let message = format!("the example must be {} and {outcome}", example.expected);
            self.error(example.line, message);
        }
    }
}

/// Returns the reason why a program can run any other program, if it can.
// It only warns: a list like this always has gaps, and an operator may want just this. What a rule allows is decided
// by what it names.
fn runs_anything(words: &[String]) -> Option<&'static str> {
    let program = words.first()?;
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    // python3.12 is python.
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let alone = words.len() == 1;
    match name {
        "sh" | "bash" | "zsh" | "dash" | "fish" | "ksh" | "csh" | "tcsh" | "busybox" | "cmd"
        | "powershell" | "pwsh" => Some("it is a shell"),
        "python" | "pypy" | "perl" | "ruby" | "node" | "nodejs" | "deno" | "bun" | "php" | "lua" | "java"
        | "Rscript" | "osascript" | "tclsh" | "awk" | "gawk" | "mawk" | "sed" | "ed" | "vi" | "vim"
        | "nvim" | "emacs" | "gdb" | "lldb" => Some("it interprets programs"),
        "env" | "xargs" | "sudo" | "doas" | "su" | "nice" | "ionice" | "nohup" | "setsid" | "timeout"
        | "time" | "stdbuf" | "strace" | "ltrace" | "watch" | "parallel" | "find" | "chroot" | "unshare"
        | "nsenter" | "ssh" | "docker" | "podman" | "systemd-run" | "at" | "script" | "expect" | "flock"
        | "ld.so" | "ld-linux-x86-64.so" => Some("it starts other programs"),
        "npx" | "uvx" | "pipx" | "bunx" | "dlx" => Some("it fetches and runs packages"),
        "make" | "gmake" | "ninja" | "just" | "cmake" | "mvn" | "gradle" | "gradlew" | "ant" | "bazel"
        | "tox" | "nox" | "pytest" | "vitest" | "jest" | "mocha" | "bats" | "rake" | "mix" => {
            Some("it runs what files of the project say, which whoever may write them decides")
        }
        "cargo" | "go" | "npm" | "pnpm" | "yarn" | "uv" | "poetry" | "pip" | "dotnet" => {
            Some("it builds, and so runs what files of the project say, which whoever may write them decides")
        }
        "git" if alone => Some("its aliases, hooks and options start programs; name the subcommands"),
        // What looks at the work tree or shows differences. The git tools override these settings.
        "git"
            if words.get(1).is_some_and(|word| {
                matches!(
                    word.as_str(),
                    "status"
                        | "diff"
                        | "add"
                        | "commit"
                        | "checkout"
                        | "switch"
                        | "restore"
                        | "reset"
                        | "stash"
                        | "merge"
                        | "rebase"
                        | "log"
                        | "show"
                        | "blame"
                        | "grep"
                )
            }) =>
        {
            Some(
                "a repository's own settings, such as `core.fsmonitor` and `diff.external`, start programs; the git tools \
                 do without them",
            )
        }
        _ => None,
    }
}

/// Returns true if an environment variable can make an allowed program run another one.
fn changes_program(variable: &str) -> bool {
    const WHOLE: [&str; 16] = [
        "PATH",
        "BASH_ENV",
        "ENV",
        "IFS",
        "SHELL",
        "EDITOR",
        "VISUAL",
        "PAGER",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "PERL5OPT",
        "PERL5LIB",
        "RUBYOPT",
        "NODE_OPTIONS",
        "JAVA_TOOL_OPTIONS",
    ];
    // Whole families, such as `LD_PRELOAD`, `GIT_SSH_COMMAND`, `CARGO_BUILD_RUSTC_WRAPPER`: each names a program to
    // start or a library to load.
    const BEGIN: [&str; 7] = ["LD_", "DYLD_", "GIT_", "CARGO_", "RUSTC", "RUSTDOC", "npm_config_"];
    WHOLE.contains(&variable)
        || BEGIN.iter().any(|begin| variable.starts_with(begin))
        || variable.contains('*')
}
