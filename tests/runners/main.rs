//! The test engine against the runners themselves: sample projects, each with what goes well and what goes wrong.
//!
//! The runners are installed by `.ci/run`. A test whose runner is missing says so and passes; in CI it fails.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

#[cfg(unix)]
mod attempts;
#[cfg(unix)]
mod bare;
#[cfg(unix)]
mod builds;
#[cfg(unix)]
mod django;
#[cfg(unix)]
mod ecosystems;
#[cfg(target_os = "linux")]
mod endings;
#[cfg(unix)]
mod environment;
mod failures;
#[cfg(unix)]
mod hidden;
mod hostile;
#[cfg(unix)]
mod left_out;
#[cfg(unix)]
mod not_run;
#[cfg(unix)]
mod project_command;
mod reports;
#[cfg(unix)]
mod runtimes;
#[cfg(unix)]
mod sabotaged;
#[cfg(unix)]
mod selection;
#[cfg(unix)]
mod several_runs;
#[cfg(unix)]
mod shell_text;
mod support;
#[cfg(unix)]
mod swallowed;
#[cfg(unix)]
mod told;
#[cfg(unix)]
mod unaccounted;
#[cfg(unix)]
mod unreported;
