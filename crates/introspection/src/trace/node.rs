//! Profiles of Node.js and Deno by the inspector protocol. Only a heap snapshot pauses the target.

use super::capture_run::{CaptureOutput, CaptureRun, CaptureWaitOutcome, blocking};
use super::error::Error;
use super::network::{HttpExchange, NetworkSummary};
use super::parse::{cpuprofile, heap_sampling, heap_snapshot};
use super::profile::{HeapSummary, ProfileSummary};
use super::request::TraceType;
use crate::inspect::cdp::{self, CdpSession};
use crate::inspect::proc;
use crate::inspect::target::{Process, TargetUrl};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io::Write as _;
use std::time::{Duration, Instant};

/// The time limit for a port to show that it is an inspector; a busy application answers late.
const PROBE_TIMEOUT: Duration = Duration::from_millis(1500);
/// The maximum number of ports that are probed.
const MAX_PORTS: usize = 8;
/// The maximum size of a message, of which a profile is the largest, in bytes.
const MAX_MESSAGE_BYTES: usize = 256 << 20;
/// The maximum size of a heap snapshot, in bytes.
const MAX_SNAPSHOT_BYTES: u64 = 4 << 30;
/// The time limit for ending a profile.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for taking a heap snapshot.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(120);
/// The time limit for restoring the target after a cancelled capture.
const CLEANUP_TIMEOUT: Duration = Duration::from_millis(200);
/// The interval between two samples, in microseconds.
const INTERVAL_US: u64 = 1000;
/// The average distance between two sampled allocations, in bytes.
const HEAP_INTERVAL_BYTES: u64 = 32 << 10;
/// The interval at which requests are fetched from the target, and the maximum number that wait there.
const FETCH_INTERVAL: Duration = Duration::from_millis(250);
const MAX_WAITING: u64 = 5_000;
/// The maximum number of requests in a capture.
const MAX_EXCHANGES: usize = 50_000;
/// The time after the capture at which the listeners in the target remove themselves, should this server be gone.
const HOOK_GRACE: Duration = Duration::from_secs(5);
/// The time that a process may take from closing its connections to its exit.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// The script that listens to HTTP in the target.
const HOOK_SCRIPT: &str = include_str!("hook.js");

/// Finds the inspector of `process` among the ports that it listens on.
pub(super) async fn inspector(process: &Process) -> Option<TargetUrl> {
    for address in process.local_ports().into_iter().take(MAX_PORTS) {
        let listed = tokio::time::timeout(PROBE_TIMEOUT, cdp::list(address)).await;
        if let Ok(Ok(listed)) = listed
            && let Some(url) = listed.iter().find_map(|listed| listed.socket(address))
        {
            return Some(url);
        }
    }
    None
}

/// Takes the profile that `run` asks for through the inspector at `url`.
pub(super) async fn capture(
    run: &CaptureRun<'_>,
    url: &TargetUrl,
    snapshot: bool,
) -> Result<CaptureOutput, Error> {
    let session = tokio::select! {
        session = CdpSession::connect(url, MAX_MESSAGE_BYTES) => session.map_err(|error| inspector_error(run, "the inspector", &error))?,
        () = run.cancel.cancelled() => return Err(Error::Cancelled),
    };
    // A process that wants to end waits until its inspectors disconnect. With this it says so, and is let go as soon as its
    // profile is fetched. Deno has no such message.
    let held = session.hold_exit().await;
    if let Err(error @ cdp::CdpError::Closed(_)) = held {
        return Err(inspector_error(run, "the inspector", &error));
    }
    let node = NodeCapture { run, session };
    let began = Instant::now();
    let captured = match (run.kind, snapshot) {
        (TraceType::Cpu, _) => node.cpu().await,
        (TraceType::Heap, false) => node.heap().await,
        (TraceType::Heap, true) => node.snapshot().await,
        (TraceType::Network, _) => node.network().await,
    };
    // An exiting process closes its connections a moment before it is gone: wait to tell that from a failure.
    if matches!(captured, Err(Error::Failed { .. }))
        && node.session.is_closed()
        && let CaptureWaitOutcome::TargetExited(_) = run.wait(EXIT_TIMEOUT).await?
    {
        return Err(run.target_exited(began.elapsed()));
    }
    captured
}

