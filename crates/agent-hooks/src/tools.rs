//! The native tools of each client, with the names and arguments that the clients give them.

use crate::client::HookClient;
use crate::event::HookEvent;
use crate::tool_use::{FileUse, ToolUse};
use role_policy::Access;
use serde_json::{Map, Value, json};

type Input = Map<String, Value>;

impl ToolUse {
    /// Returns what the tool of `event` would do. Arguments that are missing make the use [`Unknown`](Self::Unknown).
    pub fn of(event: &HookEvent) -> Self {
        let found = match event.client {
            HookClient::Claude => claude(&event.tool, &event.input),
            HookClient::Codex => codex(&event.tool, &event.input),
            HookClient::Gemini => gemini(&event.tool, &event.input),
            HookClient::Opencode => opencode(&event.tool, &event.input),
            HookClient::Copilot => copilot(&event.tool, &event.input),
            HookClient::Cursor => cursor(&event.tool, &event.input),
        };
        found.unwrap_or(Self::Unknown)
    }
}

fn text(input: &Input, name: &str) -> Option<String> {
    input.get(name)?.as_str().map(str::to_owned)
}

/// Returns the first of several members that is there. One of another type counts as missing.
fn any_text(input: &Input, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| text(input, name))
}

fn read(tool: &'static str, path: impl Into<String>) -> ToolUse {
    ToolUse::Files(vec![FileUse::new(tool, Access::Read, path)])
}

fn write_file(input: &Input, path: String) -> ToolUse {
    let content = ["content", "file_text", "contents"].iter().find_map(|name| input.get(*name));
    let content = content.cloned().unwrap_or_default();
    ToolUse::Files(vec![FileUse::new("write_file", Access::Write, path).with("content", content)])
}

fn edit_file(input: &Input, path: String) -> ToolUse {
    let member =
        |names: [&str; 3]| names.iter().find_map(|name| input.get(*name)).cloned().unwrap_or_default();
    let edits = match input.get("edits") {
        Some(edits) => edits.clone(),
        None => json!([{
            "old_string": member(["old_string", "oldString", "old_str"]),
            "new_string": member(["new_string", "newString", "new_str"]),
        }]),
    };
    ToolUse::Files(vec![FileUse::new("edit_file", Access::Write, path).with("edits", edits)])
}

/// Returns the folders that a search for files reaches: the folder that is named, and the one that a pattern leads to.
fn find_files(pattern: &str, folder: Option<String>) -> ToolUse {
    let folder = folder.unwrap_or_else(|| ".".to_owned());
    // The components before the first wildcard are the folder that the pattern leads to.
    let fixed: Vec<&str> =
        pattern.split('/').take_while(|part| !part.contains(['*', '?', '[', '{'])).collect();
    let beneath = fixed.join("/");
    let start = match beneath.as_str() {
        "" if pattern.starts_with('/') => "/".to_owned(),
        _ if pattern.starts_with(['/', '~']) => beneath,
        // `..` behind a wildcard leads out of what the pattern begins with.
        _ => format!("{folder}/{beneath}"),
    };
    if pattern.split('/').skip(fixed.len()).any(|part| part == "..") {
        return ToolUse::Unknown;
    }
    let call = |path: String| FileUse::new("find_files", Access::Read, path).with("pattern", json!(pattern));
    ToolUse::Files(if start == folder { vec![call(folder)] } else { vec![call(folder), call(start)] })
}

fn search_files(input: &Input, folder: Option<String>) -> ToolUse {
    let path = folder.unwrap_or_else(|| ".".to_owned());
    let call = FileUse::new("search_files", Access::Read, path);
    ToolUse::Files(vec![call.with("pattern", input.get("pattern").cloned().unwrap_or_default())])
}

/// Splits `mcp__server__tool`.
fn server_tool(name: &str, prefix: &str, separator: &str) -> Option<ToolUse> {
    let (server, tool) = name.strip_prefix(prefix)?.split_once(separator)?;
    Some(ToolUse::Server { server: server.to_owned(), tool: tool.to_owned() })
}

