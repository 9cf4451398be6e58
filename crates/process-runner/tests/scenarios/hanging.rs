//! Scenarios 40 and 41: file systems that do not answer.

use std::time::{Duration, Instant};

use process_runner::{Error, Limits, Runner, Termination};
use tokio_util::sync::CancellationToken;

use crate::fuse::{HangingFs, MountNamespace, in_own_namespace};
use crate::harness::{SLOW, ScenarioCase, assert_exited, assert_took, children, described, outcome, until};

const SECOND: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_millis(500);

pub(crate) async fn s40_a_process_in_the_d_state_is_unkillable_and_hangs_nobody(case: ScenarioCase) {
    let MountNamespace::Entered = in_own_namespace(&case) else { return };
    let fs = HangingFs::mount(&case, "late\n");
    let file = fs.file().display().to_string();
    let limits = Limits::default().timeout(SECOND).term_grace(GRACE);
    let output = outcome(case.program("cat", &[&file]).limits(limits)).await;

    let Termination::Unkillable { pids } = &output.termination else { panic!("{}", described(&output)) };
    let pid = output.pid.expect("it started");
    assert_eq!((pids.as_slice(), output.status), (&[pid][..], None));
    assert_took(output.elapsed, SECOND + GRACE);
    let state = children().into_iter().find(|child| child.pid == pid.cast_signed()).map(|child| child.state);
    assert_eq!(state, Some('D'), "it does not hang: this scenario proves nothing");

    // Others are not concerned.
    assert_exited(&outcome(case.sh("exit 4")).await, 4);

    // The background thread owns it now, and no zombie is left when it is let go.
    fs.release();
    until("it has been reaped", || children().is_empty()).await;
}

pub(crate) async fn s41_a_start_on_a_hung_file_system_is_given_up_and_hangs_nobody(case: ScenarioCase) {
    let MountNamespace::Entered = in_own_namespace(&case) else { return };
    let fs = HangingFs::mount(&case, "#!/bin/sh\nexec sleep 300\n");
    let program = fs.file().display().to_string();
    let runner = Runner::builder().max_concurrent(4).build();
    let hangs = || case.program(&program, &[]);

    // By the timeout, by a cancel, and by a dropped future; the runtime goes on all the while.
    let start_time = Instant::now();
    let mut ticks = 0;
    let run = runner.run(hangs().limits(Limits::default().timeout(SECOND)));
    let mut run = std::pin::pin!(run);
    let mut clock = tokio::time::interval(Duration::from_millis(10));
    let error = loop {
        tokio::select! {
            result = &mut run => break result.expect_err("it cannot start"),
            _ = clock.tick() => ticks += 1,
        }
    };
    assert!(matches!(&error, Error::SpawnTimedOut { after, .. } if *after == SECOND), "{error:?}");
    assert_took(start_time.elapsed(), SECOND);
    assert!(ticks >= 10, "the runtime was blocked: {ticks} ticks");
    assert_eq!((fs.reads(), children().len(), runner.stuck_starts()), (1, 1, 1));

    let token = CancellationToken::new();
    let (output, ()) = tokio::join!(runner.run(hangs().cancel(token.clone())), async {
        until("the second hangs", || fs.reads() == 2).await;
        token.cancel();
    });
    let output = output.expect("an outcome");
    assert_eq!((output.termination, output.pid), (Termination::Cancelled { escalated: false }, None));

    tokio::select! {
        _ = runner.run(hangs()) => panic!("it cannot start"),
        () = until("the third hangs", || fs.reads() == 3) => {}
    }
    assert_eq!(runner.stuck_starts(), 3);

    // One run more may go on, and only one: the starts that hang keep their permits.
    assert_exited(&runner.run(case.sh("exit 4")).await.expect("an outcome"), 4);
    let running = runner.start(case.program("sleep", &["300"])).await.expect("starts");
    let queued = tokio::time::timeout(GRACE, runner.run(case.sh("exit 5"))).await;
    assert!(queued.is_err(), "a fifth run got a permit: {queued:?}");
    drop(running);

    // A runtime can be shut down around it.
    let other = std::thread::spawn({
        let (runner, command) = (Runner::new(), hangs().limits(Limits::default().timeout(SECOND)));
        move || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
            let error = runtime.block_on(runner.run(command)).expect_err("it cannot start");
            assert!(matches!(error, Error::SpawnTimedOut { .. }), "{error:?}");
        }
    });
    until("that runtime is gone", || other.is_finished()).await;
    other.join().expect("no panic");
    assert_eq!(children().len(), 4);

    // What starts after all is killed at once: it would run for five minutes.
    fs.release();
    until("the late ones are gone", || children().is_empty() && case.survivors().is_empty()).await;
    until("their permits are free", || runner.stuck_starts() == 0).await;
    assert_exited(&runner.run(case.sh("exit 6")).await.expect("an outcome"), 6);
    assert!(start_time.elapsed() < 4 * SLOW);
}
