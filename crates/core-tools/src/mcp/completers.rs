//! Suggestions of paths, branches and roles, as the tools of the caller find them.

#![cfg_attr(not(feature = "context"), allow(dead_code, reason = "only a context has roles and branches"))]

use super::call_context::CallContext;
use super::completion::{Completer, CompletionRequest};
use role_policy::Policy;
use serde_json::{Map, Value};

/// Suggests the roles that the caller may use.
pub(super) fn roles() -> Completer {
    Completer::new(|request: CompletionRequest, context: CallContext| {
        let roles = context.policy.as_deref().map(|policy: &Policy| {
            let roles = policy.roles_for(&context.caller).filter(|role| role.starts_with(&request.value));
            roles.map(str::to_owned).collect::<Vec<String>>()
        });
        std::future::ready(Ok(roles.unwrap_or_default()))
    })
}

/// Suggests the paths that begin as typed, one folder at a time, as `list_directory` shows them to the caller.
pub(super) fn paths() -> Completer {
    Completer::new(|request: CompletionRequest, context: CallContext| async move {
        let (folder, name) = match request.value.rsplit_once('/') {
            Some((folder, name)) => (format!("{folder}/"), name),
            None => (String::new(), request.value.as_str()),
        };
        let path = if folder.is_empty() { "." } else { folder.as_str() };
        let arguments = Map::from_iter([("path".to_owned(), Value::from(path))]);
        // A folder that is not there has nothing to suggest, nor has a caller who may not list it.
        let Ok(listed) = context.text_of_tool("list_directory", arguments).await else {
            return Ok(Vec::new());
        };
        let names = listed.lines().map(|line| line.trim_end_matches('@'));
        let matching = names.filter(|entry| entry.starts_with(name) && is_shown(entry, name));
        Ok(matching.map(|entry| format!("{folder}{entry}")).collect())
    })
}

/// Returns true if an entry of a folder is suggested after `typed`: no note about the list, and no hidden name before
/// somebody has typed its dot.
fn is_shown(entry: &str, typed: &str) -> bool {
    !entry.starts_with('[') && !entry.is_empty() && (typed.starts_with('.') || !entry.starts_with('.'))
}

/// Suggests the branches of the repository in the first root, as `git_list_branches` lists them to the caller.
pub(super) fn branches() -> Completer {
    Completer::new(|request: CompletionRequest, context: CallContext| async move {
        // Without a repository there is no branch, nor is there one for a caller who may not list them.
        let Ok(answer) = context.call_tool("git_list_branches", Map::new()).await else {
            return Ok(Vec::new());
        };
        let list = answer.as_structured().and_then(|list| list["branches"].as_array());
        let names = list.into_iter().flatten().filter_map(|branch| branch["name"].as_str());
        Ok(names.filter(|name| name.starts_with(&request.value)).map(str::to_owned).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_and_hidden_names_are_no_suggestions_until_a_dot_is_typed() {
        assert!(is_shown("src/", ""));
        assert!(!is_shown("[1,500 entries]", ""));
        assert!(!is_shown(".git/", ""));
        assert!(is_shown(".github/", ".g"));
    }
}
