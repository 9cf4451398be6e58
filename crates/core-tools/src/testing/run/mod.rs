//! The run: the steps of a plan, one after the other, each with its results and its verdict.

mod event_file;
mod new_files;
mod run_tests;
mod step_runner;
mod xml_reports;

pub use run_tests::run_tests;
