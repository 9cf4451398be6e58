//! Attempts to leave the roots, each against both ways of resolving a path: the kernel's and the walk.

#![allow(clippy::disallowed_methods, reason = "the tests set up and look at the file system from outside")]

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tempfile::TempDir;

use super::{ConfinedPath, Error, Expect, Kind, Workspace};

const SECRET: &str = "not for you";

/// A root, a second root, and beside them what must stay out of reach.
struct World {
    outer: TempDir,
}

impl World {
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

    /// What lies outside is as it was.
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

/// The error and what caused it, as a client would see them.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
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

#[test]
fn dot_dot_is_refused_where_it_leaves_and_works_where_it_stays() {
    let world = World::new();
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
    let world = World::new();
    for workspace in world.workspaces() {
        for path in ["outside/secret.txt", "root2/twin.txt", "root2", "", "root/../outside/secret.txt"] {
            assert_all_refused(&workspace, world.at(path).to_str().unwrap());
        }
        for path in ["/", "/etc/passwd", "/proc/self/root/etc/passwd", "//etc/passwd", "/dev/null"] {
            assert_all_refused(&workspace, path);
        }
        let inside = workspace.locate(&world.at("root/src/lib.rs")).unwrap();
        assert_eq!(read(&inside).unwrap(), "pub fn f() {}\n");
        assert_eq!(inside.shown(), "src/lib.rs");
        let second = workspace.locate(&world.at("other/guide.md")).unwrap();
        assert_eq!(read(&second).unwrap(), "read me\n");
        assert_eq!(second.shown(), "other:guide.md");
        assert_eq!(workspace.locate(&world.at("root")).unwrap().shown(), ".");
    }
}

#[test]
fn a_root_named_through_a_link_answers_to_both_names() {
    let world = World::new();
    world.link("root", "alias");
    for workspace in both(Workspace::new([world.at("alias")]).unwrap()) {
        for spelling in ["alias/src/lib.rs", "root/src/lib.rs"] {
            let path = workspace.locate(&world.at(spelling)).unwrap();
            assert_eq!(path.shown(), "src/lib.rs");
            assert!(path.open_read().is_ok());
        }
        assert!(workspace.locate(&world.at("alias2")).is_err());
    }
}

#[test]
fn of_nested_roots_the_longest_takes_a_path() {
    let world = World::new();
    let workspace = Workspace::new([world.at("root"), world.at("root/src")]).unwrap();
    assert_eq!(workspace.locate(&world.at("root/src/lib.rs")).unwrap().shown(), "src:lib.rs");
}

#[test]
fn a_path_of_another_root_can_be_given_back_as_it_was_shown() {
    let world = World::new();
    for workspace in world.workspaces() {
        let shown = workspace.locate(&world.at("other/guide.md")).unwrap().shown();
        assert_eq!(shown, "other:guide.md");
        assert_eq!(read(&workspace.locate(&shown).unwrap()).unwrap(), "read me\n");
        assert!(read(&workspace.locate("other:../outside/secret.txt").unwrap()).unwrap_err().is_outside());
        // The primary root needs no name, and what names no root is a name like any other.
        assert_eq!(workspace.locate("root:x").unwrap().shown(), "root:x");
        assert_eq!(workspace.locate("other:/etc/passwd").unwrap().relative(), Path::new("other:/etc/passwd"));
    }
}

#[test]
fn roots_of_the_same_name_are_told_apart() {
    let world = World::new();
    fs::create_dir_all(world.at("root2/src")).unwrap();
    let workspace = Workspace::new([world.at("root/src"), world.at("root2/src")]).unwrap();
    let shown = workspace.locate(&world.at("root2/src/a.rs")).unwrap().shown();
    assert_eq!(shown, "src~2:a.rs");
    assert_eq!(workspace.locate(&shown).unwrap().to_absolute(), world.at("root2/src/a.rs"));
}

#[test]
fn links_that_leave_are_refused_by_every_operation() {
    let world = World::new();
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
        assert_eq!(error.to_string(), "`rel_folder` is a symbolic link that leads outside the allowed roots");
    }
    world.assert_outside_untouched();
    assert!(!world.at("outside/new.txt").exists());
}

#[test]
fn removing_or_moving_a_link_that_leaves_concerns_the_link_itself() {
    let world = World::new();
    for workspace in world.workspaces() {
        world.link(world.at("outside/secret.txt"), "root/link");
        assert_eq!(workspace.locate("link").unwrap().link_metadata().unwrap().kind, Kind::Symlink);
        workspace.locate("link").unwrap().rename_to(&workspace.locate("moved").unwrap(), false).unwrap();
        assert_eq!(fs::read_link(world.at("root/moved")).unwrap(), world.at("outside/secret.txt"));
        workspace.locate("moved").unwrap().remove_file().unwrap();
        assert!(fs::symlink_metadata(world.at("root/moved")).is_err());
    }
    world.assert_outside_untouched();
}

