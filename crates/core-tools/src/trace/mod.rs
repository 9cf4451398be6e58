//! Profiles of the application: where time goes, what takes memory, whom it talks to.
//!
//! ```no_run
//! use core_tools::trace::{CaptureTrace, TraceType, Traces};
//! use core_tools::workspace::Workspace;
//! use std::sync::Arc;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let workspace = Arc::new(Workspace::new(["/home/me/project"])?);
//! let traces = Traces::new(workspace, process_runner::Runner::new(), "/home/me/.local/state/coretools/traces")
//!     .path(std::env::var_os("PATH"))
//!     .unrestricted(true);
//! let request = CaptureTrace { target: Some("pid:4711".to_owned()), ..CaptureTrace::new(TraceType::Cpu, 2000) };
//! let capture = traces.capture(&request, &Default::default()).await?;
//! println!("{} {:?}", capture.profile.path, capture.profile.summary);
//! # Ok(())
//! # }
//! ```
//!
//! # Ways
//!
//! | runtime | `cpu` | `heap` | `network` |
//! |---|---|---|---|
//! | Node.js, Deno | inspector | inspector: sampled allocations, or a snapshot | `diagnostics_channel`, by the inspector |
//! | Python | py-spy | memory map | sockets |
//! | Go | `net/http/pprof`, else perf | `net/http/pprof`, else memory map | sockets |
//! | JVM | Flight Recorder | histogram of classes | sockets |
//! | others, this server | perf | memory map | sockets |
//!
//! Nothing is left in the target: what was begun is ended at the end, at an error, and when the capture is
//! cancelled. Listeners in a Node.js process also end by themselves, five seconds after the capture, should this
//! process die meanwhile.
//!
//! # What is kept
//!
//! The profile as the profiler wrote it, and a flame graph, in one folder that only its owner can enter; the oldest
//! beyond 200 files or 2 GiB make room. Requests are kept without queries, headers and bodies, and with `:id` for
//! parts of a path that look like keys.
//!
//! # Bounds
//!
//! One capture of a process at a time. It takes its duration and 1.5 seconds, or its answer says what took longer.

mod artifacts;
mod calls;
mod error;
pub mod flame;
mod go;
#[cfg(unix)]
mod jvm;
mod memory;
mod native;
mod network;
mod node;
pub mod parse;
mod profile;
mod programs;
mod python;
mod request;
mod run;
#[cfg(target_os = "linux")]
mod sockets;
mod subject;

pub use calls::{CallTree, Frame, Placed, Spent};
pub use error::{Error, Refusal};
pub use network::{NetworkSummary, Peer, Route, Slow};
pub use profile::{Big, CpuSummary, HeapSummary, Hot, ProfileData, Summary};
pub use request::{CaptureTrace, TraceType};

use crate::inspect::target::{Runtime, Url};
use crate::workspace::Workspace;
use artifacts::{Artifacts, Files};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flame::Title;
use native::Unwind;
use parse::Cpu;
use process_runner::Runner;
use programs::Programs;
use run::{Run, Taken, blocking, cpu_time, micros, millis};
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use subject::Subject;
use tokio_util::sync::CancellationToken;

/// Beyond its duration a capture may take so long without saying why.
const UNEXPLAINED: Duration = Duration::from_millis(1500);
/// The largest profile that is answered itself.
const MOST_DATA: u64 = 64 << 10;

/// Takes profiles. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Traces {
    programs: Programs,
    artifacts: Artifacts,
    target: Option<String>,
    unrestricted: bool,
    allow_signals: bool,
    /// What is being captured.
    busy: Arc<Mutex<HashSet<u32>>>,
}

/// What a capture gives.
#[derive(Clone, Debug)]
pub struct Capture {
    /// The profile.
    pub profile: ProfileData,
    /// The flame graph as PNG, where it was asked for and there is one.
    pub image: Option<Vec<u8>>,
}

impl Traces {
    /// Profiles of processes beneath the roots of `workspace` where a request names none, kept in `folder`, by
    /// programs that `runner` runs.
    pub fn new(workspace: Arc<Workspace>, runner: Runner, folder: impl Into<PathBuf>) -> Self {
        Self {
            programs: Programs { runner, path: None, workspace },
            artifacts: Artifacts::new(folder.into()),
            target: None,
            unrestricted: false,
            allow_signals: false,
            busy: Arc::default(),
        }
    }

