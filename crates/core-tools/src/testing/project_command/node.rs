//! The test command of a Node project: its script `test`, by its package manager.

use super::command::{CommandPart, ProjectCommand, ReporterLoading};
use super::script::{ScriptCommand, file_name};
use super::shell::split_commands;
use crate::ci::node::package_manager;
use crate::ci::project::Project;
use crate::testing::error::TestError;
use serde_json::Value;

/// The file that names the scripts.
const MANIFEST: &str = "package.json";

/// The number of scripts that a script may call in a row.
const MAX_DEPTH: usize = 6;
/// The number of commands that are told.
const MAX_PARTS: usize = 200;
/// The number of packages of a workspace that are looked at.
const MAX_PACKAGES: usize = 500;

/// Returns the command that runs the tests of a Node project, or `None` if it has no script of its own.
///
/// # Errors
///
/// `package.json` is no JSON, or its script `test` is no text: no package manager runs that.
pub(super) fn test_command(project: &Project) -> Result<Option<ProjectCommand>, TestError> {
    let Some(text) = project.read("package.json") else { return Ok(None) };
    let manifest = serde_json::from_str(text.trim_start_matches('\u{feff}'));
    let manifest = PackageManifest(manifest.map_err(|error| TestError::Manifest {
        path: MANIFEST.to_owned(),
        problem: format!("it is no JSON: {error}"),
    })?);
    if let Some(scripts) =
        manifest.0.get("scripts").filter(|scripts| !scripts.is_object() && !scripts.is_null())
    {
        let problem = format!("its `scripts` are {}, and no object", kind(scripts));
        return Err(TestError::Manifest { path: MANIFEST.to_owned(), problem });
    }
    if let Some(script) = manifest.0.pointer("/scripts/test").filter(|script| !script.is_string()) {
        let problem = format!("its script `test` is {}, and package managers run only text", kind(script));
        return Err(TestError::Manifest { path: MANIFEST.to_owned(), problem });
    }
    let manager = package_manager(project);
    let mut notes = Vec::new();
    let (arguments, packages): (&[&str], _) = if manifest.test_script().is_some() {
        if manifest.runs_bun_alone() {
            return Ok(None);
        }
        let others = workspace_packages(project, &manifest).into_iter();
        let not_run: Vec<_> = others
            .filter(|package| package.manifest.test_script().is_some())
            .map(|package| package.folder)
            .collect();
        if !not_run.is_empty() && !manifest.reaches_packages() {
            let folders = not_run.join(", ");
            notes.push(format!(
                "the script `test` of the root is run; those of its packages are not run on their own: {folders}"
            ));
        }
        // `bun test` would start the runner of bun instead of the script.
        let arguments: &[&str] = if manager == "bun" { &["run", "test"] } else { &["test"] };
        let root = NodePackage { folder: String::new(), manifest };
        (arguments, vec![root])
    } else {
        let packages: Vec<_> = workspace_packages(project, &manifest)
            .into_iter()
            .filter(|package| package.manifest.test_script().is_some())
            .collect();
        if packages.is_empty() {
            return Ok(None);
        }
        (in_all_packages(manager, project), packages)
    };
    let mut parts = Vec::new();
    for package in &packages {
        package.add_script("test", &mut parts, 0);
    }
    let not_run: Vec<_> = packages.iter().flat_map(|package| package.other_test_scripts(&parts)).collect();
    if !not_run.is_empty() {
        let scripts = not_run.join(", ");
        notes.push(format!(
            "no part of the script `test`, as far as it can be read, and so not run: {scripts}"
        ));
    }
    let loading = if parts.iter().any(is_of_another_language) {
        ReporterLoading::EveryLanguage
    } else {
        ReporterLoading::Node
    };
    Ok(Some(ProjectCommand { loading, notes, ..ProjectCommand::new(manager, arguments, parts) }))
}

/// Returns true if a command of a script runs tests that are not those of Node, or may do so.
fn is_of_another_language(part: &CommandPart) -> bool {
    const PROGRAMS: [&str; 15] = [
        "bash", "bundle", "coverage", "just", "make", "nox", "poetry", "pytest", "rake", "rspec", "ruby",
        "sh", "tox", "uv", "zsh",
    ];
    // Also behind a wrapper: `timeout 60 python3 -m pytest`, `sh -c 'pytest -q'`.
    let is_of_another = |word: &str| {
        let name = file_name(word);
        PROGRAMS.contains(&name) || name.starts_with("python")
    };
    part.command.words.iter().any(|word| is_of_another(word))
}

