//! Real programs behind every layer of the default level: builds, tests and version control must not notice it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "the tests prepare projects and look at what the runs did")]
#![cfg(target_os = "linux")]

mod confined_place;

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use process_runner::{
    CancellationToken, Command, Confinement, Error, LeftoverDecision, LeftoverTree, Limits, Output,
    ResourceLimits, RunOwner, Runner, SpawnErrorKind, SystemCallPermission, TerminalSize, Termination,
    owned_by,
};

use confined_place::ConfinedPlace;

struct Project {
    place: ConfinedPlace,
    root: PathBuf,
}

impl Project {
    fn new() -> Option<Self> {
        let place = ConfinedPlace::at_default_level()?;
        let root = place.root();
        Some(Self { place, root })
    }

    fn confinement(&self) -> Confinement {
        self.place.confinement().network(true)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn sh(&self, script: &str) -> Command {
        Command::new("sh", &self.root)
            .args(["-c", script])
            .env("HOME", &self.root)
            .limits(Limits::default().timeout(Duration::from_secs(300)))
    }

    async fn run(&self, script: &str) -> Output {
        self.sh(script).confined(self.confinement()).run().await.expect("it starts")
    }

    async fn works(&self, script: &str) -> String {
        works(&self.run(script).await)
    }
}

#[track_caller]
fn works(output: &Output) -> String {
    assert!(output.success(), "{}: {}{}", output.summary(), output.stdout_text(), output.stderr_text());
    assert!(output.confinement.as_ref().is_some_and(|status| status.missing.is_empty()));
    output.stdout_text().into_owned()
}

macro_rules! project {
    () => {
        match Project::new() {
            Some(project) => project,
            None => return,
        }
    };
}

fn require(program: &str) -> Option<()> {
    let found = std::env::split_paths(&std::env::var_os("PATH")?).any(|folder| folder.join(program).exists());
    skipped_tests::require(found.then_some(()), &format!("no {program}"))
}

#[tokio::test]
async fn tar_keeps_modes_times_and_links() {
    let project = project!();
    let script = "
        set -e
        mkdir a && echo text > a/file && chmod 750 a/file && touch -d '2020-01-02 03:04:05 UTC' a/file && ln -s file a/link
        tar -czf a.tar.gz a && mkdir b && tar -xzf a.tar.gz -C b && diff -r a b/a
        stat -c '%a %Y' b/a/file
    ";
    assert_eq!(project.works(script).await, "750 1577934245\n");
}

#[tokio::test]
async fn git_clones_a_repository_and_make_builds_it_with_a_compiler() {
    let project = project!();
    if require("gcc").is_none() || require("make").is_none() {
        return;
    }
    project.write("Makefile", "main: main.c\n\tgcc -o main main.c -pthread\n");
    project.write(
        "main.c",
        "#include <pthread.h>\n#include <stdio.h>\nstatic void *run(void *p) { puts(\"threads\"); return p; }\n\
         int main(void) { pthread_t t; pthread_create(&t, 0, run, 0); return pthread_join(t, 0); }\n",
    );
    let script = "
        set -e
        git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -q -m first
        git clone -q . ../temp/clone 2>&1 && make -s -C ../temp/clone && ../temp/clone/main
    ";
    assert_eq!(project.works(script).await, "threads\n");
}

#[tokio::test]
async fn npm_installs_a_local_package_and_runs_a_test_on_a_port_of_its_own() {
    let project = project!();
    if require("npm").is_none() {
        return;
    }
    project.write(
        "package/package.json",
        r#"{"name": "local", "version": "1.0.0", "bin": {"own-tool": "run.js"}}"#,
    );
    project.write("package/run.js", "#!/usr/bin/env node\nconsole.log('ran')\n");
    project.write(
        "package.json",
        r#"{"name": "own", "version": "1.0.0", "scripts": {"test": "own-tool && node --test test.mjs"}}"#,
    );
    project.write(
        "test.mjs",
        "import { test } from 'node:test'; import http from 'node:http';\n\
         test('serves', async () => {\n\
           const server = http.createServer((_, answer) => answer.end('served')).listen(0, '127.0.0.1');\n\
           await new Promise(resolve => server.once('listening', resolve));\n\
           const text = await (await fetch(`http://127.0.0.1:${server.address().port}/`)).text();\n\
           server.close(); console.log(text);\n\
         });\n",
    );
    let script = "npm pack --silent ./package && npm install --silent --offline --no-audit ./local-1.0.0.tgz && npm \
                  test --silent";
    let command = project.sh(script).confined(project.confinement().network(false));
    let text = works(&command.run().await.unwrap());
    assert!(text.contains("ran") && text.contains("served") && text.contains("pass 1"), "{text}");
}

#[tokio::test]
async fn a_java_program_is_compiled_and_run_by_maven_s_launcher_and_the_jvm() {
    let project = project!();
    if require("java").is_none() || require("javac").is_none() {
        return;
    }
    project.write(
        "Main.java",
        "public class Main { public static void main(String[] a) throws Exception {\n\
           Thread t = new Thread(() -> System.out.println(\"jvm\")); t.start(); t.join();\n\
           System.out.println(new ProcessBuilder(\"echo\", \"child\").start().waitFor()); } }\n",
    );
    assert_eq!(project.works("javac Main.java && java -cp . Main").await, "jvm\n0\n");
    if require("mvn").is_some() {
        let text = project.works("mvn -o --version").await;
        assert!(text.contains("Apache Maven"), "{text}");
    }
}

#[tokio::test]
async fn a_browser_without_a_sandbox_of_its_own_loads_a_page() {
    let project = project!();
    if require("chromium").is_none() {
        return;
    }
    project.write("page.html", "<p id=p></p><script>p.textContent = 6 * 7 + ' loaded'</script>");
    let browse = "chromium --headless --disable-gpu --user-data-dir=\"$TMPDIR/profile\" --dump-dom \
                  \"file://$PWD/page.html\"";
    let text = project.works(&format!("{browse} --no-sandbox 2>&1")).await;
    assert!(text.contains("42 loaded"), "{text}");
}

#[tokio::test]
async fn tracers_and_namespaces_need_their_permission() {
    let project = project!();
    if require("strace").is_none() {
        return;
    }
    let script = "strace -o trace true && grep -c execve trace";
    assert!(!project.run(script).await.success());
    let confinement = project.confinement().allow(SystemCallPermission::Tracing);
    assert_eq!(works(&project.sh(script).confined(confinement).run().await.unwrap()), "1\n");
    let script = "unshare --user --net true";
    assert!(!project.run(script).await.success());
    let confinement = project.confinement().allow(SystemCallPermission::UserNamespaces);
    works(&project.sh(script).confined(confinement).run().await.unwrap());
}

#[tokio::test]
async fn exits_signals_streams_and_the_environment_are_those_of_an_unconfined_run() {
    let project = project!();
    let output = project.run("cat; echo error >&2; exit 7").await;
    assert_eq!((output.code(), output.stderr_text().as_ref()), (Some(7), "error\n"));
    let output = project.run("kill -TERM $$").await;
    assert!(matches!(output.termination, Termination::Signaled { .. }), "{}", output.summary());
    // Aborts and is told so, although a first process of a namespace would ignore its own signals.
    let output = project.run("python3 -c 'import os; os.abort()'").await;
    assert!(!output.success(), "{}", output.summary());
    let limits = Limits::default().timeout(Duration::from_millis(300));
    let output = project.sh("sleep 1000").confined(project.confinement()).limits(limits).run().await.unwrap();
    assert!(matches!(output.termination, Termination::TimedOut { .. }), "{}", output.summary());
    let script = "echo $TMPDIR; ls /proc/self/fd | wc -l; grep SigIgn /proc/self/status; \
                  grep SigBlk /proc/self/status; ps -o sid= -p $$ | tr -d ' '; echo $$";
    let text = project.works(script).await;
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[1], "4", "0, 1, 2 and the folder that is listed: {text}");
    // 32 and 33 are the C library's own. It cannot give them their default action, so they stay as they were.
    let ignored = lines[2].strip_prefix("SigIgn:\t").and_then(|set| u64::from_str_radix(set, 16).ok());
    assert_eq!(ignored.map(|set| set & !0x1_8000_0000), Some(0), "{text}");
    assert!(lines[3].ends_with("0000000000000000"), "{text}");
    assert_eq!(lines[4], lines[5], "it leads a session: {text}");
}

