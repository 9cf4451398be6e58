//! The plan of a run: the commands of a runner that execute the requested tests and write a report we can read.

mod arguments;
mod bats;
mod cargo;
mod cargo_targets;
mod ctest;
mod dotnet;
mod go;
mod javascript;
mod jvm;
mod mix;
mod patterns;
mod project;
mod pytest;
mod report_folder;
mod rerun;
mod rspec;
mod step;
mod steps;
#[cfg(test)]
mod tests;

pub(crate) use bats::bats_folder;
pub(crate) use ctest::ctest_folder;
pub(crate) use pytest::environment_manager;
pub(crate) use report_folder::{ENVIRONMENT_FILE, EVENTS_FILE, PROGRAMS, REPORTERS, ReportFolder};
pub(crate) use step::{EnvironmentAddition, TestResultSource, TestStep, TestStepPurpose};
pub(crate) use steps::steps;
