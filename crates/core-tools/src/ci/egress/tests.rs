//! Commands of a role with named hosts, run for real.

#![allow(clippy::disallowed_methods, reason = "the tests look at what commands did, with other means")]

use super::EgressLog;
use crate::ci::{
    AllowedHosts, BackgroundCommands, BackgroundStartContext, CommandNetwork, CommandReport, CommandScope,
    CommandText, Commands, ConfinementPolicy, NetworkAccess, PrivateTempDir, ReadCommandOutput, RunCommand,
    StartCommand, ToolchainPaths,
};
use crate::redact::Redactor;
use crate::workspace::Workspace;
use process_runner::{Confinement, ConfinementLevel, NetworkNamespace, Runner};
use skipped_tests::require;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A folder in which commands run.
struct EgressFixture {
    folder: TempDir,
}

impl EgressFixture {
    fn new() -> Option<Self> {
        let namespace = NetworkNamespace::create();
        let missing = namespace.as_ref().err().map(ToString::to_string).unwrap_or_default();
        require(namespace.ok(), &missing)?;
        require(Confinement::available().ok(), "no Landlock")?;
        Some(Self { folder: tempfile::tempdir().unwrap() })
    }

    fn commands(&self, policy: impl FnOnce(&Workspace) -> ConfinementPolicy) -> Commands {
        let workspace = Arc::new(Workspace::new([self.folder.path()]).unwrap());
        let policy = policy(&workspace);
        Commands::new(Runner::new(), workspace, Redactor::new(Default::default()).unwrap()).confined(policy)
    }

    fn confined(&self) -> Commands {
        let temp = PrivateTempDir::new_in(self.folder.path()).unwrap();
        self.commands(|workspace| ConfinementPolicy::new(workspace, &ToolchainPaths::default(), temp))
    }
}

fn scope(hosts: &[String]) -> (CommandScope, EgressLog) {
    let log = EgressLog::default();
    let network = NetworkAccess::Hosts(AllowedHosts::parse(hosts).unwrap());
    (CommandScope { network, egress_log: Some(log.clone()), ..CommandScope::default() }, log)
}

async fn run(commands: &Commands, words: &[&str]) -> CommandReport {
    let mut input = RunCommand::new("");
    input.command = CommandText::Vector(words.iter().map(|word| (*word).to_owned()).collect());
    commands.run(&input, Duration::from_secs(60), &CancellationToken::new(), |_| {}).await.unwrap()
}

/// Starts a web server on an address of the loopback network that answers each request with `body`.
fn web_server(address: &str, body: &'static str) -> SocketAddr {
    let listener = TcpListener::bind(address).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut request = Vec::new();
            let mut buffer = [0; 1024];
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(length) if length > 0 => request.extend_from_slice(&buffer[..length]),
                    _ => break,
                }
            }
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
        }
    });
    address
}

#[tokio::test]
async fn a_command_reaches_the_named_hosts_and_no_other() {
    let Some(fixture) = EgressFixture::new() else { return };
    let allowed = web_server("127.0.0.2:0", "allowed");
    let other = web_server("127.0.0.3:0", "other");
    let (scope, log) = scope(&[allowed.to_string()]);
    let commands = fixture.confined().narrowed(&scope);
    let (allowed, other) = (format!("http://{allowed}/"), format!("http://{other}/"));

    let report = run(&commands, &["curl", "-sS", &allowed]).await;
    assert!(report.is_success() && report.stdout == "allowed", "{report:?}");
    let report = run(&commands, &["curl", "-sS", "--proxytunnel", &allowed]).await;
    assert!(report.is_success() && report.stdout == "allowed", "{report:?}");
    assert!(log.messages().is_empty(), "{:?}", log.messages());

    let report = run(&commands, &["curl", "-sS", &other]).await;
    let refusal = format!("`{}` is not in this role's hosts", &other[7..other.len() - 1]);
    assert!(report.stdout.contains("is not in the allowed hosts"), "{report:?}");
    assert_eq!(log.messages(), [refusal.as_str()]);
    // Past the proxy, by every variable that a program may set itself.
    for words in [
        vec!["curl", "-sS", "--noproxy", "*", &other],
        vec!["curl", "-sS", "--noproxy", "*", &allowed],
        vec![
            "env",
            "-u",
            "http_proxy",
            "-u",
            "HTTP_PROXY",
            "-u",
            "ALL_PROXY",
            "-u",
            "all_proxy",
            "curl",
            "-sS",
            &other,
        ],
    ] {
        let report = run(&commands, &words).await;
        assert!(!report.is_success() && report.stdout.is_empty(), "{words:?}: {report:?}");
    }
    // Other commands of the server are as they were.
    let report = run(&fixture.confined(), &["curl", "-sS", &other]).await;
    assert_eq!(report.stdout, "other", "{report:?}");
}

