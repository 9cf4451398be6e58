//! The way in which persons are asked about calls that the policy allows only with an approval.

use crate::config::ApproversSetting;
use crate::settings::Settings;
use core_tools::mcp::{self, ApprovalFolder, ApprovalOptions, ApprovalQueue, OperatorAccess};
use core_tools::workspace::Workspace;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Returns the folder through which a terminal answers: `coretools/approvals` in `$XDG_STATE_HOME`, by default
/// `~/.local/state` (XDG Base Directory Specification). `None` if the environment names neither.
pub fn folder() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")));
    Some(state?.join("coretools/approvals"))
}

/// Returns the options of a server for one caller, whose operator answers in a terminal.
pub fn of_one(settings: &Settings, workspace: &Workspace) -> ApprovalOptions {
    let mut options = of_many(settings);
    // A tool could answer in a folder beneath a root.
    match folder_outside(workspace) {
        Some(folder) => {
            options.queue = ApprovalQueue::default().with_folder(folder);
            options.operator = OperatorAccess::Queue;
        }
        None => options.operator = OperatorAccess::None,
    }
    options
}

/// Returns the folder of approvals, unless a tool could write in it because it lies beneath a root.
pub(crate) fn folder_outside(workspace: &Workspace) -> Option<ApprovalFolder> {
    let folder = folder().filter(|folder| !workspace.roots().any(|root| lies_beneath(folder, root)));
    folder.map(ApprovalFolder::new)
}

/// Returns the options of a server with many callers, whose operator answers on its page.
pub fn of_many(settings: &Settings) -> ApprovalOptions {
    let policy = &settings.config.policy;
    let mut options = ApprovalOptions::default();
    options.operator = OperatorAccess::Queue;
    options.approvers = match *policy.approvers {
        ApproversSetting::Auto => mcp::Approvers::ClientFirst,
        ApproversSetting::Client => mcp::Approvers::Client,
        ApproversSetting::Operator => mcp::Approvers::Operator,
    };
    options.timeout = Duration::from_millis(*policy.approval_timeout_ms);
    options
}

/// Returns true if `path` is or will be in `root`, which has no links.
fn lies_beneath(path: &Path, root: &Path) -> bool {
    // The folder need not exist yet: the nearest one above it that does decides.
    let existing = path.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    path.starts_with(root) || existing.is_none_or(|existing| existing.starts_with(root))
}
