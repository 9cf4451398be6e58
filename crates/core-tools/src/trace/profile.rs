//! What a capture answers.

use super::calls::{CallTree, Spent};
use super::parse::heap_snapshot::Heap;
use super::request::TraceType;
use serde::Serialize;
use std::path::Path;

/// A profile: where it is kept, and what a reader needs to know of it.
#[derive(Clone, Debug, Serialize)]
pub struct ProfileData {
    /// What it is of.
    #[serde(rename = "type")]
    pub kind: TraceType,
    /// What runs in the target: `node`, `deno`, `jvm`, `python`, `go`, `native`; `server` for this server.
    pub runtime: &'static str,
    /// The target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Of the file: `cpuprofile`, `heapprofile`, `heapsnapshot`, `speedscope`, `perf.data`, `pprof`, `jfr`,
    /// `histogram`, `json`.
    pub format: &'static str,
    /// `file`, or `base64` where `data` is there.
    pub encoding: &'static str,
    /// The file in base64, where it was asked for and is small.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The file, on the machine of this server.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// The flame graph of a `cpu` profile, as SVG, beside the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flame_graph: Option<String>,
    /// How long was looked, in milliseconds.
    pub duration_ms: u64,
    /// How many samples or events there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// The most that the target may have stood still for the capture, in milliseconds, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_ms: Option<u64>,
    /// What is in it.
    pub summary: Summary,
    /// What a reader should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What is in a profile.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Summary {
    /// Where time went.
    Cpu(CpuSummary),
    /// What takes memory.
    Heap(HeapSummary),
    /// Whom it talked to.
    Network(Box<super::network::NetworkSummary>),
}

/// Where time went.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CpuSummary {
    /// Time for which the target waited, as a share of the capture; of its main thread where it has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_pct: Option<f64>,
    /// Time in which garbage was collected, in the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gc_pct: Option<f64>,
    /// The time on processors that the system counted for the target meanwhile, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// The functions in which most time went, without what they called. Shares are of the time that was not idle.
    pub top_self: Vec<Hot>,
    /// The same with what they called.
    pub top_total: Vec<Hot>,
}

/// One function, and what went into it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hot {
    /// Its name.
    pub function: String,
    /// Its file, relative to the first root where it lies beneath one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its line there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Percent.
    pub pct: f64,
}

/// What takes memory.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HeapSummary {
    /// Bytes in the heap at the beginning and at the end, where the runtime tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<[u64; 2]>,
    /// Bytes of what the profile holds.
    pub total_bytes: u64,
    /// Objects in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<u64>,
    /// What takes most by constructor, class or kind of memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub biggest: Vec<Big>,
    /// The functions that allocated most of what was allocated meanwhile and is still there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub top_allocators: Vec<Hot>,
}

/// What one constructor, class or kind of memory takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Big {
    /// Its name.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// How many there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Bytes more, or fewer, than at the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grown: Option<i64>,
}

/// Functions that are told in each list.
const TOLD: usize = 15;
/// Constructors that are told.
const TOLD_BIG: usize = 20;

/// A share in percent, with one decimal.
#[allow(clippy::cast_precision_loss, reason = "one decimal is kept")]
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 * 1000.0 / whole as f64).round() / 10.0 }
}

/// Microseconds as milliseconds, with one decimal.
#[allow(clippy::cast_precision_loss, reason = "one decimal is kept")]
fn milliseconds(micros: u64) -> f64 {
    (micros as f64 / 100.0).round() / 10.0
}

/// `file` as a reader of the project would name it.
pub(super) fn shown(file: &str, roots: &[&Path]) -> String {
    let beneath = roots.iter().find_map(|root| Path::new(file).strip_prefix(root).ok());
    beneath
        .filter(|rest| !rest.as_os_str().is_empty())
        .map_or(file, |rest| rest.to_str().unwrap_or(file))
        .to_owned()
}

impl CpuSummary {
    /// The hottest functions of `tree`.
    pub(super) fn of(tree: &CallTree, roots: &[&Path]) -> Self {
        let whole = tree.total();
        let hot = |spent: &Spent<'_>, micros: u64| Hot {
            function: spent.frame.function.clone(),
            file: spent.frame.file.as_deref().map(|file| shown(file, roots)),
            line: spent.frame.line,
            ms: Some(milliseconds(micros)),
            bytes: None,
            pct: percent(micros, whole),
        };
        let mut functions = tree.functions();
        let own = functions.iter().filter(|spent| spent.own > 0).take(TOLD);
        let top_self = own.map(|spent| hot(spent, spent.own)).collect();
        functions.sort_by(|a, b| (b.total, b.own, a.frame).cmp(&(a.total, a.own, b.frame)));
        let top_total = functions.iter().take(TOLD).map(|spent| hot(spent, spent.total)).collect();
        Self { top_self, top_total, ..Self::default() }
    }

    /// Tells of functions where they are written, where the profiler only knew their library.
    pub(super) fn locate(&mut self, places: &[super::native::Place], roots: &[&Path]) {
        for hot in self.top_self.iter_mut().chain(&mut self.top_total) {
            let library = |file: &Option<String>| file.as_deref().map(|file| shown(file, roots));
            let is_it = |place: &&super::native::Place| {
                place.frame.function == hot.function && library(&place.frame.file) == hot.file
            };
            if let Some(place) = places.iter().find(is_it) {
                (hot.file, hot.line) = (Some(shown(&place.file, roots)), place.line);
            }
        }
    }
}

impl HeapSummary {
    /// The functions of `tree` that allocated most.
    pub(super) fn of_allocations(tree: &CallTree, roots: &[&Path]) -> Self {
        let whole = tree.total();
        let functions = tree.functions();
        let top = functions.iter().filter(|spent| spent.own > 0).take(TOLD);
        let top_allocators = top
            .map(|spent| Hot {
                function: spent.frame.function.clone(),
                file: spent.frame.file.as_deref().map(|file| shown(file, roots)),
                line: spent.frame.line,
                ms: None,
                bytes: Some(spent.own),
                pct: percent(spent.own, whole),
            })
            .collect();
        Self { total_bytes: whole, top_allocators, ..Self::default() }
    }

    /// What is in `heap`, and how much more that is than `before`.
    pub(super) fn of_heap(heap: &Heap, before: Option<&Heap>) -> Self {
        let grown = |name: &str, bytes: u64| {
            let before =
                before?.groups.iter().find(|group| group.name == name).map_or(0, |group| group.bytes);
            Some(i64::try_from(bytes).unwrap_or(i64::MAX).saturating_sub_unsigned(before))
        };
        let biggest = heap.groups.iter().take(TOLD_BIG);
        let biggest = biggest
            .map(|group| Big {
                name: group.name.clone(),
                bytes: group.bytes,
                count: Some(group.count),
                grown: grown(&group.name, group.bytes),
            })
            .collect();
        Self { total_bytes: heap.bytes, objects: Some(heap.count), biggest, ..Self::default() }
    }
}
