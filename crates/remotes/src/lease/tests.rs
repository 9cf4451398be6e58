//! Tests of leases in a folder.
#![allow(clippy::disallowed_methods, reason = "the tests make and look at files of their own")]

use super::destroying::COMMAND_TIMEOUT;
use super::folder::STAGED_LIFE;
use super::owned::LeasePlace;
use super::*;
use crate::commands::CommandValues;
use crate::error::Error;
use crate::settings::RemoteSettings;
use process_runner::Runner;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use toml::de::DeTable;

fn registry(path: &Path) -> LeaseRegistry {
    LeaseFolder::new(path).into()
}

#[allow(irrefutable_let_patterns, reason = "with databases there are other places")]
fn path_of(lease: &Lease) -> PathBuf {
    let LeasePlace::File(file) = &lease.place else { panic!("no file") };
    file.path.clone()
}

/// A remote that is a file: `create` makes it, `destroy` removes it.
fn settings(folder: &Path, extra: &str) -> RemoteSettings {
    let made = folder.join("{lease}");
    let text = format!(
        "connect = ['cat']\ncreate = ['touch', '{0}']\ndestroy = ['rm', '{0}']\n{extra}",
        made.display()
    );
    let table = DeTable::parse(&text).unwrap();
    RemoteSettings::parse("box", table.get_ref(), &(0..0)).unwrap()
}

/// Reaps until something was found. A process that another test starts has a copy of the lock until its `exec`.
async fn reap_once_released(
    folder: &LeaseRegistry,
    configured: &[RemoteSettings],
    runner: &Runner,
) -> Reaped {
    loop {
        let reaped = folder.reap(configured, runner).await.unwrap();
        if reaped != Reaped::default() {
            return reaped;
        }
        tokio::task::yield_now().await;
    }
}

async fn begin(folder: &LeaseRegistry, settings: &RemoteSettings) -> Lease {
    let values = CommandValues { caller: "ada", program: "mcp-stdio", ..CommandValues::default() };
    folder.begin(settings, &values).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_lease_whose_writer_was_killed_is_removed_and_one_that_is_being_written_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let leases = registry(folder.path());
    let file = |name: &str, age: Duration| {
        let path = folder.path().join(name);
        let file = File::create(&path).unwrap();
        file.set_modified(SystemTime::now().checked_sub(age).unwrap()).unwrap();
        (path, file)
    };
    let abandoned = file("coretools-1.new", 2 * STAGED_LIFE);
    let (new, slow) = (file("coretools-2.new", Duration::ZERO), file("coretools-3.new", 2 * STAGED_LIFE));
    flock(&slow.1, FlockOperation::NonBlockingLockExclusive).unwrap();
    leases.reap(&[], &Runner::new()).await.unwrap();
    assert_eq!([&abandoned.0, &new.0, &slow.0].map(|path| path.exists()), [false, true, true]);
}

#[tokio::test]
async fn what_was_created_is_destroyed_by_its_owner_or_else_by_who_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let leases = registry(&folder.path().join("leases"));
    let settings = settings(folder.path(), "");
    let configured = std::slice::from_ref(&settings);
    let runner = Runner::new();
    for is_killed in [false, true] {
        let mut lease = begin(&leases, &settings).await;
        let made = folder.path().join(lease.id());
        lease.commands.create.as_ref().unwrap().run(&runner, None, COMMAND_TIMEOUT).await.unwrap();
        lease.note_created().await.unwrap();
        assert!(made.exists());
        let found = leases.leases().await.unwrap();
        assert_eq!((found.len(), found[0].is_owned, &*found[0].record.caller), (1, true, "ada"));
        // While it has an owner, nobody else touches it.
        assert_eq!(leases.reap(configured, &runner).await.unwrap(), Reaped::default());
        let id = lease.id().to_owned();
        if is_killed {
            // The system releases the lock of a process that is killed, as the drop does here.
            drop(lease);
            assert!(made.exists());
            assert_eq!(reap_once_released(&leases, configured, &runner).await.destroyed, [id]);
        } else {
            lease.end(&runner).await.unwrap();
        }
        assert!(!made.exists() && leases.leases().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn what_cannot_be_destroyed_stays_in_the_registry_and_what_is_gone_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let leases = registry(&folder.path().join("leases"));
    let runner = Runner::new();
    // Nothing was created, so that `rm` fails.
    let nothing = settings(folder.path(), "");
    let configured = std::slice::from_ref(&nothing);
    let id = begin(&leases, &nothing).await.id().to_owned();
    let reaped = reap_once_released(&leases, configured, &runner).await;
    assert!(reaped.failed[0].0 == id && reaped.failed[0].1.contains("rm"), "{reaped:?}");
    assert_eq!(leases.leases().await.unwrap().len(), 1);
    fs::remove_dir_all(leases.key()).unwrap();
    // The engine does not list it.
    let listed = settings(folder.path(), "list = ['echo', 'coretools-other']\ncreate_timeout_s = 1");
    let configured = std::slice::from_ref(&listed);
    let lease = begin(&leases, &listed).await;
    let (id, settles_at) = (lease.id().to_owned(), lease.record.settles_at);
    drop(lease);
    // Its owner died while it created: the engine may still be at it.
    let mut reaped = reap_once_released(&leases, configured, &runner).await;
    while settles_at > SystemTime::now() {
        assert_eq!((reaped.unsettled.len(), leases.leases().await.unwrap().len()), (1, 1), "{reaped:?}");
        reaped = reap_once_released(&leases, configured, &runner).await;
    }
    if reaped.destroyed.is_empty() {
        reaped = reap_once_released(&leases, configured, &runner).await;
    }
    assert_eq!(reaped.destroyed, [id]);
}

#[tokio::test]
async fn a_lease_that_somebody_wrote_runs_nothing_but_the_commands_of_a_kind() {
    let folder = tempfile::tempdir().unwrap();
    let leases = registry(&folder.path().join("leases"));
    let configured = [settings(folder.path(), "")];
    let lease = begin(&leases, &configured[0]).await;
    let (path, record) = (path_of(&lease), lease.record.clone());
    drop(lease);
    let runner = Runner::new();
    for forged in [
        LeaseRecord { id: "coretools-../../../etc/x".to_owned(), ..record.clone() },
        LeaseRecord { id: "-rf".to_owned(), ..record.clone() },
        LeaseRecord { caller: "a;b".to_owned(), ..record.clone() },
        LeaseRecord { remote: "sh:touch /tmp/x".to_owned(), ..record.clone() },
        LeaseRecord { remote: "other".to_owned(), ..record.clone() },
        LeaseRecord { options: BTreeMap::from([("x".to_owned(), "y".to_owned())]), ..record.clone() },
    ] {
        fs::write(&path, serde_json::to_vec(&forged).unwrap()).unwrap();
        let reaped = reap_once_released(&leases, &configured, &runner).await;
        assert_eq!((reaped.destroyed.len(), reaped.failed.len()), (0, 1), "{forged:?}");
    }
    // A command in the file is no part of it.
    let mut written = serde_json::to_value(&record).unwrap();
    written["destroy"] = serde_json::json!({"arguments": ["touch", "/tmp/x"]});
    fs::write(&path, written.to_string()).unwrap();
    assert!(reap_once_released(&leases, &configured, &runner).await.failed[0].1.contains("rm"));
}

#[tokio::test]
async fn a_folder_that_others_may_read_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let leases = registry(folder.path());
    let error = leases.begin(&settings(folder.path(), ""), &CommandValues::default()).await.unwrap_err();
    assert!(matches!(error, Error::Lease { .. }), "{error}");
}
