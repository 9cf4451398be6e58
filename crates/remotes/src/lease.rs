//! Leases: what a kind has created, written down before it is made, so that it is destroyed whatever happens.
//!
//! A lease is a file, `ID.json`, in a folder that belongs to the user alone. Its owner holds the lock of the file
//! (flock(2)), which the system releases when the owner dies. Whoever finds a file without a holder destroys what it names.
//! If its owner died while it created, an engine may still go on creating: such a lease stays written down, and is destroyed
//! again, until that must be over.
//!
//! A file names a remote, and no command: the commands that destroy are those of its kind. So nothing is gained by writing
//! such a file.
#![allow(clippy::disallowed_methods, reason = "the module's own files, in a folder that the server names")]

use crate::channel::random_hex;
use crate::commands::{CommandValues, RemoteCommands};
use crate::error::Error;
use crate::settings::RemoteSettings;
use error_causes::chain;
use process_runner::Runner;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The most bytes of a file that are read.
const MAX_BYTES: u64 = 1 << 20;

/// The beginning of every id.
const ID_PREFIX: &str = "coretools-";

/// The time that the commands of a lease may take.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// The ending of a lease that is being written. Nothing is created before it has its name.
const STAGED: &str = "new";

/// The age from which a lease that is still being written has lost its writer, who takes milliseconds.
const STAGED_LIFE: Duration = Duration::from_secs(10);

/// A folder of leases. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseFolder(PathBuf);

/// A lease that this process owns.
#[derive(Debug)]
pub(crate) struct Lease {
    path: PathBuf,
    record: LeaseRecord,
    pub(crate) commands: RemoteCommands,
    /// True if no engine is creating it any more.
    is_settled: bool,
    // Declared last: the lock is released after everything else.
    lock: File,
}

/// A lease, as its file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LeaseRecord {
    /// The id, by which the engine knows what was created.
    pub id: String,
    /// The remote: its name in the configuration, or `KIND:TARGET[:ROOT]`.
    pub remote: String,
    /// The values of the options of its kind.
    pub options: BTreeMap<String, String>,
    /// The caller for whom it was created.
    pub caller: String,
    /// The time at which it was written down.
    pub created_at: SystemTime,
    /// The time at which its life ends, if it does.
    pub ends_at: Option<SystemTime>,
    /// The time at which an engine has created it or never will.
    pub settles_at: SystemTime,
}

/// The reason why what a lease names cannot be found.
#[derive(Debug, thiserror::Error)]
enum InvalidLease {
    #[error("its id or its caller is none that this program gives")]
    Name,
    #[error("its kind destroys nothing")]
    NoDestroy,
}

/// A lease in the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundLease {
    /// The lease.
    pub record: LeaseRecord,
    /// True if a process owns it, which destroys it in the end.
    pub is_owned: bool,
}

/// The result of destroying the leases that nobody owns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reaped {
    /// The ids of the leases that are gone.
    pub destroyed: Vec<String>,
    /// The ids of those that could not be destroyed, with the reasons. They stay in the folder.
    pub failed: Vec<(String, String)>,
    /// The ids of those whose owners died while they were created. They stay in the folder until the engine must have
    /// created them or given up.
    pub unsettled: Vec<String>,
}