#[tokio::test]
async fn a_program_in_a_terminal_has_it_as_its_own() {
    let project = project!();
    let size = TerminalSize { columns: 80, rows: 24 };
    let script = "tty && stty size && echo typed > /dev/tty";
    let output = project.sh(script).confined(project.confinement()).terminal(size).run().await.unwrap();
    let text = works(&output).replace('\r', "");
    assert!(text.starts_with("/dev/pts/") && text.ends_with("24 80\ntyped\n"), "{text:?}");
}

#[tokio::test]
async fn a_folder_that_was_opened_outside_leads_nowhere_but_into_the_namespace() {
    let project = project!();
    fs::create_dir(project.root.join("sub")).unwrap();
    let outside = project.place.outside();
    let open = |path: &Path| OwnedFd::from(fs::File::open(path).unwrap());
    let command = |folder: &Path| {
        let script = "pwd; ls -d ../../outside /proc/1/root ../../../../../../../../../etc/passwd";
        Command::new("sh", folder).args(["-c", script]).folder_handle(open(folder))
    };
    let output = command(&project.root.join("sub")).confined(project.confinement()).run().await.unwrap();
    let text = output.stdout_text();
    assert!(text.starts_with(project.root.join("sub").to_str().unwrap()), "{text}");
    assert!(text.contains("etc/passwd") && !text.contains("outside"), "{text}");
    let error = command(&outside).confined(project.confinement()).run().await.unwrap_err();
    let Error::Spawn(error) = error else { panic!("{error}") };
    assert!(matches!(error.kind, SpawnErrorKind::Confinement { .. }), "{error}");
}

