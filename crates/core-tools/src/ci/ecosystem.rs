//! Which ecosystem a project's files are of.

use super::build::BuildError;
use super::project::Project;
use crate::workspace::{Kind, Workspace};

/// A family of tools that builds projects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "they are their names")]
pub enum Ecosystem {
    Cargo,
    Dotnet,
    Node,
    Python,
    Go,
    Maven,
    Gradle,
    Cmake,
    Make,
    Just,
}

/// Each with its name, the files that tell it, and how it is installed.
const KNOWN: [(Ecosystem, &str, &[&str], &str); 10] = [
    (Ecosystem::Cargo, "cargo", &["Cargo.toml"], "https://rustup.rs"),
    (
        Ecosystem::Dotnet,
        "dotnet",
        &["*.sln", "*.slnx", "*.csproj", "*.fsproj", "*.vbproj"],
        "https://dot.net",
    ),
    (Ecosystem::Node, "npm", &["package.json"], "https://nodejs.org; pnpm and yarn with `corepack enable`"),
    (
        Ecosystem::Python,
        "python",
        &["pyproject.toml", "setup.py", "requirements.txt"],
        "python3 from the system's packages, uv from https://docs.astral.sh/uv",
    ),
    (Ecosystem::Go, "go", &["go.mod"], "https://go.dev/dl or apt-get install golang-go"),
    (Ecosystem::Maven, "maven", &["pom.xml"], "apt-get install maven"),
    (Ecosystem::Gradle, "gradle", &["build.gradle", "build.gradle.kts"], "https://gradle.org/install"),
    (Ecosystem::Cmake, "cmake", &["CMakeLists.txt"], "apt-get install cmake"),
    (Ecosystem::Make, "make", &["Makefile", "makefile", "GNUmakefile"], "apt-get install make"),
    (Ecosystem::Just, "just", &["justfile", "Justfile", ".justfile"], "cargo install just"),
];

impl Ecosystem {
    /// Its name, as the parameter `ecosystem` takes it.
    pub fn name(self) -> &'static str {
        KNOWN.iter().find(|known| known.0 == self).map_or("unknown", |known| known.1)
    }

    /// How its programs are usually installed.
    pub fn installation(self) -> &'static str {
        KNOWN.iter().find(|known| known.0 == self).map_or("", |known| known.3)
    }
}

/// A project, and the file in it that was named.
pub(super) struct Choice {
    pub(super) ecosystem: Ecosystem,
    pub(super) project: Project,
    pub(super) file: Option<String>,
    pub(super) also: Vec<Ecosystem>,
}

/// The ecosystems that a folder is a project of.
fn found(project: &Project) -> Vec<Ecosystem> {
    let names = project.names(".");
    let has = |pattern: &&str| match pattern.strip_prefix('*') {
        Some(end) => names.iter().any(|name| name.ends_with(end)),
        None => names.iter().any(|name| name == pattern),
    };
    KNOWN.iter().filter(|known| known.2.iter().any(has)).map(|known| known.0).collect()
}

/// The project at `path` or above it, never above the root.
pub(super) fn choose(
    workspace: &Workspace,
    path: Option<&str>,
    asked: Option<&str>,
) -> Result<Choice, BuildError> {
    let located = workspace.locate(path.unwrap_or("."))?;
    let is_folder = located.metadata()?.kind == Kind::Directory;
    let shown = located.shown();
    let file =
        located.relative().file_name().filter(|_| !is_folder).map(|name| name.to_string_lossy().into_owned());
    let start = if is_folder { located } else { located.parent().unwrap_or(located) };
    let wanted = match asked {
        Some(name) => {
            let known = KNOWN.iter().find(|known| known.1 == name);
            let names: Vec<_> = KNOWN.iter().map(|known| known.1).collect();
            let found = format!("known are {}", names.join(", "));
            Some(known.map(|known| known.0).ok_or(BuildError::Ecosystem { asked: name.to_owned(), found })?)
        }
        None => None,
    };
    let mut nearest = Vec::new();
    for project in Project(start).upward() {
        let mut there = found(&project);
        // A project file says itself what it is.
        let by_file = file.as_deref().and_then(|file| {
            let named = |pattern: &&str| match pattern.strip_prefix('*') {
                Some(end) => file.ends_with(end),
                None => file == *pattern,
            };
            KNOWN.iter().find(|known| known.2.iter().any(named)).map(|known| known.0)
        });
        if let Some(ecosystem) = wanted
            .or(by_file)
            .filter(|one| there.contains(one))
            .or(there.first().copied().filter(|_| wanted.is_none()))
        {
            there.retain(|other| *other != ecosystem);
            let also = if wanted.is_some() { Vec::new() } else { there };
            return Ok(Choice {
                ecosystem,
                project,
                file: file.filter(|_| by_file == Some(ecosystem)),
                also,
            });
        }
        nearest.extend(there);
    }
    match asked {
        Some(asked) => {
            let names: Vec<_> = nearest.iter().map(|one| one.name()).collect();
            let found =
                format!("there is no such project at `{shown}` or above it; found {}", names.join(", "));
            Err(BuildError::Ecosystem { asked: asked.to_owned(), found })
        }
        None => {
            let files: Vec<_> = KNOWN.iter().flat_map(|known| known.2.iter().copied()).collect();
            Err(BuildError::NoProject { path: shown, looked_for: files.join(", ") })
        }
    }
}

/// The package manager of a Node project: what `packageManager` names, else what the nearest lock file is of.
pub(crate) fn package_manager(project: &Project) -> &'static str {
    const LOCKS: [(&str, &str); 6] = [
        ("pnpm-lock.yaml", "pnpm"),
        ("yarn.lock", "yarn"),
        ("bun.lock", "bun"),
        ("bun.lockb", "bun"),
        ("package-lock.json", "npm"),
        ("npm-shrinkwrap.json", "npm"),
    ];
    for folder in project.upward() {
        let package = folder.read("package.json").unwrap_or_default();
        let package: serde_json::Value = serde_json::from_str(&package).unwrap_or_default();
        let named = package.get("packageManager").and_then(serde_json::Value::as_str).unwrap_or_default();
        if let Some(manager) =
            ["pnpm", "yarn", "bun", "npm"].into_iter().find(|name| named.starts_with(&format!("{name}@")))
        {
            return manager;
        }
        if let Some((_, manager)) = LOCKS.into_iter().find(|(lock, _)| folder.has(lock)) {
            return manager;
        }
    }
    "npm"
}