/// Returns true for a word with which a command runs scripts of the packages of a workspace.
fn is_of_packages(word: &str) -> bool {
    const WORDS: [&str; 11] = [
        "-r",
        "-ws",
        "--filter",
        "--recursive",
        "--workspaces",
        "foreach",
        "lerna",
        "nx",
        "turbo",
        "wireit",
        "workspaces",
    ];
    WORDS.contains(&word) || word.starts_with("--workspace")
}

/// Describes a value that should be text.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
        Value::String(_) => "text",
    }
}

/// Returns the arguments with which a package manager runs the tests of all packages.
fn in_all_packages(manager: &str, project: &Project) -> &'static [&'static str] {
    match manager {
        // By default, pnpm stops after the first package whose tests fail.
        "pnpm" => &["--recursive", "--no-bail", "test"],
        "yarn" if project.contains(".yarnrc.yml") => &["workspaces", "foreach", "--all", "run", "test"],
        "yarn" => &["workspaces", "run", "test"],
        "bun" => &["run", "--filter", "*", "test"],
        _ => &["test", "--workspaces", "--if-present"],
    }
}

/// A package of a project: the project itself, or one of its workspace.
struct NodePackage {
    /// The folder, relative to the project's.
    folder: String,
    manifest: PackageManifest,
}

/// The text of a `package.json`.
struct PackageManifest(Value);

impl PackageManifest {
    fn read(project: &Project) -> Option<Self> {
        serde_json::from_str(&project.read("package.json")?).ok().map(Self)
    }

    fn script(&self, name: &str) -> Option<&str> {
        let script = self.0.get("scripts")?.get(name)?.as_str()?;
        Some(script).filter(|script| !script.trim().is_empty())
    }

    /// Returns the script `test`, unless it is the one that `npm init` writes.
    fn test_script(&self) -> Option<&str> {
        // One that somebody has changed to succeed is the project's own.
        self.script("test")
            .filter(|script| !script.contains("no test specified") || script.contains("exit 0"))
    }

    /// Returns true if the script is `bun test` and nothing else, which reports only to us as its own runner.
    fn runs_bun_alone(&self) -> bool {
        let has_others = self.script("pretest").is_some() || self.script("posttest").is_some();
        let commands = self.test_script().map(split_commands).unwrap_or_default();
        !has_others
            && matches!(&commands[..], [command] if command.words.starts_with(&["bun".into(), "test".into()]))
    }

    /// Returns true if the script `test` of the root runs those of its packages.
    fn reaches_packages(&self) -> bool {
        let test = self.test_script().unwrap_or_default();
        test.split_whitespace().any(is_of_packages)
    }

    /// Returns the patterns of the folders of a workspace's packages.
    fn workspace_patterns(&self) -> Vec<String> {
        let Some(workspaces) = self.0.get("workspaces") else { return Vec::new() };
        let list = workspaces.as_array().or_else(|| workspaces.get("packages")?.as_array());
        let patterns = list.into_iter().flatten().filter_map(Value::as_str);
        patterns.map(str::to_owned).collect()
    }
}

impl NodePackage {
    /// Adds the commands of a script and of those that it calls, with what runs before and after it.
    fn add_script(&self, name: &str, parts: &mut Vec<CommandPart>, depth: usize) {
        let before = format!("pre{name}");
        let after = format!("post{name}");
        for script in [before.as_str(), name, after.as_str()] {
            let commands = self.manifest.script(script).map(split_commands).unwrap_or_default();
            for command in commands {
                let called = self.called_scripts(&command);
                // Scripts may call each other in a circle.
                if called.is_empty() || depth >= MAX_DEPTH {
                    if parts.len() < MAX_PARTS {
                        let (script, folder) = (script.to_owned(), self.folder.clone());
                        parts.push(CommandPart { script, folder, command });
                    }
                    continue;
                }
                let first = parts.len();
                for script in called {
                    self.add_script(&script, parts, depth + 1);
                }
                // If the caller hides the exit code of a script (`npm run unit || true`), it hides those of all
                // commands in the script.
                for part in parts.iter_mut().skip(first) {
                    part.command.is_hidden |= command.is_hidden;
                }
            }
        }
    }