/// Converts an error of the inspector; a connection closed by the target's exit is the exit.
fn inspector_error(run: &CaptureRun<'_>, what: &str, error: &cdp::CdpError) -> Error {
    let gone = run.process.is_some_and(|process| !process.is_running());
    match error {
        cdp::CdpError::Closed(_) if gone => run.target_exited(Duration::ZERO),
        error => {
            let cause =
                std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
            Error::failed(what, format!("{error}{cause}"))
        }
    }
}

/// A capture with its inspector session.
struct NodeCapture<'a> {
    run: &'a CaptureRun<'a>,
    session: CdpSession,
}

/// The answer that ends a profile. The profile is kept as the text that was sent.
#[derive(Deserialize)]
struct ProfileAnswer<'a> {
    #[serde(borrow)]
    profile: &'a RawValue,
}

impl NodeCapture<'_> {
    /// Calls a method of the inspector, until the capture is cancelled.
    async fn call(&self, method: &str, params: Value) -> Result<Value, Error> {
        tokio::select! {
            answer = self.session.call(method, params) => answer.map_err(|error| inspector_error(self.run, method, &error)),
            () = self.run.cancel.cancelled() => Err(Error::Cancelled),
        }
    }

    /// Waits for the duration of the capture, or until the target is about to exit. Where it is cancelled, calls the methods
    /// `cleanup`.
    async fn wait(&self, cleanup: &[&str]) -> Result<(), Error> {
        let started = Instant::now();
        let waited = tokio::select! {
            waited = self.run.wait(self.run.duration) => waited,
            () = self.closed_or_exiting() => Ok(CaptureWaitOutcome::TargetExited(started.elapsed())),
        };
        match waited {
            Ok(CaptureWaitOutcome::Elapsed) => Ok(()),
            // It stays until the profile is fetched.
            Ok(CaptureWaitOutcome::TargetExited(_))
                if self.session.is_exiting() && !self.session.is_closed() =>
            {
                Ok(())
            }
            Ok(CaptureWaitOutcome::TargetExited(after)) => Err(self.run.target_exited(after)),
            Err(error) => {
                self.clean_up(cleanup).await;
                Err(error)
            }
        }
    }

    /// Calls methods that restore the target, as many as there is time for. The end of the connection has the same
    /// effect, a moment later.
    async fn clean_up(&self, methods: &[&str]) {
        let _ = tokio::time::timeout(CLEANUP_TIMEOUT, async {
            for method in methods {
                let _ = self.session.call_for_text(method, json!({}), CLEANUP_TIMEOUT).await;
            }
        })
        .await;
    }

    /// Waits until the target closes the connection, or is about to exit.
    async fn closed_or_exiting(&self) {
        while !self.session.is_closed() && !self.session.is_exiting() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns the warning for a target that exits before the end of the capture.
    fn exit_warning(&self, elapsed: Duration) -> Option<String> {
        let is_early = self.session.is_exiting() && elapsed < self.run.duration;
        is_early.then(|| {
            format!(
                "the target ended after {} ms; the profile is of the time before",
                super::capture_run::millis(elapsed)
            )
        })
    }

    /// Ends a profile and stores it as it was sent.
    async fn stop(&self, method: &str, extension: &str) -> Result<Vec<u8>, Error> {
        let text = tokio::select! {
            text = self.session.call_for_text(method, json!({}), STOP_TIMEOUT) =>
                text.map_err(|error| inspector_error(self.run, method, &error))?,
            () = self.run.cancel.cancelled() => return Err(Error::Cancelled),
        };
        let profile: ProfileAnswer<'_> =
            serde_json::from_str(text.get()).map_err(|error| Error::failed(method, error.to_string()))?;
        let bytes = profile.profile.get().as_bytes().to_vec();
        self.run.files.write(extension, &bytes).map_err(|error| self.run.store_error(error))?;
        Ok(bytes)
    }

    /// Takes a CPU profile.
    async fn cpu(&self) -> Result<CaptureOutput, Error> {
        const CLEANUP: [&str; 2] = ["Profiler.stop", "Profiler.disable"];
        self.call("Profiler.enable", json!({})).await?;
        self.call("Profiler.setSamplingInterval", json!({"interval": INTERVAL_US})).await?;
        let started = Instant::now();
        let recording = async {
            self.call("Profiler.start", json!({})).await?;
            self.discard_optimised_code().await
        };
        if let Err(error) = recording.await {
            self.clean_up(&CLEANUP).await;
            return Err(error);
        }
        self.wait(&CLEANUP).await?;
        let elapsed = started.elapsed();
        let bytes = self.stop("Profiler.stop", "cpuprofile").await;
        self.clean_up(&["Profiler.disable"]).await;
        let bytes = bytes?;
        let cpu = blocking(move || cpuprofile::read(&bytes)).await?;
        let mut cpu = cpu.map_err(|error| Error::failed("reading the profile", error.to_string()))?;
        cpu.interval_us = Some(INTERVAL_US);
        Ok(CaptureOutput {
            format: "cpuprofile",
            extension: "cpuprofile",
            elapsed,
            samples: Some(cpu.samples),
            cpu: Some(cpu),
            warnings: self.exit_warning(elapsed).into_iter().collect(),
            ..CaptureOutput::default()
        })
    }

    /// Makes the engine discard its optimised code and compile hot functions again, now that the profiler runs and
    /// inlining is recorded: not before, as on a busy machine the engine is done before the profiler has started. For
    /// code optimised before, it reports only the outermost function, so that the hottest one is often missing
    /// (Node.js 24: in every second capture). This costs the application some milliseconds of slower code.
    async fn discard_optimised_code(&self) -> Result<(), Error> {
        // Precise coverage cannot count calls of optimised code, so starting it discards that code. A process has one
        // coverage: that of a test run which measures its own is left alone.
        const COVERS: [&str; 2] = ["NODE_V8_COVERAGE=", "--experimental-test-coverage"];
        let Some(process) = self.run.process else { return Ok(()) };
        let environment = proc::strings(process.pid, "environ").unwrap_or_default();
        let mut settings = environment.iter().chain(&process.command);
        if !settings.any(|setting| COVERS.iter().any(|start| setting.starts_with(start))) {
            let least = json!({"callCount": false, "detailed": false});
            self.call("Profiler.startPreciseCoverage", least).await?;
            self.call("Profiler.stopPreciseCoverage", json!({})).await?;
        }
        Ok(())
    }

    /// Returns the bytes in the heap, without running any code of the application.
    async fn used_bytes(&self) -> Option<u64> {
        let usage = self.call("Runtime.getHeapUsage", json!({})).await.ok()?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        usage.get("usedSize")?.as_f64().map(|size| size.clamp(0.0, 1e15) as u64)
    }

    /// Takes a profile of sampled allocations.
    async fn heap(&self) -> Result<CaptureOutput, Error> {
        const CLEANUP: [&str; 2] = ["HeapProfiler.stopSampling", "HeapProfiler.disable"];
        let before = self.used_bytes().await;
        self.call("HeapProfiler.enable", json!({})).await?;
        if let Err(error) =
            self.call("HeapProfiler.startSampling", json!({"samplingInterval": HEAP_INTERVAL_BYTES})).await
        {
            self.clean_up(&CLEANUP).await;
            return Err(error);
        }
        let started = Instant::now();
        self.wait(&CLEANUP).await?;
        let elapsed = started.elapsed();
        let bytes = self.stop("HeapProfiler.stopSampling", "heapprofile").await;
        self.clean_up(&["HeapProfiler.disable"]).await;
        let (bytes, after) = (bytes?, self.used_bytes().await);
        let roots: Vec<_> = self.run.roots.iter().map(|root| root.to_path_buf()).collect();
        let summary = blocking(move || {
            let roots: Vec<_> = roots.iter().map(std::path::PathBuf::as_path).collect();
            heap_sampling::read(&bytes).map(|tree| HeapSummary::from_allocations(&tree, &roots))
        });
        let mut summary =
            summary.await?.map_err(|error| Error::failed("reading the profile", error.to_string()))?;
        summary.used_bytes = before.zip(after).map(|(before, after)| [before, after]);
        let note = "sampled, one allocation in 32 KiB: of what was allocated meanwhile and is still there; `snapshot: \
                    true` tells all that is in the heap, and halts the application for it";
        Ok(CaptureOutput {
            format: "heapprofile",
            extension: "heapprofile",
            elapsed,
            summary: Some(ProfileSummary::Heap(summary)),
            warnings: std::iter::once(note.to_owned()).chain(self.exit_warning(elapsed)).collect(),
            ..CaptureOutput::default()
        })
    }

    /// Takes a snapshot of everything in the heap. It comes in chunks, which go to the file one by one.
    async fn snapshot(&self) -> Result<CaptureOutput, Error> {
        let mut file = self.run.files.create("heapsnapshot").map_err(|error| self.run.store_error(error))?;
        let mut events = self.session.events();
        // A thread of its own, since a disk may be slower than the inspector. The queue of events then holds the
        // inspector back.
        let written = tokio::task::spawn_blocking(move || {
            let mut bytes = 0;
            while let Some(event) = events.blocking_recv() {
                let chunk = event.params.get("chunk").and_then(Value::as_str).unwrap_or_default();
                bytes += chunk.len() as u64;
                // Received to the end, also beyond the limit: a full queue would block the answer to the command.
                if event.method == "HeapProfiler.addHeapSnapshotChunk" && bytes <= MAX_SNAPSHOT_BYTES {
                    file.write_all(chunk.as_bytes())?;
                }
            }
            Ok::<u64, std::io::Error>(bytes)
        });
        let started = Instant::now();
        let taking = self.session.call_for_text(
            "HeapProfiler.takeHeapSnapshot",
            json!({"reportProgress": false}),
            SNAPSHOT_TIMEOUT,
        );
        let captured = tokio::select! {
            captured = taking => captured.map_err(|error| inspector_error(self.run, "HeapProfiler.takeHeapSnapshot", &error)),
            () = self.run.cancel.cancelled() => Err(Error::Cancelled),
        };
        let paused = started.elapsed();
        // Subscribing again closes the first subscription, after the events that wait there were received.
        drop(self.session.events());
        captured?;
        self.clean_up(&["HeapProfiler.disable"]).await;
        let written = written.await.map_err(|_| Error::Cancelled)?;
        if written.map_err(|error| self.run.store_error(error))? > MAX_SNAPSHOT_BYTES {
            return Err(Error::failed("the heap snapshot", "it has more than 4 GiB"));
        }
        let file = self.run.files.open("heapsnapshot").map_err(|error| self.run.store_error(error))?;
        let heap = blocking(move || heap_snapshot::read(std::io::BufReader::with_capacity(1 << 20, file)));
        let heap = heap.await?.map_err(|error| Error::failed("reading the snapshot", error.to_string()))?;
        let note = "a snapshot is of one moment: duration_ms was not waited for; bytes are of the objects themselves, \
                    not of what they keep alive";
        Ok(CaptureOutput {
            format: "heapsnapshot",
            extension: "heapsnapshot",
            elapsed: Duration::ZERO,
            summary: Some(ProfileSummary::Heap(HeapSummary::from_heap(&heap, None))),
            paused: Some(paused),
            warnings: vec![note.to_owned()],
            ..CaptureOutput::default()
        })
    }

    /// Collects HTTP requests with listeners in the target.
    async fn network(&self) -> Result<CaptureOutput, Error> {
        let hook_lifetime = self.run.duration + HOOK_GRACE;
        let expression = format!("({HOOK_SCRIPT})({MAX_WAITING}, {})", hook_lifetime.as_millis());
        let evaluated = self.call("Runtime.evaluate", json!({"expression": expression})).await?;
        let object = evaluated.pointer("/result/objectId").and_then(Value::as_str).map(str::to_owned);
        let Some(object) = object.filter(|_| evaluated.get("exceptionDetails").is_none()) else {
            return Err(Error::Unsupported {
                kind: "network",
                what: "this process".to_owned(),
                reason: "it has no node:diagnostics_channel that can be reached from outside".to_owned(),
                remedy: "use Node.js 20.16 or newer; `target: \"pid:N\"` of a process without an inspector gives socket \
                         statistics"
                    .to_owned(),
            });
        };
        let mut collected = CollectedHttpRequests::default();
        let started = Instant::now();
        let ended = loop {
            let remaining = self.run.duration.saturating_sub(started.elapsed());
            let waited = tokio::select! {
                waited = self.run.wait(remaining.min(FETCH_INTERVAL)) => waited,
                () = self.closed_or_exiting() => Ok(CaptureWaitOutcome::TargetExited(started.elapsed())),
            };
            match waited {
                Ok(CaptureWaitOutcome::TargetExited(_))
                    if self.session.is_exiting() && !self.session.is_closed() =>
                {
                    break Ok(());
                }
                Ok(CaptureWaitOutcome::Elapsed) if remaining <= FETCH_INTERVAL => break Ok(()),
                Ok(CaptureWaitOutcome::Elapsed) => match self.drain(&object, false).await {
                    Ok(drained) => collected.add(drained),
                    Err(error) => break Err(error),
                },
                Ok(CaptureWaitOutcome::TargetExited(_)) => {
                    break Err(self.run.target_exited(started.elapsed()));
                }
                Err(error) => break Err(error),
            }
        };
        let elapsed = started.elapsed();
        // The last fetch removes the listeners, so it is made after every outcome.
        let last = tokio::time::timeout(
            if ended.is_ok() { STOP_TIMEOUT } else { CLEANUP_TIMEOUT },
            self.drain(&object, true),
        );
        let last = last.await;
        ended?;
        collected.add(last.map_err(|_| Error::failed("ending the capture", "no answer"))??);
        let lines: Vec<String> =
            collected.exchanges.iter().filter_map(|exchange| serde_json::to_string(exchange).ok()).collect();
        let text = lines.join("\n") + "\n";
        self.run.files.write("ndjson", text.as_bytes()).map_err(|error| self.run.store_error(error))?;
        let samples = collected.exchanges.len() as u64;
        let summary =
            NetworkSummary::from_exchanges(&collected.exchanges, collected.dropped, collected.sockets);
        Ok(CaptureOutput {
            format: "ndjson",
            extension: "ndjson",
            elapsed,
            samples: Some(samples),
            summary: Some(ProfileSummary::Network(Box::new(summary))),
            warnings: self.exit_warning(elapsed).into_iter().collect(),
            ..CaptureOutput::default()
        })
    }

    /// Fetches the requests that wait in the target; with `last`, removes the listeners too.
    async fn drain(&self, object: &str, last: bool) -> Result<DrainedHttpRequests, Error> {
        let params = json!({
            "objectId": object,
            "functionDeclaration": "function (last) { return this.drain(last) }",
            "arguments": [{"value": last}],
            "returnByValue": true,
        });
        // Not cancelled with the capture: the last call is what restores the target.
        let answer = self.session.call("Runtime.callFunctionOn", params).await;
        let answer = answer.map_err(|error| inspector_error(self.run, "fetching requests", &error))?;
        let text = answer.pointer("/result/value").and_then(Value::as_str).unwrap_or_default();
        serde_json::from_str(text).map_err(|error| Error::failed("fetching requests", error.to_string()))
    }
}

/// The answer of the listeners in the target.
#[derive(Deserialize)]
struct DrainedHttpRequests {
    events: Vec<HttpExchange>,
    pending: Vec<HttpExchange>,
    dropped: u64,
    sockets: [u64; 2],
}

/// The requests collected so far.
#[derive(Default)]
struct CollectedHttpRequests {
    exchanges: Vec<HttpExchange>,
    dropped: u64,
    sockets: [u64; 2],
    left_out: u64,
}

impl CollectedHttpRequests {
    fn add(&mut self, drained: DrainedHttpRequests) {
        for mut exchange in drained.events.into_iter().chain(drained.pending) {
            if self.exchanges.len() < MAX_EXCHANGES {
                exchange.redact();
                self.exchanges.push(exchange);
            } else {
                self.left_out += 1;
            }
        }
        // The target counts from the beginning of the capture, so its counts replace those before.
        self.dropped = drained.dropped + self.left_out;
        self.sockets = drained.sockets;
    }
}
