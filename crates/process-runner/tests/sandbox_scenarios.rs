//! The scenarios that other sandboxes for coding agents test, as cases for this crate: those of Codex's Linux sandbox
//! and those of sandbox-runtime. `docs/confinement.md` lists where the three differ.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "the tests prepare what the programs meet")]
#![cfg(target_os = "linux")]

mod confined_place;

use std::fs;
use std::time::{Duration, Instant};

use process_runner::{Command, Limits, Output, Termination};

use confined_place::ConfinedPlace;

/// The outcome that a scenario must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// The command succeeds, and prints this.
    Prints(&'static str),
    /// The command fails.
    Fails,
    /// The command exits with this code.
    Exits(u32),
}

use Expected::{Exits, Fails, Prints};

/// A command in `sh`, in a root beside `outside`, without network.
struct Scenario(&'static str, &'static str, Expected);

const CODEX: &[Scenario] = &[
    Scenario("the system can be read", "ls -l /bin/ >/dev/null && echo read", Prints("read\n")),
    Scenario("a file outside cannot be written", "echo x > ../outside/file", Fails),
    Scenario("/dev/null can be written", "echo x > /dev/null", Prints("")),
    Scenario("a root can be written", "echo x > new && cat new", Prints("x\n")),
    Scenario(
        "the usual devices are there",
        "for name in null zero full random urandom tty; do [ -c /dev/$name ] || exit 1; done",
        Exits(0),
    ),
    Scenario("/dev/shm can be written", "echo x > /dev/shm/new && cat /dev/shm/new", Prints("x\n")),
    Scenario(
        "locks that Python's processes share",
        "python3 -c 'import multiprocessing as m; l = m.Lock(); l.acquire(); l.release(); print(1)'",
        Prints("1\n"),
    ),
    // Different here: a command is given a terminal, and opens none.
    Scenario("a new pseudoterminal", "python3 -c 'import os; os.openpty()'", Fails),
    Scenario("no new privileges", "grep ^NoNewPrivs: /proc/self/status", Prints("NoNewPrivs:\t1\n")),
    // Different here: a program that root starts keeps the capabilities to work with its own files and users.
    Scenario(
        "no capabilities beyond those for files and users",
        "python3 -c 'kept = 0x404fb; import re; text = open(\"/proc/self/status\").read(); \
         print([int(v, 16) & ~kept for v in re.findall(\"Cap(?:Inh|Prm|Eff):\\\\s*(\\\\w+)\", text)])'",
        Prints("[0, 0, 0]\n"),
    ),
    Scenario("curl", "curl -sI --max-time 5 http://127.0.0.1:$PORT", Fails),
    Scenario("wget", "wget -qO- --timeout=5 --tries=1 http://127.0.0.1:$PORT", Fails),
    Scenario("ping", "ping -c 1 -W 2 8.8.8.8", Fails),
    Scenario("nc", "nc -z 127.0.0.1 $PORT", Fails),
    Scenario("ssh", "ssh -o BatchMode=yes -o ConnectTimeout=2 -p $PORT 127.0.0.1", Fails),
    Scenario("names of hosts", "timeout 20 getent ahosts example.com", Fails),
    Scenario("bash's own sockets", "bash -c \"echo hi > /dev/tcp/127.0.0.1/$PORT\"", Fails),
    Scenario("an address outside", "curl -sI --max-time 5 http://1.1.1.1", Fails),
    Scenario("a link to a folder outside", "ln -s ../outside link && echo x > link/file", Fails),
    // Different here: what lies above a root does not exist for a program, and so neither does a repository there.
    Scenario(
        "the repository above a root",
        "git -C ../outside init -q; git rev-parse --show-toplevel",
        Fails,
    ),
    // Different here: a program may change what is in a root, also `.git`. Tools may not.
    Scenario(
        "the git folder of a root",
        "mkdir -p .git && echo x > .git/config && cat .git/config",
        Prints("x\n"),
    ),
];

