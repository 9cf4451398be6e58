//! The first hour of an operator: `mcp-http init`, and `doctor` on what it has written and on what is wrong.

use crate::SOON;
use integration_tests::{Era, Http, HttpServer, Project, require, unused_port, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

fn program(project: &Project, arguments: &[&str]) -> Output {
    HttpServer::program(project).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A server that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `init` in an empty folder, for an address that is free.
struct Installed {
    project: Project,
    folder: PathBuf,
    _outside: Project,
    address: String,
    token: String,
    said: String,
}

impl Installed {
    fn new() -> Self {
        let (project, outside) = (Project::with([("a.txt", "a\n")]), Project::empty());
        let folder = outside.join("etc");
        let address = format!("127.0.0.1:{}", unused_port());
        let arguments = ["init", "--folder", folder.to_str().unwrap(), "--listen", &address, "--name", "ada"];
        let output = program(&project, &arguments);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        let token = text(&output.stdout).trim().to_owned();
        Self { project, folder, _outside: outside, address, token, said }
    }

    fn config(&self) -> String {
        self.folder.join("coretools.toml").to_str().unwrap().to_owned()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let config = self.config();
        let all: Vec<&str> = ["--config", &config].iter().chain(arguments).copied().collect();
        program(&self.project, &all)
    }

    fn serve(&self) -> Running {
        let child = HttpServer::program(&self.project)
            .args(["--config", &self.config()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let running = Running(child);
        wait_until(SOON, "it is healthy", || self.run(&["health"]).status.success());
        running
    }

    /// The findings of `doctor` about one thing, and whether it found the whole healthy.
    fn doctor(&self, what: &str) -> (bool, Vec<Value>) {
        let output = self.run(&["doctor", "--json"]);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        assert_eq!(output.status.code(), Some(if found["healthy"] == true { 0 } else { 1 }), "{found}");
        let findings = found["findings"].as_array().unwrap().iter();
        (found["healthy"] == true, findings.filter(|finding| finding["what"] == what).cloned().collect())
    }
}

fn has(findings: &[Value], state: &str, words: &str) -> bool {
    findings
        .iter()
        .any(|finding| finding["state"] == state && finding["detail"].as_str().unwrap().contains(words))
}

#[test]
fn the_first_hour_is_four_commands_in_an_empty_folder() {
    let installed = Installed::new();
    let mode = |name: &str| fs::metadata(installed.folder.join(name)).unwrap().permissions().mode() & 0o777;
    for file in ["coretools.toml", "roles.toml", "tokens.toml", "mcp-http.service"] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
    assert!(
        installed.token.starts_with("ctk_") && installed.token.lines().count() == 1,
        "{}",
        installed.token
    );
    // The token is nowhere but on standard output, and the client's line takes it from a variable.
    let kept: String = fs::read_dir(&installed.folder)
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok())
        .collect();
    assert!(!kept.contains(&installed.token) && !installed.said.contains(&installed.token));
    assert!(installed.said.contains("${CORETOOLS_TOKEN}"), "{}", installed.said);
    let (healthy, _) = installed.doctor("tokens");
    assert!(healthy, "{}", text(&installed.run(&["doctor"]).stdout));
    let mut running = installed.serve();
    let address = installed.address.parse().unwrap();
    let mut client = Http::connect(address, Some(&installed.token), Era::Modern);
    assert_eq!(client.text("read_file", json!({"path": "a.txt"})), "a\n");
    let asked = installed.run(&["audit", "query", "--path", "a.txt", "--format", "json"]);
    assert!(text(&asked.stdout).contains("\"principal\":\"ada\""), "{asked:?}");
    let (healthy, listen) = installed.doctor("listen");
    assert!(healthy && has(&listen, "ok", "a server that is healthy listens there"), "{listen:?}");
    wait_until(SOON, "the use of the token is kept", || {
        text(&installed.run(&["token", "list"]).stdout).contains("ago from 127.0.0.1")
    });
    rustix::process::kill_process(rustix::process::Pid::from_child(&running.0), Signal::TERM).unwrap();
    assert!(running.0.wait().unwrap().success());
    let listed: Value = serde_json::from_slice(&installed.run(&["token", "list", "--json"]).stdout).unwrap();
    assert!(
        listed[0]["last_used"].as_u64() > listed[0]["created"].as_u64().map(|created| created - 1),
        "{listed}"
    );
    assert_eq!(listed[0]["last_used_from"], "127.0.0.1");
    // What a newer program has written is refused with words.
    let usage = installed.folder.join("log/token-usage.json");
    fs::write(&usage, r#"{"version": 2, "tokens": []}"#).unwrap();
    let refused = text(&installed.run(&[]).stderr);
    assert!(refused.contains("has version 2") && refused.contains("a newer version wrote it"), "{refused}");
}

#[test]
fn init_overwrites_nothing_and_writes_nothing_where_it_would_be_in_the_way() {
    let installed = Installed::new();
    let before = fs::read_to_string(installed.folder.join("tokens.toml")).unwrap();
    let folder = installed.folder.to_str().unwrap();
    for (arguments, words) in [
        (vec!["init", "--folder", folder], "is there already, and nothing is overwritten"),
        (vec!["init", "--folder", installed.project.path().to_str().unwrap()], "lies in a root"),
        (vec!["init", "--folder", "/nowhere/at/all", "--role", "nobody"], "declares no role `nobody`"),
        (vec!["init", "--folder", "/nowhere/at/all", "--name", "a b"], "is not a name"),
        (
            vec!["init", "--folder", "/nowhere/at/all", "--listen", "0.0.0.0:1"],
            "can be reached from other machines",
        ),
        (
            vec!["init", "--folder", "/nowhere/at/all", "--user", "no-such-user"],
            "there is no user `no-such-user`",
        ),
    ] {
        let output = program(&installed.project, &arguments);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    }
    assert_eq!(fs::read_to_string(installed.folder.join("tokens.toml")).unwrap(), before);
    assert!(!Path::new("/nowhere").exists());
}

#[test]
fn an_init_that_fails_half_way_leaves_nothing_in_the_way_of_the_next() {
    let (project, outside) = (Project::empty(), Project::empty());
    let folder = outside.join("etc");
    let arguments = ["init", "--folder", folder.to_str().unwrap()];
    let init = HttpServer::program(&project);
    // The configuration fits into 1 KiB, and the policy does not: as on a disk that is full then.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 2; exec \"$@\"", "sh"]).arg(init.get_program());
    limited.args(init.get_args()).args(arguments).current_dir(project.path());
    for (name, value) in init.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let output = limited.output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("cannot write"), "{said}");
    let files =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    assert_eq!(files.collect::<Vec<_>>(), Vec::<PathBuf>::new());
    let output = program(&project, &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn what_init_writes_belongs_to_the_user_of_the_server() {
    use std::os::unix::fs::MetadataExt;
    let root = rustix::process::geteuid().is_root();
    let Some(()) = require(root.then_some(()), "no right to give files away; run as root") else { return };
    let (project, outside) = (Project::empty(), Project::empty());
    let folder = outside.join("etc");
    let arguments = ["init", "--folder", folder.to_str().unwrap(), "--user", "nobody"];
    let output = program(&project, &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.push(folder.clone());
    assert!(paths.len() >= 7, "{paths:?}");
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    let nobody = passwd.lines().find(|line| line.starts_with("nobody:")).unwrap();
    let uid: u32 = nobody.split(':').nth(2).unwrap().parse().unwrap();
    for path in paths {
        assert_eq!(fs::metadata(&path).unwrap().uid(), uid, "{}", path.display());
    }
    assert!(fs::read_to_string(folder.join("mcp-http.service")).unwrap().contains("\nUser=nobody\n"));
}

#[test]
fn the_unit_of_init_is_that_of_the_packages_and_systemd_takes_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let shipped = fs::read_to_string(root.join("packaging/systemd/mcp-http.service")).unwrap();
    let template =
        fs::read_to_string(root.join("crates/mcp-http/src/commands/init/mcp-http.service")).unwrap();
    assert_eq!(template, shipped, "copy the one over the other");
    let there = Command::new("systemd-analyze").arg("--version").stdout(Stdio::null()).status().is_ok();
    let Some(()) = require(there.then_some(()), "no systemd-analyze") else { return };
    let installed = Installed::new();
    let unit = installed.folder.join("mcp-http.service");
    let written = fs::read_to_string(&unit).unwrap();
    let root = installed.project.path().canonicalize().unwrap().display().to_string();
    assert!(written.contains(&format!("ReadWritePaths={root} ")), "{written}");
    assert!(written.contains(&format!("--config {}\n", installed.config())), "{written}");
    let output = Command::new("systemd-analyze").arg("verify").arg(&unit).output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success() && !said.contains("mcp-http.service"), "{said}");
}

#[test]
fn doctor_says_what_is_wrong_and_what_to_do() {
    let installed = Installed::new();
    let config = fs::read_to_string(installed.config()).unwrap();
    let put = |more: &str| fs::write(installed.config(), config.clone() + more).unwrap();
    // An address that another program has.
    let other = std::net::TcpListener::bind(&installed.address).unwrap();
    let (_, listen) = installed.doctor("listen");
    assert!(has(&listen, "note", "is taken, and no healthy server answers"), "{listen:?}");
    drop(other);
    // Tokens that end, that have ended, and that never do.
    for (name, expires) in [("soon", "3d"), ("brief", "1s"), ("endless", "never")] {
        let arguments = ["token", "new", "--name", name, "--role", "dev", "--expires", expires];
        assert!(installed.run(&arguments).status.success());
    }
    wait_until(SOON, "the end of a token is found", || {
        has(&installed.doctor("tokens").1, "note", "`brief` has ended")
    });
    let (healthy, tokens) = installed.doctor("tokens");
    assert!(healthy && has(&tokens, "note", "`soon` ends within 3 d"), "{tokens:?}");
    assert!(has(&tokens, "note", "`endless` has no end"), "{tokens:?}");
    // Tokens that others may write.
    let tokens = installed.folder.join("tokens.toml");
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o666)).unwrap();
    let (healthy, found) = installed.doctor("tokens");
    assert!(!healthy && found[0]["state"] == "broken" && found[0]["remedy"].is_string(), "{found:?}");
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    // A database that does not answer, and a file that a newer program wrote.
    put("audit_database = \"postgres://me:s3cret@127.0.0.1:1/x\"\n");
    let (healthy, audit) = installed.doctor("audit");
    assert!(!healthy && audit.iter().any(|finding| finding["state"] == "broken"), "{audit:?}");
    assert!(!json!(audit).to_string().contains("s3cret"));
    put("");
    // More connections than files may be open.
    let plain = HttpServer::program(&installed.project);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 2000; exec \"$0\" \"$@\""]).arg(plain.get_program());
    limited.args(["--config", &installed.config(), "doctor"]).current_dir(installed.project.path());
    let said = text(&limited.output().unwrap().stdout);
    assert!(said.contains("2000 files may be open at once, and http.max_connections needs 5120"), "{said}");
    // A configuration that would not be served.
    put("anonymous_role = \"dev\"\nbehind_proxy = [\"10.0.0.1\"]\n");
    let (healthy, exposure) = installed.doctor("exposure");
    assert!(!healthy && has(&exposure, "broken", "lets in everybody"), "{exposure:?}");
}

