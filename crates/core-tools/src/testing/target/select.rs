//! The meaning of `project_path`, `test_path` and `runner`.

use super::go_name::GoTestName;
use super::test_target::{TestFilter, TestTarget};
use crate::ci::project::Project;
use crate::testing::detect::{is_python, python_runner, runner_by_file, runner_of_lone_file, runners_of};
use crate::testing::error::TestError;
use crate::testing::project_command::{RunnerFlags, flags_of_runner, project_command};
use crate::testing::request::RunTests;
use crate::testing::results::FailedTests;
use crate::testing::runner::TestRunner;
use crate::workspace::{self, PathKind, Workspace};

/// Finds the project and the runner of a request, and what part of the tests it names. All of them are run by the
/// project's own command, unless the request names another runner.
pub(crate) fn select(workspace: &Workspace, request: &RunTests) -> Result<TestTarget, TestError> {
    let mut target = select_tests(workspace, request)?;
    target.arguments.clone_from(&request.args);
    target.filter.pattern = request.filter.clone().filter(|pattern| !pattern.is_empty());
    if target.filter.name.is_some() && target.filter.pattern.is_some() {
        return Err(TestError::TwoSelections("test_path", "filter"));
    }
    let is_own_choice = request.runner.is_none() || target.runner.reports_only_exit_code();
    let is_whole_run = target.filter == TestFilter::default() && target.arguments.is_empty();
    if is_own_choice && is_whole_run {
        target.project_command = project_command(&target.project, target.runner)?;
    } else if request.runner.is_none() && matches!(target.runner, TestRunner::Tox | TestRunner::Nox) {
        // These run what they run; the tests themselves are those of a runner that selects.
        target.other_runners.insert(0, target.runner);
        target.runner = python_runner(&target.project);
    }
    if target.project_command.is_none() {
        target.flags = flags_of_runner(&target.project, target.runner);
    }
    Ok(target)
}

fn select_tests(workspace: &Workspace, request: &RunTests) -> Result<TestTarget, TestError> {
    if let Some(failed) = &request.failed_tests {
        return select_failed(workspace, request, failed);
    }
    let runner = request.runner.as_deref().map(runner_of_name).transpose()?;
    let base = workspace.locate(request.project_path.as_deref().unwrap_or("."))?;
    let metadata = base.metadata()?;
    // A file names the project of its folder.
    let base = if metadata.kind == PathKind::Directory { base } else { base.parent().unwrap_or(base) };
    let Some(text) = request.test_path.as_deref().filter(|text| !text.is_empty() && *text != ".") else {
        return in_folder(&Project::new(base), &TestFilter::default(), runner);
    };
    if text.starts_with('-') {
        return Err(TestError::Option(text.to_owned()));
    }
    let (path, name) = split_test_path(text);
    let located = if request.project_path.is_some() { base.join(path) } else { workspace.locate(path) };
    let kind = match &located {
        Ok(located) => located.kind()?,
        // A name may hold what no path can. A text that is certainly a path is refused for what is wrong with it.
        Err(_) if (name.is_none() || is_doctest_name(path)) && !path.starts_with('/') => None,
        Err(_) => match located {
            Err(error) => return Err(error.into()),
            Ok(_) => None,
        },
    };
    let name = name.map(str::to_owned);
    match (kind, located) {
        (Some(PathKind::Directory), Ok(folder)) => {
            in_folder(&Project::new(folder), &TestFilter { name, ..TestFilter::default() }, runner)
        }
        (Some(_), Ok(file)) => in_file(&Project::new(file), name, runner),
        (_, located) if !is_doctest_name(path) && (name.is_some() || looks_like_a_path(path)) => {
            let hint = match located.map(|located| located.metadata()) {
                Ok(Err(workspace::Error::NotFound { hint, .. })) => hint,
                _ => None,
            };
            Err(TestError::NoSuchPath { path: path.to_owned(), hint })
        }
        _ => {
            let filter = TestFilter { name: Some(text.to_owned()), ..TestFilter::default() };
            in_folder(&Project::new(base), &filter, runner)
        }
    }
}

/// Selects the tests that failed in an earlier run: by its runner, in its project.
fn select_failed(
    workspace: &Workspace,
    request: &RunTests,
    failed: &FailedTests,
) -> Result<TestTarget, TestError> {
    let selects = |value: &Option<String>| value.as_ref().is_some_and(|value| !value.is_empty());
    for (name, is_given) in [("test_path", selects(&request.test_path)), ("filter", selects(&request.filter))]
    {
        if is_given {
            return Err(TestError::TwoSelections("failed_only", name));
        }
    }
    // Without a name, a runner would run all tests.
    if failed.is_empty() {
        return Err(TestError::CannotRerun("the last run tells no failed test by its name".to_owned()));
    }
    let base = Project::new(workspace.locate(&failed.folder)?);
    let filter = TestFilter { failed: failed.names.clone(), ..TestFilter::default() };
    in_folder(&base, &filter, Some(runner_of_name(request.runner.as_deref().unwrap_or(failed.runner))?))
}

fn runner_of_name(name: &str) -> Result<TestRunner, TestError> {
    TestRunner::from_name(name).ok_or_else(|| TestError::UnknownRunner { name: name.to_owned() })
}