    /// Where profilers are searched: the value of `PATH`. Nowhere by default.
    #[must_use]
    pub fn path(mut self, path: Option<OsString>) -> Self {
        self.programs.path = path;
        self
    }

    /// The target where a request names none: the value of `INSPECT_TARGET`. By default, and where that is a file,
    /// the one process beneath the roots that is an application, if there is one.
    #[must_use]
    pub fn target(mut self, target: Option<String>) -> Self {
        self.target = target.filter(|target| !target.is_empty() && !target.starts_with("file:"));
        self
    }

    /// Whether a Java virtual machine may be sent the signal at which it makes its attach socket. False by default.
    #[must_use]
    pub fn allow_signals(mut self, allowed: bool) -> Self {
        self.allow_signals = allowed;
        self
    }

    /// The same, beneath the roots of `workspace`.
    #[must_use]
    pub fn within(&self, workspace: Arc<Workspace>) -> Self {
        Self { programs: Programs { workspace, ..self.programs.clone() }, ..self.clone() }
    }

    /// Whether any process of this user may be a target, or only those that run beneath the roots. False by default.
    #[must_use]
    pub fn unrestricted(mut self, unrestricted: bool) -> Self {
        self.unrestricted = unrestricted;
        self
    }

    /// Takes a profile.
    ///
    /// # Errors
    /// There is none; [`Error::to_refusal`] says why and what to do. The target is as it was before.
    pub async fn capture(
        &self,
        request: &CaptureTrace,
        cancel: &CancellationToken,
    ) -> Result<Capture, Error> {
        let began = Instant::now();
        let duration = request.duration()?;
        let subject = tokio::select! {
            subject = self.subject(request.target.as_deref()) => subject?,
            () = cancel.cancelled() => return Err(Error::Cancelled),
        };
        let _place = Place::take(&self.busy, &subject)?;
        let runtime = subject.runtime();
        let pid = subject.process.as_ref().map(|process| process.pid);
        let files = self.artifacts.begin(runtime, pid.unwrap_or_default(), request.kind.name()).map_err(
            |source| Error::Keep { folder: self.artifacts.folder().display().to_string(), source },
        )?;
        let roots: Vec<PathBuf> = self.programs.workspace.roots().map(Path::to_owned).collect();
        let shown: Vec<&Path> = roots.iter().map(PathBuf::as_path).collect();
        let run = Run {
            process: subject.process.as_ref(),
            kind: request.kind,
            duration,
            cancel,
            files: &files,
            programs: &self.programs,
            roots: &shown,
        };
        let before = pid.and_then(cpu_time);
        let looking = Instant::now();
        let mut taken = self.take(&run, &subject, request).await?;
        let after = pid.and_then(cpu_time);
        let looked = looking.elapsed();
        let used = before.zip(after).map(|(before, after)| after.saturating_sub(before));
        let used = taken.used.or(used);
        let drawn = match taken.cpu.take() {
            Some(cpu) => {
                let title = title(runtime, pid, taken.lasted, cpu.samples);
                let (places, lasted) = (std::mem::take(&mut taken.places), taken.lasted);
                let (image, roots) = (request.image, roots.clone());
                blocking(move || draw(&cpu, &places, &title, lasted, used, image, &roots)).await.map(Some)?
            }
            None => None,
        };
        let kept = self.keep(request, &files, &taken, drawn.as_ref())?;
        let (summary, image) = match (drawn, taken.summary.take()) {
            (Some(drawn), _) => (Summary::Cpu(drawn.summary), drawn.image),
            (None, Some(summary)) => (summary, None),
            (None, None) => {
                (Summary::Cpu(CpuSummary { cpu_ms: used.map(millis), ..CpuSummary::default() }), None)
            }
        };
        let mut warnings = taken.warnings;
        let extra = began.elapsed().saturating_sub(duration);
        if extra > UNEXPLAINED {
            warnings.push(format!(
                "this took {} ms more than it looked: {} ms to find the target, {} ms beside the capture to start and read \
                 the profiler, the rest to sum up and draw",
                millis(extra),
                millis(looking.duration_since(began)),
                millis(looked.saturating_sub(taken.lasted)),
            ));
        }
        self.artifacts.prune(&files);
        let profile = ProfileData {
            kind: request.kind,
            runtime,
            pid,
            format: taken.format,
            encoding: if kept.data.is_some() { "base64" } else { "file" },
            data: kept.data,
            path: files.path(taken.extension).display().to_string(),
            bytes: files.length(taken.extension),
            flame_graph: kept.graph,
            duration_ms: millis(taken.lasted),
            samples: taken.samples,
            paused_ms: taken.paused.map(millis),
            summary,
            warnings,
        };
        files.keep();
        Ok(Capture { profile, image })
    }

