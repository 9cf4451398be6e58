//! The runners that the files of a folder ask for.

use super::node::node_runner;
use super::project_kind::{
    configures_pytest, has_composer_tests, has_rake_tests, has_test_rule, is_dotnet, is_python, is_rspec,
    python_runner, test_program, uses_nox, uses_tox,
};
use crate::ci::project::Project;
use crate::testing::runner::TestRunner;

/// The names that a makefile may have, in the order in which make looks for them.
pub(crate) const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// The files that are looked for, in this order, for error messages.
pub(crate) const LOOKED_FOR: &str = "Cargo.toml; tests/*.bats or test/*.bats; pytest.ini, a pytest table in \
pyproject.toml, tox.ini or setup.cfg, conftest.py; package.json; go.mod; *.sln, *.slnx or *.csproj; pom.xml; \
build.gradle(.kts); CMakeLists.txt or CTestTestfile.cmake; deno.json(c); .rspec or spec/*_spec.rb; phpunit.xml(.dist); mix.exs; build.zig; \
Package.swift; pyproject.toml, setup.py, tox.ini or noxfile.py; a Rakefile with tests; a script `test` in composer.json; a `test` \
recipe in a justfile; a `test` or `check` target in a Makefile; bin/test or script/test";

/// Returns the runners that the files of one folder ask for, the preferred one first.
pub(crate) fn runners_of(project: &Project) -> Vec<TestRunner> {
    let mut found = Vec::new();
    let mut add = |is_there: bool, runner: TestRunner| {
        if is_there && !found.contains(&runner) {
            found.push(runner);
        }
    };
    add(project.contains("Cargo.toml"), TestRunner::Cargo);
    let bats = |folder| project.has_entry(folder, |name| name.ends_with(".bats"));
    // A folder counts only with a file of bats in it, because most projects have a folder `tests`.
    add(bats("tests") || bats("test"), TestRunner::Bats);
    // The files that name pytest come before other runners. The weaker marks of a Python project come far below.
    add(configures_pytest(project) || project.contains("conftest.py"), TestRunner::Pytest);
    if let Some(package) = project.read("package.json") {
        add(true, node_runner(project, &package));
    }
    add(project.contains("go.mod"), TestRunner::Go);
    add(is_dotnet(project), TestRunner::Dotnet);
    add(project.contains("pom.xml"), TestRunner::Maven);
    add(project.contains_any(&["build.gradle", "build.gradle.kts"]), TestRunner::Gradle);
    add(project.contains_any(&["CMakeLists.txt", "CTestTestfile.cmake"]), TestRunner::Ctest);
    add(project.contains_any(&["deno.json", "deno.jsonc"]), TestRunner::Deno);
    add(is_rspec(project), TestRunner::Rspec);
    add(has_rake_tests(project), TestRunner::Rake);
    let has_phpunit = project.contains_any(&["phpunit.xml", "phpunit.xml.dist"]);
    add(has_phpunit || has_composer_tests(project), TestRunner::Phpunit);
    add(project.contains("mix.exs"), TestRunner::Mix);
    add(project.contains("build.zig"), TestRunner::Zig);
    add(project.contains("Package.swift"), TestRunner::Swift);
    let has_manager = uses_tox(project) || uses_nox(project);
    add(uses_tox(project), TestRunner::Tox);
    add(uses_nox(project), TestRunner::Nox);
    // tox and nox prepare the environment of the tests, so that the bare runner would miss their dependencies.
    add(is_python(project) && !has_manager, python_runner(project));
    // Rules and scripts come last: they often start a runner whose own report is better.
    add(has_test_rule(project, &["justfile", "Justfile", ".justfile"], &["test"]), TestRunner::Just);
    add(has_test_rule(project, &MAKEFILES, &["test", "check"]), TestRunner::Make);
    add(test_program(project).is_some(), TestRunner::Script);
    found
}
