//! [`Workspace`]: the allowed roots, and the way from a path's text to a [`ConfinedPath`].

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::access_limit::{AccessLimit, LimitedLocation};
use crate::error::Error;
use crate::path::ConfinedPath;
use crate::path_text::check_text;
use crate::protection::ProtectedFiles;
use crate::root::AllowedRoot;
use crate::root_set::{LocalCaller, RootSet};
use crate::spelling;

/// The allowed roots, and the files in them that tools may not change. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Workspace {
    root_set: RootSet,
}

impl Workspace {
    /// Creates a workspace over `roots`, each opened once, now. The first is the primary root, to which relative
    /// paths belong.
    ///
    /// # Errors
    /// [`Error::NoRoots`] without roots, [`Error::Root`] with a root that is missing or no folder.
    pub fn new<P: AsRef<Path>>(roots: impl IntoIterator<Item = P>) -> Result<Self, Error> {
        let roots: Vec<AllowedRoot> =
            roots.into_iter().map(|root| AllowedRoot::open(root.as_ref())).collect::<Result<_, _>>()?;
        Ok(Self { root_set: RootSet::new(roots, Arc::default())? })
    }

    /// Protects `files` (absolute paths, existing or not) from every writing operation: policy and configuration that
    /// lie inside a writable root. A folder that holds a protected file cannot be moved either.
    #[must_use]
    pub fn protect<P: Into<PathBuf>>(mut self, files: impl IntoIterator<Item = P>) -> Self {
        Arc::make_mut(&mut self.root_set.protected).files.extend(files.into_iter().map(Into::into));
        self
    }

    /// Protects `folders` (absolute paths, existing or not) with everything beneath them from every writing operation:
    /// where other programs look for what they run. A path is compared without links, so give the real path of a folder
    /// that exists as well.
    #[must_use]
    pub fn protect_folders<P: Into<PathBuf>>(mut self, folders: impl IntoIterator<Item = P>) -> Self {
        Arc::make_mut(&mut self.root_set.protected).folders.extend(folders.into_iter().map(Into::into));
        self
    }

    /// Protects `files` and `folders` as [`protect`](Self::protect) and [`protect_folders`](Self::protect_folders) do, in the
    /// workspace that [`restricted`](Self::restricted) returns. What is protected later is not protected there.
    #[must_use]
    pub fn protect_from_restricted<P: Into<PathBuf>>(
        mut self,
        files: impl IntoIterator<Item = P>,
        folders: impl IntoIterator<Item = P>,
    ) -> Self {
        let mut protected = ProtectedFiles::clone(&self.root_set.protected);
        protected.files.extend(files.into_iter().map(Into::into));
        protected.folders.extend(folders.into_iter().map(Into::into));
        self.root_set.restricted = Some(Arc::new(protected));
        self
    }

    /// Returns this workspace for a caller who may not do everything.
    #[must_use]
    pub fn restricted(&self) -> Self {
        let mut workspace = self.clone();
        if let Some(protected) = &self.root_set.restricted {
            workspace.root_set.protected = Arc::clone(protected);
        }
        workspace
    }

    /// Protects every file called `name`, in whatever folder and existing or not, from every writing operation. An
    /// example is a configuration that is looked for by name. Case is ignored. Unlike with [`protect`](Self::protect),
    /// a folder that holds a protected name can be moved.
    #[must_use]
    pub fn protect_name(mut self, name: impl Into<OsString>) -> Self {
        Arc::make_mut(&mut self.root_set.protected).names.push(name.into());
        self
    }

    /// Returns a workspace over some folders of this one, for a caller who may use less. The first folder becomes the
    /// primary root. Protected files stay protected.
    ///
    /// # Errors
    /// One of `folders` cannot be opened beneath a root of this workspace.
    pub fn narrowed<P: AsRef<OsStr>>(&self, folders: impl IntoIterator<Item = P>) -> Result<Self, Error> {
        let roots = folders
            .into_iter()
            .map(|folder| {
                let (folder, canonical) = self.locate(folder.as_ref())?.open_canonical()?;
                Ok(AllowedRoot::new(folder, canonical.clone(), canonical))
            })
            .collect::<Result<_, Error>>()?;
        let narrowed = RootSet::new(roots, Arc::clone(&self.root_set.protected))?;
        let RootSet { restricted, local_caller, .. } = self.root_set.clone();
        Ok(Self { root_set: RootSet { restricted, local_caller, ..narrowed } })
    }

    /// Returns this workspace for a caller on the same machine: errors name the roots by their paths, and `~` stands for
    /// `home`, if there is one.
    #[must_use]
    pub fn for_local_caller(mut self, home: Option<PathBuf>) -> Self {
        self.root_set.local_caller = Some(Arc::new(LocalCaller { home }));
        self
    }

