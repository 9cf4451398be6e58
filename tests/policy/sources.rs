//! Where a role comes from: each source takes away, and one that cannot be trusted leaves almost nothing.

use crate::{listed, lists, logged, put, run, server, tester};
use integration_tests::{Era, Project, Wire, wait_until};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A project, and a folder that the session has as its `$TMPDIR`.
struct SessionFixture {
    project: Project,
    temporary: Project,
}

impl SessionFixture {
    fn new() -> Self {
        Self { project: Project::empty(), temporary: Project::empty() }
    }

    fn marker(&self) -> PathBuf {
        self.temporary.join("coretools_role")
    }

    fn server(&self) -> Command {
        self.server_with::<&str>([])
    }

    fn server_with<S: AsRef<std::ffi::OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = server(&self.project, arguments);
        command.env("TMPDIR", self.temporary.path());
        command
    }
}

fn minimal() -> BTreeSet<String> {
    BTreeSet::from(["get_diagnostics".to_owned()])
}

/// Returns the tools that a role sees, when a flag names the role.
fn of_role(role: &str) -> BTreeSet<String> {
    lists(server(&Project::empty(), ["--role", role]))
}

fn in_environment(role: &str) -> Command {
    let mut command = server::<&str>(&Project::empty(), []);
    command.env("CORETOOLS_ROLE", role);
    command.current_dir("/");
    command
}

#[test]
fn without_any_word_of_a_role_a_local_server_is_the_orchestrators() {
    let project = Project::empty();
    let everything = of_role("orchestrator");
    assert!(everything.len() > 20);
    assert_eq!(lists(server::<&str>(&project, [])), everything);
    let session = SessionFixture::new();
    assert_eq!(lists(session.server()), everything, "a temporary folder without a marker says nothing");
}

#[test]
fn a_role_that_is_not_one_is_the_minimal_role_whoever_names_it() {
    for role in
        ["", " ", "nobody", "Worker", "worker ", " worker", "worker\n", "ORCHESTRATOR", "*", "a,b", "wörker"]
    {
        let project = Project::empty();
        let mut command = server::<&str>(&project, []);
        command.env("CORETOOLS_ROLE", role);
        assert_eq!(lists(command), minimal(), "CORETOOLS_ROLE={role:?}");
        assert_eq!(lists(server(&project, [format!("--role={role}")])), minimal(), "--role={role:?}");
        if !role.contains(['\n']) {
            project.write("coretools.toml", &format!("role = {role:?}\n"));
            assert_eq!(lists(server::<&str>(&project, [])), minimal(), "role = {role:?}");
        }
    }
    assert_eq!(lists(in_environment("readonly")), of_role("readonly"));
}

#[test]
fn a_variable_that_is_no_text_keeps_the_server_from_starting() {
    use std::os::unix::ffi::OsStrExt;
    let project = Project::empty();
    let mut command = server(&project, ["tools"]);
    command.env("CORETOOLS_ROLE", std::ffi::OsStr::from_bytes(b"worker\xff"));
    let output = run(command);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("CORETOOLS_ROLE"), "{output:?}");
}

#[test]
fn no_source_gives_what_another_withholds_in_any_combination() {
    let everything = of_role("orchestrator");
    let seen = |role: Option<&str>| role.map_or_else(|| everything.clone(), of_role);
    let roles = [None, Some("orchestrator"), Some("readonly"), Some("qa"), Some("nobody")];
    for flag in roles {
        for variable in roles {
            for marker in [None, Some("orchestrator"), Some("readonly")] {
                let session = SessionFixture::new();
                session.project.write("coretools.toml", "role = \"qa\"\n");
                let mut command = session.server_with(flag.map(|role| format!("--role={role}")));
                if let Some(role) = variable {
                    command.env("CORETOOLS_ROLE", role);
                }
                if let Some(role) = marker {
                    put(&session.marker(), role, 0o600);
                }
                let mut expected = seen(Some("qa"));
                for source in [flag, variable, marker] {
                    expected = expected.intersection(&seen(source)).cloned().collect();
                }
                assert_eq!(
                    lists(command),
                    expected,
                    "flag {flag:?}, variable {variable:?}, marker {marker:?}"
                );
            }
        }
    }
}

