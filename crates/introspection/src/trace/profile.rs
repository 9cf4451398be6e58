//! [`ProfileData`], the answer of a capture, and its summaries.

use super::call_tree::{CallTree, FunctionCost, FunctionLocation, ProfiledFunction};
use super::parse::heap_snapshot::HeapContents;
use super::request::TraceType;
use serde::Serialize;
use std::path::Path;

/// A profile: the file that holds it, and a summary of its content.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ProfileData {
    /// The kind of the profile.
    #[serde(rename = "type")]
    pub kind: TraceType,
    /// The runtime of the target: `node`, `deno`, `jvm`, `python`, `go`, `native`; `server` for this server.
    pub runtime: &'static str,
    /// The process id of the target, where its process is visible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The format of the file: `cpuprofile`, `heapprofile`, `heapsnapshot`, `speedscope`, `perf.data`, `pprof`, `jfr`,
    /// `histogram`, `json`, `ndjson`.
    pub format: &'static str,
    /// `base64` where `data` is present, else `file`.
    pub encoding: &'static str,
    /// The content of the file in base64, where it was asked for and has at most 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The path of the file on the machine of this server.
    pub path: String,
    /// The size of the file, in bytes.
    pub bytes: u64,
    /// The path of the flame graph of a `cpu` profile, an SVG beside the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flame_graph: Option<String>,
    /// The time that the profile covers, in milliseconds.
    pub duration_ms: u64,
    /// The number of samples or events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// The longest time that the capture may have halted the target, in milliseconds. Absent where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_ms: Option<u64>,
    /// The summary of the content.
    pub summary: ProfileSummary,
    /// Limits of the profile that a reader should know of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The summary of a profile, by its kind.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ProfileSummary {
    /// CPU time by function.
    Cpu(CpuSummary),
    /// Memory by type and by allocating function.
    Heap(HeapSummary),
    /// HTTP requests and TCP connections.
    Network(Box<super::network::NetworkSummary>),
}

/// A summary of CPU time.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct CpuSummary {
    /// The share of the capture for which the target, or its main thread, was idle, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_pct: Option<f64>,
    /// The share of the capture in which garbage was collected, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gc_pct: Option<f64>,
    /// The CPU time that the system counted for the target during the capture, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// The functions with the most time of their own. Shares are of the time that was not idle. The smaller functions of
    /// the language's runtime are one entry.
    pub top_self: Vec<HotFunction>,
    /// The functions with the most time including their callees, without those of the language's runtime.
    pub top_total: Vec<HotFunction>,
}

/// A function, and the time or the bytes that it is responsible for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HotFunction {
    /// The name of the function.
    pub function: String,
    /// The file, relative to its root where it lies beneath one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in the file at which the function begins. If the profiler does not tell, a line of the function that
    /// ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The lines of the function that took most of its own time, where the profiler tells them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hot_lines: Vec<HotLine>,
    /// The time in milliseconds, in a CPU profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
    /// The number of bytes, in a heap profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The share of the whole profile, in percent.
    pub pct: f64,
}

/// A line of a function, and its own time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HotLine {
    /// The line, from 1.
    pub line: u32,
    /// The time in milliseconds.
    pub ms: f64,
    /// The share of the whole profile, in percent.
    pub pct: f64,
    /// The function that the line is in, where the engine has inlined it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inlined: Option<String>,
    /// The text of the line, where its file lies beneath the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A summary of memory.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct HeapSummary {
    /// The size of the heap at the beginning and at the end, in bytes, where the runtime reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<[u64; 2]>,
    /// The size of everything in the profile, in bytes.
    pub total_bytes: u64,
    /// The number of objects in the profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<u64>,
    /// The constructors, classes or kinds of memory that take most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub biggest: Vec<HeapMemoryGroup>,
    /// The functions that allocated most of the memory that was allocated during the capture and is still in use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub top_allocators: Vec<HotFunction>,
}

