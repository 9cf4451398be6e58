//! The checks of a policy file: unknown names, entries without effect, roles that lend too much, examples that do not
//! hold.

use super::PolicyLoader;
use super::programs::{changes_program, runs_anything};
use crate::caller::Caller;
use crate::decision::Refusal;
use crate::effect_resolver::LexicalResolver;
use crate::policy::{Policy, ToolAccess};
use crate::policy_file::{DraftRole, DraftRule, ExpectedDecision, LocatedText, PolicyExample};
use crate::problem::ProblemSeverity;
use crate::quoted::quoted;
use crate::rule::ToolSelector;
use crate::tool::{Call, ToolFacts};
use egress_proxy::{NetworkAccess, NetworkHost};
use std::collections::{HashMap, HashSet};

impl<'a> PolicyLoader<'a> {
    /// Refuses credentials that no program of the role could use: for hosts that its `network` does not name, and two for
    /// one host.
    pub(super) fn check_credentials(&mut self, draft: &DraftRole, lineage: &[&'a DraftRole]) {
        let networks = lineage.iter().filter_map(|part| part.network.as_ref());
        let network = networks.fold(NetworkAccess::Allow, |network, (_, other)| network.narrowed_by(other));
        let mut known: Vec<(&NetworkHost, u16)> = Vec::new();
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

    pub(super) fn check_roles(&mut self, names: &[LocatedText], key: &str) {
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

    pub(super) fn check_tools(&mut self, role: &'a DraftRole, facts: &[ToolFacts<'_>]) {
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
                let severity = if key == "allow" { ProblemSeverity::Warning } else { ProblemSeverity::Error };
                self.report(severity, text.line, message);
            }
        }
    }

    /// Finds entries that change nothing, and programs that run anything.
    pub(super) fn check_ineffective_entries(&mut self, policy: &Policy, facts: &[ToolFacts<'_>]) {
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
    pub(super) fn check_lent_roles(&mut self, policy: &Policy, lines: &HashMap<&str, usize>) {
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

    pub(super) fn check_examples(
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
