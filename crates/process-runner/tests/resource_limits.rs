//! The limits that the programs of one owner share: in a cgroup where there is one, and in what takes its place elsewhere.
//!
//! Few machines delegate a cgroup to a test. So one test starts the kernel of User-mode Linux, which mounts a hierarchy of
//! its own, and runs the ignored test of this file in a cgroup of that.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::disallowed_methods,
    reason = "the tests prepare what the programs meet, and start another kernel"
)]
#![cfg(target_os = "linux")]
#![cfg_attr(
    not(feature = "stress"),
    allow(unused_imports, dead_code, reason = "the test of the night needs more")
)]

mod confined_place;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command as StdCommand, Stdio};
use std::sync::Arc;
use std::time::Duration;

use process_runner::{
    Command, ExceededLimit, ExitStatus, LeftoverDecision, LeftoverPolicy, LeftoverTree, Limits, Output,
    ResourceControl, ResourceControls, ResourceLimits, RunOwner, Runner, owned_by,
};

use confined_place::ConfinedPlace;

const MIB: u64 = 1024 * 1024;
/// Starts children until it may not, and prints how many there are.
const FORK_BOMB: &str = "my $n = 0; while ($n < 4000) { my $pid = fork; last unless defined $pid; \
                         if (!$pid) { sleep 600; exit } $n++ } print $n";
/// Uses 512 MiB.
const MEMORY_EATER: &str = "my $text = 'x' x (512 << 20); print length $text";

