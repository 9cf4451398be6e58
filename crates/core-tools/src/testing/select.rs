//! What is to be tested: from what a caller names to a runner, a folder, and a part of its tests.

use super::detect;
use super::plan::go_name;
use super::runner::Runner;
use crate::ci::project::Project;
use crate::workspace::{self, Kind, Workspace};

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestError {
    /// The files ask for no runner that is known.
    #[error(
        "no test runner detected for `{path}`; looked, from there up to the root, for {}",
        detect::LOOKED_FOR
    )]
    NoRunner {
        /// Where the search began.
        path: String,
    },
    /// There is no runner of this name.
    #[error("no runner is called `{name}`; known are {known}")]
    UnknownRunner {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// `test_path` begins with a dash.
    #[error("`test_path` is `{0}`: what begins with `-` would be an option of the runner")]
    Option(String),
    /// There is no such file or folder.
    #[error("`test_path`: there is no `{path}`{hint}")]
    NoSuchPath {
        /// What was asked for.
        path: String,
        /// Which name is near, ready to follow the message.
        hint: String,
    },
    /// The runner cannot select what was asked for.
    #[error("{runner} cannot run only {what}; give {instead}")]
    CannotSelect {
        /// The runner.
        runner: Runner,
        /// What was to be selected.
        what: String,
        /// What it can select.
        instead: &'static str,
    },
    /// The path leads nowhere that may be used.
    #[error("cannot use that path")]
    Path(#[from] workspace::Error),
    /// The report of the runner has no place.
    #[error("cannot make a folder for the runner's report")]
    Report(#[from] std::io::Error),
    /// The run was lost.
    #[error(transparent)]
    Command(#[from] crate::ci::CommandError),
}

/// Which of a project's tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// A file or folder, relative to the project's folder, with `/` between; empty for all of it.
    pub(super) path: String,
    /// It is a folder.
    pub(super) folder: bool,
    /// The name of a test, or a part of it.
    pub(super) name: Option<String>,
}

/// Where which runner runs which tests.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) runner: Runner,
    pub(super) project: Project,
    pub(super) part: Part,
    /// What else the project's files ask for.
    pub(super) also: Vec<Runner>,
}

/// The runner by its name.
fn named(name: &str) -> Result<Runner, TestError> {
    Runner::named(name).ok_or_else(|| TestError::UnknownRunner {
        name: name.to_owned(),
        known: Runner::all().map(Runner::name).collect::<Vec<_>>().join(", "),
    })
}

/// `path::name`, `path` or a name: the path in front of the first `::`, if there is anything there.
fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once("::") {
        Some((path, name)) if path.contains(['/', '.']) => (path, Some(name).filter(|name| !name.is_empty())),
        _ => (text, None),
    }
}

/// Whether this is meant as a path, if there is nothing there.
fn looks_like_a_path(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or(text);
    text.ends_with('/')
        || text.starts_with('.')
        || (detect::by_file(name).is_some() && !text.contains(' '))
        || (text.contains('/') && !text.contains(' ') && !is_of_go(text))
}

/// `TestName/subtest` or `example.org/package.TestName`, as Go's reports have it.
fn is_of_go(text: &str) -> bool {
    text.starts_with("Test") || go_name(text).0.is_some()
}

pub(super) fn choose(
    workspace: &Workspace,
    project_path: Option<&str>,
    test_path: Option<&str>,
    runner: Option<&str>,
) -> Result<Choice, TestError> {
    let runner = runner.map(named).transpose()?;
    let base = workspace.locate(project_path.unwrap_or("."))?;
    let metadata = base.metadata()?;
    // A file gives its folder, and names the project there.
    let base = if metadata.kind == Kind::Directory { base } else { base.parent().unwrap_or(base) };
    let Some(text) = test_path.filter(|text| !text.is_empty() && *text != ".") else {
        return in_folder(&Project(base), &Part::default(), runner);
    };
    if text.starts_with('-') {
        return Err(TestError::Option(text.to_owned()));
    }
    let (path, name) = split(text);
    let located = if project_path.is_some() { base.join(path) } else { workspace.locate(path) };
    let there = match &located {
        Ok(located) => located.kind()?,
        Err(_) if (name.is_none() || path.contains(" - ")) && !path.starts_with('/') => None,
        Err(_) => {
            return Err(located
                .map(|_| ())
                .map_err(TestError::from)
                .err()
                .unwrap_or(no_such_path(path, String::new())));
        }
    };
    let name = name.map(str::to_owned);
    match (there, located) {
        (Some(Kind::Directory), Ok(folder)) => {
            in_folder(&Project(folder), &Part { name, ..Part::default() }, runner)
        }
        (Some(_), Ok(file)) => in_file(&Project(file), name, runner),
        // A test in documentation: `src/lib.rs - module::name (line 5)`.
        (_, located) if !path.contains(" - ") && (name.is_some() || looks_like_a_path(path)) => {
            let hint = match located.map(|located| located.metadata()) {
                Ok(Err(workspace::Error::NotFound { hint, .. })) => hint.unwrap_or_default(),
                _ => String::new(),
            };
            Err(no_such_path(path, hint))
        }
        _ => in_folder(&Project(base), &Part { name: Some(text.to_owned()), ..Part::default() }, runner),
    }
}