    /// Returns the scripts of this package that are named after tests, and that are not among `parts`.
    fn other_test_scripts(&self, parts: &[CommandPart]) -> Vec<String> {
        let is_part = |name: &str| parts.iter().any(|part| part.script == name && part.folder == self.folder);
        let names = self.scripts_like("test:*").into_iter();
        let names = names.filter(|name| !is_part(name) && !name.contains("watch"));
        let at = if self.folder.is_empty() { String::new() } else { format!("{}: ", self.folder) };
        names.map(|name| format!("{at}`{name}`")).collect()
    }

    /// Returns the scripts of this package that a command calls: `npm run lint`, `yarn lint`, `run-s lint unit:*`.
    fn called_scripts(&self, command: &ScriptCommand) -> Vec<String> {
        let words: Vec<_> = command.words.iter().map(String::as_str).collect();
        // With such a word, the command runs scripts of other packages and not the script of this package.
        if words.iter().any(|word| is_of_packages(word)) {
            return Vec::new();
        }
        let has = |name: &str| self.manifest.script(name).is_some();
        // Options of the package manager may stand before its own words: `npm --silent run lint`, `npm run -s lint`.
        let is_manager = ["npm", "pnpm", "yarn", "bun"].contains(&command.program());
        let arguments = words.get(1..).unwrap_or_default().iter().copied();
        let arguments: Vec<_> = arguments.filter(|word| !is_manager || !word.starts_with('-')).collect();
        let found = match (command.program(), arguments.as_slice()) {
            ("npm" | "pnpm" | "yarn" | "bun", ["run" | "run-script", name, ..]) => vec![(*name).to_owned()],
            ("npm" | "pnpm" | "yarn", ["test" | "t", ..]) => vec!["test".to_owned()],
            ("pnpm" | "yarn", [name, ..]) if has(name) => vec![(*name).to_owned()],
            ("run-s" | "run-p" | "npm-run-all" | "npm-run-all2", names) => {
                names.iter().flat_map(|name| self.scripts_like(name)).collect()
            }
            _ => Vec::new(),
        };
        found.into_iter().filter(|name| has(name)).collect()
    }

    /// Returns the scripts of a name, whose `*` stands for anything.
    fn scripts_like(&self, pattern: &str) -> Vec<String> {
        let Some(scripts) = self.manifest.0.get("scripts").and_then(Value::as_object) else {
            return Vec::new();
        };
        let fits = |name: &str| match pattern.split_once('*') {
            Some((start, _)) => name.starts_with(start),
            None => name == pattern,
        };
        scripts.keys().filter(|name| fits(name)).cloned().collect()
    }
}

/// Returns the packages of a workspace, in the order of their folders.
fn workspace_packages(project: &Project, manifest: &PackageManifest) -> Vec<NodePackage> {
    let mut patterns = manifest.workspace_patterns();
    patterns.extend(pnpm_patterns(project));
    let mut folders: Vec<String> = Vec::new();
    for pattern in patterns.iter().map(|pattern| pattern.trim_start_matches("./").trim_end_matches('/')) {
        match pattern.split_once('*') {
            _ if pattern.starts_with('!') => {}
            // `packages/*`, and of deeper ones the first level.
            Some((parent, _)) => {
                let parent = parent.trim_end_matches('/');
                let names = project.entry_names(if parent.is_empty() { "." } else { parent });
                let names = names.into_iter().filter(|name| name != "node_modules" && !name.starts_with('.'));
                folders.extend(names.map(|name| match parent {
                    "" => name,
                    parent => format!("{parent}/{name}"),
                }));
            }
            None => folders.push(pattern.to_owned()),
        }
    }
    folders.sort_unstable();
    folders.dedup();
    let packages = folders.into_iter().take(MAX_PACKAGES).filter_map(|folder| {
        let manifest = PackageManifest::read(&Project::new(project.folder().join(&folder).ok()?))?;
        Some(NodePackage { folder, manifest })
    });
    packages.collect()
}

/// Returns the patterns of `pnpm-workspace.yaml`: the entries of its list `packages`.
fn pnpm_patterns(project: &Project) -> Vec<String> {
    let text = project.read("pnpm-workspace.yaml").unwrap_or_default();
    let entries = text
        .lines()
        .skip_while(|line| line.trim_end() != "packages:")
        .skip(1)
        .take_while(|line| line.trim().is_empty() || line.starts_with([' ', '-', '#']))
        .filter_map(|line| line.trim().strip_prefix('-'));
    entries.map(|entry| entry.trim().trim_matches(['"', '\'']).to_owned()).collect()
}
