//! The runner of one test file.

use super::node::node_runner;
use super::project_kind::{is_dotnet, is_python, is_rspec, python_runner};
use crate::ci::project::Project;
use crate::testing::runner::TestRunner;

/// A function that returns the runner of a kind of file, if a folder is where such a project begins.
pub(crate) type RunnerOfProject = fn(&Project) -> Option<TestRunner>;

/// Returns how the runner of a file of this name is found, or `None` if no runner has such test files.
pub(crate) fn runner_by_file(name: &str) -> Option<RunnerOfProject> {
    let (_, extension) = name.rsplit_once('.')?;
    Some(match extension {
        "rs" => |project| project.contains("Cargo.toml").then_some(TestRunner::Cargo),
        "bats" => |project| {
            project.contains_any(&["tests", "test", ".git", "package.json"]).then_some(TestRunner::Bats)
        },
        "py" => |project| is_python(project).then(|| python_runner(project)),
        "go" => |project| project.contains("go.mod").then_some(TestRunner::Go),
        "js" | "cjs" | "mjs" | "ts" | "cts" | "mts" | "jsx" | "tsx" => {
            |project| Some(node_runner(project, &project.read("package.json")?))
        }
        "cs" | "fs" | "vb" | "csproj" | "fsproj" | "sln" | "slnx" => {
            |project| is_dotnet(project).then_some(TestRunner::Dotnet)
        }
        "java" | "kt" => |project| {
            let gradle = project.contains_any(&["build.gradle", "build.gradle.kts"]);
            project.contains("pom.xml").then_some(TestRunner::Maven).or(gradle.then_some(TestRunner::Gradle))
        },
        "rb" => |project| (is_rspec(project) || project.contains("Gemfile")).then_some(TestRunner::Rspec),
        "exs" => |project| project.contains("mix.exs").then_some(TestRunner::Mix),
        "php" => |project| {
            project.contains_any(&["phpunit.xml", "phpunit.xml.dist"]).then_some(TestRunner::Phpunit)
        },
        _ => return None,
    })
}

/// Returns the runner of a test file that belongs to no project.
pub(crate) fn runner_of_lone_file(name: &str) -> Option<TestRunner> {
    match name.rsplit('.').next() {
        Some("bats") => Some(TestRunner::Bats),
        Some("py") => Some(TestRunner::Pytest),
        Some("js" | "mjs" | "cjs") => Some(TestRunner::Node),
        _ => None,
    }
}
