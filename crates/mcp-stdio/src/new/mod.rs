//! The subcommand `new`: creates a Cargo project for a server of one's own, from the files in `templates/`.
#![allow(
    clippy::disallowed_methods,
    reason = "the user names the folder of the new project, where there is no workspace yet"
)]

mod project_folder;
mod project_name;

use crate::error::Error;
use crate::index;
use crate::output::{DEFAULT_NAME, print};
use clap::Args;
use core_tools::mcp::PRESETS;
use did_you_mean::nearest;
use project_folder::NewProjectFolder;
use project_name::check_name;
use server_setup::config::Toolsets;
use server_setup::{Program, read_settings, setup, toolsets};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The example tool of the template. It is a part of this program, so that it is known to compile and can stand in the
/// first index. It is formatted as in a new project, not as in this workspace.
#[rustfmt::skip]
#[path = "../../templates/tools.rs"]
mod tools;

pub(crate) const EXAMPLES: &str = "\
Examples:
  mcp-stdio new demo                    create a server that stands alone
  mcp-stdio new mcp-server              create one in a project of any language, which it then serves
  mcp-stdio new demo --toolsets filesystem,git --http

Then: cd demo && cargo test

Toolsets: filesystem, git, ci, tests, context, introspection, sessions; all names them all.
A preset such as minimal, or a tool, stands for the toolsets of its tools.
A toolset that is not chosen is not linked. The default, tests and introspection, has run_test_task,
inspect_state, db_bridge, capture_trace and get_logs, among others.";

/// The arguments of `new`.
#[derive(Args, Clone, Debug)]
pub(crate) struct NewArguments {
    /// Folder to create the project in; it must be empty or not exist
    path: PathBuf,
    /// Name of the package and the binary. Default: the name of the folder
    #[arg(long)]
    name: Option<String>,
    /// Toolsets to link, separated by commas; a preset or a tool stands for the toolsets of its tools
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "tests,introspection")]
    toolsets: Vec<String>,
    /// Add a binary that serves HTTP
    #[arg(long)]
    http: bool,
    /// Checkout of CoreTools whose libraries to use. Default: the one that this program was built from
    #[arg(long = "path", value_name = "DIR")]
    checkout: Option<PathBuf>,
    /// Use the published libraries, by their versions. They are not published yet
    #[arg(long, conflicts_with = "checkout")]
    published: bool,
}

/// The toolsets, each with a tool that stands for it.
const TOOLSETS: [(&str, &str); 7] = [
    ("filesystem", "read_file"),
    ("git", "git_status"),
    ("ci", "run_command"),
    ("tests", "run_test_task"),
    ("context", "compile_context"),
    ("introspection", "inspect_state"),
    ("sessions", "status"),
];

/// The tools that the role `worker` is denied.
const ORCHESTRATION_TOOLS: &str =
    r#""new_session", "end_session", "send_message", "run_agent_command", "pause", "resume""#;

/// The files that mark the folder of a project, whatever its language.
const PROJECT_MARKERS: [&str; 18] = [
    ".git",
    "Cargo.toml",
    "package.json",
    "deno.json",
    "pyproject.toml",
    "setup.py",
    "requirements.txt",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "composer.json",
    "Gemfile",
    "mix.exs",
    "CMakeLists.txt",
    "Makefile",
    "justfile",
    "global.json",
];

/// Creates the project. An error leaves nothing behind.
pub(crate) fn new(arguments: &NewArguments) -> Result<ExitCode, Error> {
    let destination = NewProjectFolder::find(&arguments.path)?;
    let plan = ProjectPlan::new(arguments, &destination)?;
    // All texts exist before the first is written, so that few errors have anything to undo.
    let files = plan.files()?;
    let shown = arguments.path.display();
    destination.write(&files).map_err(Error::system(format!("cannot write {shown}")))?;
    let served = match plan.inside {
        true => destination.folder.parent().unwrap_or(&destination.folder),
        false => &destination.folder,
    };
    let toolsets = plan.toolsets.join(", ");
    Ok(print(&format!(
        "wrote {shown}: the server {}, with the toolsets {toolsets} and a tool of its own, find_notes\n\
         started there, it serves {}\n\nnext:\n  cd {shown}\n  cargo test\n  cargo run -- print-config claude --write",
        plan.name,
        served.display()
    )))
}

/// The plan of a new project.
struct ProjectPlan {
    name: String,
    toolsets: Vec<&'static str>,
    http: bool,
    /// True if the new project lies in the project that it serves.
    inside: bool,
    /// Its path from the folder that it serves, with a slash; empty if that is its own.
    prefix: String,
    /// The folder `crates` of a checkout; none for the published libraries.
    crates: Option<PathBuf>,
}