/// The tools of Claude Code 2.1 (`sdk-tools.d.ts` of its package).
fn claude(tool: &str, input: &Input) -> Option<ToolUse> {
    Some(match tool {
        "Bash" => ToolUse::Line { line: text(input, "command")?, folder: None },
        "Monitor" if input.contains_key("ws") => ToolUse::Web("web_fetch"),
        "Monitor" => ToolUse::Line { line: text(input, "command")?, folder: None },
        "Read" | "NotebookRead" => read("read_file", any_text(input, &["file_path", "notebook_path"])?),
        "Write" => write_file(input, text(input, "file_path")?),
        "Edit" | "MultiEdit" => edit_file(input, text(input, "file_path")?),
        "NotebookEdit" => edit_file(input, text(input, "notebook_path")?),
        "Glob" => find_files(&text(input, "pattern")?, text(input, "path")),
        "Grep" => search_files(input, text(input, "path")),
        "LS" => read("list_directory", text(input, "path")?),
        "WebFetch" => ToolUse::Web("web_fetch"),
        "WebSearch" => ToolUse::Web("web_search"),
        "Task" | "Agent" | "Workflow" | "RemoteTrigger" | "CronCreate" | "ScheduleWakeup" => ToolUse::Agent,
        "AskUserQuestion"
        | "EnterPlanMode"
        | "ExitPlanMode"
        | "TodoWrite"
        | "TaskCreate"
        | "TaskGet"
        | "TaskList"
        | "TaskUpdate"
        | "TaskOutput"
        | "TaskStop"
        | "BashOutput"
        | "KillShell"
        | "KillBash"
        | "ToolSearch"
        | "Skill"
        | "StructuredOutput"
        | "PushNotification"
        | "ReadNotifications"
        | "CronList"
        | "CronDelete"
        | "ListMcpResources"
        | "ListMcpResourcesTool"
        | "SendFeedback"
        | "ReportFindings"
        | "SendUserMessage" => ToolUse::Internal,
        name => return server_tool(name, "mcp__", "__"),
    })
}

/// Returns true for the shells whose lines are judged, by the paths that the system gives them.
fn is_system_shell(program: &str) -> bool {
    matches!(program, "/bin/sh" | "/bin/bash" | "/usr/bin/sh" | "/usr/bin/bash")
}

/// The tools of Codex 0.169, by the names that its hooks are given.
fn codex(tool: &str, input: &Input) -> Option<ToolUse> {
    let folder = any_text(input, &["workdir", "working_directory"]);
    Some(match tool {
        "Bash" | "shell" | "local_shell" | "exec_command" | "shell_command" => {
            // The member names the program that reads the line. Another one than a shell of the system is not known.
            if input.get("shell").is_some_and(|shell| !shell.as_str().is_some_and(is_system_shell)) {
                return None;
            }
            match input.get("command").or_else(|| input.get("cmd"))? {
                Value::String(line) => ToolUse::Line { line: line.clone(), folder },
                Value::Array(words) => {
                    let words =
                        words.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<_>>()?;
                    ToolUse::Words { words, folder }
                }
                _ => return None,
            }
        }
        "apply_patch" | "ApplyPatch" => ToolUse::Patch(any_text(input, &["command", "input", "patch"])?),
        "view_image" => read("read_media_file", text(input, "path")?),
        "web_search" => ToolUse::Web("web_search"),
        "update_plan" | "request_user_input" | "wait_agent" | "close_agent" | "wait" => ToolUse::Internal,
        "spawn_agent" | "spawn_agents_on_csv" | "send_input" | "resume_agent" => ToolUse::Agent,
        name => return server_tool(name, "mcp__", "__"),
    })
}

