//! The levels of a confinement, and the system calls that one may allow.

use std::fmt;
use std::str::FromStr;

/// The layers by which a program is confined. Each level has those of the levels before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum ConfinementLevel {
    /// No layer: the program may do what this process may.
    None,
    /// Landlock: files, TCP and signals.
    Filesystem,
    /// A seccomp filter: system calls that builds and tests do not need.
    SystemCalls,
    /// Namespaces: only what is granted is mounted, other processes cannot be named, and without network there is a
    /// loopback interface of its own and no other.
    #[default]
    Namespaces,
    /// The filter also refuses every change of a file's mode, owner, times and other attributes. `tar`, `git`,
    /// package managers and many builds fail then.
    Strict,
}

impl ConfinementLevel {
    /// All levels, from the lowest to the highest.
    pub const ALL: [Self; 5] =
        [Self::None, Self::Filesystem, Self::SystemCalls, Self::Namespaces, Self::Strict];

    /// Returns the name of the level, as configuration writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Filesystem => "filesystem",
            Self::SystemCalls => "system_calls",
            Self::Namespaces => "namespaces",
            Self::Strict => "strict",
        }
    }
}

impl fmt::Display for ConfinementLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// System calls that a confinement refuses unless it is told to allow them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum SystemCallPermission {
    /// `ptrace(2)` and the calls that read or change another process (`strace`, `gdb`, the leak check of
    /// `AddressSanitizer`). Landlock limits them to the processes of the same run.
    Tracing,
    /// `perf_event_open(2)` (`perf`).
    Profiling,
    /// New namespaces, and what can be mounted in them (sandboxes such as that of Chromium).
    UserNamespaces,
}

impl SystemCallPermission {
    /// All permissions.
    pub const ALL: [Self; 3] = [Self::Tracing, Self::Profiling, Self::UserNamespaces];

    /// Returns the name of the permission, as configuration and policies write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tracing => "tracing",
            Self::Profiling => "profiling",
            Self::UserNamespaces => "user_namespaces",
        }
    }
}

impl fmt::Display for SystemCallPermission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no level or permission.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is none of {allowed}")]
pub struct UnknownConfinementName {
    text: String,
    allowed: String,
}

fn parse<T: Copy>(text: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T, UnknownConfinementName> {
    all.iter().copied().find(|value| name(*value) == text).ok_or_else(|| UnknownConfinementName {
        text: text.to_owned(),
        allowed: all.iter().map(|value| format!("`{}`", name(*value))).collect::<Vec<_>>().join(", "),
    })
}

impl FromStr for ConfinementLevel {
    type Err = UnknownConfinementName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text, &Self::ALL, Self::name)
    }
}

impl FromStr for SystemCallPermission {
    type Err = UnknownConfinementName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text, &Self::ALL, Self::name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_means_what_it_was_made_of() {
        for level in ConfinementLevel::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        for permission in SystemCallPermission::ALL {
            assert_eq!(permission.to_string().parse(), Ok(permission));
        }
        let error = "full".parse::<ConfinementLevel>().unwrap_err().to_string();
        assert_eq!(error, "`full` is none of `none`, `filesystem`, `system_calls`, `namespaces`, `strict`");
    }
}
