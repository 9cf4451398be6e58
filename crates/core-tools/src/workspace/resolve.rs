//! The walk: where a path leads, component by component, without ever following a link by accident.
//!
//! It is the fallback where the kernel cannot resolve beneath a folder, and everywhere the judge of links
//! that the kernel refuses: an absolute link, or one that climbs above its root, may still lead into an
//! allowed root. The position is either *inside* a root, held by handles, or *outside*, which is mere text:
//! outside, names are only compared with the roots' own paths, and nothing is opened.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::{Error, Folder, Workspace};

/// As many links as Linux follows (`path_resolution(7)`).
const MAX_LINKS: usize = 40;

/// Where a path leads: a folder, and the name in it, or no name if the path is that folder.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) folder: Folder,
    pub(super) name: Option<OsString>,
    /// The root it lies in.
    pub(super) root: usize,
    /// The folder's path beneath the root, free of links.
    pub(super) path: PathBuf,
}

/// What to do with a link in the last place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    /// Go where it leads.
    Follow,
    /// The link itself is meant.
    Keep,
}

enum Step {
    Up,
    Name(OsString),
}

/// Resolves `relative` beneath `root`. The name in the last place need not exist; every other must.
pub(super) fn walk(workspace: &Workspace, root: usize, relative: &Path, last: Last) -> Result<Place, Error> {
    let mut walk = Walk {
        workspace,
        asked: workspace.show(root, relative),
        root,
        position: Position::Inside { names: PathBuf::new(), here: None },
        pending: Vec::new(),
        links: 0,
        last_link: None,
    };
    walk.push_steps(relative);
    walk.run(last)
}

struct Walk<'a> {
    workspace: &'a Workspace,
    /// The path asked for, as messages show it.
    asked: String,
    root: usize,
    position: Position,
    /// What is still to be walked, in reverse.
    pending: Vec<Step>,
    links: usize,
    /// The link that led outside last, as messages show it.
    last_link: Option<String>,
}

enum Position {
    /// The names entered below the root, and the last of them by handle; none is the root itself.
    Inside { names: PathBuf, here: Option<Folder> },
    /// Where we are in name only.
    Outside(PathBuf),
}

impl Walk<'_> {
    fn run(mut self, last: Last) -> Result<Place, Error> {
        loop {
            if let Position::Outside(path) = &self.position
                && let Some(index) = self.workspace.roots.iter().position(|root| root.is_at(path))
            {
                self.root = index;
                self.position = Position::Inside { names: PathBuf::new(), here: None };
            }
            let Some(step) = self.pending.pop() else { return self.arrive(None) };
            match (&mut self.position, step) {
                (Position::Outside(path), Step::Name(name)) => path.push(name),
                (Position::Outside(path), Step::Up) => {
                    path.pop();
                }
                (Position::Inside { names, .. }, Step::Up) => {
                    if names.pop() {
                        self.reenter()?;
                    } else {
                        let above = self.workspace.root(self.root)?.canonical.parent();
                        // Above `/` is `/`.
                        self.position = Position::Outside(above.unwrap_or(Path::new("/")).to_owned());
                    }
                }
                (Position::Inside { .. }, Step::Name(name)) => {
                    if self.pending.is_empty() {
                        let link = match last {
                            Last::Keep => None,
                            Last::Follow => self.link_at(&name)?,
                        };
                        match link {
                            None => return self.arrive(Some(name)),
                            Some(target) => self.follow(&name, &target)?,
                        }
                    } else {
                        self.enter(name)?;
                    }
                }
            }
        }
    }

    /// The folder we are in.
    fn here(&self) -> Result<&Folder, Error> {
        match &self.position {
            Position::Inside { here: Some(folder), .. } => Ok(folder),
            Position::Inside { here: None, .. } => Ok(&self.workspace.root(self.root)?.folder),
            Position::Outside(_) => Err(self.outside()),
        }
    }

    /// The path of `name` here, as messages show it.
    fn shown(&self, name: &OsString) -> String {
        self.workspace.show(self.root, &self.path().join(name))
    }

    /// The path of the folder we are in, beneath its root.
    fn path(&self) -> PathBuf {
        match &self.position {
            Position::Inside { names, .. } => names.clone(),
            Position::Outside(_) => PathBuf::new(),
        }
    }

    fn enter(&mut self, name: OsString) -> Result<(), Error> {
        match self.here()?.child(&name) {
            Ok(folder) => {
                if let Position::Inside { names, here } = &mut self.position {
                    names.push(name);
                    *here = Some(folder);
                }
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => match self.link_at(&name)? {
                Some(target) => self.follow(&name, &target),
                None => Err(Error::NotAFolder { part: self.shown(&name), path: self.asked.clone() }),
            },
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Opens the folder we are in anew from its root, after going up. Cheaper than a handle for every
    /// level: a hostile path has two thousand. The names were no links when they were entered.
    fn reenter(&mut self) -> Result<(), Error> {
        let Position::Inside { names, .. } = &self.position else { return Ok(()) };
        let mut reached: Option<Folder> = None;
        for name in names {
            let from = match &reached {
                Some(folder) => folder,
                None => &self.workspace.root(self.root)?.folder,
            };
            reached = Some(from.child(name).map_err(|error| self.failed(error))?);
        }
        if let Position::Inside { here, .. } = &mut self.position {
            *here = reached;
        }
        Ok(())
    }

    /// Where `name` leads if it is a link; a name that does not exist is none.
    fn link_at(&self, name: &OsString) -> Result<Option<PathBuf>, Error> {
        match self.here()?.read_link(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            other => other.map_err(|error| self.failed(error)),
        }
    }

    fn follow(&mut self, name: &OsString, target: &Path) -> Result<(), Error> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Error::LinkLoop { path: self.asked.clone() });
        }
        self.last_link = Some(self.shown(name));
        if target.has_root() || target.is_absolute() {
            // The root directory or, on Windows, the drive.
            let start = target.components().take_while(|part| !matches!(part, Component::Normal(_)));
            self.position = Position::Outside(start.filter(|part| *part != Component::ParentDir).collect());
        }
        self.push_steps(target);
        Ok(())
    }

    fn push_steps(&mut self, path: &Path) {
        self.pending.extend(path.components().rev().filter_map(|component| match component {
            Component::Normal(name) => Some(Step::Name(name.to_owned())),
            Component::ParentDir => Some(Step::Up),
            _ => None,
        }));
    }

    fn arrive(self, name: Option<OsString>) -> Result<Place, Error> {
        let folder = self.here()?.try_clone().map_err(|error| self.failed(error))?;
        Ok(Place { folder, name, root: self.root, path: self.path() })
    }

    fn outside(&self) -> Error {
        match &self.last_link {
            Some(link) => Error::LinkOutside { link: link.clone() },
            None => Error::Outside { given: format!("`{}`", self.asked) },
        }
    }

    fn failed(&self, error: io::Error) -> Error {
        self.workspace.failed(self.root, "resolve", &self.asked, error)
    }
}
