//! The pages in `docs/` agree with the tools: lists are generated, examples are run.
//! `UPDATE_DOCS=1` writes the pages anew.

mod schemas;

use crate::listed;
use integration_tests::{Era, Project, python_with, require, server};
use regex::Regex;
use serde_json::json;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::LazyLock;

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
        [logs](logs.md), [state](inspect.md), [databases](databases.md), [profiles](trace.md), [sessions](sessions.md).\n\n\
        Models write the same call in many ways. Before a policy judges a call, its arguments are brought to the names and\n\
        types of this page:\n\n\
        - another word for a parameter, where it can mean one thing: `file_path`, `cmd`, `cwd`, `query`, `glob`, `from` and\n  \
        `to`, `oldText` and `newText`, and many more, in camelCase as well;\n\
        - a number or `true` in a string, a list as JSON in a string, one item for a list;\n\
        - `start_line` and `end_line` for `offset` and `limit`, `args` beside `command`, seconds for milliseconds;\n\
        - a `description`, `explanation` or `reason` beside the call is passed over.\n\n\
        A word that can mean two things is an error that has the corrected call as JSON.\n\n";
    is_or_becomes("tools.md", &format!("{head}{}\n", reference.trim_end()));
}

#[test]
fn the_table_of_presets_has_the_tools_and_bytes_that_clients_get() {
    let count = |list: &str| {
        let tools = listed(&["--toolsets", list], Era::Modern);
        (tools.len(), json!({"tools": tools}).to_string().len())
    };
    let presets = [
        ("standard", "the default: the tools that an agent needs to work on a project"),
        ("full", "every tool"),
        ("edit", "the tools to change code: files, search, commands in the foreground and in the background"),
        (
            "introspect",
            "the tools to start a program and look into it: state, database, profile, logs, source",
        ),
        ("minimal", "the tools to read, write, edit, list and search files, and to run programs"),
    ];
    let mut table =
        "<!-- presets -->\n| preset | purpose | tools | bytes of the list |\n|---|---|---|---|\n".to_owned();
    for (preset, what) in presets {
        let (tools, bytes) = count(preset);
        let bytes = format!("{},{:03}", bytes / 1000, bytes % 1000);
        table.push_str(&format!("| `{preset}` | {what} | {tools} | {bytes} |\n"));
    }
    table.push_str("<!-- /presets -->");
    let page = fs::read_to_string(docs().join("configuration.md")).unwrap();
    let (before, rest) = page.split_once("<!-- presets -->").expect("a place for the table");
    let (_, after) = rest.split_once("<!-- /presets -->").expect("its end");
    is_or_becomes("configuration.md", &format!("{before}{table}{after}"));
}

