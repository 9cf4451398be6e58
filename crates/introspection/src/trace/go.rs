//! Profiles of Go programs that serve `net/http/pprof`.

use super::capture_run::{CaptureOutput, CaptureRun, CaptureWaitOutcome, blocking, millis};
use super::error::Error;
use super::parse::CpuProfile;
use super::parse::pprof::{self, PprofProfile};
use super::profile::{HeapSummary, ProfileSummary};
use crate::inspect::http;
use crate::inspect::target::{Process, TargetUrl};
use std::time::{Duration, Instant};

/// The time that an answer may take beyond the duration of the profile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for a port to show that it serves profiles.
const PROBE_TIMEOUT: Duration = Duration::from_millis(1500);
/// The maximum number of ports that are probed.
const MAX_PORTS: usize = 8;
/// The maximum size of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 64 << 20;
const FOLDER: &str = "/debug/pprof/";
const FILE: &str = "pprof";

/// The address at which a Go program serves its profiles.
#[derive(Clone, Debug)]
pub(super) struct PprofEndpoint(TargetUrl);

impl PprofEndpoint {
    /// Finds the endpoint of `process` among the ports that it listens on.
    pub(super) async fn find(process: &Process) -> Option<Self> {
        for address in process.local_ports().into_iter().take(MAX_PORTS) {
            let endpoint = Self(TargetUrl::local("http", address, FOLDER));
            if endpoint.is_served().await {
                return Some(endpoint);
            }
        }
        None
    }

    /// Finds the endpoint at the host and port of `url`, whatever its path is.
    pub(super) async fn at_url(url: &TargetUrl) -> Option<Self> {
        for address in url.loopback() {
            let endpoint = Self(TargetUrl::local("http", address, FOLDER));
            if endpoint.is_served().await {
                return Some(endpoint);
            }
        }
        None
    }

    /// Returns true if profiles are served. The page `symbol` is asked, as it costs the program nothing.
    async fn is_served(&self) -> bool {
        self.get("symbol", PROBE_TIMEOUT).await.is_ok_and(|body| body.starts_with(b"num_symbols:"))
    }

    async fn get(&self, page: &str, limit: Duration) -> Result<Vec<u8>, http::HttpGetError> {
        let addresses = self.0.loopback();
        let url =
            addresses.first().map(|address| TargetUrl::local("http", *address, &format!("{FOLDER}{page}")));
        let url = url.unwrap_or_else(|| self.0.clone());
        http::get_within(&url, &addresses, MAX_ANSWER_BYTES, limit).await
    }
}

/// Takes a CPU profile. The profiler in the program ends with the connection.
pub(super) async fn cpu(run: &CaptureRun<'_>, endpoint: &PprofEndpoint) -> Result<CaptureOutput, Error> {
    // net/http/pprof takes whole seconds.
    let seconds = run.duration.as_secs() + u64::from(run.duration.subsec_nanos() > 0);
    let page = format!("profile?seconds={seconds}");
    // Rounded up, so that the profile covers at least the time that was asked for.
    let elapsed = Duration::from_secs(seconds);
    let bytes = fetch(run, endpoint, &page, elapsed + ANSWER_TIMEOUT).await?;
    run.files.write(FILE, &bytes).map_err(|error| run.store_error(error))?;
    let profile = parse(bytes).await?;
    let mut captured = CaptureOutput { format: FILE, extension: FILE, elapsed, ..CaptureOutput::default() };
    if elapsed != run.duration {
        captured
            .warnings
            .push(format!("Go's profiler counts whole seconds: {} ms were taken", millis(elapsed)));
    }
    let samples = u64::try_from(profile.sum("samples")).unwrap_or_default();
    // Nanoseconds to microseconds. Go's profiler samples 100 times a second.
    let tree = blocking(move || profile.tree("cpu", 1, 1000)).await?;
    captured.samples = Some(samples);
    captured.cpu = Some(CpuProfile { tree, samples, interval_us: Some(10_000), idle_us: None, gc_us: None });
    Ok(captured)
}

/// Takes a heap profile at the beginning and at the end. Each collects garbage, so that only live objects are in it.
pub(super) async fn heap(run: &CaptureRun<'_>, endpoint: &PprofEndpoint) -> Result<CaptureOutput, Error> {
    let started = Instant::now();
    let before = parse(fetch(run, endpoint, "heap?gc=1", ANSWER_TIMEOUT).await?).await?;
    if let CaptureWaitOutcome::TargetExited(after) = run.wait(run.duration).await? {
        return Err(run.target_exited(after));
    }
    let elapsed = started.elapsed();
    let bytes = fetch(run, endpoint, "heap?gc=1", ANSWER_TIMEOUT).await?;
    run.files.write(FILE, &bytes).map_err(|error| run.store_error(error))?;
    let after = parse(bytes).await?;
    let live_bytes = |profile: &PprofProfile| u64::try_from(profile.sum("inuse_space")).unwrap_or_default();
    let roots: Vec<std::path::PathBuf> = run.roots.iter().map(|root| root.to_path_buf()).collect();
    let used = [live_bytes(&before), live_bytes(&after)];
    let allocated = after.sum("alloc_space").saturating_sub(before.sum("alloc_space"));
    let summary = blocking(move || {
        let roots: Vec<_> = roots.iter().map(std::path::PathBuf::as_path).collect();
        HeapSummary::from_allocations(&after.tree("inuse_space", 1, 1), &roots)
    })
    .await?;
    let summary = HeapSummary { used_bytes: Some(used), ..summary };
    let mut captured = CaptureOutput { format: FILE, extension: FILE, elapsed, ..CaptureOutput::default() };
    captured.warnings.push(format!(
        "sampled, one allocation in 512 KiB unless the program says otherwise; {allocated} bytes were allocated meanwhile; \
         a collection ran before each of the two profiles"
    ));
    captured.summary = Some(ProfileSummary::Heap(summary));
    Ok(captured)
}

/// Fetches a profile, until the capture is cancelled.
async fn fetch(
    run: &CaptureRun<'_>,
    endpoint: &PprofEndpoint,
    page: &str,
    limit: Duration,
) -> Result<Vec<u8>, Error> {
    let started = Instant::now();
    let answer = tokio::select! {
        answer = endpoint.get(page, limit) => answer,
        () = run.cancel.cancelled() => return Err(Error::Cancelled),
    };
    answer.map_err(|error| {
        if run.process.is_some_and(|process| !process.is_running()) {
            return run.target_exited(started.elapsed());
        }
        if matches!(error, http::HttpGetError::Status(500)) {
            // net/http/pprof answers with this status while its profiler is in use.
            return Error::Busy { pid: run.pid(), by: "its profiler is in use by somebody else".to_owned() };
        }
        let error: &dyn std::error::Error = &error;
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        Error::failed("the program's pprof", format!("{error}{cause}"))
    })
}

/// Parses a profile on a thread where that may take its time.
async fn parse(bytes: Vec<u8>) -> Result<PprofProfile, Error> {
    let profile = blocking(move || pprof::read(&bytes)).await?;
    profile.map_err(|error| Error::failed("reading the profile", error.to_string()))
}
