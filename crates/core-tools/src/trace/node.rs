//! Profiles of Node.js and Deno by the inspector protocol. Nothing is paused but for a heap snapshot.

use super::network::{Exchange, NetworkSummary};
use super::parse::{cpuprofile, heap_sampling, heap_snapshot};
use super::profile::{HeapSummary, Summary};
use super::run::{Run, Taken, Waited, blocking};
use super::{Error, TraceType};
use crate::inspect::cdp::{self, Session};
use crate::inspect::proc;
use crate::inspect::target::{Process, Url};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io::Write as _;
use std::time::{Duration, Instant};

/// How long a port may take to say whether an inspector is there; an application that is busy answers late.
const TELLS_WITHIN: Duration = Duration::from_millis(1500);
/// Ports that are asked.
const MOST_PORTS: usize = 8;
/// The longest message: a profile.
const MOST_MESSAGE: usize = 256 << 20;
/// The longest heap snapshot.
const MOST_SNAPSHOT: u64 = 4 << 30;
/// What ending a profile may take.
const STOPS_WITHIN: Duration = Duration::from_secs(10);
/// What taking a heap snapshot may take.
const SNAPSHOT_WITHIN: Duration = Duration::from_secs(120);
/// What there is to leave a target as it was when a capture is cancelled.
const LEAVES_WITHIN: Duration = Duration::from_millis(200);
/// Between two samples.
const INTERVAL_US: u64 = 1000;
/// Between two sampled allocations, on average.
const HEAP_INTERVAL: u64 = 32 << 10;
/// How often requests are fetched, and how many may wait until then.
const FETCH_EVERY: Duration = Duration::from_millis(250);
const MOST_WAITING: u64 = 5_000;
/// Requests that are kept in all.
const MOST_EXCHANGES: usize = 50_000;
/// How long the listeners stay when nobody has come back.
const OUTLIVES: Duration = Duration::from_secs(5);
/// How long a process may take from closing its connections to its end.
const ENDS_WITHIN: Duration = Duration::from_millis(500);
const HOOK: &str = include_str!("hook.js");

/// The inspector of `process`, among where it listens.
pub(super) async fn inspector(process: &Process) -> Option<Url> {
    for address in process.local_ports().into_iter().take(MOST_PORTS) {
        let listed = tokio::time::timeout(TELLS_WITHIN, cdp::list(address)).await;
        if let Ok(Ok(listed)) = listed
            && let Some(url) = listed.iter().find_map(|listed| listed.socket(address))
        {
            return Some(url);
        }
    }
    None
}

/// Takes the profile that `run` asks for from the inspector at `url`.
pub(super) async fn capture(run: &Run<'_>, url: &Url, snapshot: bool) -> Result<Taken, Error> {
    let session = tokio::select! {
        session = Session::connect(url, MOST_MESSAGE) => session.map_err(|error| failed(run, "the inspector", &error))?,
        () = run.cancel.cancelled() => return Err(Error::Cancelled),
    };
    let node = Node { run, session };
    let began = Instant::now();
    let taken = match (run.kind, snapshot) {
        (TraceType::Cpu, _) => node.cpu().await,
        (TraceType::Heap, false) => node.heap().await,
        (TraceType::Heap, true) => node.snapshot().await,
        (TraceType::Network, _) => node.network().await,
    };
    // A process that ends closes its connections a moment before it is gone.
    if matches!(taken, Err(Error::Failed { .. }))
        && node.session.is_closed()
        && let Waited::Gone(_) = run.wait(ENDS_WITHIN).await?
    {
        return Err(run.gone(began.elapsed()));
    }
    taken
}

fn failed(run: &Run<'_>, what: &str, error: &cdp::Error) -> Error {
    let gone = run.process.is_some_and(|process| !process.is_there());
    match error {
        cdp::Error::Closed(_) if gone => run.gone(Duration::ZERO),
        error => {
            let cause =
                std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
            Error::failed(what, format!("{error}{cause}"))
        }
    }
}

struct Node<'a> {
    run: &'a Run<'a>,
    session: Session,
}

#[derive(Deserialize)]
struct Profile<'a> {
    #[serde(borrow)]
    profile: &'a RawValue,
}

