//! The walk: where a path leads, component by component, without ever following a link by accident.
//!
//! It is the fallback where the kernel cannot resolve beneath a folder, and everywhere the judge of links
//! that the kernel refuses: an absolute link, or one that climbs above its root, may still lead into an
//! allowed root. The position is either *inside* a root, held by handles, or *outside*, which is mere text:
//! outside, names are only compared with the roots' own paths, and nothing is opened.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::error::Error;
use crate::folder::Folder;
use crate::root_set::RootSet;

/// As many links as Linux follows (`path_resolution(7)`).
const MAX_LINKS: usize = 40;

/// The end of a resolved path: a folder, and the name in it, or no name if the path is that folder.
#[derive(Debug)]
pub(crate) struct ResolvedPath {
    pub(crate) folder: Folder,
    pub(crate) name: Option<OsString>,
    /// The root it lies in.
    pub(crate) root: usize,
    /// The folder's path beneath the root, free of links.
    pub(crate) path: PathBuf,
}

/// The treatment of a symbolic link at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinalSymlink {
    /// It is followed.
    Follow,
    /// The link itself is meant, as with `O_NOFOLLOW`.
    NoFollow,
}

enum PathWalkStep {
    Parent,
    Name(OsString),
}

/// Resolves `relative` beneath `root`. The name in the last place need not exist; every other must.
pub(crate) fn walk(
    root_set: &RootSet,
    root: usize,
    relative: &Path,
    last: FinalSymlink,
) -> Result<ResolvedPath, Error> {
    let mut walk = PathWalk {
        root_set,
        requested: root_set.display_path(root, relative),
        root,
        position: WalkPosition::Inside { names: PathBuf::new(), current: None },
        pending: Vec::new(),
        links: 0,
        last_link: None,
    };
    walk.push_steps(relative);
    walk.run(last)
}

struct PathWalk<'a> {
    root_set: &'a RootSet,
    /// The path that was asked for, as messages show it.
    requested: String,
    root: usize,
    position: WalkPosition,
    /// The steps that are still to be walked, the next one last.
    pending: Vec<PathWalkStep>,
    links: usize,
    /// The link that led outside last, as messages show it.
    last_link: Option<String>,
}

enum WalkPosition {
    /// The names entered below the root, and the last of them by handle; none is the root itself.
    Inside { names: PathBuf, current: Option<Folder> },
    /// A path outside all roots, as text only: nothing is opened there.
    Outside(PathBuf),
}

