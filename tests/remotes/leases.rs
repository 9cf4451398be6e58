//! Leases: a creation is written down first, and nothing of it stays.

use crate::{Machines, output};
use integration_tests::{Era, Wire, server, wait_until};
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// An engine of files: `create` makes one with the name of the lease, `destroy` removes it.
struct Engine {
    machines: Machines,
    made: PathBuf,
}

impl Engine {
    fn new() -> Self {
        let machines = Machines::with([("a.txt", "there\n")]);
        let made = machines.front.join("made");
        std::fs::create_dir(&made).unwrap();
        Self { machines, made }
    }

    /// The server in front. `create` and `connect` can be other lines of a shell.
    fn command(&self, create: &str, extra: &str) -> std::process::Command {
        let text = format!(
            "[remotes.box]\nconnect = ['sh', '-c', 'test -e \"$0\" && echo $$ > {made}.pid && exec {program} remote-server', '{made}/{{lease}}']\n\
             create = ['sh', '-c', '{create}', '{made}/{{lease}}']\ndestroy = ['rm', '-f', '{made}/{{lease}}']\n\
             list = ['ls', '{made}']\n\
             roots = ['{root}']\n{extra}\n",
            program = server().display(),
            made = self.made.display(),
            root = self.machines.there.path().display(),
        );
        self.machines.configured("box", &text)
    }

    fn made(&self) -> usize {
        std::fs::read_dir(&self.made).unwrap().count()
    }

    fn written_down(&self) -> usize {
        let folder = self.machines.front.state().join("coretools/remotes");
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    }

    fn wait_for(&self, made: usize) {
        wait_until(Duration::from_secs(20), &format!("{made} are made"), || self.made() == made);
    }
}

#[test]
fn what_is_created_for_a_client_ends_with_it() {
    let engine = Engine::new();
    let mut client = Wire::connect(engine.command("touch \"$0\"", ""), Era::Modern);
    client.request("tools/list", json!({}));
    assert_eq!((engine.made(), engine.written_down()), (0, 0));
    for _ in 0..2 {
        assert!(client.text("read_file", json!({"path": "a.txt"})).contains("there"));
        assert_eq!((engine.made(), engine.written_down()), (1, 1));
    }
    client.close_input();
    client.wait(Duration::from_secs(10));
    assert_eq!((engine.made(), engine.written_down()), (0, 0));
}

#[test]
fn what_a_killed_server_has_created_is_found_and_destroyed() {
    let engine = Engine::new();
    for is_found_by_next in [true, false] {
        let mut client = Wire::connect(engine.command("touch \"$0\"", ""), Era::Modern);
        client.text("read_file", json!({"path": "a.txt"}));
        client.signal(rustix::process::Signal::KILL);
        client.wait(Duration::from_secs(5));
        assert_eq!((engine.made(), engine.written_down()), (1, 1));
        if is_found_by_next {
            // The next server finds it, makes its own, and ends that.
            let (code, text, error) = output(engine.command("touch \"$0\"", "").args([
                "call",
                "read_file",
                "{\"path\":\"a.txt\"}",
            ]));
            assert!(code == 0 && text.contains("there"), "{error}");
        } else {
            let mut reap = engine.machines.front.server();
            reap.arg("--config").arg(engine.machines.front.join("remotes.toml")).arg("remotes");
            let (_, text, _) = output(&mut reap);
            assert!(text.contains("its server was killed"), "{text}");
            let (code, text, error) = output(reap.arg("reap"));
            assert!(code == 0 && text.contains("destroyed coretools-"), "{text}{error}");
        }
        assert_eq!((engine.made(), engine.written_down()), (0, 0));
    }
}

