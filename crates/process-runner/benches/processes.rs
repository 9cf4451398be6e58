//! Measures the cost of a run beside the other ways to run a program, all in one session.
//!
//! `cargo bench -p process-runner --bench processes`, and one table of it with `-- start`, `capture`, `lines`,
//! `many`, `short` or `latencies`.
//!
//! CPU time is this process's own. It is the figure to trust on a machine that does other things too.
//! The ways take turns, and the median of the rounds is printed. Needs Linux, 4 GiB of memory, and
//! `/bin/true`, `sh`, `dd`, `sleep` and `perl`.
#![allow(clippy::disallowed_methods, reason = "the other ways to start a process are what is compared")]
#![allow(clippy::expect_used, reason = "a benchmark that cannot measure has nothing to say")]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]
#![allow(unsafe_code, reason = "the lower limit is the bare system call interface")]

mod support;

use std::ffi::CString;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command as StdCommand, Stdio};
use std::time::{Duration, Instant};

use process_runner::{Command, Limits, Output, Runner};
use process_wrap::tokio::{CommandWrap, KillOnDrop, ProcessGroup};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getrlimit, kill_process, setrlimit, waitpid,
};
use support::{RunCost, gate, heading, measure, median, memory_mib, row};
use tokio::io::AsyncBufReadExt;
use tokio::process::Command as TokioCommand;
use tokio::runtime::Runtime;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    // Whatever is made once is made now.
    runtime.block_on(ours());
    let names: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with("--")).collect();
    let is_selected = |name: &str| names.is_empty() || names.iter().any(|selected| selected == name);
    let tables: [(&str, &dyn Fn()); 6] = [
        ("start", &|| [10, 2048].into_iter().for_each(|mib| spawn_and_wait(&runtime, mib))),
        ("capture", &|| capture(&runtime)),
        ("lines", &|| lines(&runtime)),
        ("many", &|| many(&runtime)),
        ("short", &|| short(&runtime)),
        ("latencies", &|| latencies(&runtime)),
    ];
    for (_, table) in tables.iter().filter(|(name, _)| is_selected(name)) {
        table();
    }
}

async fn ours() -> Output {
    Command::new("/bin/true", "/").run().await.expect("it starts")
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// Measures runs of /bin/true, one after the other, with both streams captured where the way can.
fn spawn_and_wait(runtime: &Runtime, mib: usize) {
    const ROUNDS: usize = 9;
    const RUNS: u32 = 100;
    let ballast = vec![1_u8; mib << 20];
    // What is asynchronous runs in a task, as in a server, and not in the future of `block_on`.
    let in_task = |task: tokio::task::JoinHandle<()>| runtime.block_on(task).expect("no panic");
    let ways: [(&str, &dyn Fn()); 7] = [
        ("raw `posix_spawn`, `waitpid`, nothing captured", &|| (0..RUNS).for_each(|_| raw_posix_spawn())),
        ("`std` `output`", &|| {
            (0..RUNS).for_each(|_| drop(black_box(StdCommand::new("/bin/true").output().expect("starts"))));
        }),
        ("`tokio::process` `output`", &|| {
            in_task(runtime.spawn(async {
                for _ in 0..RUNS {
                    black_box(TokioCommand::new("/bin/true").output().await.expect("starts"));
                }
            }));
        }),
        ("`spawn_blocking` of `std` `output`", &|| {
            in_task(runtime.spawn(async {
                for _ in 0..RUNS {
                    let output = tokio::task::spawn_blocking(|| StdCommand::new("/bin/true").output());
                    drop(black_box(output.await.expect("no panic").expect("starts")));
                }
            }));
        }),
        ("`process-wrap` group, kill on drop, `wait_with_output`", &|| {
            in_task(runtime.spawn(async {
                for _ in 0..RUNS {
                    wrapped().await;
                }
            }));
        }),
        ("`duct` captured", &|| {
            for _ in 0..RUNS {
                let command = duct::cmd!("/bin/true").stdout_capture().stderr_capture();
                drop(black_box(command.run().expect("starts")));
            }
        }),
        ("process-runner", &|| {
            in_task(runtime.spawn(async {
                for _ in 0..RUNS {
                    black_box(ours().await);
                }
            }));
        }),
    ];
    let mut costs = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        for (way, costs) in ways.iter().zip(&mut costs) {
            let cost = measure(way.1);
            costs.push(RunCost { cpu: cost.cpu / RUNS, wall: cost.wall / RUNS });
        }
    }
    black_box(&ballast);
    heading(
        &format!("Start and wait for /bin/true, {mib} MiB in use"),
        &["way", "own CPU us", "wall us", "target"],
    );
    let target = if mib > 100 { 90.0 } else { 65.0 };
    let tokio = micros(median(costs[2].clone()).cpu);
    for ((name, _), costs) in ways.iter().zip(costs) {
        let cost = median(costs);
        let target = match *name {
            "process-runner" => {
                let relative = (micros(cost.cpu) / tokio - 1.0) * 100.0;
                format!("{}; {relative:+.0} % of tokio (+-10)", gate(micros(cost.cpu), target, "us"))
            }
            _ => String::new(),
        };
        row(&[
            (*name).into(),
            format!("{:.0}", micros(cost.cpu)),
            format!("{:.0}", micros(cost.wall)),
            target,
        ]);
    }
}

