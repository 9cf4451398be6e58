//! The other names that models give to parameters, and what each may mean.

use crate::mcp::schema::{ALIAS, JsonSchemaObject};
use serde_json::{Map, Value};

/// Words for the same thing, and the parameters that they may mean. Of the groups of parameters, the first from which a
/// tool has any counts: if it has one of them, that is meant; if it has several, the word is in doubt.
struct Synonyms {
    words: &'static [&'static str],
    meanings: &'static [&'static [&'static str]],
}

const fn words(words: &'static [&'static str], meanings: &'static [&'static [&'static str]]) -> Synonyms {
    Synonyms { words, meanings }
}

/// The folders that tools work in.
const FOLDERS: &[&str] = &["working_directory", "repository_path", "project_path"];

/// The vocabulary, by what the words are about. From what agents and their own tools call these parameters.
const VOCABULARY: &[Synonyms] = &[
    // Files and folders.
    words(
        &[
            "file_path",
            "filepath",
            "file",
            "filename",
            "file_name",
            "absolute_path",
            "relative_path",
            "target_file",
            "target_path",
        ],
        &[&["path"], &["paths", "files"], &["test_path"], &["plan_path"], &["source"], &["database"]],
    ),
    words(
        &["path"],
        &[
            &["paths", "files"],
            &["test_path", "working_directory", "repository_path", "project_path"],
            &["source"],
            &["database"],
        ],
    ),
    words(&["paths", "files", "file_paths", "filenames"], &[&["paths", "files"], &["include"]]),
    words(
        &["directory", "dir", "folder", "dir_path", "directory_path", "folder_path", "dirname"],
        &[&["path"], FOLDERS],
    ),
    words(
        &["cwd", "workdir", "work_dir", "working_dir", "current_directory", "working_directory"],
        &[FOLDERS, &["path"]],
    ),
    words(&["repo", "repo_path", "repository"], &[&["repository_path"], &["working_directory"]]),
    words(&["project", "project_dir", "project_root"], &[&["project_path"], FOLDERS]),
    words(&["from", "src", "old_path", "source_path", "from_path"], &[&["source"]]),
    words(&["to", "dst", "dest", "new_path", "destination_path", "to_path", "target"], &[&["destination"]]),
    words(&["max_depth", "levels"], &[&["depth"]]),
    words(&["force"], &[&["overwrite"]]),
    // Texts.
    words(
        &["contents", "file_text", "file_content", "file_contents", "new_content", "body", "data"],
        &[&["content"], &["text"]],
    ),
    words(&["text"], &[&["content"], &["pattern"], &["contains"], &["message"], &["prompt"]]),
    words(&["content"], &[&["text"], &["message"], &["prompt"]]),
    words(&["old_str", "old_text", "old", "find", "original_text"], &[&["old_string"]]),
    words(&["new_str", "new_text", "new", "replace", "replacement", "insert_text"], &[&["new_string"]]),
    words(&["preview"], &[&["dry_run"]]),
    // Searches.
    words(
        &["query", "q", "search_term", "search_query", "needle", "keyword", "keywords"],
        &[&["pattern"], &["query"], &["contains"], &["payload"], &["filter"]],
    ),
    words(&["search"], &[&["pattern"], &["query"], &["contains"], &["old_string"]]),
    words(&["regex", "regexp", "search_pattern"], &[&["pattern"]]),
    words(&["pattern", "test_name", "test_filter", "grep"], &[&["filter"], &["query"]]),
    words(
        &["glob", "globs", "file_pattern", "file_glob", "include_pattern", "glob_pattern", "includes"],
        &[&["include"], &["pattern"]],
    ),
    words(&["exclude_pattern", "exclude_patterns", "ignore_patterns", "excludes"], &[&["exclude"]]),
    words(&["context_lines", "c"], &[&["context"]]),
    words(&["output_mode"], &[&["mode"]]),
    words(&["fixed_strings", "is_literal"], &[&["literal"]]),
    words(
        &[
            "max_results",
            "limit",
            "max_count",
            "head_limit",
            "max_matches",
            "max_entries",
            "num_results",
            "n",
            "count",
        ],
        &[&["max_results", "limit", "max_count"], &["lines"]],
    ),
    words(&["max_lines", "num_lines", "line_count"], &[&["limit"], &["lines"]]),
    // Commands.
    words(
        &["cmd", "command_line", "bash_command", "shell_command", "program", "executable"],
        &[&["command"]],
    ),
    words(&["environment", "env_vars", "environment_variables"], &[&["env"]]),
    words(&["input", "stdin", "keys"], &[&["stdin"], &["text"]]),
    words(&["command_id", "process_id", "job_id", "task_id", "shell_id", "bash_id", "pid"], &[&["id"]]),
    words(&["session", "session_id", "id"], &[&["session_id"], &["session"], &["id"]]),
    // Git.
    words(
        &["commit", "rev", "ref", "sha", "hash", "commit_hash", "commit_sha", "commit_id"],
        &[&["revision"], &["branch"]],
    ),
    words(&["branch"], &[&["name"], &["revision"]]),
    words(&["branch_name"], &[&["branch"], &["name"]]),
    words(&["name"], &[&["branch"]]),
    words(&["cached", "index", "stage"], &[&["staged"]]),
    words(&["untracked"], &[&["include_untracked"]]),
    words(&["msg", "commit_message", "m"], &[&["message"], &["text"]]),
    words(&["message"], &[&["text"], &["prompt"]]),
    // The running application.
    words(&["sql", "statement"], &[&["payload"]]),
    words(&["db", "db_path", "database_path"], &[&["database"]]),
    words(&["parameters", "bindings", "values"], &[&["params"]]),
    words(&["log", "log_file", "log_path"], &[&["source"]]),
    words(&["start_time", "after"], &[&["since"]]),
    words(&["end_time", "before"], &[&["until"]]),
    words(&["kind"], &[&["type"]]),
    words(&["type"], &[&["kind"]]),
    // Agents.
    words(&["task", "instructions"], &[&["prompt"], &["task"]]),
];

