//! Tests of what a program in a network namespace can reach. Each attack is made twice: outside the namespace, where it
//! must succeed, and inside. They need Linux, the right to make namespaces, and `/usr/bin/python3`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and starts itself"
)]
#![cfg(target_os = "linux")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

use process_runner::{
    Command, Confinement, ConfinementLevel, Limits, NetworkNamespace, Output, SpawnErrorKind, Stdin, Stream,
};
use skipped_tests::require;
use tempfile::TempDir;

/// Sockets of this machine, outside of every namespace of the tests, and a namespace.
struct NamespaceFixture {
    namespace: NetworkNamespace,
    root: TempDir,
    tcp: TcpListener,
    tcp6: Option<TcpListener>,
    udp: UdpSocket,
    abstract_name: String,
    _abstract_socket: UnixListener,
}

impl NamespaceFixture {
    fn new() -> Option<Self> {
        let namespace = NetworkNamespace::create();
        let missing = namespace.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let namespace = require(namespace.ok(), &missing)?;
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let abstract_name = format!("namespace-test-{port}-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        Some(Self {
            namespace,
            root: tempfile::tempdir().unwrap(),
            tcp,
            tcp6: TcpListener::bind("[::1]:0").ok(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            abstract_name,
            _abstract_socket: UnixListener::bind_addr(&address).unwrap(),
        })
    }

    fn python(&self, script: &str, arguments: &[&str]) -> Command {
        let python = "/usr/bin/python3";
        // The abstract socket is for the namespace to refuse and not for Landlock, so nothing is scoped outside.
        Command::new(python, self.root.path())
            .args(["-c", &format!("import socket, sys, os, ctypes\n{script}\nprint('reached')")])
            .args(arguments.iter().copied())
            .limits(Limits::default().timeout(Duration::from_secs(60)))
    }

    /// Returns the lowest level of confinement, so that it is the network namespace that refuses.
    fn confinement(&self) -> Confinement {
        let confinement = Confinement::project([self.root.path()], self.root.path()).network(true);
        confinement.level(ConfinementLevel::Filesystem)
    }

    async fn inside(&self, script: &str, arguments: &[&str]) -> Output {
        let command = self.python(script, arguments).confined(self.confinement());
        command.network_namespace(self.namespace.clone()).run().await.unwrap()
    }

    /// Runs an attack outside and inside.
    async fn attack(&self, script: &str, arguments: &[&str], refusal: &str) {
        let outside = self.python(script, arguments).run().await.unwrap();
        assert!(outside.success(), "{script}: {}", outside.stderr_text());
        self.is_refused(script, arguments, refusal).await;
    }

    /// Runs an attack inside only, since outside it would reach for what is not this machine.
    async fn is_refused(&self, script: &str, arguments: &[&str], refusal: &str) {
        let output = self.inside(script, arguments).await;
        let text = output.stderr_text();
        assert!(!output.success() && text.contains(refusal), "{script}: {} {text}", output.stdout_text());
    }
}

#[tokio::test]
async fn nothing_outside_is_reached() {
    let Some(fixture) = NamespaceFixture::new() else { return };
    let port = fixture.tcp.local_addr().unwrap().port().to_string();
    let connect = "socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)";
    fixture.attack(connect, &["127.0.0.1", &port], "Connection refused").await;
    fixture.attack(connect, &["localhost", &port], "Connection refused").await;
    if let Some(tcp6) = &fixture.tcp6 {
        let port = tcp6.local_addr().unwrap().port().to_string();
        fixture.attack(connect, &["::1", &port], "Connection refused").await;
    }
    // Addresses for documentation, of which no packet may leave the namespace.
    fixture.is_refused(connect, &["192.0.2.1", "443"], "Network is unreachable").await;
    fixture.is_refused(connect, &["2001:db8::1", "443"], "Network is unreachable").await;
    fixture.is_refused(connect, &["host.invalid", "443"], "Temporary failure in name resolution").await;

    let udp = "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect((sys.argv[1], int(sys.argv[2]))); \
               s.send(b'x'); s.settimeout(5); s.send(b'y'); s.recv(1)";
    let udp_port = fixture.udp.local_addr().unwrap().port().to_string();
    fixture.is_refused(udp, &["127.0.0.1", &udp_port], "Connection refused").await;
    fixture.is_refused(udp, &["192.0.2.1", "53"], "Network is unreachable").await;
    fixture.udp.set_nonblocking(true).unwrap();
    assert!(fixture.udp.recv(&mut [0; 8]).is_err(), "a datagram came out");

    let abstract_socket = "socket.socket(socket.AF_UNIX).connect('\\0' + sys.argv[1])";
    fixture.attack(abstract_socket, &[&fixture.abstract_name], "").await;
}

