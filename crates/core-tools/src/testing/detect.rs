//! Which runner a project's files ask for.

use super::runner::Runner;
use crate::ci::project::Project;
use serde_json::Value;

/// What is looked for, in this order.
pub(super) const LOOKED_FOR: &str = "Cargo.toml; tests/*.bats or test/*.bats; pytest.ini, a pytest table in \
pyproject.toml, tox.ini or setup.cfg, conftest.py; package.json; go.mod; *.sln, *.slnx or *.csproj; pom.xml; \
build.gradle(.kts); CMakeLists.txt or CTestTestfile.cmake; deno.json(c); .rspec or spec/*_spec.rb; phpunit.xml(.dist); mix.exs; build.zig; \
Package.swift; pyproject.toml or setup.py; a `test` recipe in a justfile; a `test` target in a Makefile";

/// The runners that the files of one folder ask for, the first one first.
pub(super) fn runners(project: &Project) -> Vec<Runner> {
    let mut found = Vec::new();
    let mut add = |there: bool, runner: Runner| {
        if there && !found.contains(&runner) {
            found.push(runner);
        }
    };
    add(project.has("Cargo.toml"), Runner::Cargo);
    let bats = |folder| project.has_named(folder, |name| name.ends_with(".bats"));
    add(bats("tests") || bats("test"), Runner::Bats);
    add(configures_pytest(project) || project.has("conftest.py"), Runner::Pytest);
    if let Some(package) = project.read("package.json") {
        add(true, node_runner(project, &package));
    }
    add(project.has("go.mod"), Runner::Go);
    add(is_dotnet(project), Runner::Dotnet);
    add(project.has("pom.xml"), Runner::Maven);
    add(project.has_any(&["build.gradle", "build.gradle.kts"]), Runner::Gradle);
    add(project.has_any(&["CMakeLists.txt", "CTestTestfile.cmake"]), Runner::Ctest);
    add(project.has_any(&["deno.json", "deno.jsonc"]), Runner::Deno);
    add(is_rspec(project), Runner::Rspec);
    add(project.has_any(&["phpunit.xml", "phpunit.xml.dist"]), Runner::Phpunit);
    add(project.has("mix.exs"), Runner::Mix);
    add(project.has("build.zig"), Runner::Zig);
    add(project.has("Package.swift"), Runner::Swift);
    add(is_python(project), Runner::Pytest);
    add(has_rule(project, &["justfile", "Justfile", ".justfile"]), Runner::Just);
    add(has_rule(project, &["Makefile", "makefile", "GNUmakefile"]), Runner::Make);
    found
}

pub(super) fn configures_pytest(project: &Project) -> bool {
    project.has("pytest.ini")
        || project.says("pyproject.toml", "[tool.pytest")
        || project.says("tox.ini", "[pytest]")
        || project.says("setup.cfg", "[tool:pytest]")
}

pub(super) fn is_python(project: &Project) -> bool {
    project.has_any(&["pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "pytest.ini"])
}

pub(super) fn is_rspec(project: &Project) -> bool {
    project.has(".rspec") || project.has_named("spec", |name| name.ends_with("_spec.rb"))
}

pub(super) fn is_dotnet(project: &Project) -> bool {
    project.has_named(".", |name| {
        [".sln", ".slnx", ".csproj", ".fsproj", ".vbproj"].iter().any(|end| name.ends_with(end))
    })
}

/// A rule called `test`.
fn has_rule(project: &Project, files: &[&str]) -> bool {
    files.iter().any(|file| {
        project.read(file).is_some_and(|text| {
            text.lines().any(|line| {
                let rule = line.strip_prefix("test").or_else(|| line.strip_prefix("@test"));
                rule.is_some_and(|rest| {
                    rest.starts_with([':', ' ']) && rest.contains(':') && !rest.contains(":=")
                })
            })
        })
    })
}

/// The runner of a Node project: by its dependencies and configuration, then by its script `test`.
pub(super) fn node_runner(project: &Project, package: &str) -> Runner {
    let package: Value = serde_json::from_str(package).unwrap_or_default();
    let script = package.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default();
    let names = project.names(".");
    let depends_on = |name: &str| {
        ["dependencies", "devDependencies"]
            .iter()
            .any(|kind| package.get(kind).is_some_and(|dependencies| dependencies.get(name).is_some()))
    };
    let uses = |runner: &str| {
        // The package `playwright` alone drives browsers, for programs of any kind.
        let depends = depends_on(if runner == "playwright" { "@playwright/test" } else { runner });
        let configured = names.iter().any(|name| {
            name.starts_with(&format!("{runner}.config.")) || name.starts_with(&format!(".{runner}rc"))
        });
        depends || configured || package.get(runner).is_some()
    };
    let runs = |program: &str| script.split([' ', ';', '&', '|']).any(|word| word == program);
    // The last two run beside another: what tests units comes first.
    let choices = [
        (Runner::Vitest, "vitest"),
        (Runner::Jest, "jest"),
        (Runner::Mocha, "mocha"),
        (Runner::Ava, "ava"),
        (Runner::Playwright, "playwright"),
    ];
    // Of several that are installed, the one that `npm test` runs.
    if let Some((runner, _)) = choices.iter().find(|(_, name)| runs(name) && uses(name)) {
        return *runner;
    }
    if script.contains("node --test") || script.contains("node:test") {
        return Runner::Node;
    }
    if let Some((runner, _)) = choices.iter().find(|(_, name)| uses(name)) {
        return *runner;
    }
    if project.has_any(&["deno.json", "deno.jsonc"]) {
        Runner::Deno
    } else if script.starts_with("bun test") || project.has_any(&["bun.lock", "bun.lockb"]) {
        Runner::Bun
    } else if script.is_empty() || script.contains("no test specified") {
        Runner::Node
    } else {
        Runner::Npm
    }
}

/// What kind of runner a file asks for by its name, and whether `project` is where such a project begins.
pub(super) fn by_file(name: &str) -> Option<fn(&Project) -> Option<Runner>> {
    let (_, extension) = name.rsplit_once('.')?;
    Some(match extension {
        "rs" => |project| project.has("Cargo.toml").then_some(Runner::Cargo),
        "bats" => {
            |project| project.has_any(&["tests", "test", ".git", "package.json"]).then_some(Runner::Bats)
        }
        "py" => |project| is_python(project).then_some(Runner::Pytest),
        "go" => |project| project.has("go.mod").then_some(Runner::Go),
        "js" | "cjs" | "mjs" | "ts" | "cts" | "mts" | "jsx" | "tsx" => {
            |project| Some(node_runner(project, &project.read("package.json")?))
        }
        "cs" | "fs" | "vb" | "csproj" | "fsproj" | "sln" | "slnx" => {
            |project| is_dotnet(project).then_some(Runner::Dotnet)
        }
        "java" | "kt" => |project| {
            let gradle = project.has_any(&["build.gradle", "build.gradle.kts"]);
            project.has("pom.xml").then_some(Runner::Maven).or(gradle.then_some(Runner::Gradle))
        },
        "rb" => |project| (is_rspec(project) || project.has("Gemfile")).then_some(Runner::Rspec),
        "exs" => |project| project.has("mix.exs").then_some(Runner::Mix),
        "php" => |project| project.has_any(&["phpunit.xml", "phpunit.xml.dist"]).then_some(Runner::Phpunit),
        _ => return None,
    })
}
