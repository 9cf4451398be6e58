//! Profiles of Go programs by `net/http/pprof`, where they serve it.

use super::Error;
use super::parse::Cpu;
use super::parse::pprof::{self, Profile};
use super::profile::{HeapSummary, Summary};
use super::run::{Run, Taken, Waited, blocking, millis};
use crate::inspect::http;
use crate::inspect::target::{Process, Url};
use std::time::{Duration, Instant};

/// Beyond the time that was asked for.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// How long a port may take to say whether it serves profiles.
const TELLS_WITHIN: Duration = Duration::from_millis(1500);
/// Ports that are asked.
const MOST_PORTS: usize = 8;
const MOST_BYTES: usize = 64 << 20;
const FOLDER: &str = "/debug/pprof/";
const FILE: &str = "pprof";

/// Where profiles are served.
#[derive(Clone, Debug)]
pub(super) struct Endpoint(Url);

impl Endpoint {
    /// That of `process`, among where it listens.
    pub(super) async fn of(process: &Process) -> Option<Self> {
        for address in process.local_ports().into_iter().take(MOST_PORTS) {
            let endpoint = Self(Url::local("http", address, FOLDER));
            if endpoint.answers().await {
                return Some(endpoint);
            }
        }
        None
    }

    /// That at `url`, whatever its path is.
    pub(super) async fn at(url: &Url) -> Option<Self> {
        for address in url.loopback() {
            let endpoint = Self(Url::local("http", address, FOLDER));
            if endpoint.answers().await {
                return Some(endpoint);
            }
        }
        None
    }

    /// `symbol` says how many there are, and costs nothing.
    async fn answers(&self) -> bool {
        self.get("symbol", TELLS_WITHIN).await.is_ok_and(|body| body.starts_with(b"num_symbols:"))
    }

    async fn get(&self, page: &str, limit: Duration) -> Result<Vec<u8>, http::Error> {
        let addresses = self.0.loopback();
        let url = addresses.first().map(|address| Url::local("http", *address, &format!("{FOLDER}{page}")));
        let url = url.unwrap_or_else(|| self.0.clone());
        http::get_within(&url, &addresses, MOST_BYTES, limit).await
    }
}

/// Where time goes. The profiler ends with the connection.
pub(super) async fn cpu(run: &Run<'_>, endpoint: &Endpoint) -> Result<Taken, Error> {
    let seconds = run.duration.as_secs() + u64::from(run.duration.subsec_nanos() > 0);
    let page = format!("profile?seconds={seconds}");
    let lasted = Duration::from_secs(seconds);
    let bytes = fetch(run, endpoint, &page, lasted + ANSWERS_WITHIN).await?;
    run.files.write(FILE, &bytes).map_err(|error| run.unkept(error))?;
    let profile = parsed(bytes).await?;
    let mut taken = Taken { format: FILE, extension: FILE, lasted, ..Taken::default() };
    if lasted != run.duration {
        taken.warnings.push(format!("Go's profiler counts whole seconds: {} ms were taken", millis(lasted)));
    }
    let samples = u64::try_from(profile.sum("samples")).unwrap_or_default();
    let tree = blocking(move || profile.tree("cpu", 1, 1000)).await?;
    taken.samples = Some(samples);
    taken.cpu = Some(Cpu { tree, samples, interval_us: Some(10_000), idle_us: None, gc_us: None });
    Ok(taken)
}

/// What is alive, and how much was allocated meanwhile. Garbage is collected at the beginning and at the end.
pub(super) async fn heap(run: &Run<'_>, endpoint: &Endpoint) -> Result<Taken, Error> {
    let started = Instant::now();
    let before = parsed(fetch(run, endpoint, "heap?gc=1", ANSWERS_WITHIN).await?).await?;
    if let Waited::Gone(after) = run.wait(run.duration).await? {
        return Err(run.gone(after));
    }
    let lasted = started.elapsed();
    let bytes = fetch(run, endpoint, "heap?gc=1", ANSWERS_WITHIN).await?;
    run.files.write(FILE, &bytes).map_err(|error| run.unkept(error))?;
    let after = parsed(bytes).await?;
    let alive = |profile: &Profile| u64::try_from(profile.sum("inuse_space")).unwrap_or_default();
    let roots: Vec<std::path::PathBuf> = run.roots.iter().map(|root| root.to_path_buf()).collect();
    let used = [alive(&before), alive(&after)];
    let allocated = after.sum("alloc_space").saturating_sub(before.sum("alloc_space"));
    let summary = blocking(move || {
        let roots: Vec<_> = roots.iter().map(std::path::PathBuf::as_path).collect();
        HeapSummary::of_allocations(&after.tree("inuse_space", 1, 1), &roots)
    })
    .await?;
    let summary = HeapSummary { used_bytes: Some(used), ..summary };
    let mut taken = Taken { format: FILE, extension: FILE, lasted, ..Taken::default() };
    taken.warnings.push(format!(
        "sampled, one allocation in 512 KiB unless the program says otherwise; {allocated} bytes were allocated meanwhile; \
         a collection ran before each of the two profiles"
    ));
    taken.summary = Some(Summary::Heap(summary));
    Ok(taken)
}

async fn fetch(run: &Run<'_>, endpoint: &Endpoint, page: &str, limit: Duration) -> Result<Vec<u8>, Error> {
    let started = Instant::now();
    let answer = tokio::select! {
        answer = endpoint.get(page, limit) => answer,
        () = run.cancel.cancelled() => return Err(Error::Cancelled),
    };
    answer.map_err(|error| {
        if run.process.is_some_and(|process| !process.is_there()) {
            return run.gone(started.elapsed());
        }
        if matches!(error, http::Error::Status(500)) {
            // net/http/pprof answers so where its profiler runs already.
            return Error::Busy { pid: run.pid(), by: "its profiler is in use by somebody else".to_owned() };
        }
        let error: &dyn std::error::Error = &error;
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        Error::failed("the program's pprof", format!("{error}{cause}"))
    })
}

async fn parsed(bytes: Vec<u8>) -> Result<Profile, Error> {
    let profile = blocking(move || pprof::read(&bytes)).await?;
    profile.map_err(|error| Error::failed("reading the profile", error.to_string()))
}
