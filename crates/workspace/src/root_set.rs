//! All allowed roots with what is protected in them: what every path and every open target refers to.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
#[cfg(target_os = "linux")]
use crate::folder::openat2;
use crate::path_text::printable;
use crate::protection::ProtectedFiles;
use crate::root::AllowedRoot;

/// The facts about a caller who works on the machine of the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct LocalCaller {
    /// The folder that `~` stands for.
    pub(crate) home: Option<PathBuf>,
}

/// The allowed roots and the files in them that no operation may change. Cloning it copies a few pointers.
#[derive(Clone, Debug)]
pub(crate) struct RootSet {
    /// The primary root first.
    pub(crate) roots: Arc<[AllowedRoot]>,
    pub(crate) protected: Arc<ProtectedFiles>,
    /// The files that are protected from callers who may not do everything, if those are more.
    pub(crate) restricted: Option<Arc<ProtectedFiles>>,
    /// The local caller, who may know where the roots lie; none if callers are elsewhere.
    pub(crate) local_caller: Option<Arc<LocalCaller>>,
    /// True if `openat2(2)` resolves whole paths in the kernel; otherwise the walk resolves them.
    #[cfg(target_os = "linux")]
    pub(crate) by_kernel: bool,
}

impl RootSet {
    /// Names `roots` so that each can be told from the others.
    ///
    /// # Errors
    /// [`Error::NoRoots`] if there is none.
    pub(crate) fn new(mut roots: Vec<AllowedRoot>, protected: Arc<ProtectedFiles>) -> Result<Self, Error> {
        // Names must tell roots apart, and `name:path` must have one reading: the second `src` is called `src~2`.
        for index in 0..roots.len() {
            let (earlier_roots, rest) = roots.split_at_mut(index);
            if let Some(root) = rest.first_mut() {
                root.name = root.name.replace(':', "_");
                let base_name = root.name.clone();
                let mut number = index + 1;
                while earlier_roots.iter().any(|other| other.name == root.name) {
                    root.name = format!("{base_name}~{number}");
                    number += 1;
                }
            }
        }
        #[cfg_attr(not(target_os = "linux"), allow(unused_variables, reason = "only Linux asks its kernel"))]
        let Some(first) = roots.first() else { return Err(Error::NoRoots) };
        Ok(Self {
            #[cfg(target_os = "linux")]
            by_kernel: openat2::is_available(&first.folder),
            roots: roots.into(),
            protected,
            restricted: None,
            local_caller: None,
        })
    }

    /// Returns the root and the path of `name:path`, the form in which paths of the other roots are shown.
    pub(crate) fn find_named<'path>(&self, text: &'path OsStr) -> Option<(usize, &'path Path)> {
        let (name, path) = text.to_str()?.split_once(':')?;
        // The primary root has no prefix in paths.
        let index = self.roots.iter().skip(1).position(|root| root.name == name)? + 1;
        let path = Path::new(if path.is_empty() { "." } else { path });
        (!path.has_root()).then_some((index, path))
    }

    /// Returns `relative` as messages and results show it: alone in the primary root, after `name:` in another.
    pub(crate) fn display_path(&self, root: usize, relative: &Path) -> String {
        let shown =
            if relative.as_os_str().is_empty() { ".".to_owned() } else { printable(relative.as_os_str()) };
        match self.roots.get(root) {
            Some(found) if root > 0 => format!("{}:{shown}", found.name),
            _ => shown,
        }
    }

    /// Returns the error for a path that leads outside, which names the roots as far as the caller may know them.
    pub(crate) fn outside(&self, given: impl Into<String>) -> Error {
        Error::Outside { given: given.into(), roots: self.describe_roots() }
    }

    /// Returns the roots in parentheses: by their paths for a local caller, otherwise by the names that paths in them have.
    fn describe_roots(&self) -> String {
        let roots: Vec<String> = match (&self.local_caller, &*self.roots) {
            (Some(_), roots) => {
                roots.iter().map(|root| format!("`{}`", printable(root.canonical.as_os_str()))).collect()
            }
            (None, [_]) => return String::new(),
            (None, roots) => (0..roots.len())
                .map(|index| format!("`{}`", self.display_path(index, Path::new(""))))
                .collect(),
        };
        format!(" ({})", roots.join(", "))
    }

    /// Returns the error for an operation that the operating system refused. If the root was removed, that is the
    /// error, since everything else follows from it.
    pub(crate) fn io_error(&self, root: usize, action: &'static str, shown: &str, error: io::Error) -> Error {
        match self.roots.get(root) {
            Some(root) if root.is_gone() => Error::RootGone { root: root.name.clone() },
            _ => Error::from_io(action, shown, error),
        }
    }

    /// Returns the root with this index.
    ///
    /// # Errors
    /// [`Error::NoRoots`] if there is no such root, which a path made by this set never asks for.
    pub(crate) fn get(&self, index: usize) -> Result<&AllowedRoot, Error> {
        self.roots.get(index).ok_or(Error::NoRoots)
    }
}
