//! [`ConfinedPath`]: a path beneath a root, and what can be done with it.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::error::Error;
use crate::folder::Folder;
#[cfg(target_os = "linux")]
use crate::folder::openat2;
use crate::git_folder;
use crate::metadata::{Metadata, PathKind};
use crate::path_text::{check_text, normalize};
use crate::resolve::{FinalSymlink, ResolvedPath, walk};
#[cfg(target_os = "linux")]
use crate::root::AllowedRoot;
use crate::root_set::RootSet;
use crate::staged::FileReplaceCondition;
use crate::target::TargetFile;

/// A path beneath an allowed root, existing or not. Every access to a file needs a `ConfinedPath`.
///
/// The path is only text until an operation opens it beneath the handle of its root. Each operation judges the path
/// anew. All operations block for as long as the file system does.
#[derive(Clone, Debug)]
pub struct ConfinedPath {
    root_set: RootSet,
    root: usize,
    /// Names and `..` only.
    relative: PathBuf,
}

impl ConfinedPath {
    pub(crate) fn new(root_set: RootSet, root: usize, relative: &Path) -> Result<Self, Error> {
        let Some(relative) = normalize(relative) else {
            return Err(root_set.outside("the absolute path given"));
        };
        Ok(Self { root_set, root, relative })
    }

    /// Returns the path as messages and results show it: relative to its root, `.` for the root itself; after the
    /// root's name and a colon if that is not the primary root.
    pub fn display_path(&self) -> String {
        self.root_set.display_path(self.root, &self.relative)
    }

    /// Returns the path beneath its root: names and `..` only, empty for the root itself.
    pub fn relative(&self) -> &Path {
        &self.relative
    }

    /// Returns the path in full, for a program that must be given one. The path is text that has not been judged yet,
    /// and never part of a message to a client.
    pub fn to_absolute(&self) -> PathBuf {
        match self.root_set.roots.get(self.root) {
            Some(root) => root.canonical.join(&self.relative),
            None => self.relative.clone(),
        }
    }

    /// Returns the path of `relative` below this one. An absolute `relative` is refused.
    ///
    /// # Errors
    /// [`Error::Invalid`] or [`Error::Outside`] for text that is no relative path.
    pub fn join<P: AsRef<OsStr> + ?Sized>(&self, relative: &P) -> Result<Self, Error> {
        let path = self.relative.join(
            normalize(Path::new(relative.as_ref()))
                .ok_or_else(|| self.root_set.outside("the absolute path given"))?,
        );
        if !path.as_os_str().is_empty() {
            check_text(path.as_os_str())?;
        }
        Ok(Self { relative: path, ..self.clone() })
    }

    /// Returns the folder this path lies in, or nothing if it is a root or ends in `..`.
    pub fn parent(&self) -> Option<Self> {
        self.relative.file_name()?;
        Some(Self { relative: self.relative.parent()?.to_owned(), ..self.clone() })
    }

    /// Returns where the path leads, links followed, in the form of [`display_path`](Self::display_path). Missing
    /// components at the end are taken as written. The result may change at any time, and an operation judges the path
    /// anew.
    ///
    /// # Errors
    /// The path leads outside, or cannot be followed.
    pub fn resolved(&self) -> Result<String, Error> {
        self.resolved_to(FinalSymlink::Follow)
    }

    /// Returns where the path leads in full, links followed, for a program that must be given one. Missing components
    /// at the end are taken as written. The result is only text, as of [`to_absolute`](Self::to_absolute).
    ///
    /// # Errors
    /// As for [`resolved`](Self::resolved).
    pub fn without_links(&self) -> Result<PathBuf, Error> {
        let (root, path) = self.resolved_beneath(FinalSymlink::Follow)?;
        Ok(self.root_set.get(root)?.canonical.join(path))
    }

    /// Returns where the name at the end of the path stands: as [`resolved`](Self::resolved), but a link in the last
    /// place is not followed.
    ///
    /// # Errors
    /// As for [`resolved`](Self::resolved).
    pub fn resolved_name(&self) -> Result<String, Error> {
        self.resolved_to(FinalSymlink::NoFollow)
    }

