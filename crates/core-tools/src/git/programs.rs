//! Finds the programs that a repository's own configuration names and that no option of git turns off: filters and
//! merge drivers.

use super::error::Error;
use super::git_process::{Git, GitOutput};
use super::invocation::{ConfigOverrides, GitAccess, GitInvocation};
use super::printed_text::{lossy, nul_fields, printable_line};
use super::repository::Repository;
use tokio_util::sync::CancellationToken;

/// The most submodules that are checked before git writes, on all levels together.
const MAX_SUBMODULES: usize = 1_000;
/// The most output of a list of the index, in bytes: a million paths fit.
const MAX_INDEX_BYTES: usize = 256 * 1024 * 1024;

/// One setting of the configuration.
pub(super) struct ConfigSetting<'a> {
    /// True if the repository itself sets it. The user's settings and the system's are trusted.
    pub(super) is_own: bool,
    /// Its key; section and last part are in lower case.
    pub(super) key: String,
    /// Its value. `None` for a key without `=`, which means true.
    pub(super) value: Option<&'a [u8]>,
}

/// Parses `git config --null --list --show-scope`, in the order in which git reads it: the last of a key counts. What the
/// command that lists it was given itself is left out.
pub(super) fn config_settings(listed: &[u8]) -> impl Iterator<Item = ConfigSetting<'_>> {
    let mut fields = nul_fields(listed);
    let entries = std::iter::from_fn(move || Some((fields.next()?, fields.next()?)));
    entries.filter(|(scope, _)| *scope != b"command").map(|(scope, entry)| {
        let mut parts = entry.splitn(2, |byte| *byte == b'\n');
        let key = lossy(parts.next().unwrap_or_default());
        ConfigSetting { is_own: matches!(scope, b"local" | b"worktree"), key, value: parts.next() }
    })
}

/// Returns keys and values that the repository itself sets.
fn repository_settings(listed: &[u8]) -> impl Iterator<Item = (String, Option<&[u8]>)> {
    config_settings(listed).filter(|setting| setting.is_own).map(|setting| (setting.key, setting.value))
}

