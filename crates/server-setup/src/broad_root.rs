//! The folders that nobody means to hand over whole: the root of the file system and the home folder.

use std::path::{Path, PathBuf};

/// A folder that is served only because the server was started there, and that holds far more than a project.
///
/// Desktop clients start servers in `/` or in the home folder. What they serve then is read-only, until a root is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroadRoot {
    folder: PathBuf,
    is_home: bool,
}

impl BroadRoot {
    /// Returns `folder` if it is the root of a file system, the user's home or a folder above it.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        Self::of_folder(folder, home.as_deref())
    }

    fn of_folder(folder: &Path, home: Option<&Path>) -> Option<Self> {
        // Compared by where they lead, since either may be a link.
        let real = folder.canonicalize().ok()?;
        let home = home.and_then(|home| home.canonicalize().ok());
        let is_home = home.as_deref() == Some(&real);
        let is_above_home = home.is_some_and(|home| home.starts_with(&real));
        (is_above_home || real.parent().is_none()).then_some(Self { folder: real, is_home })
    }

    /// Returns what its callers and its user are told.
    pub fn notice(&self) -> String {
        let what = if self.is_home { ", the home folder," } else { "" };
        format!(
            "read-only: the server was started in {}{what} without a root; name the project's folder with `--root` (or \
             `roots` in coretools.toml) to let it change files and run commands",
            self.folder.display()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "tests make the folders that the module looks at")]
    fn the_root_the_home_and_what_is_above_it_are_broad_and_a_project_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (home, project) = (folder.path().join("home/user"), folder.path().join("home/user/project"));
        std::fs::create_dir_all(&project).unwrap();
        let broad = |path: &Path| BroadRoot::of_folder(path, Some(&home));
        assert!(broad(Path::new("/")).is_some() && broad(&folder.path().join("home")).is_some());
        assert!(broad(&home).unwrap().notice().contains("the home folder"));
        assert_eq!(broad(&project), None);
        assert_eq!(BroadRoot::of_folder(&home, None), None);
    }
}
