//! `exec` and `shell`: a command in the foreground, in a pipe and on a real terminal.
#![cfg(target_os = "linux")]

use integration_tests::{Project, server, sleeping, unique_seconds};
use process_runner::{
    Command as Run, Limits, ResourceControl, ResourceControls, Runner, Running, Stdin, Stream, TerminalSize,
};
use skipped_tests::require;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn exec(project: &Project, arguments: &[&str]) -> Output {
    project.server().args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn streams_exit_codes_and_signals_are_those_of_the_command() {
    let project = Project::empty();
    let mut child = project.server();
    child.args(["exec", "--", "sh", "-c", "cat; echo err >&2; exit 7"]);
    let mut child =
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"\x00\xffbytes").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"\x00\xffbytes"[..], &b"err\n"[..]));
    assert_eq!(output.status.code(), Some(7));
    let output = exec(&project, &["exec", "--", "sh", "-c", "kill -USR1 $$"]);
    assert_eq!(output.status.signal(), Some(10), "{output:?}");
    let output = exec(&project, &["exec", "--", "/nonexistent/program"]);
    assert!(
        output.status.code() == Some(2) && text(&output.stderr).contains("/nonexistent/program"),
        "{output:?}"
    );
    let output = exec(&project, &["shell", "-c", "echo $((6 * 7)); exit 3"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("42\n", Some(3)));
}

#[test]
fn a_role_is_refused_what_it_may_not_run_and_confined_in_what_it_may() {
    let project = Project::empty();
    for (role, line) in
        [("readonly", "true"), ("worker", "claude -p x"), ("worker", "echo x > /tmp/x"), ("worker", "$X")]
    {
        let output = exec(&project, &["--role", role, "exec", "--", "bash", "-c", line]);
        assert_eq!(output.status.code(), Some(126), "{line}: {output:?}");
        assert!(text(&output.stderr).contains(&format!("refused for the role {role}")), "{output:?}");
    }
    let output =
        exec(&project, &["--role", "worker", "exec", "--", "sh", "-c", "echo $CORETOOLS_ROLE; touch made"]);
    assert_eq!(text(&output.stdout), "worker\n", "{output:?}");
    assert!(project.path().join("made").exists());
}

#[test]
fn a_command_gets_so_much_memory_as_its_role_has() {
    let project = Project::empty();
    let outside = tempfile::tempdir().unwrap();
    let policy = outside.path().join("policy.toml");
    let text = "version = 1\n[roles.small]\nallow = [\"*\"]\nlimits = { max_memory_mib = 100 }\n";
    std::fs::write(&policy, text).unwrap();
    let run = |script: &str| {
        let policy = policy.to_str().unwrap();
        exec(&project, &["--policy", policy, "--role", "small", "exec", "--", "perl", "-e", script])
    };
    let small = run("my $text = 'x' x (20 << 20); print 7");
    assert_eq!(String::from_utf8_lossy(&small.stdout), "7", "{small:?}");
    let large = run("my $text = 'x' x (512 << 20); print 7");
    assert!(!large.status.success() && large.stdout.is_empty(), "{large:?}");
}

#[test]
fn a_command_gets_the_processes_and_the_share_of_the_processors_that_its_role_has() {
    let controls = ResourceControls::available(true);
    let means = Some(controls.processes).filter(|means| *means != ResourceControl::None);
    if require(means, "a limit on processes").is_none() {
        return;
    }
    let project = Project::empty();
    let outside = tempfile::tempdir().unwrap();
    let policy = outside.path().join("policy.toml");
    let text = "version = 1\n[roles.small]\nallow = [\"*\"]\ndeny = [\"run_agent_command\"]\n\
                limits = { max_processes = 40, cpu_weight = 10 }\n";
    std::fs::write(&policy, text).unwrap();
    let run = |command: &[&str]| {
        let policy = policy.to_str().unwrap();
        exec(&project, &[&["--policy", policy, "--role", "small", "exec", "--"], command].concat())
    };
    let forks = "my $n = 0; for (1..600) { my $child = fork; last unless defined $child; \
                 if (!$child) { sleep 600; exit } $n++ } print $n";
    let output = run(&["perl", "-e", forks]);
    let started: usize =
        String::from_utf8_lossy(&output.stdout).parse().unwrap_or_else(|_| panic!("{output:?}"));
    // A PID namespace gives out 300 numbers more until each was used.
    assert!((20..=340).contains(&started), "{started}: {output:?}");
    assert!(output.status.success(), "{output:?}");
    // Input, output, folder and exit code are as without a limit.
    let output = run(&["sh", "-c", "pwd; nice; exit 9"]);
    assert_eq!(output.status.code(), Some(9), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], project.path().canonicalize().unwrap().to_str().unwrap());
    if controls.cpu_weight == ResourceControl::EachProcess {
        assert_eq!(lines[1], "10");
    }
}