#[tokio::test]
async fn a_program_cannot_leave_or_change_the_namespace() {
    let Some(fixture) = NamespaceFixture::new() else { return };
    let setns = "libc = ctypes.CDLL(None, use_errno=True)\n\
                 f = os.open(sys.argv[1], os.O_RDONLY)\n\
                 if libc.setns(f, 0): raise OSError(ctypes.get_errno(), 'setns')";
    let own = format!("/proc/{}/ns/net", std::process::id());
    fixture.is_refused(setns, &[&own], "Permission").await;
    fixture.is_refused(setns, &["/proc/1/ns/net"], "Permission").await;
    // Its own: which is no way out, and shows that the capability itself is gone.
    fixture.is_refused(setns, &["/proc/self/ns/net"], "[Errno 1]").await;
    let raw = "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)";
    fixture.is_refused(raw, &[], "not permitted").await;
    let packet = "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)";
    fixture.is_refused(packet, &[], "not permitted").await;
    // A user namespace brings capabilities, but not over the network namespace that was there before.
    let user = "libc = ctypes.CDLL(None, use_errno=True)\n\
                libc.unshare(0x10000000)\n\
                f = os.open(sys.argv[1], os.O_RDONLY)\n\
                if libc.setns(f, 0): raise OSError(ctypes.get_errno(), 'setns')";
    fixture.is_refused(user, &[&own], "Permission").await;
}

#[tokio::test]
async fn what_listens_inside_is_reached_and_served_from_outside() {
    let Some(fixture) = NamespaceFixture::new() else { return };
    let listener = fixture.namespace.run(|| TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut question = [0; 4];
        stream.read_exact(&mut question).unwrap();
        stream.write_all(b"pong").unwrap();
        question
    });
    let script =
        "s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5); s.send(b'ping'); print(s.recv(4))";
    let output = fixture.inside(script, &[&address.ip().to_string(), &address.port().to_string()]).await;
    assert!(output.success() && output.stdout_text().contains("pong"), "{}", output.stderr_text());
    assert_eq!(&server.join().unwrap(), b"ping");
    // The same port on another address of the namespace.
    let connect = "socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)";
    fixture.is_refused(connect, &["127.0.0.2", &address.port().to_string()], "Connection refused").await;
    // Another namespace has the port free.
    let other = NetworkNamespace::create().unwrap();
    assert!(other.run(|| TcpListener::bind(address)).unwrap().is_ok());
}

#[tokio::test]
async fn programs_of_one_namespace_reach_each_other() {
    let Some(fixture) = NamespaceFixture::new() else { return };
    let script = "l = socket.create_server(('127.0.0.1', 0)); print(l.getsockname()[1], flush=True); sys.stdin.read(1)";
    let command = fixture.python(script, &[]).confined(fixture.confinement()).stdin(Stdin::Piped);
    let server = command.network_namespace(fixture.namespace.clone());
    let server = process_runner::Runner::new().start(server).await.unwrap();
    let port = loop {
        let text = String::from_utf8_lossy(&server.snapshot(Stream::Stdout, 0, 100).bytes).into_owned();
        if let Some((port, _)) = text.split_once('\n') {
            break port.to_owned();
        }
        tokio::task::yield_now().await;
    };
    let connect = "socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)";
    let output = fixture.inside(connect, &["127.0.0.1", &port]).await;
    assert!(output.success(), "{}", output.stderr_text());
}

