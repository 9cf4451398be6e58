//! The command of pytest, and the interpreter that runs it.

use super::report_folder::ReportFolder;
use super::step::{TestResultSource, TestStep};
use crate::ci::project::Project;
use crate::testing::project_command::pytest_words_of_tox;
use crate::testing::target::{TestFilter, TestTarget};
use std::path::{Path, PathBuf};

pub(super) fn test(target: &TestTarget, reports: &ReportFolder) -> TestStep {
    let interpreter = PythonInterpreter::of(target);
    let virtual_environment = interpreter.virtual_environment();
    let PythonInterpreter { program, arguments, display } = interpreter;
    // A cache of our own: `--last-failed` and its like find one, and the project's is left alone.
    let cache = format!("cache_dir={}", reports.file("cache"));
    let step = TestStep::new(&program, arguments, TestResultSource::Events).args(&[
        &reports.file("pytest.py"),
        &reports.events(),
        "-o",
        &cache,
    ]);
    let skip = step.arguments.len();
    let step = step.args(&["-q"]);
    let filter = &target.filter;
    let step = match &filter.pattern {
        Some(pattern) => step.args(&["-k", pattern]),
        None => step,
    };
    let step = match (filter.path(), filter.name()) {
        (None, None) if *filter == TestFilter::default() && target.arguments.is_empty() => {
            let words = pytest_words_of_tox(&target.project);
            step.args(&words.iter().map(String::as_str).collect::<Vec<_>>())
        }
        (None, None) => step.args(&rerun_options(target).iter().map(String::as_str).collect::<Vec<_>>()),
        (None, Some(name)) => step.args(&["-k", name]),
        (Some(path), Some(name)) if !filter.is_folder => step.args(&[&format!("{path}::{name}")]),
        (Some(path), Some(name)) => step.args(&["-k", name, path]),
        (Some(path), None) => step.args(&[path]),
    };
    step.active(virtual_environment).display_as(&format!("{display} -m pytest"), skip)
}

/// Returns the options of the full run's command by which pytest collects the failed tests again; none where others are
/// to run.
fn rerun_options(target: &TestTarget) -> Vec<String> {
    const DOCTESTS: &str = "--doctest-modules";
    let failed = &target.filter.failed;
    if failed.is_empty() {
        return Vec::new();
    }
    let mut options = pytest_words_of_tox(&target.project);
    options.retain(|word| word.starts_with('-'));
    // The command of the full run may have had the option from elsewhere: a caller, a script.
    if failed.iter().any(|name| is_doctest_of_module(name)) && !options.iter().any(|word| word == DOCTESTS) {
        options.push(DOCTESTS.to_owned());
    }
    options
}

/// Returns true for the name of a test in the documentation of a module, which begins with that of the module:
/// `shop/cart.py::shop.cart.total`. The name of a function has a dot only in the values of parameters.
fn is_doctest_of_module(name: &str) -> bool {
    let Some((path, test)) = name.split_once("::") else { return false };
    let Some(module) = path.strip_suffix(".py") else { return false };
    let module = module.strip_suffix("/__init__").unwrap_or(module);
    let module = module.rsplit('/').next().unwrap_or(module);
    !test.contains(['[', ':']) && test.split('.').any(|part| part == module)
}

/// Returns the command of the standard library's own runner.
pub(super) fn unittest(target: &TestTarget, reports: &ReportFolder) -> TestStep {
    let interpreter = PythonInterpreter::of(target);
    let virtual_environment = interpreter.virtual_environment();
    let PythonInterpreter { program, arguments, display } = interpreter;
    let step = TestStep::new(&program, arguments, TestResultSource::Events)
        .args(&[&reports.file("unittest_main.py"), &reports.events()]);
    let skip = step.arguments.len();
    let filter = &target.filter;
    let step = match filter.path() {
        None => step.args(&["discover"]),
        // What is a package is imported as a part of the project.
        Some(folder) if filter.is_folder && target.project.contains(&format!("{folder}/__init__.py")) => {
            step.args(&["discover", "-s", folder, "-t", "."])
        }
        Some(folder) if filter.is_folder => step.args(&["discover", "-s", folder]),
        Some(file) => step.args(&[file]),
    };
    // A name without `*` is a part of one.
    let pattern = filter.pattern(str::to_owned);
    step.option("-k", pattern.as_deref())
        .active(virtual_environment)
        .display_as(&format!("{display} -m unittest"), skip)
}

