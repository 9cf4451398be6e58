//! Comparisons of roles and of policies: the matrix and the difference.

use role_policy::{Caller, Policy, ToolAccess, ToolFacts};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write as _;

/// The format of a matrix.
#[derive(Clone, Copy, Debug)]
pub(super) enum MatrixFormat {
    Text,
    Markdown,
    Json,
}

/// Returns the word of the JSON matrix for an access.
fn word(access: ToolAccess) -> &'static str {
    match access {
        ToolAccess::Hidden => "hidden",
        ToolAccess::Ask => "ask",
        ToolAccess::Allowed => "allowed",
        // The arguments decide.
        _ => "limited",
    }
}

/// Returns every tool that the policies could be asked about: ours, and those that they name themselves.
fn all_tools<'a>(policies: &[&'a Policy], tools: &[ToolFacts<'static>]) -> Vec<ToolFacts<'a>> {
    let mut all: Vec<ToolFacts<'a>> = tools.to_vec();
    for name in policies.iter().flat_map(|policy| policy.known_tools()) {
        if !all.iter().any(|tool| tool.name == name) {
            all.push(ToolFacts::external(name));
        }
    }
    all
}

/// The tools that a prompt, a resource or suggestions use, by the name that a policy knows.
pub(super) type UsedTools = HashMap<&'static str, &'static [&'static str]>;

/// Writes the table of roles and tools, and of prompts, resources and suggestions.
pub(super) fn matrix(
    policy: &Policy,
    tools: &[ToolFacts<'static>],
    used: &UsedTools,
    format: MatrixFormat,
) -> String {
    let roles: Vec<&str> = policy.roles().collect();
    let tools = all_tools(&[policy], tools);
    let access = |role: &str, tool: &ToolFacts<'_>| {
        let mut used = used.get(tool.name).into_iter().flat_map(|names| names.iter());
        // What uses a tool is offered only with it.
        let is_hidden = used.any(|name| {
            tools
                .iter()
                .find(|tool| tool.name == *name)
                .is_none_or(|tool| policy.access(role, tool) == ToolAccess::Hidden)
        });
        if is_hidden { ToolAccess::Hidden } else { policy.access(role, tool) }
    };
    let mark = |role: &&str, tool: &ToolFacts<'_>| match access(role, tool) {
        ToolAccess::Hidden => "-",
        ToolAccess::Allowed => "yes",
        other => word(other),
    };
    match format {
        MatrixFormat::Json => {
            let rows = roles.iter().map(|role| {
                let cells =
                    tools.iter().map(|tool| (tool.name.to_owned(), Value::from(word(access(role, tool)))));
                ((*role).to_owned(), Value::Object(cells.collect()))
            });
            return format!("{:#}", Value::Object(rows.collect()));
        }
        MatrixFormat::Markdown => {
            let mut text = format!("| tool | {} |\n|---|{}", roles.join(" | "), "---|".repeat(roles.len()));
            for tool in &tools {
                let cells: Vec<&str> = roles.iter().map(|role| mark(role, tool)).collect();
                let _ = write!(text, "\n| {} | {} |", tool.name, cells.join(" | "));
            }
            return text;
        }
        MatrixFormat::Text => {}
    }
    let width = tools.iter().map(|tool| tool.name.len()).max().unwrap_or_default();
    let row = |head: &str, cells: Vec<&str>| {
        let padded = cells.iter().zip(&roles).map(|(cell, role)| {
            // The longest cell.
            let column = role.len().max("limited".len());
            format!("  {cell:<column$}")
        });
        format!("{head:width$}{}", padded.collect::<String>()).trim_end().to_owned()
    };
    let rows = tools.iter().map(|tool| row(tool.name, roles.iter().map(|role| mark(role, tool)).collect()));
    std::iter::once(row("", roles.clone())).chain(rows).collect::<Vec<_>>().join("\n")
}

/// Writes what changes for each role.
pub(super) fn diff(old: &Policy, new: &Policy, tools: &[ToolFacts<'static>]) -> String {
    let mut roles: Vec<&str> = old.roles().collect();
    roles.extend(new.roles().filter(|role| !old.declares(role)));
    let mut lines = Vec::new();
    if old.missing_role() != new.missing_role() {
        lines.push(format!(
            "callers without a role: is {} and was {}",
            new.missing_role(),
            old.missing_role()
        ));
    }
    for &role in &roles {
        match (old.declares(role), new.declares(role)) {
            (true, false) => lines.push(format!("{role}: is no longer declared, and so is the minimal role")),
            (false, true) => lines.push(format!("{role}: is declared now")),
            _ => {}
        }
        let caller = Caller::new(role);
        for tool in all_tools(&[old, new], tools) {
            let name = tool.name;
            match (old.sees(&caller, &tool), new.sees(&caller, &tool)) {
                (true, false) => lines.push(format!("{role}: - {name}")),
                (false, true) => lines.push(format!("{role}: + {name}")),
                (true, true) if old.requirements(role, &tool) != new.requirements(role, &tool) => {
                    lines.push(format!("{role}: ~ {name}: other requirements"));
                }
                _ => {}
            }
        }
        if old.limits(&caller) != new.limits(&caller) {
            lines.push(format!("{role}: ~ limits"));
        }
        if old.documents(role) != new.documents(role) {
            lines.push(format!("{role}: ~ documents"));
        }
        for other in &roles {
            match (old.may_use(role, other), new.may_use(role, other)) {
                (true, false) => lines.push(format!("{role}: - may use {other}")),
                (false, true) => lines.push(format!("{role}: + may use {other}")),
                _ => {}
            }
        }
    }
    if lines.is_empty() { "nothing changes for any role".to_owned() } else { lines.join("\n") }
}