impl Node<'_> {
    async fn call(&self, method: &str, params: Value) -> Result<Value, Error> {
        tokio::select! {
            answer = self.session.call(method, params) => answer.map_err(|error| failed(self.run, method, &error)),
            () = self.run.cancel.cancelled() => Err(Error::Cancelled),
        }
    }

    /// Waits out the capture. Where it is cancelled, or the target ends, `leave` is called, as far as there is time.
    async fn wait(&self, leave: &[&str]) -> Result<(), Error> {
        let started = Instant::now();
        let waited = tokio::select! {
            waited = self.run.wait(self.run.duration) => waited,
            () = self.closed() => Ok(Waited::Gone(started.elapsed())),
        };
        match waited {
            Ok(Waited::Whole) => Ok(()),
            Ok(Waited::Gone(after)) => Err(self.run.gone(after)),
            Err(error) => {
                self.leave(leave).await;
                Err(error)
            }
        }
    }

    /// Ends what was begun. That the connection ends has the same effect, a moment later.
    async fn leave(&self, methods: &[&str]) {
        let _ = tokio::time::timeout(LEAVES_WITHIN, async {
            for method in methods {
                let _ = self.session.call_for_text(method, json!({}), LEAVES_WITHIN).await;
            }
        })
        .await;
    }

    async fn closed(&self) {
        while !self.session.is_closed() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends a profile and keeps it as it was sent.
    async fn stop(&self, method: &str, extension: &str) -> Result<Vec<u8>, Error> {
        let text = tokio::select! {
            text = self.session.call_for_text(method, json!({}), STOPS_WITHIN) =>
                text.map_err(|error| failed(self.run, method, &error))?,
            () = self.run.cancel.cancelled() => return Err(Error::Cancelled),
        };
        let profile: Profile<'_> =
            serde_json::from_str(text.get()).map_err(|error| Error::failed(method, error.to_string()))?;
        let bytes = profile.profile.get().as_bytes().to_vec();
        self.run.files.write(extension, &bytes).map_err(|error| self.run.unkept(error))?;
        Ok(bytes)
    }

    async fn cpu(&self) -> Result<Taken, Error> {
        const LEAVE: [&str; 2] = ["Profiler.stop", "Profiler.disable"];
        self.call("Profiler.enable", json!({})).await?;
        self.call("Profiler.setSamplingInterval", json!({"interval": INTERVAL_US})).await?;
        self.forget_optimised_code().await?;
        if let Err(error) = self.call("Profiler.start", json!({})).await {
            self.leave(&LEAVE).await;
            return Err(error);
        }
        let started = Instant::now();
        self.wait(&LEAVE).await?;
        let lasted = started.elapsed();
        let bytes = self.stop("Profiler.stop", "cpuprofile").await;
        self.leave(&["Profiler.disable"]).await;
        let bytes = bytes?;
        let cpu = blocking(move || cpuprofile::read(&bytes)).await?;
        let mut cpu = cpu.map_err(|error| Error::failed("reading the profile", error.to_string()))?;
        cpu.interval_us = Some(INTERVAL_US);
        Ok(Taken {
            format: "cpuprofile",
            extension: "cpuprofile",
            lasted,
            samples: Some(cpu.samples),
            cpu: Some(cpu),
            ..Taken::default()
        })
    }

    /// Makes the engine compile hot functions anew, now that it keeps for the profiler what was inlined into what. Of
    /// what it optimised before it says only the outermost function, so that the hottest one is often not told at all
    /// (Node.js 24: in every second capture). Costs the application some milliseconds of slower code.
    async fn forget_optimised_code(&self) -> Result<(), Error> {
        // Precise coverage cannot count calls of optimised code, and so begins without any. There is one for the whole
        // process: a test run that measures its own keeps it.
        const COVERS: [&str; 2] = ["NODE_V8_COVERAGE=", "--experimental-test-coverage"];
        let Some(process) = self.run.process else { return Ok(()) };
        let environment = proc::strings(process.pid, "environ").unwrap_or_default();
        let mut said = environment.iter().chain(&process.command);
        if !said.any(|said| COVERS.iter().any(|start| said.starts_with(start))) {
            let least = json!({"callCount": false, "detailed": false});
            self.call("Profiler.startPreciseCoverage", least).await?;
            self.call("Profiler.stopPreciseCoverage", json!({})).await?;
        }
        Ok(())
    }

    /// Bytes in the heap, without running any code of the application.
    async fn used(&self) -> Option<u64> {
        let usage = self.call("Runtime.getHeapUsage", json!({})).await.ok()?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        usage.get("usedSize")?.as_f64().map(|size| size.clamp(0.0, 1e15) as u64)
    }

    async fn heap(&self) -> Result<Taken, Error> {
        const LEAVE: [&str; 2] = ["HeapProfiler.stopSampling", "HeapProfiler.disable"];
        let before = self.used().await;
        self.call("HeapProfiler.enable", json!({})).await?;
        if let Err(error) =
            self.call("HeapProfiler.startSampling", json!({"samplingInterval": HEAP_INTERVAL})).await
        {
            self.leave(&LEAVE).await;
            return Err(error);
        }
        let started = Instant::now();
        self.wait(&LEAVE).await?;
        let lasted = started.elapsed();
        let bytes = self.stop("HeapProfiler.stopSampling", "heapprofile").await;
        self.leave(&["HeapProfiler.disable"]).await;
        let (bytes, after) = (bytes?, self.used().await);
        let roots: Vec<_> = self.run.roots.iter().map(|root| root.to_path_buf()).collect();
        let summary = blocking(move || {
            let roots: Vec<_> = roots.iter().map(std::path::PathBuf::as_path).collect();
            heap_sampling::read(&bytes).map(|tree| HeapSummary::of_allocations(&tree, &roots))
        });
        let mut summary =
            summary.await?.map_err(|error| Error::failed("reading the profile", error.to_string()))?;
        summary.used_bytes = before.zip(after).map(|(before, after)| [before, after]);
        let note = "sampled, one allocation in 32 KiB: of what was allocated meanwhile and is still there; `snapshot: \
                    true` tells all that is in the heap, and halts the application for it";
        Ok(Taken {
            format: "heapprofile",
            extension: "heapprofile",
            lasted,
            summary: Some(Summary::Heap(summary)),
            warnings: vec![note.to_owned()],
            ..Taken::default()
        })
    }

    /// Everything that is in the heap. It comes in pieces, which go to the file one by one.
    async fn snapshot(&self) -> Result<Taken, Error> {
        let mut file = self.run.files.create("heapsnapshot").map_err(|error| self.run.unkept(error))?;
        let mut events = self.session.events();
        let written = tokio::task::spawn_blocking(move || {
            let mut bytes = 0;
            while let Some(event) = events.blocking_recv() {
                let chunk = event.params.get("chunk").and_then(Value::as_str).unwrap_or_default();
                bytes += chunk.len() as u64;
                if event.method == "HeapProfiler.addHeapSnapshotChunk" && bytes <= MOST_SNAPSHOT {
                    file.write_all(chunk.as_bytes())?;
                }
            }
            Ok::<u64, std::io::Error>(bytes)
        });
        let started = Instant::now();
        let taking = self.session.call_for_text(
            "HeapProfiler.takeHeapSnapshot",
            json!({"reportProgress": false}),
            SNAPSHOT_WITHIN,
        );
        let taken = tokio::select! {
            taken = taking => taken.map_err(|error| failed(self.run, "HeapProfiler.takeHeapSnapshot", &error)),
            () = self.run.cancel.cancelled() => Err(Error::Cancelled),
        };
        let paused = started.elapsed();
        // A new taker ends the old one's events, once it has taken those that wait.
        drop(self.session.events());
        taken?;
        self.leave(&["HeapProfiler.disable"]).await;
        let written = written.await.map_err(|_| Error::Cancelled)?;
        if written.map_err(|error| self.run.unkept(error))? > MOST_SNAPSHOT {
            return Err(Error::failed("the heap snapshot", "it has more than 4 GiB"));
        }
        let file = self.run.files.open("heapsnapshot").map_err(|error| self.run.unkept(error))?;
        let heap = blocking(move || heap_snapshot::read(std::io::BufReader::with_capacity(1 << 20, file)));
        let heap = heap.await?.map_err(|error| Error::failed("reading the snapshot", error.to_string()))?;
        let note = "a snapshot is of one moment: duration_ms was not waited for; bytes are of the objects themselves, \
                    not of what they keep alive";
        Ok(Taken {
            format: "heapsnapshot",
            extension: "heapsnapshot",
            lasted: Duration::ZERO,
            summary: Some(Summary::Heap(HeapSummary::of_heap(&heap, None))),
            paused: Some(paused),
            warnings: vec![note.to_owned()],
            ..Taken::default()
        })
    }

    async fn network(&self) -> Result<Taken, Error> {
        let life = self.run.duration + OUTLIVES;
        let expression = format!("({HOOK})({MOST_WAITING}, {})", life.as_millis());
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
        let mut summary = Collected::default();
        let started = Instant::now();
        let ended = loop {
            let left = self.run.duration.saturating_sub(started.elapsed());
            let waited = tokio::select! {
                waited = self.run.wait(left.min(FETCH_EVERY)) => waited,
                () = self.closed() => Ok(Waited::Gone(started.elapsed())),
            };
            match waited {
                Ok(Waited::Whole) if left <= FETCH_EVERY => break Ok(()),
                Ok(Waited::Whole) => match self.drain(&object, false).await {
                    Ok(drained) => summary.add(drained),
                    Err(error) => break Err(error),
                },
                Ok(Waited::Gone(_)) => break Err(self.run.gone(started.elapsed())),
                Err(error) => break Err(error),
            }
        };
        let lasted = started.elapsed();
        // The last one ends the listening, whatever happened.
        let last = tokio::time::timeout(
            if ended.is_ok() { STOPS_WITHIN } else { LEAVES_WITHIN },
            self.drain(&object, true),
        );
        let last = last.await;
        ended?;
        summary.add(last.map_err(|_| Error::failed("ending the capture", "no answer"))??);
        let lines: Vec<String> =
            summary.exchanges.iter().filter_map(|exchange| serde_json::to_string(exchange).ok()).collect();
        let text = lines.join("\n") + "\n";
        self.run.files.write("ndjson", text.as_bytes()).map_err(|error| self.run.unkept(error))?;
        let samples = summary.exchanges.len() as u64;
        let told = NetworkSummary::of_exchanges(&summary.exchanges, summary.dropped, summary.sockets);
        Ok(Taken {
            format: "ndjson",
            extension: "ndjson",
            lasted,
            samples: Some(samples),
            summary: Some(Summary::Network(Box::new(told))),
            ..Taken::default()
        })
    }

    async fn drain(&self, object: &str, last: bool) -> Result<Drained, Error> {
        let params = json!({
            "objectId": object,
            "functionDeclaration": "function (last) { return this.drain(last) }",
            "arguments": [{"value": last}],
            "returnByValue": true,
        });
        // Not to be cut short by a cancellation: the last one is what leaves the target as it was.
        let answer = self.session.call("Runtime.callFunctionOn", params).await;
        let answer = answer.map_err(|error| failed(self.run, "fetching requests", &error))?;
        let text = answer.pointer("/result/value").and_then(Value::as_str).unwrap_or_default();
        serde_json::from_str(text).map_err(|error| Error::failed("fetching requests", error.to_string()))
    }
}

/// What the listeners hand over.
#[derive(Deserialize)]
struct Drained {
    events: Vec<Exchange>,
    pending: Vec<Exchange>,
    dropped: u64,
    sockets: [u64; 2],
}

#[derive(Default)]
struct Collected {
    exchanges: Vec<Exchange>,
    dropped: u64,
    sockets: [u64; 2],
    left_out: u64,
}

impl Collected {
    fn add(&mut self, drained: Drained) {
        for mut exchange in drained.events.into_iter().chain(drained.pending) {
            if self.exchanges.len() < MOST_EXCHANGES {
                exchange.generalise();
                self.exchanges.push(exchange);
            } else {
                self.left_out += 1;
            }
        }
        self.dropped = drained.dropped + self.left_out;
        self.sockets = drained.sockets;
    }
}
