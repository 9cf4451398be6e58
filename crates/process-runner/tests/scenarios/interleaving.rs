//! Runs that end by exit, timeout, cancel, drop and end of stream at moments that meet; 10,000 in the target `stress`.

use std::time::Duration;

use process_runner::{Error, Limits, Output, Runner, Termination};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::harness::{self, ScenarioCase, described, outcome, outcome_if_started};

/// The runs on each of the two runtimes.
const RUNS: u64 = crate::rounds(300, 5000);
const AT_ONCE: usize = 16;
/// The time after which a run counts as hanging.
const HANG: Duration = Duration::from_secs(60);

#[test]
fn no_interleaving_hangs_or_leaks_on_current_thread() {
    harness::current_thread("interleaving::no_interleaving_hangs_or_leaks_on_current_thread", interleave);
}

#[test]
fn no_interleaving_hangs_or_leaks_on_multi_thread() {
    harness::multi_thread("interleaving::no_interleaving_hangs_or_leaks_on_multi_thread", interleave);
}

/// `SplitMix64` (Steele, Lea and Flood 2014): the same numbers for the same seed, everywhere.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns a time around that of a short program.
    fn moment(&mut self) -> Duration {
        Duration::from_micros(self.below(6000))
    }
}

async fn interleave(case: ScenarioCase) {
    let seed =
        std::env::var("INTERLEAVING_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_121);
    eprintln!("INTERLEAVING_SEED={seed}");
    let mut random = SplitMix64(seed);
    let mut runs = JoinSet::new();
    for number in 0..RUNS {
        if runs.len() >= AT_ONCE {
            runs.join_next().await.expect("some run").unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        let (case, own) = (case.clone(), SplitMix64(random.next()));
        runs.spawn(async move {
            let hang = tokio::time::timeout(HANG, one(&case, own)).await;
            hang.unwrap_or_else(|_| panic!("run {number} hangs"));
        });
    }
    while let Some(run) = runs.join_next().await {
        run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

async fn one(case: &ScenarioCase, mut random: SplitMix64) {
    let moment = random.moment();
    let limits = Limits::default().term_grace(Duration::from_millis(random.below(20)));
    let command = match random.below(8) {
        0 => case.program("true", &[]),
        1 => case.sh("echo out; exit 3"),
        2 => case.sh("exec >&- 2>&-; sleep 0.002; exit 3"),
        3 => case.sh("echo out; sleep 300 & exit 3"),
        4 => case.sh("trap '' TERM; echo out; sleep 300"),
        _ => case.program("sleep", &["0.003"]),
    };
    // A holder of the pipe is waited for, so briefly.
    let limits = limits.drain(Duration::from_millis(1 + random.below(5)), Duration::from_millis(20));
    match random.below(5) {
        // By itself, or by a timeout that may be a moment before or after.
        0 | 1 => {
            if let Some(output) = outcome_if_started(command.limits(limits.timeout(moment))).await {
                assert_sound(&output, |termination| matches!(termination, Termination::TimedOut { .. }));
            }
        }
        2 => {
            let token = CancellationToken::new();
            let (output, ()) =
                tokio::join!(outcome(command.limits(limits.timeout(HANG)).cancel(token.clone())), async {
                    tokio::time::sleep(moment).await;
                    token.cancel();
                });
            assert_sound(&output, |termination| matches!(termination, Termination::Cancelled { .. }));
        }
        3 => {
            // The future of a run, or its handle, is dropped.
            if random.below(2) == 0 {
                let _ = tokio::time::timeout(moment, command.limits(limits).run()).await;
            } else if let Ok(running) = Runner::new().start(command.limits(limits)).await {
                tokio::time::sleep(moment).await;
                drop(running);
            }
        }
        _ => {
            // Everything at once: ended politely, killed, waited for twice.
            let mut running = match Runner::new().start(command.limits(limits.timeout(moment))).await {
                Ok(running) => running,
                Err(Error::SpawnTimedOut { .. }) => return,
                Err(error) => panic!("{error:?}"),
            };
            let _ = tokio::time::timeout(moment / 2, running.wait()).await;
            running.terminate();
            if random.below(2) == 0 {
                running.kill();
            }
            let first = running.wait().await.expect("an outcome");
            assert_eq!(running.wait().await.expect("an outcome"), first);
            assert_sound(&first, |termination| {
                matches!(termination, Termination::TimedOut { .. } | Termination::Cancelled { .. })
            });
        }
    }
}

/// Asserts that the program exited with a code of its own or ended as `otherwise` allows, and that the parts of the
/// output agree.
#[track_caller]
fn assert_sound(output: &Output, otherwise: impl Fn(&Termination) -> bool) {
    match output.termination {
        Termination::Exited { code } => {
            assert!(matches!(code, 0 | 3), "{}", described(output));
            assert_eq!(output.code(), Some(code));
        }
        ref other => assert!(otherwise(other), "{}", described(output)),
    }
    // A process that held a pipe longer than the clocks allow is dead.
    assert!(output.leftovers.iter().all(|left| left.killed || !left.held_pipe), "{}", described(output));
    let text = output.stdout.text();
    assert!(text == "out\n" || text.is_empty(), "{}", described(output));
    if output.pid.is_some() {
        assert!(output.status.is_some() && output.to_exit.is_some_and(|exit| exit <= output.elapsed));
    }
}