/// Splits `path::name` at the first `::`, if a path is before it. Any other text is a path or a name as a whole.
fn split_test_path(text: &str) -> (&str, Option<&str>) {
    match text.split_once("::") {
        Some((path, name)) if path.contains(['/', '.']) => (path, Some(name).filter(|name| !name.is_empty())),
        _ => (text, None),
    }
}

/// Returns true for the name of a test in documentation: `src/lib.rs - module::name (line 5)`.
fn is_doctest_name(text: &str) -> bool {
    text.contains(" - ")
}

/// Returns true if a text, at which there is nothing, is meant as a path and not as a name.
fn looks_like_a_path(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or(text);
    text.ends_with('/')
        || text.starts_with('.')
        || (runner_by_file(name).is_some() && !text.contains(' '))
        || (text.contains('/') && !text.contains(' ') && !is_go_test_name(text))
}

/// Returns true for `TestName/subtest` and `example.org/package.TestName`.
fn is_go_test_name(text: &str) -> bool {
    text.starts_with("Test") || GoTestName::parse(text).package.is_some()
}

/// Returns the path of `inner` relative to `outer`, with `/` between the names.
fn relative_path(outer: &Project, inner: &Project) -> String {
    let (outer, inner) = (outer.folder().relative(), inner.folder().relative());
    let path = inner.strip_prefix(outer).unwrap_or(inner);
    path.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/")
}

/// Selects tests in a folder: of the nearest project there or above it.
fn in_folder(
    start: &Project,
    filter: &TestFilter,
    requested: Option<TestRunner>,
) -> Result<TestTarget, TestError> {
    let target = |project: Project, runner: TestRunner, runners: Vec<TestRunner>| {
        let path = relative_path(&project, start);
        let other_runners = runners.into_iter().filter(|other| *other != runner).collect();
        let filter = TestFilter { is_folder: !path.is_empty(), path, ..filter.clone() };
        TestTarget {
            runner,
            filter,
            project,
            other_runners,
            project_command: None,
            arguments: Vec::new(),
            flags: RunnerFlags::default(),
            unusable_managers: Vec::new(),
        }
    };
    if let Some(runner) = requested {
        let project = start.ancestors().find_map(|project| {
            let runners = runners_of(&project);
            can_run(runner, &project, &runners).then_some((project, runners))
        });
        // Without a project the runner itself says what it misses.
        let (project, runners) = project.unwrap_or_else(|| (start.clone(), Vec::new()));
        return Ok(target(project, runner, runners));
    }
    let mut by_conftest = None;
    for project in start.ancestors() {
        let runners = runners_of(&project);
        let Some(first) = runners.first().copied() else { continue };
        // A `conftest.py` lies in any folder of tests: what the folders above say counts for more.
        if first == TestRunner::Pytest && !is_python(&project) {
            by_conftest = by_conftest.or_else(|| Some(target(project, first, runners)));
            continue;
        }
        if by_conftest.is_some() && first != TestRunner::Pytest {
            break;
        }
        return Ok(target(project, first, runners));
    }
    by_conftest.ok_or_else(|| TestError::NoRunner { path: start.folder().display_path() })
}

/// Returns true if a requested runner can run the tests of a project whose files ask for `runners`.
fn can_run(runner: TestRunner, project: &Project, runners: &[TestRunner]) -> bool {
    runners.contains(&runner)
        || (runner == TestRunner::Nextest && runners.contains(&TestRunner::Cargo))
        || (runner.runs_any_node_project() && project.contains("package.json"))
        || (matches!(runner, TestRunner::Pytest | TestRunner::Unittest) && is_python(project))
}

/// Selects the tests of a file, by the runner that its extension belongs to.
fn in_file(
    file: &Project,
    name: Option<String>,
    requested: Option<TestRunner>,
) -> Result<TestTarget, TestError> {
    let shown = file.folder().display_path();
    let Some(folder) = file.folder().parent().map(Project::new) else {
        return Err(TestError::NoSuchPath { path: shown, hint: None });
    };
    let mut target = match (requested, runner_by_file(&shown)) {
        (Some(_), _) | (None, None) => in_folder(&folder, &TestFilter::default(), requested)?,
        (None, Some(runner_of_project)) => {
            let found = folder.ancestors().find_map(|project| Some((runner_of_project(&project)?, project)));
            let filter = TestFilter::default();
            match found {
                Some((runner, project)) => {
                    let other_runners =
                        runners_of(&project).into_iter().filter(|other| *other != runner).collect();
                    TestTarget {
                        runner,
                        project,
                        filter,
                        other_runners,
                        project_command: None,
                        arguments: Vec::new(),
                        flags: RunnerFlags::default(),
                        unusable_managers: Vec::new(),
                    }
                }
                None => {
                    let runner = runner_of_lone_file(&shown).ok_or(TestError::NoRunner { path: shown })?;
                    TestTarget {
                        runner,
                        project: folder,
                        filter,
                        other_runners: Vec::new(),
                        project_command: None,
                        arguments: Vec::new(),
                        flags: RunnerFlags::default(),
                        unusable_managers: Vec::new(),
                    }
                }
            }
        }
    };
    target.filter = TestFilter { path: relative_path(&target.project, file), name, ..TestFilter::default() };
    Ok(target)
}
