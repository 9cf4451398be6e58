//! The marks by which a folder is known as a project of one kind.

use crate::ci::project::Project;

/// Returns true if a file of the project has settings of pytest.
pub(crate) fn configures_pytest(project: &Project) -> bool {
    project.contains("pytest.ini")
        || project.file_contains("pyproject.toml", "[tool.pytest")
        || project.file_contains("tox.ini", "[pytest]")
        || project.file_contains("setup.cfg", "[tool:pytest]")
}

/// Returns true if the folder is where a Python project begins.
pub(crate) fn is_python(project: &Project) -> bool {
    project.contains_any(&["pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "pytest.ini"])
}

/// Returns true if the folder has specs of `RSpec`.
pub(crate) fn is_rspec(project: &Project) -> bool {
    project.contains(".rspec") || project.has_entry("spec", |name| name.ends_with("_spec.rb"))
}

/// Returns true if the folder has a project or a solution of .NET.
pub(crate) fn is_dotnet(project: &Project) -> bool {
    project.has_entry(".", |name| {
        [".sln", ".slnx", ".csproj", ".fsproj", ".vbproj"].iter().any(|end| name.ends_with(end))
    })
}

/// Returns true if one of the files, a makefile or a justfile, has a rule called `test`.
pub(crate) fn has_test_rule(project: &Project, files: &[&str]) -> bool {
    files.iter().any(|file| project.read(file).is_some_and(|text| text.lines().any(is_test_rule)))
}

/// Returns true for `test: …`, `test PARAMETER: …` and `@test: …`, and false for the variable `test := …`.
fn is_test_rule(line: &str) -> bool {
    let rule = line.strip_prefix("test").or_else(|| line.strip_prefix("@test"));
    rule.is_some_and(|rest| rest.starts_with([':', ' ']) && rest.contains(':') && !rest.contains(":="))
}
