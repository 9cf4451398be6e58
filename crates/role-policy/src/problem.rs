//! The problems of a policy file, with their lines.

use std::fmt;

/// One thing that is wrong with a policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyProblem {
    /// The severity, which decides whether the file can be used.
    pub severity: ProblemSeverity,
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The problem, and what to do.
    pub message: String,
}

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemSeverity {
    /// The policy holds, and may not be what was meant.
    Warning,
    /// The file is not used.
    Error,
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            ProblemSeverity::Warning => "warning",
            ProblemSeverity::Error => "error",
        };
        write!(f, "{}:{}: {severity}: {}", self.file, self.line, self.message)
    }
}

/// A policy file that cannot be used, with everything that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct LoadError {
    /// The problems in the order of the file, warnings included. There is at least one error.
    pub problems: Vec<PolicyProblem>,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}
