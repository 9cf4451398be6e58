//! The policy file changes while a client is connected.

use crate::{PolicyFixture, listed, logged, put, refused, tester};
use integration_tests::{Era, Wire, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

fn everything() -> String {
    tester("allow = [\"*\"]")
}

fn less() -> String {
    tester("allow = [\"*\"]\ndeny = [\"write_file\"]")
}

fn runs(wire: &mut Wire, tool: &str) -> bool {
    let answer = wire.request("tools/call", json!({"name": tool, "arguments": {}}));
    answer.get("error").is_none()
}

fn is_change(message: &Value) -> bool {
    message["method"] == "notifications/tools/list_changed"
}

/// Waits for the next notice that the list changed.
fn hears_of_it(wire: &mut Wire) {
    if wire.others().iter().any(is_change) {
        return;
    }
    loop {
        if is_change(&wire.receive()) {
            return;
        }
    }
}

fn listen(wire: &mut Wire) {
    wire.ask("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let acknowledged = wire.receive();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
}

fn log_has(log: &Path, text: &str) {
    wait_until(LIMIT, &format!("{text:?} in the log"), || fs::read_to_string(log).unwrap().contains(text));
}

#[test]
fn the_next_call_is_judged_by_the_new_policy_whether_or_not_the_client_noticed() {
    for era in Era::BOTH {
        let judged = PolicyFixture::by(&everything(), []);
        let mut wire = judged.connect(era);
        assert!(runs(&mut wire, "write_file"));
        judged.set_policy(&less());
        wait_until(LIMIT, "the new policy holds", || !runs(&mut wire, "write_file"));
        assert!(!listed(&mut wire).contains("write_file"));
        assert_eq!(refused(&mut wire, "write_file")["code"], refused(&mut wire, "wrzzz_fzzz")["code"]);
        judged.set_policy(&everything());
        wait_until(LIMIT, "the policy of before holds again", || runs(&mut wire, "write_file"));
        assert!(listed(&mut wire).contains("write_file"));
    }
}

#[test]
fn a_client_of_each_era_hears_that_its_list_changed() {
    for era in Era::BOTH {
        let judged = PolicyFixture::by(&everything(), []);
        let mut wire = judged.connect(era);
        if era == Era::Modern {
            listen(&mut wire);
        }
        assert!(listed(&mut wire).contains("write_file"));
        judged.set_policy(&less());
        hears_of_it(&mut wire);
        assert!(!listed(&mut wire).contains("write_file"), "it hears of it when it is so");
        judged.set_policy(&everything());
        hears_of_it(&mut wire);
        assert!(listed(&mut wire).contains("write_file"));
    }
}

#[test]
fn a_client_hears_nothing_where_its_own_list_is_what_it_was() {
    for era in Era::BOTH {
        let judged = PolicyFixture::by(&everything(), []);
        let log = judged.outside.join("log");
        let mut wire = Wire::connect(logged(&judged.server(), &log), era);
        if era == Era::Modern {
            listen(&mut wire);
        }
        let other = format!("{}\n[roles.other]\nallow = [\"read_file\"]\n", everything());
        judged.set_policy(&other);
        log_has(&log, "was read again");
        assert!(wire.is_silent_for(Duration::from_millis(300)), "{:?}", wire.others());
        // Without the listener's wish nobody of 2026-07-28 hears anything.
        if era == Era::Modern {
            let mut deaf = judged.connect(era);
            // It has read the policy once it answers; half a file is none.
            assert!(runs(&mut deaf, "write_file"));
            judged.set_policy(&less());
            wait_until(LIMIT, "the new policy holds", || !runs(&mut deaf, "write_file"));
            assert!(!deaf.others().iter().any(is_change));
        }
    }
}

#[test]
fn a_file_that_cannot_be_used_keeps_the_policy_of_before_and_is_told() {
    type SpoilPolicy = fn(&PolicyFixture);
    let spoilt: [(&str, SpoilPolicy, &str); 8] = [
        ("no TOML", |judged| judged.set_policy("allow = ["), "error"),
        ("empty", |judged| judged.set_policy(""), "error"),
        (
            "a misspelt denial",
            |judged| judged.set_policy(&tester("allow = [\"*\"]\ndeny = [\"write_fiel\"]")),
            "write_fiel",
        ),
        ("not UTF-8", |judged| drop(put(&judged.policy(), b"version = 1 # \xff", 0o600)), "UTF-8"),
        ("deleted", |judged| fs::remove_file(judged.policy()).unwrap(), "cannot use the policy"),
        (
            "a folder",
            |judged| {
                fs::remove_file(judged.policy()).unwrap();
                fs::create_dir(judged.policy()).unwrap();
            },
            "not a file",
        ),
        (
            "a pipe",
            |judged| {
                fs::remove_file(judged.policy()).unwrap();
                let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
                rustix::fs::mknodat(rustix::fs::CWD, judged.policy(), rustix::fs::FileType::Fifo, mode, 0)
                    .unwrap();
            },
            "not a file",
        ),
        (
            "too large",
            |judged| {
                judged.set_policy(&format!("{}{}", less(), "# padding\n".repeat(500_000)));
            },
            "larger than",
        ),
    ];
    for (what, spoil, said) in spoilt {
        let judged = PolicyFixture::by(&less(), []);
        let log = judged.outside.join("log");
        let mut wire = Wire::connect(logged(&judged.server(), &log), Era::BOTH[0]);
        let before = listed(&mut wire);
        spoil(&judged);
        log_has(&log, "the one before stays");
        log_has(&log, said);
        assert_eq!(listed(&mut wire), before, "{what}");
        assert!(!runs(&mut wire, "write_file"), "{what}");
        assert!(runs(&mut wire, "read_file"), "{what}");
        // And it recovers.
        let _ = fs::remove_dir(judged.policy());
        let _ = fs::remove_file(judged.policy());
        judged.set_policy(&everything());
        wait_until(LIMIT, &format!("after {what} a good file holds"), || runs(&mut wire, "write_file"));
    }
}

#[test]
fn a_file_that_a_group_of_others_may_write_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        // Only root can give a file to a group that is not its own.
        return;
    }
    let judged = PolicyFixture::by(&everything(), []);
    let log = judged.outside.join("log");
    let mut wire = Wire::connect(logged(&judged.server(), &log), Era::Modern);
    assert!(runs(&mut wire, "write_file"));
    let next = put(&judged.outside.join("next"), less(), 0o660);
    std::os::unix::fs::chown(&next, None, Some(12345)).unwrap();
    fs::set_permissions(&next, fs::Permissions::from_mode(0o660)).unwrap();
    fs::rename(next, judged.policy()).unwrap();
    log_has(&log, "others may write");
    wait_until(LIMIT, "what it takes away holds", || !runs(&mut wire, "write_file"));
    assert!(runs(&mut wire, "read_file"));
    let next = put(&judged.outside.join("next"), less(), 0o600);
    std::os::unix::fs::chown(&next, Some(12345), None).unwrap();
    fs::rename(next, judged.policy()).unwrap();
    log_has(&log, "belongs to user 12345");
    assert!(!runs(&mut wire, "write_file") && runs(&mut wire, "read_file"));
}

