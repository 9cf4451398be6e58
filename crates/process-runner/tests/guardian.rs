//! Tests of the runs of a server that is killed. The server is this same program, started again.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test with a main of its own"
)]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    process_runner::guardian::run_if_requested();
    if let Some(role) = std::env::var_os(linux::ROLE) {
        return linux::serve(role.to_str().unwrap());
    }
    harness::main(linux::TESTS);
}

/// The part of the test harness's command line that `cargo test` and `cargo nextest` use.
#[cfg(target_os = "linux")]
mod harness {
    pub(crate) type GuardianTest = (&'static str, fn());

    pub(crate) fn main(tests: &[GuardianTest]) {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
        let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
        let matches = |name: &str| match has("--exact") {
            true => wanted.iter().any(|wanted| *wanted == name),
            false => wanted.is_empty() || wanted.iter().any(|wanted| name.contains(wanted.as_str())),
        };
        for (name, test) in tests {
            if has("--list") {
                if !has("--ignored") {
                    println!("{name}: test");
                }
            } else if !has("--ignored") && matches(name) {
                test();
                println!("test {name} ... ok");
            }
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Stdio};
    use std::time::{Duration, Instant};

    use process_runner::guardian::GuardianProgram;
    use process_runner::{Command, Confinement, Limits, Runner, Stream};
    use rustix::process::{Pid, Signal, kill_process};

    pub(crate) const ROLE: &str = "PROCESS_RUNNER_TEST_ROLE";
    pub(crate) const TESTS: &[super::harness::GuardianTest] = &[
        ("a_killed_server_takes_its_runs_with_it", a_killed_server_takes_its_runs_with_it),
        ("a_killed_server_takes_its_confined_runs_with_it", a_killed_server_takes_its_confined_runs_with_it),
        ("without_a_guardian_they_live_on_as_documented", without_a_guardian_they_live_on_as_documented),
        ("a_daemon_of_a_finished_run_is_spared", a_daemon_of_a_finished_run_is_spared),
        ("the_guardian_keeps_nothing_of_the_server", the_guardian_keeps_nothing_of_the_server),
        ("the_guardian_ends_with_its_runner", the_guardian_ends_with_its_runner),
        ("a_guardian_that_was_killed_is_replaced", a_guardian_that_was_killed_is_replaced),
    ];

    /// Prints its own pid, that of a child in a job of its own and that of a daemon with closed streams.
    const TREE: &str = "echo $$; set -m; sleep 1000 >/dev/null 2>&1 & echo $!; \
        setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'; wait; sleep 1000";
    /// Leaves a daemon behind and ends.
    const DAEMON: &str = "setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'; exit 0";

    /// Runs the server: it starts what its role says, prints the pids, and waits to be killed.
    pub(crate) fn serve(role: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let builder = Runner::builder().limits(Limits::unlimited());
            let runner = match role {
                "unguarded" => builder.build(),
                _ => builder.guardian(GuardianProgram::current_exe().unwrap()).build(),
            };
            let daemon = runner.run(Command::new("bash", "/").args(["-c", DAEMON])).await.unwrap();
            print!("daemon {}", daemon.stdout_text());
            let tree = || {
                let command = Command::new("bash", "/").args(["-c", TREE]);
                let confinement = Confinement::project([""; 0], "/tmp").best_effort(true);
                runner.start(if role == "confined" { command.confined(confinement) } else { command })
            };
            let mut running = vec![tree().await.unwrap()];
            if role == "replaced" {
                let guardian = guardian_of(std::process::id()).unwrap();
                kill_process(as_pid(guardian), Signal::KILL).unwrap();
                wait_until("the guardian is dead", || is_dead(guardian));
                running.push(tree().await.unwrap());
            }
            for run in &running {
                while run
                    .snapshot(Stream::Stdout, 0, 1000)
                    .bytes
                    .iter()
                    .filter(|byte| **byte == b'\n')
                    .count()
                    < 3
                {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                print!("{}", String::from_utf8_lossy(&run.snapshot(Stream::Stdout, 0, 1000).bytes));
            }
            if let Some(guardian) = guardian_of(std::process::id()) {
                println!("guardian {guardian}");
            }
            println!("ready");
            if role == "shutdown" {
                std::io::stdin().read_line(&mut String::new()).unwrap();
                runner.shutdown(Duration::from_secs(5)).await;
                println!("shut down");
            }
            std::future::pending::<()>().await;
        });
    }

    struct GuardedServer {
        process: Child,
        output: BufReader<std::process::ChildStdout>,
        daemon: u32,
        guardian: Option<u32>,
        tree: Vec<u32>,
    }

    impl GuardedServer {
        fn start(role: &str) -> Self {
            let mut process = std::process::Command::new(std::env::current_exe().unwrap())
                .env(ROLE, role)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let output = BufReader::new(process.stdout.take().unwrap());
            let mut server = Self { process, output, daemon: 0, guardian: None, tree: Vec::new() };
            // A program in a PID namespace knows only its number there.
            let number = |pid: &str| match role {
                "confined" => pid_outside(pid),
                _ => pid.parse().unwrap(),
            };
            loop {
                let line = server.line();
                match line.split_once(' ') {
                    Some(("daemon", pid)) => server.daemon = pid.parse().unwrap(),
                    Some(("guardian", pid)) => server.guardian = Some(pid.parse().unwrap()),
                    _ if line == "ready" => break,
                    _ => server.tree.push(number(&line)),
                }
            }
            assert!(
                server.tree.len() >= 3 && server.tree.iter().all(|pid| !is_dead(*pid)),
                "{:?}",
                server.tree
            );
            assert!(!is_dead(server.daemon));
            server
        }

        fn line(&mut self) -> String {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            assert!(!line.is_empty(), "the server has ended");
            line.trim_end().to_owned()
        }

        fn kill(&mut self) {
            self.process.kill().unwrap();
            self.process.wait().unwrap();
        }
    }

    impl Drop for GuardedServer {
        fn drop(&mut self) {
            let _ = self.process.kill();
            let _ = self.process.wait();
            // A pid comes again within seconds on a machine that starts thousands of processes.
            for pid in self.tree.iter().chain([&self.daemon]).filter(|pid| is_ours(**pid)) {
                let _ = kill_process(as_pid(*pid), Signal::KILL);
            }
        }
    }

    fn a_killed_server_takes_its_runs_with_it() {
        takes_its_runs_with_it("guarded");
    }

    fn a_killed_server_takes_its_confined_runs_with_it() {
        takes_its_runs_with_it("confined");
    }

    fn takes_its_runs_with_it(role: &str) {
        let mut server = GuardedServer::start(role);
        server.kill();
        let start_time = Instant::now();
        for pid in server.tree.clone() {
            wait_until("what ran is dead", || is_dead(pid));
        }
        // 100 ms on an idle machine.
        assert!(start_time.elapsed() < Duration::from_secs(5), "{:?}", start_time.elapsed());
        wait_until("the guardian has ended", || is_dead(server.guardian.unwrap()));
    }

    fn without_a_guardian_they_live_on_as_documented() {
        let mut server = GuardedServer::start("unguarded");
        assert_eq!(server.guardian, None);
        server.kill();
        std::thread::sleep(Duration::from_millis(300)); // time in which a guardian would have killed them
        assert!(server.tree.iter().all(|pid| !is_dead(*pid)));
    }

    fn a_daemon_of_a_finished_run_is_spared() {
        let mut server = GuardedServer::start("guarded");
        server.kill();
        wait_until("the guardian has done its work", || is_dead(server.guardian.unwrap()));
        assert!(!is_dead(server.daemon));
    }

    fn the_guardian_keeps_nothing_of_the_server() {
        let server = GuardedServer::start("guarded");
        let guardian = server.guardian.unwrap();
        let mut open: Vec<(String, String)> = std::fs::read_dir(format!("/proc/{guardian}/fd"))
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| {
                let target = std::fs::read_link(entry.path()).unwrap();
                (entry.file_name().into_string().unwrap(), target.to_string_lossy().into_owned())
            })
            .collect();
        open.sort();
        let numbers: Vec<&str> = open.iter().map(|(number, _)| number.as_str()).collect();
        // 3 is its pidfd of the server.
        assert_eq!(numbers, ["0", "1", "2", "3"], "{open:?}");
        assert!(open[0].1.starts_with("pipe:") && open[3].1.contains("pidfd"), "{open:?}");
        assert_eq!((open[1].1.as_str(), open[2].1.as_str()), ("/dev/null", "/dev/null"));
        let status = std::fs::read_to_string(format!("/proc/{guardian}/status")).unwrap();
        let rss: u64 = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())
            .unwrap();
        assert!(rss < 8 * 1024, "{rss} KiB");
        for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
            kill_process(as_pid(guardian), signal).unwrap();
        }
        std::thread::sleep(Duration::from_millis(100));
        assert!(!is_dead(guardian), "a polite signal has ended it");
    }

    fn the_guardian_ends_with_its_runner() {
        let mut server = GuardedServer::start("shutdown");
        drop(server.process.stdin.take());
        assert_eq!(server.line(), "shut down");
        wait_until("the guardian is reaped", || {
            !std::path::Path::new(&format!("/proc/{}", server.guardian.unwrap())).exists()
        });
        assert!(server.process.try_wait().unwrap().is_none(), "the server itself goes on");
    }

    fn a_guardian_that_was_killed_is_replaced() {
        let mut server = GuardedServer::start("replaced");
        assert_eq!(server.tree.len(), 6);
        server.kill();
        // Also those that were announced to the first.
        for pid in server.tree.clone() {
            wait_until("what ran is dead", || is_dead(pid));
        }
    }

    fn as_pid(pid: u32) -> Pid {
        Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
    }

    /// Returns true for a live process that these tests have started: a sleeper, its shell, or a guardian.
    fn is_ours(pid: u32) -> bool {
        let command_line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let starts: [&[u8]; 4] = [
            b"sleep\x001000\0",
            b"sh\0-c\0sleep 1000",
            b"bash\0-c\0echo $$; set -m;",
            b"process-runner-guardian\0",
        ];
        starts.iter().any(|start| command_line.starts_with(start))
    }

    /// Returns true if there is no such process, or another by now, or a zombie of a server that does not reap, which has
    /// no command line.
    fn is_dead(pid: u32) -> bool {
        !is_ours(pid)
    }

    /// Returns the number outside of the process of these tests that has this number in its PID namespace, or has it
    /// outside if there are no namespaces.
    fn pid_outside(pid: &str) -> u32 {
        wait_until("the process of the namespace is there", || found_with_number(pid).is_some());
        found_with_number(pid).unwrap()
    }

    fn found_with_number(pid: &str) -> Option<u32> {
        let own = std::fs::read_link("/proc/self/ns/pid").unwrap();
        let is_confined = |pid: u32| {
            std::fs::read_to_string(format!("/proc/{pid}/status"))
                .is_ok_and(|status| status.contains("NoNewPrivs:\t1"))
        };
        std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
            let number: u32 = entry.file_name().to_str()?.parse().ok()?;
            let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
            let inside = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
            let is_elsewhere = std::fs::read_link(entry.path().join("ns/pid")).ok()? != own;
            let matches =
                inside.split_whitespace().last() == Some(pid) && (is_elsewhere || number.to_string() == pid);
            (matches && is_ours(number) && is_confined(number)).then_some(number)
        })
    }

    /// Returns the live child of `server` that is a guardian.
    fn guardian_of(server: u32) -> Option<u32> {
        std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let command_line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok();
            let guards = command_line.starts_with(b"process-runner-guardian\0");
            (guards && parent == Some(server) && !is_dead(pid)).then_some(pid)
        })
    }

    /// Lists the processes of these tests, for the message of a failed one.
    fn processes() -> String {
        let of = |pid: u32, file: &str| {
            let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            String::from_utf8_lossy(&text).replace('\0', " ")
        };
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| is_ours(*pid))
            .map(|pid| format!("{} {}\n", of(pid, "cmdline"), of(pid, "stat")))
            .collect()
    }

    fn wait_until(what: &str, check: impl Fn() -> bool) {
        let start_time = Instant::now();
        while !check() {
            assert!(
                start_time.elapsed() < Duration::from_secs(20),
                "never came true: {what}\n{}",
                processes()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
