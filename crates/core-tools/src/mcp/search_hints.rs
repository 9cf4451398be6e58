//! The members of `_meta` for clients that load tools on demand, as Claude Code documents them.
//!
//! `anthropic/alwaysLoad` keeps a tool in the model's list from the beginning; `anthropic/searchHint` is a phrase by
//! which one that is not there yet is found. Other clients ignore both.

use rmcp::model::MetaObject;
use serde_json::{Map, Value};

/// The tools of nearly every step: to search for them first would cost a turn each time.
const ALWAYS_LOADED: [&str; 6] =
    ["read_file", "edit_file", "search_files", "find_files", "run_command", "run_tests"];

/// The phrase of each other tool: the words of the one who wants it, which its name and description may not have.
const HINTS: &[(&str, &str)] = &[
    ("read_multiple_files", "read several files or ranges of lines at once"),
    ("read_media_file", "view image, picture, audio, PDF"),
    ("write_file", "create, overwrite or append to a file"),
    ("apply_patch", "apply a diff to several files at once"),
    ("list_directory", "ls, folder contents"),
    ("directory_tree", "tree of folders"),
    ("file_outline", "symbols, functions, classes of a file"),
    ("move_file", "mv, rename file or folder"),
    ("delete_file", "rm, remove a file"),
    ("create_directory", "mkdir"),
    ("file_exists", "does a file exist"),
    ("directory_exists", "does a folder exist"),
    ("get_file_info", "stat: size, permissions, time of change"),
    ("git_status", "changed, staged, untracked, conflicting files"),
    ("git_log", "commit history"),
    ("git_diff", "uncommitted changes, compare revisions"),
    ("git_show", "one commit, file at a revision"),
    ("git_blame", "who changed a line, annotate"),
    ("git_list_branches", "local and remote branches"),
    ("git_current_branch", "which branch is checked out"),
    ("git_add", "stage files"),
    ("git_commit", "commit changes"),
    ("git_create_branch", "new branch"),
    ("git_checkout", "switch branch"),
    ("git_restore", "discard changes, unstage"),
    ("git_stash", "put changes aside, pop"),
    ("git_push", "push to a remote"),
    ("git_fetch", "fetch from a remote"),
    ("git_pull", "pull, fast-forward"),
    ("git_worktree", "second working tree"),
    ("git_rebase", "rebase, continue, abort"),
    ("git_merge", "merge a branch, conflicts"),
    ("git_clean", "remove untracked files"),
    ("start_command", "dev server, watcher, background process"),
    ("read_command_output", "output of a background process"),
    ("write_command_input", "stdin of a background process, REPL"),
    ("stop_command", "kill a background process"),
    ("list_commands", "running background processes"),
    ("build", "compile, compiler errors"),
    ("restore", "install dependencies"),
    ("get_diagnostics", "roots, role, toolchains, versions"),
    ("run_test_suite", "run one test file or folder"),
    ("run_test_task", "run tests within two minutes, TAP"),
    ("compile_context", "plans, rules, changes for a task in a token budget"),
    ("inspect_state", "live variables of a running process, debugger"),
    ("db_bridge", "SQL query, schema, SQLite, PostgreSQL, MySQL"),
    ("capture_trace", "profile CPU, memory, flame graph, slow"),
    ("get_logs", "application log, errors"),
    ("status", "supervisor and agents"),
    ("pause", "pause automatic restarts of agents"),
    ("resume", "end a pause of agents"),
    ("new_session", "start an agent, subagent"),
    ("logs", "output of an agent, log of the supervisor"),
    ("run_agent_command", "start an agent with a slash command"),
    ("send_message", "tell a running agent something"),
    ("list_sessions", "agents that run or ran"),
    ("end_session", "stop an agent"),
    ("find_tools", "find a tool that is not listed"),
    ("call_tools", "batch: several calls in one, chain, sequence of steps"),
];

/// Returns the names of all tools of the library, whether or not they are linked.
pub(crate) fn tool_names() -> impl Iterator<Item = &'static str> {
    ALWAYS_LOADED.into_iter().chain(HINTS.iter().map(|(name, _)| *name))
}

/// Returns the `_meta` of a tool, if there is anything to say.
pub(crate) fn meta(tool: &str) -> Option<MetaObject> {
    let (key, value) = if ALWAYS_LOADED.contains(&tool) {
        ("anthropic/alwaysLoad", Value::Bool(true))
    } else {
        let (_, hint) = HINTS.iter().find(|(name, _)| *name == tool)?;
        ("anthropic/searchHint", Value::from(*hint))
    };
    Some(MetaObject(Map::from_iter([(key.to_owned(), value)])))
}
