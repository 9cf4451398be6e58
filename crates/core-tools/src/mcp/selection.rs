//! The selection of the tools that a server offers: presets, toolsets, single tools.

use super::presets::{PRESETS, preset};
use super::tool::Tool;
use super::toolset::Toolset;
use did_you_mean::nearest;
use std::collections::HashSet;

/// The tools that a server offers. All of them, and all of them listed, by default.
///
/// A preset shapes the list alone: what it leaves out can be called all the same. Toolsets and tools that are named
/// without a preset are all that there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSelection {
    words: Vec<String>,
    supervised: bool,
    read_only: bool,
}

/// The tools that a selection comes to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SelectedTools {
    /// The tools that can be called.
    pub(crate) callable: HashSet<&'static str>,
    /// Those of them that are listed.
    pub(crate) listed: HashSet<&'static str>,
    /// True if a preset, or no words, chose every toolset.
    pub(crate) has_everything: bool,
}

impl ToolSelection {
    /// A selection of presets ([`PRESETS`]), toolsets and tools, by name. No words at all is everything.
    pub fn new<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Self {
        Self { words: words.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Says that a supervisor of agents is configured, so that presets list the tools for its sessions. Not by default.
    #[must_use]
    pub fn supervised(mut self, supervised: bool) -> Self {
        self.supervised = supervised;
        self
    }

    /// Leaves out every tool that changes anything, runs programs of the caller's choice or reaches beyond this machine.
    /// None is left out by default.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Returns true if `tool` is among `toolsets` and can be called. False for a selection that names what is not there.
    pub fn offers(&self, toolsets: &[Toolset], tool: &str) -> bool {
        self.resolve(toolsets).is_ok_and(|selected| selected.callable.contains(tool))
    }

    /// Returns the names of the selected tools.
    pub(crate) fn resolve(&self, toolsets: &[Toolset]) -> Result<SelectedTools, UnknownSelection> {
        let mut selected = self.resolve_words(toolsets)?;
        if self.read_only {
            let facts = toolsets.iter().flat_map(Toolset::facts);
            let reading: HashSet<&str> =
                // A tool that reads may still reach other machines, and a request to them can carry data away.
                facts.filter(|tool| tool.read_only && !tool.open_world).map(|tool| tool.name).collect();
            selected.callable.retain(|name| reading.contains(name));
            selected.listed.retain(|name| reading.contains(name));
        }
        Ok(selected)
    }

    fn resolve_words(&self, toolsets: &[Toolset]) -> Result<SelectedTools, UnknownSelection> {
        let all = || {
            let tools = |toolset: &'_ Toolset| {
                toolset.tools.iter().map(|tool| (toolset.name, tool.name())).collect::<Vec<_>>()
            };
            toolsets.iter().flat_map(tools)
        };
        let everything = || all().map(|(_, name)| name).collect::<HashSet<_>>();
        if self.words.is_empty() {
            return Ok(SelectedTools { callable: everything(), listed: everything(), has_everything: true });
        }
        let mut selected = SelectedTools::default();
        for word in &self.words {
            if let Some(preset) = preset(word) {
                let listed = all().filter(|(toolset, name)| preset.lists(toolset, name, self.supervised));
                selected.listed.extend(listed.map(|(_, name)| name));
                // A preset shapes the list alone, so that tools it leaves out can still be called.
                selected.callable = everything();
                selected.has_everything = true;
                continue;
            }
            // A toolset first: `context` and `git` are no tools, but a tool may be called like its toolset.
            let named: Vec<_> = match toolsets.iter().find(|toolset| toolset.name == *word) {
                Some(toolset) => toolset.tools.iter().map(Tool::name).collect(),
                None => all().map(|(_, name)| name).filter(|name| *name == word).collect(),
            };
            if named.is_empty() {
                return Err(UnknownSelection::new(word, toolsets));
            }
            selected.listed.extend(&named);
            selected.callable.extend(named);
        }
        Ok(selected)
    }
}

/// A selection names something that is no preset, toolset or tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no preset, toolset or tool is called `{word}`{hint} (presets and toolsets: {known})", hint = did_you_mean(.nearest.as_deref()))]
pub struct UnknownSelection {
    word: String,
    nearest: Option<String>,
    known: String,
}

impl UnknownSelection {
    fn new(word: &str, toolsets: &[Toolset]) -> Self {
        let groups = || PRESETS.into_iter().chain(toolsets.iter().map(|toolset| toolset.name));
        let tools = toolsets.iter().flat_map(|toolset| toolset.tools.iter().map(Tool::name));
        Self {
            word: word.to_owned(),
            nearest: nearest(word, groups().chain(tools)).map(str::to_owned),
            known: groups().collect::<Vec<_>>().join(", "),
        }
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Answer, CallContext};
    use schemars::JsonSchema;