/// The tools of Gemini CLI 0.61 (`docs/reference/tools.md` of its package).
fn gemini(tool: &str, input: &Input) -> Option<ToolUse> {
    let folder = || any_text(input, &["dir_path", "path"]);
    Some(match tool {
        "run_shell_command" => ToolUse::Line {
            line: text(input, "command")?,
            folder: any_text(input, &["dir_path", "directory"]),
        },
        "read_file" => read("read_file", any_text(input, &["file_path", "absolute_path"])?),
        "read_many_files" => {
            let patterns = input.get("include").or_else(|| input.get("paths"))?.as_array()?;
            let mut files = Vec::new();
            for pattern in patterns {
                match find_files(pattern.as_str()?, None) {
                    ToolUse::Files(found) => files.extend(found),
                    other => return Some(other),
                }
            }
            files.iter_mut().for_each(|file| file.tool = "read_file");
            ToolUse::Files(files)
        }
        "write_file" => write_file(input, text(input, "file_path")?),
        "replace" | "edit" => edit_file(input, text(input, "file_path")?),
        "glob" => find_files(&text(input, "pattern")?, folder()),
        "grep_search" | "search_file_content" => search_files(input, folder()),
        "list_directory" => read("list_directory", folder()?),
        "web_fetch" => ToolUse::Web("web_fetch"),
        "google_web_search" => ToolUse::Web("web_search"),
        "ask_user" | "write_todos" | "activate_skill" | "get_internal_docs" | "enter_plan_mode"
        | "exit_plan_mode" | "complete_task" | "update_topic" | "list_mcp_resources" => ToolUse::Internal,
        name if name.starts_with("tracker_") => ToolUse::Internal,
        "invoke_agent"
        | "invoke_subagent"
        | "codebase_investigator"
        | "generalist"
        | "cli_help"
        | "browser_agent" => ToolUse::Agent,
        // Gemini separates server and tool by one underscore, which both names may contain. The judge tries every
        // split.
        name => return server_tool(name, "mcp_", "_"),
    })
}

/// The tools of opencode 1.18.
fn opencode(tool: &str, input: &Input) -> Option<ToolUse> {
    let path = || any_text(input, &["filePath", "file_path", "path"]);
    Some(match tool {
        "bash" => ToolUse::Line { line: text(input, "command")?, folder: text(input, "workdir") },
        "read" => read("read_file", path()?),
        "write" => write_file(input, path()?),
        "edit" | "multiedit" => edit_file(input, path()?),
        "patch" | "apply_patch" => ToolUse::Patch(any_text(input, &["patchText", "patch"])?),
        "glob" => find_files(&text(input, "pattern")?, text(input, "path")),
        "grep" => search_files(input, text(input, "path")),
        "list" | "ls" => read("list_directory", path().unwrap_or_else(|| ".".to_owned())),
        "lsp" => read("read_file", path()?),
        "webfetch" => ToolUse::Web("web_fetch"),
        "websearch" | "codesearch" => ToolUse::Web("web_search"),
        "task" => ToolUse::Agent,
        "todowrite" | "todoread" | "question" | "skill" | "invalid" | "plan_exit" | "plan_enter" => {
            ToolUse::Internal
        }
        name => {
            let (server, tool) = name.split_once('_')?;
            ToolUse::Server { server: server.to_owned(), tool: tool.to_owned() }
        }
    })
}

/// Returns the searches of a tool with a list of folders or files, or with the text of one.
fn searches(input: &Input, search: impl Fn(Option<String>) -> Option<ToolUse>) -> Option<ToolUse> {
    let folders: Vec<Option<String>> = match input.get("paths").or_else(|| input.get("path")) {
        None | Some(Value::Null) => vec![None],
        Some(Value::String(folder)) => vec![Some(folder.clone())],
        Some(Value::Array(folders)) if folders.is_empty() => vec![None],
        Some(Value::Array(folders)) => folders
            .iter()
            .map(|folder| folder.as_str().map(|name| Some(name.to_owned())))
            .collect::<Option<_>>()?,
        Some(_) => return None,
    };
    let mut files = Vec::new();
    for folder in folders {
        match search(folder)? {
            ToolUse::Files(found) => files.extend(found),
            other => return Some(other),
        }
    }
    Some(ToolUse::Files(files))
}

