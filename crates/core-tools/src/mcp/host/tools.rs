//! The tools of a host, by name.

use super::error::HostError;
use crate::mcp::answer::AnswerFormat;
use crate::mcp::availability::Availability;
use crate::mcp::client_notices::ClientNotices;
use crate::mcp::mentions::KnownToolNames;
use crate::mcp::permits::NoPermit;
use crate::mcp::prompt::Prompt;
use crate::mcp::resource::Resource;
use crate::mcp::schema;
use crate::mcp::search_hints;
use crate::mcp::selection::ToolSelection;
use crate::mcp::tool::Tool;
use crate::mcp::toolset::Toolset;
use process_runner::LeftoverTree;
use rmcp::model::Tool as Definition;
use role_policy::{EffectResolver, ToolFacts};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The number of commands of one principal whose leftovers may go on where no tool lists and ends them.
const MAX_LEFTOVERS: usize = 8;

/// The tools over one workspace, and what resolves the paths in their arguments.
pub(super) struct ToolTable {
    tools: Vec<RegisteredTool>,
    /// Canonical names and aliases, to indices in `tools`.
    names: HashMap<&'static str, usize>,
    pub(super) effects: Arc<dyn EffectResolver + Send + Sync>,
    /// The folders of the workspace, as its caller may know them.
    pub(super) roots: Vec<PathBuf>,
    /// The tools that descriptions and errors may speak of.
    pub(super) known: KnownToolNames,
    /// The processes that the commands of callers have left running and no tool has taken over.
    leftovers: Mutex<Vec<(String, LeftoverTree)>>,
}

/// The part of the protocol that an entry of the table is offered in.
#[derive(Debug)]
pub(in crate::mcp) enum Offer {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt(Box<Prompt>),
    /// A resource or a template of resources.
    Resource(Box<Resource>),
    /// The suggestions for a prompt or a template.
    Completions,
}

/// The kind of an [`Offer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mcp) enum OfferKind {
    Tool,
    Prompt,
    Resource,
    Completions,
}

impl Offer {
    pub(super) fn kind(&self) -> OfferKind {
        match self {
            Self::Tool => OfferKind::Tool,
            Self::Prompt(_) => OfferKind::Prompt,
            Self::Resource(_) => OfferKind::Resource,
            Self::Completions => OfferKind::Completions,
        }
    }
}

/// A tool of a host, or what stands for a prompt or a resource and runs as a tool does.
#[derive(Debug)]
pub(super) struct RegisteredTool {
    pub(super) tool: Tool,
    pub(super) offer: Offer,
    pub(super) toolset: &'static str,
    format: AnswerFormat,
    /// Its entry in the list that a client gets. Built once, since building it clones the whole schema, and only when it
    /// is asked for.
    listed: OnceLock<Definition>,
    /// True if it is in the list. One that is not can be called all the same.
    pub(super) is_listed: bool,
    /// The tools that its description and parameters name.
    named_tools: OnceLock<Box<[&'static str]>>,
}

impl RegisteredTool {
    fn new(tool: Tool, offer: Offer, toolset: &'static str, format: AnswerFormat, is_listed: bool) -> Self {
        let (listed, named_tools) = (OnceLock::new(), OnceLock::new());
        Self { tool, offer, toolset, format, listed, is_listed, named_tools }
    }

    pub(super) fn facts(&self) -> ToolFacts<'static> {
        self.tool.facts(self.toolset)
    }

    /// Returns its entry in the list that a client gets.
    pub(super) fn listed(&self) -> &Definition {
        self.listed.get_or_init(|| self.tool.listed(self.format))
    }

    /// Returns its entry in a list of `available` tools: what is said there of other tools would mislead.
    pub(super) fn definition(
        &self,
        known: &KnownToolNames,
        available: &HashSet<&str>,
    ) -> Cow<'_, Definition> {
        let named = self.named_tools.get_or_init(|| known.named_by(self.listed()));
        match named.iter().all(|name| available.contains(name)) {
            true => Cow::Borrowed(self.listed()),
            false => Cow::Owned(known.shortened(self.listed(), available)),
        }
    }
}

impl RegisteredTool {
    /// Returns its definition with all its parameters, also those that a list leaves out, for a caller of `available`
    /// tools.
    pub(super) fn whole_definition(&self, known: &KnownToolNames, available: &HashSet<&str>) -> Definition {
        let mut definition = self.listed().clone();
        definition.input_schema = Arc::new(schema::whole(self.tool.input()));
        known.shortened(&definition, available)
    }

    /// Returns the parameters of its whole definition that a list leaves out.
    pub(super) fn rarely_needed(&self, whole: &Definition) -> Map<String, Value> {
        let properties = |definition: &Definition| {
            definition.input_schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default()
        };
        let listed = properties(self.listed());
        properties(whole).into_iter().filter(|(name, _)| !listed.contains_key(name)).collect()
    }
}

