//! Every result fits the schema of its type.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;

use super::testing::ProjectFixture;
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
    let project = ProjectFixture::with(&[("a.txt", "one\ntwo\n"), ("x.pdf", "%PDF-1.4"), ("sub/b", "")]);
    let (workspace, cancel) = (&project.workspace, &project.cancel);
    let path = || "a.txt".to_owned();
    let read = |limit| ReadFile { path: path(), limit, ..ReadFile::default() };
    assert_fits_its_schema(&read_file(workspace, &read(None), cancel).unwrap());
    assert_fits_its_schema(&read_file(workspace, &read(Some(1)), cancel).unwrap());
    let paths = ReadMultipleFiles::new([path(), "absent".to_owned()]);
    assert_fits_its_schema(&read_multiple_files(workspace, &paths, cancel).unwrap());
    assert_fits_its_schema(&read_media_file(workspace, &ReadMediaFile::new("x.pdf")).unwrap());
    let write = WriteFile { mode: WriteMode::Create, ..WriteFile::new("new", "x") };
    assert_fits_its_schema(&write_file(workspace, &write).unwrap());
    let edit = EditFile::new(path(), vec![TextReplacement::new("one", "1")]);
    assert_fits_its_schema(&edit_file(workspace, &edit).unwrap());
    let patch = ApplyPatch::new("*** Begin Patch\n*** Add File: p\n+x\n*** Delete File: p\n*** End Patch");
    assert_fits_its_schema(&apply_patch(workspace, &patch).unwrap());
    let list = ListDirectory { details: true, max_results: Some(1), ..ListDirectory::default() };
    assert_fits_its_schema(&list_directory(workspace, &list, cancel).unwrap());
    assert_fits_its_schema(&directory_tree(workspace, &DirectoryTree::default(), cancel).unwrap());
    assert_fits_its_schema(&file_exists(workspace, &PathExistenceCheck::new(path())).unwrap());
    assert_fits_its_schema(&directory_exists(workspace, &PathExistenceCheck::new("absent")).unwrap());
    assert_fits_its_schema(&get_file_info(workspace, &GetFileInfo::new("sub")).unwrap());
    assert_fits_its_schema(&create_directory(workspace, &CreateDirectory::new("d")).unwrap());
    let rename = MoveFile::new("new", "d/new");
    assert_fits_its_schema(&move_file(workspace, &rename).unwrap());
    assert_fits_its_schema(&delete_file(workspace, &DeleteFile::new("d/new")).unwrap());
}

#[test]
fn an_unknown_parameter_is_an_error() {
    let error = serde_json::from_str::<ReadFile>(r#"{"path": "a", "ofset": 3}"#).unwrap_err();
    assert!(error.to_string().starts_with("unknown field `ofset`"), "{error}");
}
