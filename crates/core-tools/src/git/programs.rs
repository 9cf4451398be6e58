//! The programs that a repository's own configuration names, and that no switch of git's turns off.

use super::error::Error;
use super::repository::Repository;
use super::run::{Access, Call, Git};
use super::text::{fields, line, lossy};
use tokio_util::sync::CancellationToken;

/// Configuration that turns the filters of one repository off.
pub(super) type Overrides = Vec<(String, &'static str)>;

/// Submodules that are judged before something is written, in all.
const MOST_SUBMODULES: usize = 1_000;
/// What is kept of a list of the index: a million paths.
const INDEX_BYTES: usize = 256 * 1024 * 1024;

/// Keys and values in the output of `git config --null --list --show-scope`, of the repository's own scopes.
fn own(listed: &[u8]) -> impl Iterator<Item = (String, Option<&[u8]>)> {
    let mut fields = fields(listed);
    std::iter::from_fn(move || Some((fields.next()?, fields.next()?)))
        .filter(|(scope, _)| matches!(*scope, b"local" | b"worktree"))
        .map(|(_, entry)| {
            let mut parts = entry.splitn(2, |byte| *byte == b'\n');
            (lossy(parts.next().unwrap_or_default()), parts.next())
        })
}

/// Those of [`own`] that name filters and merge drivers.
fn drivers(listed: &[u8]) -> Vec<String> {
    let mut keys = Vec::new();
    for (key, value) in own(listed) {
        let is_driver = match key.rsplit_once('.') {
            Some((section, "clean" | "smudge" | "process")) => section.starts_with("filter."),
            Some((section, "driver")) => section.starts_with("merge."),
            _ => false,
        };
        if is_driver && value.is_some_and(|value| !value.is_empty()) && !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// The submodules in the output of `git ls-files --stage -z`.
fn gitlinks(listed: &[u8]) -> impl Iterator<Item = &[u8]> {
    fields(listed).filter(|entry| entry.starts_with(b"160000 ")).filter_map(|entry| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        entry.get(tab + 1..)
    })
}

impl Git {
    async fn configuration(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<Vec<u8>, Error> {
        let words = ["config", "--null", "--list", "--show-scope", "--includes"];
        let (listed, whole) = self
            .ask("reading the configuration", Call::new(repository, Access::Reads, cancel, &words))
            .await?;
        if whole { Ok(listed) } else { Err(Error::Odd("its configuration is too long".to_owned())) }
    }

    async fn drivers(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, Error> {
        if !repository.suspicious {
            return Ok(Vec::new());
        }
        Ok(drivers(&self.configuration(repository, cancel).await?))
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

    /// Refuses where the repository's own configuration, or that of a submodule, names filters or merge drivers.
    ///
    /// What stages, switches and puts aside asks each submodule whether its files have changed, and no option
    /// keeps all of that from it: `git add` knows none, and `.gitmodules` overrules the configuration.
    pub(super) async fn refuse_drivers(
        &self,
        repository: &Repository,
        action: &'static str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let mut keys = self.drivers(repository, cancel).await?;
        let mut left = MOST_SUBMODULES;
        let mut next = self.submodules(repository, "", &mut left, cancel).await?;
        while let Some((path, submodule)) = next.pop() {
            let listed = self.configuration(&submodule, cancel).await?;
            for (_, value) in own(&listed).filter(|(key, _)| key == "core.worktree") {
                submodule.check_work_tree(value.unwrap_or_default(), &path)?;
            }
            keys.extend(drivers(&listed).into_iter().map(|key| format!("{key} of {}", line(&path))));
            next.extend(self.submodules(&submodule, &path, &mut left, cancel).await?);
        }
        if keys.is_empty() { Ok(()) } else { Err(Error::Programs { action, keys }) }
    }

    /// The submodules that are checked out in a repository, which is `above` itself.
    async fn submodules(
        &self,
        repository: &Repository,
        above: &str,
        left: &mut usize,
        cancel: &CancellationToken,
    ) -> Result<Vec<(String, Repository)>, Error> {
        let words = ["ls-files", "--stage", "-z", "--full-name", "--", ":/"];
        let call = Call::new(repository, Access::Reads, cancel, &words).capture(INDEX_BYTES);
        let (listed, whole) = self.ask("looking for submodules", call).await?;
        let mut found = Vec::new();
        for path in gitlinks(&listed) {
            if let Some(submodule) = repository.submodule(path)? {
                *left =
                    left.checked_sub(1).ok_or_else(|| Error::Odd("it has too many submodules".to_owned()))?;
                let separator = if above.is_empty() { "" } else { "/" };
                found.push((format!("{above}{separator}{}", lossy(path)), submodule));
            }
        }
        if whole {
            Ok(found)
        } else {
            Err(Error::Odd("it has too many files to look for submodules".to_owned()))
        }
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

    #[test]
    fn a_submodule_is_what_has_the_mode_of_one() {
        let listed = b"100644 160000 0\tfile\x00160000 1 0\ta\tb\x00160000 2 0\tc\0";
        assert_eq!(gitlinks(listed).collect::<Vec<_>>(), [&b"a\tb"[..], b"c"]);
    }

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed: Vec<u8>) {
            drivers(&listed);
            gitlinks(&listed).count();
        }
    }
}
