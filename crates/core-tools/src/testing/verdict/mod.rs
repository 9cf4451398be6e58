//! The verdict on each step of a run: from its results, what it printed, and how its process ended.

mod command_list;
mod command_words;
mod exit;
mod explain;
mod ignored_failure;
mod judge;
mod project;
mod skipped_environments;
mod step_verdict;

#[cfg(test)]
pub(crate) use exit::RunnerExit;
#[cfg(test)]
pub(crate) use judge::judge;
pub(crate) use step_verdict::{StepVerdict, TestStepRun};
