//! A repository beneath the roots of a workspace, found and judged without git.

use super::discovery::{find_git_dir, follow_pointer, is_git_dir};
use super::error::Error;
use super::layout::{
    check_kind, check_links_below, check_links_in, check_objects, for_each_entry, has_other_owner,
    may_configure_programs,
};
use super::operation::{OperationProgress, UnfinishedOperation};
use super::path::path_from_bytes;
use super::printed_text::lossy;
use super::repository_files::{read_small_file, real_path};
use crate::workspace::{ConfinedPath, PathKind, Workspace, printable};
use std::ffi::OsStr;
use std::path::{Component, Path};
use std::sync::Arc;

/// A repository beneath the roots of a workspace, none of whose parts lies outside.
// Found here and not by git: git would read the configuration on the way, and follow `core.worktree` and `.git`
// files out of the roots.
#[derive(Clone, Debug)]
pub struct Repository {
    pub(super) workspace: Arc<Workspace>,
    /// The folder that was named, without links. git runs in it.
    pub(super) folder: ConfinedPath,
    /// The git directory of this work tree: `HEAD`, `index`.
    pub(super) git_dir: ConfinedPath,
    /// The git directory that all work trees share: objects, branches, configuration.
    pub(super) common_dir: ConfinedPath,
    /// The top folder of the work tree; none in a bare repository.
    pub(super) top_level: Option<ConfinedPath>,
    /// `folder` relative to `top_level`, with slashes; empty at the top.
    pub(super) prefix: Vec<u8>,
    /// True if the configuration may name filters or merge drivers: then git is asked for them before it runs.
    pub(super) may_configure_programs: bool,
    /// True if another user owns a part of it: then git is asked if it trusts the repository.
    pub(super) has_other_owner: bool,
}

/// Files that git reads unasked, in the top folder.
const FILES_READ_IN_WORK_TREE: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];
/// Files that git reads unasked, in the common directory.
const FILES_READ_IN_COMMON_DIR: [&str; 2] = ["info/exclude", "info/attributes"];

/// The most references and logs that are looked at before git writes.
const MAX_REFERENCES: usize = 200_000;

impl Repository {
    /// Returns the repository that the folder `path` is in; the first root where no path is given. Folders above the
    /// root are not searched.
    ///
    /// # Errors
    /// There is none, or it leads outside the roots.
    pub fn discover(workspace: &Arc<Workspace>, path: Option<&str>) -> Result<Self, Error> {
        let named = workspace.locate(path.unwrap_or("."))?;
        named.open_folder()?;
        let folder = real_path(workspace, &named.to_absolute(), || "the folder".to_owned())?;
        let mut next = Some(folder.clone());
        while let Some(current) = next {
            if let Some(git_dir) = find_git_dir(workspace, &current)? {
                return Self::checked(workspace, folder, git_dir, Some(current));
            }
            if is_git_dir(&current)? {
                return Self::checked(workspace, folder, current, None);
            }
            next = current.parent();
        }
        match levels_to_repository_above(&folder) {
            Some(levels) => Err(Error::RepositoryAboveRoots {
                folder: named.display_path(),
                root: vec![".."; levels].join("/"),
            }),
            None => Err(Error::NoRepository(named.display_path())),
        }
    }

