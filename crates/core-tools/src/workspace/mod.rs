//! The allowed roots, and [`ConfinedPath`], the only way to a file beneath them.
//!
//! A path that a tool was given is *located* (a matter of text: which root, and where beneath it) and then
//! *opened beneath that root by directory handle*. Nothing is checked as text and opened later, so there is
//! no moment in which a folder swapped for a link could lead the opening elsewhere.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! use core_tools::workspace::Workspace;
//!
//! let workspace = Workspace::new([folder.path()])?;
//! workspace.locate("notes/today.md")?.write(b"hello\n")?;
//! assert_eq!(workspace.locate("notes/today.md")?.metadata()?.size, 6);
//!
//! assert!(workspace.locate("/etc/passwd").unwrap_err().is_outside());
//! assert!(workspace.locate("../elsewhere")?.metadata().unwrap_err().is_outside());
//! # Ok(())
//! # }
//! ```
//!
//! # What holds
//!
//! - **Linux**: `openat2(2)` with `RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS` decides in the kernel. Where it is
//!   missing or forbidden (kernels before 5.6, some container sandboxes), the walk below decides.
//! - **Unix**: a walk that opens component by component without following links, and resolves links itself.
//! - **Windows**: the same walk by path; a link swapped in *during* a call can win (see `folder/portable.rs`).
//!
//! Links are followed as long as they stay beneath *some* root, also absolute ones; those that leave are
//! refused. Opening never waits and wakes nothing: pipes, sockets and devices are refused by their kind
//! before they are opened.
//!
//! # What does not
//!
//! A hard link to a file outside is that file: no operating system tells the two apart. Whoever can make
//! one could read the file anyway (`fs.protected_hardlinks`). Overwriting and editing replace the name and
//! so never reach the other one; appending to a file with several names is refused.

mod error;
mod folder;
mod hint;
mod limit;
mod metadata;
mod path;
mod resolve;
mod target;

#[cfg(test)]
#[cfg(unix)]
mod attacks;

pub use error::Error;
pub use folder::{Entries, Entry, Folder};
pub use limit::Limit;
pub use metadata::{Kind, Metadata, Stamp};
pub use path::ConfinedPath;
pub use target::{Expect, Target, TargetLock};

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The longest path taken, in bytes: Linux's own limit (`PATH_MAX`).
const MAX_PATH_BYTES: usize = 4096;

/// One allowed root: a folder held open from the start.
#[derive(Clone, Debug)]
struct Root {
    folder: Arc<Folder>,
    /// Where it lies, free of links.
    canonical: PathBuf,
    /// As it was named, which may go through links.
    spelled: PathBuf,
    /// Its last component, to tell roots apart in messages.
    name: String,
    /// What the kernel has of it in memory is to be had without waiting.
    #[cfg(target_os = "linux")]
    is_local: bool,
}

impl Root {
    fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Root { path: path.to_owned(), source };
        let folder = Folder::open_trusted(path).map_err(failed)?;
        let canonical = path.canonicalize().map_err(failed)?;
        Ok(Self::new(folder, canonical, path.to_owned()))
    }

    fn new(folder: Folder, canonical: PathBuf, spelled: PathBuf) -> Self {
        let name = canonical.file_name().map_or_else(|| "/".to_owned(), printable);
        Self {
            #[cfg(target_os = "linux")]
            is_local: folder::kernel::is_local(&folder),
            folder: Arc::new(folder),
            canonical,
            spelled,
            name,
        }
    }

    /// What is left of the absolute `path` beneath this root, and how much of `path` named the root.
    fn strip<'path>(&self, path: &'path Path) -> Option<(&'path Path, usize)> {
        [&self.canonical, &self.spelled]
            .into_iter()
            .filter_map(|root| Some((path.strip_prefix(root).ok()?, root.components().count())))
            .max_by_key(|(_, depth)| *depth)
    }

    fn is_at(&self, path: &Path) -> bool {
        path == self.canonical || path == self.spelled
    }

    /// Whether the folder was removed; its handle then leads nowhere.
    fn is_gone(&self) -> bool {
        match self.folder.own_metadata() {
            Ok(metadata) => metadata.links == 0,
            Err(_) => true,
        }
    }
}

/// What no writing operation may change.
#[derive(Clone, Debug, Default)]
struct Protected {
    /// By absolute path.
    files: Vec<PathBuf>,
    /// By name, in whatever folder.
    names: Vec<OsString>,
}

