//! The definitions of the git tools.

mod changes;
mod definition;
mod history;
mod integration;
mod remotes;

use super::tool_error::ToolError;
use super::toolset::Toolset;
use crate::ci::Commands;
use crate::git;

impl From<git::Error> for ToolError {
    fn from(error: git::Error) -> Self {
        let is_outside = match &error {
            git::Error::Path(error) => error.is_outside(),
            git::Error::OutsideRoots(_) => true,
            _ => false,
        };
        Self::from_error(&error).outside_roots_if(is_outside)
    }
}

/// Returns the toolset `git`, for repositories beneath the roots of `commands`.
pub fn toolset(commands: &Commands) -> Toolset {
    let tools = [history::tools, changes::tools, integration::tools, remotes::tools];
    Toolset::new("git", tools.into_iter().flat_map(|tools| tools(commands)))
}
