//! Resources: texts and files that a client reads by their address and shows to a person or a model.

use super::answer::Answer;
use super::availability::Availability;
use super::call_context::CallContext;
use super::completion::Completer;
use super::interned_name::interned;
use super::offer_parts::OfferParts;
use super::tool::Tool;
use super::tool_error::ToolError;
use super::uri_template::UriTemplate;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A resource, or a template of many: its entry in a client's list, and the function that reads it.
///
/// A policy judges it as a tool that only reads, with the name `mcp/resources/NAME` and the toolset that it is in. What is
/// read is masked, bounded and recorded as the answer of a tool is: a text of the answer becomes text, and a document
/// becomes bytes.
#[derive(Clone, Debug)]
pub struct Resource {
    pub(super) address: ResourceAddress,
    pub(super) parts: OfferParts,
    pub(super) mime_type: &'static str,
}

/// The address of a resource.
#[derive(Clone, Debug)]
pub(super) enum ResourceAddress {
    /// One address.
    Uri(&'static str),
    /// The addresses that have the form of a template.
    Template { text: &'static str, template: UriTemplate },
}

/// The input of a resource with one address.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoVariables {}

impl Resource {
    /// A resource at one address. Its answer is plain text unless [`mime_type`](Self::mime_type) says otherwise.
    pub fn new<F, R>(
        uri: &'static str,
        name: &'static str,
        title: &'static str,
        description: &'static str,
        read: F,
    ) -> Self
    where
        F: Fn(CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Answer, ToolError>> + Send + 'static,
    {
        let read = move |_: NoVariables, context: CallContext| read(context);
        Self::of(ResourceAddress::Uri(uri), name, title, description, read)
    }

    /// Resources at all addresses that have the form of `template`, such as `shop://orders/{id}`. The variables are the
    /// fields of `I`: `{name}` stands for text without a slash, `{+name}` for any text.
    pub fn template<I, F, R>(
        template: &'static str,
        name: &'static str,
        title: &'static str,
        description: &'static str,
        read: F,
    ) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(I, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Answer, ToolError>> + Send + 'static,
    {
        let address = ResourceAddress::Template { text: template, template: UriTemplate::new(template) };
        Self::of(address, name, title, description, read)
    }

    fn of<I, F, R>(
        address: ResourceAddress,
        name: &'static str,
        title: &'static str,
        description: &'static str,
        read: F,
    ) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(I, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Answer, ToolError>> + Send + 'static,
    {
        let tool = Tool::new(interned(format!("mcp/resources/{name}")), title, description, read);
        let parts = OfferParts::new(name, title, description, tool);
        Self { address, parts, mime_type: "text/plain" }
    }

    /// Sets the media type of what is read.
    #[must_use]
    pub fn mime_type(mut self, mime_type: &'static str) -> Self {
        self.mime_type = mime_type;
        self
    }

    /// Suggests values for a variable by `completer`.
    #[must_use]
    pub fn completes(mut self, variable: &'static str, completer: Completer) -> Self {
        self.parts = self.parts.completes(variable, completer);
        self
    }

    /// Declares the variables that are paths, commands or roles, for a policy to judge ([`Tool::effects`]).
    #[must_use]
    pub fn effects(mut self, effects: &'static [role_policy::Effect]) -> Self {
        self.parts = self.parts.effects(effects);
        self
    }

    /// Lets the function call these tools in the name of its caller, by [`CallContext::call_tool`]. The resource is offered only
    /// to callers who see all of them, and each call is judged, limited and recorded on its own.
    #[must_use]
    pub fn uses_tools(mut self, tools: &'static [&'static str]) -> Self {
        self.parts = self.parts.uses_tools(tools);
        self
    }

    /// Offers the resource only while `availability` is on. Clients are told of each change.
    #[must_use]
    pub fn available_while(mut self, availability: &Availability) -> Self {
        self.parts = self.parts.available_while(availability);
        self
    }

    /// Returns the variables of `uri` as arguments, if it is an address of this resource.
    pub(super) fn variables(&self, uri: &str) -> Option<Map<String, Value>> {
        match &self.address {
            ResourceAddress::Uri(own) => (*own == uri).then(Map::new),
            ResourceAddress::Template { template, .. } => template.variables(uri),
        }
    }

    /// Returns the entry of the list of resources; none for a template.
    pub(super) fn listed(&self) -> Option<rmcp::model::Resource> {
        let ResourceAddress::Uri(uri) = self.address else { return None };
        let OfferParts { name, title, description, .. } = self.parts;
        let listed = rmcp::model::Resource::new(uri, name);
        Some(listed.with_title(title).with_description(description).with_mime_type(self.mime_type))
    }

    /// Returns the entry of the list of templates; none for a resource with one address.
    pub(super) fn listed_template(&self) -> Option<rmcp::model::ResourceTemplate> {
        let ResourceAddress::Template { text, .. } = &self.address else { return None };
        let OfferParts { name, title, description, .. } = self.parts;
        let listed = rmcp::model::ResourceTemplate::new(*text, name);
        Some(listed.with_title(title).with_description(description).with_mime_type(self.mime_type))
    }

    /// Returns true if `reference` is the address or the template of this resource, as a request for suggestions names it.
    pub(super) fn is_at(&self, reference: &str) -> bool {
        match &self.address {
            ResourceAddress::Uri(uri) => *uri == reference,
            ResourceAddress::Template { text, .. } => *text == reference,
        }
    }
}