/// The Python interpreter of a project.
struct PythonInterpreter {
    program: String,
    /// The arguments that come before those of the interpreter itself.
    arguments: &'static [&'static str],
    /// The words that a person would type.
    display: String,
}

impl PythonInterpreter {
    /// Returns the folder of the virtual environment that the interpreter belongs to. Tests that start programs of the project
    /// by name must find those of this environment.
    fn virtual_environment(&self) -> Option<PathBuf> {
        let folder = Path::new(&self.program).parent()?.parent()?;
        folder.is_absolute().then(|| folder.to_path_buf())
    }

    /// Returns the interpreter of the project's local environment, else that of its package manager, else one
    /// that tox has made, else `python3`, which is that of an active environment.
    fn of(target: &TestTarget) -> Self {
        let project = &target.project;
        const LOCAL: [&str; 3] = [".venv/bin/python", "venv/bin/python", ".venv/Scripts/python.exe"];
        let local = project.ancestors().enumerate().find_map(|(levels_up, folder)| {
            let path = LOCAL.into_iter().find(|path| folder.contains(path))?;
            Some((first_of(&folder, &[path])?, format!("{}{path}", "../".repeat(levels_up))))
        });
        // With its path: `python` alone would be another one in a terminal.
        if let Some((program, display)) = local {
            return Self { program, arguments: &[], display };
        }
        // The members of a workspace share one lock, at its top.
        let has = |name: &str| project.ancestors().any(|folder| folder.contains(name));
        let managed = |program: &str, arguments: &'static [&'static str], display: &str| Self {
            program: program.to_owned(),
            arguments,
            display: display.to_owned(),
        };
        let is_usable = |manager: &str| !target.unusable_managers.contains(&manager);
        if has("uv.lock") && is_usable("uv") {
            return managed("uv", &["run", "--no-sync", "python"], "uv run python");
        }
        if has("poetry.lock") && is_usable("poetry") {
            return managed("poetry", &["run", "python"], "poetry run python");
        }
        let has_hatch =
            project.contains("hatch.toml") || project.file_contains("pyproject.toml", "[tool.hatch.envs");
        if has_hatch && is_usable("hatch") {
            return managed("hatch", &["run", "python"], "hatch run python");
        }
        // Only what tox has made already: to make it takes minutes and the network.
        let environments = project.entry_names(".tox").into_iter().filter(|name| name.starts_with("py"));
        let mut interpreters = environments.map(|name| format!(".tox/{name}/bin/python"));
        let found = interpreters.find(|path| project.contains(path));
        match found.and_then(|display| Some((first_of(project, &[&display])?, display))) {
            Some((program, display)) => Self { program, arguments: &[], display },
            None => managed("python3", &[], "python3"),
        }
    }
}

/// Returns the program that manages the environment of a Python project, if there is one and no environment of the
/// project's own.
pub(crate) fn environment_manager(target: &TestTarget) -> Option<&'static str> {
    let program = PythonInterpreter::of(target).program;
    ["uv", "poetry", "hatch"].into_iter().find(|manager| *manager == program)
}

/// Returns the absolute path of the first of `paths` that is in the folder.
fn first_of(folder: &Project, paths: &[impl AsRef<str>]) -> Option<String> {
    let path = paths.iter().map(AsRef::as_ref).find(|path| folder.contains(path))?;
    Some(folder.folder().to_absolute().join(path).to_string_lossy().into_owned())
}
