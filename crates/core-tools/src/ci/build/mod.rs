//! Builds a project, and fetches what it depends on, with the commands of its ecosystem.

mod error;
mod node_scripts;
mod plan;
mod report;
mod run;
mod target;

pub use error::BuildError;
pub use report::{BuildGoal, BuildReport, BuildRequest};
pub use run::build;