fn no_such_path(path: &str, hint: String) -> TestError {
    TestError::NoSuchPath { path: path.to_owned(), hint }
}

/// The part of `outer` that `inner` is.
fn relative(outer: &Project, inner: &Project) -> String {
    let path = inner.0.relative().strip_prefix(outer.0.relative()).unwrap_or(inner.0.relative());
    path.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/")
}

fn in_folder(start: &Project, part: &Part, runner: Option<Runner>) -> Result<Choice, TestError> {
    let choice = |project: Project, runner: Runner, also: Vec<Runner>| {
        let path = relative(&project, start);
        let also = also.into_iter().filter(|other| *other != runner).collect();
        Choice { runner, part: Part { folder: !path.is_empty(), path, ..part.clone() }, project, also }
    };
    let mut weak = None;
    for project in start.upward() {
        let found = detect::runners(&project);
        match (runner, found.first()) {
            (Some(Runner::Nextest), _) if found.contains(&Runner::Cargo) => {
                return Ok(choice(project, Runner::Nextest, found));
            }
            (Some(runner), _) if found.contains(&runner) => return Ok(choice(project, runner, found)),
            // Any Node project can be run by any of its runners.
            (
                Some(
                    runner @ (Runner::Vitest
                    | Runner::Jest
                    | Runner::Mocha
                    | Runner::Ava
                    | Runner::Playwright
                    | Runner::Node
                    | Runner::Npm
                    | Runner::Bun),
                ),
                _,
            ) if project.has("package.json") => {
                return Ok(choice(project, runner, found));
            }
            (Some(_), _) | (None, None) => {}
            // A `conftest.py` lies in any folder of tests: what the folders above say counts for more.
            (None, Some(Runner::Pytest)) if !detect::is_python(&project) => {
                weak = weak.or_else(|| Some(choice(project, Runner::Pytest, found)));
            }
            (None, Some(first)) => {
                let first = *first;
                if weak.is_some() && first != Runner::Pytest {
                    break;
                }
                return Ok(choice(project, first, found));
            }
        }
    }
    if let Some(weak) = weak {
        return Ok(weak);
    }
    match runner {
        Some(runner) => Ok(choice(start.clone(), runner, Vec::new())),
        None => Err(TestError::NoRunner { path: start.0.shown() }),
    }
}

fn in_file(file: &Project, name: Option<String>, runner: Option<Runner>) -> Result<Choice, TestError> {
    let Some(folder) = file.0.parent().map(Project) else {
        return Err(no_such_path(&file.0.shown(), String::new()));
    };
    let by_name = detect::by_file(&file.0.shown());
    let mut choice = match (runner, by_name) {
        (Some(_), _) | (None, None) => in_folder(&folder, &Part::default(), runner)?,
        (None, Some(begins)) => {
            let found = folder.upward().find_map(|project| Some((begins(&project)?, project)));
            match found {
                Some((runner, project)) => {
                    let also =
                        detect::runners(&project).into_iter().filter(|other| *other != runner).collect();
                    Choice { runner, project, part: Part::default(), also }
                }
                // A test file on its own.
                None => {
                    let runner = match file.0.shown().rsplit('.').next() {
                        Some("bats") => Runner::Bats,
                        Some("py") => Runner::Pytest,
                        Some("js" | "mjs" | "cjs") => Runner::Node,
                        _ => return Err(TestError::NoRunner { path: file.0.shown() }),
                    };
                    Choice { runner, project: folder, part: Part::default(), also: Vec::new() }
                }
            }
        }
    };
    choice.part = Part { path: relative(&choice.project, file), folder: false, name };
    Ok(choice)
}