/// The parts of answers that differ each time, in the tools and so in the pages. A page keeps the values that it has.
const VARIES: [(&str, &str); 15] = [
    (r"(after|in) [0-9.]+ ?s", "$1 …"),
    (r#"([a-z_]*(ms|pct)|[a-z_]*_seconds|samples|requests|unfinished)("?: ?)[0-9.]+"#, "$1$3…"),
    (r#""gc_pct":…,"#, ""),
    (r#"("([a-z_]*bytes|sockets)":)(\[[^\]]*\]|[0-9]+)"#, "$1…"),
    (r#","warnings":\[[^\]]*\]"#, ""),
    (
        r#""hot_lines":\[(\{"line":[0-9]+,"ms":[^,]*,"pct":[^,}]*(,"inlined":"[^"]*")?(,"text":"(\\.|[^"\\])*")?\},?)*\],?"#,
        "",
    ),
    (r#"("top_self":\[\{)"function":"[^"]*",("file":"[^"]*")[^\]]*\]"#, "$1$2…"),
    (r#""(top_total|top_allocators|routes|slowest)":\[[^\]]*\]"#, "$1…"),
    (r#"(pid|process|daemon|node)(:? ?|": ?)[0-9]+"#, "$1$2…"),
    (r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9.:]+", "…"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "…"),
    (r"-[0-9]+-(cpu|heap|network)-[0-9]+\.", "-…-$1-…."),
    (r"127\.0\.0\.1:[1-9][0-9]*", "127.0.0.1:…"),
    (r#"_cursor":"[^"]*""#, r#"_cursor":"…""#),
    (r"cursor [0-9]+", "cursor …"),
];

fn without_what_varies(text: &str) -> String {
    static VARYING: LazyLock<Vec<(Regex, &str)>> =
        LazyLock::new(|| VARIES.map(|(pattern, kept)| (Regex::new(pattern).unwrap(), kept)).into());
    let one_line = text.trim_end().replace(FOLD, "");
    VARYING.iter().fold(one_line, |text, (varying, kept)| varying.replace_all(&text, *kept).into_owned())
}

/// How a line of JSON goes on.
const FOLD: &str = "\n  ";

/// The same with lines of JSON that fit into a page.
fn folded(text: &str) -> String {
    const WIDTH: usize = 118;
    let mut pages_lines = Vec::new();
    for mut line in text.lines() {
        let mut folded = String::new();
        while (line.starts_with('{') || !folded.is_empty()) && line.chars().count() > WIDTH {
            let fits = line.char_indices().nth(WIDTH).map_or(line.len(), |(end, _)| end);
            let objects = line[..fits].rfind(",{").filter(|comma| *comma > WIDTH / 2);
            let members = || line[..fits].rfind(",\"").or_else(|| line.find(",\""));
            let Some(comma) = objects.or_else(members) else { break };
            folded.push_str(&line[..=comma]);
            folded.push_str(FOLD);
            line = &line[comma + 1..];
        }
        pages_lines.push(folded + line);
    }
    pages_lines.join("\n")
}

/// A shell in a small project, in which the commands of a page run one after the other.
struct PageShell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    project: Project,
    bin: PathBuf,
}

impl PageShell {
    /// With the files of `contract/pages/PAGE`, or else `contract/pages/greeting`. Nothing where a program is missing
    /// that the page needs.
    fn open(page: &str) -> Option<Self> {
        let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("contract/pages");
        let files =
            [page, "greeting"].map(|folder| pages.join(folder)).into_iter().find(|folder| folder.is_dir());
        let project = Project::empty();
        let copy =
            Command::new("cp").arg("-R").arg(files.unwrap().join(".")).arg(project.path()).status().unwrap();
        assert!(copy.success());
        let bin = project.state().join("bin");
        fs::create_dir(&bin).unwrap();
        symlink(server(), bin.join("mcp-stdio")).unwrap();
        if page == "testing" {
            let python = python_with("pytest")?;
            symlink(python.parent().unwrap().parent().unwrap(), project.join(".venv")).unwrap();
        }
        if ["inspect", "trace"].contains(&page) {
            let node = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.nodes/node_modules/node24/bin/node");
            let missing =
                "no Node.js 24; `.ci/run tools` installs it: npm install --prefix .nodes node24@npm:node@24";
            symlink(require(node.canonicalize().ok(), missing)?, bin.join("node")).unwrap();
        }
        // What an answer says of PATH is the same everywhere.
        let everywhere: Vec<_> = std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect();
        for program in ["git", "python3"] {
            let found = everywhere.iter().map(|folder| folder.join(program)).find(|path| path.exists());
            if !Path::new("/usr/bin").join(program).exists() {
                symlink(found.expect("it is in PATH"), bin.join(program)).unwrap();
            }
        }
        let mut shell = Command::new("sh");
        for (name, value) in project.server().get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let mut child = shell
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env_remove("NODE_OPTIONS")
            .current_dir(project.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "exec 2>&1").unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Some(Self { child, input, output, project, bin })
    }

    /// Returns what a command prints, without what Node.js says of its debugger meanwhile. A command that goes on (`&`)
    /// has begun when it has printed a line.
    fn run(&mut self, command: &str) -> String {
        const END: &str = "-- end --";
        // The end of the input ends the server soon, on a busy machine before it has answered. A client waits for its answers.
        let waiting = command.strip_suffix(" < client.jsonl").map(|command| {
            let answered = "until grep -q '\"id\":2' answers 2>/dev/null; do sleep 0.05; done";
            format!("{{ cat client.jsonl; {answered}; }} | {command} | tee answers; rm answers")
        });
        let command = waiting.as_deref().unwrap_or(command);
        writeln!(self.input, "{{ {command}\n}} </dev/null\nprintf '\\n{END}\\n'").unwrap();
        let (mut said, mut ended, mut begun) = (String::new(), false, !command.ends_with(" &"));
        while !ended || !begun {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the shell ended in `{command}`");
            if line.trim_end() == END {
                ended = true;
            } else if !line.starts_with("Debugger ") && !line.starts_with("For help, see") {
                begun |= !line.trim().is_empty();
                said.push_str(&line);
            }
        }
        for (found, told) in [
            (self.bin.as_path(), "/usr/local/bin"),
            (self.project.path(), "/home/me/shop"),
            (self.project.state(), "/home/me/.local/state"),
        ] {
            said = said.replace(found.to_str().unwrap(), told);
        }
        // In a page, what begins so is the next command.
        folded(&said.trim().replace("\n$ ", "\n $ "))
    }
}

impl Drop for PageShell {
    /// With all that it has started.
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
        let _ = self.child.wait();
        // Until the last of them has closed it.
        let _ = self.output.read_to_end(&mut Vec::new());
    }
}

/// The page with what each command in its `console` blocks prints.
fn with_answers(page: &str, shell: &mut PageShell) -> String {
    let mut written = String::new();
    let mut lines = page.lines().peekable();
    let mut fence = None;
    while let Some(line) = lines.next() {
        written.push_str(line);
        written.push('\n');
        match fence {
            None => fence = line.starts_with("```").then(|| line.trim_end_matches(char::is_alphanumeric)),
            Some(closing) if line == closing => fence = None,
            Some(closing) => {
                let Some(command) = line.strip_prefix("$ ") else { continue };
                let mut before = String::new();
                while let Some(answer) = lines.next_if(|next| *next != closing && !next.starts_with("$ ")) {
                    before.push_str(answer);
                    before.push('\n');
                }
                let now = shell.run(command);
                let steady = without_what_varies(&now) == without_what_varies(&before);
                let answer = if steady { before.trim_end() } else { &now };
                if !answer.is_empty() {
                    written.push_str(answer);
                    written.push('\n');
                }
            }
        }
    }
    written
}

fn answers_as_it_says(page: &str) {
    let Some(mut shell) = PageShell::open(page) else { return };
    let page = format!("{page}.md");
    let said = fs::read_to_string(docs().join(&page)).unwrap();
    assert!(said.contains("\n$ mcp-stdio"), "docs/{page} has no command");
    is_or_becomes(&page, &with_answers(&said, &mut shell));
}

macro_rules! pages {
    ($($page:ident)*) => {
        mod the_examples_answer_as_the_page_says {
            $(#[test]
            fn $page() {
                super::answers_as_it_says(stringify!($page));
            })*
        }

        #[test]
        fn every_page_with_examples_is_tried() {
            let tried = [$(concat!(stringify!($page), ".md")),*];
            for page in docs().read_dir().unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
                let name = page.file_name().unwrap().to_str().unwrap();
                let examples = fs::read_to_string(&page).unwrap().contains("```console");
                assert_eq!(examples, tried.contains(&name), "docs/{name}");
            }
        }
    };
}

pages! { commands context databases filesystem git inspect logs policy sessions testing trace wrapper }
