//! [`Profiler`]: takes a profile with the profiler that fits the target.

use super::artifacts::{ProfileFiles, ProfileFolder};
use super::call_tree::FunctionLocation;
use super::capture_run::{CaptureOutput, CaptureRun, blocking, cpu_time, micros, millis};
use super::error::Error;
use super::flame::{self, FlameGraphTitle};
#[cfg(unix)]
use super::jvm;
use super::native::{self, UnwindMethod};
use super::parse::CpuProfile;
use super::profile::{self, CpuSummary, ProfileData, ProfileSummary};
use super::programs::ProfilerPrograms;
use super::request::{CaptureTrace, TraceType};
use super::resolve::{ResolvedTarget, TargetResolver};
#[cfg(target_os = "linux")]
use super::sockets;
use super::{go, memory, node, python};
use crate::inspect::target::{LanguageRuntime, TargetUrl};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use process_runner::Runner;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use workspace::Workspace;

/// The time that a capture may take beyond its duration without a warning.
const MAX_OVERHEAD: Duration = Duration::from_millis(1500);
/// The maximum size of a source whose lines are shown, in bytes.
const MAX_SOURCE_BYTES: u64 = 4 << 20;
/// The length of such a line, in characters.
const MAX_LINE_CHARS: usize = 120;
/// The maximum size of a profile that is answered in base64, in bytes.
const MAX_INLINE_BYTES: u64 = 64 << 10;

/// Takes profiles. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Profiler {
    programs: ProfilerPrograms,
    artifacts: ProfileFolder,
    /// The target of requests that name none.
    target: Option<String>,
    unrestricted: bool,
    allow_signals: bool,
    /// The keys of the targets that are being captured.
    active: Arc<Mutex<HashSet<u32>>>,
}

/// The result of a capture.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CapturedTrace {
    /// The profile.
    pub profile: ProfileData,
    /// The flame graph as PNG, for a CPU profile that asked for it.
    pub image: Option<Vec<u8>>,
}

impl Profiler {
    /// Creates a profiler of processes beneath the roots of `workspace`, which stores profiles in `folder` and runs
    /// programs with `runner`.
    pub fn new(workspace: Arc<Workspace>, runner: Runner, folder: impl Into<PathBuf>) -> Self {
        Self {
            programs: ProfilerPrograms { runner, path: None, workspace },
            artifacts: ProfileFolder::new(folder.into()),
            target: None,
            unrestricted: false,
            allow_signals: false,
            active: Arc::default(),
        }
    }

    /// Sets the folders in which profilers are searched: the value of `PATH`. None by default.
    #[must_use]
    pub fn path(mut self, path: Option<OsString>) -> Self {
        self.programs.path = path;
        self
    }

    /// Sets the target of requests that name none: the value of `INSPECT_TARGET`. By default, and if the value is a
    /// file, the target is the only application that runs beneath the roots.
    #[must_use]
    pub fn target(mut self, target: Option<String>) -> Self {
        self.target = target.filter(|target| !target.is_empty() && !target.starts_with("file:"));
        self
    }

    /// Allows sending a Java virtual machine the signal at which it creates its attach socket. False by default.
    #[must_use]
    pub fn allow_signals(mut self, allowed: bool) -> Self {
        self.allow_signals = allowed;
        self
    }

    /// Returns the same profiler for processes beneath the roots of `workspace`.
    #[must_use]
    pub fn within(&self, workspace: Arc<Workspace>) -> Self {
        Self { programs: ProfilerPrograms { workspace, ..self.programs.clone() }, ..self.clone() }
    }

    /// Allows every process of this user as a target, not only those that run beneath the roots. False by default.
    #[must_use]
    pub fn unrestricted(mut self, unrestricted: bool) -> Self {
        self.unrestricted = unrestricted;
        self
    }

    fn resolver(&self) -> TargetResolver {
        TargetResolver {
            workspace: Arc::clone(&self.programs.workspace),
            default_target: self.target.clone(),
            unrestricted: self.unrestricted,
        }
    }