impl LeaseFolder {
    /// Names the folder. It is created with the first lease.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn prepare(&self) -> Result<(), Error> {
        let path = &self.0;
        // The umask may only take rights away, so that no other user can read the folder.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(Error::lease(path))?;
        let metadata = path.symlink_metadata().map_err(Error::lease(path))?;
        if !metadata.is_dir() {
            return Err(Error::lease(path)(io::Error::other("it is not a folder")));
        }
        trusted_file::check_access(&metadata, trusted_file::OthersAccess::MayNotRead)
            .map_err(|error| Error::lease(path)(error.into()))
    }

    /// Writes down a lease for `settings`, before anything is created.
    pub(crate) fn begin(
        &self,
        settings: &RemoteSettings,
        values: &CommandValues<'_>,
    ) -> Result<Option<Lease>, Error> {
        self.prepare()?;
        let id = format!("{ID_PREFIX}{}", random_hex::<8>()?);
        let commands = RemoteCommands::new(settings, &CommandValues { lease: Some(&id), ..values.clone() })?;
        if commands.destroy.is_none() {
            return Ok(None);
        }
        let created_at = SystemTime::now();
        let record = LeaseRecord {
            id: id.clone(),
            remote: settings.name.clone(),
            options: settings.options.clone(),
            caller: values.caller.to_owned(),
            created_at,
            ends_at: settings.life.and_then(|life| created_at.checked_add(life)),
            // `create` is ended at this time. An engine that was still creating is taken to have finished by then.
            settles_at: created_at + settings.create_timeout,
        };
        let path = self.0.join(format!("{id}.json"));
        let staged = self.0.join(format!("{id}.{STAGED}"));
        let lock = write_locked(&staged, &record)
            .and_then(|file| fs::rename(&staged, &path).map(|()| file))
            .inspect_err(|_| {
                let _ = fs::remove_file(&staged);
            })
            .map_err(Error::lease(&path))?;
        Ok(Some(Lease { path, record, commands, is_settled: false, lock }))
    }

    /// Returns the leases in the folder, the oldest first.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn leases(&self) -> Result<Vec<FoundLease>, Error> {
        let mut found = Vec::new();
        for path in self.files()? {
            // One that was taken away meanwhile, or is not ours, is none.
            let Ok(text) = trusted_file::read_private(&path, MAX_BYTES) else { continue };
            let Ok(record) = serde_json::from_str::<LeaseRecord>(first_line(&text)) else { continue };
            let is_owned = File::open(&path).is_ok_and(|file| is_locked(&file));
            found.push(FoundLease { record, is_owned });
        }
        found.sort_by(|one, other| {
            (one.record.created_at, &one.record.id).cmp(&(other.record.created_at, &other.record.id))
        });
        Ok(found)
    }

    fn files(&self) -> Result<Vec<PathBuf>, Error> {
        self.files_ending_in("json")
    }

    fn files_ending_in(&self, ending: &str) -> Result<Vec<PathBuf>, Error> {
        let entries = match fs::read_dir(&self.0) {
            // Nothing was ever created.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(Error::lease(&self.0))?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(Error::lease(&self.0))?.path();
            if path.extension().is_some_and(|extension| extension == ending) {
                files.push(path);
            }
        }
        Ok(files)
    }

    /// Destroys what the leases name that nobody owns: their owners were killed, or could not destroy them. `configured`
    /// are the remotes of the configuration, some of which they may name.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub async fn reap(&self, configured: &[RemoteSettings], runner: &Runner) -> Result<Reaped, Error> {
        let mut reaped = Reaped::default();
        for path in self.files_ending_in(STAGED)? {
            remove_abandoned(&path);
        }
        for path in self.files()? {
            let Some(OrphanedLease { record, is_created, _lock }) = take_over(&path) else { continue };
            // Before the commands run: what is created until now, they find.
            let is_settled = is_created || record.settles_at <= SystemTime::now();
            let destroyed = async {
                let commands = record.commands(configured)?;
                destroy(&record.id, &commands, runner).await
            };
            match destroyed.await {
                Ok(Destroyed::NotListed) if !is_settled => reaped.unsettled.push(record.id),
                Ok(Destroyed::Unknown) if !is_settled => reaped.unsettled.push(record.id),
                Ok(_) => {
                    fs::remove_file(&path).map_err(Error::lease(&path))?;
                    reaped.destroyed.push(record.id);
                }
                // The other leases are still tried: one engine that is unreachable must not keep the rest alive.
                Err(error) => reaped.failed.push((record.id, chain(&error))),
            }
        }
        Ok(reaped)
    }
}

/// A lease that nobody owned, and its lock.
struct OrphanedLease {
    record: LeaseRecord,
    /// True if its owner has noted that it was created.
    is_created: bool,
    _lock: File,
}

/// The result of destroying what a lease names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Destroyed {
    /// The engine had it, and has it no more.
    Listed,
    /// The engine did not have it.
    NotListed,
    /// The kind cannot list.
    Unknown,
}

/// The line that is added to the file once `create` has ended.
const CREATED: &str = "created";

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Removes a lease whose writer was killed before it had its name. One that cannot be removed is tried again by the next.
fn remove_abandoned(path: &Path) {
    let is_abandoned = File::open(path).is_ok_and(|file| {
        let age = file.metadata().and_then(|metadata| metadata.modified()).map(|modified| modified.elapsed());
        // Between its creation and its lock, a file that is being written has no lock.
        matches!(age, Ok(Ok(age)) if age >= STAGED_LIFE) && !is_locked(&file)
    });
    if is_abandoned && let Err(error) = fs::remove_file(path) {
        tracing::warn!("{} cannot be removed: {error}", path.display());
    }
}