    /// Returns this workspace for callers who may not know where its roots lie, and who have no home here. A new
    /// workspace is for them.
    #[must_use]
    pub fn for_remote_callers(mut self) -> Self {
        self.root_set.local_caller = None;
        self
    }

    /// Returns this workspace for one call, which may reach only what `limit` allows. An opened file is judged by its
    /// real place, and not by the requested path. The way to an allowed file may lead through folders that are not
    /// allowed.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn with_access_limit(&self, limit: &Arc<dyn AccessLimit>) -> Result<Self, Error> {
        let roots = self.root_set.roots.iter().enumerate().map(|(index, root)| {
            let prefix = if index == 0 { String::new() } else { format!("{}:", root.name) };
            let location = LimitedLocation::root(Arc::clone(limit), prefix.into());
            let folder =
                root.folder.with_limit(location).map_err(|error| Error::from_io("open", ".", error))?;
            Ok(AllowedRoot { folder: Arc::new(folder), ..root.clone() })
        });
        Ok(Self {
            root_set: RootSet {
                roots: roots.collect::<Result<_, Error>>()?,
                protected: Arc::clone(&self.root_set.protected),
                restricted: self.root_set.restricted.clone(),
                local_caller: self.root_set.local_caller.clone(),
                // The limit judges where a path leads, and `openat2` does not say where it arrived.
                #[cfg(target_os = "linux")]
                by_kernel: false,
            },
        })
    }

    /// Finds the root that `path` belongs to and the path beneath it. Only the text of the path decides, and the path
    /// need not exist.
    ///
    /// A relative path belongs to the first root, unless it has the form `name:path` in which paths of the other roots
    /// are shown. An absolute path must begin, component by component, with a root's path, either resolved or as the
    /// root was given; the longest root wins. `..` is resolved when the path is opened, because its meaning depends on
    /// links.
    ///
    /// For a local caller, `~` is the home folder, and `~/` begins a path in it. For other callers, both lead outside.
    /// `./~` is a file of the name `~`. On systems where `\` is no separator, a path with `\` that does not exist is
    /// read with `/` in its place, and a path with a drive leads outside.
    ///
    /// # Errors
    /// [`Error::Invalid`] for text that is no path, [`Error::Outside`] for an absolute path beneath no root.
    pub fn locate<P: AsRef<OsStr> + ?Sized>(&self, path: &P) -> Result<ConfinedPath, Error> {
        let text = path.as_ref();
        check_text(text)?;
        if let Some(below) = spelling::below_home(text) {
            let home = self.root_set.local_caller.as_ref().and_then(|caller| caller.home.as_ref());
            let home = home.ok_or_else(|| self.root_set.outside("`~`, a home folder,"))?;
            return self.locate_spelled(home.join(below).as_os_str());
        }
        if cfg!(windows) {
            return self.locate_spelled(text);
        }
        if spelling::has_drive(text) {
            return Err(self.root_set.outside("the path given, with a drive of Windows,"));
        }
        let located = self.locate_spelled(text);
        match spelling::with_slashes(text) {
            // A name may well have a backslash in it.
            Some(slashed) if !located.as_ref().is_ok_and(ConfinedPath::is_there) => {
                self.locate_spelled(&slashed)
            }
            _ => located,
        }
    }

    /// Finds the root and the path beneath it of a path that is written as this system writes paths.
    fn locate_spelled(&self, text: &OsStr) -> Result<ConfinedPath, Error> {
        let path = Path::new(text);
        let (root, relative) = if path.has_root() || path.is_absolute() {
            let found = self.root_set.roots.iter().enumerate().filter_map(|(index, root)| {
                let (relative, depth) = root.strip(path)?;
                Some((depth, index, relative))
            });
            // The innermost root, and the first of two with the same path.
            match found.max_by_key(|(depth, index, _)| (*depth, usize::MAX - index)) {
                Some((_, index, relative)) => (index, relative),
                None => return Err(self.root_set.outside("the absolute path given")),
            }
        } else {
            self.root_set.find_named(text).unwrap_or((0, path))
        };
        ConfinedPath::new(self.root_set.clone(), root, relative)
    }

    /// Returns the paths of the roots, primary root first. The paths are for the operator and for a client who may know
    /// them. Error messages never show the paths.
    pub fn roots(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.root_set.roots.iter().map(|root| root.canonical.as_path())
    }

    /// Returns a workspace that resolves paths by the walk, whatever the kernel can do.
    #[cfg(all(test, unix))]
    pub(crate) fn walking(self) -> Self {
        Self {
            root_set: RootSet {
                #[cfg(target_os = "linux")]
                by_kernel: false,
                ..self.root_set
            },
        }
    }
}