#[tokio::test]
async fn git_clones_from_a_named_host_only() {
    let Some(fixture) = EgressFixture::new() else { return };
    let root = fixture.folder.path();
    let outside = fixture.confined();
    for words in [
        vec!["env", "GIT_CONFIG_GLOBAL=/dev/null", "git", "init", "-q", "source"],
        vec![
            "env",
            "GIT_CONFIG_GLOBAL=/dev/null",
            "git",
            "-C",
            "source",
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "first",
        ],
        vec!["env", "GIT_CONFIG_GLOBAL=/dev/null", "git", "clone", "-q", "--bare", "source", "source.git"],
        vec!["env", "GIT_CONFIG_GLOBAL=/dev/null", "git", "-C", "source.git", "update-server-info"],
    ] {
        let report = run(&outside, &words).await;
        assert!(report.is_success(), "{words:?}: {report:?}");
    }
    let port = static_files("127.0.0.2:0", root.join("source.git"));
    let (scope, log) = scope(&[format!("127.0.0.2:{port}")]);
    let commands = outside.narrowed(&scope);
    let report = run(
        &commands,
        &[
            "env",
            "GIT_CONFIG_GLOBAL=/dev/null",
            "git",
            "clone",
            "-q",
            &format!("http://127.0.0.2:{port}/"),
            "copy",
        ],
    )
    .await;
    assert!(report.is_success(), "{report:?}");
    let report =
        run(&commands, &["env", "GIT_CONFIG_GLOBAL=/dev/null", "git", "-C", "copy", "log", "--format=%s"])
            .await;
    assert_eq!(report.stdout.trim(), "first");
    let report = run(
        &commands,
        &["env", "GIT_CONFIG_GLOBAL=/dev/null", "git", "clone", "-q", "https://git.invalid/", "other"],
    )
    .await;
    assert!(!report.is_success() && report.stderr.contains("403"), "{report:?}");
    assert_eq!(log.messages(), ["`git.invalid:443` is not in this role's hosts"]);
}

/// Serves the files of a folder over HTTP, as a repository that git reads by the dumb protocol.
fn static_files(address: &str, folder: std::path::PathBuf) -> u16 {
    let listener = TcpListener::bind(address).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut request = Vec::new();
            let mut buffer = [0; 1024];
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(length) if length > 0 => request.extend_from_slice(&buffer[..length]),
                    _ => break,
                }
            }
            let text = String::from_utf8_lossy(&request).into_owned();
            let path = text.split(' ').nth(1).unwrap_or("/").split('?').next().unwrap_or("/");
            let (status, body) = match std::fs::read(folder.join(path.trim_start_matches('/'))) {
                Ok(body) => ("200 OK", body),
                Err(_) => ("404 Not Found", Vec::new()),
            };
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(&body);
        }
    });
    port
}

#[tokio::test]
async fn without_confinement_no_command_of_a_limited_role_starts() {
    let Some(fixture) = EgressFixture::new() else { return };
    let commands = fixture.commands(|_| ConfinementPolicy::off("the test says so"));
    let (scope, _) = scope(&["git.example.com".to_owned()]);
    for network in [scope.network, NetworkAccess::None] {
        let narrowed = commands.narrowed(&CommandScope { network, ..CommandScope::default() });
        let input = RunCommand::new("true");
        let never = CancellationToken::new();
        let error = narrowed.run(&input, Duration::from_secs(60), &never, |_| {}).await.unwrap_err();
        let error = format!("{error}: {}", std::error::Error::source(&error).unwrap());
        assert!(error.contains("confinement, and that is off: the test says so"), "{error}");
        assert!(narrowed.confinement_summary().ends_with("so no command starts"));
    }
    assert!(run(&commands, &["true"]).await.is_success());
}

