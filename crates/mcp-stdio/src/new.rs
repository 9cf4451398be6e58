//! `mcp-stdio new PATH`: a Cargo project for a server of one's own, from the files in `templates/`.

use crate::{PLAIN_NAME, index, print};
use clap::Args;
use core_tools::nearest::nearest;
use server_setup::{Program, settings, setup, toolsets};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The example in the template is a part of this program, so that it compiles, and stands in the first index. It has the
/// format of a new project, which is not this workspace's.
#[rustfmt::skip]
#[path = "../templates/tools.rs"]
mod tools;

pub(crate) const EXAMPLES: &str = "\
Examples:
  mcp-stdio new demo                    a server of its own
  mcp-stdio new mcp-server              in a project of any language, which it then serves
  mcp-stdio new demo --toolsets filesystem,git --http

Then: cd demo && cargo test

Toolsets: filesystem, git, ci, tests, context, introspection, sessions; all names them all.
What is not chosen is not linked. By default there are run_test_task, inspect_state, db_bridge,
capture_trace and get_logs, and what goes with them.";

/// What to write.
#[derive(Args, Clone, Debug)]
pub(crate) struct New {
    /// Folder to write; it must be empty, or not there
    path: PathBuf,
    /// Name of package and binary. Default: the folder's
    #[arg(long)]
    name: Option<String>,
    /// Toolsets to link, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "tests,introspection")]
    toolsets: Vec<String>,
    /// Also a binary that serves HTTP
    #[arg(long)]
    http: bool,
    /// Checkout of CoreTools whose libraries to use. Default: the one that this program was built from
    #[arg(long = "path", value_name = "DIR")]
    checkout: Option<PathBuf>,
    /// Use the libraries of a registry, by their versions. They are on none yet
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

/// What workers may not do with sessions.
const ORCHESTRATION: &str =
    r#""new_session", "end_session", "send_message", "run_agent_command", "pause", "resume""#;

/// What the folder of a project holds, whatever its language.
const MARKS: [&str; 18] = [
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

/// Writes the project. An error leaves nothing behind.
pub(crate) fn new(asked: &New) -> Result<ExitCode, String> {
    let place = Place::find(&asked.path)?;
    let plan = Plan::make(asked, &place)?;
    let files = plan.files()?;
    place.fill(&files).map_err(|error| format!("cannot write {}: {error}", asked.path.display()))?;
    let shown = asked.path.display();
    let served = match plan.inside {
        true => place.folder.parent().unwrap_or(&place.folder),
        false => &place.folder,
    };
    let toolsets = plan.toolsets.join(", ");
    Ok(print(&format!(
        "wrote {shown}: the server {}, with the toolsets {toolsets} and a tool of its own, find_notes\n\
         started there, it serves {}\n\nnext:\n  cd {shown}\n  cargo test\n  cargo run -- print-config claude",
        plan.name,
        served.display()
    )))
}

/// Where it goes.
struct Place {
    folder: PathBuf,
    /// It is there already, and empty.
    there: bool,
}

impl Place {
    fn find(path: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| format!("cannot use {}: {error}", path.display());
        let there = match std::fs::read_dir(path) {
            Ok(mut entries) => match entries.next() {
                None => true,
                Some(_) => {
                    return Err(format!("{} is not empty; name a folder that is not there", path.display()));
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_err() => {
                false
            }
            Err(_) if path.is_file() => {
                return Err(format!("{} is a file; name a folder that is not there", path.display()));
            }
            Err(error) => return Err(failed(error)),
        };
        let folder = if there { path.canonicalize() } else { std::path::absolute(path) };
        Ok(Self { folder: folder.map_err(failed)?, there })
    }

    /// Writes all the files or none.
    fn fill(&self, files: &[(&str, String)]) -> io::Result<()> {
        let parent = self.folder.parent().unwrap_or(&self.folder);
        // Folders above it that are not there yet, the outermost last.
        let missing: Vec<&Path> = parent.ancestors().take_while(|folder| !folder.exists()).collect();
        std::fs::create_dir_all(parent)?;
        let filled = self.fill_in(parent, files);
        if filled.is_err() {
            for folder in missing {
                let _ = std::fs::remove_dir(folder);
            }
        }
        filled
    }

    fn fill_in(&self, parent: &Path, files: &[(&str, String)]) -> io::Result<()> {
        let own = self.folder.file_name().unwrap_or_default().to_string_lossy();
        let staging = parent.join(format!(".{own}.{}.new", std::process::id()));
        std::fs::create_dir(&staging)?;
        let written = write_all(&staging, files).and_then(|()| self.take(&staging));
        if written.is_err() || self.there {
            let _ = std::fs::remove_dir_all(&staging);
        }
        written
    }

    /// Makes what was written the project: at once where the folder is new, else one by one, and all or none.
    fn take(&self, staging: &Path) -> io::Result<()> {
        if !self.there {
            return std::fs::rename(staging, &self.folder);
        }
        let mut taken = Vec::new();
        let all = std::fs::read_dir(staging)?.try_for_each(|entry| {
            let entry = entry?;
            let destination = self.folder.join(entry.file_name());
            std::fs::rename(entry.path(), &destination)?;
            taken.push(destination);
            Ok(())
        });
        if all.is_err() {
            for path in taken {
                let _ =
                    if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
            }
        }
        all
    }
}

fn write_all(folder: &Path, files: &[(&str, String)]) -> io::Result<()> {
    for (path, text) in files {
        let path = folder.join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(())
}

/// What is written.
struct Plan {
    name: String,
    toolsets: Vec<&'static str>,
    http: bool,
    /// Its folder belongs to the project that it serves.
    inside: bool,
    /// Its path from what it serves, with a slash, or nothing.
    prefix: String,
    /// The crates of a checkout.
    crates: Option<PathBuf>,
}

impl Plan {
    fn make(asked: &New, place: &Place) -> Result<Self, String> {
        let own = place.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = asked.name.clone().unwrap_or_else(|| own.clone());
        check_name(&name).map_err(|why| match asked.name {
            Some(_) => format!("`{name}` cannot be the name: {why}"),
            None => format!("`{name}`, the folder's name, cannot be the name: {why}; give --name"),
        })?;
        let toolsets = toolsets(&asked.toolsets)?;
        let parent = place.folder.parent().unwrap_or(&place.folder);
        let inside = own == "mcp-server" || MARKS.iter().any(|mark| parent.join(mark).exists());
        let prefix = if inside { format!("{own}/") } else { String::new() };
        if prefix.contains(['"', '\\', '{', '}']) {
            return Err(format!("the folder's name `{own}` has characters that cannot stand in the files"));
        }
        let crates = match (asked.published, &asked.checkout) {
            (true, _) => None,
            (false, Some(checkout)) => Some(crates_in(checkout)?),
            (false, None) => Some(built_from()?),
        };
        Ok(Self { name, toolsets, http: asked.http, inside, prefix, crates })
    }

    fn files(&self) -> Result<Vec<(&'static str, String)>, String> {
        let mut files = vec![
            ("Cargo.toml", self.fill(include_str!("../templates/Cargo.toml.in"))),
            ("roles.toml", self.fill(include_str!("../templates/roles.toml.in"))),
            ("README.md", self.fill(include_str!("../templates/README.md.in"))),
            (".gitignore", include_str!("../templates/gitignore.in").to_owned()),
            ("src/lib.rs", self.fill(include_str!("../templates/lib.rs.in"))),
            ("src/main.rs", self.fill(include_str!("../templates/main.rs.in"))),
            ("src/tools.rs", include_str!("../templates/tools.rs").to_owned()),
            ("tests/server.rs", self.fill(include_str!("../templates/server.rs.in"))),
            (".agent/index.agent.md", self.index()?),
        ];
        if self.http {
            files.push(("src/http.rs", self.fill(include_str!("../templates/http.rs.in"))));
            files.push(("tests/over_http.rs", self.fill(include_str!("../templates/over_http.rs.in"))));
        }
        Ok(files)
    }

    /// The index that the server itself would write.
    fn index(&self) -> Result<String, String> {
        let program = Program::new(PLAIN_NAME, env!("CARGO_PKG_VERSION")).toolset(tools::toolset);
        let server = setup::server(settings::plain(program)?)?;
        let own = toolsets::own(&settings::plain(program)?)?;
        let entries = index::entries(&server).into_iter().filter(|entry| {
            entry.is_of("project") || self.toolsets.iter().any(|toolset| entry.is_of(toolset))
        });
        Ok(index::document(&self.name, &entries.collect::<Vec<_>>(), &own))
    }

    fn fill(&self, template: &str) -> String {
        let quoted =
            |words: &[&str]| words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        let has = |toolset: &str| self.toolsets.contains(&toolset);
        let source = |package: &str| match &self.crates {
            // A path may hold anything; a string of TOML says it.
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
                format!(
                    "\nFor several callers, over HTTP, each with a token and a role:\n\n```sh\n\
                     cargo run --bin {0}-http -- --tokens tokens.toml token new --name ci --role worker\n\
                     cargo run --bin {0}-http -- --tokens tokens.toml\n```\n",
                    self.name
                ),
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
                "; started here, in its own folder, the one above",
            ),
            false => ("", "this project", ""),
        };
        let (worker, orchestration) = match has("sessions") {
            true => ("; starts, ends and steers no agents", ORCHESTRATION),
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

/// The chosen toolsets, in their order.
fn toolsets(asked: &[String]) -> Result<Vec<&'static str>, String> {
    let known = || TOOLSETS.iter().map(|(toolset, _)| *toolset);
    let mut chosen = Vec::new();
    for word in asked.iter().map(|word| word.trim()) {
        match known().find(|toolset| *toolset == word) {
            Some(toolset) => chosen.push(toolset),
            None if word == "all" => chosen.extend(known()),
            None => {
                let meant = nearest(word, known())
                    .map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
                let names: Vec<_> = known().collect();
                return Err(format!(
                    "no toolset is called `{word}`{meant} (there are all, {})",
                    names.join(", ")
                ));
            }
        }
    }
    Ok(known().filter(|toolset| chosen.contains(toolset)).collect())
}

/// Refuses what Cargo would not take for the name of a package with a library and a binary.
fn check_name(name: &str) -> Result<(), &'static str> {
    // Its own libraries, and what the language or Cargo keeps for itself.
    const TAKEN: [&str; 18] = [
        "core-tools",
        "coretools-mcp",
        "mcp-stdio",
        "mcp-http",
        "server-setup",
        "role-policy",
        "process-runner",
        "context-compiler",
        "schemars",
        "serde",
        "serde-json",
        "std",
        "core",
        "alloc",
        "test",
        "proc-macro",
        "build",
        "deps",
    ];
    const KEYWORDS: [&str; 52] = [
        "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do",
        "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
        "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self",
        "static", "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
        "virtual", "where", "while", "yield", "examples",
    ];
    if name.is_empty() || name.len() > 64 {
        return Err("it must have 1 to 64 characters");
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(allowed) {
        return Err("it must begin with a letter a to z and have only those, digits, - and _");
    }
    let dashed = name.replace('_', "-");
    if TAKEN.contains(&dashed.as_str()) || KEYWORDS.contains(&name) {
        return Err("Rust, Cargo or a library in it is called that");
    }
    Ok(())
}

/// The crates of the checkout that this program was built from, if that is still there. Of a registry they cannot be by
/// default: as long as they are not published, their names are anybody's.
fn built_from() -> Result<PathBuf, String> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    match own.parent() {
        Some(crates) if own.join("Cargo.toml").is_file() => Ok(crates.to_owned()),
        _ => {
            Err("the checkout that this program was built from is gone: name one with --path DIR".to_owned())
        }
    }
}

/// The crates of a checkout of CoreTools.
fn crates_in(checkout: &Path) -> Result<PathBuf, String> {
    let shown = checkout.display();
    let real = checkout.canonicalize().map_err(|error| format!("cannot use --path {shown}: {error}"))?;
    let crates = real.join("crates");
    match crates.join("mcp-stdio/Cargo.toml").is_file() {
        true => Ok(crates),
        false => {
            Err(format!("--path {shown} is no checkout of CoreTools: it has no crates/mcp-stdio/Cargo.toml"))
        }
    }
}