    fn resolved_to(&self, last: FinalSymlink) -> Result<String, Error> {
        let (root, path) = self.resolved_beneath(last)?;
        let shown = self.root_set.display_path(root, &path);
        // `name:path` is the form of the other roots.
        let first = shown.split('/').next().unwrap_or_default();
        Ok(if root == 0 && first.contains(':') { format!("./{shown}") } else { shown })
    }

    /// Returns the root that the path leads to, and the path beneath it.
    fn resolved_beneath(&self, mut last: FinalSymlink) -> Result<(usize, PathBuf), Error> {
        let mut existing = self.relative.as_path();
        let mut missing = Vec::new();
        loop {
            match walk(&self.root_set, self.root, existing, last) {
                Ok(resolved) => {
                    let mut path = resolved.path;
                    path.extend(resolved.name);
                    path.extend(missing.iter().rev());
                    return Ok((resolved.root, path));
                }
                Err(error @ Error::NotFound { .. }) => {
                    match (existing.parent(), existing.components().next_back()) {
                        (Some(parent), Some(Component::Normal(name))) => {
                            missing.push(name);
                            existing = parent;
                            // The name that is last now was on the way: it is followed.
                            last = FinalSymlink::Follow;
                        }
                        // `..` behind a name that does not exist leads nowhere.
                        _ => return Err(error),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the metadata of what the path leads to, through links.
    ///
    /// # Errors
    /// [`Error::NotFound`] with the nearest name, and everything that keeps a path from being resolved.
    pub fn metadata(&self) -> Result<Metadata, Error> {
        self.with_hint(self.stat(FinalSymlink::Follow))
    }

    /// Returns the metadata of the path itself. A link is not followed.
    ///
    /// # Errors
    /// As for [`metadata`](Self::metadata).
    pub fn link_metadata(&self) -> Result<Metadata, Error> {
        self.with_hint(self.stat(FinalSymlink::NoFollow))
    }

    /// Returns the kind of thing the path leads to, or `None` if that does not exist (a dangling link leads to
    /// nothing).
    ///
    /// # Errors
    /// A path that leads outside is an error, not absent.
    pub fn kind(&self) -> Result<Option<PathKind>, Error> {
        match self.stat(FinalSymlink::Follow) {
            Ok(metadata) => Ok(Some(metadata.kind)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns true if anything has this name, a link that leads nowhere included.
    pub fn is_there(&self) -> bool {
        self.stat(FinalSymlink::NoFollow).is_ok()
    }

    /// Returns the target of the link at this path, as it is written, or `None` if it is no link.
    ///
    /// # Errors
    /// As for [`metadata`](Self::metadata).
    pub fn read_link(&self) -> Result<Option<PathBuf>, Error> {
        let resolved = self.with_hint(self.resolve(FinalSymlink::NoFollow))?;
        let Some(name) = &resolved.name else { return Ok(None) };
        resolved.folder.read_link(name).map_err(|error| self.io_error("read", error))
    }

    /// Returns what [`kind`](Self::kind) would, if the kernel has the whole way in memory, so that nothing waits for a
    /// disk, a network or another process. `None` where that cannot be known; finding out takes two microseconds.
    pub fn cached_kind(&self) -> Option<Result<Option<PathKind>, Error>> {
        #[cfg(target_os = "linux")]
        if let Ok(root) = self.root()
            && root.is_local
        {
            use rustix::io::Errno;
            return match openat2::cached_metadata(&root.folder, &self.relative) {
                Ok(metadata) => Some(Ok(Some(metadata.kind))),
                // The absence is cached as well. Whether a link led there only the full resolution can tell.
                Err(Errno::NOENT | Errno::NOTDIR) => Some(self.kind()),
                Err(_) => None,
            };
        }
        None
    }

    /// Returns true if the whole file is in the page cache and has at most `max_bytes` bytes, so that reading it waits
    /// for nothing. The answer is a guess, because pages may be evicted meanwhile, and is false where the system does
    /// not tell. The access limit of the call is not checked, so the caller must not pass the answer on.
    #[cfg_attr(not(target_os = "linux"), allow(unused_variables, reason = "only Linux can be asked"))]
    pub fn is_in_page_cache(&self, max_bytes: u64) -> bool {
        #[cfg(target_os = "linux")]
        if let Ok(root) = self.root() {
            return root.is_local && openat2::is_in_page_cache(&root.folder, &self.relative, max_bytes);
        }
        false
    }

    /// Opens the regular file at this path to read. Anything else is refused before it is opened.
    ///
    /// # Errors
    /// [`Error::WrongKind`], [`Error::NotFound`] with the nearest name, and everything that keeps a path from
    /// being resolved.
    pub fn open_read(&self) -> Result<(File, Metadata), Error> {
        #[cfg(target_os = "linux")]
        if self.root_set.by_kernel
            && let folder = &self.root()?.folder
            && let Ok(opened) = openat2::reference(folder, &self.relative)
        {
            self.expect_kind(opened.metadata.kind, PathKind::File)?;
            // If this fails, for lack of permission or a link swapped in since, the walk below finds the reason.
            if let Ok(opened) = openat2::read(folder, &self.relative) {
                // It may have been swapped since for something that opens without waiting.
                self.expect_kind(opened.metadata.kind, PathKind::File)?;
                let metadata = opened.metadata.clone();
                return Ok((opened.into_file(), metadata));
            }
        }
        self.with_hint(self.target().and_then(|target| target.open_read()))
    }

    /// Opens the folder at this path.
    ///
    /// # Errors
    /// [`Error::WrongKind`], [`Error::NotFound`] with the nearest name, and everything that keeps a path from
    /// being resolved.
    pub fn open_folder(&self) -> Result<Folder, Error> {
        let folder = self.with_hint(self.folder_at(&self.relative))?;
        // A root is held open, so a root that was removed still opens, and is empty.
        let root = self.root_set.get(self.root)?;
        if root.is_gone() { Err(Error::RootGone { root: root.name.clone() }) } else { Ok(folder) }
    }

    /// Opens the folder at this path and returns its handle, for a child process's working directory.
    ///
    /// # Errors
    /// As for [`open_folder`](Self::open_folder).
    #[cfg(unix)]
    pub fn folder_handle(&self) -> Result<std::os::fd::OwnedFd, Error> {
        Ok(self.open_folder()?.into_handle())
    }

    /// Opens the folder at this path and returns it with its path free of links.
    pub(crate) fn open_canonical(&self) -> Result<(Folder, PathBuf), Error> {
        let resolved = walk(&self.root_set, self.root, &self.relative, FinalSymlink::Follow)?;
        let mut path = self.root_set.get(resolved.root)?.canonical.join(&resolved.path);
        let Some(name) = resolved.name else { return Ok((resolved.folder, path)) };
        let folder = self.enter(&resolved.folder, &name)?;
        path.push(name);
        Ok((folder, path))
    }

    /// Returns the path, free of links, of the nearest existing folder above this path.
    fn canonical_parent(&self) -> Option<PathBuf> {
        let mut parent = self.parent()?;
        loop {
            match parent.open_canonical() {
                Ok((_, path)) => return Some(path),
                Err(_) => parent = parent.parent()?,
            }
        }
    }

    /// Returns what this path leads to, through links, held by its folder: to read and replace what is there.
    ///
    /// # Errors
    /// [`Error::WrongKind`] for a root or a path that ends in `..`; [`Error::NotFound`] if a folder on the way
    /// is missing.
    pub fn target(&self) -> Result<TargetFile, Error> {
        self.target_at(FinalSymlink::Follow)
    }

    /// Returns what has this path's own name, which may be a link: as [`target`](Self::target), but a link at the end is
    /// not followed.
    ///
    /// # Errors
    /// As for [`target`](Self::target).
    pub fn own_target(&self) -> Result<TargetFile, Error> {
        self.target_at(FinalSymlink::NoFollow)
    }

    fn target_at(&self, last: FinalSymlink) -> Result<TargetFile, Error> {
        // By the walk, which tells where links lead: a change is judged by that.
        let resolved = walk(&self.root_set, self.root, &self.relative, last)?;
        match resolved.name {
            Some(name) => Ok(TargetFile::new(
                self.root_set.clone(),
                resolved.root,
                resolved.path,
                resolved.folder,
                name,
                self.display_path(),
            )),
            None => Err(self.wrong_kind(PathKind::Directory, "a file")),
        }
    }

    /// Refuses a change of this path by any program, if the path is a protected file, a folder on the way to a
    /// protected file, or outside the limits of the call. The path need not exist.
    ///
    /// # Errors
    /// [`Error::Protected`], [`Error::Io`] with the reason, and everything that keeps a path from being
    /// resolved.
    pub fn check_changeable(&self) -> Result<(), Error> {
        match self.own_target() {
            Ok(target) => target.check_unprotected(),
            // Its folder does not exist, so it can only be judged by its names.
            Err(error) if error.is_not_found() => {
                let protected = &self.root_set.protected;
                protected.check_missing(&self.relative, &self.display_path())?;
                let place = self.root_set.get(self.root)?.canonical.join(&self.relative);
                protected.check_place(&place, &self.display_path())?;
                self.parent().map_or(Ok(()), |folder| folder.check_changeable())
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the whole file, creating it and the folders it lies in; see [`TargetFile::replace`].
    ///
    /// # Errors
    /// As for [`TargetFile::replace`].
    pub fn write(&self, content: &[u8]) -> Result<(), Error> {
        self.create_parents()?;
        let target = self.target()?;
        let _lock = target.lock();
        target.replace(content, FileReplaceCondition::Anything)
    }

    /// Removes the file, or the link itself, at this path. Folders are refused.
    ///
    /// # Errors
    /// [`Error::WrongKind`], [`Error::NotFound`], [`Error::Protected`].
    pub fn remove_file(&self) -> Result<(), Error> {
        let target = self.with_hint(self.own_target())?;
        let _lock = target.lock();
        self.with_hint(target.remove_file())
    }

    /// Creates the folder and its missing parents. Returns true if the folder was created. An existing folder is no
    /// error.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if a file has the name, [`Error::NotAFolder`] if a parent is a file,
    /// [`Error::GitFolder`].
    pub fn create_folder_all(&self) -> Result<bool, Error> {
        Ok(!self.create_folders()?.is_empty())
    }

    /// Removes the folder at this path if it is empty, and says whether it was.
    pub fn remove_empty_folder(&self) -> bool {
        let removed = self.own_target().map(|target| target.remove_empty_folder());
        matches!(removed, Ok(Ok(())))
    }

    /// Creates the folder and those it lies in. Returns those that were missing, the outermost first.
    fn create_folders(&self) -> Result<Vec<Self>, Error> {
        let mut missing = Vec::new();
        let mut existing = self.relative.as_path();
        let mut folder = loop {
            match self.folder_at(existing) {
                Ok(folder) => break folder,
                Err(Error::NotFound { .. }) => match (existing.parent(), existing.components().next_back()) {
                    (Some(parent), Some(Component::Normal(name))) => {
                        missing.push(name);
                        existing = parent;
                    }
                    _ => return Err(Error::NotFound { path: self.display_path(), hint: None }),
                },
                Err(error) => return Err(error),
            }
        };
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        git_folder::check_new_names(missing.iter().copied(), &self.display_path())?;
        let mut place = self.with_relative(existing);
        // Where the links on the way lead.
        let mut resolved = walk(&self.root_set, self.root, existing, FinalSymlink::Follow)?;
        resolved.path.extend(resolved.name);
        let mut created = Vec::new();
        for &name in missing.iter().rev() {
            self.root_set.protected.check_entry(&folder, name, &self.display_path())?;
            let root = self.root_set.get(resolved.root)?;
            let absolute = root.canonical.join(&resolved.path).join(name);
            self.root_set.protected.check_place(&absolute, &self.display_path())?;
            git_folder::check_change(root, &resolved.path, &folder, name, &self.display_path())?;
            match folder.create_child(name) {
                Ok(()) => {}
                // Another process created it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(self.io_error("create", error)),
            }
            // Opened from its parent's handle and without following links: a name that was swapped for a link is
            // refused.
            folder = folder.child(name).map_err(|error| self.io_error("create", error))?;
            place = place.with_relative(&place.relative.join(name));
            resolved.path.push(name);
            created.push(place.clone());
        }
        Ok(created)
    }

    /// Refuses a path that does not exist, whose folders may be missing too, if creating it would make a part of a git
    /// directory, or something in a protected folder.
    ///
    /// # Errors
    /// [`Error::GitFolder`], [`Error::Protected`], and everything that keeps a folder that exists from being resolved.
    pub fn check_creatable(&self) -> Result<(), Error> {
        let mut missing = Vec::new();
        let mut existing = self.relative.as_path();
        let folder = loop {
            match self.folder_at(existing) {
                Ok(folder) => break folder,
                Err(error) => match (existing.parent(), existing.components().next_back()) {
                    (Some(parent), Some(Component::Normal(name))) if error.is_not_found() => {
                        missing.push(name);
                        existing = parent;
                    }
                    _ => return Err(error),
                },
            }
        };
        git_folder::check_new_names(missing.iter().copied(), &self.display_path())?;
        let Some(outermost) = missing.last() else { return Ok(()) };
        let mut resolved = walk(&self.root_set, self.root, existing, FinalSymlink::Follow)?;
        resolved.path.extend(resolved.name);
        let root = self.root_set.get(resolved.root)?;
        let mut place = root.canonical.join(&resolved.path);
        for &name in missing.iter().rev() {
            place.push(name);
            self.root_set.protected.check_place(&place, &self.display_path())?;
        }
        git_folder::check_change(root, &resolved.path, &folder, outermost, &self.display_path())
    }

    /// Creates the missing parents of this path. Returns the created folders, the outermost first.
    ///
    /// # Errors
    /// As for [`create_folder_all`](Self::create_folder_all).
    pub fn create_parents(&self) -> Result<Vec<Self>, Error> {
        match self.parent() {
            // Usually the folder exists, which one resolution tells.
            Some(parent) if self.resolve(FinalSymlink::NoFollow).is_err() => {
                // The name is new as well.
                git_folder::check_new_names(self.relative.file_name(), &self.display_path())?;
                parent.create_folders()
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Renames what is at this path, a link as itself, to `destination`. Without `overwrite` nothing is ever
    /// replaced; with it, a file is, never a folder. Between file systems a file is copied and then removed.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`], [`Error::NotFound`], [`Error::Protected`], [`Error::IntoItself`], or
    /// [`Error::Io`]: a folder cannot move to another file system.
    pub fn rename_to(&self, destination: &Self, overwrite: bool) -> Result<(), Error> {
        let source = self.with_hint(self.own_target())?;
        // Checked before folders are created for a source that does not exist.
        let found =
            self.with_hint(source.metadata().and_then(|found| {
                found.ok_or_else(|| self.io_error("move", io::ErrorKind::NotFound.into()))
            }))?;
        source.check_changeable()?;
        if found.kind == PathKind::Directory
            && let (_, source_path) = self.open_canonical()?
            && destination.canonical_parent().is_some_and(|parent| parent.starts_with(source_path))
        {
            // A protected file is refused as protected, wherever it would have moved.
            source.check_unprotected()?;
            if let Ok(target) = destination.own_target() {
                target.check_unprotected()?;
            }
            return Err(Error::IntoItself { path: self.display_path() });
        }
        destination.create_parents()?;
        let _lock = source.lock();
        source.rename_to(&destination.own_target()?, overwrite)
    }

    fn stat(&self, last: FinalSymlink) -> Result<Metadata, Error> {
        #[cfg(target_os = "linux")]
        if last == FinalSymlink::Follow
            && self.root_set.by_kernel
            && let Ok(opened) = openat2::reference(&self.root()?.folder, &self.relative)
        {
            return Ok(opened.metadata);
        }
        let resolved = self.resolve(last)?;
        match &resolved.name {
            Some(name) => resolved.folder.metadata(name),
            None => resolved.folder.own_metadata(),
        }
        .map_err(|error| self.io_error("look at", error))
    }

    fn folder_at(&self, relative: &Path) -> Result<Folder, Error> {
        #[cfg(target_os = "linux")]
        if self.root_set.by_kernel {
            match openat2::folder(&self.root()?.folder, relative) {
                Ok(folder) => return Ok(folder),
                // The kernel met no link that leaves before the missing name, so the walk would say the same, more
                // slowly.
                Err(error @ rustix::io::Errno::NOENT) => return Err(self.io_error("open", error.into())),
                Err(_) => {}
            }
        }
        let resolved = walk(&self.root_set, self.root, relative, FinalSymlink::Follow)?;
        match resolved.name {
            Some(name) => self.enter(&resolved.folder, &name),
            None => Ok(resolved.folder),
        }
    }

    fn enter(&self, folder: &Folder, name: &OsStr) -> Result<Folder, Error> {
        folder.child(name).map_err(|error| match folder.metadata(name) {
            Ok(metadata) if metadata.kind != PathKind::Directory => {
                self.wrong_kind(metadata.kind, "a directory")
            }
            _ => self.io_error("open", error),
        })
    }

    /// Finds where this path leads: by one system call if it does not end in a link. The walk finds out the rest, and
    /// the reasons of failures.
    fn resolve(&self, last: FinalSymlink) -> Result<ResolvedPath, Error> {
        #[cfg(target_os = "linux")]
        if self.root_set.by_kernel
            && let (Some(parent), Some(name)) = (self.relative.parent(), self.relative.file_name())
            && let Ok(folder) = openat2::folder(&self.root()?.folder, parent)
        {
            let is_link = last == FinalSymlink::Follow && matches!(folder.read_link(name), Ok(Some(_)));
            if !is_link {
                let name = Some(name.to_owned());
                return Ok(ResolvedPath { folder, name, root: self.root, path: parent.to_owned() });
            }
        }
        walk(&self.root_set, self.root, &self.relative, last)
    }

    #[cfg(target_os = "linux")]
    fn root(&self) -> Result<&AllowedRoot, Error> {
        self.root_set.get(self.root)
    }

    #[cfg(target_os = "linux")]
    fn expect_kind(&self, found: PathKind, expected: PathKind) -> Result<(), Error> {
        if found == expected { Ok(()) } else { Err(self.wrong_kind(found, expected.noun())) }
    }

    fn wrong_kind(&self, found: PathKind, expected: &'static str) -> Error {
        Error::WrongKind { path: self.display_path(), found, expected }
    }

    fn io_error(&self, action: &'static str, error: io::Error) -> Error {
        self.root_set.io_error(self.root, action, &self.display_path(), error)
    }

    /// Adds to "does not exist" which folder is missing, or the nearest name there is.
    fn with_hint<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        match result {
            Err(Error::NotFound { path, hint: None }) => Err(Error::NotFound { path, hint: self.hint() }),
            other => other,
        }
    }

    fn hint(&self) -> Option<String> {
        let mut existing = self.relative.parent()?;
        let folder = loop {
            match self.folder_at(existing) {
                Ok(folder) => break folder,
                Err(_) => existing = existing.parent()?,
            }
        };
        let below = self.relative.strip_prefix(existing).ok()?;
        let missing = below.components().next()?.as_os_str();
        let nearest = crate::hint::nearest_name(&folder, missing).map(|name| {
            let near = existing.join(name);
            // Not `join`, which would end the path in a separator where nothing is left.
            let nearest: PathBuf = near.components().chain(below.components().skip(1)).collect();
            if self.with_relative(&nearest).stat(FinalSymlink::Follow).is_ok() { nearest } else { near }
        });
        let missing_folder = (below.components().count() > 1).then(|| {
            format!(": there is no `{}`", self.root_set.display_path(self.root, &existing.join(missing)))
        });
        let nearest =
            nearest.map(|path| format!("; did you mean `{}`?", self.root_set.display_path(self.root, &path)));
        match (missing_folder, nearest) {
            (None, None) => None,
            (folder, nearest) => Some(folder.unwrap_or_default() + &nearest.unwrap_or_default()),
        }
    }

    fn with_relative(&self, relative: &Path) -> Self {
        Self { relative: relative.to_owned(), ..self.clone() }
    }
}

impl fmt::Display for ConfinedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display_path())
    }
}
