//! The runner and the commands that are chosen for projects of all kinds.

#![allow(clippy::disallowed_methods, reason = "tests make their own files")]

use super::report_folder::ReportFolder;
use super::steps::steps;
use crate::testing::request::RunTests;
use crate::testing::runner::TestRunner;
use crate::testing::target::{TestTarget, select};
use crate::workspace::Workspace;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Creates a project of these files, empty unless `path=text`.
fn project(files: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files.split_whitespace() {
        let (path, text) = file.split_once('=').unwrap_or((file, ""));
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Returns the selected tests of a project.
fn target(folder: &TempDir, test_path: &str) -> TestTarget {
    let workspace = Workspace::new([folder.path()]).unwrap();
    select(&workspace, &RunTests::new().test_path(test_path)).unwrap()
}

/// Returns the command for `test_path` in a project of these files.
fn command(files: &str, test_path: &str) -> String {
    let folder = project(files);
    let target = target(&folder, test_path);
    let steps = steps(&target, &ReportFolder::new(Path::new("/reports"))).unwrap();
    let commands: Vec<_> = steps.into_iter().map(|step| step.display).collect();
    let root = folder.path().canonicalize().unwrap();
    commands.join(" && ").replace(&format!("{}/", root.display()), "")
}

#[test]
fn the_package_manager_runs_the_script_of_a_node_project_that_has_no_known_runner() {
    const SCRIPT: &str = "\"scripts\":{\"test\":\"./check\"}";
    for (files, expected) in [
        ("", "npm test"),
        ("package-lock.json", "npm test"),
        ("pnpm-lock.yaml", "pnpm test"),
        ("yarn.lock", "yarn test"),
        ("package-lock.json yarn.lock", "yarn test"),
    ] {
        assert_eq!(command(&format!("package.json={{{SCRIPT}}} {files}"), ""), expected, "{files}");
    }
    // What the project says itself outranks the lock files.
    let named = format!("package.json={{{SCRIPT},\"packageManager\":\"pnpm@9.1.0\"}} yarn.lock");
    assert_eq!(command(&named, ""), "pnpm test");
    // A package of a workspace has the lock file above it.
    let inner = format!("pnpm-lock.yaml package.json={{}} packages/a/package.json={{{SCRIPT}}}");
    assert_eq!(command(&inner, "packages/a"), "pnpm test");
    // A lock file of bun is a runner too.
    assert_eq!(command("package.json={} bun.lock", ""), "bun test");
}

#[test]
fn a_node_project_is_run_by_what_its_script_names_then_by_what_it_depends_on() {
    let script = |script: &str, dependencies: &str| {
        let package = serde_json::json!({
            "scripts": {"test": script},
            "devDependencies": dependencies.split_whitespace().map(|name| (name, "*")).collect::<std::collections::BTreeMap<_, _>>(),
        });
        let folder = project("");
        fs::write(folder.path().join("package.json"), package.to_string()).unwrap();
        target(&folder, "").runner.name()
    };
    assert_eq!(script("", "vitest jest mocha ava @playwright/test"), "vitest");
    assert_eq!(script("", "jest mocha"), "jest");
    assert_eq!(script("mocha --exit", "jest mocha"), "mocha");
    assert_eq!(script("", "mocha ava"), "mocha");
    assert_eq!(script("", "ava @playwright/test"), "ava");
    assert_eq!(script("", "@playwright/test"), "playwright");
    assert_eq!(script("", "playwright"), "node");
    assert_eq!(script("playwright test", "vitest @playwright/test"), "playwright");
    assert_eq!(script("node --test", "mocha"), "node");
    assert_eq!(script("./check", ""), "npm");
    assert_eq!(script("", ""), "node");
    for (file, expected) in [
        ("vitest.config.ts", "vitest"),
        ("jest.config.js", "jest"),
        (".mocharc.yml", "mocha"),
        ("playwright.config.ts", "playwright"),
        ("deno.json", "deno"),
        ("bun.lockb", "bun"),
    ] {
        let folder = project(&format!("package.json={{}} {file}"));
        assert_eq!(target(&folder, "").runner.name(), expected, "{file}");
    }
}

#[test]
fn python_is_the_projects_own() {
    const HATCH: &str = "pyproject.toml=[tool.hatch.envs.default]";
    for (files, expected) in [
        ("", "python3 -m pytest"),
        (".venv/bin/python uv.lock", ".venv/bin/python -m pytest"),
        ("venv/bin/python poetry.lock", "venv/bin/python -m pytest"),
        ("uv.lock poetry.lock", "uv run python -m pytest"),
        ("uv.lock tox.ini=[tox]", "uv run python -m pytest"),
        ("poetry.lock", "poetry run python -m pytest"),
        (HATCH, "hatch run python -m pytest"),
        ("hatch.toml", "hatch run python -m pytest"),
        ("tox.ini .tox/py312/bin/python", ".tox/py312/bin/python -m pytest"),
        ("tox.ini .tox/lint/bin/python", "python3 -m pytest"),
    ] {
        let command = command(&format!("pytest.ini {files}"), "");
        assert_eq!(command, format!("{expected} -q"), "{files}");
    }
    // A member of a workspace has the environment and the lock at its top.
    let member =
        command("uv.lock pyproject.toml members/a/pytest.ini members/a/test_a.py", "members/a/test_a.py");
    assert_eq!(member, "uv run python -m pytest -q test_a.py");
}

#[test]
fn a_path_becomes_what_the_runner_selects_by() {
    for (files, path, expected) in [
        ("Cargo.toml src/lib.rs tests/api.rs", "tests/api.rs", "cargo test --no-fail-fast --test api"),
        ("Cargo.toml src/lib.rs src/a/b.rs", "src/a/b.rs", "cargo test --no-fail-fast --lib -- a::b::"),
        (
            "Cargo.toml src/main.rs",
            "src/main.rs::tests::one",
            "cargo test --no-fail-fast --bins -- tests::one",
        ),
        ("Cargo.toml", "name", "cargo test --no-fail-fast -- name"),
        ("tests/a.bats", "tests/a.bats::one", "bats --formatter tap --timing --filter one tests/a.bats"),
        ("pytest.ini t/test_a.py", "t/test_a.py::test_b", "python3 -m pytest -q t/test_a.py::test_b"),
        ("pytest.ini t/test_a.py", "t", "python3 -m pytest -q t"),
        ("go.mod a/b_test.go", "a/b_test.go::TestC", "go test -json -count=1 -run TestC ./a"),
        ("go.mod a/b_test.go", "a", "go test -json -count=1 ./a/..."),
        (
            "pom.xml src/test/java/d/ATest.java",
            "src/test/java/d/ATest.java::adds",
            "mvn --batch-mode --no-transfer-progress test '-Dtest=ATest#adds' -Dsurefire.failIfNoSpecifiedTests=false -DfailIfNoTests=false",
        ),
        (
            "build.gradle src/test/java/d/ATest.java",
            "src/test/java/d/ATest.java",
            "gradle cleanTest test --continue --console=plain --no-daemon --tests '*ATest'",
        ),
        (
            "package.json={} .mocharc.yml node_modules/mocha/bin/mocha test/a.js",
            "test/a.js",
            "node node_modules/mocha/bin/mocha test/a.js",
        ),
        ("noxfile.py test_a.py", "test_a.py", "python3 -m pytest -q test_a.py"),
        ("tox.ini=[testenv] test_a.py", "name", "python3 -m pytest -q -k name"),
        (".rspec spec/a_spec.rb", "spec/a_spec.rb::adds", "rspec --example adds spec/a_spec.rb"),
        (".rspec Gemfile.lock spec/a_spec.rb", "", "bundle exec rspec"),
        ("phpunit.xml tests/ATest.php", "tests/ATest.php", "phpunit tests/ATest.php"),
        ("mix.exs test/a_test.exs", "test/a_test.exs", "mix test test/a_test.exs"),
        ("a.csproj ATests.cs", "ATests.cs", "dotnet test --logger trx --filter FullyQualifiedName~ATests"),
        ("deno.json a_test.ts package.json={}", "a_test.ts", "deno test a_test.ts"),
    ] {
        assert_eq!(command(files, path), expected, "{files} {path}");
    }
}

#[test]
fn runners_are_detected_in_the_documented_order_and_the_others_are_named() {
    let all = "Cargo.toml tests/a.bats pytest.ini package.json={} go.mod pom.xml build.gradle CMakeLists.txt \
               deno.json .rspec phpunit.xml mix.exs build.zig Package.swift \
               tox.ini=[tox] noxfile.py Rakefile=TestTask justfile=test: Makefile=test: bin/test";
    let folder = project(all);
    let target = target(&folder, "");
    let names: Vec<_> =
        std::iter::once(target.runner).chain(target.other_runners).map(TestRunner::name).collect();
    let expected = "cargo bats pytest deno go maven gradle ctest rspec rake phpunit mix zig swift tox nox just make script";
    assert_eq!(names.join(" "), expected);
}

#[test]
fn the_projects_own_command_is_that_of_its_ecosystem() {
    const COMPOSER: &str = "composer.json={\"scripts\":{\"test\":";
    for (files, expected) in [
        ("tox.ini=[testenv]", "tox"),
        ("tox.ini=[tox] .venv/bin/tox", "tox"),
        ("noxfile.py", "nox"),
        ("tox.ini=[testenv] pytest.ini", "python3 -m pytest -q"),
        ("Makefile=check:", "make check"),
        ("Makefile=test:", "make test"),
        ("justfile=test:", "just test"),
        ("Rakefile=TestTask", "rake test"),
        ("Rakefile=RakeTask", "rake spec"),
        ("Rakefile=TestTask Gemfile.lock", "bundle exec rake test"),
        ("deno.json={\"tasks\":{\"test\":\"./check\"}}", "deno task test"),
        ("bin/test", "./bin/test"),
        ("script/test", "./script/test"),
        ("build.zig", "zig build test"),
        ("Package.swift", "swift test"),
        (&format!("{COMPOSER}\"phpunit\"}}}}"), "composer test"),
        (&format!("{COMPOSER}[\"@lint\",\"pest\"]}}}} phpunit.xml"), "composer test"),
        ("phpunit.xml composer.json={}", "phpunit"),
    ] {
        assert_eq!(command(files, ""), expected, "{files}");
    }
}

#[test]
fn a_script_that_is_no_text_is_an_error() {
    for (package, expected) in [
        ("{\"scripts\":{\"test\":{}}}", "an object"),
        ("{\"scripts\":{\"test\":3}}", "a number"),
        ("{\"scripts\":{\"test\":[\"a\"]}}", "a list"),
        ("{\"scripts\":\"mocha\"}", "are text"),
        ("{\"scripts\":", "it is no JSON"),
    ] {
        let folder = project(&format!("package.json={package} a.test.js"));
        let workspace = Workspace::new([folder.path()]).unwrap();
        let error = select(&workspace, &RunTests::new()).unwrap_err().to_string();
        assert!(error.contains("package.json") && error.contains(expected), "{error}");
        // A part of the tests has a runner all the same.
        assert_eq!(
            command(&format!("package.json={package} a.test.js"), "a.test.js"),
            "node --test a.test.js"
        );
    }
}
