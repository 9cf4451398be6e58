//! Java virtual machines, by their attach socket.

use crate::support::{ProfiledApp, file, has, source};
use core_tools::trace::{CaptureTrace, HotFunction, ProfileSummary, Profiler, TraceFailureKind, TraceType};
use core_tools::workspace::Workspace;
use process_runner::{CancellationToken, Runner};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

fn app() -> ProfiledApp {
    let mut command = Command::new("java");
    command.arg("-XX:+UseSerialGC").arg(source("App.java"));
    ProfiledApp::start(command)
}

fn traces(folder: &Path, signals: bool) -> Profiler {
    let workspace = Arc::new(Workspace::new([folder]).unwrap());
    let traces =
        Profiler::new(workspace, Runner::new(), folder.join("traces")).path(std::env::var_os("PATH"));
    traces.allow_signals(signals).unrestricted(true)
}

fn request(app: &ProfiledApp, kind: TraceType, duration: u64) -> CaptureTrace {
    CaptureTrace::new(kind, duration).target(app.target())
}

#[tokio::test]
async fn methods_and_classes_are_told_and_no_signal_is_sent_unasked() {
    if !has("java") || !has("jfr") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let app = app();
    let never = CancellationToken::new();
    let refused = traces(folder.path(), false).capture(&request(&app, TraceType::Heap, 100), &never).await;
    assert_eq!(refused.unwrap_err().to_report().kind, TraceFailureKind::Refused);

    let traces = traces(folder.path(), true);
    let profile = traces.capture(&request(&app, TraceType::Heap, 200), &never).await.unwrap().profile;
    let ProfileSummary::Heap(heap) = &profile.summary else { panic!("{profile:?}") };
    let items = heap.biggest.iter().find(|big| big.name.ends_with("App$CartItem")).unwrap();
    assert_eq!(items.count, Some(50_000));
    assert!(profile.paused_ms.is_some());
    file(&json!(profile.path));

    // The recorder takes one in 6 ms of a thread that works half of the time, and far fewer on a busy machine, where the
    // recorder waits for the processor as well.
    let mut duration_ms = 3000;
    let profile = loop {
        let request = request(&app, TraceType::Cpu, duration_ms);
        let profile = traces.capture(&request, &never).await.unwrap().profile;
        if profile.samples.unwrap() > 5 || duration_ms > 6000 {
            break profile;
        }
        duration_ms *= 2;
    };
    let ProfileSummary::Cpu(cpu) = &profile.summary else { panic!("{profile:?}") };
    assert!(file(&json!(profile.path)).starts_with(b"FLR\0"));
    assert!(profile.samples.unwrap() > 5, "{profile:?}");
    // The compiler may have put one into the other; the recorder samples its own beginning too.
    let own = |hot: &&HotFunction| ["App.burnTheProcessor", "App.main"].contains(&hot.function.as_str());
    let hottest = cpu.top_total.iter().find(own).unwrap_or_else(|| panic!("{profile:?}"));
    assert_eq!(hottest.file.as_deref(), Some("App.java"));
}

// The virtual machine answers one after the other: a test that waits for `jcmd` must not keep the capture waiting.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_recording_is_stopped() {
    if !has("java") || !has("jcmd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let app = app();
    let recordings = || {
        let output = Command::new("jcmd").args([&app.pid().to_string(), "JFR.check"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let traces = traces(folder.path(), true);
    let cancel = CancellationToken::new();
    let capture = {
        let (traces, request, cancel) =
            (traces.clone(), request(&app, TraceType::Cpu, 30_000), cancel.clone());
        tokio::spawn(async move { traces.capture(&request, &cancel).await.map(drop) })
    };
    wait(|| recordings().contains("coretools-"), "it records").await;
    cancel.cancel();
    assert_eq!(capture.await.unwrap().unwrap_err().to_report().kind, TraceFailureKind::Cancelled);
    wait(|| !recordings().contains("coretools-"), "it does not record").await;
    assert_eq!(std::fs::read_dir(folder.path().join("traces")).unwrap().count(), 0);
}

async fn wait(condition: impl Fn() -> bool, what: &str) {
    let ends = std::time::Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(std::time::Instant::now() < ends, "not within a minute: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