#[test]
fn doctor_tells_when_a_certificate_ends() {
    let there = Command::new("openssl").arg("version").stdout(Stdio::null()).status().is_ok();
    let Some(()) = require(there.then_some(()), "no openssl") else { return };
    let installed = Installed::new();
    let (certificate, key) = (installed.folder.join("cert.pem"), installed.folder.join("key.pem"));
    let config = fs::read_to_string(installed.config()).unwrap();
    let tls = format!("tls_certificate = {certificate:?}\ntls_key = {key:?}\n");
    fs::write(installed.config(), config + &tls).unwrap();
    // 40000 days from now is beyond 2049, which is written in another form.
    for (days, state, words) in
        [("100", "ok", "ends in "), ("10", "note", "ends within 1"), ("40000", "ok", "ends in ")]
    {
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
            .args(["-subj", "/CN=localhost", "-days", days, "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let (healthy, found) = installed.doctor("tls");
        assert!(healthy && has(&found, state, words), "{days}: {found:?}");
        if state == "ok" {
            let expected: u64 = days.parse().unwrap();
            let told =
                found[0]["detail"].as_str().unwrap().rsplit(' ').nth(1).unwrap().parse::<u64>().unwrap();
            assert!((expected - 1..=expected).contains(&told), "{found:?}");
        }
    }
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let (healthy, found) = installed.doctor("tls");
    assert!(!healthy && has(&found, "broken", "everybody can read the key"), "{found:?}");
}