#[test]
fn a_server_that_is_killed_while_it_creates_leaves_nothing_that_is_not_written_down() {
    let engine = Engine::new();
    let mut client = Wire::connect(engine.command("touch \"$0\"; sleep 20", ""), Era::Modern);
    client.ask("tools/call", json!({"name": "read_file", "arguments": {"path": "a.txt"}}));
    engine.wait_for(1);
    client.signal(rustix::process::Signal::KILL);
    client.wait(Duration::from_secs(5));
    assert_eq!((engine.made(), engine.written_down()), (1, 1));
    let mut reap = engine.machines.front.server();
    let (code, _, error) = output(
        reap.arg("--config").arg(engine.machines.front.join("remotes.toml")).args(["remotes", "reap"]),
    );
    assert_eq!((code, engine.made(), engine.written_down()), (0, 0, 0), "{error}");
}

#[test]
fn what_cannot_be_created_is_told_and_destroyed_and_what_has_gone_is_made_again() {
    let engine = Engine::new();
    let mut client =
        Wire::connect(engine.command("touch \"$0\"; echo no quota >&2; exit 3", ""), Era::Modern);
    let error = client.failure("read_file", json!({"path": "a.txt"}));
    assert!(error.contains("exited with code 3") && error.contains("no quota"), "{error}");
    assert_eq!((engine.made(), engine.written_down()), (0, 0));
    let mut client = Wire::connect(engine.command("touch \"$0\"", "idle_s = 1"), Era::Modern);
    client.text("read_file", json!({"path": "a.txt"}));
    assert_eq!((engine.made(), engine.written_down()), (1, 1));
    // What nobody uses is destroyed after its idle time, and made again for the next call.
    engine.wait_for(0);
    wait_until(Duration::from_secs(20), "it is no longer written down", || engine.written_down() == 0);
    assert!(client.text("read_file", json!({"path": "a.txt"})).contains("there"));
    assert_eq!((engine.made(), engine.written_down()), (1, 1));
}

