//! What a policy file says, as it stands: nothing is compiled and nothing is judged.

use crate::limits::RoleLimits;
use crate::otherwise::Otherwise;
use crate::path_rule::PathRule;
use crate::rule::{ArgumentRule, CommandRule, ToolSelector};
use crate::system_calls::SystemCallGroup;
use egress_proxy::{CredentialRule, NetworkAccess};
use serde_json::{Map, Value};

/// A policy file, as it stands.
#[derive(Debug, Default)]
pub(crate) struct PolicyDraft {
    pub(crate) external_tools: Vec<LocatedText>,
    pub(crate) missing_role: Option<LocatedText>,
    pub(crate) derived: Vec<(LocatedText, LocatedText)>,
    pub(crate) dispatch: Vec<DraftDispatch>,
    pub(crate) roles: Vec<DraftRole>,
}

/// A text, and its line.
#[derive(Clone, Debug, Default)]
pub(crate) struct LocatedText {
    pub(crate) text: String,
    pub(crate) line: usize,
}

#[derive(Debug)]
pub(crate) struct DraftDispatch {
    pub(crate) tool: LocatedText,
    pub(crate) name: String,
    pub(crate) arguments: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct DraftRole {
    pub(crate) name: LocatedText,
    pub(crate) description: String,
    pub(crate) extends: Vec<LocatedText>,
    pub(crate) allow: Vec<(LocatedText, ToolSelector)>,
    pub(crate) deny: Vec<(LocatedText, ToolSelector)>,
    pub(crate) ask: Vec<(LocatedText, ToolSelector)>,
    pub(crate) may_use: Vec<LocatedText>,
    pub(crate) documents: Vec<String>,
    pub(crate) roots: Option<Vec<String>>,
    /// The network that programs may reach, and its line.
    pub(crate) network: Option<(usize, NetworkAccess)>,
    /// Credentials that the proxy puts into requests of programs, with their lines. A role has those of the roles that it
    /// extends too.
    pub(crate) credentials: Vec<(usize, CredentialRule)>,
    /// Groups of system calls that programs may make. A role has those of the roles that it extends too.
    pub(crate) system_calls: Vec<SystemCallGroup>,
    pub(crate) limits: RoleLimits,
    pub(crate) rules: Vec<DraftRule>,
    pub(crate) examples: Vec<PolicyExample>,
}

#[derive(Debug, Default)]
pub(crate) struct DraftRule {
    pub(crate) id: String,
    pub(crate) line: usize,
    pub(crate) tools: Vec<(LocatedText, ToolSelector)>,
    pub(crate) paths: Option<PathRule>,
    pub(crate) commands: Option<CommandRule>,
    pub(crate) sql_read_only: bool,
    pub(crate) network: Option<NetworkAccess>,
    pub(crate) arguments: Vec<ArgumentRule>,
    pub(crate) only: bool,
    pub(crate) additional_arguments: bool,
    pub(crate) reason: Option<String>,
    pub(crate) otherwise: Otherwise,
    pub(crate) examples: Vec<PolicyExample>,
}

/// A call, with the decision that the policy must make about it.
#[derive(Debug)]
pub(crate) struct PolicyExample {
    pub(crate) line: usize,
    pub(crate) expected: ExpectedDecision,
    pub(crate) tool: Option<String>,
    pub(crate) arguments: Map<String, Value>,
}

/// The decision that an example expects. It is displayed as the participle of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedDecision {
    Allow,
    Ask,
    Deny,
}

impl std::fmt::Display for ExpectedDecision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Allow => "allowed",
            Self::Ask => "asked about",
            Self::Deny => "denied",
        })
    }
}