#[test]
fn a_command_in_namespaces_gets_signals_and_leaves_nothing() {
    let controls = ResourceControls::available(true);
    let means = Some(controls.processes).filter(|means| *means == ResourceControl::Namespace);
    if require(means, "a PID namespace with a limit on processes").is_none() {
        return;
    }
    let project = Project::empty();
    let outside = tempfile::tempdir().unwrap();
    let policy = outside.path().join("policy.toml");
    let text = "version = 1\n[roles.small]\nallow = [\"*\"]\ndeny = [\"run_agent_command\"]\nlimits = { max_processes = 100 }\n";
    std::fs::write(&policy, text).unwrap();
    let mark = unique_seconds();
    let line =
        format!("trap 'echo told; exit 5' TERM; setsid sleep {mark} & echo up; while :; do sleep 0.05; done");
    let mut command = project.server();
    command.args(["--policy", policy.to_str().unwrap(), "--role", "small", "exec", "--", "sh", "-c", &line]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 3];
    let mut stdout = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut stdout, &mut first).unwrap();
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut stdout, &mut rest).unwrap();
    assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("told\n", Some(5)));
    wait_until_gone(&mark);
}

/// Waits until no process has `mark` in its command line.
fn wait_until_gone(mark: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        let alive: Vec<String> = lines
            .map(|line| text(&line).replace('\0', " "))
            .filter(|line| line.starts_with("sleep") && line.contains(mark))
            .collect();
        if alive.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{alive:?} lives on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_the_shell_before_it_had_started_is_no_part_of_the_tree() {
    let project = Project::empty();
    let line = r#"exec "$0" exec -- sh -c 'echo hello' > >(sleep 0.6; cat > log)"#;
    let mut shell = Command::new("bash");
    shell.args(["-c", line]).arg(server()).current_dir(project.path()).stdin(Stdio::null());
    assert!(shell.status().unwrap().success());
    let deadline = Instant::now() + Duration::from_secs(20);
    while std::fs::read_to_string(project.path().join("log")).unwrap_or_default() != "hello\n" {
        assert!(Instant::now() < deadline, "the reader of the output was ended");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_process_ends_with_the_tree_whatever_bytes_its_name_has() {
    let project = Project::empty();
    let mark = unique_seconds();
    let program = std::ffi::OsString::from_vec(b"sl\xff".to_vec());
    std::fs::copy("/bin/sleep", project.path().join(&program)).unwrap();
    let mut line = b"(exec -a sleep ./sl\xff ".to_vec();
    line.extend(format!("{mark}) > /dev/null 2>&1 < /dev/null & sleep 0.2; exit 4").bytes());
    std::fs::write(project.path().join("line"), line).unwrap();
    let output = exec(&project, &["exec", "--", "bash", "line"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    wait_until_gone(&mark);
}

#[test]
fn the_whole_tree_ends_with_the_command_at_a_limit_and_when_exec_is_killed() {
    let project = Project::empty();
    let mark = unique_seconds();
    // One in a session of its own, without an environment; one in the background; one in the foreground.
    let line = |last: &str| format!("setsid env -i sleep {mark} & sleep {mark} & {last}");
    let began = Instant::now();
    let output = exec(&project, &["exec", "--", "sh", "-c", &line("exit 4")]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    wait_until_gone(&mark);
    let output =
        exec(&project, &["exec", "--timeout", "0.5", "--", "sh", "-c", &line(&format!("sleep {mark}"))]);
    assert_eq!(output.status.code(), Some(124), "{output:?}");
    wait_until_gone(&mark);
    let output = exec(&project, &["exec", "--idle-timeout", "0.5", "--", "sleep", &mark]);
    assert!(
        output.status.code() == Some(124) && text(&output.stderr).contains("nothing happened"),
        "{output:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(60));
    // A busy command is not idle.
    let busy = "end=$(($(date +%s) + 2)); while [ $(date +%s) -lt $end ]; do :; done; exit 5";
    let output = exec(&project, &["exec", "--idle-timeout", "1", "--", "sh", "-c", busy]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    // What keeps its environment is found by the guardian.
    let mut killed = project.server();
    killed.args(["exec", "--", "sh", "-c", &format!("setsid sleep {mark} & echo up; sleep {mark}")]);
    let mut killed = killed.stdout(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 3];
    std::io::Read::read_exact(killed.stdout.as_mut().unwrap(), &mut first).unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();
    wait_until_gone(&mark);
    // And with the process that it is bound to.
    let mut owner = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = owner.id().to_string();
    let mut bound = project.server();
    bound.args(["exec", "--ends-with", &pid, "--", "sleep", &mark]);
    let mut bound = bound.spawn().unwrap();
    on_runtime(wait_until_started(&mark));
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_eq!(bound.wait().unwrap().code(), Some(143));
    wait_until_gone(&mark);
    // One that has ended before starts nothing.
    let output = exec(&project, &["exec", "--ends-with", &pid, "--", "touch", "made"]);
    assert!(output.status.code() == Some(143) && !project.path().join("made").exists(), "{output:?}");
}

/// A terminal with a shell in it.
struct Terminal {
    running: Running,
}

impl Terminal {
    async fn open(project: &Project, script: &[&str]) -> Self {
        let program = server().to_str().unwrap();
        let command = Run::new("bash", project.path())
            .args(["--norc", "--noprofile"])
            .args(script.iter().copied())
            .env("PS1", "ready> ")
            .env("EXEC", format!("{program} exec --"))
            .env("TERM", "xterm")
            .env("HISTFILE", "/dev/null")
            .terminal(TerminalSize { columns: 91, rows: 33 })
            .stdin(Stdin::Piped)
            .limits(Limits::default().timeout(Duration::from_secs(60)));
        Self { running: Runner::new().start(command).await.expect("it starts") }
    }

    fn shown(&self) -> String {
        text(&self.running.snapshot(Stream::Stdout, 0, 1 << 20).bytes)
    }

    async fn type_text(&self, typed: &str) {
        self.running.write_stdin(typed.as_bytes()).await.expect("it reads");
    }

    /// Waits until `expected` has been shown `times` times.
    async fn wait_for(&self, expected: &str, times: usize) {
        let deadline = Instant::now() + Duration::from_secs(40);
        while self.shown().matches(expected).count() < times {
            assert!(Instant::now() < deadline, "no {expected:?}: {}", self.shown());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn on_runtime(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
}

#[test]
fn on_a_terminal_size_control_keys_and_job_control_are_as_without_it() {
    let project = Project::empty();
    let mark = unique_seconds();
    on_runtime(async {
        let terminal = Terminal::open(&project, &["-i"]).await;
        terminal.type_text("$EXEC sh -c 'stty size; tty -s && echo is a t''ty'\r").await;
        terminal.wait_for("33 91", 1).await;
        terminal.wait_for("is a tty", 1).await;
        // Control-Z stops the job, `fg` continues it, control-C ends it.
        terminal.type_text(&format!("$EXEC sleep {mark}\r")).await;
        terminal.wait_for(&format!("sleep {mark}"), 1).await;
        wait_until_started(&mark).await;
        terminal.type_text("\x1a").await;
        terminal.wait_for("Stopped", 1).await;
        terminal.type_text("fg\r").await;
        // Typed, stopped, and continued.
        terminal.wait_for(&format!("sleep {mark}"), 3).await;
        // The shell prints the command first, and gives it the terminal then: a key before that is the shell's.
        wait_until_in_foreground(&mark).await;
        terminal.type_text("\x03").await;
        terminal.type_text("echo code $?-\r").await;
        terminal.wait_for("code 130-", 1).await;
        wait_until_gone(&mark);
        terminal.type_text("exit\r").await;
    });
}

/// Waits until `sleep MARK` runs in the process group that has the terminal.
async fn wait_until_in_foreground(mark: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let pids = sleeping(mark).into_iter();
        let mut stats = pids.filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok());
        // Behind the name: state, parent, group, session, terminal, the group that has the terminal.
        let is_there = stats.any(|stat| {
            let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
            fields.len() > 5 && fields[0] != "T" && fields[2] == fields[5]
        });
        if is_there {
            return;
        }
        assert!(Instant::now() < deadline, "sleep {mark} was not given the terminal");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn wait_until_started(mark: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let mut lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        if lines.any(|line| line == format!("sleep\0{mark}\0").as_bytes()) {
            return;
        }
        assert!(Instant::now() < deadline, "sleep {mark} did not start");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn a_full_screen_program_works_and_the_terminal_is_put_back_when_it_is_ended() {
    let project = Project::empty();
    let lines: String = (1..=200).map(|number| format!("line number {number}\n")).collect();
    project.write("long.txt", &lines);
    let shell_in = |program: &str| std::path::Path::new("/usr/bin").join(program).exists().then_some(());
    if require(shell_in("less"), "no less; apt-get install less").is_none() {
        return;
    }
    on_runtime(async {
        let terminal = Terminal::open(&project, &["-i"]).await;
        terminal.type_text("$EXEC less long.txt\r").await;
        terminal.wait_for("line number 32", 1).await;
        terminal.type_text("G").await;
        terminal.wait_for("line number 200", 1).await;
        terminal.type_text("q").await;
        terminal.type_text("echo left $?-\r").await;
        terminal.wait_for("left 0-", 1).await;
        // One that is ended at its limit leaves no raw terminal behind.
        terminal.type_text("${EXEC% --} --timeout 1 -- less long.txt\r").await;
        terminal.wait_for("its time limit", 1).await;
        terminal
            .type_text(
                "stty -a | tr ';' '\\n' | grep -o -e '-*icanon' -e '-*echo\\b' | tr '\\n' '+'; echo .\r",
            )
            .await;
        terminal.wait_for("icanon+echo+", 1).await;
        assert!(!terminal.shown().contains("-icanon+"), "{}", terminal.shown());
        terminal.type_text("exit\r").await;
    });
}
