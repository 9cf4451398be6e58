//! [`SandboxLimits`]: the sandbox that Codex asks its executor for.

use crate::file_uri::path_of_uri;
use crate::refusal::ExecutorRefusal;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The limits that Codex's sandbox sets: the writable folders, the folders in them that are not writable, and the
/// network.
///
/// Everything may be read. A sandbox that limits reading is refused, as is a sandbox that the server does not
/// understand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxLimits {
    /// The folders that may be written. `None`: all.
    pub writable: Option<Vec<PathBuf>>,
    /// The folders within them that may not be written.
    pub read_only: Vec<PathBuf>,
    /// True if the network may be used.
    pub network: bool,
}

impl SandboxLimits {
    /// Reads the member `sandbox` of a request. `None` if Codex asks for none.
    ///
    /// # Errors
    /// The sandbox is none that this executor can keep.
    pub(crate) fn read(sandbox: &Value) -> Result<Option<Self>, ExecutorRefusal> {
        if sandbox.is_null() {
            return Ok(None);
        }
        let permissions = &sandbox["permissions"];
        match permissions["type"].as_str() {
            Some("disabled") => Ok(None),
            Some("managed") => Self::managed(sandbox, permissions).map(Some),
            other => Err(not_kept(&format!("permissions of the type {}", other.unwrap_or("(none)")))),
        }
    }

    fn managed(sandbox: &Value, permissions: &Value) -> Result<Self, ExecutorRefusal> {
        let network = match permissions["network"].as_str() {
            Some("enabled") => true,
            Some("restricted") => false,
            _ => return Err(not_kept("a network that it does not name")),
        };
        let files = &permissions["file_system"];
        match files["type"].as_str() {
            Some("unrestricted") => return Ok(Self { writable: None, read_only: Vec::new(), network }),
            Some("restricted") => {}
            _ => return Err(not_kept("a file system that it does not name")),
        }
        let roots: Vec<PathBuf> = sandbox["workspaceRoots"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|uri| path_of_uri(uri.as_str()?).ok())
            .collect();
        let mut limits = Self { writable: Some(Vec::new()), read_only: Vec::new(), network };
        let mut reads_all = false;
        for entry in files["entries"].as_array().into_iter().flatten() {
            let paths = entry_paths(&entry["path"], &roots)?;
            let is_root = paths.iter().any(|path| path == Path::new("/"));
            match (entry["access"].as_str(), &mut limits.writable) {
                (Some("write"), _) if is_root => {
                    limits.writable = None;
                    reads_all = true;
                }
                (Some("write"), Some(writable)) => writable.extend(paths),
                (Some("write"), None) => {}
                (Some("read"), _) if is_root => reads_all = true,
                (Some("read"), _) => limits.read_only.extend(paths),
                _ => return Err(not_kept("an access that is neither read nor write")),
            }
        }
        if reads_all { Ok(limits) } else { Err(not_kept("a file system that may be read only in part")) }
    }

    /// Returns true if the sandbox lets `path`, absolute and without links, be written.
    pub fn may_write(&self, path: &Path) -> bool {
        // The longest of the folders that a path lies in decides, as in Codex.
        let depth = |folders: &[PathBuf]| {
            let within = folders.iter().filter(|folder| path.starts_with(folder));
            within.map(|folder| folder.components().count()).max()
        };
        let read_only = depth(&self.read_only);
        match &self.writable {
            None => read_only.is_none(),
            Some(writable) => {
                depth(writable).is_some_and(|writable| read_only.is_none_or(|depth| writable > depth))
            }
        }
    }

    /// Checks that `path`, absolute and without links, may be written.
    pub(crate) fn check_write(&self, path: &Path) -> Result<(), ExecutorRefusal> {
        if self.may_write(path) {
            return Ok(());
        }
        Err(ExecutorRefusal::new(format!(
            "the sandbox that Codex runs with does not let `{}` be written; work elsewhere, or ask the user to change \
             the sandbox",
            path.display()
        )))
    }
}