impl ProjectPlan {
    fn new(arguments: &NewArguments, destination: &NewProjectFolder) -> Result<Self, Error> {
        let folder_name = destination.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = arguments.name.clone().unwrap_or_else(|| folder_name.clone());
        check_name(&name).map_err(|why| {
            Error::Argument(match arguments.name {
                Some(_) => format!("`{name}` cannot be the name: {why}"),
                None => format!("`{name}`, the folder's name, cannot be the name: {why}; give --name"),
            })
        })?;
        let toolsets = resolve_toolsets(&arguments.toolsets)?;
        let parent = destination.folder.parent().unwrap_or(&destination.folder);
        let inside =
            folder_name == "mcp-server" || PROJECT_MARKERS.iter().any(|marker| parent.join(marker).exists());
        let prefix = if inside { format!("{folder_name}/") } else { String::new() };
        if prefix.contains(['"', '\\', '{', '}']) {
            return Err(Error::Argument(format!(
                "the folder's name `{folder_name}` has characters that cannot stand in the files"
            )));
        }
        let crates = match (arguments.published, &arguments.checkout) {
            (true, _) => None,
            (false, Some(checkout)) => Some(crates_in(checkout)?),
            (false, None) => Some(crates_built_from()?),
        };
        Ok(Self { name, toolsets, http: arguments.http, inside, prefix, crates })
    }

    /// Returns the files, by their paths in the project.
    fn files(&self) -> Result<Vec<(&'static str, String)>, Error> {
        let mut files = vec![
            ("Cargo.toml", self.render(include_str!("../../templates/Cargo.toml.in"))),
            ("roles.toml", self.render(include_str!("../../templates/roles.toml.in"))),
            ("README.md", self.render(include_str!("../../templates/README.md.in"))),
            (".gitignore", include_str!("../../templates/gitignore.in").to_owned()),
            ("src/lib.rs", self.render(include_str!("../../templates/lib.rs.in"))),
            ("src/main.rs", self.render(include_str!("../../templates/main.rs.in"))),
            ("src/tools.rs", include_str!("../../templates/tools.rs").to_owned()),
            ("tests/server.rs", self.render(include_str!("../../templates/server.rs.in"))),
            (".agent/index.agent.md", self.index()?),
        ];
        if self.http {
            files.push(("src/http.rs", self.render(include_str!("../../templates/http.rs.in"))));
            files.push(("tests/over_http.rs", self.render(include_str!("../../templates/over_http.rs.in"))));
        }
        Ok(files)
    }

    /// Returns the index that the server itself would write.
    fn index(&self) -> Result<String, Error> {
        let program = Program::new(DEFAULT_NAME, env!("CARGO_PKG_VERSION")).toolset(tools::toolset);
        let project_tools = toolsets::own(&read_settings::defaults(program)?)?;
        let linked: Vec<String> = index::entries(&setup::server(read_settings::defaults(program)?)?)
            .iter()
            .filter(|entry| self.links(entry))
            .map(|entry| entry.name().to_owned())
            .collect();
        // Only a server with these tools describes them without the others.
        let mut settings = read_settings::defaults(program)?;
        settings.config.toolsets.value = Toolsets::Chosen(linked);
        let server = setup::server(settings)?;
        Ok(index::document(&self.name, &index::entries(&server), &project_tools))
    }

    /// Returns true if the new server has the tool. Outlines come with the context.
    fn links(&self, entry: &index::ToolIndexEntry) -> bool {
        let is_chosen = self.toolsets.iter().any(|toolset| entry.is_in(toolset));
        let is_linked = entry.name() != "file_outline" || self.toolsets.contains(&"context");
        entry.is_in("project") || entry.is_in("discovery") || is_chosen && is_linked
    }

