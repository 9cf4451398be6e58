//! Attempts to leave the roots, each against both ways of resolving a path: the kernel's and the walk. Here are
//! the world in which they take place, and what they all try.

#![allow(clippy::disallowed_methods, reason = "the tests set up and look at the file system from outside")]

mod files;
mod generated;
mod git_folders;
mod limits;
mod links;
mod paths;
mod protection;
mod races;
mod roots;

use error_causes::chain;
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{ConfinedPath, Error, Workspace};

const SECRET: &str = "not for you";

/// A root, a second root, and beside them what must stay out of reach.
struct RootsFixture {
    outer: TempDir,
}

impl RootsFixture {
    fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        let world = Self { outer };
        for folder in ["root/src", "root2", "other", "outside"] {
            fs::create_dir_all(world.at(folder)).unwrap();
        }
        fs::write(world.at("root/src/lib.rs"), "pub fn f() {}\n").unwrap();
        fs::write(world.at("other/guide.md"), "read me\n").unwrap();
        fs::write(world.at("root2/twin.txt"), SECRET).unwrap();
        fs::write(world.at("outside/secret.txt"), SECRET).unwrap();
        world
    }

    fn at(&self, path: &str) -> PathBuf {
        self.outer.path().canonicalize().unwrap().join(path)
    }

    fn link(&self, target: impl AsRef<Path>, at: &str) {
        symlink(target, self.at(at)).unwrap();
    }

    /// The workspace over `root` and `other`, resolving by the kernel and by the walk.
    fn workspaces(&self) -> [Workspace; 2] {
        both(Workspace::new([self.at("root"), self.at("other")]).unwrap())
    }

    /// Asserts that the folder outside the roots is as it was.
    fn assert_outside_untouched(&self) {
        assert_eq!(fs::read_to_string(self.at("outside/secret.txt")).unwrap(), SECRET);
        let names: Vec<_> =
            fs::read_dir(self.at("outside")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["secret.txt"]);
    }
}

fn both(workspace: Workspace) -> [Workspace; 2] {
    [workspace.clone(), workspace.walking()]
}

fn read(path: &ConfinedPath) -> Result<String, Error> {
    let mut text = String::new();
    path.open_read()?.0.read_to_string(&mut text).unwrap();
    Ok(text)
}

/// Tries every operation on `path`, and asserts that each is refused for leaving the roots.
fn assert_all_refused(workspace: &Workspace, path: &str) {
    let located = match workspace.locate(path) {
        Ok(located) => located,
        Err(error) => {
            assert!(error.is_outside(), "{path}: {error}");
            return;
        }
    };
    let inside = workspace.locate("src/lib.rs").unwrap();
    let refusals = [
        ("read", located.open_read().err()),
        ("open folder", located.open_folder().err()),
        ("metadata", located.metadata().err()),
        ("kind", located.kind().err()),
        ("write", located.write(b"x").err()),
        ("append", located.target().and_then(|target| target.append(b"x")).err()),
        ("create folder", located.create_folder_all().err()),
        ("create below", located.join("new/file").unwrap().write(b"x").err()),
        ("remove below", located.join("secret.txt").unwrap().remove_file().err()),
        ("move below", inside.rename_to(&located.join("moved").unwrap(), true).err()),
        ("move from below", located.join("secret.txt").unwrap().rename_to(&inside, true).err()),
    ];
    for (operation, refusal) in refusals {
        match refusal {
            Some(error) if error.is_outside() => {}
            // Nothing is below a file, which is as good a reason.
            Some(Error::NotAFolder { .. }) if operation.ends_with("below") => {}
            other => panic!("{operation} of {path}: {other:?}"),
        }
    }
}