impl PathWalk<'_> {
    fn run(mut self, last: FinalSymlink) -> Result<ResolvedPath, Error> {
        loop {
            // Compared after each step: an absolute link, or one that climbs above its root, may lead into a root
            // again.
            if let WalkPosition::Outside(path) = &self.position
                && let Some(index) = self.root_set.roots.iter().position(|root| root.is_at(path))
            {
                self.root = index;
                self.position = WalkPosition::Inside { names: PathBuf::new(), current: None };
            }
            let Some(step) = self.pending.pop() else { return self.finish(None) };
            match (&mut self.position, step) {
                (WalkPosition::Outside(path), PathWalkStep::Name(name)) => path.push(name),
                (WalkPosition::Outside(path), PathWalkStep::Parent) => {
                    path.pop();
                }
                (WalkPosition::Inside { names, .. }, PathWalkStep::Parent) => {
                    if names.pop() {
                        self.reenter()?;
                    } else {
                        let above = self.root_set.get(self.root)?.canonical.parent();
                        // Above `/` is `/`.
                        self.position = WalkPosition::Outside(above.unwrap_or(Path::new("/")).to_owned());
                    }
                }
                (WalkPosition::Inside { .. }, PathWalkStep::Name(name)) => {
                    // The last name need not exist and is not opened here.
                    if self.pending.is_empty() {
                        let link = match last {
                            FinalSymlink::NoFollow => None,
                            FinalSymlink::Follow => self.link_at(&name)?,
                        };
                        match link {
                            None => return self.finish(Some(name)),
                            Some(target) => self.follow(&name, &target)?,
                        }
                    } else {
                        self.enter(name)?;
                    }
                }
            }
        }
    }

    /// Returns the folder the walk is in.
    fn current_folder(&self) -> Result<&Folder, Error> {
        match &self.position {
            WalkPosition::Inside { current: Some(folder), .. } => Ok(folder),
            WalkPosition::Inside { current: None, .. } => Ok(&self.root_set.get(self.root)?.folder),
            WalkPosition::Outside(_) => Err(self.outside()),
        }
    }

    /// Returns the path of `name` here, as messages show it.
    fn display_path(&self, name: &OsString) -> String {
        self.root_set.display_path(self.root, &self.path().join(name))
    }

    /// Returns the path of the folder the walk is in, beneath its root.
    fn path(&self) -> PathBuf {
        match &self.position {
            WalkPosition::Inside { names, .. } => names.clone(),
            WalkPosition::Outside(_) => PathBuf::new(),
        }
    }

    fn enter(&mut self, name: OsString) -> Result<(), Error> {
        match self.current_folder()?.child(&name) {
            Ok(folder) => {
                if let WalkPosition::Inside { names, current } = &mut self.position {
                    names.push(name);
                    *current = Some(folder);
                }
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => match self.link_at(&name)? {
                Some(target) => self.follow(&name, &target),
                None => {
                    Err(Error::NotAFolder { part: self.display_path(&name), path: self.requested.clone() })
                }
            },
            Err(error) => Err(self.io_error(error)),
        }
    }

    /// Opens the current folder anew from its root, after a step up. That is cheaper than a handle for every level: a
    /// hostile path has two thousand. The names were no links when they were entered.
    fn reenter(&mut self) -> Result<(), Error> {
        let WalkPosition::Inside { names, .. } = &self.position else { return Ok(()) };
        let mut reached: Option<Folder> = None;
        for name in names {
            let parent = match &reached {
                Some(folder) => folder,
                None => &self.root_set.get(self.root)?.folder,
            };
            reached = Some(parent.child(name).map_err(|error| self.io_error(error))?);
        }
        if let WalkPosition::Inside { current, .. } = &mut self.position {
            *current = reached;
        }
        Ok(())
    }

    /// Returns the target of `name` if it is a link. A name that does not exist is none.
    fn link_at(&self, name: &OsString) -> Result<Option<PathBuf>, Error> {
        match self.current_folder()?.read_link(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            other => other.map_err(|error| self.io_error(error)),
        }
    }

    fn follow(&mut self, name: &OsString, target: &Path) -> Result<(), Error> {
        // Counted for the whole path, as the kernel does, so that a loop comes to an end.
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Error::LinkLoop { path: self.requested.clone() });
        }
        self.last_link = Some(self.display_path(name));
        if target.has_root() || target.is_absolute() {
            // The root directory or, on Windows, the drive.
            let start = target.components().take_while(|part| !matches!(part, Component::Normal(_)));
            self.position =
                WalkPosition::Outside(start.filter(|part| *part != Component::ParentDir).collect());
        }
        self.push_steps(target);
        Ok(())
    }

    fn push_steps(&mut self, path: &Path) {
        self.pending.extend(path.components().rev().filter_map(|component| match component {
            Component::Normal(name) => Some(PathWalkStep::Name(name.to_owned())),
            Component::ParentDir => Some(PathWalkStep::Parent),
            _ => None,
        }));
    }

    fn finish(self, name: Option<OsString>) -> Result<ResolvedPath, Error> {
        let folder = self.current_folder()?.try_clone().map_err(|error| self.io_error(error))?;
        Ok(ResolvedPath { folder, name, root: self.root, path: self.path() })
    }

    fn outside(&self) -> Error {
        match &self.last_link {
            Some(link) => Error::LinkOutside { link: link.clone() },
            None => self.root_set.outside(format!("`{}`", self.requested)),
        }
    }

    fn io_error(&self, error: io::Error) -> Error {
        self.root_set.io_error(self.root, "resolve", &self.requested, error)
    }
}
