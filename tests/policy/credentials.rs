//! Credentials that programs use and never see: the built servers, real clients, and a host with TLS on this machine.
#![cfg(target_os = "linux")]

use crate::{PolicyFixture, put};
use integration_tests::{Era, Http, HttpServer, Project, Wire};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;
use skipped_tests::require;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// A value that no pattern recognises.
const SECRET: &str = "quince-harbour-4417-lantern";

/// A web server with TLS at 127.0.0.2, which records what it is asked. `/echo` answers with the request; other paths are
/// files of a folder, for those who have the secret.
struct Origin {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
    files: Project,
    authority: PathBuf,
}

impl Origin {
    fn start() -> Self {
        let files = Project::empty();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "the authority of the test");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.2".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let authority = put(&files.join("authority.pem"), issuer.pem(), 0o644);
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (record, folder, config) = (Arc::clone(&heads), files.join("served"), Arc::new(config));
        fs::create_dir(&folder).unwrap();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let (record, folder, config) = (Arc::clone(&record), folder.clone(), Arc::clone(&config));
                std::thread::spawn(move || {
                    let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
                    let mut head = Vec::new();
                    let mut byte = [0];
                    while !head.ends_with(b"\r\n\r\n") {
                        match stream.read(&mut byte) {
                            Ok(1) => head.push(byte[0]),
                            _ => return,
                        }
                    }
                    let head = String::from_utf8_lossy(&head).into_owned();
                    record.lock().unwrap().push(head.clone());
                    let path = head.split(' ').nth(1).unwrap().split('?').next().unwrap();
                    let found = match path {
                        "/echo" => Ok(head.clone().into_bytes()),
                        _ if !head.contains(SECRET) => Err("401 Unauthorized"),
                        path => fs::read(folder.join(&path[1..])).map_err(|_| "404 Not Found"),
                    };
                    let (status, body) =
                        found.map_or_else(|status| (status, Vec::new()), |body| ("200 OK", body));
                    let kind = if path.starts_with("/simple") { "text/html" } else { "text/plain" };
                    let head = format!(
                        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                        body.len()
                    );
                    let _ = stream.write_all(&[head.as_bytes(), &body].concat());
                    stream.conn.send_close_notify();
                    let _ = stream.flush();
                });
            }
        });
        Self { port, heads, files, authority }
    }

    fn url(&self, path: &str) -> String {
        format!("https://127.0.0.2:{}{path}", self.port)
    }

    fn serve(&self, path: &str, content: &str) {
        self.files.write(&format!("served/{path}"), content);
    }

    /// Returns the requests so far, and forgets them.
    fn take_heads(&self) -> Vec<String> {
        std::mem::take(&mut self.heads.lock().unwrap())
    }

    /// Returns a policy whose role `builder` reaches this host with a credential, and whose role `guest` without one.
    fn policy(&self, secret: &str) -> String {
        let (port, authority) = (self.port, self.authority.display());
        format!(
            "version = 1\nmissing_role = \"builder\"\n\
             [roles.guest]\nallow = [\"*\"]\nnetwork = {{ hosts = [\"127.0.0.2:{port}\"] }}\n\
             [roles.builder]\nextends = [\"guest\"]\n\
             [[roles.builder.credentials]]\nhost = \"127.0.0.2:{port}\"\nsecret = {secret}\nca_file = \"{authority}\"\n"
        )
    }
}