/// The memory of one constructor, class or kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HeapMemoryGroup {
    /// The name of the constructor, class or kind.
    pub name: String,
    /// The size, in bytes.
    pub bytes: u64,
    /// The number of objects, or of mappings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The growth during the capture, in bytes; negative where it shrank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grown: Option<i64>,
}

/// The maximum number of functions in each list.
const MAX_FUNCTIONS: usize = 15;
/// The number of functions that are listed however little time they took, and the share from which others are, in
/// percent.
const MIN_FUNCTIONS: usize = 5;
const MIN_PCT: f64 = 0.5;
/// The maximum number of constructors, classes or kinds.
const MAX_GROUPS: usize = 20;

/// The share from which a function of the runtime is an entry of its own, in percent.
const MIN_RUNTIME_PCT: f64 = 5.0;
/// The maximum number of lines of a function.
const MAX_HOT_LINES: usize = 3;
/// The share from which the lines of a function are listed, in percent.
const MIN_FUNCTION_PCT: f64 = 1.0;
/// The share of a function's own time from which a line is listed, in percent.
const MIN_LINE_PCT: f64 = 5.0;

/// Returns true for a function of the language's own runtime and standard library.
fn is_of_runtime(frame: &ProfiledFunction) -> bool {
    let Some(file) = frame.file.as_deref() else { return false };
    let is_python = file.contains("/lib/python3")
        && !file.contains("/site-packages/")
        && !file.contains("/dist-packages/");
    let is_go =
        file.contains("/go/src/") || file.contains("/lib/go-") || frame.function.starts_with("runtime.");
    let prefixes = ["node:", "ext:", "<frozen ", "java/", "javax/", "jdk/", "sun/"];
    is_python || is_go || prefixes.iter().any(|prefix| file.starts_with(prefix))
}

/// Returns true for what a profiler names without being a function: `(program)`, `(garbage collector)`.
fn is_mark(frame: &ProfiledFunction) -> bool {
    frame.file.is_none() && frame.function.starts_with('(') && frame.function != "(anonymous)"
}

/// Returns the lines of a function that took most of its own time.
fn hot_lines(tree: &CallTree, cost: &FunctionCost<'_>, whole: u64) -> Vec<HotLine> {
    let Some(file) = cost.frame.file.as_deref() else { return Vec::new() };
    if percent(cost.self_weight, whole) < MIN_FUNCTION_PCT {
        return Vec::new();
    }
    let lines = tree.lines(cost.frame).into_iter().take(MAX_HOT_LINES);
    let hot = lines.filter(|(_, micros)| percent(*micros, cost.self_weight) >= MIN_LINE_PCT);
    hot.map(|(line, micros)| HotLine {
        line,
        ms: milliseconds(micros),
        pct: percent(micros, whole),
        inlined: inlined_function(tree, cost.frame, file, line),
        text: None,
    })
    .collect()
}

/// Returns the name of the function that a line before the beginning of `function` is in: its code runs within that of
/// `function`.
fn inlined_function(tree: &CallTree, function: &ProfiledFunction, file: &str, line: u32) -> Option<String> {
    // Code of the function itself cannot stand before its beginning.
    function.line.filter(|start| line < *start)?;
    // Of a module, the code outside of functions begins at its first line.
    let inlined = tree.function_at(file, line).filter(|inlined| inlined.function != "(anonymous)");
    Some(inlined.map_or_else(|| "another function".to_owned(), |inlined| inlined.function.clone()))
}

/// Returns one entry for functions that are not listed one by one.
fn folded_entry(folded: &[FunctionCost<'_>], whole: u64) -> Option<HotFunction> {
    let micros = folded.iter().fold(0_u64, |sum, cost| sum.saturating_add(cost.self_weight));
    (micros > 0).then(|| HotFunction {
        function: format!("({} functions of the runtime)", folded.len()),
        file: None,
        line: None,
        hot_lines: Vec::new(),
        ms: Some(milliseconds(micros)),
        bytes: None,
        pct: percent(micros, whole),
    })
}

/// Returns a share in percent, with one decimal.
#[allow(clippy::cast_precision_loss, reason = "one decimal is kept")]
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 * 1000.0 / whole as f64).round() / 10.0 }
}

