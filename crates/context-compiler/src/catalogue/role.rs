//! Roles, and the documents and code that each of them reads.

use serde::Deserialize;

/// The documents and the code that one role reads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoleProfile {
    /// The file names of the planning documents.
    pub documents: Vec<String>,
    /// The globs of the source files. None by default.
    pub include: Vec<String>,
    /// Globs of source files to leave out.
    pub exclude: Vec<String>,
    /// The detail in which changes are shown. Everything by default.
    pub diff: DiffDetail,
    /// The most plans of a phase that are read. 2 by default.
    pub max_plans: usize,
    /// The budget in tokens where a request sets none.
    pub budget_tokens: Option<usize>,
    /// True if the roadmap keeps the sections of completed phases. True by default.
    pub completed_phases: bool,
}

/// The detail in which changes are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DiffDetail {
    /// Nothing; git is not asked.
    Off,
    /// The changed files with their line counts.
    Stat,
    /// The changed lines as well.
    #[default]
    Full,
}

impl Default for RoleProfile {
    fn default() -> Self {
        Self {
            documents: Vec::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            diff: DiffDetail::default(),
            max_plans: 2,
            budget_tokens: None,
            completed_phases: true,
        }
    }
}

/// Returns true if `name` can be the name of a role. The charset is narrow because a document prints the name.
pub(crate) fn is_role_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}
