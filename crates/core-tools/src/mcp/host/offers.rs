//! The prompts, resources and suggestions of a host, as each caller sees them.
#![allow(
    deprecated,
    reason = "SEP-2577 takes logging out of the protocol one day, and today's clients have it"
)]

use super::host::Host;
use super::tools::{Offer, OfferKind, RegisteredTool};
use crate::mcp::permits::ResourceClass;
use crate::mcp::prompt::Prompt;
use crate::mcp::requested_offer::RequestedOffer;
use crate::mcp::resource::Resource;
use crate::mcp::task_use::TaskStart;
use rmcp::model::{ServerCapabilities, SubscriptionFilter};
use role_policy::{Caller, Policy};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A prompt that a caller may use.
pub(in crate::mcp) struct PromptMatch {
    /// The name by which the host runs the prompt.
    pub(in crate::mcp) tool: &'static str,
    /// The name that its author has given it.
    name: &'static str,
    /// The arguments that the name of the request stands for.
    pub(in crate::mcp) arguments: Map<String, Value>,
}

/// A resource that a caller may read.
pub(in crate::mcp) struct ResourceMatch {
    /// The name by which the host runs the reading.
    pub(in crate::mcp) tool: &'static str,
    /// The variables of the address.
    pub(in crate::mcp) arguments: Map<String, Value>,
    pub(in crate::mcp) mime_type: &'static str,
}

/// The names of all that a caller may use, by which a change of a list is noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::mcp) struct OfferedNames {
    pub(in crate::mcp) tools: Vec<&'static str>,
    pub(in crate::mcp) prompts: Vec<String>,
    pub(in crate::mcp) resources: Vec<&'static str>,
}

impl Host {
    /// Returns the prompts that `caller` may use, in their stable order.
    pub fn listed_prompts(&self, caller: &Caller) -> Vec<rmcp::model::Prompt> {
        let policy = self.shared.policy.load();
        self.usable(&policy, caller).flat_map(|(_, prompt)| prompt.listed(&policy, caller)).collect()
    }

    /// Returns the resources that `caller` may read, in their stable order.
    pub fn listed_resources(&self, caller: &Caller) -> Vec<rmcp::model::Resource> {
        let policy = self.shared.policy.load();
        self.readable(&policy, caller).filter_map(|(_, resource)| resource.listed()).collect()
    }

    /// Returns the templates of resources that `caller` may read, in their stable order.
    pub fn listed_resource_templates(&self, caller: &Caller) -> Vec<rmcp::model::ResourceTemplate> {
        let policy = self.shared.policy.load();
        self.readable(&policy, caller).filter_map(|(_, resource)| resource.listed_template()).collect()
    }