    #[derive(serde::Deserialize, JsonSchema)]
    struct NoArguments {}

    fn tool(name: &'static str) -> Tool {
        Tool::new(name, "Title", "Description.", |_: NoArguments, _: CallContext| async {
            Ok(Answer::text(""))
        })
    }

    fn toolsets() -> Vec<Toolset> {
        vec![
            Toolset::new(
                "filesystem",
                [tool("read_file"), tool("file_exists"), tool("write_file").destroys()],
            ),
            Toolset::new("ci", [tool("run_command").destroys().open_world()]),
            Toolset::new("sessions", [tool("new_session").adds()]),
        ]
    }

    #[allow(clippy::needless_pass_by_value, reason = "each is made for its call")]
    fn resolved(selection: ToolSelection) -> (Vec<&'static str>, Vec<&'static str>) {
        let SelectedTools { callable, listed, .. } = selection.resolve(&toolsets()).unwrap();
        let sorted = |names: HashSet<&'static str>| {
            let mut names: Vec<_> = names.into_iter().collect();
            names.sort_unstable();
            names
        };
        (sorted(callable), sorted(listed))
    }

    const ALL: [&str; 5] = ["file_exists", "new_session", "read_file", "run_command", "write_file"];

    #[test]
    fn a_preset_shapes_the_list_and_toolsets_and_tools_decide_what_can_be_called() {
        let listed = |selection| resolved(selection).1;
        assert_eq!(resolved(ToolSelection::default()), (ALL.to_vec(), ALL.to_vec()));
        assert_eq!(resolved(ToolSelection::new(["full"])), (ALL.to_vec(), ALL.to_vec()));
        let standard = ["read_file", "run_command", "write_file"];
        assert_eq!(resolved(ToolSelection::new(["standard"])), (ALL.to_vec(), standard.to_vec()));
        assert!(listed(ToolSelection::new(["standard"]).supervised(true)).contains(&"new_session"));
        let chosen = ["file_exists", "read_file", "write_file"];
        assert_eq!(resolved(ToolSelection::new(["filesystem"])), (chosen.to_vec(), chosen.to_vec()));
        assert_eq!(
            resolved(ToolSelection::new(["minimal", "file_exists"])),
            (ALL.to_vec(), ["file_exists", "read_file", "run_command", "write_file"].to_vec())
        );
    }

    #[test]
    fn a_read_only_selection_has_no_tool_that_changes_anything() {
        let reading = ["file_exists", "read_file"];
        assert_eq!(resolved(ToolSelection::default().read_only(true)), (reading.to_vec(), reading.to_vec()));
        let standard = ToolSelection::new(["standard"]).read_only(true);
        assert_eq!(resolved(standard), (reading.to_vec(), ["read_file"].to_vec()));
    }

    #[test]
    fn a_word_that_is_nothing_is_an_error_with_the_nearest() {
        let error = ToolSelection::new(["standart"]).resolve(&toolsets()).unwrap_err().to_string();
        assert!(error.contains("did you mean `standard`?"), "{error}");
    }
}
