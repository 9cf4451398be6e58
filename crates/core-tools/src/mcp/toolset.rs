//! Toolsets: tools that are chosen together.

use super::arguments::{self, InvalidArguments};
use super::offer_parts::OfferParts;
use super::prompt::Prompt;
use super::resource::Resource;
use super::tool::Tool;
use role_policy::ToolFacts;
use serde_json::{Map, Value};

/// Tools that belong together, and are chosen together.
#[derive(Debug)]
#[non_exhaustive]
pub struct Toolset {
    /// The name it is chosen by, for example `filesystem`.
    pub name: &'static str,
    /// Its tools, in the order they are listed.
    pub tools: Vec<Tool>,
    /// Its prompts, in the order they are listed.
    pub prompts: Vec<Prompt>,
    /// Its resources and templates of resources, in the order they are listed.
    pub resources: Vec<Resource>,
}

/// A call in the form in which a policy judges it and a host runs it.
#[derive(Debug)]
#[non_exhaustive]
pub struct PreparedCall {
    /// The facts about the tool that a policy judges by.
    pub tool: ToolFacts<'static>,
    /// The arguments in their canonical form.
    pub arguments: Map<String, Value>,
}

impl Toolset {
    /// Creates a toolset that is chosen by `name`, with its tools in the order in which they are listed.
    pub fn new(name: &'static str, tools: impl IntoIterator<Item = Tool>) -> Self {
        Self { name, tools: tools.into_iter().collect(), prompts: Vec::new(), resources: Vec::new() }
    }

    /// Adds prompts. They are offered where the toolset is, as a whole or in part.
    #[must_use]
    pub fn prompts(mut self, prompts: impl IntoIterator<Item = Prompt>) -> Self {
        self.prompts.extend(prompts);
        self
    }

    /// Adds resources. They are offered where the toolset is, as a whole or in part.
    #[must_use]
    pub fn resources(mut self, resources: impl IntoIterator<Item = Resource>) -> Self {
        self.resources.extend(resources);
        self
    }

    /// Iterates over the prompts, resources and suggestions that are offered only to callers who see other tools: the name that
    /// a policy knows, and those tools.
    pub fn used_tools(&self) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        self.offer_parts().flat_map(OfferParts::tools).map(|tool| (tool.name(), tool.used_tools()))
    }

    /// Iterates over the parts of the prompts and the resources.
    fn offer_parts(&self) -> impl Iterator<Item = &OfferParts> {
        let prompts = self.prompts.iter().map(|prompt| &prompt.parts);
        prompts.chain(self.resources.iter().map(|resource| &resource.parts))
    }

    /// Iterates over the facts that a policy judges by: about the tools, and behind them about the prompts, the resources
    /// and the suggestions.
    pub fn facts(&self) -> impl Iterator<Item = ToolFacts<'static>> {
        let offers = self.offer_parts().flat_map(OfferParts::tools);
        let facts = offers.map(|tool| tool.facts(self.name));
        self.tools.iter().map(|tool| tool.facts(self.name)).chain(facts)
    }

    /// Replaces tools of `toolsets` by the tools of the same name in this toolset, and adds the other tools as a
    /// separate toolset.
    ///
    /// A tool that replaces another has its toolset, its place in the list, its aliases, and the rules for its name,
    /// but its own effects and hints.
    pub fn overlay(mut self, toolsets: &mut Vec<Self>) {
        let mut added = Vec::new();
        for mut new_tool in std::mem::take(&mut self.tools) {
            let replaced = toolsets
                .iter_mut()
                .flat_map(|toolset| &mut toolset.tools)
                .find(|tool| tool.name() == new_tool.name());
            match replaced {
                Some(tool) => {
                    new_tool.inherit_aliases(tool);
                    *tool = new_tool;
                }
                None => added.push(new_tool),
            }
        }
        if !added.is_empty() || !self.prompts.is_empty() || !self.resources.is_empty() {
            toolsets.push(Self { tools: added, ..self });
        }
    }

    /// Prepares a call of the tool with this name or alias, without making it. None if it is not in this toolset.
    ///
    /// # Errors
    /// The arguments do not fit the tool.
    pub fn prepare(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Option<Result<PreparedCall, InvalidArguments>> {
        let tool =
            self.tools.iter().find(|tool| tool.name() == name || tool.alias_names().contains(&name))?;
        let normalised = arguments::normalise(tool.name(), tool.input(), arguments);
        Some(normalised.map(|arguments| PreparedCall { tool: tool.facts(self.name), arguments }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Answer, CallContext, Host, HostBuilder, HostError};
    use crate::redact::Redactor;
    use role_policy::{Caller, Policy};
    use schemars::JsonSchema;

    #[derive(serde::Deserialize, JsonSchema)]
    struct NoArguments {}

    fn tool(name: &'static str, text: &'static str) -> Tool {
        Tool::new(name, "Title", "Description.", move |_: NoArguments, _: CallContext| async move {
            Ok(Answer::text(text))
        })
    }

    fn library() -> Vec<Toolset> {
        let status = tool("git_status", "theirs").destroys().aliases(&["get_status"]);
        vec![
            Toolset::new("git", [status, tool("git_log", "theirs")]),
            Toolset::new("ci", [tool("build", "theirs")]),
        ]
    }

    fn host(own: Vec<Tool>) -> Result<Host, HostError> {
        let mut toolsets = library();
        Toolset::new("own", own).overlay(&mut toolsets);
        let builder = Host::builder(Policy::allow_all(), Redactor::new(Default::default()).unwrap());
        toolsets.into_iter().fold(builder, HostBuilder::toolset).build()
    }

    #[tokio::test]
    async fn an_own_tool_takes_the_place_and_the_former_names_of_the_one_it_is_called_after() {
        let host = host(vec![tool("more", "ours"), tool("git_status", "ours")]).unwrap();
        let caller = Caller::new("orchestrator");
        assert_eq!(host.names(&caller), ["git_status", "git_log", "build", "more"]);
        assert_eq!(host.toolsets(&caller), ["git", "git", "ci", "own"]);
        // What it declares itself is what a policy judges.
        assert!(host.facts()[0].read_only);
        for (name, text) in [("git_status", "ours"), ("get_status", "ours"), ("git_log", "theirs")] {
            let context = CallContext::new(caller.clone(), Default::default());
            assert_eq!(host.call(name, Map::new(), context).await.unwrap().to_text(), text, "{name}");
        }
    }

    #[test]
    fn an_own_tool_with_a_former_name_of_another_is_an_error() {
        let error = host(vec![tool("get_status", "ours")]).unwrap_err();
        assert_eq!(error.to_string(), "two tools are called `get_status`");
    }
}
