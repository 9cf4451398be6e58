//! Attacks on files that belong to git, which no operation of this crate may change.

use std::fs;

use super::{RootsFixture, both, read};
use crate::{Error, FileReplaceCondition, TargetFile, Workspace};

#[allow(clippy::needless_pass_by_value, reason = "each result is made for its call")]
fn is_refused<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::GitFolder { .. }))
}

fn world() -> RootsFixture {
    let world = RootsFixture::new();
    for folder in
        ["root/.git/hooks", "root/bare.data/objects", "root/bare.data/refs", "root/sub", "root/folder"]
    {
        fs::create_dir_all(world.at(folder)).unwrap();
    }
    fs::write(world.at("root/.git/config"), "[core]\n").unwrap();
    fs::write(world.at("root/bare.data/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(world.at("root/sub/.git"), "gitdir: ../.git/modules/sub\n").unwrap();
    fs::write(world.at("root/payload"), "#!/bin/sh\n").unwrap();
    world.link(".git", "root/link");
    world.link(".git/config", "root/config_link");
    world
}

#[test]
fn what_git_keeps_withstands_every_way_to_change_it_and_can_be_read() {
    let world = world();
    for workspace in both(Workspace::new([world.at("root"), world.at("other")]).unwrap()) {
        let at = |path: &str| workspace.locate(path).unwrap();
        for path in [
            ".git/hooks/pre-commit",
            ".GIT/hooks/pre-commit",
            ".git /hooks/pre-commit",
            "git~1/config",
            "new/.git/config",
            "link/hooks/pre-commit",
            "link/config",
            "config_link",
            "src/../.git/config",
            "sub/.git",
            "new/.git",
            "other:.git/config",
            "bare.data/hooks/post-update",
            "bare.data/config",
            "src/HEAD",
        ] {
            assert!(is_refused(at(path).write(b"x")), "write {path}");
            assert!(
                is_refused(at(path).create_folder_all()) || at(path).kind().unwrap().is_some(),
                "folder {path}"
            );
            if path != "config_link" {
                assert!(is_refused(at("payload").rename_to(&at(path), true)), "move to {path}");
                assert!(is_refused(at("folder").rename_to(&at(path), false)), "move a folder to {path}");
            }
            if let Ok(target) = at(path).target() {
                assert!(is_refused(target.append(b"x")), "append {path}");
                assert!(is_refused(target.stage(b"x", FileReplaceCondition::Anything, None)), "stage {path}");
            }
        }
        for path in [".git", ".git/config", "sub/.git", "bare.data/HEAD", "link/config"] {
            assert!(is_refused(at(path).rename_to(&at("elsewhere"), false)), "move {path} away");
            assert!(path == ".git" || is_refused(at(path).remove_file()), "remove {path}");
            assert!(path == ".git" || is_refused(at(path).target().unwrap().set_aside()), "set aside {path}");
        }
        assert_eq!(read(&at(".git/config")).unwrap(), "[core]\n");
        assert_eq!(read(&at("config_link")).unwrap(), "[core]\n");
    }
    assert_eq!(fs::read_dir(world.at("root/.git/hooks")).unwrap().count(), 0);
    assert!(!world.at("root/new").exists() && !world.at("other/.git").exists());
}

#[test]
fn no_sequence_of_creations_makes_a_git_directory() {
    let world = RootsFixture::new();
    for workspace in world.workspaces() {
        let at = |path: &str| workspace.locate(path).unwrap();
        at("plant/objects/x").write(b"x").unwrap();
        at("plant/refs").create_folder_all().unwrap();
        at("plant/config").write(b"[core]\nfsmonitor = evil\n").unwrap();
        at("plant/other").write(b"ref: refs/heads/main\n").unwrap();
        assert!(is_refused(at("plant/HEAD").write(b"ref: refs/heads/main\n")));
        assert!(is_refused(at("plant/other").rename_to(&at("plant/HEAD"), false)));
        // One that came with the files of the project.
        fs::create_dir_all(world.at("root/came")).unwrap();
        fs::write(world.at("root/came/HEAD"), "ref: refs/heads/main\n").unwrap();
        for part in ["came/objects/x", "came/refs/x"] {
            assert!(is_refused(at(part).write(b"x")), "{part}");
        }
        assert!(is_refused(at("plant/objects").rename_to(&at("came/objects"), false)));
        // It is a file like any other as long as there is no more.
        at("came/HEAD").write(b"x").unwrap();
    }
}

#[test]
fn names_that_only_resemble_are_free() {
    let world = RootsFixture::new();
    let [workspace, _] = world.workspaces();
    for path in
        [".gitignore", ".github/workflows/ci.yml", "git/config", "x.git/config", "head", "refs/x", "objects"]
    {
        workspace.locate(path).unwrap().write(b"x").unwrap();
    }
}

#[test]
fn files_set_aside_come_back_unless_they_are_removed() {
    let world = RootsFixture::new();
    let [workspace, _] = world.workspaces();
    let target = workspace.locate("src/lib.rs").unwrap().target().unwrap();
    let aside = target.set_aside().unwrap();
    assert!(!world.at("root/src/lib.rs").exists());
    drop(aside);
    assert!(world.at("root/src/lib.rs").exists());
    target.set_aside().unwrap().restore().unwrap();
    assert!(world.at("root/src/lib.rs").exists());
    target.set_aside().unwrap().remove().unwrap();
    assert_eq!(fs::read_dir(world.at("root/src")).unwrap().count(), 0);
}

#[test]
fn locks_of_many_files_are_taken_once_each() {
    let world = RootsFixture::new();
    let [workspace, _] = world.workspaces();
    let targets: Vec<TargetFile> =
        (0..200).map(|index| workspace.locate(&format!("f{index}")).unwrap().target().unwrap()).collect();
    std::thread::scope(|scope| {
        for order in 0..4 {
            let targets = &targets;
            scope.spawn(move || {
                for _ in 0..50 {
                    let _locks = TargetFile::lock_all(targets.iter().skip(order * 30).chain(targets));
                }
            });
        }
    });
}
