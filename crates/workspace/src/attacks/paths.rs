//! Paths that leave by their own text, and text that is no path.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::{RootsFixture, assert_all_refused, read};
use crate::Error;

#[test]
fn dot_dot_is_refused_where_it_leaves_and_works_where_it_stays() {
    let world = RootsFixture::new();
    for workspace in world.workspaces() {
        for path in
            ["..", "../outside", "../outside/secret.txt", "src/../../outside/secret.txt", "../root2/twin.txt"]
        {
            assert_all_refused(&workspace, path);
        }
        assert_eq!(read(&workspace.locate("src/../src/./lib.rs").unwrap()).unwrap(), "pub fn f() {}\n");
        // Up and back into a root is inside.
        assert_eq!(read(&workspace.locate("../root/src/lib.rs").unwrap()).unwrap(), "pub fn f() {}\n");
        assert_eq!(read(&workspace.locate("../other/guide.md").unwrap()).unwrap(), "read me\n");
    }
    world.assert_outside_untouched();
}

#[test]
fn absolute_paths_work_beneath_a_root_only() {
    let world = RootsFixture::new();
    for workspace in world.workspaces() {
        for path in ["outside/secret.txt", "root2/twin.txt", "root2", "", "root/../outside/secret.txt"] {
            assert_all_refused(&workspace, world.at(path).to_str().unwrap());
        }
        for path in ["/", "/etc/passwd", "/proc/self/root/etc/passwd", "//etc/passwd", "/dev/null"] {
            assert_all_refused(&workspace, path);
        }
        let inside = workspace.locate(&world.at("root/src/lib.rs")).unwrap();
        assert_eq!(read(&inside).unwrap(), "pub fn f() {}\n");
        assert_eq!(inside.display_path(), "src/lib.rs");
        let second = workspace.locate(&world.at("other/guide.md")).unwrap();
        assert_eq!(read(&second).unwrap(), "read me\n");
        assert_eq!(second.display_path(), "other:guide.md");
        assert_eq!(workspace.locate(&world.at("root")).unwrap().display_path(), ".");
    }
}

#[test]
fn text_that_is_no_path_is_refused_with_the_reason() {
    let world = RootsFixture::new();
    let [workspace, _] = world.workspaces();
    let long = "x/".repeat(3000);
    for (path, reason) in [("", "empty"), ("a\0b", "NUL"), (long.as_str(), "4096")] {
        let error = workspace.locate(path).unwrap_err();
        assert!(matches!(&error, Error::Invalid { reason: found, .. } if found.contains(reason)), "{error}");
        assert!(error.to_string().len() < 300);
    }
    let name = "n".repeat(256);
    for workspace in world.workspaces() {
        let path = workspace.locate(&name).unwrap();
        assert!(matches!(path.open_read(), Err(Error::Invalid { .. })));
        assert!(matches!(path.write(b"x"), Err(Error::Invalid { .. })));
        // 255 bytes are a name, also for the temporary file beside it.
        let path = workspace.locate(&name[..255]).unwrap();
        path.write(b"x").unwrap();
        path.write(b"y").unwrap();
    }
}

#[test]
fn a_deep_path_costs_no_descriptors() {
    let world = RootsFixture::new();
    let [workspace, walking] = world.workspaces();
    let deep = "d/".repeat(400) + "file";
    workspace.locate(&deep).unwrap().write(b"deep").unwrap();
    let up_and_down = format!("{}{}src/lib.rs", "d/".repeat(300), "../".repeat(300));
    for workspace in [&workspace, &walking] {
        assert_eq!(read(&workspace.locate(&deep).unwrap()).unwrap(), "deep");
        assert_eq!(read(&workspace.locate(&up_and_down).unwrap()).unwrap(), "pub fn f() {}\n");
    }
}