#[derive(Debug)]
struct Caller(&'static str);

impl RunOwner for Caller {
    fn name(&self) -> &str {
        self.0
    }

    fn take_leftovers(&self, _tree: LeftoverTree) -> LeftoverDecision {
        LeftoverDecision::Keep
    }
}

/// Runs a script of Perl for `caller`.
async fn perl(caller: &'static str, script: &str, adapt: impl FnOnce(Command) -> Command) -> Output {
    let limits = Limits::default().timeout(Duration::from_secs(60)).leftovers(LeftoverPolicy::KillAll);
    let command = adapt(Command::new("perl", "/").args(["-e", script]).limits(limits));
    owned_by(Arc::new(Caller(caller)), Runner::new().run(command)).await.unwrap()
}

/// Returns the number that a run printed.
fn number(output: &Output) -> u32 {
    output.stdout_text().parse().unwrap_or_else(|_| panic!("{output:?}"))
}

#[tokio::test]
async fn a_fork_bomb_ends_at_the_limit_and_leaves_other_callers_their_processes() {
    let Some(place) = ConfinedPlace::at_default_level() else { return };
    let confinement = place.confinement().network(true);
    let limits = ResourceLimits::default().processes(60);
    let limited = |command: Command| command.confined(confinement.clone()).resource_limits(limits);
    let controls = ResourceControls::available(true);
    let bomb = number(&perl("first", FORK_BOMB, limited).await);
    match controls.processes {
        // A PID namespace gives out 300 numbers more until it begins again.
        ResourceControl::Namespace => assert!((40..=360).contains(&bomb), "{bomb} of 60: {controls}"),
        ResourceControl::Cgroup | ResourceControl::EachProcess => {
            assert!((20..=60).contains(&bomb), "{bomb} of 60: {controls}");
        }
        _ => assert!(controls.to_string().contains("not limited: processes"), "{controls}"),
    }
    // While one holds all of its own, another has some.
    let bomb_that_stays = format!("{FORK_BOMB}; sleep 600");
    let full = perl("first", &bomb_that_stays, limited);
    let other = async {
        let output = perl("second", "my $pid = fork; if (!$pid) { exit } wait; print 7", limited).await;
        assert_eq!(number(&output), 7, "{output:?}");
    };
    tokio::select! {
        output = full => panic!("{output:?}"),
        () = other => {}
    }
}

#[test]
fn a_fork_bomb_of_a_user_without_privileges_ends_at_the_limit_too() {
    if confined_place::is_root() {
        confined_place::run_as_another_user(
            "a_fork_bomb_ends_at_the_limit_and_leaves_other_callers_their_processes",
        );
    }
}

#[tokio::test]
async fn a_program_that_needs_more_memory_than_it_may_have_does_not_get_it() {
    let limits = ResourceLimits::default().memory_bytes(100 * MIB);
    let within = perl("first", "my $text = 'x' x (20 << 20); print length $text", |command| {
        command.resource_limits(limits)
    });
    assert_eq!(u64::from(number(&within.await)), 20 * MIB);
    let unconfined = perl("first", MEMORY_EATER, |command| command.resource_limits(limits)).await;
    let Some(place) = ConfinedPlace::at_default_level() else { return };
    let confinement = place.confinement();
    let confined =
        perl("first", MEMORY_EATER, |command| command.confined(confinement).resource_limits(limits));
    for output in [unconfined, confined.await] {
        assert!(!output.success() && output.stdout_text().is_empty(), "{output:?}");
        match ResourceControls::available(false).memory {
            ResourceControl::Cgroup => {
                assert_eq!(
                    output.exceeded_limits,
                    [ExceededLimit::Memory { bytes: 100 * MIB }],
                    "{output:?}"
                );
            }
            control => {
                assert_eq!(control, ResourceControl::EachProcess);
                assert!(output.stderr_text().contains("Out of memory"), "{output:?}");
            }
        }
    }
}

// It starts another kernel, so it is one of the tests of the night.
#[cfg(feature = "stress")]
#[test]
fn limits_hold_in_a_cgroup() {
    let uml =
        ["/usr/bin/linux.uml", "/usr/bin/linux"].into_iter().find(|program| Path::new(program).exists());
    let missing = "no User-mode Linux; apt install user-mode-linux";
    let Some(uml) = skipped_tests::require(uml, missing) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (init, log) = (folder.path().join("init"), folder.path().join("log"));
    // The kernel's root is this machine's. Its own hierarchy of cgroups lies in memory.
    let script = format!(
        "#!/bin/sh\n\
         export PATH={path} HOME=/tmp CI=true\n\
         mount -t proc proc /proc\n\
         mount -t tmpfs tmpfs /mnt\n\
         mkdir /mnt/cgroup\n\
         mount -t cgroup2 cgroup2 /mnt/cgroup\n\
         echo '+memory +pids +cpu' > /mnt/cgroup/cgroup.subtree_control\n\
         mkdir /mnt/cgroup/delegated\n\
         (\n\
           sh -c 'echo $$ > /mnt/cgroup/delegated/cgroup.procs; exec \"$0\" \"$@\"' \
             '{test}' inside_a_cgroup --exact --ignored --nocapture --test-threads 1\n\
           echo \"ended with $?\"\n\
         ) > '{log}' 2>&1 < /dev/null\n\
         sync\n\
         echo o > /proc/sysrq-trigger\n\
         sleep 600\n",
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        test = std::env::current_exe().unwrap().display(),
        log = log.display(),
    );
    fs::write(&init, script).unwrap();
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755)).unwrap();
    let mut kernel = StdCommand::new(uml);
    kernel.args(["mem=1G", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw", "quiet"]);
    kernel.args(["con=null", "con0=null,fd:1"]);
    kernel.arg(format!("uml_dir={}/", folder.path().display())).arg(format!("init={}", init.display()));
    kernel.env("TMPDIR", folder.path()).stdin(Stdio::null());
    let console = kernel.output().unwrap();
    let log = fs::read_to_string(&log).unwrap_or_default();
    let console = String::from_utf8_lossy(&console.stdout);
    assert!(log.contains("test inside_a_cgroup ... ok") || log.contains("1 passed"), "{log}\n{console}");
    assert!(log.contains("ended with 0"), "{log}\n{console}");
}

#[tokio::test]
#[ignore = "limits_hold_in_a_cgroup runs it in a cgroup"]
async fn inside_a_cgroup() {
    let before = ResourceControls::available(false);
    assert_eq!(before.to_string(), "cgroup v2: memory, processes, CPU weight");
    let limits = ResourceLimits::default().memory_bytes(64 * MIB).processes(40).cpu_weight(50);
    let limited = |command: Command| command.resource_limits(limits);
    // The programs of a caller are in one group, and those of another in another.
    let read = "open F, '/proc/self/cgroup'; my ($group) = <F> =~ /0::(\\S+)/; print \"$group\\n\";
                for (qw(memory.max pids.max cpu.weight)) { open F, \"/mnt/cgroup$group/$_\"; print <F> }";
    let first = perl("first", read, limited).await;
    let text = first.stdout_text();
    let (group, limits_of_group) = text.split_once('\n').unwrap();
    assert!(group.starts_with("/delegated/programs-"), "{first:?}");
    assert_eq!(limits_of_group, "67108864\n40\n50\n");
    let second = perl("second", read, limited).await;
    assert!(!second.stdout_text().starts_with(group), "{second:?}");
    assert_eq!(ResourceControls::available(false), before);

    let eater = perl("first", MEMORY_EATER, limited).await;
    assert!(matches!(eater.status, Some(ExitStatus::Signaled { signal: 9, .. })), "{eater:?}");
    assert_eq!(eater.exceeded_limits, [ExceededLimit::Memory { bytes: 64 * MIB }], "{eater:?}");
    assert!(eater.exceeded_limits[0].to_string().contains("64 MiB"));

    // It is what they may have together, and not each alone: one of two with 40 MiB is killed.
    let half = "my $text = 'x' x (40 << 20); sleep 600";
    let output = tokio::select! {
        output = perl("first", half, limited) => output,
        output = perl("first", half, limited) => output,
    };
    assert_eq!(output.exceeded_limits, [ExceededLimit::Memory { bytes: 64 * MIB }], "{output:?}");

    let bomb = perl("first", FORK_BOMB, limited).await;
    assert!((20..=40).contains(&number(&bomb)), "{bomb:?}");
    assert_eq!(bomb.exceeded_limits, [ExceededLimit::Processes { count: 40 }], "{bomb:?}");
    let bomb_that_stays = format!("{FORK_BOMB}; sleep 600");
    let full = perl("first", &bomb_that_stays, limited);
    let other = async {
        let output = perl("second", "my $pid = fork; if (!$pid) { exit } wait; print 7", limited).await;
        assert_eq!((number(&output), output.exceeded_limits), (7, vec![]));
    };
    tokio::select! {
        output = full => panic!("{output:?}"),
        () = other => {}
    }
    // What has no limits is in no such group.
    let free = perl("first", "open F, '/proc/self/cgroup'; print <F>", |command| command).await;
    assert!(free.stdout_text().starts_with("0::/delegated/server-"), "{free:?}");
}
