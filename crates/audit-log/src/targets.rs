//! The things that a call reaches.

use serde::{Deserialize, Serialize};

/// The things that a call reaches, as its arguments name them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTargets {
    /// Paths that are read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
    /// Paths that are written, replaced, moved or removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// The command, as a line of a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Hosts of URLs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The kind of SQL, such as `query`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// The role that is taken or given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The number of targets that were left out, since there were too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
}

/// The bounds on what is recorded of one call.
#[derive(Debug)]
pub struct TargetLimits;

impl TargetLimits {
    /// Paths of each kind, and hosts.
    pub const ITEMS: usize = 32;
    /// Bytes of one path or host.
    pub const ITEM_BYTES: usize = 512;
    /// Bytes of the command.
    pub const COMMAND_BYTES: usize = 2048;
    /// Bytes of the whole arguments.
    pub const FULL_BYTES: usize = 16 * 1024;

    /// Cuts `text` to `bytes` at a whole character, and says so.
    pub fn cut(mut text: String, bytes: usize) -> String {
        if text.len() > bytes {
            let left_out = text.len() - text.floor_char_boundary(bytes);
            text.truncate(text.floor_char_boundary(bytes));
            text.push_str(&format!("… ({left_out} more bytes)"));
        }
        text
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl CallTargets {
    /// Returns true if there is no target.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds `text` to `list`, or counts it where the list is full or has it already.
    pub fn push(list: &mut Vec<String>, omitted: &mut u64, text: String) {
        let text = TargetLimits::cut(text, TargetLimits::ITEM_BYTES);
        if list.contains(&text) {
            return;
        }
        match list.len() < TargetLimits::ITEMS {
            true => list.push(text),
            false => *omitted += 1,
        }
    }

    /// Returns every path.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.writes.iter().chain(&self.reads).map(String::as_str)
    }

    /// Returns the targets as a person reads them: `rm -rf x`, `write src/a.rs`, `read docs, tests`.
    pub fn summary(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.command.clone());
        for (verb, list) in [("write", &self.writes), ("read", &self.reads), ("host", &self.hosts)] {
            if !list.is_empty() {
                parts.push(format!("{verb} {}", list.join(", ")));
            }
        }
        parts.extend(self.sql.as_ref().map(|kind| format!("sql {kind}")));
        parts.extend(self.role.as_ref().map(|role| format!("role {role}")));
        if self.omitted > 0 {
            parts.push(format!("{} more", self.omitted));
        }
        parts.join("; ")
    }
}