#[test]
fn a_policy_that_others_could_write_is_repaired_and_only_narrows_until_a_new_file_is_in_its_place() {
    let mode = |judged: &PolicyFixture| fs::metadata(judged.policy()).unwrap().permissions().mode() & 0o777;
    let open_to_all = |judged: &PolicyFixture| {
        fs::set_permissions(judged.policy(), fs::Permissions::from_mode(0o666)).unwrap();
    };
    let replace = |judged: &PolicyFixture, text: &str| {
        let next = put(&judged.outside.join("next"), text, 0o600);
        fs::rename(next, judged.policy()).unwrap();
    };
    // In place: the file that others could write stays the file.
    let overwrite = |judged: &PolicyFixture, text: &str| fs::write(judged.policy(), text).unwrap();

    let judged = PolicyFixture::by(&everything(), []);
    let log = judged.outside.join("log");
    let mut wire = Wire::connect(logged(&judged.server(), &log), Era::Modern);
    assert!(runs(&mut wire, "write_file"));
    open_to_all(&judged);
    wait_until(LIMIT, "the mode is set back", || mode(&judged) & 0o022 == 0);
    log_has(&log, "holds as before, since its text is the same");
    assert!(runs(&mut wire, "write_file"));
    // What it takes away holds at once, also while it is writable.
    open_to_all(&judged);
    overwrite(&judged, &less());
    wait_until(LIMIT, "the denial holds", || !runs(&mut wire, "write_file"));
    assert!(runs(&mut wire, "read_file"));
    // What cannot be judged lets nobody call anything.
    overwrite(&judged, "allow = [");
    wait_until(LIMIT, "nothing may be called", || !runs(&mut wire, "read_file"));
    replace(&judged, &everything());
    wait_until(LIMIT, "a new file holds", || runs(&mut wire, "write_file"));

    // What it adds does not hold, also after the mode was set back.
    let judged = PolicyFixture::by(&less(), []);
    let log = judged.outside.join("log");
    let mut wire = Wire::connect(logged(&judged.server(), &log), Era::Modern);
    assert!(!runs(&mut wire, "write_file"));
    open_to_all(&judged);
    overwrite(&judged, &everything());
    log_has(&log, "is not trusted");
    wait_until(LIMIT, "the mode is set back", || mode(&judged) & 0o022 == 0);
    log_has(&log, "others could write to it, and may have it open");
    assert!(!runs(&mut wire, "write_file") && runs(&mut wire, "read_file"));
    replace(&judged, &everything());
    wait_until(LIMIT, "a new file holds", || runs(&mut wire, "write_file"));
}

