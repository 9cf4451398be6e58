//! Builds a project, and fetches what it depends on, with the commands of its ecosystem.

mod build_run;
mod error;
mod node_scripts;
mod plan;
mod report;
mod target;

pub use build_run::build;
pub use error::BuildError;
pub use report::{BuildGoal, BuildReport, BuildRequest};
