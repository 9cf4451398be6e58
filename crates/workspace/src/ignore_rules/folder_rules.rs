//! The ignore files that count in a folder: its own and those of the folders above it.

use std::sync::Arc;

use super::file::IgnoreFile;

/// The ignore files that count in a folder. Cheap to clone; folders share the files of the folders above them.
#[derive(Clone, Debug, Default)]
pub struct FolderRules(Option<Arc<RulesLevel>>);

/// The ignore files of one folder, which has at least one, and those above it.
#[derive(Debug)]
struct RulesLevel {
    above: FolderRules,
    /// The bytes of a path that are its folder, with the slash.
    folder_len: usize,
    /// In the order of the names that were given. Absent files and those without rules are left out.
    files: Vec<(usize, IgnoreFile)>,
    /// The names that were given to this level or to one above it.
    names: usize,
}

impl FolderRules {
    /// Returns these rules with those of `folder` beneath. `read` reads one of its ignore files, and returns an empty one
    /// for a file that is not there.
    ///
    /// Paths are relative to one root, which is `""`, and have slashes. `names` are the names of ignore files by
    /// precedence, and the same for each folder. All files of the first name decide before the files of the second
    /// name, in whatever folder they are.
    ///
    /// # Errors
    /// The first error of `read`.
    pub fn with_folder<E>(
        &self,
        folder: &[u8],
        names: &[&str],
        mut read: impl FnMut(&str) -> Result<IgnoreFile, E>,
    ) -> Result<Self, E> {
        let mut files = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let file = read(name)?;
            if !file.is_empty() {
                files.push((at, file));
            }
        }
        if files.is_empty() {
            return Ok(self.clone());
        }
        let folder_len = if folder.is_empty() { 0 } else { folder.len() + 1 };
        let names = names.len().max(self.0.as_ref().map_or(0, |level| level.names));
        Ok(Self(Some(Arc::new(RulesLevel { above: self.clone(), folder_len, files, names }))))
    }

    /// Returns true if there are no rules, so that nothing is ignored.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns true if the rules ignore `path`, which lies in the folder of the rules. All ignore files of one name
    /// decide, from the nearest folder to the root, before the files of the next name.
    pub fn is_ignored(&self, path: &[u8], is_folder: bool) -> bool {
        let names = self.0.as_ref().map_or(0, |level| level.names);
        let decision = (0..names).find_map(|name| {
            self.levels().find_map(|level| {
                let (_, file) = level.files.iter().find(|(at, _)| *at == name)?;
                file.decide(path.get(level.folder_len..)?, is_folder)
            })
        });
        decision.unwrap_or(false)
    }

    fn levels(&self) -> impl Iterator<Item = &RulesLevel> {
        std::iter::successors(self.0.as_deref(), |level| level.above.0.as_deref())
    }
}