/// Returns what is needed to run programs with named hosts, or nothing where that cannot be.
fn possible() -> Option<()> {
    let namespace = process_runner::NetworkNamespace::create();
    let missing = namespace.as_ref().err().map(ToString::to_string).unwrap_or_default();
    require(namespace.ok(), &missing)?;
    require(process_runner::Confinement::available().ok(), "no Landlock")?;
    require(Command::new("curl").arg("--version").output().ok(), "no curl; apt install curl").map(drop)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (own, value) = line.split_once(": ")?;
        own.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// A server with the secret in its environment.
fn connect(fixture: &PolicyFixture) -> Wire {
    let mut command = fixture.server();
    command.env("REGISTRY_TOKEN", SECRET);
    Wire::connect(command, Era::Modern)
}

/// Makes a request and writes all of its own memory into a file.
const DUMP: &str = r#"
import os, sys, urllib.request
request = urllib.request.Request(sys.argv[1], headers={"Authorization": "Bearer " + os.environ["REGISTRY_TOKEN"]})
answer = urllib.request.urlopen(request, timeout=60).read()
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory, open("dump", "wb") as dump:
    for line in maps:
        place, mode = line.split()[:2]
        start, end = (int(part, 16) for part in place.split("-"))
        try:
            memory.seek(start)
            dump.write(memory.read(end - start))
        except (OSError, OverflowError, ValueError):
            pass
    dump.write(answer)
print("dumped")
"#;

#[test]
fn a_program_uses_a_credential_that_neither_its_environment_nor_its_memory_holds() {
    let Some(()) = possible() else { return };
    let origin = Origin::start();
    let fixture = PolicyFixture::by(&origin.policy("{ variable = \"REGISTRY_TOKEN\" }"), [("dump.py", DUMP)]);
    let mut wire = connect(&fixture);
    let echo = origin.url("/echo");

    wire.text("run_command", json!({"command": ["curl", "-sS", "-o", "answer", echo]}));
    let answer = fixture.project.read("answer");
    assert!(answer.contains(&format!("Authorization: Bearer {}\r\n", "*".repeat(SECRET.len()))), "{answer}");
    let heads = origin.take_heads();
    let expected = format!("Bearer {SECRET}");
    assert_eq!(header(&heads[0], "Authorization"), Some(expected.as_str()), "{heads:?}");

    let said = wire.text("run_command", json!({"command": ["/usr/bin/python3", "dump.py", echo]}));
    assert!(said.contains("dumped"), "{said}");
    assert_eq!(header(&origin.take_heads()[0], "Authorization"), Some(expected.as_str()));
    let dump = fs::read(fixture.project.join("dump")).unwrap();
    let has = |text: &str| dump.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("the-proxy-adds-this-credential") && has("Bearer ****"), "{} bytes", dump.len());
    assert!(!has(SECRET) && !has(&SECRET.chars().rev().collect::<String>()));

    // Nor does any process that the program sees, in whatever way it prints it.
    let script = "cat /proc/*/environ > all 2>/dev/null; env | rev > reversed; env | base64 -w0 > encoded";
    wire.text("run_command", json!({"command": script, "shell": true}));
    let all = fs::read(fixture.project.join("all")).unwrap();
    assert!(!all.is_empty() && !all.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()));
    assert!(!fixture.project.read("reversed").contains(&SECRET.chars().rev().collect::<String>()));

    // What the program is told of it.
    let diagnostics = wire.text("get_diagnostics", json!({}));
    let named = format!("credentials for: 127.0.0.2:{} (Authorization)", origin.port);
    assert!(diagnostics.contains(&named) && !diagnostics.contains(SECRET), "{diagnostics}");
    // The key of the authority is in no file: what a program trusts has certificates alone, and cannot be changed.
    let script =
        "grep -c 'PRIVATE KEY' \"$SSL_CERT_FILE\" > count; (echo x >> \"$SSL_CERT_FILE\") 2> refused; true";
    wire.text("run_command", json!({"command": script, "shell": true}));
    assert_eq!(fixture.project.read("count").trim(), "0");
    let refused = fixture.project.read("refused");
    assert!(refused.contains("Permission denied") || refused.contains("Read-only"), "{refused}");
}

