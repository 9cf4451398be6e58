//! What the pages in `docs/` say of the tools is what the tools do: lists are generated, examples are run.
//! `UPDATE_DOCS=1` writes the pages anew.

use crate::listed;
use integration_tests::{Era, Project, server};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

fn docs() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs"))
}

/// Holds a page against what it should be, or writes it.
fn is_or_becomes(page: &str, expected: &str) {
    let path = docs().join(page);
    let found = fs::read_to_string(&path).unwrap_or_default();
    if found == expected {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_DOCS").is_some(),
        "docs/{page} is stale; UPDATE_DOCS=1 on this test writes it\n\n{}",
        {
            let lines = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
            lines.map_or_else(String::new, |(found, expected)| format!("has:    {found}\nshould: {expected}"))
        }
    );
    fs::write(path, expected).unwrap();
}

#[test]
fn the_page_of_tools_is_what_the_server_says_of_them() {
    let project = Project::empty();
    let output = project.server().args(["--toolsets", "all", "tools", "--markdown"]).output().unwrap();
    let reference = String::from_utf8(output.stdout).unwrap();
    let head = "# Tools\n\n\
        Every tool with every parameter, as `mcp-stdio --toolsets all tools --markdown` prints them; a test holds this\n\
        page against it. A parameter that is not required may be left out. What each toolset is for, with examples:\n\
        [files](filesystem.md), [commands](commands.md), [git](git.md), [testing](testing.md), [context](context.md),\n\
        [logs](logs.md), [state](inspect.md), [databases](databases.md), [profiles](trace.md), [sessions](sessions.md).\n\n";
    is_or_becomes("tools.md", &format!("{head}{}\n", reference.trim_end()));
}

#[test]
fn the_table_of_presets_has_the_tools_and_bytes_that_clients_get() {
    let count = |list: &str| {
        let tools = listed(&["--toolsets", list], Era::Modern);
        (tools.len(), json!({"tools": tools}).to_string().len())
    };
    let presets = [
        ("minimal", "read, write and edit files, list, search, run", "5,000"),
        ("edit", "what changing code takes: files, search, commands in the fore- and background", "12,000"),
        ("introspect", "start a program, and look into it: state, database, profile, logs, source", "8,000"),
        ("full", "the default: all but what is seldom asked for", "24,576"),
        ("all", "every tool there is", ""),
    ];
    let mut table = "<!-- presets -->\n| preset | what for | tools | bytes of the list | at most |\n|---|---|---|---|---|\n".to_owned();
    for (preset, what, limit) in presets {
        let (tools, bytes) = count(preset);
        let bytes = format!("{},{:03}", bytes / 1000, bytes % 1000);
        table.push_str(&format!("| `{preset}` | {what} | {tools} | {bytes} | {limit} |\n"));
    }
    table.push_str("<!-- /presets -->");
    let page = fs::read_to_string(docs().join("configuration.md")).unwrap();
    let (before, rest) = page.split_once("<!-- presets -->").expect("a place for the table");
    let (_, after) = rest.split_once("<!-- /presets -->").expect("its end");
    is_or_becomes("configuration.md", &format!("{before}{table}{after}"));
}

/// How long something took differs each time.
fn without_times(text: &str) -> String {
    let mut parts = text.split("after ");
    let mut steady = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        steady.push_str("after ");
        match part.split_once(" s") {
            Some((number, rest)) if number.parse::<f64>().is_ok() => {
                steady.push_str("0.01 s");
                steady.push_str(rest);
            }
            _ => steady.push_str(part),
        }
    }
    steady
}

/// The page with what each command in its `console` blocks prints, run one after the other in one small project.
fn with_answers(page: &str) -> String {
    let project = Project::with([
        ("src/greet.py", "GREETING = \"Hello\"\n\n\ndef greet(name):\n    return f\"{GREETING}, {name}!\"\n"),
        ("src/main.py", "from greet import greet\n\nprint(greet(\"world\"))\n"),
        ("notes.txt", "greet is not translated yet\n"),
        ("logo.png", "\u{0}\u{1}\u{2}\u{3}"),
    ]);
    let bin = project.state().join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(server(), bin.join("mcp-stdio")).unwrap();
    // What an answer says of PATH is the same everywhere.
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let everywhere: Vec<_> = std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect();
    for program in ["git", "python3"] {
        let found = everywhere.iter().map(|folder| folder.join(program)).find(|path| path.exists());
        if !PathBuf::from("/usr/bin").join(program).exists() {
            symlink(found.expect("it is in PATH"), bin.join(program)).unwrap();
        }
    }
    let mut written = String::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = !inside && line == "```console";
        }
        if !inside || line == "```console" {
            written.push_str(line);
        } else if let Some(command) = line.strip_prefix("$ ") {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("{command} 2>&1")]).current_dir(project.path());
            let server = project.server();
            for (name, value) in server.get_envs() {
                match value {
                    Some(value) => shell.env(name, value),
                    None => shell.env_remove(name),
                };
            }
            let output = shell.env("PATH", &path).output().unwrap();
            let said = without_times(&String::from_utf8_lossy(&output.stdout));
            let said = said.replace(bin.to_str().unwrap(), "/usr/local/bin");
            written.push_str(line);
            if !said.trim().is_empty() {
                written.push_str(&format!("\n{}", said.trim_end()));
            }
        } else {
            continue;
        }
        written.push('\n');
    }
    written
}

#[test]
fn the_examples_in_the_pages_answer_as_they_say() {
    let mut tried = 0;
    for entry in fs::read_dir(docs()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let page = fs::read_to_string(&path).unwrap();
        tried += page.lines().filter(|line| line.starts_with("$ mcp-stdio")).count();
        if page.contains("```console") {
            is_or_becomes(path.file_name().unwrap().to_str().unwrap(), &with_answers(&page));
        }
    }
    assert!(tried >= 15, "only {tried} examples are tried");
}
