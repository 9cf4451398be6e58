//! A matrix of ways out of a confinement: each is a program that is really run, on every level, as this user and, if
//! that is root, as another user too. The table in `docs/confinement.md` is what this test found.
//!
//! `UPDATE_DOCS=1 cargo test -p process-runner --test escapes` rewrites the table.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "the tests prepare what the programs attack")]
#![allow(clippy::print_stdout, reason = "the run as another user tells its results this way")]
#![cfg(target_os = "linux")]

mod confined_place;

use std::fmt::Write as _;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use process_runner::{Command, Confinement, ConfinementLevel, Limits};

use confined_place::{ConfinedPlace, is_root};

const PYTHON: &str = "/usr/bin/python3";

/// The lines with which every attack begins.
const PRELUDE: &str = r#"
import ctypes, os, resource, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
token, outside, server = os.environ['TOKEN'], os.environ['OUTSIDE'], int(os.environ['SERVER'])
def call(function, *arguments):
    result = function(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
"#;

/// A way out, and the lowest level that stops it: for root and for another user.
struct Attack {
    name: &'static str,
    script: &'static str,
    stopped_for_root_by: ConfinementLevel,
    stopped_for_user_by: ConfinementLevel,
}

use ConfinementLevel::{Filesystem, Namespaces, None as Unconfined, Strict, SystemCalls};

const fn attack(name: &'static str, script: &'static str, stopped_by: ConfinementLevel) -> Attack {
    Attack { name, script, stopped_for_root_by: stopped_by, stopped_for_user_by: stopped_by }
}

/// An attack for which only root has the rights.
const fn as_root(name: &'static str, script: &'static str, stopped_by: ConfinementLevel) -> Attack {
    Attack { name, script, stopped_for_root_by: stopped_by, stopped_for_user_by: Unconfined }
}

const ATTACKS: &[Attack] = &[
    attack("read a file outside the roots", "open(token).read()", Filesystem),
    attack("write a file outside the roots", "open(token, 'a').close()", Filesystem),
    attack("shorten a file outside the roots", "os.truncate(token, os.stat(token).st_size)", Filesystem),
    attack("find out whether a name exists (`stat`)", "os.stat(token)", Namespaces),
    attack(
        "watch a folder outside the roots (`inotify`)",
        "call(libc.inotify_add_watch, call(libc.inotify_init), outside.encode(), 2)",
        Namespaces,
    ),
    attack("`chmod` of a file outside the roots", "os.chmod(token, 0o600)", Namespaces),
    attack("`chown` of a file outside the roots", "os.chown(token, os.getuid(), os.getgid())", Namespaces),
    attack("`setxattr` on a file outside the roots", "os.setxattr(token, 'user.test', b'x')", Namespaces),
    attack("change times of a file outside the roots", "os.utime(token)", Namespaces),
    as_root("`chmod` of a folder of the system", "os.chmod('/usr/share', 0o755)", Namespaces),
    attack("`chmod` of a file in a root", "os.chmod('inside', 0o600)", Strict),
    attack("make a file in a root setuid (`chmod`)", "os.chmod('inside', 0o4755)", SystemCalls),
    attack(
        "make a new setuid file in a root (`open`)",
        "os.umask(0); os.close(os.open('setuid', os.O_CREAT | os.O_WRONLY, 0o4755)); os.remove('setuid')",
        SystemCalls,
    ),
    attack("`setxattr` on a file in a root", "os.setxattr('inside', 'user.test', b'x')", Strict),
    attack(
        "connect to a Unix socket outside the roots",
        "socket.socket(socket.AF_UNIX).connect(outside + '/socket')",
        Namespaces,
    ),
    attack(
        "connect to an abstract Unix socket of the server",
        "socket.socket(socket.AF_UNIX).connect('\\0' + os.environ['ABSTRACT'])",
        Filesystem,
    ),
    attack(
        "TCP without network",
        "socket.create_connection(('127.0.0.1', int(os.environ['TCP'])), 5)",
        Filesystem,
    ),
    attack(
        "UDP without network",
        "s = socket.socket(type=socket.SOCK_DGRAM); s.settimeout(10)\n\
         s.connect(('127.0.0.1', int(os.environ['UDP']))); s.send(b'x'); s.recv(1)",
        SystemCalls,
    ),
    as_root("raw sockets", "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)", Filesystem),
    as_root("packet sockets", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)", Filesystem),
    attack("sockets of virtual machines (`AF_VSOCK`)", "socket.socket(socket.AF_VSOCK)", SystemCalls),
    attack("send the server a signal", "os.kill(server, 18)", Filesystem),
    attack(
        "set a limit of the server (`prlimit`)",
        "resource.prlimit(server, resource.RLIMIT_CORE, resource.prlimit(server, resource.RLIMIT_CORE))",
        SystemCalls,
    ),
    Attack {
        name: "set the priority of the server",
        script: "os.setpriority(os.PRIO_PROCESS, server, os.getpriority(os.PRIO_PROCESS, server))",
        // A process with fewer capabilities than the server has no right to it.
        stopped_for_root_by: Filesystem,
        stopped_for_user_by: Namespaces,
    },
    attack("read the command line of the server", "open(f'/proc/{server}/cmdline').read()", Namespaces),
    attack("read the environment of the server", "open(f'/proc/{server}/environ').read()", Filesystem),
    attack("trace the server", "call(libc.ptrace, 0x4206, server, None, None)", Filesystem),
    attack("trace a process of its own", "call(libc.ptrace, 0, 0, None, None)", SystemCalls),
    attack(
        "read the memory of another process (`process_vm_readv`)",
        "call(libc.process_vm_readv, os.getpid(), None, 0, None, 0, 0)",
        SystemCalls,
    ),
    attack("read what others have in `/dev/shm`", "open('/dev/shm/' + os.environ['SHM']).read()", Namespaces),
    attack("read what others have in `/tmp`", "os.stat('/tmp/' + os.environ['SHM'])", Namespaces),
    attack(
        "use shared memory of others (System V)",
        "call(libc.shmget, int(os.environ['SHMKEY']), 0, 0)",
        Namespaces,
    ),
    as_root(
        "mount a file system",
        "os.makedirs(outside + '/m', exist_ok=True)\n\
         call(libc.mount, b'none', (outside + '/m').encode(), b'tmpfs', 0, None)\n\
         call(libc.umount2, (outside + '/m').encode(), 2)",
        Filesystem,
    ),
    attack("make a user namespace (`unshare`)", "call(libc.unshare, 0x10000000)", SystemCalls),
    attack("use keys of the kernel (`keyctl`)", "call(libc.syscall, 250, 0, -4, 1)", SystemCalls),
    attack("`io_uring`", "call(libc.syscall, 425, 4, ctypes.create_string_buffer(120))", SystemCalls),
    attack("`userfaultfd`", "call(libc.syscall, 323, 1)", SystemCalls),
    as_root("set the name of the machine", "socket.sethostname(socket.gethostname())", Filesystem),
];

/// A key of the shared memory of this process's attacks.
fn shared_memory_key() -> u32 {
    0x5e5a_0000 | std::process::id() & 0xffff
}

/// The target of the attacks.
struct Targets {
    place: ConfinedPlace,
    token: PathBuf,
    name: String,
    tcp: TcpListener,
    udp: UdpSocket,
    _sockets: [UnixListener; 2],
}

impl Targets {
    fn new() -> Self {
        let place = ConfinedPlace::new();
        let token = place.outside().join("token");
        fs::write(&token, "sesame").unwrap();
        fs::write(place.root().join("inside"), "").unwrap();
        let name = format!("process-runner-escapes-{}", std::process::id());
        for shared in ["/dev/shm", "/tmp"] {
            fs::write(Path::new(shared).join(&name), "sesame").unwrap();
        }
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let answering = udp.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 8];
            while let Ok((_, peer)) = answering.recv_from(&mut buffer) {
                answering.send_to(b"y", peer).ok();
            }
        });
        let sockets = [
            UnixListener::bind(place.outside().join("socket")).unwrap(),
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
        ];
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        Self { place, token, name, tcp, udp, _sockets: sockets }
    }

    fn confinement(&self, level: ConfinementLevel) -> Confinement {
        self.place.confinement().level(level)
    }

    /// Returns true if the attack fails on this level. It panics if the script did not get as far as the attack.
    async fn is_stopped(&self, attack: &Attack, level: ConfinementLevel) -> bool {
        let script = format!(
            "{PRELUDE}\ntry:\n    exec(os.environ['ATTACK'])\nexcept OSError as error:\n    print('stopped:', \
             error)\nelse:\n    print('got through')"
        );
        let command = Command::new(PYTHON, self.place.root())
            .args(["-c", &script])
            .env("ATTACK", attack.script)
            .env("TOKEN", &self.token)
            .env("OUTSIDE", self.place.outside())
            .env("SERVER", std::process::id().to_string())
            .env("ABSTRACT", &self.name)
            .env("SHM", &self.name)
            .env("SHMKEY", shared_memory_key().to_string())
            .env("TCP", self.tcp.local_addr().unwrap().port().to_string())
            .env("UDP", self.udp.local_addr().unwrap().port().to_string())
            .limits(Limits::default().timeout(Duration::from_secs(60)))
            .confined(self.confinement(level));
        let output = command.run().await.expect("it starts");
        let text = output.stdout_text();
        match text.trim_end() {
            "got through" => false,
            text if text.starts_with("stopped:") => true,
            _ => panic!("{} on {level}: {}{}", attack.name, output.summary(), output.stderr_text()),
        }
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        for shared in ["/dev/shm", "/tmp"] {
            fs::remove_file(Path::new(shared).join(&self.name)).ok();
        }
    }
}

