//! [`ConfinedPath`]: a path beneath a root, and what can be done with it.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::resolve::{Last, Place, walk};
use super::{Error, Expect, Folder, Kind, Metadata, Target, Workspace, check_text, plain};
#[cfg(target_os = "linux")]
use super::{Root, folder::kernel};

/// A path beneath an allowed root, existing or not. The only way to a file.
///
/// It is text until an operation opens it beneath its root's handle; each operation judges the path anew.
/// All operations block for as long as the file system does.
#[derive(Clone, Debug)]
pub struct ConfinedPath {
    workspace: Workspace,
    root: usize,
    /// Names and `..` only.
    relative: PathBuf,
}

impl ConfinedPath {
    pub(super) fn new(workspace: Workspace, root: usize, relative: &Path) -> Result<Self, Error> {
        let Some(plain) = plain(relative) else {
            return Err(Error::Outside { given: "the absolute path given".to_owned() });
        };
        Ok(Self { workspace, root, relative: plain })
    }

    /// The path as messages and results show it: relative to its root, `.` for the root itself; after the
    /// root's name and a colon if that is not the primary root.
    pub fn shown(&self) -> String {
        self.workspace.show(self.root, &self.relative)
    }

    /// The path beneath its root: names and `..` only, empty for the root itself.
    pub fn relative(&self) -> &Path {
        &self.relative
    }

    /// The path in full, for a program that must be given one. It is text, not yet judged, and never part
    /// of a message to a client.
    pub fn to_absolute(&self) -> PathBuf {
        match self.workspace.roots.get(self.root) {
            Some(root) => root.canonical.join(&self.relative),
            None => self.relative.clone(),
        }
    }

    /// The path of `relative` below this one. An absolute `relative` is refused.
    ///
    /// # Errors
    /// [`Error::Invalid`] or [`Error::Outside`] for text that is no relative path.
    pub fn join<P: AsRef<OsStr> + ?Sized>(&self, relative: &P) -> Result<Self, Error> {
        let path = self.relative.join(
            plain(Path::new(relative.as_ref()))
                .ok_or_else(|| Error::Outside { given: "the absolute path given".to_owned() })?,
        );
        if !path.as_os_str().is_empty() {
            check_text(path.as_os_str())?;
        }
        Ok(Self { relative: path, ..self.clone() })
    }

    /// The folder this path lies in, or nothing if it is a root or ends in `..`.
    pub fn parent(&self) -> Option<Self> {
        self.relative.file_name()?;
        Some(Self { relative: self.relative.parent()?.to_owned(), ..self.clone() })
    }

    /// Where the path leads, links followed, in the form of [`shown`](Self::shown). What is missing at its end
    /// is taken as it is written. True at this moment: an operation judges the path anew.
    ///
    /// # Errors
    /// The path leads outside, or cannot be followed.
    pub fn resolved(&self) -> Result<String, Error> {
        self.resolved_to(Last::Follow)
    }

    /// Where the name at the end of the path stands: as [`resolved`](Self::resolved), but a link in the last place
    /// is not followed.
    ///
    /// # Errors
    /// As for [`resolved`](Self::resolved).
    pub fn resolved_name(&self) -> Result<String, Error> {
        self.resolved_to(Last::Keep)
    }