    /// The way that fits runtime and kind.
    async fn take(&self, run: &Run<'_>, subject: &Subject, request: &CaptureTrace) -> Result<Taken, Error> {
        let unsupported = |reason: &str, remedy: &str| Error::Unsupported {
            kind: request.kind.name(),
            what: subject.shown(),
            reason: reason.to_owned(),
            remedy: remedy.to_owned(),
        };
        if request.snapshot && (request.kind != TraceType::Heap || subject.inspector.is_none()) {
            return Err(unsupported(
                "`snapshot` is for the heap of a process with an inspector",
                "leave it out, or start Node.js with --inspect=127.0.0.1:0",
            ));
        }
        if let Some(url) = &subject.inspector {
            return match (request.kind, subject.runtime_of()) {
                (TraceType::Network, Some(Runtime::Deno)) => requests_of_deno(run, url).await,
                _ => node::capture(run, url, request.snapshot).await,
            };
        }
        if run.process.is_none() {
            return match (request.kind, &subject.pprof) {
                (TraceType::Cpu, Some(endpoint)) => go::cpu(run, endpoint).await,
                (TraceType::Heap, Some(endpoint)) => go::heap(run, endpoint).await,
                _ => Err(unsupported(
                    "the process behind it cannot be seen",
                    "give its process id as `target`: pid:N",
                )),
            };
        }
        const INSPECT: &str = "start it with `node --inspect=127.0.0.1:0`";
        #[cfg(unix)]
        let may_signal = self.allow_signals && self.unrestricted;
        let map = |why: &str| format!("memory by mapping only: {why}");
        match (request.kind, subject.runtime_of()) {
            (TraceType::Network, Some(Runtime::Node | Runtime::Deno)) => {
                let note = format!("connections only: for requests {INSPECT}");
                connections(run, vec![note]).await
            }
            (TraceType::Network, _) => connections(run, Vec::new()).await,
            (TraceType::Cpu | TraceType::Heap, Some(Runtime::Node | Runtime::Deno)) => {
                Err(unsupported("it has no inspector open", INSPECT))
            }
            (TraceType::Cpu, Some(Runtime::Python)) => python::cpu(run).await,
            #[cfg(unix)]
            (TraceType::Cpu, Some(Runtime::Jvm)) => jvm::cpu(run, may_signal).await,
            #[cfg(unix)]
            (TraceType::Heap, Some(Runtime::Jvm)) => jvm::heap(run, may_signal).await,
            #[cfg(not(unix))]
            (TraceType::Cpu | TraceType::Heap, Some(Runtime::Jvm)) => {
                Err(unsupported("a JVM is attached to through a Unix socket", "use jcmd"))
            }
            (TraceType::Cpu, Some(Runtime::Go)) => match &subject.pprof {
                Some(endpoint) => go::cpu(run, endpoint).await,
                None => native::cpu(run, Unwind::FramePointers).await,
            },
            (TraceType::Heap, Some(Runtime::Go)) => match &subject.pprof {
                Some(endpoint) => go::heap(run, endpoint).await,
                None => {
                    memory::heap(
                        run,
                        map("for allocations import _ \"net/http/pprof\" and serve it on 127.0.0.1"),
                    )
                    .await
                }
            },
            (TraceType::Heap, Some(Runtime::Python)) => {
                memory::heap(run, map("for objects use tracemalloc in the program, or memray")).await
            }
            (TraceType::Heap, None) => {
                memory::heap(run, map("this server's allocator keeps no account of who allocated")).await
            }
            (TraceType::Heap, Some(Runtime::Native)) => {
                memory::heap(run, map("for allocations use heaptrack, or the allocator's own profiler")).await
            }
            (TraceType::Cpu, Some(Runtime::Native) | None) => native::cpu(run, Unwind::Tables).await,
        }
    }

