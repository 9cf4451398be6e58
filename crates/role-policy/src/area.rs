//! Areas of another server that are no tools: its prompts, resources, instructions.

use crate::caller::Caller;
use crate::policy::{Policy, Role};
use crate::rule::{ToolSelector, glob_matches};
use crate::tool::ToolFacts;

impl Policy {
    /// Returns true if `caller` may use an area of another server that is no tool, named like `mcp/prompts`.
    ///
    /// The policy knows nothing of what such an area holds: a prompt may name, and a resource may show, what was
    /// taken away from the caller. So each role of the caller must either allow the area by a name that begins with
    /// `mcp/`, or take nothing away at all.
    pub fn grants_area(&self, caller: &Caller, area: &str) -> bool {
        self.sees(caller, &ToolFacts::external(area))
            && caller.roles().all(|role| {
                let role = self.role(role);
                names_area(role, area) || allows_everything(role)
            })
            && self.narrowing.as_ref().is_none_or(|narrowing| narrowing.grants_area(caller, area))
    }
}

/// Returns true if `role` allows `area` by a selector that can mean no tool: `mcp/prompts`, `mcp/*`.
fn names_area(role: &Role, area: &str) -> bool {
    // Nobody is asked about an area, because there is no call to approve.
    if role.ask.iter().any(|entry| entry.selector.matches(&ToolFacts::external(area))) {
        return false;
    }
    // `*` alone does not count here: it was written for tools, and whether it takes in an area depends on the rest
    // of the role (`allows_everything`).
    role.allow.iter().any(|entry| match &entry.selector {
        ToolSelector::Name(glob) => glob.starts_with("mcp/") && glob_matches(glob, area),
        _ => false,
    })
}

/// Returns true if `role` may call every tool that a server may have, with any arguments.
fn allows_everything(role: &Role) -> bool {
    // The facts of an external tool are the most cautious there are (destructive, open world), so a kind that
    // chooses it chooses every tool of another server.
    let matches_all = |selector: &ToolSelector| match selector {
        ToolSelector::Name(glob) => glob.bytes().all(|byte| byte == b'*'),
        kind => kind.matches(&ToolFacts::external("")),
    };
    let matches_no_tool = |selector: &ToolSelector| match selector {
        // No tool has a slash in its name.
        ToolSelector::Name(glob) => glob.contains('/'),
        kind => !kind.matches(&ToolFacts::external("")),
    };
    role.allow.iter().any(|entry| matches_all(&entry.selector))
        && role.deny.iter().chain(&role.ask).all(|entry| matches_no_tool(&entry.selector))
        && role.rules.iter().all(|rule| rule.tools.iter().all(matches_no_tool))
}