    /// Takes a profile and stores it.
    ///
    /// # Errors
    /// The capture failed; [`Error::to_report`] has the reason and advice. The target is as it was before.
    pub async fn capture(
        &self,
        request: &CaptureTrace,
        cancel: &CancellationToken,
    ) -> Result<CapturedTrace, Error> {
        let started = Instant::now();
        let duration = request.duration()?;
        let resolver = self.resolver();
        let target = tokio::select! {
            target = resolver.resolve(request.target.as_deref()) => target?,
            () = cancel.cancelled() => return Err(Error::Cancelled),
        };
        // Its connections are seen from outside.
        if let Some(process) = target.process.as_ref().filter(|_| request.kind != TraceType::Network) {
            process.check_not_stopped()?;
        }
        let _lock = CaptureLock::acquire(&self.active, &target)?;
        let runtime = target.runtime_name();
        let pid = target.process.as_ref().map(|process| process.pid);
        let files = self.artifacts.new_files(runtime, pid.unwrap_or_default(), request.kind.name()).map_err(
            |source| Error::Store { folder: self.artifacts.folder().display().to_string(), source },
        )?;
        let roots: Vec<PathBuf> = self.programs.workspace.roots().map(Path::to_owned).collect();
        let root_paths: Vec<&Path> = roots.iter().map(PathBuf::as_path).collect();
        let run = CaptureRun {
            process: target.process.as_ref(),
            kind: request.kind,
            duration,
            cancel,
            files: &files,
            programs: &self.programs,
            roots: &root_paths,
        };
        // Measured around the whole profiler; one that costs the target CPU time returns its own measurement.
        let before = pid.and_then(cpu_time);
        let profiling = Instant::now();
        let mut captured = self.run_profiler(&run, &target, request).await?;
        let after = pid.and_then(cpu_time);
        let profiled = profiling.elapsed();
        let measured = before.zip(after).map(|(before, after)| after.saturating_sub(before));
        let used_cpu = captured.used_cpu.or(measured);
        let mut drawn = match captured.cpu.take() {
            Some(cpu) => {
                let title = title(runtime, pid, captured.elapsed, cpu.samples);
                let (locations, elapsed) = (std::mem::take(&mut captured.locations), captured.elapsed);
                let (image, roots) = (request.image, roots.clone());
                // A large tree takes hundreds of milliseconds to sum up and draw.
                blocking(move || draw(&cpu, &locations, &title, elapsed, used_cpu, image, &roots))
                    .await
                    .map(Some)?
            }
            None => None,
        };
        let stored = self.store(request, &files, &captured, drawn.as_ref())?;
        let is_v8 = matches!(target.runtime(), Some(LanguageRuntime::Node | LanguageRuntime::Deno))
            || target.inspector.is_some();
        if let Some(drawn) = &mut drawn {
            captured.warnings.extend(cpu_notes(&drawn.summary, drawn.sampled, is_v8));
            self.add_texts(&mut drawn.summary);
        }
        let (summary, image) = match (drawn, captured.summary.take()) {
            (Some(drawn), _) => (ProfileSummary::Cpu(drawn.summary), drawn.image),
            (None, Some(summary)) => (summary, None),
            (None, None) => (
                ProfileSummary::Cpu(CpuSummary { cpu_ms: used_cpu.map(millis), ..CpuSummary::default() }),
                None,
            ),
        };
        let mut warnings: Vec<String> = target.note.iter().cloned().chain(captured.warnings).collect();
        let extra = started.elapsed().saturating_sub(duration);
        if extra > MAX_OVERHEAD {
            warnings.push(format!(
                "the capture took {} ms longer than its duration: {} ms to find the target, {} ms to start the profiler and \
                 read the profile, the rest to summarise and draw it",
                millis(extra),
                millis(profiling.duration_since(started)),
                millis(profiled.saturating_sub(captured.elapsed)),
            ));
        }
        // Pruning spares `files`, and comes before the answer names them. Until `persist` an error removes them.
        self.artifacts.prune(&files);
        let profile = ProfileData {
            kind: request.kind,
            runtime,
            pid,
            format: captured.format,
            encoding: if stored.data.is_some() { "base64" } else { "file" },
            data: stored.data,
            path: files.path(captured.extension).display().to_string(),
            bytes: files.length(captured.extension),
            flame_graph: stored.graph,
            duration_ms: millis(captured.elapsed),
            samples: captured.samples,
            paused_ms: captured.paused.map(millis),
            summary,
            warnings,
        };
        files.persist();
        Ok(CapturedTrace { profile, image })
    }

