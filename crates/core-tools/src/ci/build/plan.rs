//! The commands that build a project, or that fetch its dependencies.

use super::error::BuildError;
use super::node_scripts::NodeScripts;
use super::report::BuildGoal;
use super::target::BuildTarget;
use crate::ci::ecosystem::Ecosystem;
use crate::ci::node::package_manager;
use crate::ci::project::{MAX_MANIFEST_BYTES, Project};

/// Returns the commands for `goal`, in their order, each as program and arguments. There is at least one.
pub(super) fn commands(goal: BuildGoal, target: &BuildTarget) -> Result<Vec<Vec<String>>, BuildError> {
    use BuildGoal::{Build, Restore};
    let BuildTarget { ecosystem, project, project_file, .. } = target;
    let ecosystem = *ecosystem;
    let tsc;
    let scripts = NodeScripts::read(project);
    let commands: Vec<Vec<&str>> = match (ecosystem, goal) {
        (Ecosystem::Cargo, Build) => vec![vec!["cargo", "build", "--message-format=json"]],
        (Ecosystem::Cargo, Restore) => vec![vec!["cargo", "fetch"]],
        // In a folder dotnet finds the project itself; only a file that the caller named is passed on.
        (Ecosystem::Dotnet, goal) => {
            let command = if goal == Build { "build" } else { "restore" };
            vec![["dotnet", command].into_iter().chain(project_file.as_deref()).collect()]
        }
        (Ecosystem::Node, Build) => match scripts.build_script() {
            Some(script) => vec![vec![package_manager(project), "run", script]],
            None if project.contains("tsconfig.json") => {
                tsc = typescript_compiler(project)?;
                vec![vec!["node", &tsc, "--pretty", "false", "--noEmit"]]
            }
            None => Vec::new(),
        },
        (Ecosystem::Node, Restore) => vec![vec![package_manager(project), "install"]],
        (Ecosystem::Python, Build) => vec![vec![python(project), "-m", "build"]],
        (Ecosystem::Python, Restore) if project.contains("uv.lock") => vec![vec!["uv", "sync"]],
        (Ecosystem::Python, Restore) if project.contains("poetry.lock") => vec![vec!["poetry", "install"]],
        (Ecosystem::Python, Restore) if project.contains("requirements.txt") => {
            vec![vec![python(project), "-m", "pip", "install", "-r", "requirements.txt"]]
        }
        (Ecosystem::Python, Restore) => vec![vec![python(project), "-m", "pip", "install", "-e", "."]],
        (Ecosystem::Go, Build) => vec![vec!["go", "build", "./..."]],
        (Ecosystem::Go, Restore) => vec![vec!["go", "mod", "download"]],
        (Ecosystem::Maven, goal) => {
            let phase = if goal == Build { "compile" } else { "dependency:resolve" };
            vec![vec!["mvn", "--batch-mode", "--no-transfer-progress", phase]]
        }
        (Ecosystem::Gradle, goal) => {
            let program = if project.contains("gradlew") { "./gradlew" } else { "gradle" };
            let task = if goal == Build { "assemble" } else { "dependencies" };
            vec![vec![program, "--console=plain", task]]
        }
        // Configuring downloads what a project fetches, so it is the whole of a restore.
        (Ecosystem::Cmake, goal) => {
            let configure = (goal == Restore || !project.contains("build/CMakeCache.txt"))
                .then(|| vec!["cmake", "-S", ".", "-B", "build"]);
            let compile = (goal == Build).then(|| vec!["cmake", "--build", "build"]);
            configure.into_iter().chain(compile).collect()
        }
        (Ecosystem::Make, Build) => vec![vec!["make"]],
        (Ecosystem::Just, Build) => vec![vec!["just", "build"]],
        (Ecosystem::Make | Ecosystem::Just, Restore) => Vec::new(),
    };
    if commands.is_empty() {
        let folder = project.folder().display_path();
        // A manifest that was cut may have a script that was not seen.
        if ecosystem == Ecosystem::Node && is_too_large(project, "package.json") {
            return Err(BuildError::ManifestTooLarge { file: "package.json", folder });
        }
        let scripts = if ecosystem == Ecosystem::Node { scripts.names() } else { Vec::new() };
        return Err(BuildError::NoCommand { goal, ecosystem, folder, scripts });
    }
    Ok(commands.into_iter().map(|words| words.into_iter().map(str::to_owned).collect()).collect())
}

fn is_too_large(project: &Project, file: &str) -> bool {
    let metadata = project.folder().join(file).and_then(|path| path.metadata());
    metadata.is_ok_and(|metadata| metadata.size > MAX_MANIFEST_BYTES)
}

/// Returns the interpreter of the project's own environment, else the one on `PATH`.
fn python(project: &Project) -> &'static str {
    const LOCAL: [&str; 2] = [".venv/bin/python", "venv/bin/python"];
    LOCAL.into_iter().find(|path| project.contains(path)).unwrap_or("python3")
}

/// Returns the path of TypeScript's compiler, found as Node finds a package: in the nearest `node_modules` that
/// has it.
fn typescript_compiler(project: &Project) -> Result<String, BuildError> {
    const PATH: &str = "node_modules/typescript/bin/tsc";
    let folder = project.ancestors().find(|folder| folder.contains(PATH)).ok_or_else(|| {
        BuildError::TypeScriptMissing {
            path: PATH,
            folder: project.folder().display_path(),
            installation: "npm install --save-dev typescript",
        }
    })?;
    if folder.folder().relative() == project.folder().relative() {
        return Ok(PATH.to_owned());
    }
    Ok(folder.folder().to_absolute().join(PATH).to_string_lossy().into_owned())
}
