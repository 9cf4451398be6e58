//! Roots: their names, one within another, gone, narrowed, and never shown.

use std::fs;
use std::path::Path;

use super::{RootsFixture, both, chain, read};
use crate::{Error, Workspace};

#[test]
fn a_root_named_through_a_link_answers_to_both_names() {
    let world = RootsFixture::new();
    world.link("root", "alias");
    for workspace in both(Workspace::new([world.at("alias")]).unwrap()) {
        for spelling in ["alias/src/lib.rs", "root/src/lib.rs"] {
            let path = workspace.locate(&world.at(spelling)).unwrap();
            assert_eq!(path.display_path(), "src/lib.rs");
            assert!(path.open_read().is_ok());
        }
        assert!(workspace.locate(&world.at("alias2")).is_err());
    }
}

#[test]
fn of_nested_roots_the_longest_takes_a_path() {
    let world = RootsFixture::new();
    let workspace = Workspace::new([world.at("root"), world.at("root/src")]).unwrap();
    assert_eq!(workspace.locate(&world.at("root/src/lib.rs")).unwrap().display_path(), "src:lib.rs");
}

#[test]
fn a_path_of_another_root_can_be_given_back_as_it_was_shown() {
    let world = RootsFixture::new();
    for workspace in world.workspaces() {
        let shown = workspace.locate(&world.at("other/guide.md")).unwrap().display_path();
        assert_eq!(shown, "other:guide.md");
        assert_eq!(read(&workspace.locate(&shown).unwrap()).unwrap(), "read me\n");
        assert!(read(&workspace.locate("other:../outside/secret.txt").unwrap()).unwrap_err().is_outside());
        // The primary root needs no name, and what names no root is a name like any other.
        assert_eq!(workspace.locate("root:x").unwrap().display_path(), "root:x");
        assert_eq!(workspace.locate("other:/etc/passwd").unwrap().relative(), Path::new("other:/etc/passwd"));
    }
}

#[test]
fn roots_of_the_same_name_are_told_apart() {
    let world = RootsFixture::new();
    fs::create_dir_all(world.at("root2/src")).unwrap();
    let workspace = Workspace::new([world.at("root/src"), world.at("root2/src")]).unwrap();
    let shown = workspace.locate(&world.at("root2/src/a.rs")).unwrap().display_path();
    assert_eq!(shown, "src~2:a.rs");
    assert_eq!(workspace.locate(&shown).unwrap().to_absolute(), world.at("root2/src/a.rs"));
}

#[test]
fn a_root_removed_while_running_is_said_to_be_gone() {
    let world = RootsFixture::new();
    let workspaces = both(Workspace::new([world.at("root")]).unwrap());
    fs::remove_dir_all(world.at("root")).unwrap();
    // A new folder at the same path is another folder, and its content is not what was allowed.
    fs::create_dir(world.at("root")).unwrap();
    fs::write(world.at("root/file"), "new").unwrap();
    for workspace in workspaces {
        let path = workspace.locate("file").unwrap();
        let errors = [
            path.open_read().err(),
            path.metadata().err(),
            path.kind().err(),
            path.write(b"x").err(),
            path.remove_file().err(),
            workspace.locate("src").unwrap().create_folder_all().err(),
        ];
        for error in errors {
            assert!(matches!(error, Some(Error::RootGone { .. })), "{error:?}");
        }
    }
}

#[test]
fn a_missing_root_is_named_at_the_start() {
    let world = RootsFixture::new();
    let error = Workspace::new([world.at("root"), world.at("absent")]).unwrap_err();
    assert!(chain(&error).contains("absent"), "{error}");
    assert!(matches!(Workspace::new([world.at("root/src/lib.rs")]), Err(Error::Root { .. })));
    assert!(matches!(Workspace::new::<&Path>([]), Err(Error::NoRoots)));
}

#[test]
fn no_message_shows_where_a_root_or_anything_outside_lies() {
    let world = RootsFixture::new();
    world.link(world.at("outside"), "root/out");
    world.link("nowhere", "root/dangling");
    fs::create_dir(world.at("root/folder")).unwrap();
    let outer = world.outer.path().canonicalize().unwrap();
    for workspace in world.workspaces() {
        for path in [
            "out",
            "out/x",
            "dangling",
            "absent/x",
            "folder",
            "src/lib.rs/x",
            "../outside",
            "..",
            "src/lob.rs",
        ] {
            for path in [workspace.locate(path), workspace.locate(&world.at("root").join(path))] {
                let Ok(path) = path else { continue };
                let errors = [
                    path.open_read().err(),
                    path.open_folder().err().filter(|_| !path.display_path().contains("folder")),
                    path.remove_file().err(),
                    path.join("b").unwrap().metadata().err(),
                    path.rename_to(&workspace.locate("folder").unwrap(), true).err(),
                ];
                for error in errors.into_iter().flatten() {
                    let text = chain(&error);
                    assert!(!text.contains(outer.to_str().unwrap()), "{text}");
                }
            }
        }
        let error = workspace.locate("/etc/passwd").unwrap_err();
        assert!(!chain(&error).contains("/etc"), "{error}");
        if !world.at("root/dangling").is_symlink() {
            world.link("nowhere", "root/dangling");
        }
        if !world.at("root/out").is_symlink() {
            world.link(world.at("outside"), "root/out");
        }
    }
}

#[test]
fn a_narrowed_workspace_reaches_less_and_never_more() {
    let world = RootsFixture::new();
    world.link(world.at("outside"), "root/out");
    world.link("src", "root/alias");
    for workspace in world.workspaces() {
        let narrow = workspace.narrowed(["alias"]).unwrap();
        assert_eq!(read(&narrow.locate("lib.rs").unwrap()).unwrap(), "pub fn f() {}\n");
        assert!(narrow.locate("../other").unwrap().kind().unwrap_err().is_outside());
        assert!(narrow.locate(&world.at("other/guide.md")).unwrap_err().is_outside());
        for wider in ["..", "out", "/", "/etc"] {
            assert!(workspace.narrowed([wider]).unwrap_err().is_outside(), "{wider}");
        }
        assert!(workspace.narrowed(["src/lib.rs"]).is_err());
        assert!(workspace.narrowed::<&str>([]).is_err());
    }
}