    /// Runs the profiler for the target's runtime and the kind of profile.
    async fn run_profiler(
        &self,
        run: &CaptureRun<'_>,
        target: &ResolvedTarget,
        request: &CaptureTrace,
    ) -> Result<CaptureOutput, Error> {
        let unsupported = |reason: &str, remedy: &str| Error::Unsupported {
            kind: request.kind.name(),
            what: target.display_name(),
            reason: reason.to_owned(),
            remedy: remedy.to_owned(),
        };
        if request.snapshot && (request.kind != TraceType::Heap || target.inspector.is_none()) {
            return Err(unsupported(
                "`snapshot` is for the heap of a process with an inspector",
                "leave it out, or start Node.js with --inspect=127.0.0.1:0",
            ));
        }
        if let Some(url) = &target.inspector {
            return match (request.kind, target.runtime()) {
                (TraceType::Network, Some(LanguageRuntime::Deno)) => requests_of_deno(run, url).await,
                _ => node::capture(run, url, request.snapshot).await,
            };
        }
        // The listener is there and its process cannot be read: only what is served over the port is left.
        if run.process.is_none() {
            return match (request.kind, &target.pprof) {
                (TraceType::Cpu, Some(endpoint)) => go::cpu(run, endpoint).await,
                (TraceType::Heap, Some(endpoint)) => go::heap(run, endpoint).await,
                _ => Err(unsupported(
                    "the process behind it cannot be seen",
                    "give its process id as `target`: pid:N",
                )),
            };
        }
        const INSPECT_REMEDY: &str = "start it with `node --inspect=127.0.0.1:0`";
        #[cfg(unix)]
        let may_signal = self.allow_signals && self.unrestricted;
        let mapping_note = |why: &str| format!("memory by mapping only: {why}");
        match (request.kind, target.runtime()) {
            (TraceType::Network, Some(LanguageRuntime::Node | LanguageRuntime::Deno)) => {
                let note = format!("connections only: for requests {INSPECT_REMEDY}");
                connections(run, vec![note]).await
            }
            (TraceType::Network, _) => connections(run, Vec::new()).await,
            (TraceType::Cpu | TraceType::Heap, Some(LanguageRuntime::Node | LanguageRuntime::Deno)) => {
                Err(unsupported("it has no inspector open", INSPECT_REMEDY))
            }
            (TraceType::Cpu, Some(LanguageRuntime::Python)) => python::cpu(run).await,
            #[cfg(unix)]
            (TraceType::Cpu, Some(LanguageRuntime::Jvm)) => jvm::cpu(run, may_signal).await,
            #[cfg(unix)]
            (TraceType::Heap, Some(LanguageRuntime::Jvm)) => jvm::heap(run, may_signal).await,
            #[cfg(not(unix))]
            (TraceType::Cpu | TraceType::Heap, Some(LanguageRuntime::Jvm)) => {
                Err(unsupported("a JVM is attached to through a Unix socket", "use jcmd"))
            }
            (TraceType::Cpu, Some(LanguageRuntime::Go)) => match &target.pprof {
                Some(endpoint) => go::cpu(run, endpoint).await,
                None => native::cpu(run, UnwindMethod::FramePointers).await,
            },
            (TraceType::Heap, Some(LanguageRuntime::Go)) => match &target.pprof {
                Some(endpoint) => go::heap(run, endpoint).await,
                None => {
                    memory::heap(
                        run,
                        mapping_note("for allocations import _ \"net/http/pprof\" and serve it on 127.0.0.1"),
                    )
                    .await
                }
            },
            (TraceType::Heap, Some(LanguageRuntime::Python)) => {
                memory::heap(run, mapping_note("for objects use tracemalloc in the program, or memray")).await
            }
            (TraceType::Heap, None) => {
                memory::heap(run, mapping_note("this server's allocator keeps no account of who allocated"))
                    .await
            }
            (TraceType::Heap, Some(LanguageRuntime::Native)) => {
                memory::heap(
                    run,
                    mapping_note("for allocations use heaptrack, or the allocator's own profiler"),
                )
                .await
            }
            (TraceType::Cpu, Some(LanguageRuntime::Native) | None) => {
                native::cpu(run, UnwindMethod::Tables).await
            }
        }
    }