fn raw_posix_spawn() {
    let program = CString::new("/bin/true").expect("no NUL");
    let arguments = [program.as_ptr().cast_mut(), std::ptr::null_mut()];
    let environment = [std::ptr::null_mut()];
    let mut pid = 0;
    // SAFETY: live pointers to NUL-terminated strings, and lists that end in a null pointer; null stands
    // for no file actions and no attributes (posix_spawn(3)).
    let error = unsafe {
        libc::posix_spawn(
            &raw mut pid,
            program.as_ptr(),
            std::ptr::null(),
            std::ptr::null(),
            arguments.as_ptr(),
            environment.as_ptr(),
        )
    };
    assert_eq!(error, 0);
    waitpid(Pid::from_raw(pid), WaitOptions::empty()).expect("it is our child");
}

async fn wrapped() {
    let mut command = CommandWrap::with_new("/bin/true", |command| {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    });
    let child = command.wrap(ProcessGroup::leader()).wrap(KillOnDrop).spawn().expect("starts");
    black_box(Box::into_pin(child.wait_with_output()).await.expect("ends"));
}

/// Measures reading 1 GiB in writes of 64 KiB.
fn capture(runtime: &Runtime) {
    const DD: [&str; 4] = ["if=/dev/zero", "bs=64k", "count=16384", "status=none"];
    let ways: [(&str, &dyn Fn()); 5] = [
        ("`read` of 64 KiB, thrown away", &|| {
            let mut child = StdCommand::new("dd").args(DD).stdout(Stdio::piped()).spawn().expect("starts");
            let mut pipe = child.stdout.take().expect("piped");
            let mut buffer = vec![0; 64 * 1024];
            while pipe.read(&mut buffer).expect("reads") > 0 {}
            child.wait().expect("ends");
        }),
        ("`std` `output`", &|| drop(black_box(StdCommand::new("dd").args(DD).output().expect("starts")))),
        ("`tokio::process` `output`", &|| {
            drop(black_box(
                runtime.block_on(async { TokioCommand::new("dd").args(DD).output().await }).expect("starts"),
            ));
        }),
        ("`duct` captured", &|| drop(black_box(duct::cmd("dd", DD).stdout_capture().run().expect("starts")))),
        ("process-runner, head and tail of 256 KiB", &|| {
            let output = runtime.block_on(Command::new("dd", "/").args(DD).run()).expect("starts");
            assert_eq!(output.stdout.total_bytes, 1 << 30);
        }),
    ];
    heading("1 GiB from a pipe", &["way", "own CPU ms", "wall ms", "peak memory MiB", "target"]);
    let mut results = vec![(Vec::new(), 0); ways.len()];
    for _ in 0..5 {
        for ((_, way), (costs, peak)) in ways.iter().zip(&mut results) {
            std::fs::write("/proc/self/clear_refs", "5").expect("Linux has it");
            let before = memory_mib().0;
            costs.push(measure(way));
            *peak = memory_mib().1.saturating_sub(before).max(*peak);
        }
    }
    let mut bare = 0.0;
    for ((name, _), (costs, peak)) in ways.iter().zip(results) {
        let cost = median(costs);
        let ms = cost.cpu.as_secs_f64() * 1e3;
        if bare == 0.0 {
            bare = ms;
        }
        let target = match name.starts_with("process-runner") {
            true => format!(
                "{}; {}",
                gate((ms / bare * 100.0).round() / 100.0, 1.4, "x of the bare read"),
                gate(peak as f64, 8.5, "MiB")
            ),
            false => String::new(),
        };
        row(&[
            (*name).into(),
            format!("{ms:.0}"),
            format!("{:.0}", cost.wall.as_secs_f64() * 1e3),
            peak.to_string(),
            target,
        ]);
    }
}

