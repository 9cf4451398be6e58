//! The instructions that a client gets before it sees a tool.

use core_tools::mcp::Host;
use role_policy::Caller;
use std::path::PathBuf;

/// The sentences about the tools, each with the tools that it names: a caller to whom one of them is not listed does
/// not get the sentence. Clients cut the whole at 2 KB, so the most useful come first.
const SENTENCES: [(&[&str], &str); 18] = [
    (
        &["call_tools"],
        "Put all steps that you can write down now into one call_tools, such as several searches and readings.",
    ),
    (
        &["call_tools", "run_tests", "git_commit"],
        "Finish with one call_tools that has the edits, run_tests and git_commit.",
    ),
    (
        &["search_files", "find_files"],
        "Begin with search_files (contents) or find_files (names) instead of running grep or find.",
    ),
    (
        &["read_file", "read_multiple_files"],
        "Read the part that you need with read_file, and several files with one call of read_multiple_files.",
    ),
    (&["file_outline"], "file_outline shows what a file defines, in fewer bytes than its text."),
    (&["edit_file"], "Change a part of a file with edit_file instead of writing the whole file."),
    (&["apply_patch"], "Change several places or files at once with apply_patch."),
    (&["run_tests"], "run_tests finds the project's own test command and names what failed."),
    (&["build"], "build returns the compiler's errors with file and line."),
    (&["run_command"], "run_command waits for a program and ends everything it started at its time limit."),
    (&["start_command"], "Servers and watchers belong in start_command; they end with this server."),
    (&["git_status", "git_diff"], "git_status and git_diff show what has changed."),
    (
        &["git_commit", "git_merge"],
        "Commit with git_commit, and merge with git_merge, which shows the conflicts.",
    ),
    (
        &["inspect_state", "capture_trace"],
        "Of a running application, inspect_state reads values and capture_trace finds what is slow: no print and no \
         restart is needed.",
    ),
    (&["get_logs"], "get_logs reads and filters the application's logs."),
    (&["db_bridge"], "db_bridge queries its database."),
    (&["compile_context"], "compile_context collects plans, rules and code for a task."),
    (&["find_tools"], "If no tool fits, find_tools returns those that are not in the list."),
];

/// The roots that are named, at most: clients cut long instructions.
const MAX_ROOTS: usize = 6;

/// Returns the instructions for a model whose calls `caller` makes.
pub fn instructions(host: &Host, caller: &Caller) -> String {
    let listed = host.names(caller);
    let mut lines = vec![describe_roots(host.roots())];
    lines.extend(host.notice().map(|notice| format!("This server is {notice}.")));
    // A sentence about a tool that is not listed would make a model call it, and fail.
    let sentences = SENTENCES.iter().filter(|(named, _)| named.iter().all(|tool| listed.contains(tool)));
    lines.extend(sentences.map(|(_, sentence)| (*sentence).to_owned()));
    if host.redactor().is_enabled() {
        lines.push(
            "Answers show [redacted] or [redacted:kind] for the values of secret environment variables and for text of \
             the known shapes of keys, tokens and passwords; other secrets are not recognised. The files still hold \
             them, so do not write a mask back."
                .to_owned(),
        );
    }
    lines.push("A long answer is cut, and says how to get the rest.".to_owned());
    lines.join("\n")
}

/// Says where paths begin.
fn describe_roots(roots: &[PathBuf]) -> String {
    let Some((first, others)) = roots.split_first() else {
        return "Tools for working in a code base.".to_owned();
    };
    let mut text = format!("Tools for the code base in {}. Relative paths begin there", first.display());
    if !others.is_empty() {
        let named: Vec<_> = others.iter().take(MAX_ROOTS).map(|root| root.display().to_string()).collect();
        text.push_str("; absolute paths also reach ");
        text.push_str(&named.join(", "));
        if others.len() > MAX_ROOTS {
            text.push_str(&format!(" and {} more folders", others.len() - MAX_ROOTS));
        }
    }
    text.push('.');
    text
}
