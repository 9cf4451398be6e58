//! The system calls that a role's programs may make although programs may not by default.

use std::fmt;

/// A group of system calls that confined programs may make only if their role says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SystemCallGroup {
    /// Calls that trace a process and read or change its memory: `strace`, `gdb`.
    Tracing,
    /// Calls that read the processor's counters: `perf`.
    Profiling,
    /// Calls that make namespaces and mount in them: the sandboxes of browsers.
    UserNamespaces,
}

impl SystemCallGroup {
    /// All groups.
    pub const ALL: [Self; 3] = [Self::Tracing, Self::Profiling, Self::UserNamespaces];

    /// Returns the name of the group in a policy file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tracing => "tracing",
            Self::Profiling => "profiling",
            Self::UserNamespaces => "user_namespaces",
        }
    }

    /// Returns the group of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.name() == name)
    }
}

impl fmt::Display for SystemCallGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
