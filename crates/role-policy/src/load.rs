//! From a policy file to a [`Policy`], with everything in it that cannot be meant.

mod checks;
mod programs;

use crate::builtin::BUILTIN;
#[cfg(doc)]
use crate::effect_resolver::LexicalResolver;
use crate::otherwise::Otherwise;
use crate::path_rule::PathRule;
use crate::policy::{AgentCommandRole, CompiledPolicy, DispatchRule, Policy, Role, ToolEntry};
use crate::policy_file::{DraftRole, LocatedText, PolicyDraft, read};
use crate::problem::{LoadError, PolicyProblem, ProblemSeverity};
use crate::rule::{Rule, ToolSelector};
use crate::tool::{OwnedToolFacts, ToolFacts};
use std::collections::HashMap;
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
        if problems.iter().any(|problem| problem.severity == ProblemSeverity::Error) {
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
    fn report(&mut self, severity: ProblemSeverity, line: usize, message: String) {
        self.problems.push(PolicyProblem { severity, file: self.file.to_owned(), line, message });
    }

    fn error(&mut self, line: usize, message: String) {
        self.report(ProblemSeverity::Error, line, message);
    }

    fn warn(&mut self, line: usize, message: String) {
        self.report(ProblemSeverity::Warning, line, message);
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
        let policy =
            Policy { compiled: Arc::new(compiled), narrowing: None, asked_by: None, fixed_role: None };
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
}