/// The tools of Copilot CLI 1.0.102, by the names that it gives its model.
fn copilot(tool: &str, input: &Input) -> Option<ToolUse> {
    Some(match tool {
        "bash" => ToolUse::Line { line: text(input, "command")?, folder: None },
        "view" => read("read_file", text(input, "path")?),
        "create" => write_file(input, text(input, "path")?),
        "edit" | "str_replace" => edit_file(input, text(input, "path")?),
        "apply_patch" => ToolUse::Patch(any_text(input, &["input", "patch"])?),
        "grep" | "rg" => return searches(input, |folder| Some(search_files(input, folder))),
        "glob" => return searches(input, |folder| Some(find_files(&text(input, "pattern")?, folder))),
        "web_fetch" => ToolUse::Web("web_fetch"),
        "web_search" => ToolUse::Web("web_search"),
        "task" | "write_agent" => ToolUse::Agent,
        // The database of `sql` is the session's own, in memory; another one cannot be attached.
        "read_bash"
        | "stop_bash"
        | "list_bash"
        | "read_agent"
        | "list_agents"
        | "sql"
        | "skill"
        | "ask_user"
        | "report_intent"
        | "update_todo"
        | "exit_plan_mode"
        | "task_complete"
        | "tool_search_tool"
        | "fetch_copilot_cli_documentation" => ToolUse::Internal,
        // What is typed into a shell that runs already is no line that could be judged by itself.
        "write_bash" => ToolUse::Unknown,
        name => {
            let (server, tool) = name.split_once('-')?;
            ToolUse::Server { server: server.to_owned(), tool: tool.to_owned() }
        }
    })
}

/// The tools of Cursor, by the names and arguments in the documents of its hooks.
fn cursor(tool: &str, input: &Input) -> Option<ToolUse> {
    let path = || any_text(input, &["file_path", "path", "target_file"]);
    Some(match tool {
        "Shell" => ToolUse::Line {
            line: text(input, "command")?,
            folder: any_text(input, &["working_directory", "cwd"]).filter(|folder| !folder.is_empty()),
        },
        "Read" => read("read_file", path()?),
        "Write" => write_file(input, path()?),
        "Edit" | "StrReplace" => edit_file(input, path()?),
        "Delete" => ToolUse::Files(vec![FileUse::new("delete_file", Access::Write, path()?)]),
        "Grep" => search_files(input, path()),
        "Glob" => find_files(&any_text(input, &["pattern", "glob_pattern"])?, path()),
        "LS" => read("list_directory", path()?),
        "WebFetch" => ToolUse::Web("web_fetch"),
        "WebSearch" => ToolUse::Web("web_search"),
        "Task" => ToolUse::Agent,
        "TodoWrite" | "AskQuestion" | "SwitchMode" => ToolUse::Internal,
        name => ToolUse::Server { server: String::new(), tool: name.strip_prefix("MCP:")?.to_owned() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_of_copilot_reaches_each_path_that_it_names() {
        let paths = |input: Value| match copilot("grep", input.as_object().unwrap()) {
            Some(ToolUse::Files(files)) => files.into_iter().map(|file| file.path).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(paths(json!({"pattern": "x"})), ["."]);
        assert_eq!(paths(json!({"pattern": "x", "paths": "src"})), ["src"]);
        assert_eq!(paths(json!({"pattern": "x", "paths": ["a.txt", "/etc"]})), ["a.txt", "/etc"]);
        let odd = json!({"pattern": "x", "paths": ["src", 1]});
        assert!(copilot("grep", odd.as_object().unwrap()).is_none());
    }

    #[test]
    fn what_is_typed_into_a_running_shell_is_not_known() {
        let input = json!({"shellId": "0", "input": "claude -p x\n"});
        assert_eq!(copilot("write_bash", input.as_object().unwrap()), Some(ToolUse::Unknown));
        assert!(codex("write_stdin", input.as_object().unwrap()).is_none());
    }

    #[test]
    fn a_command_of_codex_with_a_shell_of_its_own_is_not_known() {
        let found = |shell: &Value| {
            let input = json!({"cmd": "ls", "shell": shell});
            codex("exec_command", input.as_object().unwrap())
        };
        assert!(matches!(found(&json!("/bin/bash")), Some(ToolUse::Line { .. })));
        for shell in [json!("bin/ls"), json!("/srv/project/bin/bash"), json!("bash"), json!(["/bin/bash"])] {
            assert!(found(&shell).is_none(), "{shell}");
        }
    }
}