    /// Adds the text of hot lines. With several roots a relative path does not tell which one it is beneath.
    fn add_texts(&self, summary: &mut CpuSummary) {
        let workspace = &self.programs.workspace;
        if workspace.roots().len() > 1 {
            return;
        }
        let mut texts: HashMap<String, Option<String>> = HashMap::new();
        summary.add_texts(|file, line| {
            if file.starts_with('/') || file.contains(':') {
                return None;
            }
            let text = texts.entry(file.to_owned()).or_insert_with(|| {
                let (source, _) = workspace.locate(file).ok()?.open_read().ok()?;
                let mut bytes = Vec::new();
                source.take(MAX_SOURCE_BYTES).read_to_end(&mut bytes).ok()?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            });
            let line = text.as_deref()?.lines().nth(usize::try_from(line.checked_sub(1)?).ok()?)?.trim();
            Some(line.chars().take(MAX_LINE_CHARS).collect())
        });
    }

    /// Stores the flame graph, and reads a small profile for the answer.
    fn store(
        &self,
        request: &CaptureTrace,
        files: &ProfileFiles,
        captured: &CaptureOutput,
        drawn: Option<&DrawnProfile>,
    ) -> Result<StoredProfile, Error> {
        let store_error =
            |source| Error::Store { folder: self.artifacts.folder().display().to_string(), source };
        let graph = match drawn {
            Some(drawn) => {
                // perf.data can only be read with this machine's programs; folded stacks can be read everywhere.
                files.write("folded", drawn.folded.as_bytes()).map_err(store_error)?;
                let path = files.write("svg", drawn.svg.as_bytes()).map_err(store_error)?;
                Some(path.display().to_string())
            }
            None => None,
        };
        let data = match request.data && files.length(captured.extension) <= MAX_INLINE_BYTES {
            true => {
                Some(STANDARD.encode(files.read(captured.extension, MAX_INLINE_BYTES).map_err(store_error)?))
            }
            false => None,
        };
        Ok(StoredProfile { graph, data })
    }
}

/// Collects requests and connections: Deno's own `fetch` and `Deno.serve` publish no requests.
async fn requests_of_deno(run: &CaptureRun<'_>, url: &TargetUrl) -> Result<CaptureOutput, Error> {
    let (requests, tracked) = tokio::join!(node::capture(run, url, false), connections(run, Vec::new()));
    let (mut captured, tracked) = (requests?, tracked?);
    if let (Some(ProfileSummary::Network(requests)), Some(ProfileSummary::Network(connections))) =
        (&mut captured.summary, tracked.summary)
    {
        requests.connections = connections.connections;
        // The connections to the inspector are ours, and those of other debuggers.
        requests.connections.retain(|peer| peer.direction != "in" || peer.port != Some(url.port()));
    }
    let note = "requests are those of node:http; those of Deno's own `fetch` and `Deno.serve` are listed as connections";
    captured.warnings.push(note.to_owned());
    captured.warnings.extend(tracked.warnings);
    Ok(captured)
}

/// Tracks the connections of a process.
#[cfg(target_os = "linux")]
async fn connections(run: &CaptureRun<'_>, warnings: Vec<String>) -> Result<CaptureOutput, Error> {
    sockets::network(run, warnings).await
}

/// Returns an error: on other systems no process is found, so this is never called.
#[cfg(not(target_os = "linux"))]
async fn connections(run: &CaptureRun<'_>, _warnings: Vec<String>) -> Result<CaptureOutput, Error> {
    Err(run.target_exited(Duration::ZERO))
}

/// The files and data of an answer.
struct StoredProfile {
    graph: Option<String>,
    data: Option<String>,
}

/// The summary and the drawings of a CPU profile.
struct DrawnProfile {
    summary: CpuSummary,
    /// The time of all samples that were not idle.
    sampled: Duration,
    folded: String,
    svg: String,
    image: Option<Vec<u8>>,
}