#[tokio::test]
async fn a_namespace_is_unused_once_nothing_can_start_or_run_in_it() {
    let Some(fixture) = NamespaceFixture::new() else { return };
    let namespace = NetworkNamespace::create().unwrap();
    assert!(namespace.is_unused());
    let other = namespace.clone();
    assert!(!namespace.is_unused());
    drop(other);
    // A command that waits, one that runs, and what it leaves running in the background.
    for level in [ConfinementLevel::Filesystem, ConfinementLevel::Namespaces] {
        let script =
            "print('ready', flush=True); sys.stdin.read(1); os.fork() or (os.setsid(), time.sleep(600))";
        let command = fixture.python(&format!("import time; {script}"), &[]).stdin(Stdin::Piped);
        let command =
            command.confined(fixture.confinement().level(level)).network_namespace(namespace.clone());
        assert!(!namespace.is_unused(), "{level}");
        let mut run = process_runner::Runner::new().start(command).await.unwrap();
        while run.snapshot(Stream::Stdout, 0, 100).bytes.is_empty() {
            tokio::task::yield_now().await;
        }
        assert!(!namespace.is_unused(), "{level}");
        run.terminate();
        run.wait().await.unwrap();
        drop(run);
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while !namespace.is_unused() {
            assert!(std::time::Instant::now() < deadline, "{level}: still in use");
            tokio::task::yield_now().await;
        }
    }
    // It still works.
    assert!(namespace.run(|| TcpListener::bind("127.0.0.1:0")).unwrap().is_ok());
}

#[tokio::test]
async fn a_namespace_without_a_confinement_is_refused() {
    let Some(fixture) = NamespaceFixture::new() else { return };
    let command = fixture.python("pass", &[]).network_namespace(fixture.namespace.clone());
    let error = command.run().await.unwrap_err();
    assert!(error.to_string().contains("only with a confinement"), "{error}");
    let process_runner::Error::Spawn(error) = error else { panic!("{error}") };
    assert!(matches!(error.kind, SpawnErrorKind::Confinement { .. }), "{error}");
}

#[test]
fn the_same_holds_for_a_user_without_privileges() {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || std::env::var_os("NETWORK_NAMESPACE_TEST_USER").is_some() {
        return;
    }
    let setpriv = std::path::Path::new("/usr/bin/setpriv");
    let Some(setpriv) = require(setpriv.exists().then_some(setpriv), "no setpriv; it is part of util-linux")
    else {
        return;
    };
    // The user may not enter the folder of the build.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = folder.path().join("network_namespace");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let output = std::process::Command::new(setpriv)
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"])
        .arg(&program)
        .env("NETWORK_NAMESPACE_TEST_USER", "1")
        .env("TMPDIR", "/tmp")
        // A test that cannot run must fail here.
        .env("CI", "true")
        .current_dir("/")
        .output()
        .unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("8 passed"), "{text}");
}

/// Runs a program at each level of confinement, on which it depends how the namespace is entered.
#[tokio::test]
async fn every_level_of_confinement_keeps_a_program_in_the_namespace() {
    let Some(fixture) = NamespaceFixture::new() else { return };
    let listener = fixture.namespace.run(|| TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
    let inside = listener.local_addr().unwrap().port().to_string();
    let outside = fixture.tcp.local_addr().unwrap().port().to_string();
    let script = "socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)\n\
                  print(os.readlink('/proc/self/ns/net'), os.getuid())";
    let levels = [ConfinementLevel::Filesystem, ConfinementLevel::SystemCalls, ConfinementLevel::Namespaces];
    for level in levels {
        let run = |port: String| {
            let confinement = fixture.confinement().level(level);
            let command = fixture.python(script, &[port.as_str()]).confined(confinement);
            command.network_namespace(fixture.namespace.clone()).run()
        };
        let output = run(inside.clone()).await.unwrap();
        assert!(output.success(), "{level}: {}", output.stderr_text());
        let user = rustix::process::geteuid().as_raw().to_string();
        assert!(output.stdout_text().contains(&format!("] {user}\n")), "{level}: {}", output.stdout_text());
        let output = run(outside.clone()).await.unwrap();
        assert!(output.stderr_text().contains("Connection refused"), "{level}: {}", output.stderr_text());
    }
}