const SANDBOX_RUNTIME: &[Scenario] = &[
    Scenario(
        "the first process is not the server",
        "tr -d '\\0' < /proc/1/cmdline",
        Prints("process-runner-init"),
    ),
    Scenario(
        "no process of outside is listed",
        "ls /proc | grep -E '^[0-9]+$' | sort -n | tail -1 | awk '{ print ($1 < 1000) }'",
        Prints("1\n"),
    ),
    Scenario("a pipeline", "printf 'line1\\nline2\\n' | grep line2", Prints("line2\n")),
    Scenario("bash", "bash -c 'v=hello; echo ${v^^}'", Prints("HELLO\n")),
    Scenario("zsh", "zsh -c 'v=hello; echo ${v:u}'", Prints("HELLO\n")),
    Scenario("standard streams by name", "echo out > /dev/stdout; echo x > /dev/stderr", Prints("out\n")),
    Scenario("a link to a new file outside", "ln -s ../outside/new link && echo x > link", Fails),
    Scenario("a link to a folder above", "ln -s / all && cat all/root/.bashrc all/../outside/file", Fails),
    Scenario("a hard link to a file of the system", "ln /etc/passwd linked", Fails),
    Scenario("a FIFO in a root", "mkfifo fifo && test -p fifo", Exits(0)),
    Scenario("a character device", "mknod device c 1 3", Fails),
    Scenario("a block device", "mknod device b 8 0", Fails),
    Scenario("exit codes: 0", "exit 0", Exits(0)),
    Scenario("exit codes: 1", "exit 1", Exits(1)),
    Scenario("a background process does not delay the end", "sleep 600 & exit 5", Exits(5)),
    Scenario("exit codes: 42", "exit 42", Exits(42)),
    Scenario("exit codes: 127", "exit 127", Exits(127)),
    Scenario("a child that a signal ends", "sh -c 'kill -TERM $$'; exit $?", Exits(143)),
    Scenario(
        "an orphan leaves no zombie",
        "(sh -c 'exit 0' &) ; for i in 1 2 3 4 5 6 7 8 9 10; do ps -e -o stat= | grep -q Z || exit 7; sleep 0.1; done",
        Exits(7),
    ),
    Scenario(
        "io_uring_setup",
        "python3 -c 'import ctypes; c = ctypes.CDLL(None); print(c.syscall(425, 4, ctypes.create_string_buffer(256)))'",
        Prints("-1\n"),
    ),
    Scenario(
        "io_uring_enter with a ring from elsewhere",
        "python3 -c 'import ctypes; c = ctypes.CDLL(None, use_errno=True); c.syscall(426, 99, 0, 0, 0, 0, 0); \
         print(ctypes.get_errno())'",
        Prints("38\n"),
    ),
    Scenario(
        "ptrace of the first process",
        "python3 -c 'import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0))'",
        Prints("-1\n"),
    ),
    Scenario("memory of the first process", "python3 -c 'open(\"/proc/1/mem\", \"r+b\")'", Fails),
    Scenario("environment of the first process", "cat /proc/1/environ", Fails),
    Scenario(
        "umount of /proc",
        "python3 -c 'import ctypes; print(ctypes.CDLL(None).umount2(b\"/proc\", 0))'",
        Prints("-1\n"),
    ),
    Scenario(
        "process_vm_writev to the first process",
        "python3 -c 'import ctypes; print(ctypes.CDLL(None).process_vm_writev(1, None, 0, None, 0, 0))'",
        Prints("-1\n"),
    ),
    Scenario(
        "internet sockets can be made",
        "python3 -c 'from socket import *; socket(AF_INET, SOCK_STREAM); socket(AF_INET, SOCK_DGRAM); \
         socket(AF_INET6, SOCK_STREAM)'",
        Prints(""),
    ),
    Scenario(
        "a datagram to a name server",
        "python3 -c 'import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b\"x\", (\"8.8.8.8\", 53))'",
        Fails,
    ),
    Scenario(
        "a server of its own on loopback",
        "python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); \
         socket.create_connection(s.getsockname()); print(\"own\")'",
        Prints("own\n"),
    ),
    Scenario("a hard link to a file outside", "ln ../outside/file linked", Fails),
    Scenario(
        "the folder above a root is renamed",
        "mv .. ../../elsewhere; rmdir ../outside; cd /; mv tmp tmp2",
        Fails,
    ),
    // Different here: Unix sockets can be made and connected to, but only those of the roots and of granted folders.
    Scenario(
        "a Unix socket outside",
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"../outside/socket\")'",
        Fails,
    ),
];

