//! The package manager of a Node project.

use super::project::Project;
use serde_json::Value;

/// The lock files, and the package manager that writes each.
const LOCK_FILES: [(&str, &str); 6] = [
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("package-lock.json", "npm"),
    ("npm-shrinkwrap.json", "npm"),
];

/// Returns the package manager of a Node project: the one that `packageManager` names, else that of the nearest
/// lock file, else npm. A package of a workspace has both above it.
pub(crate) fn package_manager(project: &Project) -> &'static str {
    for folder in project.ancestors() {
        let manifest = folder.read("package.json").unwrap_or_default();
        let manifest: Value = serde_json::from_str(&manifest).unwrap_or_default();
        let named = manifest.get("packageManager").and_then(Value::as_str).unwrap_or_default();
        // Corepack's form: `pnpm@9.1.0`.
        let name = named.split_once('@').map_or("", |(name, _)| name);
        if let Some(manager) = ["pnpm", "yarn", "bun", "npm"].into_iter().find(|manager| *manager == name) {
            return manager;
        }
        if let Some((_, manager)) = LOCK_FILES.into_iter().find(|(file, _)| folder.contains(file)) {
            return manager;
        }
    }
    "npm"
}