/// Returns a lease that nobody owns.
fn take_over(path: &Path) -> Option<OrphanedLease> {
    let mut file = File::open(path).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    // Between the opening and the lock its holder may have destroyed it and taken the file away.
    let (opened, named) = (file.metadata().ok()?, path.symlink_metadata().ok()?);
    if (opened.dev(), opened.ino()) != (named.dev(), named.ino()) {
        return None;
    }
    trusted_file::check_access(&opened, trusted_file::OthersAccess::MayNotRead)
        .inspect_err(|error| tracing::warn!("{} is not used: {error}", path.display()))
        .ok()?;
    let mut text = String::new();
    (&mut file).take(MAX_BYTES).read_to_string(&mut text).ok()?;
    let record = serde_json::from_str(first_line(&text))
        .inspect_err(|error| tracing::warn!("{} is no lease: {error}", path.display()))
        .ok()?;
    Some(OrphanedLease { record, is_created: text.lines().nth(1) == Some(CREATED), _lock: file })
}

/// The pauses after attempts to destroy that failed.
const DESTROY_PAUSES: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_millis(500), Duration::from_secs(1)];

/// Destroys what a lease names, unless the engine says that it is gone.
async fn destroy(id: &str, commands: &RemoteCommands, runner: &Runner) -> Result<Destroyed, Error> {
    let mut destroyed = Destroyed::Unknown;
    if let Some(list) = &commands.list {
        let listed = list.run(runner, None, COMMAND_TIMEOUT).await?;
        // A list that was cut may have lost the id, and destroying is right for what is gone too.
        if !listed.stdout.truncated() && !listed.stdout.text().lines().any(|line| line.trim() == id) {
            return Ok(Destroyed::NotListed);
        }
        destroyed = Destroyed::Listed;
    }
    match &commands.destroy {
        Some(destroy) => {
            // An engine that is still busy with the end of a container refuses to remove it at that moment. Destroying is
            // right for what is gone too, so that it can be asked again.
            for pause in DESTROY_PAUSES {
                match destroy.run(runner, None, COMMAND_TIMEOUT).await {
                    Err(Error::CommandFailed { .. }) => tokio::time::sleep(pause).await,
                    result => return result.map(|_| destroyed),
                }
            }
            destroy.run(runner, None, COMMAND_TIMEOUT).await.map(|_| destroyed)
        }
        None => Err(Error::InvalidLease(InvalidLease::NoDestroy.to_string())),
    }
}

impl LeaseRecord {
    /// Returns the commands of the remote that it names.
    fn commands(&self, configured: &[RemoteSettings]) -> Result<RemoteCommands, Error> {
        let digits = self.id.strip_prefix(ID_PREFIX).unwrap_or_default();
        let is_id =
            digits.len() == 16 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_slug = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if !is_id || self.caller.starts_with('-') || !self.caller.bytes().all(is_slug) {
            return Err(Error::InvalidLease(InvalidLease::Name.to_string()));
        }
        let settings = RemoteSettings::named(&self.remote, self.options.clone(), configured)
            .map_err(|error| Error::InvalidLease(error.to_string()))?;
        // What destroys neither copies nor starts a program there.
        let values = CommandValues { program: "", caller: &self.caller, lease: Some(&self.id), copied: None };
        RemoteCommands::new(&settings, &values)
    }
}

impl Lease {
    /// Returns the id.
    pub(crate) fn id(&self) -> &str {
        &self.record.id
    }

    /// Returns true once the life of the lease is over.
    pub(crate) fn is_over(&self) -> bool {
        self.record.ends_at.is_some_and(|end| end <= SystemTime::now())
    }

    /// Returns the time until the life of the lease is over, if it ends.
    pub(crate) fn remaining_life(&self) -> Option<Duration> {
        let end = self.record.ends_at?;
        Some(end.duration_since(SystemTime::now()).unwrap_or_default())
    }

    /// Notes that what it names was created. Once is enough.
    pub(crate) fn note_created(&mut self) -> Result<(), Error> {
        if self.is_settled {
            return Ok(());
        }
        let mut file = &self.lock;
        file.write_all(CREATED.as_bytes()).map_err(Error::lease(&self.path))?;
        self.is_settled = true;
        Ok(())
    }