#[tokio::test]
async fn where_unix_sockets_are_reachable_no_command_with_named_hosts_starts() {
    let Some(fixture) = EgressFixture::new() else { return };
    let (scope, _) = scope(&["git.example.com".to_owned()]);
    for level in [ConfinementLevel::Filesystem, ConfinementLevel::SystemCalls] {
        for best_effort in [false, true] {
            let commands = fixture.commands(|workspace| {
                let temp = PrivateTempDir::new_in(fixture.folder.path()).unwrap();
                let policy = ConfinementPolicy::new(workspace, &ToolchainPaths::default(), temp);
                policy.level(level).best_effort(best_effort)
            });
            let never = CancellationToken::new();
            let narrowed = commands.narrowed(&scope);
            let input = RunCommand::new("true");
            let error = narrowed.run(&input, Duration::from_secs(60), &never, |_| {}).await.unwrap_err();
            let error = format!("{error}: {}", std::error::Error::source(&error).unwrap());
            assert!(
                error.contains(&format!("at the level `{level}` programs reach Unix sockets")),
                "{error}"
            );
            assert!(run(&commands, &["true"]).await.is_success());
        }
    }
    // At the level at which they start, a socket outside the roots is not there.
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let script = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])";
    let words = ["/usr/bin/python3", "-c", script, path.to_str().unwrap()];
    let report = run(&fixture.confined().narrowed(&scope), &words).await;
    assert!(report.stderr.contains("No such file"), "{report:?}");
}

#[tokio::test]
async fn a_call_may_ask_for_no_network_and_gets_none_whatever_its_role() {
    let Some(fixture) = EgressFixture::new() else { return };
    let allowed = web_server("127.0.0.2:0", "allowed");
    let (scope, _) = scope(&[allowed.to_string()]);
    let url = format!("http://{allowed}/");
    for commands in [fixture.confined(), fixture.confined().narrowed(&scope)] {
        assert_eq!(run(&commands, &["curl", "-sS", &url]).await.stdout, "allowed");
        let mut input = RunCommand::new("");
        let words = ["curl", "-sS", "--noproxy", "*", &url].map(str::to_owned);
        input.command = CommandText::Vector(words.to_vec());
        input.network = Some(CommandNetwork::None);
        let never = CancellationToken::new();
        let report = commands.run(&input, Duration::from_secs(60), &never, |_| {}).await.unwrap();
        assert!(!report.is_success() && report.stdout.is_empty(), "{report:?}");
    }
    let open = fixture.commands(|_| ConfinementPolicy::off("the test says so"));
    let mut input = RunCommand::new("true");
    input.network = Some(CommandNetwork::None);
    let never = CancellationToken::new();
    assert!(open.run(&input, Duration::from_secs(60), &never, |_| {}).await.is_err());
}

#[tokio::test]
async fn a_command_with_a_terminal_and_one_in_the_background_have_the_same_way() {
    let Some(fixture) = EgressFixture::new() else { return };
    let (scope, _) = scope(&["git.example.com".to_owned()]);
    let commands = fixture.confined();
    let words = ["readlink", "/proc/self/ns/net"];
    let expected = run(&commands.narrowed(&scope), &words).await.stdout.trim().to_owned();
    let outside = run(&commands, &words).await.stdout.trim().to_owned();
    assert!(expected.starts_with("net:[") && expected != outside, "{expected} {outside}");
    let text = || CommandText::Vector(words.map(str::to_owned).to_vec());
    let mut input = RunCommand::new("");
    (input.command, input.pty) = (text(), Some(true));
    let never = CancellationToken::new();
    let narrowed = commands.narrowed(&scope);
    let report = narrowed.run(&input, Duration::from_secs(60), &never, |_| {}).await.unwrap();
    assert!(report.stdout.contains(&expected), "{report:?}");
    let background = BackgroundCommands::new(commands);
    let mut context = BackgroundStartContext::new("");
    context.scope = scope.clone();
    let mut input = StartCommand::new("");
    input.command = text();
    let id = background.start(&input, context).await.unwrap().id;
    let read = ReadCommandOutput {
        id,
        cursor: None,
        wait_ms: Some(60_000),
        wait_for_exit: Some(true),
        max_bytes: None,
    };
    let output = background.read(&read, "", &CancellationToken::new()).await.unwrap();
    assert!(output.output.contains(&expected), "{}", output.output);
}