    fn usable<'a>(
        &'a self,
        policy: &'a Policy,
        caller: &'a Caller,
    ) -> impl Iterator<Item = (&'a RegisteredTool, &'a Prompt)> {
        self.offers(policy, caller, OfferKind::Prompt).filter_map(|entry| match &entry.offer {
            Offer::Prompt(prompt) => Some((entry, &**prompt)),
            _ => None,
        })
    }

    fn readable<'a>(
        &'a self,
        policy: &'a Policy,
        caller: &'a Caller,
    ) -> impl Iterator<Item = (&'a RegisteredTool, &'a Resource)> {
        self.offers(policy, caller, OfferKind::Resource).filter_map(|entry| match &entry.offer {
            Offer::Resource(resource) => Some((entry, &**resource)),
            _ => None,
        })
    }

    /// Returns the prompt that `caller` knows as `name`.
    pub(in crate::mcp) fn find_prompt(&self, caller: &Caller, name: &str) -> Option<PromptMatch> {
        let policy = self.shared.policy.load();
        self.usable(&policy, caller).find_map(|(entry, prompt)| {
            let arguments = prompt.named_arguments(&policy, caller, name)?;
            Some(PromptMatch { tool: entry.tool.name(), name: prompt.parts.name, arguments })
        })
    }

    /// Returns the resource that `caller` knows at `uri`. One with this very address comes before a template.
    pub(in crate::mcp) fn find_resource(&self, caller: &Caller, uri: &str) -> Option<ResourceMatch> {
        let policy = self.shared.policy.load();
        let matching = |is_template: bool| {
            self.readable(&policy, caller).find_map(|(entry, resource)| {
                let arguments =
                    resource.variables(uri).filter(|_| resource.listed().is_none() == is_template)?;
                Some(ResourceMatch { tool: entry.tool.name(), arguments, mime_type: resource.mime_type })
            })
        };
        matching(false).or_else(|| matching(true))
    }

    /// Returns the name by which the host runs the suggestions for a prompt that `caller` may use.
    pub(in crate::mcp) fn prompt_completions(&self, caller: &Caller, name: &str) -> Option<String> {
        self.find_prompt(caller, name).map(|prompt| format!("mcp/completions/{}", prompt.name))
    }

    /// Returns the name by which the host runs the suggestions for a resource or template that `caller` may read.
    pub(in crate::mcp) fn resource_completions(&self, caller: &Caller, reference: &str) -> Option<String> {
        let policy = self.shared.policy.load();
        let mut readable = self.readable(&policy, caller);
        readable.find_map(|(_, resource)| {
            resource.is_at(reference).then(|| format!("mcp/completions/{}", resource.parts.name))
        })
    }

    /// Returns true if there are suggestions that the host runs by this name, for `caller`.
    pub(in crate::mcp) fn has_completions(&self, caller: &Caller, tool: &str) -> bool {
        let policy = self.shared.policy.load();
        self.find_offer(&policy, caller, OfferKind::Completions, tool).is_some()
    }

    /// Returns the name and the permits of the call by which this host answers a request. None if it answers without a call,
    /// because there is no such prompt, resource or suggestion for `caller`. A tool that `caller` does not see needs the
    /// permits of one that is not there.
    pub fn requested_call<'a>(
        &'a self,
        caller: &Caller,
        requested: &'a RequestedOffer,
    ) -> Option<(&'a str, ResourceClass)> {
        let tool: Cow<'_, str> = match requested {
            RequestedOffer::Tool(name) => return Some((name, self.resources(caller, name))),
            RequestedOffer::Prompt(name) => self.find_prompt(caller, name)?.tool.into(),
            RequestedOffer::Resource(uri) => self.find_resource(caller, uri)?.tool.into(),
            RequestedOffer::PromptCompletions(name) => self.prompt_completions(caller, name)?.into(),
            RequestedOffer::ResourceCompletions(uri) => self.resource_completions(caller, uri)?.into(),
        };
        self.tools.get(&tool).map(|registered| (registered.tool.name(), registered.tool.resources()))
    }

    /// Returns the names of all that `caller` may use.
    pub(in crate::mcp) fn offered_names(&self, caller: &Caller) -> OfferedNames {
        let policy = self.shared.policy.load();
        OfferedNames {
            tools: self.listed(&policy, caller).map(|entry| entry.tool.name()).collect(),
            prompts: self.listed_prompts(caller).into_iter().map(|prompt| prompt.name).collect(),
            resources: self.readable(&policy, caller).map(|(entry, _)| entry.tool.name()).collect(),
        }
    }

    /// Returns the capabilities that a server with this host declares.
    pub fn capabilities(&self) -> ServerCapabilities {
        let has = |kind| self.tools.of_kind(kind).next().is_some();
        let mut capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        if has(OfferKind::Prompt) {
            let prompts =
                ServerCapabilities::builder().enable_prompts().enable_prompts_list_changed().build();
            capabilities.prompts = prompts.prompts;
        }
        if has(OfferKind::Resource) {
            let resources = ServerCapabilities::builder()
                .enable_resources()
                .enable_resources_list_changed()
                .enable_resources_subscribe()
                .build();
            capabilities.resources = resources.resources;
        }
        if has(OfferKind::Completions) {
            capabilities.completions = ServerCapabilities::builder().enable_completions().build().completions;
        }
        if self.tools.iter().any(|entry| entry.tool.task().start != TaskStart::Never) {
            capabilities.extensions = ServerCapabilities::builder().enable_tasks().build().extensions;
        }
        if self.shared.client_log {
            capabilities.logging = ServerCapabilities::builder().enable_logging().build().logging;
        }
        capabilities
    }

    /// Returns those of the subscriptions that `caller` asks for which it may have.
    pub(in crate::mcp) fn allowed_subscriptions(
        &self,
        caller: &Caller,
        mut requested: SubscriptionFilter,
    ) -> SubscriptionFilter {
        if let Some(uris) = &mut requested.resource_subscriptions {
            // An address that the caller may not read is dropped like a missing one, so that the reply reveals nothing.
            uris.retain(|uri| self.find_resource(caller, uri).is_some());
        }
        requested
    }
}