/// Converts microseconds to milliseconds, with one decimal.
#[allow(clippy::cast_precision_loss, reason = "one decimal is kept")]
fn milliseconds(micros: u64) -> f64 {
    (micros as f64 / 100.0).round() / 10.0
}

/// Returns `file` relative to its root where it lies beneath one.
pub(super) fn display_path(file: &str, roots: &[&Path]) -> String {
    let beneath = roots.iter().find_map(|root| Path::new(file).strip_prefix(root).ok());
    beneath
        .filter(|rest| !rest.as_os_str().is_empty())
        .map_or(file, |rest| rest.to_str().unwrap_or(file))
        .to_owned()
}

impl CpuSummary {
    /// Summarises `tree` by its hottest functions.
    pub(super) fn from_tree(tree: &CallTree, roots: &[&Path]) -> Self {
        let whole = tree.total();
        let hot_function = |cost: &FunctionCost<'_>, micros: u64| HotFunction {
            function: cost.frame.function.clone(),
            file: cost.frame.file.as_deref().map(|file| display_path(file, roots)),
            line: cost.frame.line,
            hot_lines: Vec::new(),
            ms: Some(milliseconds(micros)),
            bytes: None,
            pct: percent(micros, whole),
        };
        let mut functions = tree.functions();
        let (folded, own): (Vec<_>, Vec<_>) =
            functions.iter().copied().filter(|cost| cost.self_weight > 0).partition(|cost| {
                is_of_runtime(cost.frame) && percent(cost.self_weight, whole) < MIN_RUNTIME_PCT
            });
        let is_worth_it = |(index, cost): &(usize, &FunctionCost<'_>)| {
            *index < MIN_FUNCTIONS || percent(cost.self_weight, whole) >= MIN_PCT
        };
        let listed = own.iter().enumerate().filter(is_worth_it).map(|(_, cost)| cost);
        let mut top_self: Vec<HotFunction> = listed
            .take(MAX_FUNCTIONS)
            .map(|cost| HotFunction {
                hot_lines: hot_lines(tree, cost, whole),
                ..hot_function(cost, cost.self_weight)
            })
            .collect();
        top_self.extend(folded_entry(&folded, whole));
        // Ties break by name, so that equal profiles give equal answers.
        functions.sort_by(|a, b| (b.total, b.self_weight, a.frame).cmp(&(a.total, a.self_weight, b.frame)));
        let is_shown = |cost: &&FunctionCost<'_>| !is_of_runtime(cost.frame) && !is_mark(cost.frame);
        let has_own = functions.iter().any(|cost| is_shown(&cost));
        let shown = functions.iter().filter(|cost| !has_own || is_shown(cost));
        let top_total = shown.take(MAX_FUNCTIONS).map(|cost| hot_function(cost, cost.total)).collect();
        Self { top_self, top_total, ..Self::default() }
    }

    /// Adds the text of the hot lines whose files `read_line` can read.
    pub(super) fn add_texts(&mut self, mut read_line: impl FnMut(&str, u32) -> Option<String>) {
        for hot in &mut self.top_self {
            let Some(file) = &hot.file else { continue };
            for at in &mut hot.hot_lines {
                at.text = read_line(file, at.line);
            }
        }
    }

    /// Replaces the library of functions with their source location, where it is known.
    pub(super) fn set_locations(&mut self, locations: &[FunctionLocation], roots: &[&Path]) {
        for hot in self.top_self.iter_mut().chain(&mut self.top_total) {
            let library = |file: &Option<String>| file.as_deref().map(|file| display_path(file, roots));
            let is_same = |location: &&FunctionLocation| {
                location.frame.function == hot.function && library(&location.frame.file) == hot.file
            };
            if let Some(location) = locations.iter().find(is_same) {
                (hot.file, hot.line) = (Some(display_path(&location.file, roots)), location.line);
            }
        }
    }
}