/// Measures splitting 4,000,000 lines of 80 bytes, in writes of nearly the size of a pipe.
// A slower writer would cost each of the ways a wakeup for every few lines, and the benchmark would measure that.
fn lines(runtime: &Runtime) {
    let script = "exec perl -e '$lines = (\"x\" x 79 . \"\\n\") x 800; syswrite STDOUT, $lines for 1..5000'";
    let ways: [(&str, &dyn Fn() -> u64); 4] = [
        ("`std` `read_until` into one buffer", &|| {
            let mut child =
                StdCommand::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().expect("starts");
            let mut pipe = BufReader::with_capacity(64 * 1024, child.stdout.take().expect("piped"));
            let (mut line, mut count) = (Vec::new(), 0);
            while pipe.read_until(b'\n', &mut line).expect("reads") > 0 {
                count += 1;
                line.clear();
            }
            child.wait().expect("ends");
            count
        }),
        ("`std` `lines`", &|| {
            let mut child =
                StdCommand::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().expect("starts");
            let pipe = BufReader::with_capacity(64 * 1024, child.stdout.take().expect("piped"));
            let count = pipe.lines().map_while(Result::ok).map(black_box).count() as u64;
            child.wait().expect("ends");
            count
        }),
        ("`tokio` `lines`", &|| {
            runtime.block_on(async {
                let mut command = TokioCommand::new("sh");
                let mut child = command.args(["-c", script]).stdout(Stdio::piped()).spawn().expect("starts");
                let pipe = child.stdout.take().expect("piped");
                let mut lines = tokio::io::BufReader::with_capacity(64 * 1024, pipe).lines();
                let mut count = 0;
                while let Some(line) = lines.next_line().await.expect("reads") {
                    black_box(line);
                    count += 1;
                }
                child.wait().await.expect("ends");
                count
            })
        }),
        ("process-runner `on_line`, captured too", &|| {
            let count = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
            let seen = std::sync::Arc::clone(&count);
            let command = Command::new("sh", "/").args(["-c", script]).on_line(move |_, line| {
                black_box(line.bytes);
                // One thread calls it at a time, so a plain addition counts right, as in the other ways.
                let count = seen.load(std::sync::atomic::Ordering::Relaxed);
                seen.store(count + 1, std::sync::atomic::Ordering::Relaxed);
            });
            runtime.block_on(command.run()).expect("starts");
            count.load(std::sync::atomic::Ordering::Relaxed)
        }),
    ];
    heading("4,000,000 lines of 80 bytes from a pipe", &["way", "own CPU ns per line", "target"]);
    let mut results = vec![Vec::new(); ways.len()];
    for _ in 0..3 {
        for ((_, way), costs) in ways.iter().zip(&mut results) {
            costs.push(measure(|| assert_eq!(way(), 4_000_000)));
        }
    }
    for ((name, _), costs) in ways.iter().zip(results) {
        let cost = median(costs);
        let ns = cost.cpu.as_secs_f64() * 1e9 / 4e6;
        let target =
            if name.starts_with("process-runner") { gate(ns.round(), 30.0, "ns") } else { String::new() };
        row(&[(*name).into(), format!("{ns:.0}"), target]);
    }
}