    /// Checks all parts of the repository that git would read.
    fn checked(
        workspace: &Arc<Workspace>,
        folder: ConfinedPath,
        git_dir: ConfinedPath,
        top_level: Option<ConfinedPath>,
    ) -> Result<Self, Error> {
        check_links_in(&git_dir)?;
        let common_dir = match read_small_file(&git_dir.join("commondir")?)? {
            Some(text) => {
                let common_dir = follow_pointer(workspace, &git_dir, &text, "commondir")?;
                check_links_in(&common_dir)?;
                common_dir
            }
            None => git_dir.clone(),
        };
        check_objects(workspace, &common_dir.join("objects")?, 0)?;
        let mut configures_programs = false;
        for (parent, name) in
            [(&common_dir, "config"), (&common_dir, "config.worktree"), (&git_dir, "config.worktree")]
        {
            configures_programs |= may_configure_programs(&parent.join(name)?)?;
        }
        let read_unasked = top_level
            .iter()
            .flat_map(|top| FILES_READ_IN_WORK_TREE.map(|name| top.join(name)))
            .chain(FILES_READ_IN_COMMON_DIR.map(|name| common_dir.join(name)));
        for path in read_unasked {
            let path = path?;
            // A link that leads outside is one that git does not follow, or has been refused already.
            if let Ok(Some(kind)) = path.kind() {
                check_kind(&path, kind)?;
            }
        }
        let dot_git = top_level.as_ref().map(|top| top.join(".git")).transpose()?;
        let has_other_owner =
            [top_level.as_ref(), dot_git.as_ref(), Some(&git_dir)].into_iter().flatten().any(has_other_owner);
        let prefix = match &top_level {
            Some(top_level) => {
                let below = folder.relative().strip_prefix(top_level.relative()).unwrap_or(Path::new(""));
                let names: Vec<_> = below.iter().map(OsStr::as_encoded_bytes).collect();
                names.join(&b'/')
            }
            None => Vec::new(),
        };
        Ok(Self {
            workspace: Arc::clone(workspace),
            folder,
            git_dir,
            common_dir,
            top_level,
            prefix,
            may_configure_programs: configures_programs,
            has_other_owner,
        })
    }

    /// Returns true if the history of this clone was cut: the parents of some commits are missing.
    pub(super) fn is_shallow(&self) -> Result<bool, Error> {
        Ok(self.common_dir.join("shallow")?.is_there())
    }

    /// Returns true if the work tree has the file that names its submodules.
    pub(super) fn names_submodules(&self) -> Result<bool, Error> {
        match &self.top_level {
            Some(top) => Ok(top.join(".gitmodules")?.is_there()),
            None => Ok(false),
        }
    }

    /// Returns the repository of the submodule at `path` beneath the top folder, if it is checked out.
    pub(super) fn submodule(&self, path: &[u8]) -> Result<Option<Self>, Error> {
        let Some(top_level) = &self.top_level else { return Ok(None) };
        let folder = self.locate(top_level, path)?;
        let Some(git_dir) = find_git_dir(&self.workspace, &folder)? else { return Ok(None) };
        let folder = real_path(&self.workspace, &folder.to_absolute(), || format!("`{folder}`"))?;
        Self::checked(&self.workspace, folder.clone(), git_dir, Some(folder)).map(Some)
    }

    /// Refuses a submodule, named `name` in the error, whose configuration (`core.worktree`, `value`) places its files
    /// in another folder than the one where it is checked out.
    pub(super) fn check_work_tree(&self, value: &[u8], name: &str) -> Result<(), Error> {
        let configured = self.git_dir.to_absolute().join(path_from_bytes(value)?).canonicalize().ok();
        let expected = self.top_level.as_ref().and_then(|top| top.to_absolute().canonicalize().ok());
        if configured.is_some() && configured == expected {
            return Ok(());
        }
        let name = printable(OsStr::new(name));
        Err(Error::UnsupportedLayout(format!(
            "the configuration of the submodule `{name}` (core.worktree) places its files elsewhere"
        )))
    }

    /// Returns the top folder of a repository that is not bare.
    ///
    /// # Errors
    /// [`Error::BareRepository`] with `action`.
    pub(super) fn top_level(&self, action: &'static str) -> Result<&ConfinedPath, Error> {
        self.top_level.as_ref().ok_or(Error::BareRepository(action))
    }

    /// Locates a path beneath the top folder, given as git prints it.
    pub(super) fn locate(&self, top_level: &ConfinedPath, path: &[u8]) -> Result<ConfinedPath, Error> {
        Ok(top_level.join(&*path_from_bytes(path)?)?)
    }