    fn keep(
        &self,
        request: &CaptureTrace,
        files: &Files,
        taken: &Taken,
        drawn: Option<&Drawn>,
    ) -> Result<Kept, Error> {
        let unkept = |source| Error::Keep { folder: self.artifacts.folder().display().to_string(), source };
        let graph = match drawn {
            Some(drawn) => {
                // What perf writes needs this machine's programs to be read; this does not.
                files.write("folded", drawn.folded.as_bytes()).map_err(unkept)?;
                let path = files.write("svg", drawn.svg.as_bytes()).map_err(unkept)?;
                Some(path.display().to_string())
            }
            None => None,
        };
        let data = match request.data && files.length(taken.extension) <= MOST_DATA {
            true => Some(STANDARD.encode(files.read(taken.extension, MOST_DATA).map_err(unkept)?)),
            false => None,
        };
        Ok(Kept { graph, data })
    }
}

/// Requests, and the connections beside them: Deno's own `fetch` and `Deno.serve` tell nobody of their requests.
async fn requests_of_deno(run: &Run<'_>, url: &Url) -> Result<Taken, Error> {
    let (requests, seen) = tokio::join!(node::capture(run, url, false), connections(run, Vec::new()));
    let (mut taken, seen) = (requests?, seen?);
    if let (Some(Summary::Network(told)), Some(Summary::Network(seen))) = (&mut taken.summary, seen.summary) {
        told.connections = seen.connections;
    }
    let note = "requests are those of node:http; those of Deno's own `fetch` and `Deno.serve` are told as connections";
    taken.warnings.push(note.to_owned());
    taken.warnings.extend(seen.warnings);
    Ok(taken)
}

/// The connections of a process.
#[cfg(target_os = "linux")]
async fn connections(run: &Run<'_>, warnings: Vec<String>) -> Result<Taken, Error> {
    sockets::network(run, warnings).await
}

/// Elsewhere no process is found, and so this is not asked for.
#[cfg(not(target_os = "linux"))]
async fn connections(run: &Run<'_>, _warnings: Vec<String>) -> Result<Taken, Error> {
    Err(run.gone(Duration::ZERO))
}

/// What is in the folder.
struct Kept {
    graph: Option<String>,
    data: Option<String>,
}

/// A CPU profile, summed up and drawn.
struct Drawn {
    summary: CpuSummary,
    folded: String,
    svg: String,
    image: Option<Vec<u8>>,
}

fn title(runtime: &str, pid: Option<u32>, lasted: Duration, samples: u64) -> Title {
    let pid = pid.map(|pid| format!(" {pid}")).unwrap_or_default();
    Title {
        title: format!("CPU of {runtime}{pid}"),
        note: format!(
            "{:.1} s, {samples} samples, without idle time; callers below what they call",
            lasted.as_secs_f64()
        ),
    }
}

fn draw(
    cpu: &Cpu,
    places: &[native::Place],
    title: &Title,
    lasted: Duration,
    used: Option<Duration>,
    image: bool,
    roots: &[PathBuf],
) -> Drawn {
    let roots: Vec<&Path> = roots.iter().map(PathBuf::as_path).collect();
    let mut summary = CpuSummary::of(&cpu.tree, &roots);
    summary.cpu_ms = used.map(millis);
    let whole = micros(lasted);
    summary.gc_pct = cpu.gc_us.map(|gc| profile::percent(gc, whole));
    summary.idle_pct = match (cpu.idle_us, used) {
        (Some(idle), _) => Some(profile::percent(idle.min(whole), whole)),
        // What did not run on a processor waited.
        (None, Some(used)) => Some(profile::percent(whole.saturating_sub(micros(used)), whole)),
        (None, None) => None,
    };
    summary.locate(places, &roots);
    let amount = |micros: u64| format!("{}.{} ms", micros / 1000, micros % 1000 / 100);
    Drawn {
        summary,
        folded: cpu.tree.to_folded(),
        svg: flame::svg(&cpu.tree, title, amount),
        image: image.then(|| flame::png(&cpu.tree, title, amount)),
    }
}

/// A place among the captures that run, given back when dropped.
struct Place {
    busy: Arc<Mutex<HashSet<u32>>>,
    key: u32,
}

impl Place {
    fn take(busy: &Arc<Mutex<HashSet<u32>>>, subject: &Subject) -> Result<Self, Error> {
        let key = subject.key();
        if busy.lock().unwrap_or_else(PoisonError::into_inner).insert(key) {
            Ok(Self { busy: Arc::clone(busy), key })
        } else {
            Err(Error::Busy { pid: key, by: "by this server".to_owned() })
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}