    fn resolved_to(&self, last: Last) -> Result<String, Error> {
        let mut last = last;
        let mut existing = self.relative.as_path();
        let mut missing = Vec::new();
        loop {
            match walk(&self.workspace, self.root, existing, last) {
                Ok(place) => {
                    let mut path = place.path;
                    path.extend(place.name);
                    path.extend(missing.iter().rev());
                    let shown = self.workspace.show(place.root, &path);
                    // `name:path` is the form of the other roots.
                    let first = shown.split('/').next().unwrap_or_default();
                    return Ok(if place.root == 0 && first.contains(':') {
                        format!("./{shown}")
                    } else {
                        shown
                    });
                }
                Err(error @ Error::NotFound { .. }) => {
                    match (existing.parent(), existing.components().next_back()) {
                        (Some(parent), Some(Component::Normal(name))) => {
                            missing.push(name);
                            existing = parent;
                            // What is left is on the way now.
                            last = Last::Follow;
                        }
                        // Above what does not exist is nowhere.
                        _ => return Err(error),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// What the path leads to, through links.
    ///
    /// # Errors
    /// [`Error::NotFound`] with the nearest name, and everything that keeps a path from being resolved.
    pub fn metadata(&self) -> Result<Metadata, Error> {
        self.with_hint(self.look(Last::Follow))
    }

    /// What the path itself is, be it a link.
    ///
    /// # Errors
    /// As for [`metadata`](Self::metadata).
    pub fn link_metadata(&self) -> Result<Metadata, Error> {
        self.with_hint(self.look(Last::Keep))
    }

    /// What kind of thing the path leads to, or nothing if that does not exist (a dangling link neither).
    ///
    /// # Errors
    /// A path that leads outside is an error, not absent.
    pub fn kind(&self) -> Result<Option<Kind>, Error> {
        match self.look(Last::Follow) {
            Ok(metadata) => Ok(Some(metadata.kind)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where the link at this path leads, as it is written, or nothing if it is no link.
    ///
    /// # Errors
    /// As for [`metadata`](Self::metadata).
    pub fn read_link(&self) -> Result<Option<PathBuf>, Error> {
        let place = self.with_hint(self.place(Last::Keep))?;
        let Some(name) = &place.name else { return Ok(None) };
        place.folder.read_link(name).map_err(|error| self.failed("read", error))
    }

    /// What [`kind`](Self::kind) says, if that waits for no disk, no network and no other process: the kernel has all of
    /// the way in memory. `None` where that cannot be known, which takes two microseconds to find out.
    pub fn kind_at_hand(&self) -> Option<Result<Option<Kind>, Error>> {
        #[cfg(target_os = "linux")]
        if let Ok(root) = self.root()
            && root.is_local
        {
            use rustix::io::Errno;
            return match kernel::known(&root.folder, &self.relative) {
                Ok(metadata) => Some(Ok(Some(metadata.kind))),
                // That nothing is there is known too; what that means for links, the whole way tells.
                Err(Errno::NOENT | Errno::NOTDIR) => Some(self.kind()),
                Err(_) => None,
            };
        }
        None
    }

    /// Whether [`open_read`](Self::open_read) and reading all of the file, if that is at most `most` bytes, waits for
    /// nothing either. A guess, which gives nothing away; false where it cannot be known.
    #[cfg_attr(not(target_os = "linux"), allow(unused_variables, reason = "only Linux can be asked"))]
    pub fn is_in_memory(&self, most: u64) -> bool {
        #[cfg(target_os = "linux")]
        if let Ok(root) = self.root() {
            return root.is_local && kernel::holds(&root.folder, &self.relative, most);
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
        if self.workspace.by_kernel
            && let folder = &self.root()?.folder
            && let Ok(reached) = kernel::reference(folder, &self.relative)
        {
            self.expect_kind(reached.metadata.kind, Kind::File)?;
            // What fails now, the walk explains: no permission, or a link swapped in since.
            if let Ok(reached) = kernel::read(folder, &self.relative) {
                // Swapped since for something that opened without waiting.
                self.expect_kind(reached.metadata.kind, Kind::File)?;
                let metadata = reached.metadata.clone();
                return Ok((reached.into_file(), metadata));
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
        let root = self.workspace.root(self.root)?;
        if root.is_gone() { Err(Error::RootGone { root: root.name.clone() }) } else { Ok(folder) }
    }

    /// A handle to the folder at this path, for a child process's working directory.
    ///
    /// # Errors
    /// As for [`open_folder`](Self::open_folder).
    #[cfg(unix)]
    pub fn folder_handle(&self) -> Result<std::os::fd::OwnedFd, Error> {
        Ok(self.open_folder()?.into_handle())
    }

    /// The folder at this path, and where it really lies.
    pub(super) fn open_canonical(&self) -> Result<(Folder, PathBuf), Error> {
        let place = walk(&self.workspace, self.root, &self.relative, Last::Follow)?;
        let mut path = self.workspace.root(place.root)?.canonical.join(&place.path);
        let Some(name) = place.name else { return Ok((place.folder, path)) };
        let folder = self.enter(&place.folder, &name)?;
        path.push(name);
        Ok((folder, path))
    }

    /// Where the nearest folder above this path really lies.
    fn canonical_parent(&self) -> Option<PathBuf> {
        let mut parent = self.parent()?;
        loop {
            match parent.open_canonical() {
                Ok((_, path)) => return Some(path),
                Err(_) => parent = parent.parent()?,
            }
        }
    }

    /// The place this path leads to, through links, to read and replace what is there.
    ///
    /// # Errors
    /// [`Error::WrongKind`] for a root or a path that ends in `..`; [`Error::NotFound`] if a folder on the way
    /// is missing.
    pub fn target(&self) -> Result<Target, Error> {
        self.target_at(Last::Follow)
    }

    /// The place of this path's own name, which may be a link.
    fn entry(&self) -> Result<Target, Error> {
        self.target_at(Last::Keep)
    }

    fn target_at(&self, last: Last) -> Result<Target, Error> {
        let place = self.place(last)?;
        match place.name {
            Some(name) => {
                Ok(Target::new(self.workspace.clone(), place.root, place.folder, name, self.shown()))
            }
            None => Err(self.wrong_kind(Kind::Directory, "a file")),
        }
    }

    /// Refuses a change of what is at this path, by whatever program makes it: of a protected file, of a
    /// folder on the way to one, and of what the limits of the call leave out. The path need not exist.
    ///
    /// # Errors
    /// [`Error::Protected`], [`Error::Io`] with the reason, and everything that keeps a path from being
    /// resolved.
    pub fn check_changeable(&self) -> Result<(), Error> {
        match self.entry() {
            Ok(target) => target.check_unprotected(),
            // Of what lies in a folder that is not there, names are all that can be known.
            Err(error) if error.is_not_found() => {
                self.workspace.check_names(&self.relative, &self.shown())?;
                self.parent().map_or(Ok(()), |folder| folder.check_changeable())
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the whole file, creating it and the folders it lies in; see [`Target::replace`].
    ///
    /// # Errors
    /// As for [`Target::replace`].
    pub fn write(&self, content: &[u8]) -> Result<(), Error> {
        self.create_parents()?;
        let target = self.target()?;
        let _lock = target.lock();
        target.replace(content, Expect::Anything)
    }

    /// Removes the file, or the link itself, at this path. Folders are refused.
    ///
    /// # Errors
    /// [`Error::WrongKind`], [`Error::NotFound`], [`Error::Protected`].
    pub fn remove_file(&self) -> Result<(), Error> {
        let target = self.with_hint(self.entry())?;
        let _lock = target.lock();
        self.with_hint(target.remove_file())
    }

    /// Creates the folder and those it lies in. Says whether it was created; existing is fine.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if a file has the name, [`Error::NotAFolder`] if one is on the way.
    pub fn create_folder_all(&self) -> Result<bool, Error> {
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
                    _ => return Err(Error::NotFound { path: self.shown(), hint: None }),
                },
                Err(error) => return Err(error),
            }
        };
        for &name in missing.iter().rev() {
            self.workspace.check_unprotected(&folder, name, &self.shown())?;
            match folder.create_child(name) {
                Ok(()) => {}
                // Somebody else was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(self.failed("create", error)),
            }
            folder = folder.child(name).map_err(|error| self.failed("create", error))?;
        }
        Ok(!missing.is_empty())
    }

    /// Creates the folders this path lies in.
    ///
    /// # Errors
    /// As for [`create_folder_all`](Self::create_folder_all).
    pub fn create_parents(&self) -> Result<(), Error> {
        match self.parent() {
            Some(parent) if self.place(Last::Keep).is_err() => parent.create_folder_all().map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Renames what is at this path, a link as itself, to `destination`. Without `overwrite` nothing is ever
    /// replaced; with it, a file is, never a folder. Between file systems a file is copied and then removed.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`], [`Error::NotFound`], [`Error::Protected`], [`Error::IntoItself`], or
    /// [`Error::Io`]: a folder cannot move to another file system.
    pub fn rename_to(&self, destination: &Self, overwrite: bool) -> Result<(), Error> {
        let source = self.with_hint(self.entry())?;
        // Before folders are created for a source that is not there.
        let found = self.with_hint(
            source
                .metadata()
                .and_then(|found| found.ok_or_else(|| self.failed("move", io::ErrorKind::NotFound.into()))),
        )?;
        if found.kind == Kind::Directory
            && let (_, own) = self.open_canonical()?
            && destination.canonical_parent().is_some_and(|parent| parent.starts_with(own))
        {
            // What is protected is refused as that, wherever it would go.
            source.check_unprotected()?;
            if let Ok(place) = destination.entry() {
                place.check_unprotected()?;
            }
            return Err(Error::IntoItself { path: self.shown() });
        }
        destination.create_parents()?;
        let _lock = source.lock();
        source.rename_to(&destination.entry()?, overwrite)
    }

    fn look(&self, last: Last) -> Result<Metadata, Error> {
        #[cfg(target_os = "linux")]
        if last == Last::Follow
            && self.workspace.by_kernel
            && let Ok(reached) = kernel::reference(&self.root()?.folder, &self.relative)
        {
            return Ok(reached.metadata);
        }
        let place = self.place(last)?;
        match &place.name {
            Some(name) => place.folder.metadata(name),
            None => place.folder.own_metadata(),
        }
        .map_err(|error| self.failed("look at", error))
    }

    fn folder_at(&self, relative: &Path) -> Result<Folder, Error> {
        #[cfg(target_os = "linux")]
        if self.workspace.by_kernel {
            match kernel::folder(&self.root()?.folder, relative) {
                Ok(folder) => return Ok(folder),
                // Said before any link that leaves was met: the walk would say the same, more slowly.
                Err(error @ rustix::io::Errno::NOENT) => return Err(self.failed("open", error.into())),
                Err(_) => {}
            }
        }
        let place = walk(&self.workspace, self.root, relative, Last::Follow)?;
        match place.name {
            Some(name) => self.enter(&place.folder, &name),
            None => Ok(place.folder),
        }
    }

    fn enter(&self, folder: &Folder, name: &OsStr) -> Result<Folder, Error> {
        folder.child(name).map_err(|error| match folder.metadata(name) {
            Ok(metadata) if metadata.kind != Kind::Directory => self.wrong_kind(metadata.kind, "a directory"),
            _ => self.failed("open", error),
        })
    }

    /// Where this path leads. By one system call if no link is in the way at the end; the walk finds out the
    /// rest, and the reasons.
    fn place(&self, last: Last) -> Result<Place, Error> {
        #[cfg(target_os = "linux")]
        if self.workspace.by_kernel
            && let (Some(parent), Some(name)) = (self.relative.parent(), self.relative.file_name())
            && let Ok(folder) = kernel::folder(&self.root()?.folder, parent)
        {
            let is_link = last == Last::Follow && matches!(folder.read_link(name), Ok(Some(_)));
            if !is_link {
                let name = Some(name.to_owned());
                return Ok(Place { folder, name, root: self.root, path: parent.to_owned() });
            }
        }
        walk(&self.workspace, self.root, &self.relative, last)
    }

    #[cfg(target_os = "linux")]
    fn root(&self) -> Result<&Root, Error> {
        self.workspace.root(self.root)
    }

    #[cfg(target_os = "linux")]
    fn expect_kind(&self, found: Kind, expected: Kind) -> Result<(), Error> {
        if found == expected { Ok(()) } else { Err(self.wrong_kind(found, expected.noun())) }
    }

    fn wrong_kind(&self, found: Kind, expected: &'static str) -> Error {
        Error::WrongKind { path: self.shown(), found, expected }
    }

    fn failed(&self, action: &'static str, error: io::Error) -> Error {
        self.workspace.failed(self.root, action, &self.shown(), error)
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
        let nearest = super::hint::nearest_name(&folder, missing).map(|name| {
            let near = existing.join(name);
            // Not `join`, which would end the path in a separator where nothing is left.
            let whole: PathBuf = near.components().chain(below.components().skip(1)).collect();
            if self.with(&whole).look(Last::Follow).is_ok() { whole } else { near }
        });
        let missing_folder = (below.components().count() > 1)
            .then(|| format!(": there is no `{}`", self.workspace.show(self.root, &existing.join(missing))));
        let nearest =
            nearest.map(|path| format!("; did you mean `{}`?", self.workspace.show(self.root, &path)));
        match (missing_folder, nearest) {
            (None, None) => None,
            (folder, nearest) => Some(folder.unwrap_or_default() + &nearest.unwrap_or_default()),
        }
    }

    fn with(&self, relative: &Path) -> Self {
        Self { relative: relative.to_owned(), ..self.clone() }
    }
}

impl fmt::Display for ConfinedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}