#[test]
fn links_that_stay_are_followed_also_absolute_ones_and_into_another_root() {
    let world = World::new();
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
    let world = World::new();
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
    let world = World::new();
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
    let secret = World::new();
    let open = fs::File::open(secret.at("outside/secret.txt")).unwrap();
    for workspace in both(Workspace::new(["/proc/self"]).unwrap()) {
        for path in ["root/etc/passwd", "cwd", "exe", "root", &format!("fd/{}", open.as_raw_fd())] {
            let error = workspace.locate(path).unwrap().open_read().unwrap_err();
            assert!(error.is_outside(), "{path}: {error}");
        }
    }
}

#[test]
fn a_file_that_never_ends_or_waits_does_not_hold_the_opening() {
    let world = World::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, world.at("root/pipe"), 0o666.into()).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(world.at("root/socket")).unwrap();
    let started = Instant::now();
    for workspace in world.workspaces() {
        for (path, kind) in [("pipe", Kind::Fifo), ("socket", Kind::Socket)] {
            let path = workspace.locate(path).unwrap();
            assert!(matches!(path.open_read(), Err(Error::WrongKind { found, .. }) if found == kind));
            assert!(matches!(path.write(b"x"), Err(Error::WrongKind { found, .. }) if found == kind));
            let append = path.target().unwrap().append(b"x");
            assert!(matches!(append, Err(Error::WrongKind { found, .. }) if found == kind));
            assert_eq!(path.metadata().unwrap().kind, kind);
        }
    }
    for workspace in both(Workspace::new(["/dev"]).unwrap()) {
        for path in ["zero", "null", "tty", "full"] {
            let error = workspace.locate(path).unwrap().open_read().unwrap_err();
            assert!(matches!(error, Error::WrongKind { found: Kind::Device, .. }), "{path}: {error}");
        }
    }
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn text_that_is_no_path_is_refused_with_the_reason() {
    let world = World::new();
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
    let world = World::new();
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
    let world = World::new();
    let raw = OsStr::from_bytes(b"caf\xe9.txt");
    for (index, workspace) in world.workspaces().into_iter().enumerate() {
        workspace.locate(raw).unwrap().write(b"latin").unwrap();
        assert!(world.at("root").join(raw).exists());
        assert_eq!(workspace.locate(raw).unwrap().shown(), "caf\u{fffd}.txt");
        // Composed and decomposed are two names, and neither is normalised into the other.
        workspace.locate("caf\u{e9}").unwrap().write(b"nfc").unwrap();
        if index == 0 {
            assert!(workspace.locate("cafe\u{301}").unwrap().open_read().unwrap_err().is_not_found());
        }
        workspace.locate("cafe\u{301}").unwrap().write(b"nfd").unwrap();
        assert_eq!(read(&workspace.locate("caf\u{e9}").unwrap()).unwrap(), "nfc");
        for odd in [
            "...",
            "-rf",
            " ",
            "a\\b",
            "~",
            "$HOME",
            "\u{202e}txt",
            "C:",
            "*",
            "..\u{2044}x",
            "．．",
            "%2e%2e",
        ] {
            workspace.locate(odd).unwrap().write(b"odd").unwrap();
            assert!(world.at("root").join(odd).is_file(), "{odd}");
        }
        let forged = workspace.locate("a\nb\u{1b}[31m").unwrap();
        assert_eq!(forged.shown(), "a\\nb\\u{1b}[31m");
    }
}

