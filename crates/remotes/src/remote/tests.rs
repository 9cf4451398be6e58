#![allow(clippy::disallowed_methods, reason = "the tests make the files of an engine")]

use super::*;
use crate::lease::{LeaseFolder, LeaseRegistry};
use process_runner::Runner;
use std::path::Path;
use std::time::Instant;
use toml::de::DeTable;

/// A server there that answers the first message and then reads.
const SERVER: &str = r#"read -r line
id=$(printf '%s' "$line" | sed 's/.*"id":"\([^"]*\)".*/\1/')
printf '%s\n' "{\"jsonrpc\":\"2.0\",\"id\":\"$id\",\"result\":$1}"
exec cat >/dev/null
"#;

/// A remote whose `create` makes a file and ends when `gate` is gone.
fn remote(folder: &Path) -> Remote {
    std::fs::write(folder.join("server.sh"), SERVER).unwrap();
    std::fs::write(folder.join("gate"), "").unwrap();
    std::fs::create_dir(folder.join("made")).unwrap();
    let answer = serde_json::to_string(&OpenAnswer::new("1")).unwrap().replace('{', "{{").replace('}', "}}");
    let text = format!(
        "connect = ['sh', '{0}/server.sh', '{answer}']\n\
         create = ['sh', '-c', 'touch \"$0\"; while test -e \"$1\"; do sleep 0.05; done', '{0}/made/{{lease}}', '{0}/gate']\n\
         destroy = ['rm', '-f', '{0}/made/{{lease}}']\n",
        folder.display()
    );
    let table = DeTable::parse(&text).unwrap();
    let settings = RemoteSettings::parse("box", table.get_ref(), &(0..0)).unwrap();
    let mut options = RemoteOptions::new("mcp-stdio", "1", Runner::new());
    options.leases = Some(LeaseFolder::new(folder.join("leases")).into());
    Remote::new(settings, OpenRequest::new("1", ""), options, WarmRemotes::default())
}

async fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(20), "not within 20 s: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn what_is_created_while_the_remote_ends_is_destroyed() {
    let folder = tempfile::tempdir().unwrap();
    let remote = remote(folder.path());
    let made = || std::fs::read_dir(folder.path().join("made")).unwrap().count();
    let connecting = tokio::spawn({
        let remote = remote.clone();
        async move { remote.connect().await }
    });
    wait_until("it is made", || made() == 1).await;
    // It is still being made when the time to end is over.
    remote.end(Duration::from_millis(1)).await;
    assert_eq!(made(), 1);
    std::fs::remove_file(folder.path().join("gate")).unwrap();
    assert!(matches!(connecting.await.unwrap(), Err(Error::Ending)));
    assert_eq!(made(), 0);
    let leases = LeaseRegistry::from(LeaseFolder::new(folder.path().join("leases")));
    assert!(leases.leases().await.unwrap().is_empty());
}

#[tokio::test]
async fn what_a_channel_was_opened_to_lives_until_the_remote_ends() {
    let folder = tempfile::tempdir().unwrap();
    let remote = remote(folder.path());
    std::fs::remove_file(folder.path().join("gate")).unwrap();
    remote.connect().await.unwrap();
    let made = || std::fs::read_dir(folder.path().join("made")).unwrap().count();
    assert_eq!(made(), 1);
    remote.end(Duration::from_secs(20)).await;
    assert_eq!(made(), 0);
}