#[test]
fn a_marker_in_the_sessions_folder_narrows_under_both_names() {
    for name in ["coretools_role", "teleclaude_role"] {
        let session = SessionFixture::new();
        put(&session.temporary.join(name), "readonly\n", 0o600);
        assert_eq!(lists(session.server()), of_role("readonly"), "{name}");
        assert_eq!(lists(session.server_with(["--role", "minimal"])), minimal(), "a marker widens nothing");
    }
}

#[test]
fn the_session_beside_the_marker_of_before_is_in_the_audit() {
    let session = SessionFixture::new();
    put(&session.temporary.join("teleclaude_role"), "readonly", 0o600);
    put(&session.temporary.join("teleclaude_session_id"), "s-17", 0o600);
    let audit = session.temporary.join("audit.jsonl");
    let mut wire = Wire::connect(session.server_with(["--audit".as_ref(), audit.as_os_str()]), Era::Modern);
    wire.call("list_commands", json!({}));
    let line = fs::read_to_string(&audit).unwrap();
    assert!(line.contains(r#""session":"s-17""#) && line.contains(r#""role":"readonly""#), "{line}");
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A problem of a marker, and a function that makes such a marker.
type BadMarker = (&'static str, fn(&Path));

/// Lists the markers that must not be trusted.
fn bad_markers() -> Vec<BadMarker> {
    let mut bad: Vec<BadMarker> = vec![
        ("empty", |path| drop(put(path, "", 0o600))),
        ("a line end", |path| drop(put(path, "\n", 0o600))),
        ("too long", |path| drop(put(path, "orchestrator".repeat(100), 0o600))),
        ("endless", |path| {
            let file = fs::File::create(path).unwrap();
            file.set_len(1 << 30).unwrap();
        }),
        ("no UTF-8", |path| drop(put(path, b"orchestrator\xff", 0o600))),
        ("a byte order mark", |path| drop(put(path, "\u{feff}orchestrator", 0o600))),
        ("two lines", |path| drop(put(path, "worker\norchestrator\n", 0o600))),
        ("blanks", |path| drop(put(path, " orchestrator ", 0o600))),
        ("Windows line end", |path| drop(put(path, "orchestrator\r\n", 0o600))),
        ("NUL", |path| drop(put(path, "orchestrator\0", 0o600))),
        ("unknown role", |path| drop(put(path, "superuser", 0o600))),
        ("group may write", |path| drop(put(path, "orchestrator", 0o620))),
        ("all may write", |path| drop(put(path, "orchestrator", 0o606))),
        ("a link", |path| {
            put(&path.with_file_name("real"), "orchestrator", 0o600);
            symlink("real", path).unwrap();
        }),
        ("a link to nothing", |path| symlink("nothing", path).unwrap()),
        ("a hard link", |path| {
            let real = put(&path.with_file_name("real"), "orchestrator", 0o600);
            fs::hard_link(real, path).unwrap();
        }),
        ("a folder", |path| fs::create_dir(path).unwrap()),
        ("a pipe", |path| {
            rustix::fs::mknodat(
                rustix::fs::CWD,
                path,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
                0,
            )
            .unwrap();
        }),
        ("a socket", |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap())),
        ("a signed one, forged", |path| {
            drop(put(path, "rp1 role=orchestrator exp=99999999999 mac=00", 0o600));
        }),
        ("a folder that others may write", |path| {
            put(path, "orchestrator", 0o600);
            fs::set_permissions(path.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
        }),
        ("disagreeing", |path| {
            put(path, "orchestrator", 0o600);
            put(&path.with_file_name("teleclaude_role"), "worker", 0o600);
        }),
        ("beside one that is bad", |path| {
            put(path, "orchestrator", 0o600);
            put(&path.with_file_name("teleclaude_role"), "", 0o600);
        }),
    ];
    if is_root() {
        bad.push(("another's", |path| {
            put(path, "orchestrator", 0o600);
            std::os::unix::fs::chown(path, Some(12345), None).unwrap();
        }));
        bad.push(("in another's folder", |path| {
            put(path, "orchestrator", 0o600);
            std::os::unix::fs::chown(path.parent().unwrap(), Some(12345), None).unwrap();
        }));
    }
    bad
}

#[test]
fn a_marker_that_cannot_be_trusted_leaves_the_minimal_role_and_is_logged() {
    for (what, make) in bad_markers() {
        let session = SessionFixture::new();
        make(&session.marker());
        let log = session.project.join("log");
        // A pipe that were waited for would be met here: the answer is waited for a limited time.
        let command = logged(&session.server_with(["--role", "orchestrator"]), &log);
        let mut wire = Wire::connect(command, Era::Modern);
        assert_eq!(listed(&mut wire), minimal(), "{what}");
        wait_until(Duration::from_secs(10), &format!("{what} is logged"), || {
            let log = fs::read_to_string(&log).unwrap();
            log.contains("marker") && log.contains("minimal")
        });
        let log = fs::read_to_string(&log).unwrap();
        assert!(!log.contains("panicked"), "{what}: {log}");
    }
}

#[test]
fn the_command_of_an_agent_narrows_and_one_that_cannot_be_read_leaves_almost_nothing() {
    let project = Project::empty();
    // What the built-in worker may not see are other servers' tools, so this policy hides one of ours.
    let policy = "version = 1\nmissing_role = \"all\"\nderived = [{ command = \"next-*\", role = \"worker\" }]\n\
                  [roles.all]\nallow = [\"*\"]\n[roles.worker]\nallow = [\"*\"]\ndeny = [\"run_command\"]\n\
                  [roles.minimal]\nallow = [\"get_diagnostics\"]\n";
    let outside = Project::empty();
    let policy = put(&outside.join("roles.toml"), policy, 0o600);
    let with = |command: &str| {
        let mut server = server(&project, ["--policy"]);
        server.arg(&policy).arg(format!("--agent-command={command}"));
        lists(server)
    };
    let everything = with("build");
    assert!(everything.contains("run_command"));
    let worker: BTreeSet<String> = everything.iter().filter(|tool| *tool != "run_command").cloned().collect();
    for command in ["next-build", "/next-build", "next-", "next-build 12 --all", "/next-work\u{20}x"] {
        assert_eq!(with(command), worker, "{command}");
    }
    for command in [
        "",
        " ",
        "//next-build",
        "Next-Build",
        "next-büild",
        "../next-build",
        "next-build\t1",
        "\"next-build\"",
    ] {
        assert_eq!(with(command), minimal(), "{command:?}");
    }
    let mut command = server(&project, ["--policy"]);
    command.arg(&policy).env("CORETOOLS_AGENT_COMMAND", "/next-build");
    assert_eq!(lists(command), worker);
}

/// A key, a folder for the session, and the configuration that names the key.
struct SignedSessionFixture {
    session: SessionFixture,
    broker: Project,
}

impl SignedSessionFixture {
    fn new() -> Self {
        let signed = Self { session: SessionFixture::new(), broker: Project::empty() };
        put(&signed.key(), [b'k'; 48], 0o600);
        fs::set_permissions(signed.session.temporary.path(), fs::Permissions::from_mode(0o700)).unwrap();
        put(&signed.broker.join("coretools.toml"), "[policy]\nmarker_key = \"marker.key\"\n", 0o600);
        signed
    }

    fn key(&self) -> PathBuf {
        self.broker.join("marker.key")
    }

    fn write(&self, role: &str, more: &[&str]) {
        let mut command = server(&self.session.project, ["policy", "marker", "--role", role, "--key"]);
        command.arg(self.key()).args(more).arg(self.session.temporary.path());
        let output = run(command);
        assert!(output.status.success(), "{output:?}");
    }

    fn sees(&self) -> BTreeSet<String> {
        let mut command = self.session.server_with(["--role", "orchestrator", "--config"]);
        command.arg(self.broker.join("coretools.toml"));
        lists(command)
    }
}

#[test]
fn with_a_key_only_a_marker_that_it_signed_and_that_has_not_expired_counts() {
    let signed = SignedSessionFixture::new();
    assert_eq!(signed.sees(), minimal(), "no marker");
    put(&signed.session.marker(), "worker", 0o600);
    assert_eq!(signed.sees(), minimal(), "one without a signature");
    signed.write("readonly", &["--session", "s1"]);
    assert_eq!(signed.sees(), of_role("readonly"));
    let good = fs::read_to_string(signed.session.marker()).unwrap();
    for (what, forged) in [
        ("role", good.replace("role=readonly", "role=orchestrator")),
        ("session", good.replace("session=s1", "session=s2")),
        ("time", good.replace("exp=", "exp=9")),
        ("a second role", good.replace(" exp=", " role=orchestrator exp=")),
        ("after the signature", good.replace('\n', " role=orchestrator\n")),
        ("cut", good[..good.len() - 2].to_owned()),
        ("upper case", good.to_uppercase()),
        ("without", good.split(" mac=").next().unwrap().to_owned()),
    ] {
        put(&signed.session.marker(), forged, 0o600);
        assert_eq!(signed.sees(), minimal(), "{what}");
    }
    put(&signed.session.marker(), &good, 0o600);
    assert_eq!(signed.sees(), of_role("readonly"), "the one that was signed still counts");
    put(&signed.key(), [b'x'; 48], 0o600);
    assert_eq!(signed.sees(), minimal(), "another key");
    put(&signed.key(), [b'k'; 48], 0o640);
    assert_eq!(signed.sees(), minimal(), "a key that others may read");
    put(&signed.key(), [b'k'; 31], 0o600);
    assert_eq!(signed.sees(), minimal(), "a short key");
    fs::remove_file(signed.key()).unwrap();
    assert_eq!(signed.sees(), minimal(), "no key where one is named");
    put(&signed.key(), [b'k'; 48], 0o600);
    signed.write("readonly", &["--ttl", "1"]);
    wait_until(Duration::from_secs(30), "the marker expires", || signed.sees() == minimal());
}

#[test]
fn a_marker_that_changes_while_the_server_runs_gives_nothing() {
    let session = SessionFixture::new();
    put(&session.marker(), "readonly", 0o600);
    for era in Era::BOTH {
        let mut wire = Wire::connect(session.server(), era);
        let before = listed(&mut wire);
        assert_eq!(before, of_role("readonly"));
        put(&session.marker(), "orchestrator", 0o600);
        assert!(crate::refused(&mut wire, "run_command")["code"].is_i64());
        assert_eq!(listed(&mut wire), before);
        fs::remove_file(session.marker()).unwrap();
        assert!(crate::refused(&mut wire, "run_command")["code"].is_i64());
        assert_eq!(listed(&mut wire), before);
        put(&session.marker(), "readonly", 0o600);
    }
}

#[test]
fn a_marker_cannot_be_written_for_what_is_no_role_nor_into_a_folder_of_others() {
    let project = Project::empty();
    let parent = Project::empty();
    let write = |role: &str, folder: &Path| {
        let mut command = server(&project, ["policy", "marker", "--role", role]);
        command.arg(folder);
        run(command).status.code()
    };
    let fresh = parent.join("session");
    assert_eq!(write("worker", &fresh), Some(0));
    assert_eq!(fs::metadata(&fresh).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(fresh.join("coretools_role")).unwrap().permissions().mode() & 0o777, 0o600);
    for role in ["", "Worker", "a b", "-x"] {
        assert_ne!(write(role, &fresh), Some(0), "{role:?}");
    }
    let open = parent.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    assert_ne!(write("worker", &open), Some(0));
    // A link in the marker's place is replaced and not followed.
    let target = put(&parent.join("target"), "keep", 0o600);
    fs::remove_file(fresh.join("coretools_role")).unwrap();
    symlink(&target, fresh.join("coretools_role")).unwrap();
    assert_eq!(write("worker", &fresh), Some(0));
    assert_eq!(fs::read_to_string(target).unwrap(), "keep");
}

/// A broker that names a relative folder, or one that is not there to be looked into, meant something.
#[test]
fn a_temporary_folder_that_cannot_be_looked_into_is_not_the_same_as_none() {
    let project = Project::empty();
    let folder = project.join("session");
    fs::create_dir(&folder).unwrap();
    put(&folder.join("coretools_role"), "readonly", 0o600);
    let mut relative = server(&project, ["--role", "orchestrator"]);
    relative.env("TMPDIR", "session");
    let seen = lists(relative);
    assert!(
        seen == minimal() || seen == of_role("readonly"),
        "a relative TMPDIR lifted the marker: {seen:?}"
    );
    let mut file = server(&project, ["--role", "orchestrator"]);
    file.env("TMPDIR", folder.join("coretools_role"));
    assert_eq!(lists(file), minimal(), "a TMPDIR that is no folder");
}

/// Roles of both axes: each must allow, and a role nobody declared allows what `minimal` does, which this
/// policy does not declare either.
#[test]
fn without_a_minimal_role_in_the_policy_the_unknown_see_nothing() {
    let outside = Project::empty();
    let policy = put(&outside.join("roles.toml"), tester("allow = [\"*\"]"), 0o600);
    let project = Project::empty();
    let with = |role: &str| {
        let mut command = server(&project, ["--role", role, "--policy"]);
        command.arg(&policy);
        lists(command)
    };
    assert!(with("tester").len() > 20);
    assert_eq!(with("orchestrator"), BTreeSet::new());
}