    /// Replaces the marks in a template.
    fn render(&self, template: &str) -> String {
        let quoted =
            |words: &[&str]| words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        let has = |toolset: &str| self.toolsets.contains(&toolset);
        let source = |package: &str| match &self.crates {
            // As a TOML string: a path may hold quotes and backslashes.
            Some(crates) => {
                format!("path = {}", toml::Value::from(crates.join(package).display().to_string()))
            }
            None => format!("version = \"{}\"", env!("CARGO_PKG_VERSION")),
        };
        let listed =
            TOOLSETS.iter().filter(|(toolset, _)| has(toolset)).map(|(_, tool)| format!(", \"{tool}\""));
        let bin = |name: &str, file: &str| format!("\n[[bin]]\nname = \"{name}\"\npath = \"src/{file}\"\n");
        let (bins, http, http_readme) = match self.http {
            false => Default::default(),
            true => (
                bin(&self.name, "main.rs") + &bin(&format!("{}-http", self.name), "http.rs"),
                format!(
                    "mcp-http = {{ {}, default-features = false, features = [{}] }}\n",
                    source("mcp-http"),
                    quoted(&self.toolsets)
                ),
                http_section(&self.name),
            ),
        };
        let default_run = match self.http {
            true => format!("publish = false\ndefault-run = \"{}\"\n", self.name),
            false => "publish = false\n".to_owned(),
        };
        let (inside, what, serves) = match self.inside {
            true => (
                "\n    .inside_project(env!(\"CARGO_MANIFEST_DIR\"))",
                "the project that contains it",
                "; if you start it in its own folder, it serves the folder above",
            ),
            false => ("", "this project", ""),
        };
        let (worker, orchestration) = match has("sessions") {
            true => ("; starts, ends and steers no agents", ORCHESTRATION_TOOLS),
            false => ("", ""),
        };
        let toolsets = match self.toolsets.as_slice() {
            [one] => format!("the toolset `{one}`"),
            several => format!("the toolsets `{}`", several.join("`, `")),
        };
        let mut text = template.replace("publish = false\n", &default_run);
        for (mark, value) in [
            ("{{name}}", self.name.as_str()),
            ("{{crate}}", &self.name.replace('-', "_")),
            ("{{features}}", &quoted(&self.toolsets)),
            ("{{source mcp-stdio}}", &source("mcp-stdio")),
            ("{{source core-tools}}", &source("core-tools")),
            ("{{bins}}", &bins),
            ("{{http}}", if template.starts_with('#') { &http_readme } else { &http }),
            ("{{inside}}", inside),
            ("{{prefix}}", &self.prefix),
            ("{{listed}}", &listed.collect::<String>()),
            ("{{worker}}", worker),
            ("{{orchestration}}", orchestration),
            ("{{toolsets}}", &toolsets),
            ("{{what}}", what),
            ("{{serves}}", serves),
        ] {
            text = text.replace(mark, value);
        }
        text
    }
}

/// Returns the part of the README about the server over HTTP. The file of tokens lies in no project: a server refuses one
/// that the programs of its callers could reach.
fn http_section(name: &str) -> String {
    format!(
        "\nTo serve several callers over HTTP, each with a token and a role:\n\n```sh\n\
         tokens=\"$HOME/.config/{name}/tokens.toml\"\n\
         cargo run --bin {name}-http -- --tokens \"$tokens\" token new --name ci --role worker    # prints the token, this once\n\
         cargo run --bin {name}-http -- --tokens \"$tokens\"    # serves http://127.0.0.1:8717/mcp\n```\n\n\
         The token file is outside the project, because the server refuses a token file that its tools could read or change.\n"
    )
}

/// Returns the toolsets that these words name, in their order. A word is a toolset, or a preset or tool, which stands for
/// the toolsets that its tools are in; `all` names every one.
fn resolve_toolsets(words: &[String]) -> Result<Vec<&'static str>, Error> {
    let known = || TOOLSETS.iter().map(|(toolset, _)| *toolset);
    let mut chosen = Vec::new();
    for word in words.iter().map(|word| word.trim()) {
        match known().find(|toolset| *toolset == word) {
            Some(toolset) => chosen.push(toolset),
            None if word == "all" => chosen.extend(known()),
            None => chosen.extend(toolsets_of(word)?),
        }
    }
    Ok(known().filter(|toolset| chosen.contains(toolset)).collect())
}

/// Returns the toolsets of the tools that a preset or the name of a tool stands for.
fn toolsets_of(word: &str) -> Result<Vec<&'static str>, Error> {
    let program = Program::new(DEFAULT_NAME, env!("CARGO_PKG_VERSION"));
    let mut settings = read_settings::defaults(program)?;
    settings.config.toolsets.value = Toolsets::Chosen(vec![word.to_owned()]);
    let selected = setup::server(settings).map(|server| server.host.toolsets(&server.caller));
    selected.map_err(|_| {
        let known = || TOOLSETS.iter().map(|(toolset, _)| *toolset);
        let suggestion = nearest(word, PRESETS.into_iter().chain(known()))
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        Error::Argument(format!(
            "no toolset, preset or tool is called `{word}`{suggestion} (toolsets: {}; presets: {})",
            known().collect::<Vec<_>>().join(", "),
            PRESETS.join(", ")
        ))
    })
}

/// Returns the crates of the checkout that this program was built from, if that is still there. The default cannot be a
/// registry: as long as the crates are not published, anybody can take their names.
fn crates_built_from() -> Result<PathBuf, Error> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    match package.parent() {
        Some(crates) if package.join("Cargo.toml").is_file() => Ok(crates.to_owned()),
        _ => Err(Error::Argument(
            "the checkout that this program was built from is gone: name one with --path DIR".to_owned(),
        )),
    }
}

/// Returns the crates of a checkout of CoreTools.
fn crates_in(checkout: &Path) -> Result<PathBuf, Error> {
    let shown = checkout.display();
    let real = checkout.canonicalize().map_err(Error::system(format!("cannot use --path {shown}")))?;
    let crates = real.join("crates");
    match crates.join("mcp-stdio/Cargo.toml").is_file() {
        true => Ok(crates),
        false => Err(Error::Argument(format!(
            "--path {shown} is no checkout of CoreTools: it has no crates/mcp-stdio/Cargo.toml"
        ))),
    }
}
