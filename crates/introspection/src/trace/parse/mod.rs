//! Parsers of the profiles that profilers write. They do no input or output, and no input makes them panic.

mod cpu;
pub mod cpuprofile;
pub mod heap_sampling;
pub mod heap_snapshot;
pub mod histogram;
pub mod jfr;
pub mod perf;
pub mod pprof;
mod protobuf;
pub mod speedscope;

pub use cpu::{CpuProfile, MalformedProfile};
