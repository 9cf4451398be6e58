//! [`RequestedOffer`]: the tool, prompt, resource or suggestions that a request names.

/// The tool, prompt, resource or suggestions that a request names, before it is known whether its caller may use them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestedOffer {
    /// The tool with this name, by `tools/call`.
    Tool(String),
    /// The prompt with this name, by `prompts/get`.
    Prompt(String),
    /// The resource at this address, by `resources/read`.
    Resource(String),
    /// Suggestions for the prompt with this name, by `completion/complete`.
    PromptCompletions(String),
    /// Suggestions for the resource or template with this address, by `completion/complete`.
    ResourceCompletions(String),
}
