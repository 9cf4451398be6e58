//! Takes profiles of the application: CPU time, memory, and network traffic.
//!
//! ```no_run
//! use introspection::trace::{CaptureTrace, TraceType, Profiler};
//! use workspace::Workspace;
//! use std::sync::Arc;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let workspace = Arc::new(Workspace::new(["/home/me/project"])?);
//! let traces = Profiler::new(workspace, process_runner::Runner::new(), "/home/me/.local/state/coretools/traces")
//!     .path(std::env::var_os("PATH"))
//!     .unrestricted(true);
//! let request = CaptureTrace::new(TraceType::Cpu, 2000).target("pid:4711");
//! let capture = traces.capture(&request, &Default::default()).await?;
//! println!("{} {:?}", capture.profile.path, capture.profile.summary);
//! # Ok(())
//! # }
//! ```
//!
//! # Profilers
//!
//! | runtime | `cpu` | `heap` | `network` |
//! |---|---|---|---|
//! | Node.js, Deno | inspector | inspector: sampled allocations, or a snapshot | `diagnostics_channel`, by the inspector |
//! | Python | py-spy | memory map | sockets |
//! | Go | `net/http/pprof`, else perf | `net/http/pprof`, else memory map | sockets |
//! | JVM | Flight Recorder | histogram of classes | sockets |
//! | others, this server | perf | memory map | sockets |
//!
//! Nothing is left in the target: a profiler is stopped at the end, at an error, and when the capture is cancelled.
//! Listeners in a Node.js process also remove themselves five seconds after the capture, should this process die.
//!
//! # What is stored
//!
//! The profile as the profiler wrote it, and a flame graph, in one folder that only its owner can enter; the oldest
//! files beyond 200 files or 2 GiB are removed. Requests are stored without queries, headers and bodies, and with
//! `:id` for parts of a path that look like keys.
//!
//! # Bounds
//!
//! A process has one capture at a time. A capture takes its duration and 1.5 seconds, or its answer says what took
//! longer.

mod artifacts;
mod call_tree;
mod capture;
mod capture_run;
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
mod resolve;
#[cfg(target_os = "linux")]
mod sockets;

pub use call_tree::{CallNode, CallTree, FunctionCost, ProfiledFunction};
pub use capture::{CapturedTrace, Profiler};
pub use error::{Error, TraceErrorReport, TraceFailureKind};
pub use network::{NetworkSummary, PeerSummary, RouteSummary, SlowHttpRequest};
pub use profile::{
    CpuSummary, HeapMemoryGroup, HeapSummary, HotFunction, HotLine, ProfileData, ProfileSummary,
};
pub use request::{CaptureTrace, TraceType};
