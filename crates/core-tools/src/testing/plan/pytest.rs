//! The command of pytest, and the Python that runs it.

use super::report_folder::ReportFolder;
use super::step::{ResultSource, TestStep};
use crate::ci::project::Project;
use crate::testing::target::TestTarget;

pub(super) fn test(target: &TestTarget, reports: &ReportFolder) -> TestStep {
    let Python { program, arguments, display } = Python::of(&target.project);
    // A cache of our own: `--last-failed` and its like find one, and the project's is left alone.
    let cache = format!("cache_dir={}", reports.file("cache"));
    let step = TestStep::new(&program, arguments, ResultSource::Events).args(&[
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
        (None, None) => step,
        (None, Some(name)) => step.args(&["-k", name]),
        (Some(path), Some(name)) if !filter.is_folder => step.args(&[&format!("{path}::{name}")]),
        (Some(path), Some(name)) => step.args(&["-k", name, path]),
        (Some(path), None) => step.args(&[path]),
    };
    step.display_as(&format!("{display} -m pytest"), skip)
}

/// The Python interpreter of a project.
struct Python {
    program: String,
    /// The arguments that come before those of the interpreter itself.
    arguments: &'static [&'static str],
    /// The words that a person would type.
    display: &'static str,
}

impl Python {
    /// Returns the interpreter of the project's local environment, else that of its package manager, else one
    /// that tox has made, else `python3`, which is that of an active environment.
    fn of(project: &Project) -> Self {
        const LOCAL: [&str; 3] = [".venv/bin/python", "venv/bin/python", ".venv/Scripts/python.exe"];
        if let Some(program) = project.ancestors().find_map(|folder| first_of(&folder, &LOCAL)) {
            return Self { program, arguments: &[], display: "python" };
        }
        // The members of a workspace share one lock, at its top.
        let has = |name: &str| project.ancestors().any(|folder| folder.contains(name));
        let managed = |program: &str, arguments: &'static [&'static str], display: &'static str| Self {
            program: program.to_owned(),
            arguments,
            display,
        };
        if has("uv.lock") {
            return managed("uv", &["run", "--no-sync", "python"], "uv run python");
        }
        if has("poetry.lock") {
            return managed("poetry", &["run", "python"], "poetry run python");
        }
        if project.contains("hatch.toml") || project.file_contains("pyproject.toml", "[tool.hatch.envs") {
            return managed("hatch", &["run", "python"], "hatch run python");
        }
        // Only what tox has made already: to make it takes minutes and the network.
        let environments = project.entry_names(".tox").into_iter().filter(|name| name.starts_with("py"));
        let interpreters: Vec<_> = environments.map(|name| format!(".tox/{name}/bin/python")).collect();
        match first_of(project, &interpreters) {
            Some(program) => Self { program, arguments: &[], display: "python" },
            None => managed("python3", &[], "python3"),
        }
    }
}

/// Returns the absolute path of the first of `paths` that is in the folder.
fn first_of(folder: &Project, paths: &[impl AsRef<str>]) -> Option<String> {
    let path = paths.iter().map(AsRef::as_ref).find(|path| folder.contains(path))?;
    Some(folder.folder().to_absolute().join(path).to_string_lossy().into_owned())
}