/// Returns the keys of [`repository_settings`] that name filters and merge drivers.
fn program_keys(listed: &[u8]) -> Vec<String> {
    let mut keys = Vec::new();
    for (key, value) in repository_settings(listed) {
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

/// Parses `git ls-files --stage -z`: the paths of submodules, which have a mode of their own.
fn gitlinks(listed: &[u8]) -> impl Iterator<Item = &[u8]> {
    nul_fields(listed).filter(|entry| entry.starts_with(b"160000 ")).filter_map(|entry| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        entry.get(tab + 1..)
    })
}

impl Git {
    /// Returns the configuration that holds in the repository.
    pub(super) async fn configuration(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<Vec<u8>, Error> {
        let words = ["config", "--null", "--list", "--show-scope", "--includes"];
        let GitOutput { bytes: listed, is_complete } = self
            .run_checked(
                "reading the configuration",
                GitInvocation::new(repository, GitAccess::Read, cancel, &words),
            )
            .await?;
        if is_complete {
            Ok(listed)
        } else {
            Err(Error::TooLarge("its configuration is too long".to_owned()))
        }
    }

    /// Returns the keys by which the repository itself configures programs.
    async fn configured_programs(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, Error> {
        if !repository.may_configure_programs {
            return Ok(Vec::new());
        }
        Ok(program_keys(&self.configuration(repository, cancel).await?))
    }

    /// Returns settings with which reading runs no filter of the repository. Files that a filter would change
    /// then show as modified, if their times have changed.
    pub(super) async fn filter_overrides(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<ConfigOverrides, Error> {
        let mut overrides = Vec::new();
        for key in self.configured_programs(repository, cancel).await? {
            if let Some((section, _)) = key.rsplit_once('.')
                && section.starts_with("filter.")
            {
                // Its exact name is needed to turn a filter off.
                if section.contains('\u{fffd}') {
                    return Err(Error::UnsupportedLayout(
                        "its configuration names a filter that is not UTF-8".to_owned(),
                    ));
                }
                // An empty `process` turns `clean` and `smudge` off as well.
                overrides.push((format!("{section}.process"), "".into()));
                overrides.push((format!("{section}.required"), "false".into()));
            }
        }
        Ok(overrides)
    }

    /// Refuses where the repository's own configuration, or that of a submodule, names filters or merge drivers.
    // Commands that write ask each submodule if its files have changed, and no option keeps all of them from that:
    // `git add` has none, and `.gitmodules` overrules the configuration.
    pub(super) async fn refuse_configured_programs(
        &self,
        repository: &Repository,
        action: &'static str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let mut keys = self.configured_programs(repository, cancel).await?;
        let mut remaining = MAX_SUBMODULES;
        let mut pending = self.submodules(repository, "", &mut remaining, cancel).await?;
        while let Some((path, submodule)) = pending.pop() {
            let listed = self.configuration(&submodule, cancel).await?;
            for (_, value) in repository_settings(&listed).filter(|(key, _)| key == "core.worktree") {
                submodule.check_work_tree(value.unwrap_or_default(), &path)?;
            }
            keys.extend(
                program_keys(&listed).into_iter().map(|key| format!("{key} of {}", printable_line(&path))),
            );
            pending.extend(self.submodules(&submodule, &path, &mut remaining, cancel).await?);
        }
        if keys.is_empty() { Ok(()) } else { Err(Error::ConfiguredPrograms { action, keys }) }
    }

    /// Returns the submodules that are checked out in a repository, with their paths. `parent` is the path of the
    /// repository itself. Each takes one of `remaining`.
    async fn submodules(
        &self,
        repository: &Repository,
        parent: &str,
        remaining: &mut usize,
        cancel: &CancellationToken,
    ) -> Result<Vec<(String, Repository)>, Error> {
        let words = ["ls-files", "--stage", "-z", "--full-name", "--", ":/"];
        let invocation =
            GitInvocation::new(repository, GitAccess::Read, cancel, &words).max_output_bytes(MAX_INDEX_BYTES);
        let GitOutput { bytes: listed, is_complete } =
            self.run_checked("looking for submodules", invocation).await?;
        let mut found = Vec::new();
        for path in gitlinks(&listed) {
            if let Some(submodule) = repository.submodule(path)? {
                *remaining = remaining
                    .checked_sub(1)
                    .ok_or_else(|| Error::TooLarge("it has too many submodules".to_owned()))?;
                let separator = if parent.is_empty() { "" } else { "/" };
                found.push((format!("{parent}{separator}{}", lossy(path)), submodule));
            }
        }
        if is_complete {
            Ok(found)
        } else {
            Err(Error::TooLarge("it has too many files to look for submodules".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_repositorys_own_filters_and_merge_drivers_count() {
        let listed = b"system\0filter.lfs.clean\ngit-lfs clean\0global\0filter.x.process\nx\0\
            local\0core.bare\nfalse\0local\0filter.a.b.clean\nevil\0worktree\0merge.m.driver\nevil\0\
            local\0filter.off.smudge\n\0local\0filter.bool.clean\0local\0filter.x.required\ntrue\0";
        assert_eq!(program_keys(listed), ["filter.a.b.clean", "merge.m.driver"]);
    }

    #[test]
    fn a_submodule_is_what_has_the_mode_of_one() {
        let listed = b"100644 160000 0\tfile\x00160000 1 0\ta\tb\x00160000 2 0\tc\0";
        assert_eq!(gitlinks(listed).collect::<Vec<_>>(), [&b"a\tb"[..], b"c"]);
    }

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed: Vec<u8>) {
            program_keys(&listed);
            gitlinks(&listed).count();
        }
    }
}
