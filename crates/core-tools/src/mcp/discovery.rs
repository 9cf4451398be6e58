//! The toolset `discovery`: the tool that finds other tools, and the one that calls several.

use super::answer::Answer;
use super::call_context::CallContext;
use super::call_tools::call_tools;
use super::tool::Tool;
use super::tool_directory::ToolDirectory;
use super::tool_error::ToolError;
use super::tool_ranking::{Ranked, rank};
use super::toolset::Toolset;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The name of the tool.
const NAME: &str = "find_tools";

/// A search for tools.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FindTools {
    /// Words for what you want to do, for example `blame line author` or `delete file`. They are compared with the names,
    /// titles, descriptions and parameters of the tools. An empty text names every tool.
    #[serde(default)]
    query: String,
    /// The most definitions to return, the best first. 5 by default.
    #[schemars(range(min = 1, max = 20))]
    max_results: Option<u32>,
}

/// The definitions that are returned where the caller does not say.
const DEFAULT_RESULTS: usize = 5;

/// The longest answer, in bytes of definitions: one more is not begun past it.
const MAX_BYTES: usize = 24 * 1024;

/// Returns the toolset `discovery`.
pub fn toolset() -> Toolset {
    Toolset::new("discovery", [find_tools(), call_tools()])
}

fn find_tools() -> Tool {
    Tool::new(
        NAME,
        "Find tools",
        "Finds tools that you may call and that are not in your list, and returns their full definitions: name, \
         description and input schema. Use it when no tool in your list fits a step, before you do it by a command. What \
         it returns can be called by name from then on, and is added to your list. Of tools that are in your list already \
         the rarely needed parameters are returned.",
        |input: FindTools, context: CallContext| async move {
            let directory = context.directory.ok_or_else(|| ToolError::new("there is no list of tools here"))?;
            let max_results = input.max_results.and_then(|max| usize::try_from(max).ok());
            let found = find(&directory, &input.query, max_results.unwrap_or(DEFAULT_RESULTS));
            let definitions = found["tools"].as_array().into_iter().flatten();
            context.found.add(definitions.filter_map(|tool| tool["name"].as_str()).map(str::to_owned));
            Ok(Answer::text(found.to_string()))
        },
    )
    .searches_tools()
    .unmetered()
}

/// Searches the directory, and returns the answer.
fn find(directory: &ToolDirectory, query: &str, max_results: usize) -> Value {
    let mut tools = Vec::new();
    directory.for_each(&mut |entry| {
        // Whoever calls it has found it.
        if entry.definition.name != NAME {
            tools.push(Ranked::new(entry));
        }
    });
    let ranked = rank(query, &tools);
    if ranked.is_empty() {
        return name_all(&tools, query);
    }
    let (listed, unlisted): (Vec<&Ranked>, Vec<&Ranked>) =
        ranked.into_iter().partition(|tool| tool.is_listed);
    let mut definitions = Vec::new();
    let mut bytes = 0;
    for tool in unlisted.iter().take(max_results) {
        if bytes > MAX_BYTES {
            break;
        }
        let definition = json!({
            "name": tool.definition.name,
            "description": tool.definition.description,
            "inputSchema": tool.definition.input_schema,
        });
        bytes += definition.to_string().len();
        definitions.push(definition);
    }
    let names =
        |tools: &[&Ranked]| tools.iter().map(|tool| tool.definition.name.to_string()).collect::<Vec<_>>();
    let mut found = json!({"matched": unlisted.len(), "tools": definitions});
    if unlisted.is_empty() {
        found["note"] = "no tool beyond your list fits".into();
    }
    if let Some(rest) = unlisted.get(definitions.len()..).filter(|rest| !rest.is_empty()) {
        found["also_matched"] = names(rest).into();
    }
    if let Some(best) = listed.get(..listed.len().min(max_results)).filter(|best| !best.is_empty()) {
        found["in_your_list"] = names(best).into();
        let further: Map<String, Value> = best
            .iter()
            .filter(|tool| !tool.rarely_needed.is_empty())
            .map(|tool| (tool.definition.name.to_string(), tool.rarely_needed.clone().into()))
            .collect();
        if !further.is_empty() {
            found["further_parameters"] = further.into();
        }
    }
    found
}