/// The place of a scenario, with a server and a socket outside.
struct Place {
    place: ConfinedPlace,
    listener: std::net::TcpListener,
    _socket: std::os::unix::net::UnixListener,
}

impl Place {
    fn new() -> Option<Self> {
        let place = ConfinedPlace::at_default_level()?;
        fs::write(place.outside().join("file"), "outside").unwrap();
        let socket = std::os::unix::net::UnixListener::bind(place.outside().join("socket")).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        Some(Self { place, listener, _socket: socket })
    }

    async fn run(&self, script: &str) -> Output {
        Command::new("sh", self.place.root())
            .args(["-c", script])
            .env("PORT", self.listener.local_addr().unwrap().port().to_string())
            .limits(Limits::default().timeout(Duration::from_secs(60)))
            .confined(self.place.confinement())
            .run()
            .await
            .expect("it starts")
    }
}

async fn all_come_to_what_is_expected(scenarios: &[Scenario]) {
    for Scenario(name, script, expected) in scenarios {
        let Some(place) = Place::new() else { return };
        let output = place.run(script).await;
        let holds = match expected {
            Prints(text) => output.success() && output.stdout_text() == *text,
            // 127 would be a missing program, which proves nothing.
            Fails => !output.success() && output.code() != Some(127),
            Exits(code) => output.code() == Some(*code),
        };
        let said = format!("{}{}", output.stdout_text(), output.stderr_text());
        let missing = *expected == Fails && output.code() == Some(127);
        if missing
            && skipped_tests::require(None::<()>, &format!("no program for `{name}`: {said}")).is_none()
        {
            continue;
        }
        assert!(holds, "{name}: {expected:?}, but {}: {said}", output.summary());
        assert_eq!(fs::read_to_string(place.place.outside().join("file")).unwrap(), "outside", "{name}");
    }
}

#[tokio::test]
async fn the_scenarios_of_codex() {
    all_come_to_what_is_expected(CODEX).await;
}

#[tokio::test]
async fn the_scenarios_of_sandbox_runtime() {
    all_come_to_what_is_expected(SANDBOX_RUNTIME).await;
}

#[tokio::test]
async fn a_timeout_ends_a_command_that_sleeps() {
    let Some(place) = ConfinedPlace::at_default_level() else { return };
    let start_time = Instant::now();
    let output = Command::new("sleep", place.root())
        .arg("1000")
        .limits(Limits::default().timeout(Duration::from_millis(100)))
        .confined(place.confinement())
        .run()
        .await
        .unwrap();
    assert!(matches!(output.termination, Termination::TimedOut { .. }), "{}", output.summary());
    assert!(start_time.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn a_root_that_does_not_exist_is_left_out() {
    let Some(place) = ConfinedPlace::at_default_level() else { return };
    let confinement = place.confinement().write(place.path().join("missing"));
    // In the `/tmp` of the namespace it can be made.
    let script = "printf ok; mkdir -p ../missing";
    let command = Command::new("sh", place.root()).args(["-c", script]).confined(confinement);
    let output = command.run().await.unwrap();
    assert_eq!(output.stdout_text(), "ok");
    assert!(!place.path().join("missing").exists(), "{}", output.summary());
}

#[tokio::test]
async fn a_granted_folder_that_a_link_has_replaced_is_not_granted() {
    let Some(place) = ConfinedPlace::at_default_level() else { return };
    fs::write(place.outside().join("file"), "outside").unwrap();
    let granted = place.path().join("granted");
    fs::create_dir(&granted).unwrap();
    let confinement = place.confinement().write(&granted);
    fs::remove_dir(&granted).unwrap();
    std::os::unix::fs::symlink(place.outside(), &granted).unwrap();
    let script = "cat ../granted/file ../outside/file; echo x > ../granted/file; echo x > ../outside/file";
    let command = Command::new("sh", place.root()).args(["-c", script]).confined(confinement);
    let output = command.run().await.unwrap();
    assert_eq!(output.stdout_text(), "", "{}", output.summary());
    assert_eq!(fs::read_to_string(place.outside().join("file")).unwrap(), "outside");
}
