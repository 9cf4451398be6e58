//! Links that leave, that stay, that loop, and those that only `/proc` has.

use std::fs;
use std::os::fd::AsRawFd;

use super::{RootsFixture, assert_all_refused, both, read};
use crate::{Error, PathKind, Workspace};

#[test]
fn links_that_leave_are_refused_by_every_operation() {
    let world = RootsFixture::new();
    world.link(world.at("outside/secret.txt"), "root/abs_file");
    world.link(world.at("outside"), "root/abs_folder");
    world.link("../outside/secret.txt", "root/rel_file");
    world.link("../outside", "root/rel_folder");
    world.link("../../outside", "root/src/deep");
    world.link("rel_folder", "root/chain2");
    world.link("chain2", "root/chain1");
    world.link("../outside/new.txt", "root/dangling");
    world.link(world.at("outside/new.txt"), "root/abs_dangling");
    world.link("/proc/self/root", "root/magic");
    world.link("/proc/self/cwd", "root/magic_cwd");
    world.link("../root2", "root/twin");
    world.link("/", "root/slash");
    for workspace in world.workspaces() {
        for link in [
            "abs_file",
            "abs_folder",
            "rel_file",
            "rel_folder",
            "src/deep",
            "chain1",
            "dangling",
            "abs_dangling",
            "magic",
            "magic_cwd",
            "twin",
            "slash",
            "abs_folder/secret.txt",
            "rel_folder/secret.txt",
            "src/deep/secret.txt",
            "chain1/secret.txt",
            "twin/twin.txt",
            "slash/etc/passwd",
            "magic/etc/passwd",
            "src/../rel_folder/secret.txt",
        ] {
            assert_all_refused(&workspace, link);
        }
        let error = workspace.locate("chain1/secret.txt").unwrap().open_read().unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("`rel_folder` is a symbolic link that leads outside the allowed roots")
        );
    }
    world.assert_outside_untouched();
    assert!(!world.at("outside/new.txt").exists());
}

#[test]
fn removing_or_moving_a_link_that_leaves_concerns_the_link_itself() {
    let world = RootsFixture::new();
    for workspace in world.workspaces() {
        world.link(world.at("outside/secret.txt"), "root/link");
        assert_eq!(workspace.locate("link").unwrap().link_metadata().unwrap().kind, PathKind::Symlink);
        workspace.locate("link").unwrap().rename_to(&workspace.locate("moved").unwrap(), false).unwrap();
        assert_eq!(fs::read_link(world.at("root/moved")).unwrap(), world.at("outside/secret.txt"));
        workspace.locate("moved").unwrap().remove_file().unwrap();
        assert!(fs::symlink_metadata(world.at("root/moved")).is_err());
    }
    world.assert_outside_untouched();
}

#[test]
fn links_that_stay_are_followed_also_absolute_ones_and_into_another_root() {
    let world = RootsFixture::new();
    world.link("src/lib.rs", "root/rel");
    world.link(world.at("root/src/lib.rs"), "root/abs");
    world.link(world.at("root/src"), "root/folder");
    world.link("../root/src", "root/out_and_in");
    world.link("/proc/self/root/../../..", "root/silly");
    world.link(world.at("other"), "root/abs_other");
    world.link("../other/guide.md", "root/rel_other");
    for workspace in world.workspaces() {
        for path in ["rel", "abs", "folder/lib.rs", "out_and_in/lib.rs", "folder/../src/lib.rs"] {
            assert_eq!(read(&workspace.locate(path).unwrap()).unwrap(), "pub fn f() {}\n", "{path}");
        }
        for path in ["abs_other/guide.md", "rel_other"] {
            assert_eq!(read(&workspace.locate(path).unwrap()).unwrap(), "read me\n", "{path}");
        }
        // A write goes to the file, and the link stays a link.
        workspace.locate("abs").unwrap().write(b"pub fn f() {}\n").unwrap();
        workspace.locate("rel").unwrap().write(b"pub fn f() {}\n").unwrap();
        assert!(fs::symlink_metadata(world.at("root/abs")).unwrap().is_symlink());
        assert!(fs::symlink_metadata(world.at("root/rel")).unwrap().is_symlink());
        workspace.locate("abs_other/new/note.md").unwrap().write(b"n").unwrap();
        assert_eq!(fs::read_to_string(world.at("other/new/note.md")).unwrap(), "n");
    }
}

#[test]
fn a_dangling_link_that_stays_is_absent_and_a_write_creates_its_target() {
    let world = RootsFixture::new();
    for (index, workspace) in world.workspaces().into_iter().enumerate() {
        let name = format!("late{index}.txt");
        world.link(&name, &format!("root/dangling{index}"));
        let path = workspace.locate(&format!("dangling{index}")).unwrap();
        assert_eq!(path.kind().unwrap(), None);
        assert!(path.open_read().unwrap_err().is_not_found());
        path.write(b"now").unwrap();
        assert_eq!(fs::read_to_string(world.at("root").join(name)).unwrap(), "now");
    }
}

#[test]
fn a_loop_of_links_and_a_chain_too_long_are_named_as_such() {
    let world = RootsFixture::new();
    world.link("b", "root/a");
    world.link("a", "root/b");
    world.link("self/x", "root/self");
    world.link("src", "root/l0");
    for index in 1..60 {
        world.link(format!("l{}", index - 1), &format!("root/l{index}"));
    }
    for workspace in world.workspaces() {
        for path in ["a", "a/x", "self", "l59", "l59/lib.rs"] {
            let error = workspace.locate(path).unwrap().metadata().unwrap_err();
            assert!(matches!(error, Error::LinkLoop { .. }), "{path}: {error}");
        }
        assert!(workspace.locate("l30/lib.rs").unwrap().open_read().is_ok());
    }
}

#[test]
fn the_magic_links_of_proc_lead_nowhere() {
    let secret = RootsFixture::new();
    let open = fs::File::open(secret.at("outside/secret.txt")).unwrap();
    for workspace in both(Workspace::new(["/proc/self"]).unwrap()) {
        for path in ["root/etc/passwd", "cwd", "exe", "root", &format!("fd/{}", open.as_raw_fd())] {
            let error = workspace.locate(path).unwrap().open_read().unwrap_err();
            assert!(error.is_outside(), "{path}: {error}");
        }
    }
}