#[test]
fn a_file_that_is_replaced_by_a_rename_is_seen() {
    let judged = PolicyFixture::by(&everything(), []);
    let mut wire = judged.connect(Era::Modern);
    assert!(runs(&mut wire, "write_file"));
    let next = put(&judged.outside.join("next"), less(), 0o600);
    fs::rename(next, judged.policy()).unwrap();
    wait_until(LIMIT, "the new policy holds", || !runs(&mut wire, "write_file"));
}

/// As an editor or `cp --preserve` leaves it: the same length, the same time.
#[test]
fn a_change_that_keeps_length_and_time_is_seen() {
    let pad = |text: String| format!("{text:<200}");
    let judged = PolicyFixture::by(&pad(everything()), []);
    let mut wire = judged.connect(Era::Modern);
    assert!(runs(&mut wire, "write_file"));
    let time = fs::metadata(judged.policy()).unwrap().modified().unwrap();
    std::thread::sleep(Duration::from_millis(700)); // the file has been looked at
    judged.set_policy(&pad(less()));
    fs::File::options().write(true).open(judged.policy()).unwrap().set_modified(time).unwrap();
    wait_until(LIMIT, "the new policy holds", || !runs(&mut wire, "write_file"));
}

#[test]
fn a_role_that_is_no_longer_declared_is_the_minimal_one() {
    let judged = PolicyFixture::by(&everything(), []);
    let mut wire = judged.connect(Era::Modern);
    judged.set_policy(
        "version = 1\n[roles.other]\nallow = [\"*\"]\n[roles.minimal]\nallow = [\"get_diagnostics\"]\n",
    );
    wait_until(LIMIT, "the new policy holds", || !runs(&mut wire, "write_file"));
    assert_eq!(listed(&mut wire).into_iter().collect::<Vec<_>>(), ["get_diagnostics"]);
}