/// Returns what a reader has to know to understand the numbers of a CPU profile.
fn cpu_notes(summary: &CpuSummary, sampled: Duration, is_v8: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if is_v8 {
        let note = "a function that V8 has inlined counts for its caller; `hot_lines` are the lines that ran, also those of \
                    inlined functions";
        notes.push(note.to_owned());
    }
    let sampled_ms = millis(sampled);
    if let Some(cpu_ms) = summary.cpu_ms.filter(|cpu_ms| *cpu_ms > sampled_ms + sampled_ms / 3 + 20) {
        notes.push(format!(
            "cpu_ms is the processor time of the whole process, {cpu_ms} ms, with the threads of the compiler, the garbage \
             collector and the profiler; the {sampled_ms} ms of the functions are those of the sampled thread"
        ));
    }
    // V8 samples a thread that works, also while the thread waits for a processor.
    if let Some(cpu_ms) = summary.cpu_ms.filter(|cpu_ms| is_v8 && sampled_ms > cpu_ms + cpu_ms / 2 + 50) {
        notes.push(format!(
            "the functions were at work for {sampled_ms} ms, in which the process got {cpu_ms} ms of processor time: it waited for \
             a processor the rest of the time, and that waiting counts as time of the functions"
        ));
    }
    notes
}

/// Returns the title of a flame graph.
fn title(runtime: &str, pid: Option<u32>, elapsed: Duration, samples: u64) -> FlameGraphTitle {
    let pid = pid.map(|pid| format!(" {pid}")).unwrap_or_default();
    FlameGraphTitle {
        title: format!("CPU of {runtime}{pid}"),
        note: format!(
            "{:.1} s, {samples} samples, without idle time; callers below what they call",
            elapsed.as_secs_f64()
        ),
    }
}

/// Summarises and draws a CPU profile.
fn draw(
    cpu: &CpuProfile,
    locations: &[FunctionLocation],
    title: &FlameGraphTitle,
    elapsed: Duration,
    used_cpu: Option<Duration>,
    image: bool,
    roots: &[PathBuf],
) -> DrawnProfile {
    let roots: Vec<&Path> = roots.iter().map(PathBuf::as_path).collect();
    let mut summary = CpuSummary::from_tree(&cpu.tree, &roots);
    summary.cpu_ms = used_cpu.map(millis);
    let whole = micros(elapsed);
    summary.gc_pct = cpu.gc_us.map(|gc| profile::percent(gc, whole));
    summary.idle_pct = match (cpu.idle_us, used_cpu) {
        (Some(idle), _) => Some(profile::percent(idle.min(whole), whole)),
        // The time that was not spent on a processor was spent waiting.
        (None, Some(used_cpu)) => Some(profile::percent(whole.saturating_sub(micros(used_cpu)), whole)),
        (None, None) => None,
    };
    summary.set_locations(locations, &roots);
    let format_weight = |micros: u64| format!("{}.{} ms", micros / 1000, micros % 1000 / 100);
    DrawnProfile {
        summary,
        sampled: Duration::from_micros(cpu.tree.total()),
        folded: cpu.tree.to_folded(),
        svg: flame::svg(&cpu.tree, title, format_weight),
        image: image.then(|| flame::png(&cpu.tree, title, format_weight)),
    }
}

/// A lock on the capture of a target; dropping it releases the target.
struct CaptureLock {
    active: Arc<Mutex<HashSet<u32>>>,
    key: u32,
}

impl CaptureLock {
    /// Locks the target, or fails where it is being captured.
    fn acquire(active: &Arc<Mutex<HashSet<u32>>>, target: &ResolvedTarget) -> Result<Self, Error> {
        // Two captures of one target at a time would measure each other.
        let key = target.lock_key();
        if active.lock().unwrap_or_else(PoisonError::into_inner).insert(key) {
            Ok(Self { active: Arc::clone(active), key })
        } else {
            Err(Error::Busy { pid: key, by: "by this server".to_owned() })
        }
    }
}

impl Drop for CaptureLock {
    fn drop(&mut self) {
        self.active.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_functions_that_differs_from_processor_time_is_told() {
        let notes = |cpu_ms: u64, sampled: u64, is_v8: bool| {
            let summary = CpuSummary { cpu_ms: Some(cpu_ms), ..CpuSummary::default() };
            cpu_notes(&summary, Duration::from_millis(sampled), is_v8).join("\n")
        };
        assert!(notes(160, 1000, true).contains("waited for a processor"));
        assert!(!notes(160, 1000, false).contains("waited for a processor"));
        assert!(notes(1000, 160, true).contains("processor time of the whole process"));
        for (cpu_ms, sampled) in [(1000, 1000), (900, 1000), (10, 50)] {
            assert!(
                !notes(cpu_ms, sampled, true).contains("cpu_ms")
                    && !notes(cpu_ms, sampled, true).contains("waited")
            );
        }
    }
}
