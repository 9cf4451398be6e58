//! The whole definition of one tool, for a caller that asks for it by name.

use super::error::NoSuchTool;
use super::host::Host;
use role_policy::Caller;
use std::sync::Arc;

impl Host {
    /// Returns the definition of the tool that `caller` knows as `name`, with all its parameters, including the
    /// parameters that a list leaves out.
    ///
    /// # Errors
    ///
    /// `caller` knows of no such tool.
    pub fn definition(&self, caller: &Caller, name: &str) -> Result<rmcp::model::Tool, NoSuchTool> {
        let policy = self.shared.policy.load();
        let Some(registered) = self.find(&policy, caller, name) else {
            return Err(self.no_such_tool(&policy, caller, name));
        };
        let mut definition = registered.listed().clone();
        definition.input_schema = Arc::new(registered.tool.input().clone());
        Ok(definition)
    }
}