#[test]
fn case_distinguishes_names_where_the_file_system_says_so() {
    let world = World::new();
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
fn a_hard_link_cannot_be_told_apart_but_is_never_written_through() {
    let world = World::new();
    for workspace in world.workspaces() {
        fs::hard_link(world.at("outside/secret.txt"), world.at("root/hard")).unwrap();
        let path = workspace.locate("hard").unwrap();
        // The documented limit: the name inside is the file.
        assert_eq!(read(&path).unwrap(), SECRET);
        assert_eq!(path.metadata().unwrap().links, 2);
        let append = path.target().unwrap().append(b"x");
        assert!(matches!(append, Err(Error::HardLinked { links: 2, .. })));
        path.write(b"mine now").unwrap();
        assert_eq!(read(&path).unwrap(), "mine now");
        world.assert_outside_untouched();
        path.remove_file().unwrap();
    }
}

#[test]
fn a_root_removed_while_running_is_said_to_be_gone() {
    let world = World::new();
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
    let world = World::new();
    let error = Workspace::new([world.at("root"), world.at("absent")]).unwrap_err();
    assert!(chain(&error).contains("absent"), "{error}");
    assert!(matches!(Workspace::new([world.at("root/src/lib.rs")]), Err(Error::Root { .. })));
    assert!(matches!(Workspace::new::<&Path>([]), Err(Error::NoRoots)));
}

#[test]
fn no_message_shows_where_a_root_or_anything_outside_lies() {
    let world = World::new();
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
                    path.open_folder().err().filter(|_| !path.shown().contains("folder")),
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

/// Tells the swapping to end, also when an assertion fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Swaps `a` and `b` until told to stop; says how often.
fn swap_until(stop: &AtomicBool, a: &Path, b: &Path) -> u64 {
    let mut swaps = 0;
    while !stop.load(Ordering::Relaxed) {
        let (from, to) = (rustix::fs::CWD, rustix::fs::CWD);
        rustix::fs::renameat_with(from, a, to, b, rustix::fs::RenameFlags::EXCHANGE).unwrap();
        swaps += 1;
    }
    swaps
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_swapped_for_a_link_during_the_opening_leaks_nothing() {
    let world = World::new();
    fs::create_dir(world.at("root/inside")).unwrap();
    fs::write(world.at("root/inside/secret.txt"), "harmless").unwrap();
    world.link(world.at("outside"), "root/link");
    for workspace in world.workspaces() {
        let stop = AtomicBool::new(false);
        let (swaps, opened) = std::thread::scope(|scope| {
            let swapper = scope.spawn(|| swap_until(&stop, &world.at("root/inside"), &world.at("root/link")));
            let ended = Stop(&stop);
            let mut opened = 0;
            for _ in 0..8_000 {
                for name in ["inside/secret.txt", "link/secret.txt", "src/../inside/secret.txt"] {
                    let path = workspace.locate(name).unwrap();
                    match read(&path) {
                        Ok(text) => {
                            assert_eq!(text, "harmless");
                            opened += 1;
                        }
                        Err(error) => assert!(!matches!(error, Error::Io { .. }), "{}", chain(&error)),
                    }
                }
            }
            drop(ended);
            (swapper.join().unwrap(), opened)
        });
        assert!(swaps > 500, "only {swaps} swaps: the race was not run");
        assert!(opened > 500, "only {opened} openings succeeded: the race was not run");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_or_file_swapped_for_a_link_during_a_write_writes_nothing_outside() {
    let world = World::new();
    fs::create_dir(world.at("root/inside")).unwrap();
    world.link(world.at("outside"), "root/link");
    fs::write(world.at("root/file"), "x").unwrap();
    world.link(world.at("outside/secret.txt"), "root/file_link");
    for workspace in world.workspaces() {
        let stop = AtomicBool::new(false);
        let (a, b) = std::thread::scope(|scope| {
            let folders = scope.spawn(|| swap_until(&stop, &world.at("root/inside"), &world.at("root/link")));
            let files =
                scope.spawn(|| swap_until(&stop, &world.at("root/file"), &world.at("root/file_link")));
            let ended = Stop(&stop);
            for round in 0..1000 {
                // What each answers depends on the moment; what it does must not reach outside.
                let in_folder = workspace.locate("inside/new/secret.txt").unwrap();
                let _ = in_folder.write(b"x");
                let _ = in_folder.remove_file();
                let _ = workspace.locate("inside/secret.txt").unwrap().remove_file();
                let file = workspace.locate("file").unwrap();
                let _ = file.target().and_then(|target| target.append(b"x"));
                if round % 8 == 0 {
                    let _ = workspace.locate("inside/secret.txt").unwrap().write(b"x");
                    let _ = workspace.locate("link/moved").unwrap().write(b"x");
                }
            }
            drop(ended);
            (folders.join().unwrap(), files.join().unwrap())
        });
        assert!(a > 100 && b > 100, "only {a} and {b} swaps: the race was not run");
        world.assert_outside_untouched();
    }
}

#[test]
fn a_protected_file_withstands_every_way_to_change_it() {
    let world = World::new();
    fs::create_dir_all(world.at("root/conf/deep")).unwrap();
    fs::write(world.at("root/conf/deep/policy.toml"), "mine").unwrap();
    fs::write(world.at("root/other.txt"), "other").unwrap();
    world.link("conf/deep/policy.toml", "root/by_link");
    world.link("conf", "root/conf_link");
    fs::hard_link(world.at("root/conf/deep/policy.toml"), world.at("root/by_hard_link")).unwrap();
    let protected = [world.at("root/conf/deep/policy.toml"), world.at("root/conf_link/later.toml")];
    let workspace = Workspace::new([world.at("root")]).unwrap().protect(protected);
    for workspace in both(workspace) {
        let at = |path: &str| workspace.locate(path).unwrap();
        let is_refused = |result: Result<(), Error>| matches!(result, Err(Error::Protected { .. }));
        for path in [
            "conf/deep/policy.toml",
            "by_link",
            "by_hard_link",
            "conf_link/deep/policy.toml",
            "conf/later.toml",
            "conf/deep/../later.toml",
            "conf/deep/POLICY.toml",
            "conf/deep/../../conf/deep/policy.toml",
        ] {
            assert!(is_refused(at(path).write(b"x")), "write {path}");
            assert!(is_refused(at(path).target().unwrap().append(b"x")), "append {path}");
            // Moving onto a link that is not itself protected replaces the link only.
            assert!(
                path == "by_link" || is_refused(at("other.txt").rename_to(&at(path), true)),
                "move onto {path}"
            );
        }
        for path in ["conf/deep/policy.toml", "conf", "conf/deep", "conf_link", "by_hard_link"] {
            assert!(is_refused(at(path).rename_to(&at("elsewhere"), false)), "move {path} away");
        }
        for path in ["conf/deep/policy.toml", "conf_link", "by_hard_link"] {
            assert!(is_refused(at(path).remove_file()), "remove {path}");
        }
        assert!(is_refused(at("conf/later.toml").create_folder_all().map(|_| ())));
        assert!(is_refused(at("conf/later.toml/x").write(b"x")));
        // What only lies beside is free, and reading always is.
        at("conf/deep/free.toml").write(b"x").unwrap();
        assert_eq!(read(&at("by_link")).unwrap(), "mine");
    }
    assert_eq!(fs::read_to_string(world.at("root/conf/deep/policy.toml")).unwrap(), "mine");
}

#[test]
fn a_protected_name_withstands_every_way_to_make_change_or_remove_it_in_any_folder() {
    const NAME: &str = "coretools.toml";
    let world = World::new();
    fs::write(world.at("root/coretools.toml"), "mine").unwrap();
    fs::write(world.at("root/other.txt"), "other").unwrap();
    fs::create_dir_all(world.at("root/deep/er")).unwrap();
    world.link("coretools.toml", "root/by_link");
    world.link("src/coretools.toml", "root/by_dangling_link");
    fs::hard_link(world.at("root/coretools.toml"), world.at("root/by_hard_link")).unwrap();
    let workspace = Workspace::new([world.at("root"), world.at("other")]).unwrap().protect_name(NAME);
    let narrow = workspace.narrowed(["deep"]).unwrap();
    assert!(matches!(narrow.locate("er/coretools.toml").unwrap().write(b"x"), Err(Error::Protected { .. })));
    for workspace in both(workspace) {
        let at = |path: &str| workspace.locate(path).unwrap();
        let is_refused = |result: Result<(), Error>| matches!(result, Err(Error::Protected { .. }));
        for path in [
            "coretools.toml",
            "CoreTools.TOML",
            "coretoolſ.toml",
            "src/coretools.toml",
            "src/../deep/er/coretools.toml",
            "other:coretools.toml",
            "by_link",
            "by_dangling_link",
            "by_hard_link",
        ] {
            assert!(is_refused(at(path).write(b"x")), "write {path}");
            assert!(is_refused(at(path).target().unwrap().append(b"x")), "append {path}");
            let expect = at(path).target().unwrap().replace(b"x", Expect::Missing);
            assert!(is_refused(expect) || fs::metadata(at(path).to_absolute()).is_ok(), "create {path}");
            if !path.starts_with("by_") {
                assert!(is_refused(at("other.txt").rename_to(&at(path), true)), "move onto {path}");
                assert!(is_refused(at("other.txt").rename_to(&at(path), false)), "move to {path}");
                assert!(is_refused(at("deep").rename_to(&at(path), false)), "move a folder to {path}");
                assert!(is_refused(at(path).create_folder_all().map(|_| ())) || path == NAME, "{path}/");
            }
        }
        assert!(is_refused(at("new/coretools.toml/x").write(b"x")));
        for path in ["coretools.toml", "by_hard_link"] {
            assert!(is_refused(at(path).rename_to(&at("elsewhere"), false)), "move {path} away");
            assert!(is_refused(at(path).remove_file()), "remove {path}");
        }
        // What only resembles it is free, and reading always is.
        for path in ["coretools.toml.example", "my-coretools.toml", "src/coretools", "toml"] {
            at(path).write(b"x").unwrap();
            at(path).remove_file().unwrap();
        }
        assert_eq!(read(&at("by_link")).unwrap(), "mine");
    }
    assert_eq!(fs::read_to_string(world.at("root/coretools.toml")).unwrap(), "mine");
    assert!(!world.at("root/src/coretools.toml").exists() && !world.at("other/coretools.toml").exists());
}

#[test]
fn a_narrowed_workspace_reaches_less_and_never_more() {
    let world = World::new();
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

#[test]
fn a_write_keeps_the_mode_and_leaves_no_temporary_file() {
    let world = World::new();
    for workspace in world.workspaces() {
        let script = world.at("root/run.sh");
        fs::write(&script, "old").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o751)).unwrap();
        workspace.locate("run.sh").unwrap().write(b"new").unwrap();
        assert_eq!(fs::metadata(&script).unwrap().mode() & 0o7777, 0o751);
        // A write that is refused at the last moment.
        let target = workspace.locate("run.sh").unwrap().target().unwrap();
        let stamp = target.metadata().unwrap().unwrap().stamp();
        fs::write(&script, "changed by somebody else").unwrap();
        assert!(matches!(target.replace(b"x", Expect::Unchanged(stamp)), Err(Error::Changed { .. })));
        assert!(matches!(target.replace(b"x", Expect::Missing), Err(Error::AlreadyExists { .. })));
        assert_eq!(fs::read_to_string(&script).unwrap(), "changed by somebody else");
        let left = fs::read_dir(world.at("root")).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(left.filter(|name| name.to_string_lossy().contains("tmp")).count(), 0);
    }
}

/// Paths of names that exist, links of every sort, `..`, and now and then an absolute beginning.
fn requests() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "..",
        ".",
        "src",
        "lib.rs",
        "in",
        "out",
        "up",
        "abs_in",
        "abs_out",
        "other",
        "outside",
        "secret.txt",
        "root",
        "root2",
        "twin.txt",
        "guide.md",
        "absent",
        "dangling",
        "loop",
        "",
    ]);
    let start =
        prop::sample::select(vec!["", "", "", "", "/", "ROOT/", "OUTER/root/../", "OUTER/root2/", "OTHER/"]);
    (start, prop::collection::vec(part, 0..7)).prop_map(|(start, parts)| start.to_owned() + &parts.join("/"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 150, ..ProptestConfig::default() })]

    /// And the kernel and the walk, which share no code, find the same file or both none.
    #[test]
    fn whatever_a_path_opens_lies_beneath_a_root(requests in prop::collection::vec(requests(), 20)) {
        let world = World::new();
        world.link("src", "root/in");
        world.link("../outside", "root/out");
        world.link("../..", "root/src/up");
        world.link(world.at("root/src"), "root/abs_in");
        world.link(world.at("outside"), "root/abs_out");
        world.link(world.at("other"), "root/src/other");
        world.link("nothing", "root/dangling");
        world.link("loop", "root/loop");
        let [kernel, walking] = world.workspaces();
        let roots = [world.at("root"), world.at("other")];
        let outer = world.at("");
        for request in requests {
            let request = request
                .replace("OUTER", outer.to_str().unwrap().trim_end_matches('/'))
                .replace("ROOT", roots[0].to_str().unwrap())
                .replace("OTHER", roots[1].to_str().unwrap());
            let open = |workspace: &Workspace| {
                let path = workspace.locate(&request)?;
                let metadata = path.metadata()?;
                let place = match metadata.kind {
                    Kind::File => real_path(path.open_read()?.0.as_raw_fd()),
                    _ => real_path(path.folder_handle()?.as_raw_fd()),
                };
                Ok::<_, Error>(place)
            };
            let (by_kernel, by_walk) = (open(&kernel), open(&walking));
            match (&by_kernel, &by_walk) {
                (Ok(a), Ok(b)) => {
                    prop_assert_eq!(a, b);
                    prop_assert!(roots.iter().any(|root| a.starts_with(root)), "{} is {}", request, a.display());
                }
                (Err(a), Err(b)) => prop_assert_eq!(a.to_string(), b.to_string()),
                (a, b) => prop_assert!(false, "{}: {:?} and {:?}", request, a, b),
            }
        }
    }
}

fn real_path(descriptor: i32) -> PathBuf {
    fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap()
}
