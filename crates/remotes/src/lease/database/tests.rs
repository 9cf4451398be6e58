//! Tests of leases in a database of SQLite. Those with PostgreSQL start servers.

use super::*;
use crate::commands::CommandValues;
use crate::lease::LeaseRegistry;
use crate::lease::database::shared::Ownership;
use crate::settings::RemoteSettings;
use process_runner::Runner;
use toml::de::DeTable;

/// Longer than any test, so that a busy machine lets nothing expire.
const SILENCE: Duration = Duration::from_secs(3600);

const EXPIRE: &str = "UPDATE coretools_leases SET expires_ms = 0 WHERE id = $1";

fn location(folder: &tempfile::TempDir) -> String {
    format!("sqlite:{}", folder.path().join("a.db").display())
}

/// A database that has been reached for one silence without a gap.
async fn trusting(location: &str) -> LeaseDatabase {
    let database = LeaseDatabase::open(location, SILENCE).await.unwrap();
    database.0.heartbeat().trusted_from_ms = 0;
    database
}

async fn expire(database: &LeaseDatabase, id: &str) {
    assert_eq!(database.0.execute(EXPIRE, &[Bind::Text(id)]).await.unwrap(), 1);
}

fn settings() -> RemoteSettings {
    let text = "connect = ['cat']\ncreate = ['true']\ndestroy = ['true']";
    RemoteSettings::parse("box", DeTable::parse(text).unwrap().get_ref(), &(0..0)).unwrap()
}

fn record() -> LeaseRecord {
    LeaseRecord::new(&settings(), &CommandValues { caller: "ada", ..CommandValues::default() })
        .unwrap()
        .unwrap()
        .0
}

#[tokio::test]
async fn a_lease_belongs_to_one_server_until_that_is_silent() {
    let folder = tempfile::tempdir().unwrap();
    let one = LeaseDatabase::open(&location(&folder), SILENCE).await.unwrap();
    let other = trusting(&location(&folder)).await;
    let registries = [&one, &other].map(|database| LeaseRegistry::from(database.clone()));
    let settings = settings();
    let configured = std::slice::from_ref(&settings);
    let (values, runner) = (CommandValues { caller: "ada", ..CommandValues::default() }, Runner::new());
    let mut kept = registries[0].begin(&settings, &values).await.unwrap().unwrap();
    kept.note_created().await.unwrap();
    let mut left = registries[0].begin(&settings, &values).await.unwrap().unwrap();
    left.note_created().await.unwrap();
    let left_id = left.id().to_owned();
    // As of a server that was killed: it is not told of any more.
    drop(left);
    assert_eq!(registries[1].reap(configured, &runner).await.unwrap(), Reaped::default());
    expire(&other, &left_id).await;
    let reaped = registries[1].reap(configured, &runner).await.unwrap();
    assert_eq!(reaped, Reaped { destroyed: vec![left_id], ..Reaped::default() });
    let found = registries[1].leases().await.unwrap();
    assert_eq!(
        found.iter().map(|lease| (&*lease.record.id, lease.is_owned)).collect::<Vec<_>>(),
        [(kept.id(), true)]
    );
    kept.end(&runner).await.unwrap();
    assert!(registries[0].leases().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_server_takes_none_of_its_own_leases_but_one_that_it_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let database = trusting(&location(&folder)).await;
    let registry = LeaseRegistry::from(database.clone());
    let row = database.write(&record()).await.unwrap();
    expire(&database, &row.id).await;
    assert_eq!(registry.reap(&[settings()], &Runner::new()).await.unwrap(), Reaped::default());
    assert!(registry.leases().await.unwrap()[0].is_owned, "the look gives a sign of life first");
    database.0.execute("UPDATE coretools_leases SET owner = NULL", &[]).await.unwrap();
    assert!(database.take_over(&row.id).await.unwrap().is_none());
    let owner = Bind::Text(&database.0.owner);
    database.0.execute("UPDATE coretools_leases SET owner = $1", &[owner]).await.unwrap();
    let id = row.id.clone();
    drop(row);
    expire(&database, &id).await;
    assert!(database.take_over(&id).await.unwrap().is_some());
}

#[tokio::test]
async fn after_a_gap_of_its_own_a_server_takes_nothing_that_seems_expired() {
    let folder = tempfile::tempdir().unwrap();
    let one = LeaseDatabase::open(&location(&folder), SILENCE).await.unwrap();
    let other = trusting(&location(&folder)).await;
    let row = one.write(&record()).await.unwrap();
    expire(&one, &row.id).await;
    // As after a pause of the machine: the last sign of life of this server is from the year 1970.
    let signs = i64::from(SIGNS);
    *other.0.heartbeat() = Heartbeat::new(0, other.0.silence_ms, other.0.silence_ms / signs);
    assert!(other.take_over(&row.id).await.unwrap().is_none());
    assert!(other.orphans(&mut Reaped::default()).await.unwrap().is_empty());
    // A server that has just begun knows no more.
    let new = LeaseDatabase::open(&location(&folder), SILENCE).await.unwrap();
    assert!(new.take_over(&row.id).await.unwrap().is_none());
    other.0.heartbeat().trusted_from_ms = 0;
    assert!(other.take_over(&row.id).await.unwrap().is_some());
}

#[tokio::test]
async fn a_reader_goes_by_the_silence_of_the_owner() {
    let folder = tempfile::tempdir().unwrap();
    let one = LeaseDatabase::open(&location(&folder), SILENCE).await.unwrap();
    let impatient = LeaseDatabase::open(&location(&folder), Duration::ZERO).await.unwrap();
    let row = one.write(&record()).await.unwrap();
    // Older than the reader's silence.
    let age = "UPDATE coretools_leases SET expires_ms = expires_ms - 1000";
    one.0.execute(age, &[]).await.unwrap();
    assert!(impatient.take_over(&row.id).await.unwrap().is_none());
    assert!(impatient.leases().await.unwrap()[0].is_owned);
}

#[tokio::test]
async fn a_server_gives_no_signs_for_a_lease_that_another_has_taken() {
    let folder = tempfile::tempdir().unwrap();
    let one = LeaseDatabase::open(&location(&folder), SILENCE).await.unwrap();
    let other = trusting(&location(&folder)).await;
    let (kept, lost) = (one.write(&record()).await.unwrap(), one.write(&record()).await.unwrap());
    expire(&other, &lost.id).await;
    let taken = other.take_over(&lost.id).await.unwrap().unwrap();
    one.0.give_signs().await.unwrap();
    let ownership = |database: &LeaseDatabase, row: &LeaseRow| database.0.held().get(&row.id).copied();
    assert_eq!(ownership(&one, &kept), Some(Ownership::Own));
    assert_eq!(ownership(&one, &lost), Some(Ownership::Lost));
    assert_eq!(ownership(&other, &taken.place), Some(Ownership::Own));
}

#[tokio::test]
async fn the_time_for_a_creation_goes_by_the_clock_of_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let database = trusting(&location(&folder)).await;
    // The clock of the writer is an hour behind: by the clock of this machine, the creation is over.
    let mut record = record();
    record.created_at -= Duration::from_secs(3600);
    record.settles_at = record.created_at + Duration::from_secs(60);
    database.write(&record).await.unwrap().give_up().await;
    let reaped = LeaseRegistry::from(database.clone()).reap(&[settings()], &Runner::new()).await.unwrap();
    assert_eq!(reaped.unsettled, [record.id.as_str()]);
    database.0.execute("UPDATE coretools_leases SET settles_ms = 0", &[]).await.unwrap();
    assert!(database.take_over(&record.id).await.unwrap().unwrap().is_settled);
}