/// Measures seeing the end of 500 children that live at once.
fn many(runtime: &Runtime) {
    const CHILDREN: usize = 500;
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(8192).min(8192);
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum })
        .expect("up to the hard limit");
    heading("500 children at once", &["way", "own CPU us per end, all at once", "one every 2 ms", "target"]);
    let kill = |pid: u32| {
        kill_process(Pid::from_raw(pid.cast_signed()).expect("not 0"), Signal::KILL).expect("ours");
    };
    let reap = |staggered: bool, ours: bool| -> f64 {
        runtime.block_on(async {
            let runner = Runner::builder().max_concurrent(CHILDREN).limits(Limits::unlimited()).build();
            let mut pids = Vec::new();
            let mut waits = tokio::task::JoinSet::new();
            for _ in 0..CHILDREN {
                if ours {
                    let mut running =
                        runner.start(Command::new("sleep", "/").arg("1000")).await.expect("starts");
                    pids.push(running.pid().expect("it has started"));
                    waits.spawn(async move { drop(black_box(running.wait().await.expect("an outcome"))) });
                } else {
                    let mut command = TokioCommand::new("sleep");
                    command.arg("1000").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
                    let child = command.kill_on_drop(true).spawn().expect("starts");
                    pids.push(child.id().expect("it has started"));
                    waits
                        .spawn(async move { drop(black_box(child.wait_with_output().await.expect("ends"))) });
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            let cpu = support::own_cpu();
            let mut clock = tokio::time::interval(Duration::from_millis(2));
            for pid in pids {
                if staggered {
                    clock.tick().await;
                }
                kill(pid);
            }
            while waits.join_next().await.is_some() {}
            micros(support::own_cpu() - cpu) / CHILDREN as f64
        })
    };
    for (name, ours) in [("`tokio::process`", false), ("process-runner", true)] {
        let middle = |staggered: bool| {
            let mut figures = [reap(staggered, ours), reap(staggered, ours), reap(staggered, ours)];
            figures.sort_by(f64::total_cmp);
            figures[1]
        };
        let (at_once, staggered) = (middle(false), middle(true));
        let target = if ours { gate(staggered.round(), 70.0, "us staggered") } else { String::new() };
        row(&[name.into(), format!("{at_once:.0}"), format!("{staggered:.0}"), target]);
    }
    setrlimit(Resource::Nofile, limit).expect("as it was");
}

/// Measures short runs side by side.
fn short(runtime: &Runtime) {
    heading(
        "10,000 runs of /bin/true, 16 at once",
        &["way", "own CPU us each", "runs a second", "zombies after", "target"],
    );
    for (name, ours_is_run) in [("`tokio::process`", false), ("process-runner", true)] {
        let start_time = Instant::now();
        let cost = measure(|| {
            runtime.block_on(async {
                let mut runs = tokio::task::JoinSet::new();
                for _ in 0..10_000 {
                    if runs.len() >= 16 {
                        runs.join_next().await;
                    }
                    if ours_is_run {
                        runs.spawn(async { drop(black_box(ours().await)) });
                    } else {
                        runs.spawn(async { drop(black_box(TokioCommand::new("/bin/true").output().await)) });
                    }
                }
                while runs.join_next().await.is_some() {}
            });
        });
        let each = micros(cost.cpu) / 1e4;
        let target = if ours_is_run { gate(each.round(), 90.0, "us") } else { String::new() };
        let rate = 1e4 / start_time.elapsed().as_secs_f64();
        row(&[name.into(), format!("{each:.0}"), format!("{rate:.0}"), zombies().to_string(), target]);
    }
}

/// Measures the time from an event until the answer.
fn latencies(runtime: &Runtime) {
    const ROUNDS: usize = 15;
    let run = |script: &str, limits: Limits| {
        let command = Command::new("sh", "/").args(["-c", script]).limits(limits);
        runtime.block_on(command.run()).expect("starts")
    };
    let middle = |mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1e3
    };
    let after_exit = |output: Output| output.elapsed - output.to_exit.expect("it exited");
    let closed = middle((0..ROUNDS).map(|_| after_exit(run("exit 0", Limits::default()))).collect());
    let held =
        middle((0..ROUNDS).map(|_| after_exit(run("sleep 1000 & exit 0", Limits::default()))).collect());
    let timeout = Duration::from_millis(300);
    let timed_out =
        || run("exec sleep 1000", Limits::default().timeout(timeout)).elapsed.saturating_sub(timeout);
    let obeyed = middle((0..ROUNDS).map(|_| timed_out()).collect());
    heading("Until the answer, median", &["event", "ms", "target"]);
    let ms = |value: f64| (value * 100.0).round() / 100.0;
    row(&[
        "program exited, its output closed with it".into(),
        ms(closed).to_string(),
        gate(ms(closed), 2.0, "ms"),
    ]);
    row(&[
        "program exited, a child holds its output open (`drain_idle` 200 ms)".into(),
        ms(held).to_string(),
        gate(ms(held), 250.0, "ms"),
    ]);
    row(&[
        "time limit passed, program ended at SIGTERM".into(),
        ms(obeyed).to_string(),
        gate(ms(obeyed), 50.0, "ms"),
    ]);
}

fn zombies() -> usize {
    let own = std::process::id().to_string();
    let stats = std::fs::read_dir("/proc").expect("Linux has it").filter_map(|entry| {
        let stat = std::fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ');
        Some(fields.next()? == "Z" && fields.next()? == own)
    });
    stats.filter(|zombie| *zombie).count()
}