    /// Refuses to change the repository where the caller may not, or where git would write outside the roots.
    pub(super) fn check_writable(&self) -> Result<(), Error> {
        self.git_dir.join("index")?.check_changeable()?;
        self.common_dir.join("objects")?.check_changeable()?;
        // git follows links to references and logs when it writes them.
        let mut remaining = MAX_REFERENCES;
        for parent in [&self.git_dir, &self.common_dir] {
            for name in ["refs", "logs"] {
                let folder = parent.join(name)?;
                if folder.kind()? == Some(PathKind::Directory) {
                    check_links_below(&folder, &mut remaining)?;
                }
            }
        }
        Ok(())
    }

    /// Refuses to change any of `paths`, which are beneath the top folder, where it is protected.
    pub(super) fn check_changes<'a>(
        &self,
        top_level: &ConfinedPath,
        paths: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), Error> {
        paths.into_iter().try_for_each(|path| Ok(self.locate(top_level, path)?.check_changeable()?))
    }

    /// Returns how far a rebase, or `git am`, has come; `None` where its files do not tell.
    ///
    /// # Errors
    /// A file of it leads outside, or is too long.
    pub(super) fn operation_progress(&self) -> Result<Option<OperationProgress>, Error> {
        // git has one folder or the other: <https://git-scm.com/docs/git-rebase#_miscellaneous_differences>.
        for (folder, step, steps) in [("rebase-merge", "msgnum", "end"), ("rebase-apply", "next", "last")] {
            let folder = self.git_dir.join(folder)?;
            if folder.kind()? != Some(PathKind::Directory) {
                continue;
            }
            let text = |name: &str| -> Result<Option<String>, Error> {
                let text = read_small_file(&folder.join(name)?)?;
                Ok(text.map(|text| lossy(text.trim_ascii())))
            };
            let number = |name: &str| Ok::<_, Error>(text(name)?.and_then(|text| text.parse().ok()));
            return Ok(Some(OperationProgress {
                branch: text("head-name")?
                    .and_then(|name| Some(name.strip_prefix("refs/heads/")?.to_owned())),
                onto: text("onto")?,
                step: number(step)?,
                steps: number(steps)?,
            }));
        }
        Ok(None)
    }

    /// Returns the operation that was begun and is not finished.
    pub(super) fn unfinished_operation(&self) -> Result<Option<UnfinishedOperation>, Error> {
        // One listing instead of a look for each file: mostly there is none of them.
        let mut names = Vec::new();
        for_each_entry(&self.git_dir, |entry| {
            names.push(entry.name);
            Ok(())
        })?;
        let exists = |name: &str| names.iter().any(|entry| entry == name);
        // Rebases first: they pick commits one by one, which leaves the mark of a cherry-pick too.
        if exists("rebase-merge") {
            return Ok(Some(UnfinishedOperation::Rebase));
        }
        if exists("rebase-apply") {
            let is_am = self.git_dir.join("rebase-apply/applying")?.kind()?.is_some();
            return Ok(Some(if is_am { UnfinishedOperation::Am } else { UnfinishedOperation::Rebase }));
        }
        let marks = [
            ("MERGE_HEAD", UnfinishedOperation::Merge),
            ("CHERRY_PICK_HEAD", UnfinishedOperation::CherryPick),
            ("REVERT_HEAD", UnfinishedOperation::Revert),
            ("BISECT_LOG", UnfinishedOperation::Bisect),
        ];
        Ok(marks.into_iter().find(|(name, _)| exists(name)).map(|(_, operation)| operation))
    }
}

/// Returns how many folders above the root of `folder` the top of a repository lies. Only its existence is looked at: it
/// tells what root is missing, and nothing in it is read.
fn levels_to_repository_above(folder: &ConfinedPath) -> Option<usize> {
    let mut root = folder.to_absolute();
    for _ in folder.relative().components().filter(|part| matches!(part, Component::Normal(_))) {
        root.pop();
    }
    let above = root.ancestors().skip(1).position(|above| above.join(".git").exists())?;
    Some(above + 1)
}