/// Returns the paths that an entry names, without links as far as they exist.
fn entry_paths(path: &Value, roots: &[PathBuf]) -> Result<Vec<PathBuf>, ExecutorRefusal> {
    let paths = match path["type"].as_str() {
        Some("path") => {
            let uri = path["path"].as_str().or_else(|| path["value"].as_str()).unwrap_or_default();
            vec![path_of_uri(uri).map_err(|error| not_kept(&error.to_string()))?]
        }
        Some("special") => {
            let value = &path["value"];
            match value["kind"].as_str() {
                Some("root") => vec![PathBuf::from("/")],
                Some("project_roots") => {
                    let sub = value["subpath"].as_str();
                    let below = |root: &PathBuf| sub.map_or_else(|| root.clone(), |sub| root.join(sub));
                    roots.iter().map(below).collect()
                }
                // A command has a temporary folder of its own, and no root lies in these as a rule.
                Some("slash_tmp" | "tmpdir") => vec![PathBuf::from("/tmp")],
                kind => return Err(not_kept(&format!("the folder {}", kind.unwrap_or("(none)")))),
            }
        }
        kind => return Err(not_kept(&format!("a path of the type {}", kind.unwrap_or("(none)")))),
    };
    Ok(paths.iter().map(|path| without_links(path)).collect())
}

/// Returns `path` without links, as far as it exists.
#[allow(
    clippy::disallowed_methods,
    reason = "folders that the user's client names, which are compared and not opened"
)]
fn without_links(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => without_links(parent).join(name),
        _ => path.to_owned(),
    })
}

fn not_kept(what: &str) -> ExecutorRefusal {
    ExecutorRefusal::new(format!(
        "Codex asks for a sandbox that this executor cannot keep ({what}); the user can choose another `sandbox_mode` in \
         Codex's config.toml: the role's own confinement holds with each of them"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[allow(
        clippy::needless_pass_by_value,
        reason = "calls read better with a `json!` than with a reference to one"
    )]
    fn sandbox(entries: Value, network: &str) -> Value {
        json!({
            "permissions": {
                "type": "managed",
                "file_system": {"type": "restricted", "entries": entries},
                "network": network,
            },
            "workspaceRoots": ["file:///no/project"],
        })
    }

    fn special(kind: &str, access: &str) -> Value {
        json!({"path": {"type": "special", "value": {"kind": kind}}, "access": access})
    }

    #[test]
    fn the_sandboxes_of_codex_are_read() {
        assert_eq!(SandboxLimits::read(&Value::Null), Ok(None));
        assert_eq!(SandboxLimits::read(&json!({"permissions": {"type": "disabled"}})), Ok(None));
        let read_only = sandbox(json!([special("root", "read")]), "restricted");
        let limits = SandboxLimits::read(&read_only).unwrap().unwrap();
        assert!(!limits.may_write(Path::new("/no/project/a")) && !limits.network);
        let git = json!({"path": {"type": "special", "value": {"kind": "project_roots", "subpath": ".git"}},
            "access": "read", "missing_path_behavior": "skip"});
        let entries = json!([
            special("root", "read"),
            special("project_roots", "write"),
            special("slash_tmp", "write"),
            git
        ]);
        let limits = SandboxLimits::read(&sandbox(entries, "enabled")).unwrap().unwrap();
        for (path, expected) in [
            ("/no/project/a", true),
            ("/no/project/.git/config", false),
            ("/no/project2", false),
            ("/tmp/x", true),
            ("/etc/x", false),
        ] {
            assert_eq!(limits.may_write(Path::new(path)), expected, "{path}");
        }
        assert!(limits.network);
    }

    #[test]
    fn a_sandbox_that_is_not_understood_is_refused() {
        for wrong in [
            json!({}),
            json!({"permissions": {"type": "later"}}),
            sandbox(json!([special("root", "read"), special("minimal", "read")]), "restricted"),
            sandbox(json!([special("project_roots", "write")]), "restricted"),
            sandbox(json!([special("root", "read"), special("project_roots", "none")]), "restricted"),
            sandbox(json!([special("root", "read")]), "sometimes"),
        ] {
            assert!(SandboxLimits::read(&wrong).is_err(), "{wrong}");
        }
    }
}
