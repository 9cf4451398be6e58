//! Tests of leases in a database of SQLite. Those with PostgreSQL start servers.

use super::*;
use crate::commands::CommandValues;
use crate::lease::LeaseRegistry;
use crate::settings::RemoteSettings;
use process_runner::Runner;
use toml::de::DeTable;

const SILENCE: Duration = Duration::from_millis(500);

fn settings() -> RemoteSettings {
    let text = "connect = ['cat']\ncreate = ['true']\ndestroy = ['true']";
    RemoteSettings::parse("box", DeTable::parse(text).unwrap().get_ref(), &(0..0)).unwrap()
}

async fn open(location: &str) -> LeaseRegistry {
    LeaseDatabase::open(location, SILENCE).await.unwrap().into()
}

#[tokio::test]
async fn a_lease_belongs_to_one_server_until_that_is_silent() {
    let folder = tempfile::tempdir().unwrap();
    let location = format!("sqlite:{}", folder.path().join("a.db").display());
    let (one, other) = (open(&location).await, open(&location).await);
    let settings = settings();
    let configured = std::slice::from_ref(&settings);
    let (values, runner) = (CommandValues { caller: "ada", ..CommandValues::default() }, Runner::new());
    let mut kept = one.begin(&settings, &values).await.unwrap().unwrap();
    kept.note_created().await.unwrap();
    let mut left = one.begin(&settings, &values).await.unwrap().unwrap();
    left.note_created().await.unwrap();
    let left_id = left.id().to_owned();
    // As of a server that was killed: it is not told of any more.
    drop(left);
    let destroyed = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            let reaped = other.reap(configured, &runner).await.unwrap();
            assert!(reaped.failed.is_empty(), "{reaped:?}");
            if !reaped.destroyed.is_empty() {
                return reaped.destroyed;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert_eq!(destroyed.await.unwrap(), [left_id]);
    // The other has had signs of life all the time.
    let found = other.leases().await.unwrap();
    assert_eq!(
        found.iter().map(|lease| (&*lease.record.id, lease.is_owned)).collect::<Vec<_>>(),
        [(kept.id(), true)]
    );
    kept.end(&runner).await.unwrap();
    assert!(one.leases().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_lease_that_another_server_has_taken_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let location = format!("sqlite:{}", folder.path().join("a.db").display());
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
    let location = format!("sqlite:{}", folder.path().join("a.db").display());
    let database = LeaseDatabase::open(&location, SILENCE).await.unwrap();
    let binds = [Bind::Text("x"), Bind::Number(FORMAT + 1), Bind::Text("?"), Bind::Text("?")];
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
