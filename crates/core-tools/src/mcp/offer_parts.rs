//! [`OfferParts`]: the parts that a prompt and a resource have in common.

use super::availability::Availability;
use super::completion::{Completer, Completions};
use super::tool::Tool;

/// The parts that a prompt and a resource have in common.
#[derive(Clone, Debug)]
pub(super) struct OfferParts {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    /// The prompt or resource as a host runs it.
    pub(super) tool: Tool,
    completions: Completions,
}

impl OfferParts {
    /// The parts of what a host runs as `tool`, without suggestions.
    pub(super) fn new(
        name: &'static str,
        title: &'static str,
        description: &'static str,
        tool: Tool,
    ) -> Self {
        Self { name, title, description, tool, completions: Completions::default() }
    }

    /// Suggests values for an argument by `completer`.
    pub(super) fn completes(mut self, argument: &'static str, completer: Completer) -> Self {
        self.completions.add(argument, completer);
        self
    }

    /// Lets the function and the completers call these tools in the name of their caller.
    pub(super) fn uses_tools(mut self, tools: &'static [&'static str]) -> Self {
        self.tool = self.tool.uses_tools(tools);
        self.completions.use_tools(tools);
        self
    }

    /// Offers it only to callers who see all of these tools. The completers may call tools.
    pub(super) fn offered_with(mut self, tools: &'static [&'static str]) -> Self {
        self.tool = self.tool.offered_with(tools);
        self.completions.use_tools(tools);
        self
    }

    /// Declares the arguments that are paths, commands or roles.
    pub(super) fn effects(mut self, effects: &'static [role_policy::Effect]) -> Self {
        self.tool = self.tool.effects(effects);
        self
    }

    /// Offers it only while `availability` is on.
    pub(super) fn available_while(mut self, availability: &Availability) -> Self {
        self.tool = self.tool.available_while(availability);
        self
    }

    /// Returns the suggestions as a host runs them; none if there are no completers.
    pub(super) fn completions_tool(&self) -> Option<Tool> {
        self.completions.tool(self.name)
    }

    /// Iterates over what a host runs for it: itself, and its suggestions.
    pub(super) fn tools(&self) -> impl Iterator<Item = Tool> {
        std::iter::once(self.tool.clone()).chain(self.completions_tool())
    }
}