/// Notes to the user that many clients have their models write beside every call. They change nothing.
const NOTES: [&str; 6] = ["description", "explanation", "reason", "rationale", "thought", "justification"];

/// The longest note that is passed over, in bytes.
const MAX_NOTE_BYTES: usize = 10_000;

/// The meaning of a key that stands in the arguments of a call.
pub(super) enum ArgumentKeyMeaning<'a> {
    /// The property of this name, with its schema.
    Property(&'a str, &'a Value),
    /// Any of these properties.
    Ambiguous(Vec<&'static str>),
    /// A note beside the call.
    Note,
    /// Nothing that is known.
    Unknown,
}

/// Finds what `key` means among `properties`: the property of that name, in any of the usual spellings; one that
/// declares the name as another of its own; or the one that the vocabulary has for the word.
pub(super) fn meaning<'a>(
    properties: &'a Map<String, Value>,
    key: &str,
    value: &Value,
) -> ArgumentKeyMeaning<'a> {
    if let Some((name, property)) = properties.get_key_value(key) {
        return ArgumentKeyMeaning::Property(name, property);
    }
    let word = snake_case(key);
    let by_name = properties.get_key_value(&word).or_else(|| {
        properties.iter().find(|(_, property)| declares(property, key) || declares(property, &word))
    });
    if let Some((name, property)) = by_name {
        return ArgumentKeyMeaning::Property(name, property);
    }
    if properties.is_empty() {
        return ArgumentKeyMeaning::Unknown;
    }
    let meanings = VOCABULARY.iter().filter(|entry| entry.words.contains(&word.as_str()));
    for group in meanings.flat_map(|entry| entry.meanings) {
        let present: Vec<&'static str> =
            group.iter().copied().filter(|name| properties.contains_key(*name)).collect();
        match present.as_slice() {
            [] => {}
            [name] => {
                if let Some((name, property)) = properties.get_key_value(*name) {
                    return ArgumentKeyMeaning::Property(name, property);
                }
            }
            _ => return ArgumentKeyMeaning::Ambiguous(present),
        }
    }
    match value {
        Value::String(text) if NOTES.contains(&word.as_str()) && text.len() <= MAX_NOTE_BYTES => {
            ArgumentKeyMeaning::Note
        }
        _ => ArgumentKeyMeaning::Unknown,
    }
}

/// Returns true if a property has `key` as another name.
fn declares(property: &Value, key: &str) -> bool {
    match property.get(ALIAS) {
        Some(Value::String(alias)) => alias == key,
        Some(Value::Array(aliases)) => aliases.iter().any(|alias| alias == key),
        _ => false,
    }
}

/// `maxCount`, `max-count` and `--max-count` are `max_count`. Only names that start with a small letter are camelCase:
/// `Path` stays a misspelling, so that no second spelling of a judged name slips in.
pub(super) fn snake_case(key: &str) -> String {
    let key = key.trim_start_matches('-');
    if key.starts_with(|first: char| first.is_ascii_uppercase()) && key.len() > 1 {
        return key.to_owned();
    }
    let mut name = String::with_capacity(key.len() + 4);
    for character in key.chars() {
        match character {
            '-' => name.push('_'),
            _ if character.is_ascii_uppercase() && !name.is_empty() => {
                name.push('_');
                name.push(character.to_ascii_lowercase());
            }
            _ => name.push(character.to_ascii_lowercase()),
        }
    }
    name
}

/// Returns `key` without the differences that case makes, in any alphabet: upper case first, so that `ß` is `ss` and
/// the Kelvin sign is `k`.
pub(super) fn fold_case(key: &str) -> String {
    key.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Returns pairs of keys of `object` that differ in nothing but case, where the schema declares properties: which of
/// the two is meant, only their order would say.
pub(super) fn keys_equal_but_for_case<'a>(
    schema: &JsonSchemaObject,
    object: &'a Map<String, Value>,
) -> Vec<(&'a str, &'a str)> {
    let Some(Value::Object(properties)) = schema.get("properties") else { return Vec::new() };
    // Declared names differ in more than case, so it takes one key that is none of them.
    if properties.is_empty() || object.keys().all(|key| properties.contains_key(key)) {
        return Vec::new();
    }
    let mut folded: Vec<(String, &str)> = object.keys().map(|key| (fold_case(key), key.as_str())).collect();
    folded.sort_unstable();
    let pairs = folded.windows(2).filter_map(|pair| match pair {
        [(first, one), (second, other)] if first == second => Some((*one, *other)),
        _ => None,
    });
    pairs.collect()
}
