//! Folders and files that are swapped for links while they are used.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{RootsFixture, chain, read};
use crate::Error;

/// Tells the swapping to end, also when an assertion fails.
struct StopSwapping<'a>(&'a AtomicBool);

impl Drop for StopSwapping<'_> {
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
    let world = RootsFixture::new();
    fs::create_dir(world.at("root/inside")).unwrap();
    fs::write(world.at("root/inside/secret.txt"), "harmless").unwrap();
    world.link(world.at("outside"), "root/link");
    for workspace in world.workspaces() {
        let stop = AtomicBool::new(false);
        let (swaps, opened) = std::thread::scope(|scope| {
            let swapper = scope.spawn(|| swap_until(&stop, &world.at("root/inside"), &world.at("root/link")));
            let ended = StopSwapping(&stop);
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
    let world = RootsFixture::new();
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
            let ended = StopSwapping(&stop);
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