impl HeapSummary {
    /// Summarises `tree` by the functions that allocated most.
    pub(super) fn from_allocations(tree: &CallTree, roots: &[&Path]) -> Self {
        let whole = tree.total();
        let functions = tree.functions();
        let top = functions.iter().filter(|cost| cost.self_weight > 0).take(MAX_FUNCTIONS);
        let top_allocators = top
            .map(|cost| HotFunction {
                function: cost.frame.function.clone(),
                file: cost.frame.file.as_deref().map(|file| display_path(file, roots)),
                line: cost.frame.line,
                hot_lines: Vec::new(),
                ms: None,
                bytes: Some(cost.self_weight),
                pct: percent(cost.self_weight, whole),
            })
            .collect();
        Self { total_bytes: whole, top_allocators, ..Self::default() }
    }

    /// Summarises `heap`, with the growth since `before`.
    pub(super) fn from_heap(heap: &HeapContents, before: Option<&HeapContents>) -> Self {
        let grown = |name: &str, bytes: u64| {
            let before =
                before?.groups.iter().find(|group| group.name == name).map_or(0, |group| group.bytes);
            Some(i64::try_from(bytes).unwrap_or(i64::MAX).saturating_sub_unsigned(before))
        };
        let biggest = heap.groups.iter().take(MAX_GROUPS);
        let biggest = biggest
            .map(|group| HeapMemoryGroup {
                name: group.name.clone(),
                bytes: group.bytes,
                count: Some(group.count),
                grown: grown(&group.name, group.bytes),
            })
            .collect();
        Self { total_bytes: heap.bytes, objects: Some(heap.count), biggest, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_is_folded_and_the_hot_lines_of_a_function_are_told() {
        let mut tree = CallTree::default();
        let frame = |tree: &mut CallTree, name: &str, file: Option<&str>| {
            tree.frame(ProfiledFunction::new(name, file, Some(2)))
        };
        let emit = frame(&mut tree, "emit", Some("node:events"));
        let tick = frame(&mut tree, "tick", Some("node:internal/process/task_queues"));
        let burn = frame(&mut tree, "burn", Some("/app/lib/burn.js"));
        let program = frame(&mut tree, "(program)", None);
        tree.add(&[emit, burn], 900_000);
        // Inlined from `add`, which begins at line 1.
        tree.frame(ProfiledFunction::new("add", Some("/app/lib/burn.js"), Some(1)));
        tree.add_line(burn, 7, 700_000);
        tree.add_line(burn, 1, 190_000);
        tree.add_line(burn, 9, 10_000);
        tree.add(&[emit], 20_000);
        tree.add(&[tick], 30_000);
        tree.add(&[program], 50_000);
        let mut summary = CpuSummary::from_tree(&tree, &[Path::new("/app")]);
        let names: Vec<_> = summary.top_self.iter().map(|hot| (hot.function.as_str(), hot.pct)).collect();
        assert_eq!(names, [("burn", 90.0), ("(program)", 5.0), ("(2 functions of the runtime)", 5.0)]);
        let total: Vec<_> = summary.top_total.iter().map(|hot| hot.function.as_str()).collect();
        assert_eq!(total, ["burn"]);
        summary.add_texts(|file, line| Some(format!("{file}:{line}")));
        let line = |line, ms, pct, inlined: Option<&str>| HotLine {
            line,
            ms,
            pct,
            inlined: inlined.map(str::to_owned),
            text: Some(format!("lib/burn.js:{line}")),
        };
        assert_eq!(
            summary.top_self[0].hot_lines,
            [line(7, 700.0, 70.0, None), line(1, 190.0, 19.0, Some("add"))]
        );
    }
}
