//! The filesystem tools, as plain functions over a [`Workspace`].
//!
//! Each takes its typed input and gives a typed result; most results also have a `to_text`, the cheapest
//! form a reader can take them in. All block, and say so when a limit bit: what was cut, how much there
//! was, how to get the rest.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! use core_tools::filesystem::{self, EditFile, Edit};
//! use core_tools::workspace::Workspace;
//!
//! let workspace = Workspace::new([folder.path()])?;
//! workspace.locate("a.txt")?.write(b"one\ntwo\n")?;
//! let edited = filesystem::edit_file(
//!     &workspace,
//!     &EditFile {
//!         path: "a.txt".into(),
//!         edits: vec![Edit { old_string: "two".into(), new_string: "2".into(), replace_all: false }],
//!         dry_run: false,
//!     },
//! )?;
//! assert!(edited.diff.contains("-two\n+2\n"));
//! # Ok(())
//! # }
//! ```

mod directories;
mod edit;
mod error;
mod exists;
mod find;
mod gitignore;
mod glob;
mod info;
mod list;
mod mask;
mod media;
mod moving;
mod read;
mod read_multiple;
mod search;
mod signature;
#[cfg(test)]
mod testing;
mod tree;
mod walk;
mod write;

pub use directories::{CreateDirectory, CreatedDirectory, create_directory};
pub use edit::{Edit, EditFile, EditProblem, Edited, edit_file};
pub use error::Error;
pub use exists::{Existence, Exists, directory_exists, exists_at_hand, file_exists};
pub use find::{FindFiles, FindKind, FoundFiles, find_files};
pub use glob::GlobList;
pub use info::{FileInfo, GetFileInfo, get_file_info};
pub use list::{ListDirectory, Listed, Listing, list_directory};
pub use media::{Media, MediaFile, ReadMediaFile, read_media_file};
pub use moving::{DeleteFile, Deleted, MoveFile, Moved, delete_file, move_file};
pub use read::{ReadFile, TextFile, read_file};
pub use read_multiple::{FileOrError, FilesRead, ReadMultipleFiles, read_multiple_files};
pub use search::{Case, SearchFiles, SearchMode, SearchResult, search_files};
pub use tree::{DirectoryTree, Tree, directory_tree};
pub use write::{WriteFile, WriteMode, Written, write_file};

#[cfg(doc)]
use crate::workspace::Workspace;

/// The most text one answer holds, in bytes: about 10,000 tokens.
pub const MAX_TEXT_BYTES: usize = 40_000;

/// The path of the primary root, for inputs whose path may be left out.
fn here() -> String {
    ".".to_owned()
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use schemars::generate::SchemaSettings;
    use serde::Serialize;

    use super::testing::Project;
    use super::*;

    /// Against the schema as a reader and as a writer of it would have it.
    fn assert_fits_its_schema<T: Serialize + JsonSchema>(result: &T) {
        let value = serde_json::to_value(result).unwrap();
        for settings in
            [SchemaSettings::draft2020_12().for_serialize(), SchemaSettings::draft2020_12().for_deserialize()]
        {
            let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
            assert_eq!(schema["type"], "object");
            let validator = jsonschema::validator_for(&schema).unwrap();
            let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{errors:?} in {value}");
        }
    }

    #[test]
    fn every_result_fits_the_schema_of_its_type() {
        let project = Project::with(&[("a.txt", "one\ntwo\n"), ("x.pdf", "%PDF-1.4"), ("sub/b", "")]);
        let (workspace, cancel) = (&project.workspace, &project.cancel);
        let path = || "a.txt".to_owned();
        let read = |limit| ReadFile { path: path(), limit, ..ReadFile::default() };
        assert_fits_its_schema(&read_file(workspace, &read(None), cancel).unwrap());
        assert_fits_its_schema(&read_file(workspace, &read(Some(1)), cancel).unwrap());
        let paths = ReadMultipleFiles { paths: vec![path(), "absent".into()] };
        assert_fits_its_schema(&read_multiple_files(workspace, &paths, cancel).unwrap());
        assert_fits_its_schema(&read_media_file(workspace, &ReadMediaFile { path: "x.pdf".into() }).unwrap());
        let write = WriteFile { path: "new".into(), content: "x".into(), mode: WriteMode::Create };
        assert_fits_its_schema(&write_file(workspace, &write).unwrap());
        let edit = Edit { old_string: "one".into(), new_string: "1".into(), replace_all: false };
        let edit = EditFile { path: path(), edits: vec![edit], dry_run: false };
        assert_fits_its_schema(&edit_file(workspace, &edit).unwrap());
        let list = ListDirectory { details: true, limit: Some(1), ..ListDirectory::default() };
        assert_fits_its_schema(&list_directory(workspace, &list, cancel).unwrap());
        assert_fits_its_schema(&directory_tree(workspace, &DirectoryTree::default(), cancel).unwrap());
        assert_fits_its_schema(&file_exists(workspace, &Exists { path: path() }).unwrap());
        assert_fits_its_schema(&directory_exists(workspace, &Exists { path: "absent".into() }).unwrap());
        assert_fits_its_schema(&get_file_info(workspace, &GetFileInfo { path: "sub".into() }).unwrap());
        assert_fits_its_schema(&create_directory(workspace, &CreateDirectory { path: "d".into() }).unwrap());
        let rename = MoveFile { source: "new".into(), destination: "d/new".into(), overwrite: false };
        assert_fits_its_schema(&move_file(workspace, &rename).unwrap());
        assert_fits_its_schema(&delete_file(workspace, &DeleteFile { path: "d/new".into() }).unwrap());
    }

    #[test]
    fn an_unknown_parameter_is_an_error() {
        let error = serde_json::from_str::<ReadFile>(r#"{"path": "a", "ofset": 3}"#).unwrap_err();
        assert!(error.to_string().starts_with("unknown field `ofset`"), "{error}");
    }
}
