//! One line for each call and each refusal, in which no value stands.

use crate::{PolicyFixture, put, run, tester};
use integration_tests::{Era, Wire, require, unique_seconds, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

fn audit_file(judged: &PolicyFixture) -> PathBuf {
    judged.outside.join("audit.jsonl")
}

fn audited(judged: &PolicyFixture) -> Command {
    let mut command = judged.server();
    command.arg("--audit").arg(audit_file(judged));
    command
}

fn lines(judged: &PolicyFixture) -> Vec<Value> {
    let text = fs::read_to_string(audit_file(judged)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("half a line: {line}")))
        .collect()
}

const POLICY: &str = "allow = [\"*\"]\ndeny = [\"delete_file\"]\nlimits = { calls_per_minute = 1000, max_argument_bytes = 5000 }\n\
                      [[roles.tester.require]]\nid = \"docs-only\"\ntools = [\"write_file\"]\nwrite_within = [\"docs\"]";

#[test]
fn each_call_and_each_refusal_is_one_line_that_says_how_it_came_out() {
    for era in Era::BOTH {
        let judged = PolicyFixture::by(&tester(POLICY), [("docs/a.txt", "a")]);
        let mut wire = Wire::connect(audited(&judged), era);
        let mut call = |tool: &str, arguments: Value| {
            wire.request("tools/call", json!({"name": tool, "arguments": arguments}));
        };
        call("read_file", json!({"path": "docs/a.txt"}));
        call("read_file", json!({"path": "docs/missing"}));
        call("run_command", json!({"command": ["false"]}));
        call("delete_file", json!({"path": "docs/a.txt"}));
        call("no_such_tool", json!({"path": "docs/a.txt"}));
        call("write_file", json!({"path": "src/a", "content": "x"}));
        call("read_file", json!({"pth": 1}));
        call("write_file", json!({"path": "docs/a", "content": "x".repeat(6000)}));
        let told: Vec<String> = lines(&judged)
            .iter()
            .map(|line| {
                let of = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
                assert_eq!((of("event"), of("role")), ("call".to_owned(), "tester".to_owned()), "{line}");
                assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");
                assert!(line["duration_us"].is_u64() && line["bytes_in"].is_u64(), "{line}");
                assert!(line["bytes_out"].is_u64(), "{line}");
                let rule = of("rule").replace(&judged.policy().display().to_string(), "FILE");
                format!(
                    "{} | {} | {} | {} | {rule}",
                    of("tool"),
                    of("decision"),
                    of("outcome"),
                    of("arguments")
                )
            })
            .collect();
        insta::assert_snapshot!("lines", told.join("\n"));
    }
}