/// Names every tool that the list leaves out, where a query matches none.
fn name_all(tools: &[Ranked], query: &str) -> Value {
    let line = |tool: &Ranked| {
        let title = tool.definition.title.as_deref().unwrap_or_default();
        format!("{}: {title}", tool.definition.name)
    };
    let unlisted: Vec<String> = tools.iter().filter(|tool| !tool.is_listed).map(line).collect();
    let note = match (query.trim().is_empty(), unlisted.is_empty()) {
        (_, true) => "every tool that you may call is in your list",
        (true, false) => "these tools are not in your list; a query with words of one returns its definition",
        (false, false) => "no tool matches; these are not in your list",
    };
    json!({"matched": 0, "note": note, "not_in_your_list": unlisted})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Host, ToolSelection};
    use crate::redact::Redactor;
    use role_policy::{Caller, Policy};

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only its schema is used")]
    struct Blame {
        /// The file whose lines are explained.
        path: String,
    }

    fn other(name: &'static str, title: &'static str, description: &'static str) -> Tool {
        Tool::new(name, title, description, |_: Blame, _: CallContext| async { Ok(Answer::text("")) })
    }

    async fn answer(roles: &str, role: &str, arguments: Value) -> Value {
        let tools = [
            other("git_blame", "Who wrote it", "Shows commit and author of each line."),
            other("git_log", "Commits", "Shows commits with their author, newest first."),
            other("file_exists", "Is it a file?", "Says if there is a file at a path."),
            other("pause", "Pause", "Pauses the supervisor."),
        ];
        let toolsets = [Toolset::new("git", tools), toolset()];
        let facts: Vec<_> = toolsets.iter().flat_map(Toolset::facts).collect();
        let policy = Policy::load(roles, "test", &facts).unwrap().policy;
        let mut host = Host::builder(policy, Redactor::new(Default::default()).unwrap())
            .selection(ToolSelection::new(["standard"]));
        for toolset in toolsets {
            host = host.toolset(toolset);
        }
        let host = host.build().unwrap();
        let caller = Caller::new(role);
        let listed: &[&str] = match role {
            "minimal" => &["git_log", "find_tools"],
            _ => &["git_log", "find_tools", "call_tools"],
        };
        assert_eq!(host.names(&caller), listed);
        let context = CallContext::new(caller, Default::default());
        let arguments = arguments.as_object().cloned().unwrap();
        let answer = host.call("find_tools", arguments, context).await.unwrap();
        serde_json::from_str(&answer.to_text()).unwrap()
    }

    const ROLES: &str = "version = 1\n[roles.minimal]\nallow = [\"git_log\", \"find_tools\"]\n\
                         [roles.all]\nallow = [\"*\"]\n[roles.some]\nallow = [\"*\"]\ndeny = [\"pause\"]\n";

    #[tokio::test]
    async fn what_matches_is_returned_whole_and_what_is_listed_is_named() {
        let found = answer(ROLES, "all", json!({"query": "author of a line"})).await;
        assert_eq!(found["tools"][0]["name"], "git_blame");
        assert_eq!(found["tools"][0]["inputSchema"]["properties"]["path"]["type"], "string");
        assert_eq!(found["in_your_list"], json!(["git_log"]));
        let found = answer(ROLES, "all", json!({"query": "pausing", "max_results": "1"})).await;
        assert_eq!((found["matched"].clone(), found["tools"][0]["name"].clone()), (json!(1), json!("pause")));
        let found = answer(ROLES, "all", json!({"query": "path", "max_results": 1})).await;
        assert_eq!(found["tools"].as_array().map(Vec::len), Some(1));
        assert!(found["matched"].as_u64().unwrap() >= 2 && found["also_matched"].is_array(), "{found}");
    }

    #[tokio::test]
    async fn a_query_that_matches_nothing_names_what_there_is() {
        for query in ["", "zzz"] {
            let found = answer(ROLES, "all", json!({"query": query})).await;
            let names = found["not_in_your_list"].as_array().unwrap();
            assert_eq!(names.len(), 3, "{found}");
            assert_eq!(names[2], "pause: Pause");
        }
    }

    #[tokio::test]
    async fn what_the_role_hides_is_never_found() {
        for query in ["pause supervisor", "pause", ""] {
            let found = answer(ROLES, "some", json!({"query": query})).await;
            assert!(!found.to_string().contains("ause"), "{found}");
        }
        let found = answer(ROLES, "minimal", json!({"query": "zzz"})).await;
        assert_eq!(found["not_in_your_list"], json!([]));
    }
}