/// The allowed roots, and the files in them that tools may not change. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Workspace {
    roots: Arc<[Root]>,
    protected: Arc<Protected>,
    /// Whether the kernel resolves paths, in one call; otherwise the walk does.
    #[cfg(target_os = "linux")]
    by_kernel: bool,
}

impl Workspace {
    /// A workspace over `roots`, each opened once, now. The first is the primary root, to which relative
    /// paths belong.
    ///
    /// # Errors
    /// [`Error::NoRoots`] without roots, [`Error::Root`] naming one that is missing or no folder.
    pub fn new<P: AsRef<Path>>(roots: impl IntoIterator<Item = P>) -> Result<Self, Error> {
        let roots: Vec<Root> =
            roots.into_iter().map(|root| Root::open(root.as_ref())).collect::<Result<_, _>>()?;
        Self::over(roots, Arc::default())
    }

    fn over(mut roots: Vec<Root>, protected: Arc<Protected>) -> Result<Self, Error> {
        // A name has to tell roots apart, and `name:path` to be read in one way: the second `src` is `src~2`.
        for index in 0..roots.len() {
            let (before, rest) = roots.split_at_mut(index);
            if let Some(root) = rest.first_mut() {
                root.name = root.name.replace(':', "_");
                let plain = root.name.clone();
                let mut number = index + 1;
                while before.iter().any(|other| other.name == root.name) {
                    root.name = format!("{plain}~{number}");
                    number += 1;
                }
            }
        }
        #[cfg_attr(not(target_os = "linux"), allow(unused_variables, reason = "only Linux asks its kernel"))]
        let Some(first) = roots.first() else { return Err(Error::NoRoots) };
        Ok(Self {
            #[cfg(target_os = "linux")]
            by_kernel: folder::kernel::available(&first.folder),
            roots: roots.into(),
            protected,
        })
    }

    /// Protects `files` (absolute paths, existing or not) from every writing operation: policy and
    /// configuration that lie inside a writable root. A folder that holds one cannot be moved either.
    #[must_use]
    pub fn protect<P: Into<PathBuf>>(mut self, files: impl IntoIterator<Item = P>) -> Self {
        Arc::make_mut(&mut self.protected).files.extend(files.into_iter().map(Into::into));
        self
    }

    /// Protects every file called `name`, in whatever folder and existing or not, from every writing
    /// operation: a configuration that is looked for by name. Case is ignored. Unlike with
    /// [`protect`](Self::protect), a folder that holds one can be moved.
    #[must_use]
    pub fn protect_name(mut self, name: impl Into<OsString>) -> Self {
        Arc::make_mut(&mut self.protected).names.push(name.into());
        self
    }

    /// A workspace over some folders of this one, for a caller who may use less. The first becomes the
    /// primary root. Protection stays.
    ///
    /// # Errors
    /// One of `folders` cannot be opened beneath a root of this workspace.
    pub fn narrowed<P: AsRef<OsStr>>(&self, folders: impl IntoIterator<Item = P>) -> Result<Self, Error> {
        let roots = folders
            .into_iter()
            .map(|folder| {
                let (folder, canonical) = self.locate(folder.as_ref())?.open_canonical()?;
                Ok(Root::new(folder, canonical.clone(), canonical))
            })
            .collect::<Result<_, Error>>()?;
        Self::over(roots, Arc::clone(&self.protected))
    }