#[tokio::test]
async fn what_was_destroyed_is_told_also_if_the_database_fails_then() {
    let folder = tempfile::tempdir().unwrap();
    let database = trusting(&location(&folder)).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        let row = database.write(&record()).await.unwrap();
        row.note_created().await.unwrap();
        ids.push(row.id.clone());
        row.give_up().await;
    }
    ids.sort();
    for (name, event, id) in [("a", "UPDATE", &ids[1]), ("b", "DELETE", &ids[2])] {
        let trigger = format!(
            "CREATE TRIGGER {name} BEFORE {event} ON coretools_leases WHEN OLD.id = '{id}' \
             BEGIN SELECT RAISE(ABORT, 'refused'); END"
        );
        database.0.execute(&trigger, &[]).await.unwrap();
    }
    let registry = LeaseRegistry::from(database.clone());
    let reaped = registry.reap(&[settings()], &Runner::new()).await.unwrap();
    assert_eq!(reaped.destroyed, [ids[0].as_str(), ids[3].as_str()]);
    let failed: Vec<&str> = reaped.failed.iter().map(|(id, _)| &**id).collect();
    assert_eq!(failed, [ids[1].as_str(), ids[2].as_str()]);
    assert!(reaped.failed.iter().all(|(_, reason)| reason.contains("refused")), "{reaped:?}");
    // One row that is no lease hides no other.
    let spoil = "UPDATE coretools_leases SET record = '?' WHERE id = $1";
    database.0.execute(spoil, &[Bind::Text(&ids[2])]).await.unwrap();
    let found = registry.leases().await.unwrap();
    assert_eq!(found.iter().map(|lease| &*lease.record.id).collect::<Vec<_>>(), [ids[1].as_str()]);
}

#[tokio::test]
async fn a_lease_that_another_server_has_taken_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let location = location(&folder);
    let one = LeaseDatabase::open(&location, Duration::ZERO).await.unwrap();
    let other = LeaseDatabase::open(&location, Duration::ZERO).await.unwrap();
    let (record, _) = LeaseRecord::new(&settings(), &CommandValues::default()).unwrap().unwrap();
    let row = one.write(&record).await.unwrap();
    // A server whose silence may be as long as nothing is dead at once.
    let taken = loop {
        if let Some(taken) = other.take_over(&record.id).await.unwrap() {
            break taken;
        }
    };
    assert!(matches!(row.note_created().await, Err(Error::LeaseTaken { .. })));
    row.remove().await.unwrap();
    assert_eq!(other.leases().await.unwrap().len(), 1);
    taken.place.remove().await.unwrap();
    assert!(one.leases().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_lease_of_a_newer_program_is_left_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let location = location(&folder);
    let database = LeaseDatabase::open(&location, SILENCE).await.unwrap();
    let (text, number) = (Bind::Text("?"), Bind::Number(0));
    let binds = [Bind::Text("x"), Bind::Number(FORMAT + 1), text, text, number, number];
    database.0.execute(sql::INSERT, &binds).await.unwrap();
    database.0.execute("UPDATE coretools_leases SET owner = NULL", &[]).await.unwrap();
    let registry = LeaseRegistry::from(database);
    let reaped = registry.reap(&[], &Runner::new()).await.unwrap();
    assert!(reaped.destroyed.is_empty() && reaped.failed[0].1.contains("newer"), "{reaped:?}");
    assert!(registry.leases().await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_no_database_is_refused() {
    for location in ["mysql://x", "a.db", "sqlite:/nonexistent/a.db"] {
        let refused = LeaseDatabase::open(location, SILENCE).await.unwrap_err();
        assert!(matches!(refused, Error::LeaseDatabase(_)), "{location}");
    }
}
