//! The marks by which a folder is known as a project of one kind.

use crate::ci::project::Project;
use crate::testing::runner::TestRunner;
use crate::workspace::PathKind;

/// The names that a Rakefile may have.
const RAKEFILES: [&str; 4] = ["Rakefile", "rakefile", "Rakefile.rb", "rakefile.rb"];
/// The number of test files of a folder that are looked at.
const MAX_TEST_FILES: usize = 50;

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
        || is_django(project)
        || uses_tox(project)
        || uses_nox(project)
}

/// Returns true if the folder has the program that Django makes for a project: `manage.py`.
pub(crate) fn is_django(project: &Project) -> bool {
    project.file_contains("manage.py", "django")
}

/// Returns true if the project has environments of tox.
pub(crate) fn uses_tox(project: &Project) -> bool {
    let in_ini =
        |text: String| text.lines().any(|line| line.starts_with("[tox]") || line.starts_with("[testenv"));
    project.read("tox.ini").is_some_and(in_ini)
        || project.contains("tox.toml")
        || project.file_contains("pyproject.toml", "[tool.tox")
        || project.file_contains("setup.cfg", "[tox:tox]")
}

/// Returns true if the project has sessions of nox.
pub(crate) fn uses_nox(project: &Project) -> bool {
    project.contains("noxfile.py")
}

/// Returns the runner of a Python project's tests themselves: pytest, or unittest where its test files use that and
/// nothing names pytest.
pub(crate) fn python_runner(project: &Project) -> TestRunner {
    const MANIFESTS: [&str; 9] = [
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "tox.ini",
        "noxfile.py",
        "requirements.txt",
        "requirements-dev.txt",
        "dev-requirements.txt",
        "requirements-test.txt",
    ];
    let names_pytest = project.contains("pytest.ini")
        || project.contains("conftest.py")
        || MANIFESTS.iter().any(|file| project.file_contains(file, "pytest"));
    if names_pytest {
        return TestRunner::Pytest;
    }
    // Its tests need its settings, and its own command runs them with unittest.
    if is_django(project) {
        return TestRunner::Unittest;
    }
    let mut uses_unittest = false;
    for folder in python_test_folders(project) {
        if folder != "." && project.contains(&format!("{folder}/conftest.py")) {
            return TestRunner::Pytest;
        }
        let is_test = |name: &&String| name.starts_with("test") && name.ends_with(".py");
        for name in project.entry_names(&folder).iter().filter(is_test).take(MAX_TEST_FILES) {
            let text = project.read(&format!("{folder}/{name}")).unwrap_or_default();
            let imports = |module: &str| {
                text.contains(&format!("import {module}")) || text.contains(&format!("from {module}"))
            };
            // A function outside of a class is a test of pytest alone.
            if imports("pytest") || text.lines().any(|line| line.starts_with("def test")) {
                return TestRunner::Pytest;
            }
            uses_unittest |= imports("unittest");
        }
    }
    if uses_unittest { TestRunner::Unittest } else { TestRunner::Pytest }
}

/// Returns the folders that may have tests of Python: those of the project, and of its packages, which unittest finds only
/// through files `__init__.py`.
fn python_test_folders(project: &Project) -> Vec<String> {
    /// The number of packages whose tests are looked at.
    const MAX_PACKAGES: usize = 50;
    let mut folders: Vec<String> = [".", "test", "tests"].map(str::to_owned).into();
    let packages = project.entries(".").into_iter().filter(|(name, kind)| {
        *kind == PathKind::Directory && project.contains(&format!("{name}/__init__.py"))
    });
    for (package, _) in packages.take(MAX_PACKAGES) {
        let tests = ["test", "tests"].map(|name| format!("{package}/{name}"));
        folders.extend(tests.into_iter().filter(|tests| project.contains(&format!("{tests}/__init__.py"))));
    }
    folders
}

/// Returns true if a Rakefile has a task of tests.
pub(crate) fn has_rake_tests(project: &Project) -> bool {
    // A Rakefile is Ruby, and only its own execution would tell its tasks. These words stand in nearly every task of
    // tests.
    const MARKS: [&str; 6] =
        ["TestTask", "RakeTask", "task :test", "task test:", "task \"test\"", "task default:"];
    RAKEFILES
        .iter()
        .find_map(|file| project.read(file))
        .is_some_and(|text| MARKS.iter().any(|mark| text.contains(mark)) || text.contains("task :default"))
}

/// Returns true if Composer has a script `test`.
pub(crate) fn has_composer_tests(project: &Project) -> bool {
    let manifest = project.read("composer.json").unwrap_or_default();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap_or_default();
    manifest.pointer("/scripts/test").is_some()
}

/// Returns the program of the project that runs its tests, where it has one under a usual name.
pub(crate) fn test_program(project: &Project) -> Option<&'static str> {
    ["bin/test", "script/test"].into_iter().find(|path| {
        let kind = project.folder().join(path).and_then(|path| path.kind());
        matches!(kind, Ok(Some(PathKind::File)))
    })
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

/// Returns true if one of the files, a makefile or a justfile, has a rule of one of these names.
pub(crate) fn has_test_rule(project: &Project, files: &[&str], names: &[&str]) -> bool {
    let has_rule = |text: String| text.lines().any(|line| names.iter().any(|name| is_rule(line, name)));
    files.iter().any(|file| project.read(file).is_some_and(has_rule))
}

/// Returns true for `test: …`, `test PARAMETER: …` and `@test: …`, and false for the variable `test := …`.
pub(crate) fn is_rule(line: &str, name: &str) -> bool {
    let rule = line.strip_prefix(name).or_else(|| line.strip_prefix('@')?.strip_prefix(name));
    rule.is_some_and(|rest| rest.starts_with([':', ' ']) && rest.contains(':') && !rest.contains(":="))
}