#[tokio::test]
async fn the_file_systems_in_memory_have_a_limit_of_their_own() {
    let Some(project) = Project::new() else { return };
    let said = project.works("stat -f -c '%b %S %c' /tmp /dev/shm").await;
    let limits: Vec<Vec<u64>> =
        said.lines().map(|line| line.split(' ').map(|number| number.parse().unwrap()).collect()).collect();
    assert_eq!(limits.len(), 2, "{said}");
    for limit in limits {
        let bytes = limit[0] * limit[1];
        assert!(bytes > 0 && bytes <= 2 << 30, "{said}");
        assert!(limit[2] <= 200_000, "{said}");
    }
    let said = project
        .run("head -c 3000000000 /dev/zero > /dev/shm/full; stat -c %s /dev/shm/full; rm /dev/shm/full")
        .await;
    let bytes: u64 = said.stdout_text().trim().parse().unwrap();
    assert!(
        bytes <= 2 << 30 && said.stderr_text().contains("No space left"),
        "{bytes} {}",
        said.stderr_text()
    );
}

/// A caller, who keeps what its runs leave.
#[derive(Debug)]
struct Owner(&'static str);

impl RunOwner for Owner {
    fn name(&self) -> &str {
        self.0
    }

    fn take_leftovers(&self, _tree: LeftoverTree) -> LeftoverDecision {
        LeftoverDecision::Keep
    }
}

#[tokio::test]
async fn the_memory_of_a_callers_files_is_limited_as_a_whole_and_given_back_when_the_caller_is_gone() {
    let project = project!();
    const MIB: u64 = 1 << 20;
    let limits = ResourceLimits::default().memory_bytes(64 * MIB);
    let run = |owner: &'static str, network: bool, script: &str| {
        let confinement = project.confinement().network(network);
        let command = project.sh(script).confined(confinement).resource_limits(limits);
        owned_by(Arc::new(Owner(owner)), async move { command.run().await.expect("it starts") })
    };
    let fill =
        "head -c 100M /dev/zero > /tmp/full 2> /dev/null; head -c 100M /dev/zero > /dev/shm/full 2> /dev/null
                stat -c %s /tmp/full /dev/shm/full";
    let mut bytes = 0;
    for network in [true, false] {
        let said = run("first of the memory", network, fill).await;
        bytes += said.stdout_text().lines().map(|line| line.parse::<u64>().unwrap()).sum::<u64>();
    }
    assert!((8 * MIB..=64 * MIB).contains(&bytes), "{bytes}");
    let is_there = "test -s /tmp/full && echo there";
    assert_eq!(run("first of the memory", true, is_there).await.stdout_text(), "there\n");
    assert_eq!(run("second of the memory", true, is_there).await.stdout_text(), "");
    process_runner::release_owner("first of the memory");
    assert_eq!(run("first of the memory", true, is_there).await.stdout_text(), "");
    // All of it may be used again.
    let again = run("first of the memory", true, fill).await;
    assert!(again.stdout_text().lines().map(|line| line.parse::<u64>().unwrap()).sum::<u64>() >= 16 * MIB);
}

#[tokio::test]
async fn programs_of_root_read_nothing_of_the_configuration_that_only_root_may_read() {
    let project = project!();
    let shadow = fs::metadata("/etc/shadow").ok().filter(|file| file.len() > 0 && file.mode() & 0o004 == 0);
    if !confined_place::is_root() || skipped_tests::require(shadow, "no /etc/shadow").is_none() {
        return;
    }
    let script = "cat /etc/shadow; ls /etc | grep -cx passwd; id -un; ls -d /.empty* 2> /dev/null; true";
    assert_eq!(project.works(script).await, "1\nroot\n");
    // It stays so, and the file of the system is untouched.
    let script = "echo x 2> /dev/null > /etc/shadow; chmod 644 /etc/shadow 2> /dev/null; umount /etc/shadow 2> /dev/null; cat /etc/shadow";
    assert_eq!(project.works(script).await, "");
    assert!(fs::metadata("/etc/shadow").unwrap().len() > 0);
}

