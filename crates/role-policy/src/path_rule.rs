//! Rules for paths.

use crate::access::Access;
use crate::effect_resolver::EffectResolver;
use crate::violation::{PathViolation, RuleViolation};

/// The folders that paths may lead to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathRule {
    pub(crate) read_within: Option<Vec<String>>,
    pub(crate) write_within: Option<Vec<String>>,
    pub(crate) not_within: Vec<String>,
    /// Paths in a folder of `not_within` that a person approved for one call.
    pub(crate) exceptions: Vec<String>,
}

impl PathRule {
    /// Refuses a folder that holds what may not be reached.
    pub(crate) fn check_holds(&self, resolved: &str) -> Result<(), PathViolation> {
        match self.not_within.iter().find(|folder| lies_in(folder, resolved)) {
            Some(held) => {
                Err(PathViolation::HoldsExcluded { path: resolved.to_owned(), excluded: held.clone() })
            }
            None => Ok(()),
        }
    }

    /// Returns true if it limits this access.
    pub(crate) fn limits(&self, access: Access) -> bool {
        self.within(access).is_some() || !self.not_within.is_empty()
    }

    pub(crate) fn check_argument(
        &self,
        access: Access,
        name: &str,
        path: &str,
        effects: &dyn EffectResolver,
    ) -> Result<(), RuleViolation> {
        // Nothing to resolve where nothing is limited: a missing file is then the tool's to report.
        if !self.limits(access) {
            return Ok(());
        }
        // The cause would tell what lies out of reach.
        let resolved = effects
            .resolve_path(path)
            .map_err(|_| RuleViolation::Unreachable { argument: name.to_owned() })?;
        self.check(access, &resolved).map_err(RuleViolation::path(name))
    }

    /// Judges a path that has been resolved.
    pub(crate) fn check(&self, access: Access, resolved: &str) -> Result<(), PathViolation> {
        let path = || resolved.to_owned();
        // Before `within`: an exclusion holds also beneath a folder that is granted.
        if let Some(folder) = self.not_within.iter().find(|folder| self.excludes(folder, resolved)) {
            return Err(PathViolation::Excluded { path: path(), excluded: folder.clone() });
        }
        match self.within(access) {
            Some(folders) if !folders.iter().any(|folder| lies_in(resolved, folder)) => Err(match folders {
                [] => PathViolation::NoFile { access },
                _ => PathViolation::Elsewhere { path: path(), access, allowed: folders.to_vec() },
            }),
            _ => Ok(()),
        }
    }

    /// Returns true if `folder`, one of `not_within`, excludes `resolved`.
    fn excludes(&self, folder: &str, resolved: &str) -> bool {
        // An exception holds against the folders that it lies in, and not against those that lie in it.
        lies_in(resolved, folder)
            && !self.exceptions.iter().any(|path| lies_in(path, folder) && lies_in(resolved, path))
    }

    /// Adds `resolved` to the folders that may be reached for `access`.
    pub(crate) fn grant(&mut self, access: Access, resolved: &str) {
        let folders = match access {
            Access::Read => &mut self.read_within,
            Access::Write => &mut self.write_within,
        };
        folders.get_or_insert_default().push(resolved.to_owned());
    }

    fn within(&self, access: Access) -> Option<&[String]> {
        match access {
            Access::Read => self.read_within.as_deref(),
            Access::Write => self.write_within.as_deref(),
        }
    }

    pub(crate) fn folders(&self, access: Access) -> Option<impl Iterator<Item = &str>> {
        self.within(access).map(|folders| folders.iter().map(String::as_str))
    }
}

/// Returns true if `path` is `folder` or lies in it. Both are as [`EffectResolver::resolve_path`] returns them: `.` is
/// the primary root, `name:.` another one.
pub(crate) fn lies_in(path: &str, folder: &str) -> bool {
    // A colon further on is part of a name.
    let root = |path: &str| {
        let first = path.split('/').next().unwrap_or(path);
        first.split_once(':').map_or(0, |(root, _)| root.len() + 1)
    };
    let (path_root, folder_root) = (root(path), root(folder));
    if path.get(..path_root) != folder.get(..folder_root) {
        return false;
    }
    match folder.get(folder_root..) {
        Some("." | "") => true,
        // By whole components: `src-old` does not lie in `src`.
        _ => path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
    }
}