/// Holds a shared memory segment with [`shared_memory_key`], made and removed by Python.
struct SharedMemory(std::process::Child);

impl SharedMemory {
    fn new() -> Self {
        use std::io::{BufRead as _, BufReader};
        let script = format!(
            "import ctypes, sys; libc = ctypes.CDLL(None); id = libc.shmget({}, 4096, 0o1666)\n\
             print(id, flush=True); sys.stdin.read(); libc.shmctl(id, 0, None)",
            shared_memory_key()
        );
        let mut child = std::process::Command::new(PYTHON)
            .args(["-c", &script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.starts_with('-'), "no segment");
        Self(child)
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().ok();
    }
}

/// Makes every attack on every level. Returns a line for each that says which levels stop it.
async fn matrix() -> Vec<String> {
    let targets = Targets::new();
    let _shared_memory = SharedMemory::new();
    let mut lines = Vec::new();
    for attack in ATTACKS {
        let expected = if is_root() { attack.stopped_for_root_by } else { attack.stopped_for_user_by };
        let mut line = format!("| {} |", attack.name);
        for level in ConfinementLevel::ALL {
            let stopped = targets.is_stopped(attack, level).await;
            assert_eq!(stopped, level >= expected, "{} on {level}, root: {}", attack.name, is_root());
            line.push_str(if stopped { " stopped |" } else { " |" });
        }
        lines.push(line);
    }
    lines
}

/// Returns `false` where a level is missing. In CI that fails the test.
fn every_level_is_there() -> bool {
    let missing = match Confinement::available() {
        Ok(status) if status.missing.is_empty() => return true,
        Ok(status) => status.to_string(),
        Err(why) => why.to_string(),
    };
    skipped_tests::require(None::<()>, &missing);
    false
}

#[tokio::test]
async fn each_level_stops_what_the_table_says() {
    if !every_level_is_there() {
        return;
    }
    let lines = matrix().await;
    if !is_root() {
        return;
    }
    let mut table = String::from("| attack, as root | ");
    table.push_str(&ConfinementLevel::ALL.map(|level| format!("`{level}`")).join(" | "));
    table.push_str(" |\n|---|---|---|---|---|---|\n");
    for line in lines {
        writeln!(table, "{line}").unwrap();
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/confinement.md");
    let Ok(text) = fs::read_to_string(&page) else { return }; // the crate alone, without the repository
    let (begin, end) = ("<!-- begin of the matrix -->\n", "<!-- end of the matrix -->");
    let (before, rest) = text.split_once(begin).expect("the page has a place for the table");
    let (found, after) = rest.split_once(end).expect("and its end");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&page, format!("{before}{begin}{table}{end}{after}")).unwrap();
    } else {
        assert_eq!(found, table, "UPDATE_DOCS=1 rewrites the table");
    }
}

#[test]
fn each_level_stops_the_same_for_a_user_without_privileges() {
    if !is_root() || !every_level_is_there() {
        return;
    }
    confined_place::run_as_another_user("each_level_stops_what_the_table_says");
}
