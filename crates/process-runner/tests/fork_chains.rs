//! Programs that fork all the time, so that each process of theirs has ended before a signal comes.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "the tests look at what the programs write")]
#![cfg(target_os = "linux")]

mod confined_place;

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use process_runner::{Command, Confinement, ConfinementLevel, Limits, Runner};

use confined_place::ConfinedPlace;

/// Leaves six daemons behind that write a file all the time, each of which becomes another process after `PAUSE` seconds.
const CHAINS: &str = "import os, sys, time\n\
    pause, until = float(sys.argv[1]), time.time() + 90\n\
    if os.fork(): time.sleep(0.3); os._exit(0)\n\
    os.setsid()\n\
    if os.fork(): os._exit(0)\n\
    os.closerange(0, 64)\n\
    for _ in range(5):\n\
    \x20   if os.fork() == 0: break\n\
    while time.time() < until:\n\
    \x20   os.close(os.open('beat', os.O_WRONLY | os.O_CREAT | os.O_TRUNC))\n\
    \x20   if os.fork(): os._exit(0)\n\
    \x20   os.setsid()\n\
    \x20   if pause: time.sleep(pause)\n";

/// Returns the time since the file was written.
fn age(file: &Path) -> Duration {
    let written = file.metadata().and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    SystemTime::now().duration_since(written).unwrap_or_default()
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn chains_end(confinement: impl Fn(&ConfinedPlace) -> Option<Confinement>) {
    let runner = Runner::builder().adopt_orphans().build();
    for pause in ["0", "0.002"] {
        let Some(place) = ConfinedPlace::at_default_level() else { return };
        let beat = place.root().join("beat");
        let limits = Limits::default().timeout(Duration::from_secs(60));
        let mut command =
            Command::new("/usr/bin/python3", place.root()).args(["-c", CHAINS, pause]).limits(limits);
        if let Some(confinement) = confinement(&place) {
            command = command.confined(confinement);
        }
        runner.run(command).await.unwrap();
        // One whose command cannot be found out may have been ended already.
        until("the chains have run", || beat.exists()).await;
        for tree in runner.leftover_trees() {
            tree.end(Duration::ZERO).await;
        }
        // Each writes every few milliseconds, and on a busy machine every few hundred.
        until(&format!("chains with a pause of {pause} s have ended"), || {
            age(&beat) > Duration::from_secs(2)
        })
        .await;
    }
}

#[tokio::test]
async fn they_end_with_their_tree_in_a_pid_namespace() {
    chains_end(|place| Some(place.confinement().network(true))).await;
}

#[tokio::test]
async fn they_end_with_their_tree_without_namespaces() {
    chains_end(|place| Some(place.confinement().network(true).level(ConfinementLevel::SystemCalls))).await;
}