#[test]
fn what_was_created_ends_after_its_idle_time_also_if_its_connection_was_lost() {
    let engine = Engine::new();
    let mut client = Wire::connect(engine.command("touch \"$0\"", "idle_s = 1"), Era::Modern);
    client.text("read_file", json!({"path": "a.txt"}));
    let pid = std::fs::read_to_string(engine.made.with_extension("pid")).unwrap();
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    // Before it is idle for as long as it may be.
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    engine.wait_for(0);
    let started = Instant::now();
    while engine.written_down() > 0 {
        assert!(started.elapsed() < Duration::from_secs(20), "it stays written down");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(client.text("read_file", json!({"path": "a.txt"})).contains("there"));
}

#[test]
fn a_life_that_is_over_ends_with_what_was_created() {
    let engine = Engine::new();
    let mut client = Wire::connect(engine.command("touch \"$0\"", "life_s = 1"), Era::Modern);
    let names = |engine: &Engine| -> Vec<_> {
        std::fs::read_dir(&engine.made).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    client.text("read_file", json!({"path": "a.txt"}));
    let first = names(&engine);
    let started = Instant::now();
    loop {
        assert!(client.text("read_file", json!({"path": "a.txt"})).contains("there"));
        // What was made in place of the first can be over as well before it is looked at.
        let now = names(&engine);
        if !now.is_empty() && now != first {
            assert_eq!(now.len(), 1);
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "it lives on");
        std::thread::sleep(Duration::from_millis(100));
    }
    client.close_input();
    client.wait(Duration::from_secs(10));
    assert_eq!((engine.made(), engine.written_down()), (0, 0));
}

/// Waits until so many leases are written down and so many things are made.
fn wait_for_both(engine: &Engine, count: usize) {
    wait_until(Duration::from_secs(20), &format!("{count} are made"), || {
        (engine.made(), engine.written_down()) == (count, count)
    });
}

#[test]
fn warm_remotes_are_made_ahead_and_replaced_and_end_with_the_server() {
    let engine = Engine::new();
    let mut client = Wire::connect(engine.command("sleep 0.2; touch \"$0\"", "warm = 2"), Era::Modern);
    // Before any call.
    wait_for_both(&engine, 2);
    assert!(client.text("read_file", json!({"path": "a.txt"})).contains("there"));
    // One was given away, and another takes its place.
    wait_for_both(&engine, 3);
    client.close_input();
    client.wait(Duration::from_secs(20));
    assert_eq!((engine.made(), engine.written_down()), (0, 0));
}

#[test]
fn warm_remotes_of_a_killed_server_are_found_and_destroyed() {
    let engine = Engine::new();
    let mut client = Wire::connect(engine.command("touch \"$0\"", "warm = 3"), Era::Modern);
    wait_for_both(&engine, 3);
    client.signal(rustix::process::Signal::KILL);
    client.wait(Duration::from_secs(5));
    assert_eq!((engine.made(), engine.written_down()), (3, 3));
    let mut reap = engine.machines.front.server();
    let (code, text, error) = output(
        reap.arg("--config").arg(engine.machines.front.join("remotes.toml")).args(["remotes", "reap"]),
    );
    assert!(code == 0 && text.matches("coretools-").count() == 3, "{text}{error}");
    assert_eq!((engine.made(), engine.written_down()), (0, 0));
}

#[test]
fn a_warm_remote_that_dies_or_grows_old_is_destroyed_and_another_takes_its_place() {
    let engine = Engine::new();
    let mut client = Wire::connect(engine.command("touch \"$0\"", "warm = 1\nlife_s = 4"), Era::Modern);
    let names = || -> Vec<_> {
        std::fs::read_dir(&engine.made).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    wait_for_both(&engine, 1);
    let first = names();
    wait_until(Duration::from_secs(20), "an old one is replaced", || {
        let now = names();
        !now.is_empty() && now != first
    });
    assert!(client.text("read_file", json!({"path": "a.txt"})).contains("there"));
    client.close_input();
    client.wait(Duration::from_secs(20));
    assert_eq!((engine.made(), engine.written_down()), (0, 0));
}

#[test]
fn a_kind_that_needs_its_caller_has_no_warm_remotes() {
    let engine = Engine::new();
    let mut command = engine.command("touch \"$0\"", "warm = 1");
    let path = engine.machines.front.join("remotes.toml");
    let text = std::fs::read_to_string(&path).unwrap().replace("{lease}'", "{lease}{caller}'");
    std::fs::write(&path, text).unwrap();
    let (code, _, error) = output(command.arg("tools"));
    assert!(code == 2 && error.contains("before their callers are known"), "{error}");
}

#[test]
fn the_program_itself_is_copied_once_and_again_when_it_is_gone() {
    use std::os::unix::fs::MetadataExt;
    let machines = Machines::with([("a.txt", "there\n")]);
    let cache = machines.there.join("cache");
    // As the kind `ssh` does it: written beside, checked by its hash, and renamed.
    let copy = r#"mkdir -p "$(dirname "$0")" && cat > "$0.new" && echo "$1  $0.new" | sha256sum -c >/dev/null && chmod 755 "$0.new" && mv "$0.new" "$0""#;
    let text = format!(
        "[remotes.box]\nconnect = ['sh', '-c', 'exec \"$0\" remote-server', '{{binary}}']\n\
         copy = ['sh', '-c', '''{copy}''', '{{binary}}', '{{sha256}}']\ncache = '{}'\ncopy_binary = true\nroots = ['{}']\n",
        cache.display(),
        machines.there.path().display(),
    );
    let call = || {
        let mut command = machines.configured("box", &text);
        let (code, text, error) = output(command.args(["call", "read_file", r#"{"path": "a.txt"}"#]));
        assert!(code == 0 && text.contains("there"), "{text}{error}");
        let files: Vec<PathBuf> =
            std::fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    };
    let copied = call();
    let digest = output(std::process::Command::new("sha256sum").arg(&copied)).1;
    let hash = copied.to_str().unwrap().rsplit('-').next().unwrap().to_owned();
    assert!(digest.starts_with(&hash), "{digest}: {hash}");
    let length = |path: &std::path::Path| std::fs::metadata(path).unwrap().len();
    assert_eq!(length(&copied), length(server()));
    // It is there now, and is not copied again.
    let inode = std::fs::metadata(&copied).unwrap().ino();
    assert_eq!(std::fs::metadata(call()).unwrap().ino(), inode);
    std::fs::remove_file(&copied).unwrap();
    assert_eq!(length(&call()), length(server()));
}
