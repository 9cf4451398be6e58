//! Attempts of one call to reach what its access limit excludes, through whatever path.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{AccessDenied, AccessLimit, Error, Workspace};

/// Only `src` may be read and only `src/gen` and `one.md` written, and `src/gen/secret` neither.
#[derive(Debug)]
struct FixedAccessLimit;

fn beneath(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn judge(allowed: bool) -> Result<(), AccessDenied> {
    if allowed { Ok(()) } else { Err(AccessDenied::new("not yours")) }
}

impl AccessLimit for FixedAccessLimit {
    fn read(&self, path: &str) -> Result<(), AccessDenied> {
        judge(beneath(path, "src") && !beneath(path, "src/gen/secret"))
    }

    fn write(&self, path: &str) -> Result<(), AccessDenied> {
        judge((beneath(path, "src/gen") || path == "one.md") && !beneath(path, "src/gen/secret"))
    }

    fn move_folder(&self, path: &str) -> Result<(), AccessDenied> {
        self.write(path).and_then(|()| judge(!beneath("src/gen/secret", path)))
    }
}

fn limited(folder: &Path) -> Workspace {
    let limit: Arc<dyn AccessLimit> = Arc::new(FixedAccessLimit);
    Workspace::new([folder]).unwrap().with_access_limit(&limit).unwrap()
}

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("src/a.rs", "a"),
        ("src/gen/b.rs", "b"),
        ("src/gen/secret/c", "c"),
        ("docs/d.md", "d"),
        ("one.md", "1"),
        ("two.md", "2"),
    ] {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    symlink("../docs/d.md", folder.path().join("src/out")).unwrap();
    symlink("../src", folder.path().join("docs/in")).unwrap();
    symlink("gen/secret", folder.path().join("src/door")).unwrap();
    folder
}

fn denied<T: std::fmt::Debug>(result: Result<T, Error>) {
    match result {
        Err(Error::Io { source, .. }) => assert_eq!(source.kind(), io::ErrorKind::PermissionDenied),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_may_be_read_is_judged_by_where_it_lies() {
    let folder = project();
    let workspace = limited(folder.path());
    for path in ["src/a.rs", "src/gen/b.rs", "docs/in/a.rs", "docs/../src/a.rs"] {
        assert!(workspace.locate(path).unwrap().open_read().is_ok(), "{path}");
    }
    for path in ["docs/d.md", "src/out", "two.md", "src/gen/secret/c", "src/door/c", "docs/in/gen/secret/c"] {
        denied(workspace.locate(path).unwrap().open_read());
        denied(workspace.locate(path).unwrap().metadata());
    }
    // What may be written may be looked at, and not read.
    assert!(workspace.locate("one.md").unwrap().metadata().is_ok());
    denied(workspace.locate("one.md").unwrap().open_read());
}

#[test]
fn a_listing_leaves_out_what_may_not_be_read() {
    let folder = project();
    let workspace = limited(folder.path());
    let names = |path: &str| {
        let folder = workspace.locate(path).unwrap().open_folder().unwrap();
        let entries = folder.entries().map(|entries| {
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().name.into_string().unwrap()).collect();
            names.sort();
            names
        });
        entries.map_err(|error| error.kind())
    };
    assert_eq!(names("src").unwrap(), ["a.rs", "door", "gen", "out"]);
    assert_eq!(names("src/gen").unwrap(), ["b.rs"]);
    for path in [".", "docs", "src/gen/secret"] {
        assert_eq!(names(path).unwrap_err(), io::ErrorKind::PermissionDenied, "{path}");
    }
}

#[test]
fn what_may_be_written_is_judged_by_where_it_lies() {
    let folder = project();
    let workspace = limited(folder.path());
    for path in ["src/gen/new/file", "one.md", "docs/in/gen/b.rs"] {
        workspace.locate(path).unwrap().write(b"w").unwrap();
    }
    for path in [
        "src/a.rs",
        "src/new",
        "src/gen/secret/c",
        "src/gen/secret/new",
        "src/door/c",
        "src/out",
        "two.md",
        "new/x",
    ] {
        denied(workspace.locate(path).unwrap().write(b"w"));
        if let Ok(there) = fs::read_to_string(folder.path().join(path)) {
            assert_ne!(there, "w", "{path}");
        }
    }
    assert!(!folder.path().join("new").exists());
    denied(workspace.locate("src/a.rs").unwrap().remove_file());
    denied(workspace.locate("src/door").unwrap().remove_file());
    workspace.locate("src/gen/b.rs").unwrap().remove_file().unwrap();
}

#[test]
fn a_move_needs_both_ends_and_takes_nothing_kept_along() {
    let folder = project();
    let workspace = limited(folder.path());
    let rename = |from: &str, to: &str| {
        workspace.locate(from).unwrap().rename_to(&workspace.locate(to).unwrap(), false)
    };
    denied(rename("src/a.rs", "src/gen/a.rs"));
    denied(rename("src/gen/b.rs", "src/b.rs"));
    denied(rename("src/gen", "src/gen2"));
    rename("src/gen/b.rs", "src/gen/deep/b.rs").unwrap();
    rename("src/gen/deep", "src/gen/deeper").unwrap();
    // A link is moved as itself, wherever it leads.
    denied(rename("src/out", "src/gen/out"));
}

#[test]
fn a_folder_swapped_for_a_link_during_the_call_leads_nowhere_else() {
    let folder = project();
    let workspace = limited(folder.path());
    let (real, link) = (folder.path().join("src/gen"), folder.path().join("src/swapped"));
    symlink("../docs", &link).unwrap();
    fs::write(real.join("d.md"), "mine").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = rustix::fs::renameat_with(
                    rustix::fs::CWD,
                    &real,
                    rustix::fs::CWD,
                    &link,
                    rustix::fs::RenameFlags::EXCHANGE,
                );
            }
        });
        let (mut read, mut refused) = (0, 0);
        for round in 0..20_000 {
            match workspace.locate("src/gen/d.md").unwrap().open_read() {
                Ok((mut file, _)) => {
                    let mut text = String::new();
                    io::Read::read_to_string(&mut file, &mut text).unwrap();
                    assert_eq!(text, "mine", "round {round}");
                    read += 1;
                }
                Err(_) => refused += 1,
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(read > 0 && refused > 0, "read {read}, refused {refused}: the race was not run");
    });
}