/// Starts an SSH server of this user on an address of the loopback network, which no other test binds; returns its port.
fn ssh_server(folder: &std::path::Path, address: &str) -> Option<(std::process::Child, u16)> {
    let sshd = std::path::Path::new("/usr/sbin/sshd");
    // Root's server needs a folder that its package has.
    let is_ready = sshd.exists()
        && (!rustix::process::geteuid().is_root() || std::fs::create_dir_all("/run/sshd").is_ok());
    require(is_ready.then_some(()), "no sshd; apt install openssh-server")?;
    let keygen = |name: &str| {
        let made = std::process::Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(folder.join(name))
            .status();
        assert!(made.unwrap().success());
    };
    keygen("host_key");
    keygen("key");
    std::fs::copy(folder.join("key.pub"), folder.join("authorized")).unwrap();
    let port = TcpListener::bind((address, 0)).unwrap().local_addr().unwrap().port();
    let config = format!(
        "Port {port}\nListenAddress {address}\nHostKey {0}/host_key\nAuthorizedKeysFile {0}/authorized\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nPidFile none\n",
        folder.display()
    );
    std::fs::write(folder.join("sshd_config"), config).unwrap();
    let log = std::fs::File::create(folder.join("log")).unwrap();
    let server = std::process::Command::new(sshd)
        .args(["-D", "-e", "-f"])
        .arg(folder.join("sshd_config"))
        .stdin(std::process::Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    Some((server, port))
}

#[tokio::test]
async fn git_clones_over_ssh_from_a_named_host_only() {
    let Some(fixture) = EgressFixture::new() else { return };
    let root = fixture.folder.path();
    let outside = tempfile::tempdir().unwrap();
    let Some((mut server, port)) = ssh_server(outside.path(), "127.0.0.4") else { return };
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while std::net::TcpStream::connect(("127.0.0.4", port)).is_err() {
        let log = std::fs::read_to_string(outside.path().join("log")).unwrap_or_default();
        assert!(std::time::Instant::now() < deadline, "sshd does not start: {log}");
        tokio::task::yield_now().await;
    }
    std::fs::copy(outside.path().join("key"), root.join("key")).unwrap();
    let host = std::fs::read_to_string(outside.path().join("host_key.pub")).unwrap();
    std::fs::write(root.join("known_hosts"), format!("[127.0.0.4]:{port} {host}")).unwrap();
    let script = "git init -q source && cd source && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first";
    let free = fixture.confined();
    let report = run(&free, &["env", "GIT_CONFIG_GLOBAL=/dev/null", "bash", "-c", script]).await;
    assert!(report.is_success(), "{report:?}");
    let clone = |target: &str| {
        format!(
            "export GIT_CONFIG_GLOBAL=/dev/null\n\
             GIT_SSH_COMMAND=\"$GIT_SSH_COMMAND -F none -i key -o UserKnownHostsFile=$PWD/known_hosts -o BatchMode=yes\"\n\
             export GIT_SSH_COMMAND\ngit clone -q ssh://$(id -un)@{target}{}/source copy && git -C copy log --format=%s",
            root.display()
        )
    };
    let (named, _) = scope(&[format!("127.0.0.4:{port}")]);
    let report = run(&free.narrowed(&named), &["bash", "-c", &clone(&format!("127.0.0.4:{port}"))]).await;
    let log = std::fs::read_to_string(outside.path().join("log")).unwrap();
    assert!(report.is_success() && report.stdout.trim() == "first", "{report:?}\n{log}");
    // Another host, by the same way and without it.
    let (other, refusals) = scope(&["127.0.0.3:22".to_owned()]);
    std::fs::remove_dir_all(root.join("copy")).unwrap();
    let report = run(&free.narrowed(&other), &["bash", "-c", &clone(&format!("127.0.0.4:{port}"))]).await;
    assert!(!report.is_success() && report.stderr.contains("is not in the allowed hosts"), "{report:?}");
    assert_eq!(refusals.messages(), [format!("`127.0.0.4:{port}` is not in this role's hosts")]);
    let without = clone(&format!("127.0.0.4:{port}")).replace("$GIT_SSH_COMMAND -F", "ssh -F");
    let report = run(&free.narrowed(&other), &["bash", "-c", &without]).await;
    assert!(!report.is_success() && report.stderr.contains("Connection refused"), "{report:?}");
    server.kill().unwrap();
    server.wait().unwrap();
}

#[tokio::test]
async fn the_self_test_refuses_a_namespace_with_a_way_out() {
    // The namespace of the test itself, as it were: a proxy that is reached from everywhere.
    let Some(_fixture) = EgressFixture::new() else { return };
    let namespace = NetworkNamespace::create().unwrap();
    let proxy = namespace.run(|| TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
    let address = proxy.local_addr().unwrap();
    // Another listener with the proxy's port inside, which could be a way out.
    let other = namespace.run(|| TcpListener::bind(("127.0.0.2", address.port()))).unwrap().unwrap();
    let error = super::self_test::run(&namespace, address).unwrap_err();
    assert!(error.to_string().contains("the proxy's port on another address"), "{error}");
    drop(other);
    // A proxy that does not answer.
    drop(proxy);
    assert!(super::self_test::run(&namespace, address).is_err());
}

#[tokio::test]
async fn what_both_lists_name_is_reached_and_the_start_is_quick() {
    let Some(fixture) = EgressFixture::new() else { return };
    let one = web_server("127.0.0.2:0", "one");
    let two = web_server("127.0.0.3:0", "two");
    let (first, _) = scope(&[one.to_string(), two.to_string()]);
    let (second, _) = scope(&[two.to_string()]);
    let commands = fixture.confined().narrowed(&first).narrowed(&second);
    let report = run(&commands, &["curl", "-sS", &format!("http://{two}/")]).await;
    assert_eq!(report.stdout, "two", "{report:?}");
    let report = run(&commands, &["curl", "-sS", &format!("http://{one}/")]).await;
    assert!(report.stdout.contains("is not in the allowed hosts"), "{report:?}");
}

#[cfg(feature = "mcp")]
#[tokio::test]
async fn a_refused_connection_is_in_the_answer_and_in_the_audit() {
    use crate::ci::ServerFacts;
    use crate::mcp::{Audit, AuditFailureMode, CallContext, Host, ci};
    use role_policy::{Caller, Policy};
    use serde_json::json;

    let Some(fixture) = EgressFixture::new() else { return };
    let other = web_server("127.0.0.3:0", "other");
    let facts = ServerFacts {
        name: "n".into(),
        version: "v".into(),
        started: std::time::Instant::now(),
        path: None,
        notice: None,
    };
    let toolset = ci::toolset(fixture.confined(), facts, Duration::from_secs(60));
    let text = "version = 1\n[roles.web]\nallow = [\"*\"]\nnetwork = { hosts = [\"git.example.com\"] }\n";
    let tools: Vec<_> = toolset.tools.iter().map(|tool| tool.facts("ci")).collect();
    let policy = Policy::load(text, "roles.toml", &tools).unwrap().policy;
    drop(tools);
    let audit = tempfile::tempdir().unwrap();
    let audit_file = audit.path().join("audit.jsonl");
    let host = Host::builder(policy, Redactor::new(Default::default()).unwrap())
        .toolset(toolset)
        .audit(Some(Audit::open(&audit_file, AuditFailureMode::CountLost).unwrap()))
        .build()
        .unwrap();
    let call = |command: serde_json::Value| {
        let context = CallContext::new(Caller::new("web"), CancellationToken::new());
        let arguments = json!({ "command": command });
        host.call("run_command", arguments.as_object().unwrap().clone(), context)
    };
    let answer = call(json!(["curl", "-sS", format!("http://{other}/")])).await.unwrap();
    let refusal = format!("`{other}` is not in this role's hosts");
    assert_eq!(answer.as_structured().unwrap()["refused_connections"], json!([refusal]));
    assert!(answer.to_text().contains(&format!("refused connections: {refusal}")), "{}", answer.to_text());
    let answer = call(json!(["true"])).await.unwrap();
    assert!(!answer.is_failed() && answer.as_structured().unwrap().get("refused_connections").is_none());
    let context = CallContext::new(Caller::new("web"), CancellationToken::new());
    let diagnostics = host.call("get_diagnostics", serde_json::Map::new(), context).await.unwrap();
    let confinement = diagnostics.as_structured().unwrap()["confinement"].as_str().unwrap().to_owned();
    assert!(confinement.ends_with("; hosts: git.example.com"), "{confinement}");
    drop(host);
    let lines = std::fs::read_to_string(&audit_file).unwrap();
    assert_eq!(lines.matches("refused_connections").count(), 1, "{lines}");
    assert!(lines.contains(&refusal), "{lines}");
}

#[tokio::test]
async fn two_principals_share_neither_a_network_nor_what_was_refused() {
    let Some(fixture) = EgressFixture::new() else { return };
    let commands = fixture.confined();
    let caller = |principal: &str| {
        let (mut scope, log) = scope(&["git.example.com".to_owned()]);
        scope.principal = Some(principal.to_owned());
        (commands.narrowed(&scope), log)
    };
    let network = ["readlink", "/proc/self/ns/net"];
    let ((one, one_log), (same, same_log), (other, other_log)) =
        (caller("one"), caller("one"), caller("other"));
    let networks = [
        run(&one, &network).await.stdout,
        run(&same, &network).await.stdout,
        run(&other, &network).await.stdout,
        run(&commands, &network).await.stdout,
    ];
    assert!(networks.iter().all(|name| name.starts_with("net:[")), "{networks:?}");
    assert_eq!(networks[0], networks[1]);
    assert_ne!(networks[0], networks[2]);
    assert_ne!(networks[0], networks[3]);
    run(&one, &["curl", "-sS", "http://example.org/"]).await;
    assert_eq!(one_log.messages(), ["`example.org:80` is not in this role's hosts"]);
    assert_eq!((same_log.messages(), other_log.messages()), (one_log.messages(), Vec::new()));
}