#[test]
fn git_npm_pip_and_cargo_use_it_under_confinement() {
    let Some(()) = possible() else { return };
    let origin = Origin::start();
    let fixture = PolicyFixture::by(&origin.policy("{ variable = \"REGISTRY_TOKEN\" }"), []);
    let mut wire = connect(&fixture);
    let rustup = std::env::var("RUSTUP_HOME")
        .unwrap_or_else(|_| format!("{}/.rustup", std::env::var("HOME").unwrap_or_default()));
    let mut run = |words: &[&str]| {
        let home = fixture.project.path().to_str().unwrap();
        let env = json!({
            "HOME": home,
            "CARGO_HOME": format!("{home}/cargo"),
            "RUSTUP_HOME": rustup,
            "GIT_TERMINAL_PROMPT": "0",
        });
        wire.call("run_command", json!({"command": words, "env": env}))["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };

    // A repository as files, which git reads by its simple protocol.
    let source = Project::with([("a.txt", "text")]);
    source.git(&["init", "-q", "-b", "main"]);
    source.git(&["add", "."]);
    source.git(&["commit", "-q", "-m", "first"]);
    let served = origin.files.join("served/repository.git");
    source.git(&["clone", "-q", "--bare", ".", served.to_str().unwrap()]);
    source.git_in(served.to_str().unwrap(), &["update-server-info"]);
    let said = run(&["git", "clone", "-q", &origin.url("/repository.git"), "copy"]);
    assert_eq!(fixture.project.read("copy/a.txt"), "text", "{said}");

    let tarball = origin.url("/tiny.tgz");
    origin.serve("npm/tiny", &format!(
        r#"{{"name":"tiny","dist-tags":{{"latest":"1.2.3"}},"versions":{{"1.2.3":{{"name":"tiny","version":"1.2.3","dist":{{"tarball":"{tarball}"}}}}}}}}"#
    ));
    let registry = format!("--registry={}", origin.url("/npm/"));
    if require(Command::new("npm").arg("--version").output().ok(), "no npm; apt install npm").is_some() {
        let said =
            run(&["npm", "view", "tiny", "version", &registry, "--fetch-retries=0", "--no-update-notifier"]);
        assert!(said.contains("1.2.3"), "{said}");
    }

    // Python's registry is a folder, whose page the server of the test has under its name.
    origin.serve("simple/tiny/index", "");
    let python = "/usr/bin/python3";
    let index = origin.url("/simple");
    let pip = ["-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "--retries=0", "download"];
    let has_pip = Command::new(python)
        .args(["-m", "pip", "--version"])
        .output()
        .ok()
        .filter(|run| run.status.success());
    if require(has_pip, "no pip; apt install python3-pip").is_some() {
        let said = run(&[&[python][..], &pip, &["--no-deps", "--index-url", &index, "tiny==9"]].concat());
        assert!(said.contains("No matching distribution") || said.contains("404"), "{said}");
    }

    origin.serve(
        "index/config.json",
        &format!(r#"{{"dl":"{}","api":"{}"}}"#, origin.url("/dl"), origin.url("")),
    );
    let checksum = "0".repeat(64);
    origin.serve("index/ti/ny/tiny", &format!(
        r#"{{"name":"tiny","vers":"1.2.3","deps":[],"cksum":"{checksum}","features":{{}},"yanked":false}}"#
    ));
    let index = format!("[registries.own]\nindex = \"sparse+{}\"\n", origin.url("/index/"));
    fixture.project.write("package/.cargo/config.toml", &index);
    fixture.project.write("package/src/lib.rs", "");
    fixture.project.write("package/Cargo.toml", "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\ntiny = { version = \"1\", registry = \"own\" }\n");
    let said = run(&[
        "cargo",
        "generate-lockfile",
        "--manifest-path",
        "package/Cargo.toml",
        "--config",
        "package/.cargo/config.toml",
    ]);
    assert!(
        fs::read_to_string(fixture.project.join("package/Cargo.lock"))
            .is_ok_and(|lock| lock.contains("\"tiny\"")),
        "{said}"
    );

    let heads = origin.take_heads();
    for client in ["git/", "npm/", "pip/", "cargo/"] {
        let own: Vec<_> = heads
            .iter()
            .filter(|head| header(head, "User-Agent").is_some_and(|agent| agent.contains(client)))
            .collect();
        assert!(!own.is_empty() && own.iter().all(|head| head.contains(SECRET)), "{client}: {heads:?}");
    }

    // The tools for git go the same way.
    fixture.project.git_in("copy", &["update-ref", "-d", "refs/remotes/origin/main"]);
    let fetched = wire.call("git_fetch", json!({"repository_path": "copy"}));
    assert_ne!(fetched["isError"], true, "{fetched}");
    let heads = origin.take_heads();
    assert!(!heads.is_empty() && heads.iter().all(|head| head.contains(SECRET)), "{heads:?}");
}

#[test]
fn a_secret_in_a_file_is_hidden_from_programs_and_read_for_each_request() {
    let Some(()) = possible() else { return };
    let origin = Origin::start();
    let outside = Project::empty();
    let file = put(&outside.join("token"), format!("{SECRET}\n"), 0o600);
    let secret = |file: &Path| format!("{{ file = \"{}\" }}", file.display());
    let fixture = PolicyFixture::by(&origin.policy(&secret(&file)), []);
    let mut wire = fixture.connect(Era::Modern);
    let curl = json!({"command": ["curl", "-sS", origin.url("/echo")]});
    for value in [SECRET, "another-plum-orchard-17"] {
        put(&file, value, 0o600);
        wire.text("run_command", curl.clone());
        let expected = format!("Bearer {value}");
        assert_eq!(header(&origin.take_heads()[0], "Authorization"), Some(expected.as_str()));
    }
    let said = wire.failure("run_command", json!({"command": ["cat", file]}));
    assert!(!said.contains("plum-orchard"), "{said}");

    // A file that others read is not used any more; nothing of it is sent.
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let said = wire.text("run_command", curl.clone());
    assert!(said.contains("cannot be used: it cannot be read: others may read it"), "{said}");
    assert!(origin.take_heads().is_empty());
    drop(wire);

    // No command starts that could not have its credential.
    let in_root = put(&fixture.project.join("token"), SECRET, 0o600);
    let linked = fixture.outside.join("link");
    std::os::unix::fs::symlink(&in_root, &linked).unwrap();
    let (in_root, linked) = (secret(&in_root), secret(&linked));
    for (secret, part) in [
        (in_root.as_str(), "lies where programs read it"),
        (&linked, "lies where programs read it"),
        (&secret(Path::new("/etc/hostname")), "lies where programs read it"),
        (&secret(&file), "others may read it"),
        (&secret(&outside.join("missing")), "No such file"),
        ("{ variable = \"NOT_SET\" }", "the variable `NOT_SET` is not set"),
    ] {
        fixture.set_policy(&origin.policy(secret));
        let said = fixture.connect(Era::Modern).failure("run_command", curl.clone());
        assert!(said.contains(part), "{secret}: {said}");
    }
    assert!(origin.take_heads().is_empty());
}

#[test]
fn another_callers_programs_do_not_use_it() {
    let Some(()) = possible() else { return };
    let origin = Origin::start();
    let project = Project::empty();
    let outside = Project::empty();
    let policy = put(&outside.join("roles.toml"), origin.policy("{ variable = \"REGISTRY_TOKEN\" }"), 0o600);
    let server = HttpServer::start_in(
        &project,
        &["--policy", policy.to_str().unwrap()],
        &[("REGISTRY_TOKEN", SECRET)],
    );
    let mut ada = server.connect(&server.token("ada", "builder", &[]), Era::Modern);
    let mut eve = server.connect(&server.token("eve", "guest", &[]), Era::Modern);
    let run = |client: &mut Http, script: &str| {
        client.text("run_command", json!({"command": script, "shell": true}));
    };
    let insecure = |file: &str| format!("curl -sSk -o {file} {}", origin.url("/echo"));
    run(&mut ada, &insecure("ada"));
    assert!(project.read("ada").contains("Authorization: Bearer ****"), "{}", project.read("ada"));
    run(&mut eve, &insecure("eve"));
    let answer = project.read("eve");
    assert!(answer.contains("GET /echo") && !answer.contains("Authorization"), "{answer}");
    let heads = origin.take_heads();
    assert!(heads[0].contains(SECRET) && !heads[1].contains(SECRET), "{heads:?}");
    // The proxy of the other caller is in a network of its own, which this one does not reach.
    run(&mut ada, "echo $HTTPS_PROXY > proxy");
    let proxy = project.read("proxy");
    run(
        &mut eve,
        &format!("curl -sSk --max-time 10 -x {} -o stolen {}; true", proxy.trim(), origin.url("/echo")),
    );
    assert!(origin.take_heads().iter().all(|head| !head.contains(SECRET)));
}