impl ToolTable {
    /// Registers those tools of `toolsets` that the selection lets be called.
    pub(super) fn new(
        selection: &ToolSelection,
        toolsets: Vec<Toolset>,
        effects: Arc<dyn EffectResolver + Send + Sync>,
        format: AnswerFormat,
    ) -> Result<Self, HostError> {
        let selected = selection.resolve(&toolsets)?;
        let own = toolsets.iter().flat_map(Toolset::facts).map(|tool| tool.name);
        let known = search_hints::tool_names().chain(own).collect();
        let (mut tools, mut others) = (Vec::new(), Vec::new());
        let (mut names, mut other_names) = (HashMap::new(), HashMap::new());
        for toolset in toolsets {
            // Chosen as a whole, in part, or all that it has are prompts and resources.
            let is_chosen = selected.has_everything
                || toolset.tools.iter().any(|tool| selected.callable.contains(tool.name()));
            let (prompts, resources) = match is_chosen {
                true => (toolset.prompts, toolset.resources),
                false => (Vec::new(), Vec::new()),
            };
            for entry in entries(prompts, resources, toolset.name, format) {
                if other_names.insert(entry.tool.name(), others.len()).is_some() {
                    return Err(HostError::DuplicateName(entry.tool.name().to_owned()));
                }
                others.push(entry);
            }
            for tool in toolset.tools {
                if !selected.callable.contains(tool.name()) {
                    continue;
                }
                // An alias counts as a name: a tool of the user must not take over calls of another by its former name.
                for name in std::iter::once(tool.name()).chain(tool.alias_names().iter().copied()) {
                    if names.insert(name, tools.len()).is_some() {
                        return Err(HostError::DuplicateName(name.to_owned()));
                    }
                }
                let is_listed = selected.listed.contains(tool.name());
                tools.push(RegisteredTool::new(tool, Offer::Tool, toolset.name, format, is_listed));
            }
        }
        // Behind the tools, so that the order of these is the order of the list.
        names.extend(
            other_names.into_iter().map(|(name, index): (&'static str, usize)| (name, index + tools.len())),
        );
        tools.append(&mut others);
        Ok(Self { tools, names, effects, roots: Vec::new(), known, leftovers: Mutex::default() })
    }

    /// Returns the tool with this name or alias.
    pub(super) fn get(&self, name: &str) -> Option<&RegisteredTool> {
        self.names.get(name).and_then(|index| self.tools.get(*index))
    }

    /// Hands what a command of `principal` has left running to the tool that lists and ends such things.
    ///
    /// # Errors
    /// The principal may leave no more running.
    pub(super) fn take_leftovers(&self, principal: &str, tree: &LeftoverTree) -> Result<(), NoPermit> {
        let taken =
            self.tools.iter().find_map(|registered| registered.tool.hooks().take_leftovers(principal, tree));
        if let Some(taken) = taken {
            return taken;
        }
        let mut leftovers = self.leftovers.lock().unwrap_or_else(PoisonError::into_inner);
        // Trees that have ended are removed here, so that only running ones count towards the limit.
        leftovers.retain(|(_, tree)| !tree.has_ended());
        if leftovers.iter().filter(|(owner, _)| owner == principal).count() >= MAX_LEFTOVERS {
            return Err(NoPermit::new(format!(
                "what {MAX_LEFTOVERS} other commands have left running goes on, which is the most there may be"
            )));
        }
        leftovers.push((principal.to_owned(), tree.clone()));
        Ok(())
    }

    /// Ends what `principal` has running.
    pub(super) fn release_caller(&self, principal: &str) {
        self.tools.iter().for_each(|registered| registered.tool.hooks().release_caller(principal));
        self.leftovers.lock().unwrap_or_else(PoisonError::into_inner).retain(|(owner, tree)| {
            let is_kept = owner != principal;
            if !is_kept {
                tree.kill();
            }
            is_kept
        });
    }

    /// Iterates over the entries of one kind, in the order of the list.
    pub(super) fn of_kind(&self, kind: OfferKind) -> impl Iterator<Item = &RegisteredTool> {
        self.tools.iter().filter(move |registered| registered.offer.kind() == kind)
    }

    /// Returns the switches of all entries, each once.
    pub(super) fn availabilities(&self) -> Vec<Availability> {
        let mut switches: Vec<Availability> = Vec::new();
        for switch in self.tools.iter().filter_map(|registered| registered.tool.availability()) {
            if !switches.iter().any(|known| known.is_same(switch)) {
                switches.push(switch.clone());
            }
        }
        switches
    }

    /// Hands every entry the way to tell clients of changes.
    pub(super) fn connect_notices(&self, notices: &ClientNotices) {
        self.tools.iter().for_each(|registered| registered.tool.hooks().connect_notices(notices));
    }

    /// Iterates over all entries, in the order of the list.
    pub(super) fn iter(&self) -> impl Iterator<Item = &RegisteredTool> {
        self.tools.iter()
    }
}

/// Returns the entries of prompts and resources, and of the suggestions for them.
fn entries(
    prompts: Vec<Prompt>,
    resources: Vec<Resource>,
    toolset: &'static str,
    format: AnswerFormat,
) -> Vec<RegisteredTool> {
    let prompts = prompts.into_iter().map(|prompt| Offer::Prompt(Box::new(prompt)));
    let offers = prompts.chain(resources.into_iter().map(|resource| Offer::Resource(Box::new(resource))));
    let mut entries = Vec::new();
    for offer in offers {
        let parts = match &offer {
            Offer::Prompt(prompt) => &prompt.parts,
            Offer::Resource(resource) => &resource.parts,
            Offer::Tool | Offer::Completions => continue,
        };
        let completions = parts.completions_tool().map(|tool| (tool, Offer::Completions));
        entries.push((parts.tool.clone(), offer));
        entries.extend(completions);
    }
    let registered = |(tool, offer)| RegisteredTool::new(tool, offer, toolset, format, true);
    entries.into_iter().map(registered).collect()
}

impl fmt::Debug for ToolTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolTable").field("tools", &self.tools).finish_non_exhaustive()
    }
}
