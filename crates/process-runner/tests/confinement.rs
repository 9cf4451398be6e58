//! Tests of what a confined program cannot do, and what it still can. Each attack is made twice: unconfined, where it
//! must succeed, and confined. They need Linux and real programs: `sh`, `git`, `cargo`, and `/usr/bin/python3`.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "the tests look at what the runs did, with other means")]
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use process_runner::{
    CancellationToken, Command, Confinement, ConfinementLevel, Error, Limits, Output, Protection, Runner,
    SpawnErrorKind, Termination,
};
use tempfile::TempDir;

const PYTHON: &str = "/usr/bin/python3";

/// A root and a folder for temporary files, which are granted, and a folder outside with a token.
struct ConfinementFixture {
    _folder: TempDir,
    root: PathBuf,
    temp: PathBuf,
    outside: PathBuf,
    token: PathBuf,
}

impl ConfinementFixture {
    /// Returns `None` where nothing can be confined. In CI that fails the test.
    fn new() -> Option<Self> {
        if let Err(why) = Confinement::available() {
            skipped_tests::require(None::<()>, &why.to_string())?;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let [root, temp, outside] = ["root", "temp", "outside"].map(|name| path.join(name));
        for folder in [&root, &temp, &outside] {
            fs::create_dir(folder).unwrap();
        }
        let token = outside.join("token");
        fs::write(&token, "sesame").unwrap();
        Some(Self { _folder: folder, root, temp, outside, token })
    }

    /// Landlock alone, whose errors these tests know. `tests/escapes.rs` makes the attacks on the other levels.
    fn confinement(&self) -> Confinement {
        self.with_all_layers().level(ConfinementLevel::Filesystem)
    }

    /// Every layer of the default level.
    fn with_all_layers(&self) -> Confinement {
        Confinement::project([&self.root], &self.temp).best_effort(true)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        Command::new(program, &self.root)
            .args(arguments.iter().copied())
            .env("TOKEN", &self.token)
            .env("OUTSIDE", &self.outside)
            .limits(Limits::default().timeout(Duration::from_secs(120)))
    }

    async fn sh(&self, script: &str, confinement: Option<Confinement>) -> Output {
        run(self.command("sh", &["-c", script]), confinement).await
    }

    async fn python(&self, script: &str, confinement: Option<Confinement>) -> Output {
        run(self.command(PYTHON, &["-c", script]), confinement).await
    }

    fn token_text(&self) -> String {
        fs::read_to_string(&self.token).unwrap()
    }
}

async fn run(command: Command, confinement: Option<Confinement>) -> Output {
    let command = match confinement {
        Some(confinement) => command.confined(confinement),
        None => command,
    };
    command.run().await.expect("it starts")
}

#[track_caller]
fn works(output: &Output) -> String {
    assert!(output.success(), "{}: {}{}", output.summary(), output.stdout_text(), output.stderr_text());
    output.stdout_text().into_owned()
}

#[track_caller]
fn fails_with(output: &Output, words: &str) {
    let text = format!("{}{}", output.stdout_text(), output.stderr_text());
    assert!(!output.success() && text.contains(words), "{}, not {words:?}: {text}", output.summary());
}

macro_rules! fixture {
    () => {
        match ConfinementFixture::new() {
            Some(fixture) => fixture,
            None => return,
        }
    };
}

#[tokio::test]
async fn a_file_outside_is_not_overwritten_shortened_removed_or_renamed() {
    let fixture = fixture!();
    let attacks = [
        (r#"echo forged > "$TOKEN""#, "forged\n"),
        (r#"echo forged >> "$TOKEN""#, "sesameforged\n"),
        (r#"rm "$TOKEN""#, ""),
        (r#"mv "$TOKEN" "$TOKEN.old""#, ""),
        (r#"mv "$TOKEN" ./stolen"#, ""),
        (r#"echo forged > ./forged; mv ./forged "$TOKEN""#, "forged\n"),
        (r#"echo forged > /proc/self/root"$TOKEN""#, "forged\n"),
    ];
    for (attack, result) in attacks {
        let confined = fixture.sh(attack, Some(fixture.confinement())).await;
        fails_with(&confined, "");
        assert_eq!(fixture.token_text(), "sesame", "{attack}");

        works(&fixture.sh(attack, None).await);
        assert_eq!(fs::read_to_string(&fixture.token).unwrap_or_default(), result, "{attack}");
        fs::write(&fixture.token, "sesame").unwrap();
    }
    let shorten = "import os; os.truncate(os.environ['TOKEN'], 0)";
    fails_with(&fixture.python(shorten, Some(fixture.confinement())).await, "Permission denied");
    assert_eq!(fixture.token_text(), "sesame");
    works(&fixture.python(shorten, None).await);
    assert_eq!(fixture.token_text(), "");
}

#[tokio::test]
async fn nothing_is_made_outside() {
    let fixture = fixture!();
    for attack in [r#"mkdir "$OUTSIDE/x""#, r#"touch "$OUTSIDE/x""#, r#"ln -s /etc "$OUTSIDE/x""#] {
        fails_with(&fixture.sh(attack, Some(fixture.confinement())).await, "Permission denied");
        works(&fixture.sh(&format!(r#"{attack}; rm -rf "$OUTSIDE/x""#), None).await);
    }
}

#[tokio::test]
async fn a_token_outside_is_not_read_by_any_of_its_names() {
    let fixture = fixture!();
    symlink(&fixture.token, fixture.root.join("link")).unwrap();
    symlink(&fixture.outside, fixture.root.join("folder")).unwrap();
    let server = std::process::id();
    let names = [
        r#"cat "$TOKEN""#.to_owned(),
        r#"cat /proc/self/root"$TOKEN""#.to_owned(),
        r#"cat "/proc/$$/root$TOKEN""#.to_owned(),
        format!(r#"cat "/proc/{server}/root$TOKEN""#),
        "cat link".to_owned(),
        "cat folder/token".to_owned(),
        "cat ../outside/token".to_owned(),
        r#"cd "$OUTSIDE" && cat token"#.to_owned(),
        r#"cp "$TOKEN" copy && cat copy"#.to_owned(),
        r#"mkdir -p up && cd up && cat ../../outside/token"#.to_owned(),
    ];
    for name in &names {
        assert_eq!(works(&fixture.sh(name, None).await), "sesame", "{name}");
        fs::remove_file(fixture.root.join("copy")).ok();
        fails_with(&fixture.sh(name, Some(fixture.confinement())).await, "Permission denied");
    }
    works(&fixture.sh(r#"ls "$OUTSIDE""#, None).await);
    fails_with(&fixture.sh(r#"ls "$OUTSIDE""#, Some(fixture.confinement())).await, "Permission denied");
}

#[tokio::test]
async fn a_token_outside_is_not_linked_into_the_root() {
    let fixture = fixture!();
    let link = "import os; os.link(os.environ['TOKEN'], 'linked'); print(open('linked').read())";
    fails_with(&fixture.python(link, Some(fixture.confinement())).await, "Invalid cross-device link");
    assert_eq!(works(&fixture.python(link, None).await), "sesame\n");
}

#[tokio::test]
async fn the_servers_environment_memory_and_descriptors_are_not_read() {
    let fixture = fixture!();
    let server = std::process::id();
    // Descriptor 0, which stays open: other tests of this process close theirs at any moment.
    for what in ["cat /proc/SERVER/environ", "head -c 1 /proc/SERVER/maps", "ls -l /proc/SERVER/fd/0"] {
        let script = what.replace("SERVER", &server.to_string());
        works(&fixture.sh(&script, None).await);
        fails_with(&fixture.sh(&script, Some(fixture.confinement())).await, "Permission denied");
    }
    // Its own is its own.
    let own = works(
        &fixture.sh("cat /proc/self/environ && head -1 /proc/cpuinfo", Some(fixture.confinement())).await,
    );
    assert!(own.contains("TOKEN="), "{own}");
}

#[tokio::test]
async fn tcp_is_refused_if_the_network_is() {
    let fixture = fixture!();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("import socket; socket.create_connection(('127.0.0.1', {port}), 5)");
    let listen = "import socket; socket.create_server(('127.0.0.1', 0))".to_owned();
    for attack in [connect, listen] {
        works(&fixture.python(&attack, None).await);
        works(&fixture.python(&attack, Some(fixture.confinement())).await);
        let output = fixture.python(&attack, Some(fixture.confinement().network(false))).await;
        fails_with(&output, "Permission denied");
    }
}

#[tokio::test]
async fn udp_is_not_stopped() {
    let fixture = fixture!();
    let script = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.sendto(b'x', ('127.0.0.1', 9))";
    works(&fixture.python(script, Some(fixture.confinement().network(false))).await);
}

#[tokio::test]
async fn the_server_and_other_runs_are_not_signalled() {
    let fixture = fixture!();
    let other = Runner::new()
        .start(fixture.command("sleep", &["1000"]).confined(fixture.confinement()))
        .await
        .expect("it starts");
    // CONT does nothing to a process that runs.
    for pid in [std::process::id(), other.pid().unwrap()] {
        let script = format!("kill -CONT {pid}");
        works(&fixture.sh(&script, None).await);
        fails_with(&fixture.sh(&script, Some(fixture.confinement())).await, "Operation not permitted");
    }
    // Its own children are its own.
    works(&fixture.sh("sleep 1000 & kill $!; ! wait $!", Some(fixture.confinement())).await);
}

#[tokio::test]
async fn an_abstract_socket_of_the_server_is_not_reached_and_one_with_a_path_is() {
    let fixture = fixture!();
    let name = format!("process-runner-test-{}", std::process::id());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let path = fixture.outside.join("socket");
    let _with_path = UnixListener::bind(&path).unwrap();
    let connect = |address: &str| {
        format!("import socket; s = socket.socket(socket.AF_UNIX); s.connect('{address}'); print('in')")
    };
    let to_abstract = connect(&format!("\\0{name}"));
    works(&fixture.python(&to_abstract, None).await);
    fails_with(&fixture.python(&to_abstract, Some(fixture.confinement())).await, "Operation not permitted");
    // The known hole: the documentation says so, and a daemon must know its peers.
    let to_path = connect(path.to_str().unwrap());
    assert_eq!(works(&fixture.python(&to_path, Some(fixture.confinement())).await), "in\n");
}

#[tokio::test]
async fn nothing_is_mounted_no_device_is_made_and_no_privilege_is_gained() {
    let fixture = fixture!();
    let mount = r#"mkdir -p m && mount -t tmpfs none m"#;
    fails_with(&fixture.sh(mount, Some(fixture.confinement())).await, "");
    // The device of the system's random numbers, which does no harm.
    fails_with(&fixture.sh("mknod device c 1 9", Some(fixture.confinement())).await, "");
    assert!(!fixture.root.join("device").exists());
    let status = works(&fixture.sh("cat /proc/self/status", Some(fixture.confinement())).await);
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    for set in ["CapInh", "CapPrm", "CapEff"] {
        let bits = status.lines().find_map(|line| line.strip_prefix(set)?.strip_prefix(":\t")).unwrap();
        // 0, 1, 3 to 7, 10 and 18 of capabilities(7); none of them for a usual user.
        assert_eq!(u64::from_str_radix(bits, 16).unwrap() & !0x4_04fb, 0, "{set}: {bits}");
    }
}

#[tokio::test]
async fn work_inside_goes_on_as_before() {
    let fixture = fixture!();
    let script = "
        set -e
        mkdir -p a/b c && echo one > a/b/file && mv a/b/file c/file && ln c/file c/hard && ln -s file c/soft
        cat c/soft && mkfifo c/fifo && rm -r a c
        test \"$TMPDIR\" = \"$1\" && file=$(mktemp) && echo two > \"$file\" && cat \"$file\"
        echo three > /dev/null && head -c 4 /dev/urandom > random && head -c 1 /dev/zero > zero
        printf '#!/bin/sh\\necho four\\n' > script && chmod +x script && ./script
        echo five | cat /dev/stdin > /dev/stdout
    ";
    let command = fixture.command("sh", &["-c", script, "sh"]).arg(&fixture.temp);
    let text = works(&run(command, Some(fixture.with_all_layers().network(false))).await);
    assert_eq!(text, "one\ntwo\nfour\nfive\n");
    let python = "
import multiprocessing, tempfile, subprocess, threading
lock = multiprocessing.Lock()
with tempfile.NamedTemporaryFile() as file: file.write(b'x')
print(subprocess.check_output(['echo', 'six']).decode(), end='')
";
    assert_eq!(works(&fixture.python(python, Some(fixture.with_all_layers())).await), "six\n");
}

#[tokio::test]
async fn git_works_inside() {
    let fixture = fixture!();
    let script = "
        set -e
        git init -q . && echo text > file && git add file
        git -c user.name=a -c user.email=a@b commit -q -m first && git log --oneline && git gc -q
    ";
    let command = fixture.command("sh", &["-c", script]).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let text = works(&run(command, Some(fixture.with_all_layers())).await);
    assert!(text.ends_with("first\n"), "{text}");
}

#[tokio::test]
async fn cargo_checks_and_runs_a_project_inside_without_the_network() {
    let fixture = fixture!();
    fs::create_dir(fixture.root.join("src")).unwrap();
    fs::write(
        fixture.root.join("Cargo.toml"),
        "[package]\nname = \"tiny\"\nedition = \"2021\"\n[workspace]\n",
    )
    .unwrap();
    fs::write(fixture.root.join("src/main.rs"), "fn main() { println!(\"built\") }").unwrap();
    let home = PathBuf::from(std::env::var_os("HOME").expect("a home"));
    let folder =
        |name: &str, usual: &str| std::env::var_os(name).map_or_else(|| home.join(usual), PathBuf::from);
    let (cargo, rustup) = (folder("CARGO_HOME", ".cargo"), folder("RUSTUP_HOME", ".rustup"));
    let confinement = fixture
        .with_all_layers()
        .network(false)
        .read(cargo.join("bin"))
        .read(rustup)
        .write(cargo.join("registry"))
        .write(cargo.join("git"));
    for arguments in [["check", "--offline"], ["run", "--offline"]] {
        let command = fixture
            .command("cargo", &arguments)
            .env("CARGO_TARGET_DIR", fixture.root.join("target"))
            .env("CARGO_HOME", &cargo);
        let output = run(command, Some(confinement.clone())).await;
        works(&output);
        assert!(!output.stderr_text().contains("denied"), "{}", output.stderr_text());
    }
}

#[tokio::test]
async fn what_it_starts_is_confined_too_wherever_it_goes() {
    let fixture = fixture!();
    let script = r#"setsid -w env -i PATH="$PATH" sh -c 'sh -c "cat $0"' "$TOKEN""#;
    assert_eq!(works(&fixture.sh(script, None).await), "sesame");
    fails_with(&fixture.sh(script, Some(fixture.confinement())).await, "Permission denied");
}

/// Returns the number of processes with this argument, without zombies.
fn with_argument(argument: &str) -> usize {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
        })
        .count()
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let start_time = Instant::now();
    while !condition() {
        assert!(start_time.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_timeout_a_cancel_and_a_drop_end_the_whole_tree() {
    let fixture = fixture!();
    // One in the group, one in a session of its own, which is found by its marker.
    let tree = |seconds: &str| {
        let script = format!("sleep {seconds} & setsid sleep {seconds} & sleep {seconds}; wait");
        fixture.command("sh", &["-c", &script]).confined(fixture.with_all_layers())
    };
    let unique = |part: u32| format!("{}.{}", 100_000 + part, std::process::id());

    let seconds = unique(1);
    let limits = Limits::default().timeout(Duration::from_millis(500));
    let output = tree(&seconds).limits(limits).run().await.unwrap();
    assert!(matches!(output.termination, Termination::TimedOut { .. }), "{}", output.summary());
    assert_eq!(with_argument(&seconds), 0);

    let seconds = unique(2);
    let cancel = CancellationToken::new();
    let mut running = Runner::new().start(tree(&seconds).cancel(cancel.clone())).await.unwrap();
    until("all three run", || with_argument(&seconds) == 3).await;
    cancel.cancel();
    let output = running.wait().await.unwrap();
    assert!(matches!(output.termination, Termination::Cancelled { .. }), "{}", output.summary());
    assert_eq!(with_argument(&seconds), 0);

    let seconds = unique(3);
    let running = Runner::new().start(tree(&seconds)).await.unwrap();
    until("all three run", || with_argument(&seconds) == 3).await;
    drop(running);
    until("none runs", || with_argument(&seconds) == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_at_once_are_all_confined_and_the_server_is_not() {
    let fixture = fixture!();
    let runner = Runner::builder().max_concurrent(200).build();
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..200 {
        let script = format!(r#"echo {number} > {number}; cat {number}; cat "$TOKEN""#);
        let command = fixture.command("sh", &["-c", &script]).confined(fixture.with_all_layers());
        let runner = runner.clone();
        runs.spawn(async move { (number, runner.run(command).await.expect("it starts")) });
    }
    let has_namespaces = fixture.with_all_layers().status().level >= ConfinementLevel::Namespaces;
    let refusal = if has_namespaces { "No such file or directory" } else { "Permission denied" };
    while let Some(run) = runs.join_next().await {
        let (number, output) = run.unwrap();
        assert_eq!(output.stdout_text(), format!("{number}\n"));
        assert!(output.stderr_text().contains(refusal), "{}", output.stderr_text());
        assert!(output.confinement.unwrap().missing.is_empty());
    }
    assert_eq!(fixture.token_text(), "sesame");
    // The threads that started them had it, and are gone.
    until("no thread is confined", || {
        let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
        let statuses = threads.flat_map(|thread| fs::read_to_string(thread.path().join("status")));
        statuses.into_iter().all(|status| status.contains("NoNewPrivs:\t0"))
    })
    .await;
    let work = (0..64).map(|_| {
        let token = fixture.token.clone();
        tokio::task::spawn_blocking(move || fs::read_to_string(token).unwrap())
    });
    for read in work.collect::<Vec<_>>() {
        assert_eq!(read.await.unwrap(), "sesame");
    }
}

#[tokio::test]
async fn less_of_the_roots_is_granted_to_a_narrower_call() {
    let fixture = fixture!();
    for folder in ["src", "out"] {
        fs::create_dir(fixture.root.join(folder)).unwrap();
        fs::write(fixture.root.join(folder).join("file"), folder).unwrap();
    }
    fs::write(fixture.root.join("secret"), "secret").unwrap();
    let inside = |name: &str| vec![fixture.root.join(name)];
    let (src, out) = (inside("src"), inside("out"));
    let can = async |confinement: Confinement| {
        let mut able = Vec::new();
        for script in
            ["cat src/file", "echo > src/new", "cat out/file", "echo > out/new", "cat secret", "echo > new"]
        {
            if fixture.sh(script, Some(confinement.clone())).await.success() {
                able.push(script);
            }
        }
        able
    };
    assert_eq!(can(fixture.confinement().narrowed(None, None)).await.len(), 6);
    assert_eq!(
        can(fixture.confinement().narrowed(Some(&src), Some(&out))).await,
        ["cat src/file", "cat out/file", "echo > out/new"]
    );
    assert_eq!(
        can(fixture.confinement().narrowed(None, Some(&out))).await,
        ["cat src/file", "cat out/file", "echo > out/new", "cat secret"]
    );
    assert_eq!(
        can(fixture.confinement().narrowed(None, Some(&[]))).await,
        ["cat src/file", "cat out/file", "cat secret"]
    );
    assert_eq!(
        can(fixture.confinement().narrowed(Some(&src), None)).await,
        ["cat src/file", "echo > src/new"]
    );
    assert!(can(fixture.confinement().narrowed(Some(&[]), None)).await.is_empty());
    // Narrowing twice never gives back.
    let twice = fixture.confinement().narrowed(Some(&src), Some(&[])).narrowed(None, Some(&out));
    assert_eq!(can(twice).await, ["cat src/file"]);
}

#[tokio::test]
async fn narrowing_cannot_be_made_to_widen() {
    let fixture = fixture!();
    let read_token = r#"cat "$TOKEN""#;
    let outside = [fixture.outside.clone()];
    let confinement = fixture.confinement().narrowed(Some(&outside), Some(&outside));
    fails_with(&fixture.sh(read_token, Some(confinement)).await, "Permission denied");
    // A program that may write the root puts a link where the next call will be told to look.
    works(&fixture.sh(r#"ln -s "$OUTSIDE" sub"#, Some(fixture.confinement())).await);
    let sub = [fixture.root.join("sub")];
    let confinement = fixture.confinement().narrowed(Some(&sub), Some(&sub));
    fails_with(&fixture.sh(read_token, Some(confinement)).await, "Permission denied");
    // And does so between the grant and the start.
    fs::remove_file(fixture.root.join("sub")).unwrap();
    fs::create_dir(fixture.root.join("sub")).unwrap();
    let confinement = fixture.confinement().narrowed(Some(&sub), Some(&sub));
    works(&fixture.sh(r#"rmdir sub && ln -s "$OUTSIDE" sub"#, Some(fixture.confinement())).await);
    fails_with(&fixture.sh(read_token, Some(confinement)).await, "Permission denied");
}

#[tokio::test]
async fn what_lies_in_a_granted_folder_can_be_taken_back() {
    let fixture = fixture!();
    let deep = fixture.outside.join("a/b");
    fs::create_dir_all(&deep).unwrap();
    for file in [deep.join("secret"), deep.join("open"), fixture.outside.join("open")] {
        fs::write(file, "said").unwrap();
    }
    let confinement = fixture.confinement().read(&fixture.outside);
    let less = confinement.clone().without([
        deep.join("secret"),
        fixture.outside.join("not-there"),
        fixture.root.clone(),
    ]);
    let can = async |confinement: &Confinement, script: &str| {
        fixture.sh(script, Some(confinement.clone())).await.success()
    };
    let readable = ["a/b/secret", "a/b/open", "open"].map(|file| format!("cat \"$OUTSIDE/{file}\""));
    for (script, still) in readable.iter().zip([false, true, true]) {
        assert!(can(&confinement, script).await, "{script}");
        assert_eq!(can(&less, script).await, still, "{script}");
    }
    // By another way there, and what is put in its fixture.
    assert!(!can(&less, "ln -s \"$OUTSIDE/a/b/secret\" way && cat way").await);
    fs::rename(deep.join("secret"), deep.join("renamed")).unwrap();
    fs::write(deep.join("secret"), "other").unwrap();
    assert!(!can(&less, "cat \"$OUTSIDE/a/b/secret\"").await);
    assert!(!can(&less, "cat \"$OUTSIDE/a/b/renamed\"").await);
    // The roots are the programs' own.
    assert!(can(&less, "echo > new && cat new").await);
    // Nothing is left of what was granted for itself.
    let none = confinement.read(deep.join("renamed")).without([&fixture.outside, &deep.join("renamed")]);
    assert!(!can(&none, "cat \"$OUTSIDE/open\" || cat \"$OUTSIDE/a/b/renamed\"").await);
}

#[tokio::test]
async fn a_program_that_it_may_not_execute_is_named_as_the_reason() {
    let fixture = fixture!();
    let program = fixture.outside.join("tool");
    let mut file = fs::File::create(&program).unwrap();
    file.write_all(b"#!/bin/sh\necho ran\n").unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o755)).unwrap();
    drop(file);
    let command = || Command::new(&program, &fixture.root);
    assert_eq!(works(&command().run().await.unwrap()), "ran\n");
    for confinement in [fixture.confinement(), Confinement::new(), Confinement::new().read(&fixture.outside)]
    {
        let error = command().confined(confinement).run().await.unwrap_err();
        let Error::Spawn(error) = error else { panic!("{error}") };
        assert!(matches!(error.kind, SpawnErrorKind::Confinement { .. }), "{error}");
    }
    assert_eq!(
        works(&command().confined(fixture.confinement().read(&fixture.outside)).run().await.unwrap()),
        "ran\n"
    );
}

#[tokio::test]
async fn the_output_says_what_is_enforced() {
    let fixture = fixture!();
    let output = fixture.sh("true", Some(fixture.confinement().network(false))).await;
    let status = output.confinement.unwrap();
    assert!(status.enforced.contains(&Protection::Tcp) && status.missing.is_empty(), "{status}");
    let text = status.to_string();
    assert!(
        text.contains(": files, truncation, devices, TCP, signals, abstract sockets (Landlock ABI "),
        "{text}"
    );
    let output = fixture.sh("true", Some(fixture.confinement())).await;
    assert!(!output.confinement.unwrap().enforced.contains(&Protection::Tcp));
    assert_eq!(fixture.sh("true", None).await.confinement, None);
}

#[tokio::test]
async fn what_is_not_there_is_left_out_and_can_come_later() {
    let fixture = fixture!();
    let late = fixture.outside.join("late");
    let confinement = fixture.confinement().write(&late);
    let script = r#"echo text > "$OUTSIDE/late/file""#;
    assert!(!fixture.sh(script, Some(confinement.clone())).await.success());
    fs::create_dir(&late).unwrap();
    works(&fixture.sh(script, Some(confinement)).await);
}

#[tokio::test]
async fn a_later_value_of_tmpdir_wins() {
    let fixture = fixture!();
    let command =
        fixture.command("sh", &["-c", "echo $TMPDIR"]).confined(fixture.confinement()).env("TMPDIR", "mine");
    assert_eq!(works(&run(command, None).await), "mine\n");
    let command =
        fixture.command("sh", &["-c", "echo $TMPDIR"]).env("TMPDIR", "mine").confined(fixture.confinement());
    assert_eq!(Path::new(works(&run(command, None).await).trim_end()), fixture.temp);
}