#[test]
fn no_value_of_any_argument_is_in_it_and_only_its_owner_reads_it() {
    let judged = PolicyFixture::by(&tester(POLICY), []);
    let mut wire = Wire::connect(audited(&judged), Era::Modern);
    let secret = "hunter2-in-the-clear";
    for tool in ["write_file", "run_command", "read_file", "delete_file", "no_such_tool"] {
        for arguments in [
            json!({"path": secret, "content": secret, "command": [secret]}),
            json!({secret: secret}),
            json!({secret: {secret: secret}, "env": {secret: secret}, "command": secret}),
            json!({"path": format!("docs/{secret}"), "content": secret}),
        ] {
            wire.request("tools/call", json!({"name": tool, "arguments": arguments}));
        }
    }
    // A name that nobody registered may hold anything too; what has the form of a secret is masked.
    let token = format!("ghp_{}", "a1B2".repeat(9));
    wire.request("tools/call", json!({"name": token, "arguments": {}}));
    wire.request("tools/call", json!({"name": "x".repeat(100_000), "arguments": {}}));
    wire.request("tools/call", json!({"name": "a\n{\"event\":\"call\"}", "arguments": {}}));
    let text = fs::read_to_string(audit_file(&judged)).unwrap();
    assert_eq!(text.lines().count(), 23, "{text}");
    assert!(!text.contains("hunter2") && !text.contains(&token) && text.len() < 20_000, "{text}");
    assert_eq!(fs::metadata(audit_file(&judged)).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_call_that_is_cancelled_or_left_behind_is_recorded_too() {
    // Cancelled.
    let judged = PolicyFixture::by(&tester("allow = [\"*\"]"), []);
    let mut wire = Wire::connect(audited(&judged), Era::BOTH[0]);
    let id = wire.ask(
        "tools/call",
        json!({"name": "run_command", "arguments": {"command": ["sleep", unique_seconds()]}}),
    );
    assert!(wire.is_silent_for(Duration::from_millis(300)));
    wire.notify("notifications/cancelled", json!({"requestId": id}));
    let said =
        |judged: &PolicyFixture| lines(judged).iter().filter(|line| line["tool"] == "run_command").count();
    wait_until(Duration::from_secs(20), "the cancelled call is recorded", || said(&judged) == 1);
    assert_eq!(lines(&judged)[0]["outcome"], "failed");
    // Left behind by a client that goes away: it ran, so it is there.
    for end in ["input", "signal"] {
        let judged = PolicyFixture::by(&tester("allow = [\"*\"]"), []);
        let mut wire = Wire::connect(audited(&judged), Era::BOTH[0]);
        let seconds = unique_seconds();
        let command = json!(["sh", "-c", format!("touch ran; sleep {seconds}")]);
        wire.ask("tools/call", json!({"name": "run_command", "arguments": {"command": command}}));
        wait_until(Duration::from_secs(20), "it runs", || judged.project.join("ran").exists());
        match end {
            "input" => wire.close_input(),
            _ => wire.signal(rustix::process::Signal::TERM),
        }
        wire.wait(Duration::from_secs(20));
        assert_eq!(said(&judged), 1, "by {end}: a call ran and the audit does not know");
    }
}

#[test]
fn an_audit_that_is_a_link_a_device_or_anothers_keeps_the_server_from_starting() {
    let judged = PolicyFixture::by(&tester("allow = [\"*\"]"), []);
    let real = put(&judged.outside.join("real"), "", 0o600);
    symlink(real, judged.outside.join("link")).unwrap();
    put(&judged.outside.join("open"), "", 0o666);
    let anothers = put(&judged.outside.join("anothers"), "", 0o600);
    // Root alone can give a file away; for others that one is like the one that all may write.
    let given = std::os::unix::fs::chown(&anothers, Some(12345), None);
    fs::set_permissions(&anothers, fs::Permissions::from_mode(if given.is_ok() { 0o600 } else { 0o666 }))
        .unwrap();
    for path in [
        judged.outside.join("link"),
        judged.outside.join("open"),
        anothers,
        "/dev/full".into(),
        "/".into(),
        judged.outside.join("no/such"),
    ] {
        let mut command = judged.server();
        command.arg("--audit").arg(&path);
        let output = run(command);
        assert!(!output.status.success(), "{}", path.display());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("cannot write the audit"), "{said}");
    }
}

/// Mounts a file system of one page, which is full at once; root can, and CI runs these as root.
struct TinyFileSystem(PathBuf);

impl TinyFileSystem {
    fn mount(folder: PathBuf) -> Option<Self> {
        fs::create_dir(&folder).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=16k,mode=0700", "tmpfs"])
            .arg(&folder)
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then_some(Self(folder))
    }
}

impl Drop for TinyFileSystem {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn on_a_full_disk_calls_are_refused_or_counted_as_the_operator_chose() {
    for choice in ["refuse", "count"] {
        let judged = PolicyFixture::by(&tester("allow = [\"*\"]"), [("a.txt", "a")]);
        let tiny = TinyFileSystem::mount(judged.outside.join("tiny"));
        let Some(tiny) = require(tiny, "no right to mount a file system; run as root") else { return };
        let audit = tiny.0.join("audit.jsonl");
        let config = format!("[policy]\naudit = {audit:?}\naudit_when_full = {choice:?}\n");
        let config = put(&judged.outside.join("coretools.toml"), config, 0o600);
        let mut command = judged.server();
        command.arg("--config").arg(config);
        let mut wire = Wire::connect(command, Era::Modern);
        let touch =
            |wire: &mut Wire, name: &str| wire.call("run_command", json!({"command": ["touch", name]}));
        assert_eq!(touch(&mut wire, "before")["isError"], false);
        let filler = tiny.0.join("filler");
        // Until nothing fits any more, in the file of the audit neither.
        let _ = fs::write(&filler, vec![0; 1 << 20]);
        let mut refused = None;
        for number in 0..100 {
            let result = touch(&mut wire, &format!("n{number}"));
            if result["isError"] == true {
                refused = Some((number, result));
                break;
            }
        }
        let text = || fs::read_to_string(&audit).unwrap();
        for line in text().lines() {
            serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("half a line: {line}"));
        }
        match (choice, refused) {
            ("refuse", Some((number, result))) => {
                assert!(result.to_string().contains("the record cannot be written"), "{result}");
                assert!(!judged.project.join(&format!("n{number}")).exists(), "it ran unrecorded");
                fs::remove_file(&filler).unwrap();
                assert_eq!(touch(&mut wire, "after")["isError"], false, "with room again, calls run again");
                assert!(judged.project.join("after").exists());
            }
            ("count", None) => {
                assert!(judged.project.join("n99").exists());
                fs::remove_file(&filler).unwrap();
                touch(&mut wire, "after");
                let last: Value = serde_json::from_str(text().lines().last().unwrap()).unwrap();
                assert!(last["lost_before"].as_u64().is_some_and(|lost| lost > 10), "{last}");
            }
            other => panic!("{other:?}"),
        }
    }
}