    /// This workspace for one call, which may reach only what `limit` allows: judged where something is opened,
    /// by where that lies, and not by the path that was asked for. The way to something allowed may lead
    /// through what is not.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn limited(&self, limit: &Arc<dyn Limit>) -> Result<Self, Error> {
        let roots = self.roots.iter().enumerate().map(|(index, root)| {
            let prefix = if index == 0 { String::new() } else { format!("{}:", root.name) };
            let limited = limit::Limited::root(Arc::clone(limit), prefix.into());
            let folder = root.folder.limited(limited).map_err(|error| Error::from_io("open", ".", error))?;
            Ok(Root { folder: Arc::new(folder), ..root.clone() })
        });
        Ok(Self {
            roots: roots.collect::<Result<_, Error>>()?,
            protected: Arc::clone(&self.protected),
            // The kernel does not say where it arrived.
            #[cfg(target_os = "linux")]
            by_kernel: false,
        })
    }

    /// Which root `path` belongs to, and where beneath it. A matter of text: nothing is opened, and the
    /// path need not exist.
    ///
    /// A relative path belongs to the first root, unless it has the form `name:path` in which paths of the
    /// other roots are shown. An absolute path must begin, component by component, with
    /// a root's path, either resolved or as the root was given; the longest root wins. `..` is left to the
    /// opening, which knows what it means behind a link.
    ///
    /// # Errors
    /// [`Error::Invalid`] for text that is no path, [`Error::Outside`] for an absolute path beneath no root.
    pub fn locate<P: AsRef<OsStr> + ?Sized>(&self, path: &P) -> Result<ConfinedPath, Error> {
        let text = path.as_ref();
        check_text(text)?;
        let path = Path::new(text);
        let (root, relative) = if path.has_root() || path.is_absolute() {
            let found = self.roots.iter().enumerate().filter_map(|(index, root)| {
                let (relative, depth) = root.strip(path)?;
                Some((depth, index, relative))
            });
            match found.max_by_key(|(depth, index, _)| (*depth, usize::MAX - index)) {
                Some((_, index, relative)) => (index, relative),
                None => return Err(Error::Outside { given: "the absolute path given".to_owned() }),
            }
        } else {
            self.named_root(text).unwrap_or((0, path))
        };
        ConfinedPath::new(self.clone(), root, relative)
    }

    /// What `name:path` names, the form in which paths of the other roots are shown.
    fn named_root<'path>(&self, text: &'path OsStr) -> Option<(usize, &'path Path)> {
        let (name, path) = text.to_str()?.split_once(':')?;
        let index = self.roots.iter().skip(1).position(|root| root.name == name)? + 1;
        let path = Path::new(if path.is_empty() { "." } else { path });
        (!path.has_root()).then_some((index, path))
    }

    /// Where the roots lie, primary root first. For the operator and for the client who may know; error
    /// messages never show it.
    pub fn roots(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.roots.iter().map(|root| root.canonical.as_path())
    }

    /// Paths as the walk resolves them, whatever the kernel can do.
    #[cfg(all(test, unix))]
    fn walking(self) -> Self {
        Self {
            #[cfg(target_os = "linux")]
            by_kernel: false,
            ..self
        }
    }

    /// `relative` as messages and results show it: alone in the primary root, after `name:` in another.
    fn show(&self, root: usize, relative: &Path) -> String {
        let shown =
            if relative.as_os_str().is_empty() { ".".to_owned() } else { printable(relative.as_os_str()) };
        match self.roots.get(root) {
            Some(found) if root > 0 => format!("{}:{shown}", found.name),
            _ => shown,
        }
    }

    /// The error for what the operating system said: that the root is gone, before all else.
    fn failed(&self, root: usize, action: &'static str, shown: &str, error: io::Error) -> Error {
        match self.roots.get(root) {
            Some(root) if root.is_gone() => Error::RootGone { root: root.name.clone() },
            _ => Error::from_io(action, shown, error),
        }
    }

    fn root(&self, index: usize) -> Result<&Root, Error> {
        self.roots.get(index).ok_or(Error::NoRoots)
    }
}

/// A name as text for a message or a list: what is no UTF-8 becomes U+FFFD, and control characters, which
/// could forge lines of output, are escaped.
pub fn printable(name: &OsStr) -> String {
    // 0xc2 begins the control characters past ASCII, and few others; most names have neither.
    let suspicious = |byte: &u8| *byte < 0x20 || matches!(byte, 0x7f | 0xc2);
    let text = name.to_string_lossy();
    if !text.as_bytes().iter().any(suspicious) {
        return text.into_owned();
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_control() {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

fn check_text(path: &OsStr) -> Result<(), Error> {
    let bytes = path.as_encoded_bytes();
    let reason = if bytes.is_empty() {
        "it is empty; use `.` for the first root"
    } else if bytes.contains(&0) {
        "it contains a NUL character"
    } else if bytes.len() > MAX_PATH_BYTES {
        "it is longer than 4096 bytes"
    } else {
        return Ok(());
    };
    Err(Error::Invalid { path: error::shortened(&path.to_string_lossy()), reason })
}

/// `path` with only names and `..` left: `.`, doubled and trailing separators mean nothing.
///
/// A drive or a root in the middle (Windows: `C:x`, `\x`) is refused.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => plain.push(".."),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(plain)
}