    /// Notes that `create` has ended without creating it.
    pub(crate) fn note_not_created(&mut self) {
        self.is_settled = true;
    }

    /// Destroys what was created. If that fails, the lease stays in the folder without an owner, and the next server
    /// destroys it.
    pub(crate) async fn end(self, runner: &Runner) -> Result<(), Error> {
        let destroyed = destroy(&self.record.id, &self.commands, runner).await?;
        if !self.is_settled && destroyed != Destroyed::Listed {
            // The next server looks for it again.
            return Ok(());
        }
        fs::remove_file(&self.path).map_err(Error::lease(&self.path))
    }
}

/// Writes a new file for its owner alone, whole and with its lock held.
fn write_locked(path: &Path, record: &LeaseRecord) -> io::Result<File> {
    let mut file = fs::OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    file.write_all(&serde_json::to_vec(record)?)?;
    file.write_all(b"\n")?;
    // After a crash of the machine the lease must be there, because what was created may have survived.
    file.sync_all()?;
    Ok(file)
}

fn is_locked(file: &File) -> bool {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            // Released with the file: nobody waits for it.
            false
        }
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::de::DeTable;

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
        folder: &LeaseFolder,
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

    fn begin(folder: &LeaseFolder, settings: &RemoteSettings) -> Lease {
        let values = CommandValues { caller: "ada", program: "mcp-stdio", ..CommandValues::default() };
        folder.begin(settings, &values).unwrap().unwrap()
    }

    #[tokio::test]
    async fn a_lease_whose_writer_was_killed_is_removed_and_one_that_is_being_written_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let leases = LeaseFolder::new(folder.path());
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
        let leases = LeaseFolder::new(folder.path().join("leases"));
        let settings = settings(folder.path(), "");
        let configured = std::slice::from_ref(&settings);
        let runner = Runner::new();
        for is_killed in [false, true] {
            let mut lease = begin(&leases, &settings);
            let made = folder.path().join(lease.id());
            lease.commands.create.as_ref().unwrap().run(&runner, None, COMMAND_TIMEOUT).await.unwrap();
            lease.note_created().unwrap();
            assert!(made.exists());
            let found = leases.leases().unwrap();
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
            assert!(!made.exists() && leases.leases().unwrap().is_empty());
        }
    }

    #[tokio::test]
    async fn what_cannot_be_destroyed_stays_in_the_registry_and_what_is_gone_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let leases = LeaseFolder::new(folder.path().join("leases"));
        let runner = Runner::new();
        // Nothing was created, so that `rm` fails.
        let nothing = settings(folder.path(), "");
        let configured = std::slice::from_ref(&nothing);
        let id = begin(&leases, &nothing).id().to_owned();
        let reaped = reap_once_released(&leases, configured, &runner).await;
        assert!(reaped.failed[0].0 == id && reaped.failed[0].1.contains("rm"), "{reaped:?}");
        assert_eq!(leases.leases().unwrap().len(), 1);
        fs::remove_dir_all(leases.path()).unwrap();
        // The engine does not list it.
        let listed = settings(folder.path(), "list = ['echo', 'coretools-other']\ncreate_timeout_s = 1");
        let configured = std::slice::from_ref(&listed);
        let lease = begin(&leases, &listed);
        let (id, settles_at) = (lease.id().to_owned(), lease.record.settles_at);
        drop(lease);
        // Its owner died while it created: the engine may still be at it.
        let mut reaped = reap_once_released(&leases, configured, &runner).await;
        while settles_at > SystemTime::now() {
            assert_eq!((reaped.unsettled.len(), leases.leases().unwrap().len()), (1, 1), "{reaped:?}");
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
        let leases = LeaseFolder::new(folder.path().join("leases"));
        let configured = [settings(folder.path(), "")];
        let lease = begin(&leases, &configured[0]);
        let (path, record) = (lease.path.clone(), lease.record.clone());
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

    #[test]
    fn a_folder_that_others_may_read_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let leases = LeaseFolder::new(folder.path());
        let error = leases.begin(&settings(folder.path(), ""), &CommandValues::default()).unwrap_err();
        assert!(matches!(error, Error::Lease { .. }), "{error}");
    }
}