#[test]
fn names_are_bytes_whatever_they_look_like() {
    let world = RootsFixture::new();
    let raw = OsStr::from_bytes(b"caf\xe9.txt");
    for (index, workspace) in world.workspaces().into_iter().enumerate() {
        workspace.locate(raw).unwrap().write(b"latin").unwrap();
        assert!(world.at("root").join(raw).exists());
        assert_eq!(workspace.locate(raw).unwrap().display_path(), "caf\u{fffd}.txt");
        // Composed and decomposed are two names, and neither is normalised into the other.
        workspace.locate("caf\u{e9}").unwrap().write(b"nfc").unwrap();
        if index == 0 {
            assert!(workspace.locate("cafe\u{301}").unwrap().open_read().unwrap_err().is_not_found());
        }
        workspace.locate("cafe\u{301}").unwrap().write(b"nfd").unwrap();
        assert_eq!(read(&workspace.locate("caf\u{e9}").unwrap()).unwrap(), "nfc");
        for odd in ["...", "-rf", " ", "$HOME", "\u{202e}txt", "C:", "*", "..\u{2044}x", "．．", "%2e%2e"] {
            workspace.locate(odd).unwrap().write(b"odd").unwrap();
            assert!(world.at("root").join(odd).is_file(), "{odd}");
        }
        let forged = workspace.locate("a\nb\u{1b}[31m").unwrap();
        assert_eq!(forged.display_path(), "a\\nb\\u{1b}[31m");
    }
}

#[test]
fn case_distinguishes_names_where_the_file_system_says_so() {
    let world = RootsFixture::new();
    if world.at("ROOT").exists() {
        return; // A file system that ignores case; nothing to prove.
    }
    for workspace in world.workspaces() {
        assert!(workspace.locate(&world.at("ROOT/src/lib.rs")).unwrap_err().is_outside());
        let error = workspace.locate("SRC/LIB.rs").unwrap().open_read().unwrap_err();
        assert_eq!(error.to_string(), "`SRC/LIB.rs` does not exist: there is no `SRC`; did you mean `src`?");
        let error = workspace.locate("src/Lib.rs").unwrap().open_read().unwrap_err();
        assert_eq!(error.to_string(), "`src/Lib.rs` does not exist; did you mean `src/lib.rs`?");
    }
}

#[test]
fn a_home_folder_is_that_of_a_local_caller_and_never_a_name() {
    let world = RootsFixture::new();
    let remote = world.workspaces();
    for workspace in &remote {
        for path in ["~", "~/", "~/x.txt", "~//etc/passwd", "~\\x.txt"] {
            let error = workspace.locate(path).unwrap_err();
            let expected = "`~`, a home folder, leads outside the allowed roots (`.`, `other:.`); use a path";
            assert!(error.is_outside() && error.to_string().starts_with(expected), "{error}");
        }
        // Its own name can still be written.
        workspace.locate("./~/x.txt").unwrap().write(b"x").unwrap();
        assert_eq!(read(&workspace.locate("./~/x.txt").unwrap()).unwrap(), "x");
    }
    for workspace in remote {
        let inside = workspace.clone().for_local_caller(Some(world.at("root")));
        assert_eq!(inside.locate("~/src/lib.rs").unwrap().display_path(), "src/lib.rs");
        assert_eq!(inside.locate("~").unwrap().display_path(), ".");
        let outside = workspace.clone().for_local_caller(Some(world.at("outside")));
        let error = outside.locate("~/secret.txt").unwrap_err().to_string();
        assert!(error.contains(&format!("(`{}`", world.at("root").display())), "{error}");
        assert!(
            outside.locate("~/../other/guide.md").is_err(),
            "`..` is left to the opening, which does not begin outside"
        );
        assert!(workspace.for_local_caller(None).locate("~/x").unwrap_err().is_outside());
    }
}

#[test]
fn backslashes_separate_names_where_no_name_has_them() {
    let world = RootsFixture::new();
    for workspace in world.workspaces() {
        let located = workspace.locate("src\\lib.rs").unwrap();
        assert_eq!(located.display_path(), "src/lib.rs");
        assert_eq!(read(&located).unwrap(), "pub fn f() {}\n");
        assert_eq!(workspace.locate("new\\a\\ b.txt").unwrap().display_path(), "new/a b.txt");
        for path in ["C:\\Users\\me", "c:/Users/me", "D:\\"] {
            let error = workspace.locate(path).unwrap_err();
            assert!(error.is_outside() && error.to_string().contains("a drive of Windows"), "{error}");
        }
        assert_all_refused(&workspace, "..\\outside\\secret.txt");
        // A name with a backslash that is there is that name.
        std::fs::write(world.at("root/a\\b"), "odd").unwrap();
        assert_eq!(read(&workspace.locate("a\\b").unwrap()).unwrap(), "odd");
        std::fs::remove_file(world.at("root/a\\b")).unwrap();
    }
}
