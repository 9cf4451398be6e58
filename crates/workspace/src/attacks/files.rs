//! Attempts with pipes, devices and hard links, and the things that a write must leave as they were.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use std::time::Instant;

use super::{RootsFixture, SECRET, both, read};
use crate::{Error, FileReplaceCondition, PathKind, Workspace};

#[test]
fn a_file_that_never_ends_or_waits_does_not_hold_the_opening() {
    let world = RootsFixture::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, world.at("root/pipe"), 0o666.into()).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(world.at("root/socket")).unwrap();
    let started = Instant::now();
    for workspace in world.workspaces() {
        for (path, kind) in [("pipe", PathKind::Fifo), ("socket", PathKind::Socket)] {
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
            assert!(matches!(error, Error::WrongKind { found: PathKind::Device, .. }), "{path}: {error}");
        }
    }
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_hard_link_cannot_be_told_apart_but_is_never_written_through() {
    let world = RootsFixture::new();
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
fn a_write_keeps_the_mode_and_leaves_no_temporary_file() {
    let world = RootsFixture::new();
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
        assert!(matches!(
            target.replace(b"x", FileReplaceCondition::Unchanged(stamp)),
            Err(Error::Changed { .. })
        ));
        assert!(matches!(
            target.replace(b"x", FileReplaceCondition::Missing),
            Err(Error::AlreadyExists { .. })
        ));
        assert_eq!(fs::read_to_string(&script).unwrap(), "changed by somebody else");
        let left = fs::read_dir(world.at("root")).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(left.filter(|name| name.to_string_lossy().contains("tmp")).count(), 0);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_has_to_be_waited_for_is_not_taken_to_be_in_memory() {
    let world = RootsFixture::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, world.at("root/pipe"), 0o666.into()).unwrap();
    fs::write(world.at("root/long"), vec![b'x'; 40_000]).unwrap();
    world.link("../outside/secret.txt", "root/out");
    world.link("src/lib.rs", "root/in");
    for workspace in world.workspaces() {
        let at = |path: &str| workspace.locate(path).unwrap();
        let memory = |path: &str| at(path).is_in_page_cache(32 * 1024);
        // As the kernel says of the file itself.
        let file = fs::File::open(world.at("root/src/lib.rs")).unwrap();
        let (mut byte, nowait) = ([0], rustix::io::ReadWriteFlags::NOWAIT);
        let can = rustix::io::preadv2(&file, &mut [std::io::IoSliceMut::new(&mut byte)], 0, nowait).is_ok();
        let known = |path: &str| at(path).cached_kind();
        let local = (0..1000).any(|_| known(".").is_some());
        // A rename anywhere on the machine makes the kernel give up a look-up in memory (EAGAIN), and other tests rename.
        let seen = |look: &dyn Fn() -> bool| (0..1000).any(|_| look());
        for path in ["src/lib.rs", "in", "src/../src/lib.rs"] {
            // Following a link whose time of access is not newer than its last change writes that time, which a look-up in
            // memory does not do. Following it here first leaves nothing to write.
            let follow = || fs::metadata(world.at("root").join(path)).is_ok();
            assert_eq!(seen(&|| follow() && memory(path)), can && local, "{path}");
            let is_file =
                || follow() && known(path).is_some_and(|known| known.unwrap() == Some(PathKind::File));
            assert_eq!(seen(&is_file), local, "{path}");
        }
        // Nobody writes to the pipe: opened, it would be waited for.
        for path in ["pipe", "long", "src", "out", "..", "../outside/secret.txt", "src/none", "none/none"] {
            assert!(!memory(path), "{path}");
        }
        // That nothing is there may have been forgotten, and is never said of something.
        assert!(known("none/none").is_none_or(|known| known.unwrap().is_none()));
        for path in ["out", "..", "../outside/secret.txt"] {
            assert!(known(path).is_none(), "{path}");
        }
        // Of a file system that others answer for, nothing is.
        assert!(Workspace::new(["/proc"]).unwrap().locate("self/status").unwrap().cached_kind().is_none());
    }
}