#[tokio::test]
async fn what_one_command_leaves_in_tmp_the_next_one_finds_and_nobody_else_does() {
    let project = project!();
    let name = format!("left-{}", std::process::id());
    project.works(&format!("echo text > /tmp/{name}; echo text > /dev/shm/{name}")).await;
    assert_eq!(project.works(&format!("cat /tmp/{name} /dev/shm/{name}")).await, "text\ntext\n");
    assert!(!Path::new("/tmp").join(&name).exists() && !Path::new("/dev/shm").join(&name).exists());
    let other = project!();
    assert!(!other.run(&format!("cat /tmp/{name}")).await.success());
}

#[tokio::test]
async fn a_root_that_is_made_anew_is_the_new_one() {
    let project = project!();
    project.write("old", "old");
    assert_eq!(project.works("cat old").await, "old");
    fs::remove_dir_all(&project.root).unwrap();
    project.write("new", "new");
    assert_eq!(project.works("ls && cat new").await, "new\nnew");
    let link = project.place.path().join("link");
    std::os::unix::fs::symlink(&project.root, &link).unwrap();
    let confinement = project.confinement().read(link.join("new"));
    let output =
        project.sh(&format!("cat {}/new", link.display())).confined(confinement).run().await.unwrap();
    assert_eq!(works(&output), "new", "the link that the grant was given by is there too");
}

/// Returns the number of processes with this argument, without zombies.
fn with_argument(argument: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.map(|entry| fs::read(entry.path().join("cmdline")).unwrap_or_default());
    lines.filter(|line| line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())).count()
}

#[tokio::test]
async fn programs_see_those_of_the_same_confinement_alone_and_are_ended_with_what_they_started() {
    let project = project!();
    let seconds = format!("{}.{}", 300_000, std::process::id());
    let cancel = CancellationToken::new();
    let tree = project.sh(&format!("sleep {seconds} & setsid sleep {seconds} & sleep {seconds}; wait"));
    let mut running =
        Runner::new().start(tree.confined(project.confinement()).cancel(cancel.clone())).await.unwrap();
    let start_time = Instant::now();
    while with_argument(&seconds) < 3 {
        assert!(start_time.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(project.works("ps -e -o args").await.contains(&seconds));
    let other = project!();
    let seen = other.works("ps -e -o args").await;
    assert!(!seen.contains(&seconds) && seen.lines().count() < 6, "{seen}");
    cancel.cancel();
    running.wait().await.unwrap();
    assert_eq!(with_argument(&seconds), 0);
}

/// Returns the number of children of this process that are the first ones of a namespace.
fn namespaces() -> usize {
    let own = format!("PPid:\t{}\n", std::process::id());
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_init = |path: &PathBuf| {
        fs::read(path.join("cmdline")).is_ok_and(|line| line.starts_with(b"process-runner-init"))
            && fs::read_to_string(path.join("status")).is_ok_and(|status| status.contains(&own))
    };
    processes.filter(is_init).count()
}

#[tokio::test]
async fn the_namespaces_of_many_confinements_make_room_but_not_those_with_programs() {
    let project = project!();
    let seconds = format!("{}.{}", 400_000, std::process::id());
    let sleeping = project.sh(&format!("exec sleep {seconds}")).confined(project.confinement());
    let cancel = CancellationToken::new();
    let mut running = Runner::new().start(sleeping.cancel(cancel.clone())).await.unwrap();
    for number in 0..40 {
        let root = project.root.join(number.to_string());
        fs::create_dir(&root).unwrap();
        let confinement = Confinement::project([&root], project.root.with_file_name("temp"));
        works(&Command::new("true", &root).confined(confinement).run().await.unwrap());
    }
    assert_eq!(with_argument(&seconds), 1);
    assert!((2..=33).contains(&namespaces()), "{}", namespaces());
    cancel.cancel();
    running.wait().await.unwrap();
}

#[tokio::test]
async fn the_end_of_a_namespace_is_noticed_and_another_is_made() {
    let project = project!();
    {
        // Other tests have namespaces of their own in this process.
        let namespace = project.works("readlink /proc/self/ns/pid").await;
        let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        for path in processes {
            let is_init = fs::read(path.join("cmdline"))
                .is_ok_and(|line| line.starts_with(b"process-runner-init"))
                && fs::read_link(path.join("ns/pid")).is_ok_and(|link| link == Path::new(namespace.trim()));
            if is_init {
                let pid = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
                rustix::process::kill_process(
                    rustix::process::Pid::from_raw(pid).unwrap(),
                    rustix::process::Signal::KILL,
                )
                .unwrap();
            }
        }
        // A program that starts in the last moment of the namespace may be killed with it. The start itself never fails.
        loop {
            let output = project.run("true").await;
            if output.success() {
                break;
            }
            let is_killed = matches!(output.termination, Termination::Signaled { signal: 9, .. });
            assert!(is_killed, "{}", output.summary());
        }
    }
}
