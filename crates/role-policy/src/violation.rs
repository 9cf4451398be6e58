//! The conditions of a role that a call breaks. Their messages are what the caller reads: what was wrong, and what is
//! allowed.

use crate::access::Access;
use crate::effect_resolver::ResolveError;
use crate::quoted::quoted;

/// The reason why a role may not reach a path. The message says what it may reach, in words for the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathViolation {
    /// The path lies in a folder that the role may not reach, or is that folder.
    #[error("`{path}` lies in `{excluded}`, which this role may not reach")]
    Excluded {
        /// The path, resolved.
        path: String,
        /// The folder that may not be reached.
        excluded: String,
    },
    /// The folder would be moved or replaced with a folder in it that the role may not reach.
    #[error("`{path}` holds `{excluded}`, which this role may not reach")]
    HoldsExcluded {
        /// The path, resolved.
        path: String,
        /// The folder that may not be reached.
        excluded: String,
    },
    /// The role has no folder for this access.
    #[error("this role may {access} no file")]
    NoFile {
        /// The access that was asked for.
        access: Access,
    },
    /// The path lies in none of the folders of the role.
    #[error("this role may {access} only in {}, and `{path}` is elsewhere", quoted(.allowed))]
    Elsewhere {
        /// The path, resolved.
        path: String,
        /// The access that was asked for.
        access: Access,
        /// The folders that the role may reach.
        allowed: Vec<String>,
    },
}

/// The condition of a rule that a call breaks.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RuleViolation {
    /// The operator gave an explanation, which follows the message.
    #[error("{violation}. {explanation}")]
    Explained { violation: Box<Self>, explanation: String },
    /// A condition that a person may approve, in words that were put together where it was found.
    #[error("{message}")]
    Approvable { message: String },
    #[error("`{argument}`: {violation}")]
    Path { argument: String, violation: PathViolation },
    /// The cause is left out: it would tell what lies out of reach.
    #[error("`{argument}`: it cannot be followed, or leads out of reach")]
    Unreachable { argument: String },
    #[error("`{argument}` is no path")]
    NotAPath { argument: String },
    #[error("`{argument}` holds something that is no path")]
    NotPaths { argument: String },
    #[error("`{argument}` must be \"query\", \"schema\" or \"explain\": databases are read only")]
    DatabaseWrite { argument: String },
    #[error("`{tool}` does not say what it does to a database")]
    UndeclaredDatabase { tool: String },
    #[error("`{tool}` does not say what it runs, so no rule for commands can allow it")]
    UndeclaredCommand { tool: String },
    #[error(
        "`{tool}` is another server's, and which of its arguments are paths is not known; \
         name them under `arguments`, with `within`"
    )]
    UndeclaredPaths { tool: String },
    #[error(
        "`{tool}` is another server's, whose connections this role's `network` cannot limit; limit the server itself, \
         and give the tool to a role without `network`"
    )]
    UndeclaredNetwork { tool: String },
    #[error("`{argument}` may not be given")]
    UnknownArgument { argument: String },
    #[error(
        "`{argument}` may not be given: the rules on this tool take only {}, which it declares or they name",
        quoted(.known)
    )]
    UndeclaredArgument { argument: String, known: Vec<String> },
    #[error(
        "`{found}` may not be given: the server could take it for `{argument}`, which a rule of this role judges"
    )]
    ArgumentVariant { argument: String, found: String },
    #[error("`{argument}`: this role may set {}, and {}", variables(.allowed), denied_variable(.allowed, .variable))]
    Variable { argument: String, variable: String, allowed: Vec<String> },
    #[error("`{argument}` is no object of variables")]
    NotVariables { argument: String },
    #[error("`{argument}`: {source}")]
    Unresolved { argument: String, source: ResolveError },
    #[error("`{argument}` holds something that is no text")]
    NotWords { argument: String },
    #[error("`{argument}` must be given, for this role may run only {}", programs(.allowed))]
    NoCommand { argument: String, allowed: Vec<Vec<String>> },
    #[error("`{argument}` is empty")]
    EmptyCommand { argument: String },
    #[error("`{argument}`: this role may run only {}, and nothing that begins otherwise", programs(.allowed))]
    Program { argument: String, allowed: Vec<Vec<String>> },
    #[error("`{argument}` must be given: {expected}")]
    Missing { argument: String, expected: String },
    #[error("`{argument}` is {found}: {expected}")]
    Value { argument: String, found: String, expected: String },
}

impl RuleViolation {
    /// Returns true if a person may approve the call all the same: the rule was judged, and does not hold. What could
    /// not be judged is refused.
    pub(crate) fn may_be_approved(&self) -> bool {
        match self {
            Self::Explained { violation, .. } => violation.may_be_approved(),
            Self::Approvable { .. }
            | Self::Path { .. }
            | Self::DatabaseWrite { .. }
            | Self::UnknownArgument { .. }
            | Self::Variable { .. }
            | Self::NoCommand { .. }
            | Self::Program { .. }
            | Self::Missing { .. }
            | Self::Value { .. } => true,
            Self::Unreachable { .. }
            | Self::NotAPath { .. }
            | Self::NotPaths { .. }
            | Self::UndeclaredDatabase { .. }
            | Self::UndeclaredCommand { .. }
            | Self::UndeclaredPaths { .. }
            | Self::UndeclaredNetwork { .. }
            | Self::UndeclaredArgument { .. }
            | Self::ArgumentVariant { .. }
            | Self::NotVariables { .. }
            | Self::Unresolved { .. }
            | Self::NotWords { .. }
            | Self::EmptyCommand { .. } => false,
        }
    }

    /// Says which argument has the path.
    pub(crate) fn path(argument: &str) -> impl FnOnce(PathViolation) -> Self {
        move |violation| Self::Path { argument: argument.to_owned(), violation }
    }

    /// Says which argument could not be resolved.
    pub(crate) fn unresolved(argument: &str) -> impl FnOnce(ResolveError) -> Self {
        move |source| Self::Unresolved { argument: argument.to_owned(), source }
    }
}

fn variables(allowed: &[String]) -> String {
    match allowed {
        [] => "no environment variable".to_owned(),
        allowed => format!("only {}", quoted(allowed)),
    }
}

fn denied_variable(allowed: &[String], variable: &str) -> String {
    match allowed {
        [] => format!("`{variable}` is one"),
        _ => format!("not `{variable}`"),
    }
}

fn programs(allowed: &[Vec<String>]) -> String {
    match allowed {
        [] => "no program".to_owned(),
        allowed => quoted(&allowed.iter().map(|words| words.join(" ")).collect::<Vec<_>>()),
    }
}
