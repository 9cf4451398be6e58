//! The programs that a repository's own configuration names, and that no switch of git's turns off.

use super::error::Error;
use super::repository::Repository;
use super::run::{Access, Call, Git};
use super::text::{fields, lossy};
use tokio_util::sync::CancellationToken;

/// Configuration that turns the filters of one repository off.
pub(super) type Overrides = Vec<(String, &'static str)>;

/// Driver keys in the output of `git config --null --list --show-scope`, of the repository's own scopes.
fn drivers(listed: &[u8]) -> Vec<String> {
    let mut keys = Vec::new();
    let mut fields = fields(listed);
    while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
        if !matches!(scope, b"local" | b"worktree") {
            continue;
        }
        let mut parts = entry.splitn(2, |byte| *byte == b'\n');
        let key = lossy(parts.next().unwrap_or_default());
        let is_driver = match key.rsplit_once('.') {
            Some((section, "clean" | "smudge" | "process")) => section.starts_with("filter."),
            Some((section, "driver")) => section.starts_with("merge."),
            _ => false,
        };
        if is_driver && parts.next().is_some_and(|value| !value.is_empty()) && !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

impl Git {
    async fn drivers(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, Error> {
        if !repository.suspicious {
            return Ok(Vec::new());
        }
        let words = ["config", "--null", "--list", "--show-scope", "--includes"];
        let (listed, whole) = self
            .ask("reading the configuration", Call::new(repository, Access::Reads, cancel, &words))
            .await?;
        if whole { Ok(drivers(&listed)) } else { Err(Error::Odd("its configuration is too long".to_owned())) }
    }

    /// What to configure so that reading runs no filter of the repository. Files that a filter would change
    /// then show as modified, if their times have changed.
    pub(super) async fn without_filters(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<Overrides, Error> {
        let mut overrides = Vec::new();
        for key in self.drivers(repository, cancel).await? {
            if let Some((section, _)) = key.rsplit_once('.')
                && section.starts_with("filter.")
            {
                // To turn a filter off takes its exact name.
                if section.contains('\u{fffd}') {
                    return Err(Error::Odd("its configuration names a filter that is not UTF-8".to_owned()));
                }
                // An empty process keeps git from the other two as well.
                overrides.push((format!("{section}.process"), ""));
                overrides.push((format!("{section}.required"), "false"));
            }
        }
        Ok(overrides)
    }

    /// Refuses where the repository's own configuration names filters or merge drivers.
    pub(super) async fn refuse_drivers(
        &self,
        repository: &Repository,
        action: &'static str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let keys = self.drivers(repository, cancel).await?;
        if keys.is_empty() { Ok(()) } else { Err(Error::Programs { action, keys }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_repositorys_own_programs_are_its_drivers() {
        let listed = b"system\0filter.lfs.clean\ngit-lfs clean\0global\0filter.x.process\nx\0\
            local\0core.bare\nfalse\0local\0filter.a.b.clean\nevil\0worktree\0merge.m.driver\nevil\0\
            local\0filter.off.smudge\n\0local\0filter.bool.clean\0local\0filter.x.required\ntrue\0";
        assert_eq!(drivers(listed), ["filter.a.b.clean", "merge.m.driver"]);
    }

    proptest! {
        #[test]
        fn no_configuration_is_a_panic(listed: Vec<u8>) {
            drivers(&listed);
        }
    }
}
